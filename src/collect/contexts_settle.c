#include "base/err.h"
#include "base/io.h"
#include "base/mem.h"
#include "collect/contexts_internal.h"
#include "image/frames.h"
#include "store/contexts.h"
#include "store/edges.h"
#include "store/store.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#define MOST_BYTES  ((size_t)64 << 20) /* of maps and rows in memory */
#define LEAST_SEEN  64                 /* paths that were seen so often are not given up */
#define DERIVE_NS   1000000000ll       /* for paths that nobody has seen, at once */
#define DERIVE_PART 2000               /* and the part of all time that they may take */
#define OLDEST_US   (28ll * 24 * 3600 * 1000 * 1000) /* what was learned before is not loaded */

void contexts_clear_settled(struct contexts *c)
{
	vec_each (p, &c->settled.profiles)
		call_tree_destroy(p->tree);
	c->settled.profiles.n = c->settled.procedures.n = c->settled.lessons.n = 0;
	c->told = (struct contexts_statistics){0};
}

/* Compared as bytes up to the index. */
struct profile_place {
	uint32_t program, who;
	uint64_t index;
};

/* Samples on their way to the profiles. */
struct settling {
	struct contexts *c;
	struct hmap profiles;          /* struct profile_place */
	VEC(struct path_copies) trees; /* of the profiles */
};

static struct path_copies *tree_of(struct settling *st, uint32_t program, uint32_t who)
{
	struct contexts_settled *settled = &st->c->settled;
	struct profile_place key = {.program = program, .who = who}, *place;
	struct metric_names names = {0};
	bool fresh;

	place = hmap_put(&st->profiles, &key, &fresh);
	if (!fresh)
		return &st->trees.p[place->index];
	place->index = settled->profiles.n;
	metric_add(&names, CONTEXT_METRIC_RANKED);
	metric_add(&names, CONTEXT_METRIC_UNKNOWN);
	metric_add(&names, CONTEXT_METRIC_WALKED);
	*vec_add(&st->trees) = (struct path_copies){.tree = call_tree_create(&names)};
	hmap_init(&st->trees.p[place->index].copies, sizeof(struct node_copy), sizeof(uint32_t));
	*vec_add(&settled->profiles) =
		(struct context_profile){program, who, st->trees.p[place->index].tree};
	return &st->trees.p[place->index];
}

static uint32_t child(struct call_tree *t, uint32_t parent, const struct call_frame *f)
{
	return call_tree_child(
		t, parent, &(struct call_place){.image = f->image, .procedure = f->procedure});
}

/* Below a node of its own: nobody knows who called it. */
static uint32_t unknown_path(struct call_tree *t, const struct call_frame *f)
{
	return child(t, child(t, CALL_NONE, &(struct call_frame){0}), f);
}

/* How a path is known; the first ones have metrics, in this order. */
enum known { KNOWN_RANKED, KNOWN_UNKNOWN, KNOWN_WALKED, KNOWN_UNIQUE };

static void count(
	struct contexts *c, struct call_tree *t, uint32_t node, enum known known, uint64_t samples)
{
	uint64_t *const told[] = {
		&c->told.ranked, &c->told.unknown, &c->told.walked, &c->told.unique};
	struct call_node *n = call_tree_node(t, node);

	n->count += samples;
	if (known != KNOWN_UNIQUE)
		n->metrics[known] += samples;
	*told[known] += samples;
}

/* The kernel's procedure below the path that entered it. */
static uint32_t enter_kernel(
	struct contexts *c, struct call_tree *t, uint32_t node, uint32_t kernel, uint64_t procedure)
{
	struct call_frame f = {.procedure = procedure};

	if (!kernel)
		return node;
	f.image = contexts_key(c, kernel - 1);
	contexts_name(c, kernel - 1, procedure);
	return child(t, node, &f);
}

static const struct call_tree *known_paths(struct contexts *c, uint32_t program)
{
	return call_map_tree(contexts_program(c, contexts_key(c, program))->known);
}

/* What is not used is saved up. */
static void give_time(struct contexts *c)
{
	uint64_t now = io_clock_ns(CLOCK_MONOTONIC);
	int64_t left = c->derive_ns + (int64_t)((now - c->settled_ns) / DERIVE_PART);

	c->derive_ns = left < DERIVE_NS ? left : DERIVE_NS;
	c->settled_ns = now;
}

void contexts_finish(struct contexts *c)
{
	c->derive_ns = DERIVE_NS;
}

/* What was never seen may be derived, as long as that does not hold up others. */
static uint32_t derive_in_time(struct contexts *c, const struct placed *p)
{
	uint64_t before = io_clock_ns(CLOCK_MONOTONIC);
	uint32_t path;

	if (c->derive_ns <= 0)
		return CALL_NONE;
	path = contexts_derive(c, p->program, p->image, (enum stack_kind)p->kind, &p->frame);
	/* Reading the code of an image may take more than there was. */
	c->derive_ns -= (int64_t)(io_clock_ns(CLOCK_MONOTONIC) - before);
	return path;
}

/* A frame without a height has no path. */
static uint32_t find_path(struct settling *st, const struct placed *p, enum known *known)
{
	struct call_map *map = contexts_program(st->c, contexts_key(st->c, p->program))->known;
	const struct call_told told = contexts_told(st->c, p);
	enum stack_kind kind = (enum stack_kind)p->kind;
	struct call_answer answer = {.node = CALL_NONE};

	if (p->frame.height)
		call_map_answer(map, kind, &p->frame, &told, &answer);
	if (answer.node == CALL_NONE) {
		answer.node = derive_in_time(st->c, p);
		answer.ranked = true;
	}
	*known = answer.node == CALL_NONE       ? KNOWN_UNKNOWN
		 : answer.ranked || p->doubtful ? KNOWN_RANKED
						: KNOWN_UNIQUE;
	return answer.node;
}

static void settle_placed(struct settling *st, const struct placed *p, uint64_t samples)
{
	struct contexts *c = st->c;
	struct path_copies *copies = tree_of(st, p->program, p->who);
	struct call_tree *t = copies->tree;
	enum known known = KNOWN_UNIQUE;
	uint32_t node = CALL_NONE;

	if (p->kind != CONTEXTS_NO_STACK) {
		uint32_t path = find_path(st, p, &known);

		node = path == CALL_NONE
			       ? unknown_path(t, &p->frame)
			       : contexts_copy_path(c, copies, known_paths(c, p->program), path);
	}
	count(c, t, enter_kernel(c, t, node, p->kernel, p->kernel_procedure), known, samples);
}

/* By now the frame may be known. */
static void settle_unplaced(struct settling *st, const struct unplaced *u)
{
	const struct context_sample *s = &u->sample;
	struct placed p = {.kernel_procedure = contexts_kernel_procedure(st->c, s),
		.image = s->image,
		.kernel = s->kernel,
		.program = s->program,
		.who = s->who,
		.doubtful = contexts_is_doubtful(s->where)};
	enum stack_kind kind;
	struct call_told told;

	contexts_frames(st->c, s, &kind, &p.frame, &told);
	p.told = contexts_telling(st->c, &told);
	p.kind = (uint16_t)kind;
	settle_placed(st, &p, u->count);
}

/* Whether the path comes from the root of a thread. */
static bool has_root(const struct call_tree *t, uint32_t node)
{
	while (call_tree_node(t, node)->parent != CALL_NONE)
		node = call_tree_node(t, node)->parent;
	return call_tree_node(t, node)->at.image;
}

static void settle_walked(struct settling *st, const struct walked *w)
{
	const struct call_tree *paths = known_paths(st->c, w->program);
	struct path_copies *copies = tree_of(st, w->program, w->who);
	struct call_tree *t = copies->tree;
	uint32_t node = contexts_copy_path(st->c, copies, paths, w->node);

	count(st->c, t, enter_kernel(st->c, t, node, w->kernel, w->kernel_procedure),
		has_root(paths, w->node) ? KNOWN_WALKED : KNOWN_UNKNOWN, w->count);
}

/* Names lie in files as procedures do, and are unpacked many at once. */
static int by_address(const void *a, const void *b)
{
	const struct called_procedure *x = a, *y = b;

	if (x->image != y->image)
		return x->image < y->image ? -1 : 1;
	return x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
}

const struct contexts_settled *contexts_settle(struct contexts *c)
{
	struct settling st = {.c = c};

	contexts_clear_settled(c);
	give_time(c);
	hmap_init(
		&st.profiles, sizeof(struct profile_place), offsetof(struct profile_place, index));
	vec_each (j, &c->judgements)
		contexts_judge(c, j);
	c->judgements.n = 0;
	contexts_learn_tails(c);
	for (const struct pending *p = NULL; (p = hmap_next(&c->pending, p));)
		settle_placed(&st, &p->key, p->count);
	for (const struct unplaced *u = NULL; (u = hmap_next(&c->unplaced, u));)
		settle_unplaced(&st, u);
	for (const struct walked *w = NULL; (w = hmap_next(&c->walked, w));)
		settle_walked(&st, w);
	hmap_deinit(&st.profiles);
	vec_each (t, &st.trees)
		hmap_deinit(&t->copies);
	vec_deinit(&st.trees);
	for (const struct called_procedure *p = NULL; (p = hmap_next(&c->procedures, p));)
		*vec_add(&c->settled.procedures) = *p;
	vec_sort(&c->settled.procedures, by_address);
	for (const struct program *p = NULL; (p = hmap_next(&c->programs, p));)
		if (call_map_has_fresh(p->known))
			*vec_add(&c->settled.lessons) =
				(struct context_lesson){.program = p->number, .map = p->known};
	return &c->settled;
}

/* ---- what was not used for long goes ---- */

/* A turn before which nothing was used, so that half of what is there is younger. */
static uint64_t middle_turn(const struct contexts *c)
{
	uint64_t sum = 0, n = 0;

	for (const struct program *p = NULL; (p = hmap_next(&c->programs, p)); n++)
		sum += p->used;
	return n ? sum / n : 0;
}

static void forget_programs(struct contexts *c, uint64_t before)
{
	VEC(uint64_t) old = {0};

	for (struct program *p = NULL; (p = hmap_next(&c->programs, p));)
		if (p->used <= before) {
			*vec_add(&old) = p->key;
			call_map_destroy(p->known);
			call_trainer_destroy(p->trainer);
		}
	vec_each (key, &old)
		hmap_delete(&c->programs, key);
	vec_deinit(&old);
}

static void forget_frames(struct contexts *c, uint64_t before)
{
	VEC(uint64_t) old = {0};

	for (struct image_frames *f = NULL; (f = hmap_next(&c->frames, f));)
		if (f->used <= before) {
			*vec_add(&old) = f->key;
			frames_destroy(f->frames);
		}
	vec_each (key, &old)
		hmap_delete(&c->frames, key);
	vec_deinit(&old);
}

/* What was counted knows heights by their numbers: then nothing goes. */
static void shrink_programs(struct contexts *c, uint64_t least)
{
	for (struct program *p = NULL; (p = hmap_next(&c->programs, p));)
		if (!p->trainer)
			call_map_shrink(p->known, least);
}

/*
 * The older half first. If all was used in this turn, the paths that were seen least: those of
 * programs whose contexts never end are hardly ever met again, while the filter in the kernel goes
 * on to know them. If that is not enough, all goes, and is learned again.
 */
static void ease(struct contexts *c)
{
	uint64_t least = 1;

	while (contexts_memory(c) > MOST_BYTES && c->programs.n) {
		uint64_t before = middle_turn(c);

		if (before == c->turn && least < LEAST_SEEN) {
			shrink_programs(c, least *= 2);
			continue;
		}
		forget_programs(c, before);
		forget_frames(c, before);
	}
}

void contexts_flushed(struct contexts *c)
{
	c->statistics.unique += c->told.unique;
	c->statistics.ranked += c->told.ranked;
	c->statistics.walked += c->told.walked;
	c->statistics.unknown += c->told.unknown;
	contexts_clear_settled(c);
	hmap_clear(&c->pending);
	hmap_clear(&c->unplaced);
	hmap_clear(&c->callers_told);
	c->tellings.n = 0;
	contexts_forget_stretches(c);
	hmap_clear(&c->walked);
	hmap_clear(&c->procedures);
	for (unsigned i = 0; i < CONTEXTS_LAST; i++)
		c->last[i] = (struct last_stack){
			.walked = c->last[i].walked, .frames = c->last[i].frames};
	for (struct program *p = NULL; (p = hmap_next(&c->programs, p));)
		call_map_settle(p->known);
	ease(c);
	c->turn++;
}

/* ---- from the database ---- */

struct loading {
	struct contexts *c;
	struct store *store;
	struct err *e;
	uint64_t program;    /* key */
	struct hmap counted; /* struct counted */
};

static int take_image(void *arg, const struct store_image *im)
{
	((struct loading *)arg)->program = edge_image_key(im->kind, &im->identity, im->path);
	return 0;
}

static int take_map(void *arg, const struct store_profile *p)
{
	struct loading *l = arg;
	int r = store_image_get(l->store, p->image, take_image, l, l->e);

	if (r == 0 && call_map_add(contexts_program(l->c, l->program)->known, p->data, p->size) < 0)
		r = err_set(l->e, -EBADMSG,
			"a path map in the database is damaged: see 'culprit db check'");
	return r;
}

/* Where calls were counted, their sites are looked for in the files of then. */
static int take_site_image(void *arg, const struct store_image *im)
{
	struct loading *l = arg;

	if (im->kind == IMAGE_ELF)
		call_sites_add(l->c->sites, edge_image_key(im->kind, &im->identity, im->path),
			im->path, &im->identity);
	return 0;
}

/* The trees of a program add up before they teach. */
struct counted {
	uint64_t program;
	struct call_tree *tree;
};

static int take_counted(void *arg, const struct store_profile *p)
{
	struct loading *l = arg;
	int r = store_image_get(l->store, p->image, take_image, l, l->e);
	struct counted *to;
	bool fresh;

	if (r < 0)
		return r;
	to = hmap_put(&l->counted, &l->program, &fresh);
	if (fresh)
		to->tree = call_tree_create(NULL);
	if (call_tree_add(to->tree, p->data, p->size) < 0)
		r = err_set(l->e, -EBADMSG,
			"contexts in the database are damaged: see 'culprit db check'");
	return r;
}

/* Programs whose contexts were counted are known before they are sampled. */
static int load_counted(struct loading *l)
{
	struct store_filter filter = {.type = &blob_context, .event = CONTEXT_EVENT_COUNTED};
	int r;

	hmap_init(&l->counted, sizeof(struct counted), sizeof(uint64_t));
	r = store_profiles(l->store, &filter, take_counted, l, l->e);
	if (r == 0 && l->counted.n) {
		l->c->sites = call_sites_create();
		r = store_images(l->store, take_site_image, l, l->e);
	}
	for (struct counted *k = NULL; (k = hmap_next(&l->counted, k));) {
		struct program *p = contexts_program(l->c, k->program);

		if (r < 0) {
			call_tree_destroy(k->tree);
			continue;
		}
		p->trainer = call_trainer_create(k->tree, l->c->sites);
		call_trainer_recall(p->trainer, p->known, p->known);
	}
	hmap_deinit(&l->counted);
	return r;
}

/* Paths that are still taken were walked again since: one sample in DRIVER_JUDGES is. */
int contexts_load(struct contexts *c, struct store *s, struct err *e)
{
	struct loading l = {.c = c, .store = s, .e = e};
	int64_t now = (int64_t)(io_clock_ns(CLOCK_REALTIME) / 1000);
	struct store_filter young = {.type = &blob_pathmap, .t0 = now - OLDEST_US, .t1 = INT64_MAX};
	int r = store_profiles(s, &young, take_map, &l, e);

	if (r == 0)
		r = load_counted(&l);
	if (r == 0)
		ease(c);
	return r;
}

void contexts_statistics(const struct contexts *c, struct contexts_statistics *out)
{
	*out = c->statistics;
	for (const struct program *p = NULL; (p = hmap_next(&c->programs, p));)
		out->heights += call_map_size(p->known);
	out->bytes = contexts_memory(c);
	for (const struct program *p = NULL; (p = hmap_next(&c->programs, p));)
		if (p->trainer)
			call_trainer_sum(p->trainer, &out->training);
}

size_t contexts_memory(const struct contexts *c)
{
	size_t sum = c->pending.slots * sizeof(struct pending) +
		     c->unplaced.slots * sizeof(struct unplaced) +
		     c->callers_told.slots * sizeof(struct told_callers) +
		     c->tellings.space * sizeof *c->tellings.p +
		     CONTEXTS_STRETCHES * sizeof *c->stretches +
		     c->walked.slots * sizeof(struct walked) + stack_roots_memory(&c->roots);

	for (const struct image_frames *f = NULL; (f = hmap_next(&c->frames, f));)
		sum += f->frames ? frames_memory(f->frames) : 0;
	for (const struct program *p = NULL; (p = hmap_next(&c->programs, p));)
		sum += call_map_memory(p->known);
	return sum;
}
