#include "image/procedures.h"

#include <string.h>

#include "image/demangle.h"

struct made {
	uint64_t start;
	const struct procedure *p;
};

void procedures_deinit(struct procedures *ps)
{
	vec_deinit(&ps->rows);
	vec_deinit(&ps->fragments);
	vec_deinit(&ps->by_owner);
	vec_deinit(&ps->areas);
	names_deinit(&ps->names);
	hmap_deinit(&ps->made);
	free(ps->all);
	arena_deinit(&ps->arena);
	*ps = (struct procedures){0};
}

/* ---- building ---- */

void procedures_add_area(struct procedures *ps, uint64_t start, uint64_t size)
{
	if (size > UINT64_MAX - start)
		size = UINT64_MAX - start;
	if (ps->areas.n) {
		const struct range *last = &ps->areas.p[ps->areas.n - 1];
		uint64_t end = last->start + last->size, skip = end > start ? end - start : 0;
		if (skip >= size)
			return;
		start += skip;
		size -= skip;
	}
	if (size)
		*vec_add(&ps->areas) = (struct range){.start = start, .size = size};
}

/* The start of anything here; of a row it takes the sign along. */
#define start_of(element) ((uint64_t)(element)->start)

static uint32_t row_size(uint64_t size)
{
	return size < UINT32_MAX ? (uint32_t)size : UINT32_MAX;
}

void procedures_add(struct procedures *ps, uint64_t start, uint64_t size,
	enum procedure_source source, const char *name, size_t name_size)
{
	struct procedure_row row = {.start = (int64_t)start, .source = source};
	if (start_of(&row) != start)
		return; /* nothing can be there */
	if (ps->rows.n) {
		struct procedure_row *last = &ps->rows.p[ps->rows.n - 1];
		if (start <= start_of(last))
			return;
		if (last->size > start - start_of(last))
			last->size = row_size(start - start_of(last));
	}
	if (!size)
		return;
	row.size = row_size(size);
	row.name = name ? names_add(&ps->names, name, name_size) : 0;
	*vec_add(&ps->rows) = row;
}

void procedures_add_fragment(struct procedures *ps, uint32_t owner, uint64_t start, uint64_t size)
{
	*vec_add(&ps->fragments) =
		(struct fragment_row){.start = start, .size = size, .owner = owner};
}

static int compare_owners(const void *x, const void *y, void *arg)
{
	const struct fragment_row *f = arg;
	uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
	if (f[a].owner != f[b].owner)
		return f[a].owner < f[b].owner ? -1 : 1;
	return a < b ? -1 : a > b;
}

void procedures_finish(struct procedures *ps)
{
	for (uint32_t i = 0; i < ps->fragments.n; i++)
		*vec_add(&ps->by_owner) = i;
	if (ps->by_owner.n)
		qsort_r(ps->by_owner.p, ps->by_owner.n, sizeof *ps->by_owner.p, compare_owners,
			ps->fragments.p);
	vec_shrink(&ps->rows);
	vec_shrink(&ps->fragments);
	vec_shrink(&ps->by_owner);
	vec_shrink(&ps->areas);
	names_finish(&ps->names);
	hmap_init(&ps->made, sizeof(struct made), offsetof(struct made, p));
}

/* ---- asking ---- */

/* The number of elements whose start is not above vaddr. */
#define vec_up_to(v, vaddr)                                                 \
	({                                                                  \
		size_t low = 0, high = (v)->n;                              \
		while (low < high) {                                        \
			size_t middle = low + (high - low) / 2;             \
			if (start_of(&(v)->p[middle]) <= (uint64_t)(vaddr)) \
				low = middle + 1;                           \
			else                                                \
				high = middle;                              \
		}                                                           \
		low;                                                        \
	})

/* The names of a JIT are made for people, and may hold what looks like a version. */
static char *demangled(const struct procedure_row *row, const char *raw)
{
	return row->source == PROCEDURE_JIT ? NULL : demangle(raw);
}

static const char *readable_name(struct procedures *ps, const struct procedure_row *row)
{
	if (!row->name)
		return NULL;
	const char *raw = names_get(&ps->names, row->name);
	_cleanup_free_ char *readable = demangled(row, raw);
	return arena_strdup(&ps->arena, readable ? readable : raw);
}

/* The fragments of a row, as a part of by_owner; returns how many. */
static uint32_t fragments_of(const struct procedures *ps, uint32_t owner, const uint32_t **out)
{
	size_t low = 0, high = ps->by_owner.n;
	uint32_t n = 0;
	*out = NULL;
	if (!high)
		return 0;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (ps->fragments.p[ps->by_owner.p[middle]].owner < owner)
			low = middle + 1;
		else
			high = middle;
	}
	*out = ps->by_owner.p + low;
	while (low + n < ps->by_owner.n && ps->fragments.p[(*out)[n]].owner == owner)
		n++;
	return n;
}

/* The first of its ranges is filled in. */
static struct range *new_procedure(struct procedures *ps, const struct procedure *like,
	uint64_t size, const struct procedure **out)
{
	struct procedure *p = arena_alloc(&ps->arena, sizeof *p);
	struct range *ranges = arena_alloc(&ps->arena, like->nranges * sizeof *ranges);
	ranges[0] = (struct range){.start = like->start, .size = size};
	*p = *like;
	p->ranges = ranges;
	*out = p;
	return ranges;
}

static void make_from_row(struct procedures *ps, uint32_t i, const struct procedure **out)
{
	const struct procedure_row *row = &ps->rows.p[i];
	const uint32_t *fragments;
	uint32_t n = fragments_of(ps, i, &fragments);
	struct procedure p = {.start = start_of(row),
		.nranges = n + 1,
		.source = row->source,
		.name = readable_name(ps, row)};
	struct range *ranges = new_procedure(ps, &p, row->size, out);
	for (uint32_t k = 0; k < n; k++) {
		const struct fragment_row *f = &ps->fragments.p[fragments[k]];
		ranges[k + 1] = (struct range){.start = f->start, .size = f->size};
	}
}

static const struct procedure *make_row(struct procedures *ps, size_t i)
{
	if (ps->all)
		return &ps->all[i];
	bool fresh;
	uint64_t start = start_of(&ps->rows.p[i]);
	struct made *m = hmap_put(&ps->made, &start, &fresh);
	if (fresh)
		make_from_row(ps, (uint32_t)i, &m->p);
	return m->p;
}

/* Where an address is. */
struct spot {
	size_t row, fragment; /* how many begin at or before it */
	size_t number;        /* of the row that has it, itself or as a fragment */
	struct range gap;     /* if none has */
};

static bool find_gap(const struct procedures *ps, uint64_t vaddr, struct spot *s)
{
	size_t area = vec_up_to(&ps->areas, vaddr);
	if (!area || vaddr - ps->areas.p[area - 1].start >= ps->areas.p[area - 1].size)
		return false;
	uint64_t start = ps->areas.p[area - 1].start;
	uint64_t end = start + ps->areas.p[area - 1].size;

	if (s->row && start_of(&ps->rows.p[s->row - 1]) + ps->rows.p[s->row - 1].size > start)
		start = start_of(&ps->rows.p[s->row - 1]) + ps->rows.p[s->row - 1].size;
	if (s->fragment) {
		const struct fragment_row *f = &ps->fragments.p[s->fragment - 1];
		start = f->start + f->size > start ? f->start + f->size : start;
	}
	if (s->row < ps->rows.n && start_of(&ps->rows.p[s->row]) < end)
		end = start_of(&ps->rows.p[s->row]);
	if (s->fragment < ps->fragments.n && ps->fragments.p[s->fragment].start < end)
		end = ps->fragments.p[s->fragment].start;
	s->gap = (struct range){.start = start, .size = end - start};
	return true;
}

static bool find_row(const struct procedures *ps, uint64_t vaddr, struct spot *s)
{
	s->row = vec_up_to(&ps->rows, vaddr);
	s->fragment = 0;
	s->number = s->row - 1;
	if (s->row && vaddr - start_of(&ps->rows.p[s->number]) < ps->rows.p[s->number].size)
		return true;
	s->fragment = vec_up_to(&ps->fragments, vaddr);
	if (!s->fragment)
		return false;
	const struct fragment_row *f = &ps->fragments.p[s->fragment - 1];
	s->number = f->owner;
	return vaddr - f->start < f->size;
}

static const struct procedure *make_gap(struct procedures *ps, const struct range *r)
{
	bool fresh;
	struct made *m = hmap_put(&ps->made, &r->start, &fresh);
	struct procedure gap = {.start = r->start, .nranges = 1, .source = PROCEDURE_GAP};
	if (fresh)
		new_procedure(ps, &gap, r->size, &m->p);
	return m->p;
}

const struct procedure *procedures_at(struct procedures *ps, uint64_t vaddr)
{
	struct spot s;
	if (find_row(ps, vaddr, &s))
		return make_row(ps, s.number);
	return find_gap(ps, vaddr, &s) ? make_gap(ps, &s.gap) : NULL;
}

bool procedures_start(const struct procedures *ps, uint64_t vaddr, uint64_t *start)
{
	struct spot s;
	bool found = find_row(ps, vaddr, &s);
	if (found)
		*start = start_of(&ps->rows.p[s.number]);
	else if ((found = find_gap(ps, vaddr, &s)))
		*start = s.gap.start;
	return found;
}

size_t procedures_all(struct procedures *ps, const struct procedure **out)
{
	if (!ps->all) {
		struct procedure *all = xcalloc(ps->rows.n, sizeof *all);
		for (size_t i = 0; i < ps->rows.n; i++)
			all[i] = *make_row(ps, i);
		ps->all = all;
	}
	*out = ps->all;
	return ps->rows.n;
}

void procedures_search(
	struct procedures *ps, image_likes_fn *likes, image_found_fn *found, void *arg)
{
	for (size_t i = 0; i < ps->rows.n; i++) {
		const struct procedure_row *row = &ps->rows.p[i];
		if (!row->name)
			continue;
		const char *raw = names_get(&ps->names, row->name);
		_cleanup_free_ char *readable = demangled(row, raw);
		if (likes(arg, readable ? readable : raw))
			found(arg, make_row(ps, i));
	}
}

void procedures_forget(struct procedures *ps)
{
	free(ps->all);
	ps->all = NULL;
	hmap_deinit(&ps->made);
	hmap_init(&ps->made, sizeof(struct made), offsetof(struct made, p));
	arena_deinit(&ps->arena);
	names_rest(&ps->names);
}

size_t procedures_memory(const struct procedures *ps)
{
	return ps->rows.space * sizeof *ps->rows.p + ps->fragments.space * sizeof *ps->fragments.p +
	       ps->by_owner.space * sizeof *ps->by_owner.p + ps->areas.space * sizeof *ps->areas.p +
	       names_memory(&ps->names) + ps->arena.used +
	       ps->made.slots * (ps->made.record_size + sizeof *ps->made.hashes) +
	       (ps->all ? ps->rows.n * sizeof *ps->all : 0);
}
