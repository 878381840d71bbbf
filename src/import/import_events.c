#include "base/err.h"
#include "base/mem.h"
#include "import/import_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define EVENTS_MOST 64        /* that the attribution can tell apart */
#define FORMAT_LOST (1u << 4) /* PERF_FORMAT_LOST, newer than some headers */

static bool is_dummy(const struct perf_event_attr *a)
{
	return a->type == PERF_TYPE_SOFTWARE && a->config == PERF_COUNT_SW_DUMMY;
}

static bool is_clock(const struct perf_event_attr *a)
{
	return a->type == PERF_TYPE_SOFTWARE &&
	       (a->config == PERF_COUNT_SW_CPU_CLOCK || a->config == PERF_COUNT_SW_TASK_CLOCK);
}

/* What nobody has named: streams of old, and perf that was killed. */
static char *made_up_name(const struct perf_event_attr *a)
{
	static const char *const hardware[] = {"cycles", "instructions", "cache-references",
		"cache-misses", "branches", "branch-misses", "bus-cycles",
		"stalled-cycles-frontend", "stalled-cycles-backend", "ref-cycles"};
	static const char *const software[] = {"cpu-clock", "task-clock", "page-faults",
		"context-switches", "cpu-migrations", "minor-faults", "major-faults",
		"alignment-faults", "emulation-faults"};

	if (a->type == PERF_TYPE_HARDWARE && a->config < sizeof hardware / sizeof *hardware)
		return xstrdup(hardware[a->config]);
	if (a->type == PERF_TYPE_SOFTWARE && a->config < sizeof software / sizeof *software)
		return xstrdup(software[a->config]);
	return xasprintf("type-%u:0x%llx", a->type, (unsigned long long)a->config);
}

/*
 * "cycles:u" of "cycles:upppH": who is counted is a part of the name; how precise samples are, and
 * for which guests, is not.
 */
static char *short_name(const char *name)
{
	const char *colon = strrchr(name, ':');
	struct buf out = {0};
	char *copy;

	if (!colon || !colon[1] || strspn(colon + 1, "ukhHGpPIDSWeb") != strlen(colon + 1))
		return xstrdup(name);
	buf_put(&out, name, (size_t)(colon - name));
	for (const char *c = colon + 1, *had = ":"; *c; c++)
		if (strchr("ukh", *c)) {
			buf_printf(&out, "%s%c", had, *c);
			had = "";
		}
	copy = xstrdup(buf_cstr(&out));
	buf_deinit(&out);
	return copy;
}

static uint32_t event_number(struct import *im, const struct perf_event *ev)
{
	const struct perf_event_attr *a = &ev->attr;
	_cleanup_free_ char *given = ev->name ? xstrdup(ev->name) : made_up_name(a);
	char *name = short_name(given);
	bool counts_lost = a->read_format & FORMAT_LOST;
	struct import_event *to;

	for (uint32_t i = 0; i < im->events.n; i++)
		if (!strcmp(im->events.p[i].name, name)) {
			im->events.p[i].counts_lost &= counts_lost;
			free(name);
			return i;
		}
	to = vec_add(&im->events);
	*to = (struct import_event){.name = name,
		.is_clock = is_clock(a),
		.counts_lost = counts_lost,
		.rate = a->freq ? (double)a->sample_freq : 0};
	return (uint32_t)im->events.n - 1;
}

static int check_attr(const struct import *im, const struct perf_event *ev)
{
	const uint64_t needed = PERF_SAMPLE_IP | PERF_SAMPLE_TID;

	if (is_dummy(&ev->attr) || (ev->attr.sample_type & needed) == needed)
		return 0;
	return err_set(im->e, -EINVAL,
		"%s: samples of %s tell no address or no process; record with 'perf record' and no "
		"options that leave them out",
		im->o->path, ev->name ? ev->name : "an event");
}

int import_begin_events(struct import *im)
{
	const struct perf_event *list;
	size_t n = perf_file_events(im->file, &list);

	if (!n)
		return err_set(im->e, -EBADMSG, "%s: damaged: it names no events; record it again",
			im->o->path);
	if (!perf_layout_of(list, n, &im->layout))
		return err_set(im->e, -EINVAL,
			"%s: nothing tells its events apart; record them with one 'perf record'",
			im->o->path);
	im->timed = true;
	for (size_t i = 0; i < n; i++) {
		uint32_t number = UINT32_MAX;
		int r = check_attr(im, &list[i]);

		if (r < 0)
			return r;
		if (!is_dummy(&list[i].attr))
			number = event_number(im, &list[i]);
		*vec_add(&im->event_of) = number;
		im->timed &= (list[i].attr.sample_type & PERF_SAMPLE_TIME) != 0;
		im->build_ids |= list[i].attr.build_id;
		for (size_t k = 0; k < list[i].ids.n; k++) {
			struct import_counter *c = hmap_put(&im->counters, &list[i].ids.p[k], NULL);

			c->attr = (uint32_t)i;
			c->event = number;
		}
	}
	if (!im->events.n || im->events.n > EVENTS_MOST)
		return err_set(im->e, -EINVAL, "%s: %zu sampled events; 1 to %u can be imported",
			im->o->path, im->events.n, EVENTS_MOST);
	return 0;
}

/* Where nothing tells which it is, it is the first: perf's own records have no id. */
struct import_counter *import_counter(struct import *im, const uint8_t *record, size_t size)
{
	uint64_t id = perf_record_id(&im->layout, record, size);
	struct import_counter *c = id ? hmap_get(&im->counters, &id) : NULL;
	bool fresh;

	if (c || (id && im->layout.n > 1))
		return c;
	id = 0;
	c = hmap_put(&im->counters, &id, &fresh);
	if (fresh)
		c->event = im->event_of.p[0];
	return c;
}
