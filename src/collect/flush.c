#include "collect/flush.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/vec.h"
#include "collect/anchor_pool.h"
#include "collect/attribute_bursts.h"
#include "collect/attribute_sums.h"
#include "collect/contexts.h"
#include "collect/excursion_pool.h"
#include "collect/image_cache.h"
#include "collect/progress.h"
#include "collect/walk_pool.h"
#include "image/image.h"
#include "store/anchors.h"
#include "store/contexts.h"
#include "store/edges.h"
#include "store/excursions.h"
#include "store/paces.h"
#include "store/pack.h"
#include "store/stays.h"
#include "store/store.h"
#include "store/walks.h"
#include "values/values.h"
#include "values/values_pack.h"

#include <errno.h>
#include <string.h>

enum {
	/*
	 * A procedure's code is kept once it had a few samples, and one for so many bytes: a
	 * minute of a compiler touches megabytes of code that nobody will ask about.
	 */
	CODE_SAMPLES = 4,
	CODE_DENSITY = 32,
	CODE_MOST = 128 << 10, /* bytes of one procedure */
};

/* The samples of one image, by who (with the event) and offset. */
struct part {
	uint32_t who;
	size_t first, n; /* in the counts */
};

struct image_counts {
	uint32_t image;
	VEC(struct part) parts;
	VEC(struct pc_count) counts;
	struct offsets bursts;                 /* where bursts have shown something */
	const struct called_procedure *called; /* that paths go through */
	size_t ncalled;
};

/* Takes together the groups that begin with the first one's image; returns how many they were. */
static size_t gather(const struct pc_group **groups, size_t n, struct image_counts *out)
{
	size_t i = 0;

	out->image = groups[0]->image;
	out->parts.n = out->counts.n = 0;
	for (; i < n && groups[i]->image == out->image; i++) {
		const struct pc_group *g = groups[i];
		struct part *last = out->parts.n ? &out->parts.p[out->parts.n - 1] : NULL;

		if (!last || last->who != g->who) {
			last = vec_add(&out->parts);
			*last = (struct part){.who = g->who, .first = out->counts.n};
		}
		vec_reserve(&out->counts, out->counts.n + g->n);
		pc_group_list(g, out->counts.p + out->counts.n);
		out->counts.n += g->n;
		last->n += g->n;
	}
	return i;
}

/* ---- procedures ---- */

/* The number in the footprint of the procedure at this address, or -1. */
static ssize_t find_procedure(const struct flush *f, uint32_t image, uint64_t vaddr)
{
	struct cached_image *img = image_cache_use(f->images, image);
	ssize_t found = footprint_find(&img->footprint, vaddr);
	const struct procedure *p;
	struct image *im;

	if (found >= 0)
		return found;
	im = image_cache_functions(f->images, f->processes, image);
	p = im ? image_procedure_at(im, vaddr) : NULL;
	return p ? (ssize_t)footprint_add(&img->footprint, p) : -1;
}

/* Credits the procedures of one image with its samples. */
static void resolve(const struct flush *f, uint32_t image, const struct pc_count *counts, size_t n)
{
	struct cached_image *img = image_cache_use(f->images, image);

	/* One that could not be opened may be within reach by now; its offsets mean nothing else.
	 */
	if (img->kind == IMAGE_ELF && !img->nsegments)
		image_cache_functions(f->images, f->processes, image);
	for (size_t i = 0; i < n; i++) {
		uint64_t vaddr;
		ssize_t found;

		if (!cached_image_address(img, counts[i].offset, &vaddr))
			continue;
		found = find_procedure(f, image, vaddr);
		if (found >= 0)
			img->footprint.procedures.p[found].fresh += counts[i].count;
	}
}

static uint64_t code_size(const struct seen_procedure *p)
{
	struct range only;
	const struct range *ranges = seen_ranges(p, &only);
	uint64_t size = 0;

	for (uint32_t i = 0; i < p->nranges; i++)
		size += ranges[i].size;
	return size;
}

static bool worth_its_code(const struct seen_procedure *p)
{
	uint64_t samples = (uint64_t)p->samples + p->fresh;

	return !p->coded && samples >= CODE_SAMPLES && samples * CODE_DENSITY >= code_size(p);
}

/* Appends the code of a procedure if it should have any now; false leaves it for later. */
static bool read_code(
	const struct flush *f, uint32_t image, const struct seen_procedure *p, struct buf *out)
{
	size_t before = out->n;
	struct range only;
	const struct range *ranges = seen_ranges(p, &only);

	if (code_size(p) > CODE_MOST)
		return true;
	for (uint32_t i = 0; i < p->nranges; i++) {
		int r = image_cache_code(f->images, f->processes, image, &ranges[i], out);

		if (r < 0) {
			out->n = before;
			return r != -EAGAIN;
		}
	}
	return true;
}

/* A procedure that the store is to be told of. */
struct chosen {
	const struct seen_procedure *p;
	struct range only; /* as in seen_ranges */
	size_t code;       /* where its code begins: the bytes move while they come in */
};

static struct store_procedure put_procedure(struct chosen *c, size_t end, const struct buf *code)
{
	return (struct store_procedure){
		.p = {.start = c->p->start,
			.ranges = seen_ranges(c->p, &c->only),
			.nranges = c->p->nranges,
			.source = c->p->source,
			.name = seen_name(c->p)},
		.code = end > c->code ? code->p + c->code : NULL,
		.code_size = end - c->code,
	};
}

/* Hands the store what it does not know yet of the image's procedures. */
static int write_procedures(
	const struct flush *f, uint32_t image, struct cached_image *img, struct err *e)
{
	VEC(struct store_procedure) list = {0};
	VEC(struct chosen) chosen = {0};
	struct buf code = {0};
	int r = 0;

	vec_each (p, &img->footprint.procedures) {
		bool enough = worth_its_code(p);
		size_t at = code.n;

		if (!p->fresh || (p->stored && !enough))
			continue;
		if (enough)
			p->coding = read_code(f, image, p, &code);
		if (p->stored && code.n == at)
			continue;
		p->storing = true;
		*vec_add(&chosen) = (struct chosen){.p = p, .code = at};
	}
	for (size_t i = 0; i < chosen.n; i++)
		*vec_add(&list) = put_procedure(
			&chosen.p[i], i + 1 < chosen.n ? chosen.p[i + 1].code : code.n, &code);
	if (list.n)
		r = store_procedures_add(f->store, img->store_id, list.p, list.n, e);
	vec_deinit(&list);
	vec_deinit(&chosen);
	buf_deinit(&code);
	return r;
}

/* ---- images and profiles ---- */

/* Procedures without samples of their own, which must have a name all the same. */
static void resolve_called(const struct flush *f, const struct image_counts *c)
{
	struct cached_image *img = image_cache_use(f->images, c->image);

	for (size_t i = 0; i < c->ncalled; i++) {
		ssize_t found = find_procedure(f, c->image, c->called[i].vaddr);

		if (found >= 0)
			img->footprint.procedures.p[found].fresh++;
	}
}

static void resolve_all(const struct flush *f, const struct image_counts *c)
{
	resolve_called(f, c);
	resolve(f, c->image, c->counts.p, c->counts.n);
	resolve(f, c->image, c->bursts.list.p, c->bursts.list.n);
}

static int write_image(const struct flush *f, const struct image_counts *c, struct err *e)
{
	struct cached_image *img = image_cache_use(f->images, c->image);
	struct store_image row = {.kind = img->kind, .path = img->path};
	int r;

	resolve_all(f, c);
	row.identity = img->id;
	row.segments = img->segments;
	row.nsegments = img->nsegments;
	r = store_image(f->store, &row, &img->store_id, e);
	if (r < 0)
		return r;
	/* Another row than before: the store has forgotten this image, and we must tell it anew. */
	if (img->stored_id && img->stored_id != img->store_id) {
		footprint_deinit(&img->footprint);
		img->stored_id = 0;
		resolve_all(f, c);
	}
	return write_procedures(f, c->image, img, e);
}

static int64_t wall_time(const struct flush *f, uint64_t monotonic)
{
	return monotonic ? ((int64_t)monotonic + f->clock_offset) / 1000 : 0;
}

/* The store's id of a process or a name, looked up once a flush. */
static int process_id(
	const struct flush *f, int64_t *ids, uint32_t number, int64_t *id, struct err *e)
{
	const struct who *who = &f->sums->who.p[number];
	struct store_process row = {.epoch = f->epoch,
		.pid = who->pid,
		.started = wall_time(f, who->started),
		.comm = who->comm,
		.cgroup = ""};
	int r;

	if (!ids[number]) {
		r = store_process(f->store, &row, &ids[number], e);
		if (r < 0)
			return r;
	}
	*id = ids[number];
	return 0;
}

/* Adds a profile of the image; takes what was packed. */
static int add_profile(const struct flush *f, uint32_t image, uint32_t who, int64_t *ids,
	const struct blob_type *type, struct buf *packed, struct err *e)
{
	struct store_profile row = {.epoch = f->epoch,
		.event = f->events[who >> SUM_EVENT_SHIFT],
		.image = image_cache_use(f->images, image)->store_id,
		.t0 = f->t0,
		.t1 = f->t1,
		.type = type,
		.data = packed->p,
		.size = packed->n};
	int r = process_id(f, ids, who & SUM_WHO_MASK, &row.process, e);

	if (r == 0)
		r = store_profile_add(f->store, &row, e);
	buf_deinit(packed);
	return r;
}

static int write_profile(const struct flush *f, const struct image_counts *c,
	const struct part *part, int64_t *ids, struct err *e)
{
	struct buf packed = {0};

	pack_pcs(c->counts.p + part->first, part->n, &packed);
	return add_profile(f, c->image, part->who, ids, &blob_pc, &packed, e);
}

/* What stands for the image of an edge's target. */
static uint64_t target_key(const struct flush *f, uint32_t target)
{
	const struct cached_image *img;

	if (!target)
		return 0;
	img = image_cache_use(f->images, target - 1);
	return img->key;
}

static int write_edges(
	const struct flush *f, const struct burst_group *g, int64_t *ids, struct err *e)
{
	_cleanup_free_ struct edge *list = xcalloc(g->edges.n + 1, sizeof *list);
	struct buf packed = {0};
	size_t n = 0;

	for (const struct burst_edge *edge = NULL; (edge = hmap_next(&g->edges, edge));)
		list[n++] = (struct edge){.from = edge->from,
			.target = target_key(f, edge->target),
			.to = edge->to,
			.count = edge->count};
	n = edges_settle(list, n);
	edges_pack(list, n, &packed);
	return add_profile(f, g->image, g->who, ids, &blob_edge, &packed, e);
}

static bool in_one_procedure(const struct flush *f, uint32_t image, const struct anchor *a)
{
	const struct cached_image *img = image_cache_use(f->images, image);
	uint64_t at, last;
	ssize_t found;

	if (!cached_image_address(img, a->pc, &at) || !cached_image_address(img, a->last, &last))
		return false;
	found = find_procedure(f, image, at);
	return found >= 0 && find_procedure(f, image, last) == found;
}

static int write_anchors(
	const struct flush *f, const struct burst_group *g, int64_t *ids, struct err *e)
{
	_cleanup_free_ struct anchor *list = NULL;
	const struct pooled_anchor *first;
	size_t all = anchor_pool_find(f->anchors, g->image, g->who, &first), n = 0;
	struct buf packed = {0};

	list = xcalloc(all + 1, sizeof *list);
	for (size_t i = 0; i < all; i++)
		if (in_one_procedure(f, g->image, &first[i].anchor))
			list[n++] = first[i].anchor;
	if (!n)
		return 0;
	f->anchors->written += n;
	anchors_pack(list, n, &packed);
	return add_profile(f, g->image, g->who, ids, &blob_anchor, &packed, e);
}

static int write_paces(
	const struct flush *f, const struct burst_group *g, int64_t *ids, struct err *e)
{
	_cleanup_free_ struct pace *list = NULL;
	const struct progress_pace *first;
	size_t all = progress_find(f->progress, g->image, g->who, &first), n = 0;
	struct buf packed = {0};

	list = xcalloc(all + 1, sizeof *list);
	for (; n < all; n++)
		list[n] = (struct pace){
			first[n].by.offset, first[n].turns, first[n].counted, first[n].seen};
	if (!n)
		return 0;
	paces_pack(list, paces_settle(list, n), &packed);
	return add_profile(f, g->image, g->who, ids, &blob_turns, &packed, e);
}

static size_t count_steps(const struct pooled_walk *list, size_t n)
{
	size_t steps = 0;

	for (size_t i = 0; i < n; i++)
		steps += list[i].nsteps;
	return steps;
}

/* From numbers of images to their keys; returns where the next walk's steps go. */
static struct walk_step *name_images(const struct flush *f, const struct pooled_walk *from,
	struct walk_step *steps, struct walk *out)
{
	struct pooled_step pooled[WALK_STEPS];

	*out = (struct walk){.start = from->start,
		.weight = from->weight,
		.instructions = from->instructions,
		.nsteps = from->nsteps,
		.steps = steps};
	pooled_walk_steps(from, pooled);
	for (uint32_t i = 0; i < from->nsteps; i++)
		*steps++ = (struct walk_step){.from = pooled[i].from,
			.target = target_key(f, pooled[i].target),
			.to = pooled[i].to};
	return steps;
}

static int write_walks(
	const struct flush *f, const struct burst_group *g, int64_t *ids, struct err *e)
{
	_cleanup_free_ struct walk *list = NULL;
	_cleanup_free_ struct walk_step *steps = NULL;
	const struct pooled_walk *first;
	size_t n = walk_pool_find(f->walks, g->image, g->who, &first);
	struct buf packed = {0};
	struct walk_step *at;

	if (!n)
		return 0;
	list = xcalloc(n, sizeof *list);
	steps = at = xcalloc(count_steps(first, n) + 1, sizeof *steps);
	for (size_t i = 0; i < n; i++)
		at = name_images(f, &first[i], at, &list[i]);
	walks_pack(list, walks_settle(list, n), &packed);
	return add_profile(f, g->image, g->who, ids, &blob_walk, &packed, e);
}

/* From numbers of images to their keys. */
static struct edge *name_transfers(
	const struct flush *f, const struct pooled_transfer *from, size_t *n)
{
	struct edge *list = xcalloc(*n + 1, sizeof *list);

	for (size_t i = 0; i < *n; i++)
		list[i] = (struct edge){.from = from[i].from,
			.target = target_key(f, from[i].target),
			.to = from[i].to,
			.count = from[i].count};
	*n = edges_settle(list, *n);
	return list;
}

static int write_excursions(
	const struct flush *f, const struct burst_group *g, int64_t *ids, struct err *e)
{
	VEC(struct excursion_part) list = {0};
	struct buf packed = {0};
	int r = 0;

	vec_each (x, &f->excursions->list) {
		for (uint32_t i = 0; x->who == g->who && i < EXCURSION_STRETCHES; i++) {
			const struct pooled_transfer *first;
			size_t n = pooled_excursion_of(x, g->image, i, &first);

			if (n)
				*vec_add(&list) = (struct excursion_part){
					.number = x->number * EXCURSION_STRETCHES + i,
					.weight = x->weight,
					.instructions = x->instructions[i],
					.edges = name_transfers(f, first, &n),
					.nedges = n};
		}
	}
	if (list.n) {
		excursions_pack(list.p, list.n, &packed);
		r = add_profile(f, g->image, g->who, ids, &blob_excursion, &packed, e);
	}
	vec_each (x, &list)
		free((void *)x->edges);
	vec_deinit(&list);
	return r;
}

static int write_stays(
	const struct flush *f, const struct burst_group *g, int64_t *ids, struct err *e)
{
	_cleanup_free_ struct stay *list = xcalloc(g->stays.n + 1, sizeof *list);
	struct buf packed = {0};
	size_t n = 0;

	for (const struct stay *s = NULL; (s = hmap_next(&g->stays, s));)
		list[n++] = *s;
	if (!n)
		return 0;
	stays_pack(list, stays_settle(list, n), &packed);
	return add_profile(f, g->image, g->who, ids, &blob_stay, &packed, e);
}

static int write_group(
	const struct flush *f, const struct burst_group *g, int64_t *ids, struct err *e)
{
	struct buf packed = {0};
	int r = g->edges.n ? write_edges(f, g, ids, e) : 0;

	if (r == 0)
		r = write_anchors(f, g, ids, e);
	if (r == 0)
		r = write_paces(f, g, ids, e);
	if (r == 0)
		r = write_walks(f, g, ids, e);
	if (r == 0)
		r = write_excursions(f, g, ids, e);
	if (r == 0)
		r = write_stays(f, g, ids, e);
	if (r < 0 || !g->values)
		return r;
	value_profile_pack(g->values, &packed);
	return add_profile(f, g->image, g->who, ids, &blob_value, &packed, e);
}

/* ---- call paths ---- */

static void find_called(const struct flush *f, struct image_counts *c)
{
	size_t i = 0;

	c->called = NULL;
	c->ncalled = 0;
	if (!f->settled)
		return;
	while (i < f->settled->procedures.n && f->settled->procedures.p[i].image < c->image)
		i++;
	c->called = f->settled->procedures.p + i;
	while (i < f->settled->procedures.n && f->settled->procedures.p[i].image == c->image)
		i++, c->ncalled++;
}

/* Images that only paths go through are written too. */
static void announce_called(const struct flush *f)
{
	vec_each (p, &f->settled->procedures)
		bursts_group(f->bursts, p->image, 0);
	vec_each (p, &f->settled->profiles)
		bursts_group(f->bursts, p->program, p->who & SUM_WHO_MASK);
	vec_each (l, &f->settled->lessons)
		bursts_group(f->bursts, l->program, 0);
}

/* What was learned belongs to nobody's process: it is kept with the first who. */
static int write_contexts(const struct flush *f, int64_t *ids, struct err *e)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < f->settled->profiles.n; i++) {
		const struct context_profile *p = &f->settled->profiles.p[i];
		struct buf packed = {0};

		call_tree_pack(p->tree, &packed);
		r = add_profile(f, p->program, p->who, ids, &blob_context, &packed, e);
	}
	for (size_t i = 0; r == 0 && i < f->settled->lessons.n; i++) {
		const struct context_lesson *l = &f->settled->lessons.p[i];
		struct buf packed = {0};

		call_map_pack_fresh(l->map, &packed);
		r = add_profile(f, l->program, 0, ids, &blob_pathmap, &packed, e);
	}
	return r;
}

/* One image: its samples, and what its groups of bursts have shown. */
static int write_one(const struct flush *f, struct image_counts *c, struct burst_group **groups,
	size_t n, int64_t *ids, struct err *e)
{
	int r;

	c->bursts.list.n = 0;
	for (size_t i = 0; i < n; i++)
		burst_group_offsets(groups[i], &c->bursts);
	find_called(f, c);
	r = write_image(f, c, e);
	for (size_t k = 0; r == 0 && k < c->parts.n; k++)
		r = write_profile(f, c, &c->parts.p[k], ids, e);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = write_group(f, groups[i], ids, e);
	image_cache_ease(f->images);
	return r;
}

/* Both lists are by image; an image may be in one of them only. */
static int write_images(const struct flush *f, int64_t *ids, struct err *e)
{
	_cleanup_free_ const struct pc_group **pcs = pcs_sorted(&f->sums->pcs);
	_cleanup_free_ struct burst_group **bursts = bursts_sorted(f->bursts);
	size_t npcs = f->sums->pcs.groups.n, nbursts = f->bursts->groups.n;
	struct image_counts c = {0};
	int r = 0;

	for (size_t i = 0, k = 0; r == 0 && (i < npcs || k < nbursts);) {
		size_t n = 0;

		if (k == nbursts || (i < npcs && pcs[i]->image <= bursts[k]->image)) {
			i += gather(pcs + i, npcs - i, &c);
		} else {
			c.image = bursts[k]->image;
			c.parts.n = c.counts.n = 0;
		}
		while (k + n < nbursts && bursts[k + n]->image == c.image)
			n++;
		r = write_one(f, &c, bursts + k, n, ids, e);
		k += n;
	}
	vec_deinit(&c.parts);
	vec_deinit(&c.counts);
	vec_deinit(&c.bursts.list);
	return r;
}

/* ---- totals ---- */

static int write_totals(const struct flush *f, struct err *e)
{
	const struct sums *s = f->sums;
	_cleanup_free_ struct store_total *rows = xcalloc(s->totals.n, sizeof *rows);
	size_t n = 0;

	for (const struct sum_total *t = NULL; (t = hmap_next(&s->totals, t));) {
		const struct who *who = &s->who.p[t->who];

		rows[n++] = (struct store_total){.pid = who->pid,
			.tid = t->tid,
			.started = wall_time(f, who->started),
			.comm = who->comm,
			.thread = s->strings.strings[t->thread],
			.cgroup = s->strings.strings[t->cgroup],
			.cpu = t->cpu,
			.image = image_cache_use(f->images, t->image)->store_id,
			.event = f->events[t->event],
			.samples = t->samples};
	}
	return n ? store_totals_add(f->store, f->epoch, f->t0, f->t1, rows, n, e) : 0;
}

int flush_write(const struct flush *given, struct err *e)
{
	_cleanup_free_ int64_t *ids = xcalloc(given->sums->who.n + 1, sizeof *ids);
	struct flush own = *given;
	const struct flush *f = &own;
	int r;

	image_cache_flush_begin(f->images);
	anchor_pool_settle(f->anchors);
	vec_each (p, &f->anchors->list)
		bursts_group(f->bursts, p->image, p->who);
	progress_settle(f->progress);
	vec_each (t, &f->progress->paces)
		bursts_group(f->bursts, t->by.image, t->who);
	walk_pool_settle(f->walks);
	vec_each (w, &f->walks->list)
		bursts_group(f->bursts, w->image, w->who);
	excursion_pool_settle(f->excursions);
	vec_each (x, &f->excursions->list)
		for (size_t i = 0; i < x->ntransfers; i++)
			if (!i || x->transfers[i].image != x->transfers[i - 1].image)
				bursts_group(f->bursts, x->transfers[i].image, x->who);
	if (f->contexts) {
		own.settled = contexts_settle(f->contexts);
		announce_called(f);
	}
	r = write_images(f, ids, e);
	if (r == 0 && f->contexts)
		r = write_contexts(f, ids, e);
	return r < 0 ? r : write_totals(f, e);
}
