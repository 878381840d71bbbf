#include "collect/shadow.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/mem.h"
#include "collect/complaint.h"
#include "collect/shadow_percpu.h"
#include "collect/shadow_user.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <cpuid.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

typedef uint64_t u64;
typedef uint32_t u32;

#include "collect/shadow.skel.h"

#define MOST_NS    16000 /* of one burst; writing it and the last instructions come on top */
#define STACK_SIZE 16384 /* of a task in the kernel */

struct shadow {
	struct shadow_bpf *bpf;
	struct shadow_cpu *cpus;
	unsigned ncpus;
	struct ring_buffer *doorbell;
	uint64_t *left_out;           /* SHADOW_LEFT_OUT of them; NULL: nobody is */
	bool kernel;                  /* interprets it when it is not left out */
	struct shadow_watch *watches; /* SHADOW_WATCHES of them */
};

/* ---- the machine ---- */

/* Bits of a physical address; those above are flags, or the mark of an encrypted page. */
static uint64_t frame_mask(void)
{
	unsigned a, b, c, d, bits = 46;

	if (__get_cpuid(0x80000008, &a, &b, &c, &d))
		bits = a & 0xff;
	if (bits < 32 || bits > 52)
		bits = 46;
	/* Memory encryption (AMD) takes one bit away. */
	if (__get_cpuid(0x8000001f, &a, &b, &c, &d) && a & 3 && (b & 63) < bits)
		bits = b & 63;
	return ((1ull << bits) - 1) & ~4095ull;
}

/* Five levels of page tables are used when the processor and the kernel both can. */
static unsigned table_levels(void)
{
	struct buf text = {0};
	unsigned levels = 4;

	io_read_file(AT_FDCWD, "/proc/cpuinfo", 1 << 20, &text);
	if (strstr(buf_cstr(&text), " la57"))
		levels = 5;
	buf_deinit(&text);
	return levels;
}

/* The end of RAM, from the resources; 0 when they are hidden. */
static uint64_t memory_end(void)
{
	struct buf text = {0};
	uint64_t most = 0;

	io_read_file(AT_FDCWD, "/proc/iomem", 1 << 20, &text);
	for (const char *at = buf_cstr(&text), *start; (at = strstr(at, " : System RAM")); at++) {
		uint64_t high;

		for (start = at; start > (char *)text.p && start[-1] != '-';)
			start--;
		high = strtoull(start, NULL, 16);
		if (high >= most)
			most = high + 1;
	}
	buf_deinit(&text);
	return most > 1 ? most : 0;
}

/* The address of a symbol of the kernel; 0: none, or hidden. */
static uint64_t kernel_symbol(const char *text, const char *end_of_line)
{
	const char *at = strstr(text, end_of_line);

	if (!at)
		return 0;
	while (at > text && at[-1] != '\n')
		at--;
	return strtoull(at, NULL, 16);
}

static void kernel_image(uint64_t *start, uint64_t *end)
{
	struct buf text = {0};

	io_read_file(AT_FDCWD, "/proc/kallsyms", 64 << 20, &text);
	*start = kernel_symbol(buf_cstr(&text), " T _stext\n");
	*end = kernel_symbol(buf_cstr(&text), " T _etext\n") & ~4095ull; /* whole pages of it */
	buf_deinit(&text);
}

/*
 * Linux had bit 58 for pages of devices, and since 6.6 has bit 57 (if any); 58 then says that a
 * page was written before it became read-only. `entry` is of such a page.
 */
static uint64_t device_mark(uint64_t entry)
{
	return entry & 1ull << 58 ? 1ull << 57 : 1ull << 58;
}

/* ---- loading ---- */

/* What the search found. */
struct found {
	uint64_t base, entry;
};

static void describe_machine(struct shadow_bpf *b)
{
	uint64_t start = 0, end = 0;

	kernel_image(&start, &end);
	b->rodata->image_start = start;
	b->rodata->image_end = end;
	b->rodata->frame_mask = frame_mask();
	b->rodata->levels = table_levels();
	b->rodata->stack_size = STACK_SIZE;
}

/* Whether the kernel knows loops that it bounds itself (may_goto, Linux 6.9). */
static bool knows_loops(void)
{
	const struct bpf_insn code[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K},
		{.code = BPF_JMP | 0xe0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	int fd = bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, NULL, "GPL", code, 3, NULL);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static int open_and_load(unsigned cpus, const struct shadow_options *o, const struct found *found,
	struct shadow_bpf **out)
{
	struct shadow_bpf *b = shadow_bpf__open();
	bool by_calls = found && (o->by_calls || !knows_loops());
	int r;

	if (!b)
		return -errno;
	describe_machine(b);
	if (found) {
		b->rodata->direct_map = found->base;
		b->rodata->direct_map_size = memory_end();
		b->rodata->device_mark = device_mark(found->entry);
	}
	/* The search needs none of the rest. */
	bpf_program__set_autoload(b->progs.shadow_sample, found && !by_calls);
	bpf_program__set_autoload(b->progs.shadow_sample_by_calls, by_calls);
	bpf_program__set_autoload(b->progs.find_direct_map, found == NULL);
	bpf_program__set_autoload(b->progs.find_own, found != NULL);
	r = bpf_map__set_max_entries(b->maps.cpus, cpus);
	if (!r)
		r = bpf_map__set_max_entries(b->maps.states, cpus);
	if (!r && o && o->choosy)
		r = bpf_map__set_max_entries(b->maps.left_out, SHADOW_LEFT_OUT);
	if (!r)
		r = shadow_bpf__load(b);
	if (r)
		shadow_bpf__destroy(b);
	else
		*out = b;
	return r;
}

/* Has the kernel look for a word of ours through our own page tables. */
static int find_direct_map(struct found *out)
{
	LIBBPF_OPTS(bpf_test_run_opts, run);
	struct shadow_bpf *b;
	uint64_t *word;
	int r = open_and_load(1, NULL, NULL, &b);

	if (r)
		return r;
	word = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (word == MAP_FAILED || getrandom(word, sizeof *word, 0) != sizeof *word) {
		r = -ENOMEM;
	} else {
		mprotect(word, 4096, PROT_READ);
		b->bss->sought_address = (uintptr_t)word;
		b->bss->sought_word = *word;
		r = bpf_prog_test_run_opts(bpf_program__fd(b->progs.find_direct_map), &run);
		*out = (struct found){b->bss->found_base, b->bss->found_entry};
		r = r ? -errno : out->base ? 0 : -ENOENT;
	}
	if (word != MAP_FAILED)
		munmap(word, 4096);
	shadow_bpf__destroy(b);
	return r;
}

static int explain(int code, const char *complaint, struct err *e)
{
	if (code == -EPERM || code == -EACCES)
		return err_set(e, -EPERM,
			"interpreting is not allowed: it needs CAP_BPF and CAP_PERFMON, or root");
	if (code == -ENOENT)
		return err_set(e, -EOPNOTSUPP,
			"interpreting: the kernel's map of memory was not found on this machine");
	return err_errno(e, code, "BPF: cannot load the interpreter%s", complaint);
}

static int load(struct shadow *s, const struct shadow_options *o, struct err *e)
{
	const char *complaint;
	struct found found;
	int r;

	complaint_begin();
	r = find_direct_map(&found);
	if (!r)
		r = open_and_load(s->ncpus, o, &found, &s->bpf);
	complaint = complaint_end();
	return r ? explain(r, complaint, e) : 0;
}

static int ignore_ring(void *arg, void *data, size_t size)
{
	(void)arg, (void)data, (void)size;
	return 0;
}

static int map_left_out(struct shadow *s, struct err *e)
{
	void *p = mmap(NULL, SHADOW_LEFT_OUT * sizeof *s->left_out, PROT_READ | PROT_WRITE,
		MAP_SHARED, bpf_map__fd(s->bpf->maps.left_out), 0);

	if (p == MAP_FAILED)
		return err_errno(e, -errno, "BPF: cannot map the interpreter's processes");
	s->left_out = p;
	return 0;
}

static int map_watches(struct shadow *s, struct err *e)
{
	void *p = mmap(NULL, SHADOW_WATCHES * sizeof *s->watches, PROT_READ | PROT_WRITE,
		MAP_SHARED, bpf_map__fd(s->bpf->maps.watches), 0);

	if (p == MAP_FAILED)
		return err_errno(e, -errno, "BPF: cannot map the words that are watched");
	s->watches = p;
	return 0;
}

static int map_buffers(struct shadow *s, const struct shadow_options *o, struct err *e)
{
	void *p = mmap(NULL, s->ncpus * sizeof *s->cpus, PROT_READ | PROT_WRITE, MAP_SHARED,
		bpf_map__fd(s->bpf->maps.cpus), 0);

	if (p == MAP_FAILED)
		return err_errno(e, -errno, "BPF: cannot map the interpreter's buffers");
	s->cpus = p;
	s->doorbell = ring_buffer__new(bpf_map__fd(s->bpf->maps.doorbell), ignore_ring, NULL, NULL);
	if (!s->doorbell)
		return err_errno(e, -errno, "BPF: cannot map the interpreter's ring buffer");
	for (unsigned i = 0; i < s->ncpus; i++)
		s->cpus[i].orders = (struct shadow_orders){.steps = o->steps,
			.skip = o->skip,
			.values = o->values,
			.user = o->user,
			.kernel = o->kernel,
			.exact = o->exact,
			.choosy = o->choosy,
			.watch = o->watch,
			.most_ns = MOST_NS,
			.share = (uint32_t)(o->share * 65536)};
	return 0;
}

/* Has each CPU look for what is its own. Where nothing is found, loads through gs stay unknown. */
static void find_own(struct shadow *s)
{
	LIBBPF_OPTS(bpf_test_run_opts, run, .flags = BPF_F_TEST_RUN_ON_CPU);
	struct shadow_bpf *b = s->bpf;
	struct percpu_places places;

	if (!b->rodata->image_start || !percpu_places_find(&places))
		return;
	b->bss->place_of_base = places.base;
	b->bss->place_of_task = places.task;
	for (unsigned i = 0; i < s->ncpus; i++) {
		run.cpu = i;
		if (bpf_prog_test_run_opts(bpf_program__fd(b->progs.find_own), &run) < 0 ||
			b->bss->found_section == UINT64_MAX)
			continue;
		s->cpus[i].gs = b->bss->found_gs;
		s->cpus[i].preempt = b->bss->found_section + places.preempt + b->bss->found_gs;
	}
}

int shadow_create(const struct shadow_options *o, unsigned cpus, struct shadow **out, struct err *e)
{
	struct shadow *s = xcalloc(1, sizeof *s);
	int r;

	s->ncpus = cpus;
	s->kernel = o->kernel;
	r = load(s, o, e);
	if (!r)
		r = map_buffers(s, o, e);
	if (!r && o->choosy)
		r = map_left_out(s, e);
	if (!r)
		r = map_watches(s, e);
	if (!r && o->kernel)
		find_own(s);
	if (r < 0)
		shadow_destroy(s);
	else
		*out = s;
	return r;
}

void shadow_destroy(struct shadow *s)
{
	if (!s)
		return;
	ring_buffer__free(s->doorbell);
	if (s->cpus)
		munmap(s->cpus, s->ncpus * sizeof *s->cpus);
	if (s->left_out)
		munmap(s->left_out, SHADOW_LEFT_OUT * sizeof *s->left_out);
	if (s->watches)
		munmap(s->watches, SHADOW_WATCHES * sizeof *s->watches);
	shadow_bpf__destroy(s->bpf);
	free(s);
}

int shadow_program(const struct shadow *s)
{
	const struct shadow_bpf *b = s->bpf;

	return bpf_program__fd(bpf_program__autoload(b->progs.shadow_sample)
				       ? b->progs.shadow_sample
				       : b->progs.shadow_sample_by_calls);
}

int shadow_fd(const struct shadow *s)
{
	return ring_buffer__epoll_fd(s->doorbell);
}

/* ---- reading ---- */

static uint64_t load_acquire(const uint64_t *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

/* The first burst from here on, NULL: there is none. */
static const struct shadow_burst *burst_at(const struct shadow_cpu *c, uint64_t head, uint64_t *at)
{
	const struct shadow_burst *b = NULL;

	while (*at < head) {
		b = (const struct shadow_burst *)&c->buffer[*at % SHADOW_WORDS];
		if (b->words)
			return b;
		*at += SHADOW_WORDS - *at % SHADOW_WORDS; /* the rest of the buffer */
	}
	return NULL;
}

static uint64_t next_time(const struct shadow_cpu *c)
{
	uint64_t at = c->tail;
	const struct shadow_burst *b = burst_at(c, load_acquire(&c->head), &at);

	return b ? b->time : UINT64_MAX;
}

static void service_cpu(struct shadow_cpu *c, uint64_t until, shadow_fn *fn, void *arg)
{
	uint64_t head = load_acquire(&c->head), tail = c->tail;
	const struct shadow_burst *b;

	while ((b = burst_at(c, head, &tail)) && b->time <= until) {
		fn(arg, b, (const uint64_t *)b + SHADOW_HEAD);
		tail += b->words;
	}
	__atomic_store_n(&c->tail, tail, __ATOMIC_RELEASE);
}

/* Threads go from CPU to CPU: what their words held is told in the order of time. */
void shadow_service(struct shadow *s, uint64_t until, shadow_fn *fn, void *arg)
{
	_cleanup_free_ uint64_t *next = xcalloc(s->ncpus, sizeof *next);

	ring_buffer__consume(s->doorbell);
	for (unsigned i = 0; i < s->ncpus; i++)
		next[i] = next_time(&s->cpus[i]);
	for (;;) {
		uint64_t second = until;
		unsigned first = 0;

		for (unsigned i = 1; i < s->ncpus; i++) {
			uint64_t later = next[i] < next[first] ? next[first] : next[i];

			first = next[i] < next[first] ? i : first;
			second = later < second ? later : second;
		}
		if (next[first] > until)
			return;
		service_cpu(&s->cpus[first], second, fn, arg);
		next[first] = next_time(&s->cpus[first]);
	}
}

/* ---- choosing ---- */

static void interpret_kernel(struct shadow *s, bool yes)
{
	for (unsigned i = 0; i < s->ncpus; i++)
		__atomic_store_n(&s->cpus[i].orders.kernel, yes, __ATOMIC_RELAXED);
}

void shadow_leave_out(struct shadow *s, const struct shadow_burst *b)
{
	if (!s->left_out)
		return;
	if (b->kernel)
		interpret_kernel(s, false);
	else
		__atomic_store_n(&s->left_out[b->pid % SHADOW_LEFT_OUT],
			SHADOW_PROCESS(b->pid, b->generation), __ATOMIC_RELAXED);
}

void shadow_take_in(struct shadow *s, pid_t pid)
{
	if (!s->left_out)
		return;
	if (pid > 0) {
		__atomic_store_n(
			&s->left_out[(uint32_t)pid % SHADOW_LEFT_OUT], 0, __ATOMIC_RELAXED);
		return;
	}
	memset(s->left_out, 0, SHADOW_LEFT_OUT * sizeof *s->left_out);
	interpret_kernel(s, s->kernel);
}

/* The interpreter may look at any time: an empty list is right whatever the rest is. */
void shadow_watch(struct shadow *s, const struct shadow_watch *w)
{
	struct shadow_watch *to = &s->watches[(w->thread >> 32) % SHADOW_WATCHES];

	__atomic_store_n(&to->n, 0, __ATOMIC_SEQ_CST);
	to->thread = w->thread;
	memcpy(to->address, w->address, sizeof to->address);
	__atomic_store_n(&to->n, w->n, __ATOMIC_SEQ_CST);
}

void shadow_statistics(const struct shadow *s, struct shadow_statistics *out)
{
	*out = (struct shadow_statistics){
		.map_bytes = s->ncpus * (sizeof *s->cpus + sizeof(struct interp))};
	if (s->left_out)
		out->map_bytes += SHADOW_LEFT_OUT * sizeof *s->left_out;
	for (unsigned i = 0; i < s->ncpus; i++) {
		const struct shadow_cpu *c = &s->cpus[i];

		out->bursts += c->bursts;
		out->steps += c->steps;
		out->ns += c->ns;
		out->dropped += c->dropped;
		out->withheld += c->withheld;
		out->refused += c->refused;
		out->left_out += c->left_out;
		out->nlong += c->nlong;
		out->nlong_own += c->nlong_own;
		if (c->longest_own > out->longest_own)
			out->longest_own = c->longest_own;
		if (c->longest > out->longest)
			out->longest = c->longest;
		if (c->ns > out->busiest)
			out->busiest = c->ns;
		for (int k = 0; k < INTERP_STOPS; k++)
			out->stops[k] += c->stops[k];
	}
}
