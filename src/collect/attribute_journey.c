#include "collect/attribute_internal.h"

#include "base/mem.h"
#include "collect/burst.h"
#include "collect/burst_plugins.h"
#include "collect/driver.h"
#include "collect/image_cache.h"
#include "collect/only.h"
#include "collect/process.h"
#include "collect/sampler.h"
#include "collect/scout.h"
#include "store/edges.h"
#include "values/upcall.h"

uint32_t journey_place(struct journey *j, uint64_t pc, uint64_t *offset)
{
	if ((int64_t)pc < 0)
		return image_cache_of_kernel(j->a->images, pc, offset);
	return attribution_place(j->a, j->p, pc, j->time, offset);
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
	j->here = journey_place(j, start, &at);
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
	uint32_t image = journey_place(j, from, &at), into = journey_place(j, to, &target);

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
	uint32_t image = journey_place(j, site, &at);
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
	uint32_t image = journey_place(j, pc, &key.offset);
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
		uint32_t image = journey_place(j, m->effect.ip, &offset);

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

struct journey journey_of(struct attribution *a, pid_t pid, uint64_t time)
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

	if (reading)
		progress_read(&j->a->progress, &t, reading, b->watched, b->time);
	for (size_t i = 0; i < n; i++) {
		at.image = journey_place(j, moved[i].by, &at.offset);
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

_Static_assert(SCOUT_STRETCHES == EXCURSION_STRETCHES, "stretches are kept as they come");

static void take_transfer(struct journey *j, const struct excursion_edge *edge, uint32_t stretch,
	struct pooled_excursion *x)
{
	struct pooled_transfer t = {.stretch = stretch, .count = edge->count};
	uint32_t into = journey_place(j, edge->to, &t.to);

	t.image = journey_place(j, edge->from, &t.from);
	t.target = into == t.image ? 0 : into + 1;
	if (into != IMAGE_NUMBER_UNKNOWN && is_wanted(j, t.image, t.from))
		x->transfers[x->ntransfers++] = t;
}

static void take_stay(struct journey *j, const struct excursion_stay *s)
{
	struct stay stay = {.is_code = s->is_code, .kept = s->kept, .gone = s->gone};
	uint32_t image = journey_place(j, s->at, &stay.offset);

	if (is_wanted(j, image, stay.offset))
		bursts_stay(&j->a->bursts, bursts_group(&j->a->bursts, image, j->who), &stay);
}

void attribution_excursion(struct attribution *a, const struct scout_window *w,
	const struct excursion_edge *edges, const struct excursion_stay *stays)
{
	struct journey j = journey_of(a, w->pid, w->time);
	struct pooled_excursion x = {.who = j.who, .number = w->time, .weight = w->stands_ns};
	size_t n = 0, k = 0;

	for (uint32_t i = 0; i < SCOUT_STRETCHES; i++) {
		x.instructions[i] = w->instructions[i];
		n += w->nedges[i];
	}
	x.transfers = xcalloc(n + 1, sizeof *x.transfers);
	for (uint32_t i = 0; i < SCOUT_STRETCHES; i++)
		for (size_t end = k + w->nedges[i]; k < end; k++)
			take_transfer(&j, &edges[k], i, &x);
	excursion_pool_add(&a->excursions, &x);
	for (size_t i = 0; i < w->nstays; i++)
		take_stay(&j, &stays[i]);
}

void attribution_branches(struct attribution *a, const struct sample *s,
	const struct attribution_branch *list, size_t n, bool all)
{
	struct journey j = journey_of(a, s->pid, s->time);
	uint64_t start, end;

	if (straights_full(&a->straights))
		straights_settle(&a->straights, a->images, a->processes, &a->bursts);
	for (size_t i = 0; i < n; i++) {
		uint32_t image = journey_place(&j, list[i].from, &end);

		take_edge(&j, list[i].from, list[i].to);
		if (all && i + 1 < n && image != IMAGE_NUMBER_UNKNOWN &&
			journey_place(&j, list[i + 1].to, &start) == image)
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
	uint32_t image = journey_place(&j, p->pc, &anchor.pc);

	a->pairs_seen++;
	if (is_wanted(&j, image, anchor.pc) && journey_place(&j, p->last, &anchor.last) == image)
		anchor_pool_add(&a->anchors, image, j.who, &anchor);
}

void attribution_anchors(const struct attribution *a, uint64_t *seen, uint64_t *kept)
{
	*seen = a->pairs_seen;
	*kept = a->pairs_kept;
}
