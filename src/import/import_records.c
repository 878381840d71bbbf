#include "base/cursor.h"
#include "base/err.h"
#include "base/mem.h"
#include "collect/attribute.h"
#include "collect/record.h"
#include "collect/recorded.h"
#include "collect/sampler.h"
#include "import/import_internal.h"

#include <string.h>

enum { CHAIN_MOST = 1024, BRANCHES_MOST = 1024, BRANCH_BYTES = 24 };

/* Marks in a chain, of what follows; all others are in the highest page as well. */
#define MARKS       ((uint64_t)-4095)
#define MARK_KERNEL ((uint64_t)-128)
#define MARK_USER   ((uint64_t)-512)

static const struct perf_event_attr *attr_of(
	const struct import *im, const struct import_counter *c)
{
	return &im->layout.events[c->attr].attr;
}

/* ---- what is no sample ---- */

/* The list of build-ids calls the kernel "[kernel.kallsyms]", without the symbol behind it. */
static void find_build_id(const struct import *im, struct record *r)
{
	_cleanup_free_ char *name = NULL;
	const struct image_id *id;
	const char *end = *r->mmap.path == '[' ? strchr(r->mmap.path, ']') : NULL;

	if (r->mmap.build_id.size)
		return;
	name = end ? xstrndup(r->mmap.path, (size_t)(end + 1 - r->mmap.path))
		   : xstrdup(r->mmap.path);
	id = perf_file_build_id(im->file, name, r->mmap.kernel);
	if (id)
		r->mmap.build_id = *id;
}

static void take_mapping(struct import *im, struct record *r)
{
	find_build_id(im, r);
	if (r->mmap.kernel)
		recorded_kernel(
			im->recorded, r->mmap.path, r->mmap.start, r->mmap.size, &r->mmap.build_id);
	else
		attribution_record(im->attribution, r);
}

static void take_lost(struct import *im, const struct import_counter *c, uint32_t type, uint64_t n)
{
	struct import_event *ev;

	if (!c || c->event >= im->events.n)
		return;
	ev = &im->events.p[c->event];
	if (type == PERF_RECORD_LOST_SAMPLES)
		ev->lost_samples += n;
	else
		ev->lost_records += n;
}

/*
 * The kernel tells as it goes on how many records found no room (LOST), of whatever kind. Where
 * events count their lost samples themselves perf asks them in the end (LOST_SAMPLES), if it comes
 * to that.
 */
uint64_t import_lost(const struct import *im, const struct import_event *ev)
{
	if (ev->counts_lost && !perf_file_facts(im->file)->interrupted)
		return ev->lost_samples;
	return ev->lost_samples > ev->lost_records ? ev->lost_samples : ev->lost_records;
}

/* While it was throttled a counter would have sampled as ever. */
static void take_unthrottle(struct import *im, struct import_counter *c, uint64_t time)
{
	const struct perf_event_attr *a = attr_of(im, c);
	struct import_event *ev = c->event < im->events.n ? &im->events.p[c->event] : NULL;
	double ns = (double)(time - c->throttled_at);

	if (!ev || !c->throttled_at || time <= c->throttled_at)
		return;
	if (a->freq)
		ev->throttled += ns / 1e9 * (double)a->sample_freq;
	else if (ev->is_clock && a->sample_period)
		ev->throttled += ns / (double)a->sample_period;
	c->throttled_at = 0;
}

/* The record itself names the counter here. */
static struct import_counter *named_counter(struct import *im, uint64_t id)
{
	return hmap_get(&im->counters, &id);
}

static void take_side(struct import *im, uint64_t time, uint32_t type, struct record *r,
	struct import_counter *by)
{
	struct import_counter *c = named_counter(im, r->id);

	c = c ? c : by;
	switch (r->kind) {
	case RECORD_MMAP:
		take_mapping(im, r);
		break;
	case RECORD_COMM:
	case RECORD_FORK:
	case RECORD_EXIT:
	case RECORD_CGROUP:
		attribution_record(im->attribution, r);
		break;
	case RECORD_KSYMBOL:
		if (r->ksymbol.gone)
			recorded_gone(im->recorded, r->ksymbol.address);
		else
			recorded_made(
				im->recorded, r->ksymbol.name, r->ksymbol.address, r->ksymbol.size);
		break;
	case RECORD_LOST:
		take_lost(im, c, type, r->lost.lost);
		break;
	case RECORD_THROTTLE:
		if (!c->throttled_at)
			c->throttled_at = time;
		break;
	case RECORD_UNTHROTTLE:
		take_unthrottle(im, c, time);
		break;
	default:
		break;
	}
}

static void take_other(struct import *im, uint64_t time, struct import_counter *c, uint32_t type,
	const uint8_t *record, size_t size)
{
	const struct perf_event_attr *a = attr_of(im, c);
	struct perf_trailer trailer;
	struct record r;

	if (!perf_trailer_parse(a, record, size, &trailer) ||
		record_parse_foreign(record, size, perf_trailer_size(a), im->build_ids, &r) < 0) {
		im->out->bad++;
		return;
	}
	r.time = time;
	take_side(im, time, type, &r, c);
}

/* ---- samples ---- */

static uint64_t word(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof v);
	return v;
}

/* Branches that stand for the calls that led here, and not for what ran (--call-graph lbr). */
static bool has_call_stack(const struct perf_event_attr *a, const struct perf_sample *s)
{
	return a->branch_sample_type & PERF_SAMPLE_BRANCH_CALL_STACK && s->nbranches;
}

/* From the latest call on, as if they were where it comes back to. */
static size_t add_call_stack(const struct perf_sample *s, uint64_t out[CHAIN_MOST], size_t n)
{
	for (size_t i = 0; i < s->nbranches && n < CHAIN_MOST; i++) {
		uint64_t from = word(s->branches + BRANCH_BYTES * i);

		if (!from)
			break;
		out[n++] = from + 1;
	}
	return n;
}

/* Addresses without marks; those of guests are left out. Calls, if those are known better. */
static size_t chain_of(
	const struct perf_event_attr *a, const struct perf_sample *s, uint64_t out[CHAIN_MOST])
{
	uint64_t mark = 0;
	size_t n = 0;
	bool calls = false;

	for (size_t i = 0; i < s->nchain && n < CHAIN_MOST; i++) {
		uint64_t v = word(s->chain + 8 * i);

		if (v >= MARKS)
			mark = v;
		else if (mark == MARK_KERNEL || (mark == MARK_USER && !s->has_stack && !calls))
			out[n++] = v;
		/* Only the first address of the program is none that a call comes back to. */
		calls |= mark == MARK_USER && v != mark && has_call_stack(a, s);
	}
	return calls ? add_call_stack(s, out, n) : n;
}

static void take_path(struct import *im, const struct perf_event_attr *a,
	const struct perf_sample *s, const struct sample *sample)
{
	uint64_t pcs[CHAIN_MOST];
	struct attribution_path path = {
		.pcs = pcs, .n = chain_of(a, s, pcs), .stack = s->has_stack ? &s->stack : NULL};

	/* It has been where it was sampled, if nobody says more. */
	if (!path.n && (!path.stack || sample->kernel)) {
		pcs[0] = s->ip;
		path.n = 1;
	}
	attribution_path(im->attribution, sample, &path);
}

/* What the processor remembers of branches that it took, the latest first. */
static void take_branches(struct import *im, const struct perf_event_attr *a,
	const struct perf_sample *s, const struct sample *sample)
{
	struct attribution_branch list[BRANCHES_MOST];
	size_t n = 0;

	for (size_t i = 0; i < s->nbranches && n < BRANCHES_MOST; i++) {
		const uint8_t *b = s->branches + BRANCH_BYTES * i;

		if (!word(b) || !word(b + 8))
			break; /* nothing was remembered before */
		list[n++] = (struct attribution_branch){.from = word(b), .to = word(b + 8)};
	}
	attribution_branches(
		im->attribution, sample, list, n, a->branch_sample_type & PERF_SAMPLE_BRANCH_ANY);
}

static bool is_guest(const struct perf_sample *s)
{
	uint16_t mode = s->misc & PERF_RECORD_MISC_CPUMODE_MASK;

	return mode == PERF_RECORD_MISC_GUEST_KERNEL || mode == PERF_RECORD_MISC_GUEST_USER;
}

static void count_sample(struct import *im, struct import_event *ev, const struct perf_sample *s)
{
	ev->samples++;
	ev->periods += (double)s->period;
	im->out->samples++;
	if (im->o->progress && im->out->samples % 65536 == 0)
		im->o->progress(im->out->samples);
}

static void take_sample(struct import *im, uint64_t time, const struct import_counter *c,
	const uint8_t *record, size_t size)
{
	const struct perf_event_attr *a = attr_of(im, c);
	struct perf_sample s;
	struct sample sample;
	uint64_t ask;

	if (!perf_sample_parse(a, record, size, &s)) {
		im->out->bad++;
		return;
	}
	if (is_guest(&s)) {
		im->out->guest++;
		return;
	}
	sample = (struct sample){.pc = s.ip,
		.time = time,
		.pid = s.pid,
		.tid = s.tid,
		.cpu = s.cpu,
		.cgroup = (uint32_t)s.cgroup,
		.count = 1,
		.event = (uint8_t)c->event,
		.kernel = (s.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL,
		.where = WHERE_COPIED};
	count_sample(im, &im->events.p[c->event], &s);
	attribution_sample(im->attribution, &sample, &ask);
	take_path(im, a, &s, &sample);
	if (!has_call_stack(a, &s))
		take_branches(im, a, &s, &sample);
}

void import_record(struct import *im, uint64_t time, const uint8_t *record, size_t size)
{
	struct cursor c = cursor_over(record, size);
	uint32_t type = cursor_u32(&c);
	struct import_counter *counter = import_counter(im, record, size);

	if (type == PERF_RECORD_SAMPLE && (!counter || counter->event >= im->events.n))
		im->out->foreign++;
	else if (type == PERF_RECORD_SAMPLE)
		take_sample(im, time, counter, record, size);
	else if (counter)
		take_other(im, time, counter, type, record, size);
}
