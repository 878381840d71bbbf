#include "values/upcall.h"

#include "base/beside.h"
#include "base/err.h"
#include "base/mem.h"
#include "values/step.h"
#include "values/values.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct upcall {
	struct upcall_shared *shared;
	int fd;
	uint64_t damaged;
	char library[PATH_MAX], file[64];
};

/* ---- preparing ---- */

static int find_library(struct upcall *u, const char *wanted, struct err *e)
{
	if (wanted)
		return realpath(wanted, u->library) ? 0 : err_errno(e, -errno, "%s", wanted);
	if (beside_find("culprit-upcall.so", u->library))
		return 0;
	return err_set(e, -ENOENT,
		"culprit-upcall.so is neither beside culprit nor in ../lib/culprit; install it "
		"(make install), or use --values=shadow");
}

static int check_options(const struct upcall_options *o, struct err *e)
{
	if (o->steps > STEPS_MAX)
		return err_set(e, -EINVAL, "bursts of %u instructions are too long: %d at most",
			o->steps, STEPS_MAX);
	if (o->period && o->period < 10000)
		return err_set(e, -EINVAL, "a period of %llu ns is too short: 10000 at least",
			(unsigned long long)o->period);
	if (o->nplugins > PLUGINS_MAX)
		return err_set(e, -EINVAL, "%zu plug-ins are too many: %d at most", o->nplugins,
			PLUGINS_MAX);
	return 0;
}

static void fill_orders(struct upcall_orders *to, const struct upcall_options *o)
{
	to->period = o->period ? o->period : UPCALL_PERIOD;
	to->steps = o->steps ? o->steps : UPCALL_STEPS;
	to->skip = o->skip ? o->skip : UPCALL_SKIP;
	to->values = !o->no_values;
	to->edges = !o->no_edges;
	to->nplugins = (uint32_t)o->nplugins;
	for (size_t i = 0; i < o->nplugins; i++) {
		to->plugin[i].kind = o->plugins[i].kind;
		memcpy(to->plugin[i].config, o->plugins[i].config, CULPRIT_CONFIG_SIZE);
		strcpy(to->plugin[i].path, o->plugins[i].path);
	}
}

/*
 * A file without a name, which goes away with the last that uses it. Programs open it by way of
 * this process and not by an inherited descriptor, so that they have no file open that they did not
 * open.
 */
static int make_shared(struct upcall *u, struct err *e)
{
	void *p;

	u->fd = memfd_create("culprit-upcall", MFD_CLOEXEC);
	if (u->fd < 0)
		return err_errno(e, -errno, "cannot make memory to share with programs");
	if (ftruncate(u->fd, sizeof *u->shared) < 0)
		return err_errno(e, -errno, "cannot make memory to share with programs");
	p = mmap(NULL, sizeof *u->shared, PROT_READ | PROT_WRITE, MAP_SHARED, u->fd, 0);
	if (p == MAP_FAILED)
		return err_errno(e, -errno, "cannot map memory to share with programs");
	u->shared = p;
	snprintf(u->file, sizeof u->file, "/proc/%d/fd/%d", getpid(), u->fd);
	return 0;
}

int upcall_prepare(const struct upcall_options *o, struct upcall **out, struct err *e)
{
	struct upcall *u;
	int rc = check_options(o, e);

	if (rc < 0)
		return rc;
	u = xcalloc(1, sizeof *u);
	u->fd = -1;
	rc = find_library(u, o->library, e);
	if (rc == 0 && strpbrk(u->library, " :"))
		rc = err_set(e, -EINVAL,
			"%s: LD_PRELOAD cannot name a path with blanks or colons; install culprit "
			"elsewhere",
			u->library);
	if (rc == 0)
		rc = make_shared(u, e);
	if (rc < 0) {
		upcall_destroy(u);
		return rc;
	}
	fill_orders(&u->shared->orders, o);
	u->shared->size = sizeof *u->shared;
	u->shared->magic = UPCALL_MAGIC;
	*out = u;
	return 0;
}

void upcall_destroy(struct upcall *u)
{
	if (!u)
		return;
	if (u->shared)
		munmap(u->shared, sizeof *u->shared);
	if (u->fd >= 0)
		close(u->fd);
	free(u);
}

static const char *value_of(const char *entry, const char *name)
{
	size_t n = strlen(name);

	return !strncmp(entry, name, n) && entry[n] == '=' ? entry + n + 1 : NULL;
}

/* The strings stand behind the pointers, so that one free() is enough. */
char **upcall_environment(const struct upcall *u, char *const *old)
{
	const char *preloaded = NULL;
	size_t n = 0, k = 0, room;
	char **new, *text;

	for (; old[n]; n++) {
		const char *v = value_of(old[n], "LD_PRELOAD");

		preloaded = v && *v ? v : preloaded;
	}
	room = strlen(u->library) + (preloaded ? strlen(preloaded) : 0) + sizeof u->file + 64;
	new = xmalloc((n + 3) * sizeof *new + room);
	text = (char *)(new + n + 3);
	for (size_t i = 0; i < n; i++) {
		if (!value_of(old[i], "LD_PRELOAD") && !value_of(old[i], UPCALL_ENVIRONMENT))
			new[k++] = old[i];
	}
	new[k++] = text;
	text += sprintf(text, "LD_PRELOAD=%s%s%s", u->library, preloaded ? ":" : "",
			preloaded ? preloaded : "") +
		1;
	new[k++] = text;
	sprintf(text, "%s=%s", UPCALL_ENVIRONMENT, u->file);
	new[k] = NULL;
	return new;
}

/* ---- reading ---- */

/* One burst at tail; returns the units it takes, 0 when what is there makes no sense. */
static uint64_t read_burst(
	const struct upcall_ring *r, uint64_t tail, uint64_t head, upcall_fn *fn, void *arg)
{
	struct upcall_unit first = r->unit[tail % UPCALL_UNITS];
	struct upcall_tuple t = {
		.time = first.word[0],
		.pid = (uint32_t)(first.word[1] >> 32),
		.tid = (uint32_t)first.word[1],
		.cpu = (uint32_t)first.word[2],
	};

	if (first.mark != UPCALL_BURST || first.kind >= head - tail)
		return 0;
	for (uint64_t i = 1; i <= first.kind; i++) {
		struct upcall_unit unit = r->unit[(tail + i) % UPCALL_UNITS];

		if (unit.mark != UPCALL_VALUE || unit.kind > UPCALL_EDGE)
			return 0;
		t.pc = unit.word[0];
		t.value = unit.word[1];
		t.context = unit.word[2];
		t.kind = unit.kind;
		fn(arg, &t);
	}
	return first.kind + 1;
}

static size_t read_ring(struct upcall *u, struct upcall_ring *r, upcall_fn *fn, void *arg)
{
	uint64_t head = atomic_load_explicit(&r->head, memory_order_acquire);
	uint64_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed), n;
	size_t values = 0;

	if (head - tail > UPCALL_UNITS) {
		u->damaged++;
		tail = head;
	}
	while (tail != head) {
		n = read_burst(r, tail, head, fn, arg);
		if (!n) { /* nobody knows where the next begins */
			u->damaged++;
			tail = head;
			break;
		}
		tail += n;
		values += n - 1;
	}
	atomic_store_explicit(&r->tail, tail, memory_order_release);
	return values;
}

size_t upcall_read(struct upcall *u, upcall_fn *fn, void *arg)
{
	size_t n = 0;

	for (size_t i = 0; i < UPCALL_RINGS; i++) {
		if (atomic_load_explicit(&u->shared->owner[i], memory_order_relaxed))
			n += read_ring(u, &u->shared->ring[i], fn, arg);
	}
	return n;
}

void upcall_count(const struct upcall *u, struct upcall_counts *out)
{
	struct upcall_sums *s = &u->shared->sums;

	*out = (struct upcall_counts){
		.processes = s->processes,
		.refused = s->refused,
		.bursts = s->bursts,
		.steps = s->steps,
		.dropped = s->dropped,
		.blocked = s->blocked,
		.busy = s->busy,
		.barred = s->barred,
		.damaged = u->damaged,
		.refused_errno = s->refused_errno,
	};
	for (size_t i = 0; i < 16; i++)
		out->stops[i] = s->stops[i];
	for (size_t i = 0; i < UPCALL_RINGS; i++)
		out->rings += u->shared->owner[i] != 0;
}
