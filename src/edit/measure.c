#include "edit/measure.h"

#include "base/buf.h"
#include "base/err.h"
#include "collect/counter.h"
#include "collect/event.h"
#include "edit/runtime.h"
#include "image/image.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TAG_MOST 16 /* letters of a name */

/* ---- by name ---- */

/* Opened as the program will do it: for the calling thread alone, on a counter of its own. */
static int try_event(const char *name, const struct event *ev, struct err *e)
{
	struct perf_event_attr attr = ev->attr;
	int fd;

	attr.pinned = attr.type != PERF_TYPE_SOFTWARE && attr.type != PERF_TYPE_TRACEPOINT;
	fd = counter_kernel.open(&attr, 0, -1, 0);
	if (fd < 0)
		return err_errno(e, fd,
			"metric %s: cannot be opened; tsc can always be measured, task-clock and "
			"page-faults where perf events are allowed",
			name);
	close(fd);
	return 0;
}

static int parse_event(const char *name, struct measure *out, struct err *e)
{
	struct event ev;
	int rc = event_parse(name, &ev, e);

	if (rc && rc != -EOPNOTSUPP)
		return rc;
	if (rc || ev.fell_back)
		return err_set(e, -EOPNOTSUPP,
			"metric %s: this machine does not have the counter (a virtual machine "
			"without a PMU?); tsc and task-clock measure time",
			name);
	out->event = (struct rt_event){.type = ev.attr.type,
		.excluded = (ev.attr.exclude_user ? RT_EXCLUDE_USER : 0) |
			    (ev.attr.exclude_kernel ? RT_EXCLUDE_KERNEL : 0) |
			    (ev.attr.exclude_hv ? RT_EXCLUDE_HYPERVISOR : 0),
		.config = ev.attr.config,
		.config1 = ev.attr.config1,
		.config2 = ev.attr.config2};
	return try_event(name, &ev, e);
}

static int parse_one(const char *name, struct measure *out, struct err *e)
{
	if (strlen(name) >= METRIC_NAME || !*name)
		return err_set(e, -EINVAL, "metric \"%.64s\": a name has up to %d letters", name,
			METRIC_NAME - 1);
	*out = (struct measure){.is_clock = !strcmp(name, MEASURE_CLOCK)};
	strcpy(out->name, name);
	return out->is_clock ? 0 : parse_event(name, out, e);
}

int measures_parse(const char *const *names, size_t n, struct measures *out, struct err *e)
{
	struct measures m = {0};

	if (n > RT_METRICS)
		return err_set(e, -EINVAL, "a run measures %d metrics at most, not also %s",
			RT_METRICS, names[RT_METRICS]);
	for (size_t i = 0; i < n; i++) {
		struct measure one;
		int rc = parse_one(names[i], &one, e);

		if (rc)
			return rc;
		if (m.n && !strcmp(m.list[0].name, one.name))
			return err_set(e, -EINVAL, "metric %s: is named twice", one.name);
		bool first = m.n && strcmp(one.name, m.list[0].name) < 0;
		if (first)
			m.list[1] = m.list[0];
		m.list[first ? 0 : m.n] = one;
		m.n++;
	}
	*out = m;
	return 0;
}

void measures_names(const struct measures *m, struct metric_names *out)
{
	*out = (struct metric_names){0};
	for (unsigned i = 0; i < m->n; i++)
		metric_add(out, m->list[i].name);
}

bool measures_events(const struct measures *m)
{
	for (unsigned i = 0; i < m->n; i++)
		if (!m->list[i].is_clock)
			return true;
	return false;
}

/* ---- in edited files ---- */

/* FNV-1a */
static uint64_t hash(const void *p, size_t n)
{
	const uint8_t *bytes = p;
	uint64_t h = 0xcbf29ce484222325;

	for (size_t i = 0; i < n; i++)
		h = (h ^ bytes[i]) * 0x100000001b3;
	return h;
}

int measures_prepare(const struct measures *m, struct edit *edit, struct err *e)
{
	struct rt_metrics all = {0};
	const char *why;
	size_t at;

	if (!measures_events(m))
		return 0;
	if (!runtime_has_thread_words(edit, &why))
		return err_set(e, -EOPNOTSUPP,
			"%s: events need words in threads, but %s; --metric tsc does not",
			image_path(edit_image(edit)), why);
	for (unsigned i = 0; i < m->n; i++) {
		all.event[i] = m->list[i].event;
		all.events |= (uint64_t)!m->list[i].is_clock << i;
	}
	all.key = hash(&all, sizeof all);
	at = runtime_append(edit, &all, sizeof all);
	runtime_header(edit)->metrics = at;
	return 0;
}

void measure_text(const struct measures *m, unsigned which, const char *to, struct buf *out)
{
	if (m->list[which].is_clock)
		buf_printf(out, "%s = rdtsc; ", to);
	else
		buf_printf(out, "%s = call a%d(%u); ", to, MEASURE_ARGUMENT, which);
}

void measures_tag(const struct measures *m, char *name, size_t size)
{
	size_t n = strlen(name);

	for (unsigned i = 0; i < m->n && n < size; i++) {
		const struct measure *one = &m->list[i];
		char word[TAG_MOST + 1] = "";

		for (size_t k = 0; k < TAG_MOST && one->name[k]; k++)
			word[k] = isalnum((unsigned char)one->name[k]) ? one->name[k] : '_';
		n += (size_t)snprintf(name + n, size - n, "-%s", word);
		if (!one->is_clock && n < size)
			n += (size_t)snprintf(name + n, size - n, "-%08" PRIx32,
				(uint32_t)hash(&one->event, sizeof one->event));
	}
}
