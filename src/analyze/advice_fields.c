#include "analyze/advice_fields.h"

#include "base/hmap.h"
#include "base/mem.h"
#include "base/vec.h"

#include <stdlib.h>
#include <string.h>

#define VISITS   256 /* that are open at a time; a power of two */
#define HOT_PART 20
#define SWAPS    3 /* rounds of exchanging neighbours */

/* Visits that touched the same members of instances that lie alike in a line. */
struct shape_key {
	const struct type *type;
	uint64_t members;
	uint64_t base; /* instance modulo the line */
};

struct shape {
	struct shape_key key;
	uint64_t visits;
};

struct visit {
	const struct type *type;
	uint64_t instance, members, last;
};

struct type_count {
	const struct type *type;
	uint64_t references;
};

struct fields {
	struct hmap shapes, types;
	struct visit open[VISITS];
	VEC(struct field_advice) list;
};

/* ---- visits ---- */

static void close_visit(struct fields *f, struct visit *v)
{
	struct shape_key key = {v->type, v->members, v->instance % TOUCH_LINE};
	struct shape *s;

	if (!v->type)
		return;
	s = hmap_put(&f->shapes, &key, NULL);
	s->visits++;
	v->type = NULL;
}

/* The members that a reference touches, a bit each. */
static uint64_t members_of(const struct type *type, uint64_t offset, uint64_t size)
{
	uint64_t bits = 0;

	for (uint32_t i = 0; i < type->n; i++) {
		const struct type_member *m = &type->members[i];
		uint32_t bit = i < FIELDS_MOST ? i : FIELDS_MOST - 1;

		if (offset < m->offset + m->size && m->offset < offset + size)
			bits |= (uint64_t)1 << bit;
	}
	return bits;
}

void fields_take(struct fields *f, const struct touch *t)
{
	struct visit *v;
	struct type_count *c;
	uint64_t members;

	if (!t->type || t->type->is_union)
		return;
	members = members_of(t->type, t->offset, t->site->size);
	if (!members)
		return;
	c = hmap_put(&f->types, &t->type, NULL);
	c->references++;
	v = &f->open[(t->instance / 8 ^ t->instance >> 12) & (VISITS - 1)];
	if (v->type != t->type || v->instance != t->instance ||
		t->number - v->last > TOUCH_WINDOW) {
		close_visit(f, v);
		*v = (struct visit){.type = t->type, .instance = t->instance};
	}
	v->members |= members;
	v->last = t->number;
}

/* ---- cost ---- */

static uint64_t bits_of(uint64_t first, uint64_t last)
{
	uint64_t bits = 0;

	for (uint64_t line = first; line <= last && line < 64; line++)
		bits |= (uint64_t)1 << line;
	return bits;
}

/* Lines that a visit needs with members at these places; structs of 4 KB are the largest. */
static uint64_t lines_of(
	const struct field_advice *a, uint64_t members, uint64_t base, bool proposed)
{
	uint64_t lines = 0;

	for (uint32_t i = 0; i < a->n; i++) {
		const struct field *m = &a->fields[i];
		uint64_t at = base + (proposed ? m->proposed : m->offset);

		if (members >> i & 1 && m->size)
			lines |= bits_of(at / TOUCH_LINE, (at + m->size - 1) / TOUCH_LINE);
	}
	return (uint64_t)__builtin_popcountll(lines);
}

struct costs {
	const struct shape *list;
	size_t n;
};

static uint64_t cost_of(
	const struct field_advice *a, const struct costs *c, bool proposed, bool aligned)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < c->n; i++)
		sum += c->list[i].visits * lines_of(a, c->list[i].key.members,
						   aligned ? 0 : c->list[i].key.base, proposed);
	return sum;
}

/* ---- order ---- */

/* Gives members places in this order, each aligned; how many bytes they take. */
static uint64_t place(struct field_advice *a, const uint32_t *order)
{
	uint64_t at = 0;

	for (uint32_t i = 0; i < a->n; i++) {
		struct field *m = &a->fields[order[i]];

		at = (at + m->align - 1) / m->align * m->align;
		m->proposed = at;
		at += m->size;
	}
	return at;
}

static bool must_stay(const struct field *m, const struct type *type)
{
	return m->fixed || !m->size || m->offset + m->size > type->size;
}

/*
 * Members that stay come first (bases) or last (arrays without a size); of the others the one that
 * goes best with those before it is next.
 */
static void order_by_affinity(const struct field_advice *a, uint32_t *order)
{
	bool done[FIELDS_MOST] = {0};
	uint32_t n = 0;

	for (uint32_t i = 0; i < a->n; i++)
		if (a->fields[i].fixed)
			done[order[n++] = i] = true;
	while (n < a->n) {
		uint32_t best = UINT32_MAX;
		uint64_t most = 0;

		for (uint32_t i = 0; i < a->n; i++) {
			uint64_t score = a->affinity[i * a->n + i] / 4 + 1;

			if (done[i] || (!a->fields[i].size && n + 1 < a->n))
				continue;
			for (uint32_t k = n > 6 ? n - 6 : 0; k < n; k++)
				score += a->affinity[i * a->n + order[k]];
			if (best == UINT32_MAX || score > most) {
				best = i;
				most = score;
			}
		}
		if (best == UINT32_MAX) /* several without a size: as they were */
			for (best = 0; done[best];)
				best++;
		done[order[n++] = best] = true;
	}
}

/* Exchanges of any two that make it cheaper, while there are some. */
static void improve(struct field_advice *a, const struct costs *c, uint32_t *order, uint64_t most)
{
	uint64_t best = cost_of(a, c, true, false);
	bool better = c->n * a->n < 20000;

	for (int round = 0; round < SWAPS && better; round++) {
		better = false;
		for (uint32_t i = 0; i < a->n; i++)
			for (uint32_t k = i + 1; k < a->n; k++) {
				uint32_t x = order[i], y = order[k];
				uint64_t cost;

				if (must_stay(&a->fields[x], a->type) ||
					must_stay(&a->fields[y], a->type))
					continue;
				order[i] = y;
				order[k] = x;
				cost = place(a, order) <= most ? cost_of(a, c, true, false)
							       : UINT64_MAX;
				if (cost < best) {
					best = cost;
					better = true;
					continue;
				}
				order[i] = x;
				order[k] = y;
			}
	}
	place(a, order);
}

static void keep_order(struct field_advice *a)
{
	for (uint32_t i = 0; i < a->n; i++)
		a->fields[i].proposed = a->fields[i].offset;
}

static void propose(struct field_advice *a, const struct costs *c)
{
	uint32_t order[FIELDS_MOST];

	a->lines = cost_of(a, c, false, false);
	order_by_affinity(a, order);
	if (place(a, order) > a->type->size) {
		for (uint32_t i = 0; i < a->n; i++)
			order[i] = i;
		place(a, order);
	}
	improve(a, c, order, a->type->size);
	a->ordered = cost_of(a, c, true, false);
	if (a->ordered >= a->lines || a->type->n > FIELDS_MOST) {
		keep_order(a);
		a->ordered = a->lines;
	}
	a->aligned = cost_of(a, c, true, true);
}

/* ---- one type ---- */

/* Bit fields and members of unnamed unions share bytes: then nothing is moved. */
static bool overlaps(const struct field_advice *a)
{
	for (uint32_t i = 1; i < a->n; i++)
		if (a->fields[i].offset < a->fields[i - 1].offset + a->fields[i - 1].size)
			return true;
	return false;
}

static void make_members(struct field_advice *a)
{
	const struct type *type = a->type;

	a->n = type->n < FIELDS_MOST ? type->n : FIELDS_MOST;
	a->fields = xcalloc(a->n + 1, sizeof *a->fields);
	a->affinity = xcalloc((size_t)a->n * a->n + 1, sizeof *a->affinity);
	for (uint32_t i = 0; i < a->n; i++) {
		const struct type_member *m = &type->members[i];

		a->fields[i] = (struct field){.name = m->name,
			.offset = m->offset,
			.size = m->size,
			.align = m->type->align ? m->type->align : 1,
			.fixed = !*m->name || !strncmp(m->name, "_vptr", 5),
			.proposed = m->offset};
	}
}

static void add_shape(struct field_advice *a, const struct shape *s)
{
	a->visits += s->visits;
	for (uint32_t i = 0; i < a->n; i++)
		for (uint32_t k = 0; k < a->n; k++)
			if (s->key.members >> i & s->key.members >> k & 1)
				a->affinity[i * a->n + k] += s->visits;
}

static void settle_type(struct field_advice *a, const struct shape *list, size_t n)
{
	struct costs c = {list, n};

	make_members(a);
	for (size_t i = 0; i < n; i++)
		add_shape(a, &list[i]);
	for (uint32_t i = 0; i < a->n; i++) {
		a->fields[i].touched = a->affinity[i * a->n + i];
		if (a->fields[i].touched * HOT_PART >= a->visits)
			a->hot += a->fields[i].size;
	}
	if (!overlaps(a) && a->type->size <= 2048) {
		propose(a, &c);
		return;
	}
	a->lines = a->ordered = cost_of(a, &c, false, false);
	a->aligned = cost_of(a, &c, false, true);
}

/* ---- all ---- */

static int by_type(const void *a, const void *b)
{
	const struct shape *x = a, *y = b;

	return x->key.type < y->key.type ? -1 : x->key.type > y->key.type;
}

static int by_references(const void *a, const void *b)
{
	const struct field_advice *x = a, *y = b;

	return x->references > y->references ? -1 : x->references < y->references;
}

size_t fields_settle(struct fields *f, const struct field_advice **out)
{
	VEC(struct shape) all = {0};

	for (size_t i = 0; i < VISITS; i++)
		close_visit(f, &f->open[i]);
	for (const struct shape *s = NULL; (s = hmap_next(&f->shapes, s));)
		*vec_add(&all) = *s;
	vec_sort(&all, by_type);
	for (size_t i = 0, end; i < all.n; i = end) {
		const struct type *type = all.p[i].key.type;
		const struct type_count *c = hmap_get(&f->types, &type);
		struct field_advice *a = vec_add(&f->list);

		for (end = i; end < all.n && all.p[end].key.type == type;)
			end++;
		*a = (struct field_advice){.type = type, .references = c->references};
		settle_type(a, &all.p[i], end - i);
	}
	vec_deinit(&all);
	vec_sort(&f->list, by_references);
	*out = f->list.p;
	return f->list.n;
}

struct fields *fields_create(void)
{
	struct fields *f = xcalloc(1, sizeof *f);

	hmap_init(&f->shapes, sizeof(struct shape), sizeof(struct shape_key));
	hmap_init(&f->types, sizeof(struct type_count), sizeof(const struct type *));
	return f;
}

void fields_destroy(struct fields *f)
{
	if (!f)
		return;
	vec_each (a, &f->list) {
		free(a->fields);
		free(a->affinity);
	}
	vec_deinit(&f->list);
	hmap_deinit(&f->shapes);
	hmap_deinit(&f->types);
	free(f);
}
