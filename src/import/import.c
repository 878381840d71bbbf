#include "import/import.h"

#include "base/err.h"
#include "base/io.h"
#include "base/mem.h"
#include "collect/attribute.h"
#include "collect/event.h"
#include "collect/recorded.h"
#include "import/import_internal.h"
#include "store/store.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define QUEUE_MOST ((size_t)256 << 20) /* bytes that wait for their time */
#define STRETCH_NS 1000000000ull       /* between flushes, of the recording's time */
#define STRETCHES  100                 /* of a long one */
#define STEP_NS    4096                /* from one record to the next, where they tell no time */

/* ---- flushes ---- */

static int put_events(struct import *im, struct err *e)
{
	vec_each (ev, &im->events) {
		struct store_event row = {.epoch = im->epoch,
			.name = ev->name,
			.unit = ev->is_clock ? "ns" : "events",
			.period = ev->samples ? ev->periods / (double)ev->samples : 0,
			.rate = ev->rate,
			.skid = ev->skid.instructions,
			.skid_share = ev->skid.share,
			.cycles_per_ns = ev->skid.cycles_per_ns};
		int r = store_event(im->store, &row, e);

		if (r < 0)
			return r;
		ev->id = row.id;
	}
	return 0;
}

static int put_accounts(struct import *im, int64_t t0, int64_t t1, struct err *e)
{
	for (size_t i = 0; i < im->events.n; i++) {
		struct import_event *ev = &im->events.p[i];
		struct store_account a = {.scale = 1,
			.lost = import_lost(im, ev),
			.throttled = (uint64_t)llround(ev->throttled)};
		int r;

		attribution_counts(im->attribution, i, &a.attributed, &a.unknown);
		a.lost += attribution_refused(im->attribution, i);
		a.expected = (double)(a.attributed + a.unknown + a.lost + a.throttled);
		r = store_account_add(im->store, ev->id, t0, t1, &a, e);
		if (r < 0)
			return r;
		im->out->unknown += a.unknown;
		im->out->lost += a.lost;
		im->out->throttled += a.throttled;
		ev->lost_records = ev->lost_samples = 0;
		ev->throttled = 0;
	}
	return 0;
}

static void note_absent(void *arg, const char *path, const struct image_id *id)
{
	struct import_result *out = arg;
	char hex[IMAGE_ID_TEXT];

	image_id_text(id, hex);
	vec_each (a, &out->absent)
		if (!strcmp(a->path, path) && !strcmp(a->id, hex))
			return;
	*vec_add(&out->absent) = (struct import_absent){xstrdup(path), xstrdup(hex)};
}

static int64_t wall_us(const struct import *im, uint64_t time)
{
	return ((int64_t)time + im->clock_offset) / 1000;
}

int import_flush(struct import *im, struct err *e)
{
	int64_t t0 = im->flushed_until, t1 = wall_us(im, im->last) + 1;
	int64_t *ids;
	int r;

	if (t1 <= t0)
		t1 = t0 + 1;
	r = put_events(im, e);
	if (r < 0)
		return r;
	ids = xcalloc(im->events.n, sizeof *ids);
	for (size_t i = 0; i < im->events.n; i++)
		ids[i] = im->events.p[i].id;
	attribution_drained(im->attribution, im->last);
	attribution_finish(im->attribution);
	r = attribution_flush(im->attribution, im->store, im->epoch, ids, t0, t1, e);
	free(ids);
	if (r == 0)
		r = put_accounts(im, t0, t1, e);
	if (r < 0)
		return r;
	attribution_absent(im->attribution, note_absent, im->out);
	attribution_flushed(im->attribution);
	im->flushed_until = t1;
	im->first = im->last;
	return 0;
}

/* ---- in the order of time ---- */

static void deliver(void *arg, uint64_t time, const uint8_t *record, size_t size)
{
	struct import *im = arg;

	if (im->failed)
		return;
	if (time && (time - im->first >= im->stretch || attribution_full(im->attribution))) {
		im->failed = import_flush(im, im->e);
		if (im->failed)
			return;
	}
	if (time > im->last)
		im->last = time;
	import_record(im, time, record, size);
}

/* Half of it goes where a file has no rounds, or they are that long: later records may then come
 * too late, which only matters where a mapping is one of them. */
static void ease(struct import *im)
{
	if (im->attribution && im->queue.bytes.n > QUEUE_MOST)
		record_queue_take(
			&im->queue, im->latest - (im->latest - im->complete) / 2, deliver, im);
}

/* All buffers were read once more: what is older than their last round is all there. */
static int end_round(struct import *im)
{
	if (!im->attribution)
		return 0;
	record_queue_take(&im->queue, im->complete, deliver, im);
	im->complete = im->latest;
	return im->failed;
}

static uint64_t time_of(
	struct import *im, const struct import_counter *c, const uint8_t *record, size_t size)
{
	const struct perf_event_attr *a = &im->layout.events[c->attr].attr;
	struct perf_trailer trailer = {0};
	struct perf_sample sample;
	uint64_t time = 0;

	if (!im->timed)
		return im->sequence += STEP_NS;
	if (record[0] != PERF_RECORD_SAMPLE)
		time = perf_trailer_parse(a, record, size, &trailer) ? trailer.time : 0;
	else if (perf_sample_parse(a, record, size, &sample))
		time = sample.time;
	return time > PERF_TIME_MOST ? 0 : time;
}

/* ---- beginning and end ---- */

static void deinit(struct import *im)
{
	vec_each (ev, &im->events)
		free(ev->name);
	vec_deinit(&im->events);
	vec_deinit(&im->event_of);
	hmap_deinit(&im->counters);
	record_queue_deinit(&im->queue);
	attribution_destroy(im->attribution);
	recorded_destroy(im->recorded);
	perf_file_close(im->file);
}

/* The last time in a stream that was kept as a file: only reading it all tells. */
static uint64_t last_of_stream(const struct import *im)
{
	struct import other = {.o = im->o, .e = im->e};
	const uint8_t *record;
	uint64_t last = 0;
	size_t size;

	if (perf_file_open(im->o->path, &other.file, NULL) < 0)
		return 0;
	hmap_init(&other.counters, sizeof(struct import_counter), sizeof(uint64_t));
	while (perf_file_next(other.file, &record, &size, NULL) > 0) {
		const struct import_counter *c = NULL;
		uint64_t time;

		if (!other.begun && import_begin_events(&other) < 0)
			break;
		other.begun = true;
		if (record[0] == PERF_RECORD_SAMPLE)
			c = import_counter(&other, record, size);
		time = c ? time_of(&other, c, record, size) : 0;
		if (time > last)
			last = time;
	}
	deinit(&other);
	return last;
}

/*
 * Records are timed by a clock of the kernel that begins with the machine. What time it was on the
 * wall is rarely written down; but a recording ends when its file was last written.
 */
static void find_clock(struct import *im, uint64_t first)
{
	const struct perf_facts *facts = perf_file_facts(im->file);
	int64_t ended = facts->written ? facts->written : (int64_t)io_clock_ns(CLOCK_REALTIME);
	uint64_t last;

	if (facts->wall_ns) {
		im->clock_offset = (int64_t)(facts->wall_ns - facts->clock_time);
		return;
	}
	last = facts->last;
	if (!last && facts->written && strcmp(im->o->path, "-"))
		last = last_of_stream(im);
	im->clock_offset = ended - (int64_t)(last > first ? last : first);
}

static int begin_epoch(struct import *im)
{
	const struct perf_facts *facts = perf_file_facts(im->file);
	const char *label = im->o->label ? im->o->label : facts->command;
	int r = store_host(im->store,
		&(struct store_host){.name = facts->host ? facts->host : "unknown",
			.machine_id = "",
			.cpu = facts->cpu ? facts->cpu : "unknown",
			.kernel = facts->release ? facts->release : "unknown",
			.cpus = facts->cpus},
		&im->host, im->e);

	im->flushed_until = wall_us(im, im->first);
	if (r == 0)
		r = store_epoch_start(im->store, im->host, im->flushed_until, label ? label : "",
			&im->epoch, im->e);
	return r;
}

static int check_machine(const struct import *im)
{
	const struct perf_facts *facts = perf_file_facts(im->file);

	if (!facts->machine || !strcmp(facts->machine, "x86_64"))
		return 0;
	return err_set(im->e, -EINVAL, "%s: recorded on %s; culprit explains x86-64 only",
		im->o->path, facts->machine);
}

static enum contexts_how wanted_contexts(const struct import *im)
{
	for (size_t i = 0; i < im->layout.n; i++)
		if (im->layout.events[i].attr.sample_type & PERF_SAMPLE_CALLCHAIN)
			return CONTEXTS_CHAIN;
	return CONTEXTS_NONE;
}

/* Processes are kept apart by pid unless whole CPUs were sampled, whose number perf then tells. */
static bool is_by_process(const struct import *im)
{
	for (size_t i = 0; i < im->layout.n; i++)
		if (im->layout.events[i].attr.enable_on_exec ||
			!(im->layout.events[i].attr.sample_type & PERF_SAMPLE_CPU))
			return true;
	return false;
}

/* Calibrated for the kernel that runs since then: what it knows of an event is true of this one. */
static void find_skids(struct import *im)
{
	struct event event;

	vec_each (ev, &im->events)
		if (recorded_here(im->recorded) && event_parse(ev->name, &event, NULL) == 0)
			calibrate_skid_known(&event, &ev->skid);
}

/* With the first time that is known: it tells when all of it was. */
static int begin(struct import *im, uint64_t time)
{
	const struct perf_facts *facts = perf_file_facts(im->file);
	struct attribution_options ao = {0};
	int r = check_machine(im);

	if (r < 0)
		return r;
	im->first = im->last = facts->first ? facts->first : time;
	im->stretch = STRETCH_NS;
	if (facts->last > facts->first && (facts->last - facts->first) / STRETCHES > STRETCH_NS)
		im->stretch = (facts->last - facts->first) / STRETCHES;
	find_clock(im, im->first);
	im->recorded = recorded_create(&(struct recorded_options){.began = im->first,
		.clock_offset = im->clock_offset,
		.host = facts->host,
		.release = facts->release});
	find_skids(im);
	ao = (struct attribution_options){.nevents = im->events.n,
		.per_process = is_by_process(im),
		.contexts = wanted_contexts(im),
		.recorded = im->recorded,
		.clock_offset = im->clock_offset};
	r = attribution_create(&ao, &im->attribution, im->e);
	if (r == 0)
		r = begin_epoch(im);
	if (r == 0)
		record_queue_take(&im->queue, 0, deliver, im);
	return r < 0 ? r : im->failed;
}

/* What perf itself has told of before has no time, and comes first. */
static int take_record(struct import *im, const uint8_t *record, size_t size)
{
	const struct import_counter *c = import_counter(im, record, size);
	uint64_t time = c ? time_of(im, c, record, size) : 0;

	if (!im->attribution && (time || perf_file_facts(im->file)->first)) {
		int r = begin(im, time);

		if (r < 0)
			return r;
	}
	if (im->attribution && (!time || !im->timed)) {
		deliver(im, time, record, size);
		return im->failed;
	}
	if (time > im->latest)
		im->latest = time;
	record_queue_put(&im->queue, time, record, size);
	ease(im);
	return im->failed;
}

static int take_all(struct import *im)
{
	const uint8_t *record;
	size_t size;
	int r;

	while ((r = perf_file_next(im->file, &record, &size, im->e)) > 0) {
		r = im->begun ? 0 : import_begin_events(im);
		im->begun = true;
		if (r == 0)
			r = record[0] == PERF_USER_FINISHED_ROUND ? end_round(im)
								  : take_record(im, record, size);
		if (r < 0)
			return r;
	}
	if (r == 0 && !im->begun)
		r = err_set(im->e, -EBADMSG, "%s: there is no record in it; record it again",
			im->o->path);
	if (r == 0 && !im->attribution)
		r = begin(im, 0);
	if (r < 0)
		return r;
	record_queue_take(&im->queue, UINT64_MAX, deliver, im);
	return im->failed;
}

static int import_all(struct import *im)
{
	int r = take_all(im);

	if (r == 0 && !im->out->samples && !im->out->foreign && !im->out->guest)
		r = err_set(im->e, -EINVAL, "%s: there is no sample in it; record for longer",
			im->o->path);
	if (r == 0)
		r = import_flush(im, im->e);
	if (r == 0)
		r = store_epoch_end(im->store, im->epoch, im->flushed_until, im->e);
	return r;
}

int import_perf(
	struct store *s, const struct import_options *o, struct import_result *out, struct err *e)
{
	struct import im = {.store = s, .o = o, .out = out, .e = e};
	int r;

	*out = (struct import_result){0};
	hmap_init(&im.counters, sizeof(struct import_counter), sizeof(uint64_t));
	r = perf_file_open(o->path, &im.file, e);
	if (r == 0)
		r = store_begin(s, e);
	if (r == 0) {
		r = import_all(&im);
		if (r == 0)
			r = store_commit(s, e);
		if (r < 0)
			store_rollback(s);
	}
	if (r == 0) {
		out->events = im.events.n;
		out->aux = perf_file_aux_bytes(im.file);
		out->interrupted = perf_file_facts(im.file)->interrupted;
	}
	deinit(&im);
	if (r < 0)
		import_result_deinit(out);
	return r;
}

void import_result_deinit(struct import_result *r)
{
	vec_each (a, &r->absent) {
		free(a->path);
		free(a->id);
	}
	vec_deinit(&r->absent);
}
