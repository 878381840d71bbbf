#include "collect/attribute.h"

#include "base/err.h"
#include "base/io.h"
#include "base/mem.h"
#include "collect/anchor_pool.h"
#include "collect/attribute_bursts.h"
#include "collect/attribute_sums.h"
#include "collect/burst.h"
#include "collect/burst_plugins.h"
#include "collect/cgroup.h"
#include "collect/contexts.h"
#include "collect/driver.h"
#include "collect/flush.h"
#include "collect/image_cache.h"
#include "collect/only.h"
#include "collect/process.h"
#include "collect/procfs.h"
#include "collect/progress.h"
#include "collect/record.h"
#include "collect/sampler.h"
#include "collect/straight.h"
#include "collect/walk_pool.h"
#include "store/edges.h"
#include "values/capture.h"
#include "values/upcall.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A process still runs a little in the kernel after its exit was recorded. */
#define EXIT_TAIL_NS 200000000ull

/* Drains between two looks for processes whose exit nobody recorded. */
#define DRAINS_A_SWEEP 16

struct event_counts {
	uint64_t attributed, unknown, refused;
};

struct attribution {
	struct cgroups *cgroups;
	struct process_table *processes;
	struct image_cache *images;
	struct sums sums;
	struct bursts bursts;
	struct straights straights;
	uint64_t nbursts, wrong;
	struct anchor_pool anchors;
	uint64_t pairs_seen, pairs_kept;
	struct walk_pool walks;
	struct progress progress;
	struct contexts *contexts; /* NULL: nobody wants call paths */
	struct interp machine;     /* that bursts are run again on */
	struct burst_plugins *plugins;
	struct only *only; /* NULL: values of all that runs */
	struct event_counts *counts;
	size_t nevents;
	int64_t clock_offset;
	uint32_t drains;
};

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

/* The image and offset of a user address. */
static uint32_t place_user(
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

/* ---- contexts ---- */

/* The image that was executed: programs lie below the libraries that they load. */
static uint32_t program_of(struct attribution *a, const struct process *p)
{
	const struct mapping *list;
	size_t n = process_mappings(p, &list);

	for (size_t i = 0; i < n; i++)
		if (list[i].file != FILE_ANON)
			return image_cache_of_file(a->images, a->processes, list[i].file);
	return IMAGE_NUMBER_UNKNOWN;
}

/* Rings do not tell where stacks begin: of its own, a process does while it is there. */
static uint64_t owner_of(struct attribution *a, const struct process *p, bool ring)
{
	uint64_t owner = (uint64_t)p->pid << 32 | p->serial;
	struct procfs_stat stat = {0};

	if (ring && !contexts_knows_stacks(a->contexts, owner)) {
		procfs_stat(p->pid, &stat);
		contexts_main_stack(a->contexts, owner, stat.stack);
	}
	return owner;
}

static void take_callers(struct attribution *a, struct process *p, const struct sample *s,
	struct context_sample *out)
{
	for (unsigned i = 0; i < DRIVER_CALLERS && s->caller[i]; i++) {
		struct context_caller *c = &out->callers[i];

		c->at = (uint32_t)(s->caller[i] >> CALLER_SHIFT);
		c->image = place_user(a, p, CALLER_ADDRESS(s->caller[i]) - 1, s->time, &c->offset);
	}
}

/* Where the sample was: of the kernel's, `image` and `offset` are the kernel's. */
static struct context_sample context_of(struct attribution *a, struct process *p,
	const struct sample *s, uint32_t image, uint64_t offset, uint32_t who)
{
	struct context_sample c = {.image = image,
		.offset = offset,
		.where = WHERE_CONTEXT(s->where),
		.program = program_of(a, p),
		.who = who | (uint32_t)s->event << SUM_EVENT_SHIFT};

	if (s->kernel) {
		c.kernel = image + 1;
		c.kernel_offset = offset;
		c.offset = 0;
		c.image = IMAGE_NUMBER_UNKNOWN;
		if (s->user)
			c.image = place_user(a, p, s->user, s->time, &c.offset);
		else
			c.program = image;
	}
	if (c.where >> WHERE_KIND_SHIFT == WHERE_OTHER) {
		c.sp = s->caller[0];
		c.owner = owner_of(a, p, s->ring);
	} else {
		take_callers(a, p, s, &c);
	}
	return c;
}

/* What was copied comes with its stack. */
static enum context_wish take_context(struct attribution *a, struct process *p,
	const struct sample *s, const struct sum_sample *sum, uint64_t *ask)
{
	uint32_t who = a->sums.by_process ? sum->who : a->sums.who.p[sum->who].name;
	struct context_sample c;

	if (s->where & WHERE_COPIED)
		return CONTEXT_WISH_NOTHING;
	c = context_of(a, p, s, sum->image, sum->offset, who);
	return contexts_sample(a->contexts, &c, s->count, ask);
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
		sum.image = place_user(a, p, s->pc, s->time, &sum.offset);
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
	return row && a->contexts ? take_context(a, p, s, &sum, ask) : CONTEXT_WISH_NOTHING;
}

/* ---- bursts ---- */

/* A burst on its way to where it belongs. */
struct journey {
	struct attribution *a;
	struct process *p;
	uint64_t time;
	uint32_t who;
	const struct shadow_burst *burst;
	struct capture capture;
	uint32_t here; /* the image that its walk is in, while `walks` */
	bool begun, walks;
	bool kept;  /* something of it */
	bool shown; /* plug-ins have begun to look at a piece of it */
};

static uint32_t place(struct journey *j, uint64_t pc, uint64_t *offset)
{
	if ((int64_t)pc < 0)
		return image_cache_of_kernel(j->a->images, pc, offset);
	return place_user(j->a, j->p, pc, j->time, offset);
}

/* What is not asked for goes no further than this. */
static bool is_wanted(struct journey *j, uint32_t image, uint64_t offset)
{
	if (image == IMAGE_NUMBER_UNKNOWN || (j->a->only && !only_keeps(j->a->only, image, offset)))
		return false;
	j->kept = true;
	return true;
}

/* Few bursts are kept as they went, and only those that start in what is wanted. */
static void begin_walk(struct journey *j, uint64_t start)
{
	uint64_t at;

	j->begun = true;
	j->here = place(j, start, &at);
	j->walks = is_wanted(j, j->here, at) && walk_pool_begin(&j->a->walks, j->here, j->who, at);
}

static void end_walk(struct journey *j, uint32_t instructions)
{
	if (j->walks)
		walk_pool_end(&j->a->walks, instructions);
	j->walks = false;
}

/* What goes on elsewhere than the last step led to has passed through what nobody knows. */
static void take_walk_step(
	struct journey *j, uint32_t image, uint64_t at, uint32_t into, uint64_t target)
{
	if (!j->walks)
		return;
	if (image == j->here &&
		walk_pool_step(&j->a->walks, at, into == image ? 0 : into + 1, target))
		j->here = into;
	else
		end_walk(j, 0);
}

static void take_edge(void *arg, uint64_t from, uint64_t to)
{
	struct journey *j = arg;
	uint64_t at, target;
	uint32_t image = place(j, from, &at), into = place(j, to, &target);

	if (into == IMAGE_NUMBER_UNKNOWN || !is_wanted(j, image, at)) {
		end_walk(j, 0);
		return;
	}
	take_walk_step(j, image, at, into, target);
	bursts_edge(&j->a->bursts, bursts_group(&j->a->bursts, image, j->who), at,
		into == image ? 0 : into + 1, target);
}

/* The call site as a context: the same in every address space and every run. */
static uint64_t site_context(struct journey *j, uint32_t callee, uint64_t site)
{
	uint64_t at;
	uint32_t image = place(j, site, &at);
	const struct cached_image *img;

	at = VALUE_CONTEXT_OFFSET(at);
	if (image == callee)
		return VALUE_CONTEXT_SITE | at;
	img = image_cache_use(j->a->images, image);
	return VALUE_CONTEXT_FAR | VALUE_CONTEXT_KEY(img->key) | at;
}

static void take_value(void *arg, uint64_t pc, unsigned kind, uint64_t site, uint64_t value)
{
	struct journey *j = arg;
	struct value_key key = {.kind = (uint16_t)kind};
	uint32_t image = place(j, pc, &key.offset);
	struct value_profile *values;

	if (!is_wanted(j, image, key.offset))
		return;
	values = bursts_values(bursts_group(&j->a->bursts, image, j->who));
	value_profile_add(values, &key, value, 1);
	if (!site)
		return;
	key.context = site_context(j, image, site);
	value_profile_add(values, &key, value, 1);
}

static void take_made(void *arg, unsigned kind, uint64_t pc, uint64_t value, uint64_t context)
{
	take_value(arg, pc, kind, context, value);
}

static void end_showing(struct journey *j)
{
	if (j->shown)
		burst_plugins_end(j->a->plugins, j->burst, take_made, j);
	j->shown = false;
}

/* Plug-ins see what is wanted only, each stretch as a burst of its own. */
static void show_step(struct journey *j, const struct interp *m)
{
	uint64_t offset;

	if (j->a->only) {
		uint32_t image = place(j, m->effect.ip, &offset);

		if (!is_wanted(j, image, offset)) {
			end_showing(j);
			return;
		}
	}
	if (!j->shown)
		burst_plugins_begin(j->a->plugins);
	j->shown = true;
	burst_plugins_step(j->a->plugins, m);
}

static void take_step(void *arg, const struct interp *m)
{
	struct journey *j = arg;

	if (!j->begun)
		begin_walk(j, m->effect.ip);
	if (m->effect.has & (INTERP_BRANCH | INTERP_INDIRECT))
		take_edge(arg, m->effect.ip, m->effect.next);
	capture_step(&j->capture, m, take_value, arg);
	if (j->a->plugins)
		show_step(j, m);
}

static struct journey journey_of(struct attribution *a, pid_t pid, uint64_t time)
{
	struct journey j = {.a = a, .time = time, .p = process_at(a->processes, pid, time)};
	uint32_t who = sums_who(&a->sums, j.p);

	j.who = a->sums.by_process ? who : a->sums.who.p[who].name;
	return j;
}

/* Words that the burst moved, and what was read of those that are watched. */
static void take_progress(struct journey *j, const uint64_t *words)
{
	const struct shadow_burst *b = j->burst;
	const struct progress_thread t = {
		.id = SHADOW_PROCESS(b->tid, b->generation), .who = j->who};
	const struct shadow_reading *reading = burst_reading(b, words);
	const struct shadow_moved *moved;
	size_t n = burst_moved(b, words, &moved);
	struct progress_place at = {0};

	if (reading) {
		at.image = place(j, reading->pc, &at.offset);
		progress_read(&j->a->progress, &t, reading, b->watched, b->time, &at);
	}
	for (size_t i = 0; i < n; i++) {
		at.image = place(j, moved[i].by, &at.offset);
		if (is_wanted(j, at.image, at.offset))
			progress_moved(&j->a->progress, &t, &moved[i], &at);
	}
}

/* A run of a process never leaves its mappings, nor the kernel. */
static bool is_concerned(struct attribution *a, const struct journey *j)
{
	if (!a->only || j->kept)
		return true;
	return j->burst->kernel ? only_concerns_kernel(a->only)
				: only_concerns_process(a->only, j->p);
}

bool attribution_burst(struct attribution *a, const struct shadow_burst *b, const uint64_t *words)
{
	struct journey j = journey_of(a, (pid_t)b->pid, b->time);

	j.burst = b;
	a->nbursts++;
	if (!b->inputs) {
		begin_walk(&j, b->start);
		burst_edges(b, words, take_edge, &j);
		end_walk(&j, b->edges < SHADOW_EDGES ? b->steps : 0);
		take_progress(&j, words);
		return is_concerned(a, &j);
	}
	capture_begin(&j.capture, words[INTERP_RCX]);
	if (!burst_replay(b, words, &a->machine, take_step, &j)) {
		a->wrong++;
		if (j.walks)
			walk_pool_void(&a->walks);
		return is_concerned(a, &j);
	}
	end_showing(&j);
	end_walk(&j, b->steps);
	return is_concerned(a, &j);
}

bool attribution_watch(
	struct attribution *a, const struct shadow_burst *b, struct shadow_watch *out)
{
	return progress_orders(&a->progress, SHADOW_PROCESS(b->tid, b->generation), out);
}

void attribution_tuple(struct attribution *a, const struct upcall_tuple *t)
{
	struct journey j = journey_of(a, (pid_t)t->pid, t->time);

	if (t->kind == UPCALL_EDGE)
		take_edge(&j, t->pc, t->value);
	else
		take_value(&j, t->pc, t->kind, t->context, t->value);
}

void attribution_branches(struct attribution *a, const struct sample *s,
	const struct attribution_branch *list, size_t n, bool all)
{
	struct journey j = journey_of(a, s->pid, s->time);
	uint64_t start, end;

	if (straights_full(&a->straights))
		straights_settle(&a->straights, a->images, a->processes, &a->bursts);
	for (size_t i = 0; i < n; i++) {
		uint32_t image = place(&j, list[i].from, &end);

		take_edge(&j, list[i].from, list[i].to);
		if (all && i + 1 < n && image != IMAGE_NUMBER_UNKNOWN &&
			place(&j, list[i + 1].to, &start) == image)
			straights_add(&a->straights, image, j.who, start, end);
	}
}

void attribution_bursts(const struct attribution *a, uint64_t *bursts, uint64_t *wrong)
{
	*bursts = a->nbursts;
	*wrong = a->wrong;
}

bool attribution_only(const struct attribution *a, size_t n, struct only_result *out)
{
	if (!a->only)
		return false;
	only_result(a->only, n, out);
	return true;
}

/* ---- pairs of samples ---- */

/*
 * What no loop does: it takes a nanosecond to go this far at least. Such a difference is of data
 * or of pointers that have nothing to do with each other, and nobody's business.
 */
#define FASTEST_SHIFT 18

static struct anchor anchor_of(const struct driver_pair *p)
{
	struct anchor a = {.between = (int64_t)p->between < 0 ? 0 : p->between,
		.kernel = p->kernel,
		.switched = p->switched,
		.changed = p->changed};
	uint64_t most = a.between < UINT64_MAX >> (FASTEST_SHIFT + 1) ? a.between << FASTEST_SHIFT
								      : INT64_MAX;

	for (unsigned i = 0; i < ANCHOR_REGISTERS; i++) {
		uint64_t d = p->difference[i];

		if (!(p->changed >> i & 1) || ((int64_t)d < 0 ? -d : d) > most)
			continue;
		a.known |= (uint16_t)(1 << i);
		a.difference[i] = (int64_t)d;
	}
	return a;
}

void attribution_pair(struct attribution *a, const struct driver_pair *p)
{
	struct journey j = journey_of(a, (pid_t)p->pid, p->time);
	struct anchor anchor = anchor_of(p);
	uint32_t image = place(&j, p->pc, &anchor.pc);

	a->pairs_seen++;
	if (is_wanted(&j, image, anchor.pc) && place(&j, p->last, &anchor.last) == image)
		anchor_pool_add(&a->anchors, image, j.who, &anchor);
}

/* ---- stacks ---- */

static uint32_t place_frame(void *arg, uint64_t pc, uint64_t *offset)
{
	return place(arg, pc, offset);
}

uint64_t attribution_stack(
	struct attribution *a, const struct driver_stack *s, const uint8_t *bytes)
{
	struct journey j = journey_of(a, (pid_t)s->pid, s->time);
	struct sample sample = {.time = s->time,
		.ring = !s->base,
		.event = s->tag & DRIVER_TAG_EVENT,
		.kernel = s->tag & DRIVER_TAG_KERNEL,
		.where = s->context.where,
		.user = s->context.user};
	uint64_t offset;
	uint32_t image = place(&j, s->pc, &offset);

	if (!a->contexts)
		return 0;
	memcpy(sample.caller, s->context.caller, sizeof sample.caller);
	return contexts_stack(a->contexts,
		&(struct context_stack){.sample = context_of(a, j.p, &sample, image, offset, j.who),
			.stack = s,
			.bytes = bytes,
			.place = place_frame,
			.arg = &j});
}

void attribution_path(
	struct attribution *a, const struct sample *s, const struct attribution_path *path)
{
	struct journey j = journey_of(a, s->pid, s->time);
	uint32_t program = program_of(a, j.p);
	uint64_t offset;

	if (!a->contexts)
		return;
	/* Threads of the kernel have no program. */
	if (program == IMAGE_NUMBER_UNKNOWN && s->kernel)
		program = place(&j, s->pc, &offset);
	contexts_path(a->contexts, &(struct context_path){.program = program,
					   .who = j.who | (uint32_t)s->event << SUM_EVENT_SHIFT,
					   .pcs = path->pcs,
					   .n = path->n,
					   .stack = path->stack,
					   .place = place_frame,
					   .arg = &j});
}

size_t attribution_steps(const struct attribution *a, const struct stack_step **out)
{
	return a->contexts ? contexts_steps(a->contexts, out) : 0;
}

bool attribution_contexts(const struct attribution *a, struct contexts_statistics *out)
{
	if (a->contexts)
		contexts_statistics(a->contexts, out);
	return a->contexts;
}

int attribution_load(struct attribution *a, struct store *s, struct err *e)
{
	return a->contexts ? contexts_load(a->contexts, s, e) : 0;
}

void attribution_anchors(const struct attribution *a, uint64_t *seen, uint64_t *kept)
{
	*seen = a->pairs_seen;
	*kept = a->pairs_kept;
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

int attribution_flush(struct attribution *a, struct store *s, int64_t epoch, const int64_t *events,
	int64_t t0, int64_t t1, struct err *e)
{
	const struct flush f = {.sums = &a->sums,
		.bursts = &a->bursts,
		.anchors = &a->anchors,
		.progress = &a->progress,
		.walks = &a->walks,
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
	       progress_memory(&a->progress);
}
