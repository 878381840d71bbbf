/*
 * Types of objects on the heap. A candidate is what some pointer of the code points to that
 * allocates or touches them, or a struct of the allocating file that is as large; it is taken when
 * its size and nearly all that is touched fit.
 */
#include "analyze/things_internal.h"

#include <stdlib.h>

#define CANDIDATES 64
#define OUTWARDS   2   /* callers whose pointers are looked at */
#define FIT_LEAST  0.9 /* of what is touched */
#define SIZE_TELLS 32  /* bytes: smaller ones are all alike */

struct candidates {
	const struct type *list[CANDIDATES];
	double liked[CANDIDATES]; /* by where it was found */
	size_t n;
};

static void add_candidate(struct candidates *c, const struct type *type, double liked)
{
	size_t k = 0;

	while (k < c->n && c->list[k] != type)
		k++;
	if (k == CANDIDATES)
		return;
	if (k == c->n) {
		c->list[c->n++] = type;
		c->liked[k] = liked;
	}
	c->liked[k] = c->liked[k] < liked ? liked : c->liked[k];
}

static void add_pointees(
	struct things *t, struct candidates *c, uint64_t image, uint64_t pc, double liked)
{
	struct thing_file *f = image ? things_file(t, image) : NULL;
	const struct type *found[CANDIDATES];
	size_t n = f && f->types ? types_pointed_at(f->types, pc, found, CANDIDATES) : 0;

	for (size_t i = 0; i < n; i++)
		add_candidate(c, found[i], liked);
}

/*
 * Where memory goes from hand to hand as void pointers, and is looked at through casts, no variable
 * points to its type. But few structs of a file are just that large.
 */
static void add_of_size(struct things *t, const struct thing_group *g, struct candidates *c)
{
	struct thing_file *f = g->image && g->size >= SIZE_TELLS ? things_file(t, g->image) : NULL;
	const struct type *found[CANDIDATES];
	size_t n =
		f && f->types ? types_of_size(f->types, g->at - 1, g->size, found, CANDIDATES) : 0;

	for (size_t i = 0; i < n; i++)
		add_candidate(c, found[i], 0.3);
}

/* From the frame that allocates outwards. */
static void add_callers(struct things *t, const struct thing_group *g, struct candidates *c)
{
	const struct object_path *p = &t->set.paths.p[g->path];
	const struct object_frame *list = t->set.frames.p + p->first;
	uint32_t from = 0;

	while (from < p->n && (list[from].image != g->image || list[from].at != g->at))
		from++;
	for (uint32_t i = from; i < p->n && i <= from + OUTWARDS; i++)
		add_pointees(t, c, list[i].image, list[i].at - 1, i == from ? 0.5 : 0.2);
}

/* How an object of this size can consist of the type: alone, in a row, with something behind. */
static double size_fit(const struct type *type, uint64_t size)
{
	if (size == type->size)
		return 1;
	if (size % type->size == 0)
		return type->kind == TYPE_STRUCT ? 0.7 : 0.5;
	return size > type->size && type->kind == TYPE_STRUCT ? 0.2 : 0;
}

/* Of what is touched inside; most must be, or it is a row of something else. */
static double use_fit(
	const struct type *type, const struct thing_use *uses, size_t n, uint64_t size)
{
	uint64_t fits = 0, inside = 0, all = 0;
	bool in_a_row = size % type->size == 0;

	for (size_t i = 0; i < n; i++) {
		uint64_t at = in_a_row ? uses[i].offset % type->size : uses[i].offset;

		all += uses[i].count;
		if (at >= type->size)
			continue;
		inside += uses[i].count;
		if (type_fits(type, at, uses[i].size))
			fits += uses[i].count;
	}
	return inside && 2 * inside >= all ? (double)fits / (double)inside : 0;
}

static const struct type *choose(const struct candidates *c, const struct thing_group *g,
	const struct thing_use *uses, size_t n)
{
	const struct type *best = NULL;
	double best_score = 0;

	for (size_t i = 0; i < c->n; i++) {
		const struct type *type = c->list[i];
		double size = size_fit(type, g->size),
		       use = size ? use_fit(type, uses, n, g->size) : 0;
		double score = size + 2 * use + c->liked[i] + (type->kind == TYPE_STRUCT ? 0.6 : 0);

		if (use >= FIT_LEAST && score > best_score) {
			best = type;
			best_score = score;
		}
	}
	return best;
}

static int by_group(const void *a, const void *b)
{
	const struct thing_use *x = a, *y = b;

	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static void find_type(struct things *t, const struct thing_use *uses, size_t n)
{
	struct thing_group *g = &t->groups.p[uses[0].group];
	struct candidates c = {.n = 0};

	if (g->kind != THING_HEAP || g->path == OBJECT_NONE)
		return;
	add_callers(t, g, &c);
	for (size_t i = 0; i < n && i < 200; i++)
		add_pointees(t, &c, uses[i].image, uses[i].at, 0.3);
	g->type = choose(&c, g, uses, n);
	if (g->type && g->type->kind == TYPE_STRUCT && g->type->size == g->size)
		return;
	add_of_size(t, g, &c);
	g->type = choose(&c, g, uses, n);
}

void things_find_types(struct things *t)
{
	VEC(struct thing_use) all = {0};

	for (const struct thing_use *u = NULL; (u = hmap_next(&t->uses, u));)
		*vec_add(&all) = *u;
	vec_sort(&all, by_group);
	for (size_t i = 0, end; i < all.n; i = end) {
		for (end = i; end < all.n && all.p[end].group == all.p[i].group;)
			end++;
		find_type(t, &all.p[i], end - i);
	}
	vec_deinit(&all);
}

const struct type *thing_type(const struct things *t, const struct thing *x, uint64_t *offset)
{
	const struct thing_group *g = x->group == OBJECT_NONE ? NULL : &t->groups.p[x->group];
	const struct type *type = g ? g->type : NULL;

	*offset = x->offset;
	if (!type)
		return NULL;
	while (type->kind == TYPE_ARRAY && type->element && type->element->size) {
		*offset %= type->element->size;
		type = type->element;
	}
	if (g->kind == THING_HEAP && type->size && g->size % type->size == 0)
		*offset %= type->size;
	return *offset < type->size ? type : NULL;
}
