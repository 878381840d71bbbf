#include "collect/attribute_internal.h"

#include "base/err.h"
#include "base/io.h"
#include "base/mem.h"
#include "collect/burst_plugins.h"
#include "collect/cgroup.h"
#include "collect/flush.h"
#include "collect/image_cache.h"
#include "collect/only.h"
#include "collect/process.h"
#include "collect/record.h"
#include "collect/sampler.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

/* A process still runs a little in the kernel after its exit was recorded. */
#define EXIT_TAIL_NS 200000000ull

/* Drains between two looks for processes whose exit nobody recorded. */
#define DRAINS_A_SWEEP 16

int attribution_create(const struct attribution_options *o, struct attribution **out, struct err *e)
{
	struct attribution *a;

	if (o->nevents > 1u << (32 - SUM_EVENT_SHIFT))
		return err_set(e, -EINVAL, "%zu events: at most %u can be sampled at once",
			o->nevents, 1u << (32 - SUM_EVENT_SHIFT));
	a = xcalloc(1, sizeof *a);
	a->nevents = o->nevents;
	a->counts = xcalloc(o->nevents, sizeof *a->counts);
	a->cgroups = cgroups_create(o->recorded ? "" : NULL);
	a->processes = process_table_create(a->cgroups, o->recorded);
	a->images = o->recorded ? image_cache_create_recorded(o->recorded)
				: image_cache_create("", o->kernel);
	sums_init(&a->sums, o->per_process);
	bursts_init(&a->bursts);
	straights_init(&a->straights);
	anchor_pool_init(&a->anchors, io_clock_ns(CLOCK_MONOTONIC));
	progress_init(&a->progress);
	walk_pool_init(&a->walks, io_clock_ns(CLOCK_MONOTONIC));
	excursion_pool_init(&a->excursions, io_clock_ns(CLOCK_MONOTONIC));
	a->plugins = burst_plugins_create(o->plugins, o->nplugins);
	a->only = only_create(o->only, o->nonly, a->images, a->processes);
	if (o->contexts)
		a->contexts = contexts_create(a->images, a->processes, o->contexts);
	a->clock_offset =
		o->recorded ? o->clock_offset
			    : (int64_t)(io_clock_ns(CLOCK_REALTIME) - io_clock_ns(CLOCK_MONOTONIC));
	*out = a;
	return 0;
}

void attribution_destroy(struct attribution *a)
{
	if (!a)
		return;
	sums_deinit(&a->sums);
	bursts_deinit(&a->bursts);
	straights_deinit(&a->straights);
	anchor_pool_deinit(&a->anchors);
	walk_pool_deinit(&a->walks);
	excursion_pool_deinit(&a->excursions);
	progress_deinit(&a->progress);
	burst_plugins_destroy(a->plugins);
	only_destroy(a->only);
	contexts_destroy(a->contexts);
	image_cache_destroy(a->images);
	process_table_destroy(a->processes);
	cgroups_destroy(a->cgroups);
	free(a->counts);
	free(a);
}

void attribution_scan(struct attribution *a, const pid_t *pids, size_t n)
{
	if (!pids)
		process_table_scan(a->processes, 0);
	for (size_t i = 0; pids && i < n; i++)
		process_table_scan(a->processes, pids[i]);
}

void attribution_record(struct attribution *a, const struct record *r)
{
	uint32_t file = process_table_record(a->processes, r);

	/* A file nobody named before: now is the best time to find it. */
	if (file != FILE_ANON)
		image_cache_of_file(a->images, a->processes, file);
	else if (r->kind == RECORD_MMAP && !r->mmap.kernel &&
		 mapped_kind_of(r->mmap.path, &r->mmap.build_id) == MAPPED_ANON)
		image_cache_expect_memory(a->images, process_at(a->processes, r->pid, r->time));
}

uint32_t attribution_place(
	struct attribution *a, struct process *p, uint64_t pc, uint64_t time, uint64_t *offset)
{
	const struct mapping *m = process_mapping(a->processes, p, pc, time);

	*offset = pc;
	if (!m)
		return IMAGE_NUMBER_UNKNOWN;
	if (m->file == FILE_ANON)
		return image_cache_of_memory(a->images, p, pc);
	*offset = pc - m->start + m->offset;
	return image_cache_of_file(a->images, a->processes, m->file);
}

static void name_row(
	struct attribution *a, struct process *p, const struct sample *s, struct sum_total *row)
{
	struct strtab *strings = &a->sums.strings;

	row->thread = strtab_add(strings, process_thread_name(a->processes, p, s->tid));
	row->cgroup = strtab_add(strings, process_cgroup(a->processes, p, s->cgroup));
}

enum context_wish attribution_sample(struct attribution *a, const struct sample *s, uint64_t *ask)
{
	struct process *p = process_at(a->processes, s->pid, s->time);
	struct sum_sample sum = {.cgroup_id = s->cgroup,
		.cpu = s->cpu,
		.tid = s->tid,
		.event = s->event,
		.count = s->count};
	struct event_counts *counts = &a->counts[s->event];
	struct sum_total *row;
	bool fresh;

	if (s->kernel)
		sum.image = image_cache_of_kernel(a->images, s->pc, &sum.offset);
	else
		sum.image = attribution_place(a, p, s->pc, s->time, &sum.offset);
	sum.who = sums_who(&a->sums, p);
	row = sums_add(&a->sums, &sum, &fresh);
	if (row && fresh)
		name_row(a, p, s, row);
	if (!row)
		counts->refused += s->count;
	else if (sum.image == IMAGE_NUMBER_UNKNOWN)
		counts->unknown += s->count;
	else
		counts->attributed += s->count;
	return row && a->contexts ? attribution_context(a, p, s, &sum, ask) : CONTEXT_WISH_NOTHING;
}

/* ---- from time to time ---- */

void attribution_drained(struct attribution *a, uint64_t time)
{
	if (++a->drains % DRAINS_A_SWEEP == 0)
		process_table_sweep(a->processes, time);
	sums_fold(&a->sums, a->processes);
	process_table_reap(a->processes, time > EXIT_TAIL_NS ? time - EXIT_TAIL_NS : 0);
	image_cache_turn(a->images);
}

bool attribution_kernel_hidden(const struct attribution *a)
{
	return image_cache_kernel_hidden(a->images);
}

void attribution_finish(struct attribution *a)
{
	if (a->contexts)
		contexts_finish(a->contexts);
}

int attribution_flush(struct attribution *a, struct store *s, int64_t epoch, const int64_t *events,
	int64_t t0, int64_t t1, struct err *e)
{
	const struct flush f = {.sums = &a->sums,
		.bursts = &a->bursts,
		.anchors = &a->anchors,
		.progress = &a->progress,
		.walks = &a->walks,
		.excursions = &a->excursions,
		.contexts = a->contexts,
		.images = a->images,
		.processes = a->processes,
		.clock_offset = a->clock_offset,
		.store = s,
		.epoch = epoch,
		.events = events,
		.t0 = t0,
		.t1 = t1};

	straights_settle(&a->straights, a->images, a->processes, &a->bursts);
	return flush_write(&f, e);
}

void attribution_flushed(struct attribution *a)
{
	sums_clear(&a->sums);
	bursts_clear(&a->bursts);
	a->pairs_kept += a->anchors.written;
	anchor_pool_clear(&a->anchors);
	walk_pool_clear(&a->walks);
	excursion_pool_clear(&a->excursions);
	progress_clear(&a->progress);
	if (a->contexts)
		contexts_flushed(a->contexts);
	image_cache_flushed(a->images, a->processes);
	only_flushed(a->only);
	for (size_t i = 0; i < a->nevents; i++)
		a->counts[i] = (struct event_counts){0};
}

void attribution_counts(
	const struct attribution *a, size_t event, uint64_t *attributed, uint64_t *unknown)
{
	*attributed = a->counts[event].attributed;
	*unknown = a->counts[event].unknown;
}

uint64_t attribution_refused(const struct attribution *a, size_t event)
{
	return a->counts[event].refused;
}

void attribution_absent(const struct attribution *a, attribution_absent_fn *fn, void *arg)
{
	image_cache_absent(a->images, fn, arg);
}

bool attribution_full(const struct attribution *a)
{
	return sums_full(&a->sums) || (a->contexts && contexts_full(a->contexts));
}

size_t attribution_memory(const struct attribution *a)
{
	return sizeof *a + cgroups_memory(a->cgroups) + process_table_memory(a->processes) +
	       image_cache_memory(a->images) + sums_memory(&a->sums) + bursts_memory(&a->bursts) +
	       anchor_pool_memory(&a->anchors) + walk_pool_memory(&a->walks) +
	       excursion_pool_memory(&a->excursions) + progress_memory(&a->progress);
}
