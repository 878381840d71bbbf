#include "image/procedures.h"

#include <string.h>

#include "image/demangle.h"

#define ROW_SIZE_MAX ((UINT64_C(1) << 56) - 1)

/* Of all names together: a file can make a million symbols share one long string. */
enum { NAMES_MAX = 64 << 20 };

struct made {
	uint64_t start;
	const struct procedure *p;
};

void procedures_deinit(struct procedures *ps)
{
	vec_deinit(&ps->rows);
	vec_deinit(&ps->fragments);
	vec_deinit(&ps->areas);
	buf_deinit(&ps->names);
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

static uint32_t add_name(struct procedures *ps, const char *name, size_t n)
{
	if (!name || !n || ps->names.n + n > NAMES_MAX)
		return 0;
	if (!ps->names.n)
		buf_u8(&ps->names, 0);
	uint32_t at = (uint32_t)ps->names.n;
	buf_put(&ps->names, name, n);
	buf_u8(&ps->names, 0);
	return at;
}

void procedures_add(struct procedures *ps, uint64_t start, uint64_t size,
	enum procedure_source source, const char *name, size_t name_size)
{
	if (ps->rows.n) {
		struct procedure_row *last = &ps->rows.p[ps->rows.n - 1];
		if (start <= last->start)
			return;
		if (last->size > start - last->start)
			last->size = start - last->start;
	}
	if (!size)
		return;
	*vec_add(&ps->rows) = (struct procedure_row){
		.start = start,
		.size = size < ROW_SIZE_MAX ? size : ROW_SIZE_MAX,
		.source = source,
		.name = add_name(ps, name, name_size),
	};
}

void procedures_add_fragment(struct procedures *ps, uint32_t owner, uint64_t start, uint64_t size)
{
	*vec_add(&ps->fragments) =
		(struct fragment_row){.start = start, .size = size, .owner = owner};
}

#define vec_shrink(v)                                                                          \
	((v)->n ? ((v)->p = xrealloc((v)->p, ((v)->space = (v)->n) * sizeof *(v)->p), (void)0) \
		: vec_deinit(v))

void procedures_finish(struct procedures *ps)
{
	for (size_t i = ps->fragments.n; i-- > 0;) {
		struct fragment_row *f = &ps->fragments.p[i];
		f->next = ps->rows.p[f->owner].fragment;
		ps->rows.p[f->owner].fragment = (uint32_t)i + 1;
	}
	vec_shrink(&ps->rows);
	vec_shrink(&ps->fragments);
	vec_shrink(&ps->areas);
	vec_shrink(&ps->names);
	hmap_init(&ps->made, sizeof(struct made), offsetof(struct made, p));
}

/* ---- asking ---- */

/* The number of elements whose start is not above vaddr; all arrays here begin with a start. */
static size_t count_up_to(const void *array, size_t n, size_t size, uint64_t vaddr)
{
	size_t low = 0;
	while (low < n) {
		size_t middle = low + (n - low) / 2;
		uint64_t start;
		memcpy(&start, (const char *)array + middle * size, sizeof start);
		if (start <= vaddr)
			low = middle + 1;
		else
			n = middle;
	}
	return low;
}

#define vec_up_to(v, vaddr) count_up_to((v)->p, (v)->n, sizeof *(v)->p, vaddr)

/* The names of a JIT are made for people, and may hold what looks like a version. */
static const char *readable_name(struct procedures *ps, const struct procedure_row *row)
{
	if (!row->name)
		return NULL;
	const char *raw = (const char *)ps->names.p + row->name;
	_cleanup_free_ char *readable = row->source == PROCEDURE_JIT ? NULL : demangle(raw);
	return readable ? arena_strdup(&ps->arena, readable) : raw;
}

static void fill(struct procedures *ps, const struct procedure_row *row, struct procedure *p)
{
	uint32_t n = 1;
	for (uint32_t f = row->fragment; f; f = ps->fragments.p[f - 1].next)
		n++;
	struct range *ranges = arena_alloc(&ps->arena, n * sizeof *ranges);
	ranges[0] = (struct range){.start = row->start, .size = row->size};
	n = 1;
	for (uint32_t f = row->fragment; f; f = ps->fragments.p[f - 1].next) {
		const struct fragment_row *fragment = &ps->fragments.p[f - 1];
		ranges[n++] = (struct range){.start = fragment->start, .size = fragment->size};
	}
	*p = (struct procedure){
		.start = row->start,
		.ranges = ranges,
		.nranges = n,
		.source = row->source,
		.name = readable_name(ps, row),
	};
}

static const struct procedure *make(struct procedures *ps, const struct procedure_row *row)
{
	bool fresh;
	struct made *m = hmap_put(&ps->made, &row->start, &fresh);
	if (fresh) {
		struct procedure *p = arena_alloc(&ps->arena, sizeof *p);
		fill(ps, row, p);
		m->p = p;
	}
	return m->p;
}

static const struct procedure *make_row(struct procedures *ps, size_t i)
{
	return ps->all ? &ps->all[i] : make(ps, &ps->rows.p[i]);
}

/* row and fragment count those that start at or before vaddr; none covers it. */
static const struct procedure *make_gap(
	struct procedures *ps, uint64_t vaddr, size_t row, size_t fragment)
{
	size_t area = vec_up_to(&ps->areas, vaddr);
	if (!area || vaddr - ps->areas.p[area - 1].start >= ps->areas.p[area - 1].size)
		return NULL;
	uint64_t start = ps->areas.p[area - 1].start;
	uint64_t end = start + ps->areas.p[area - 1].size;

	if (row && ps->rows.p[row - 1].start + ps->rows.p[row - 1].size > start)
		start = ps->rows.p[row - 1].start + ps->rows.p[row - 1].size;
	if (fragment) {
		const struct fragment_row *f = &ps->fragments.p[fragment - 1];
		start = f->start + f->size > start ? f->start + f->size : start;
	}
	if (row < ps->rows.n && ps->rows.p[row].start < end)
		end = ps->rows.p[row].start;
	if (fragment < ps->fragments.n && ps->fragments.p[fragment].start < end)
		end = ps->fragments.p[fragment].start;
	struct procedure_row gap = {.start = start, .source = PROCEDURE_GAP};
	gap.size = end - start < ROW_SIZE_MAX ? end - start : ROW_SIZE_MAX;
	return make(ps, &gap);
}

const struct procedure *procedures_at(struct procedures *ps, uint64_t vaddr)
{
	size_t row = vec_up_to(&ps->rows, vaddr);
	if (row && vaddr - ps->rows.p[row - 1].start < ps->rows.p[row - 1].size)
		return make_row(ps, row - 1);
	size_t fragment = vec_up_to(&ps->fragments, vaddr);
	if (fragment) {
		const struct fragment_row *f = &ps->fragments.p[fragment - 1];
		if (vaddr - f->start < f->size)
			return make_row(ps, f->owner);
	}
	return make_gap(ps, vaddr, row, fragment);
}

size_t procedures_all(struct procedures *ps, const struct procedure **out)
{
	if (!ps->all) {
		struct procedure *all = xcalloc(ps->rows.n, sizeof *all);
		for (size_t i = 0; i < ps->rows.n; i++)
			all[i] = *make(ps, &ps->rows.p[i]);
		ps->all = all;
	}
	*out = ps->all;
	return ps->rows.n;
}

size_t procedures_memory(const struct procedures *ps)
{
	return ps->rows.space * sizeof *ps->rows.p + ps->fragments.space * sizeof *ps->fragments.p +
	       ps->areas.space * sizeof *ps->areas.p + ps->names.space + ps->arena.used +
	       ps->made.slots * (ps->made.record_size + sizeof *ps->made.hashes) +
	       (ps->all ? ps->rows.n * sizeof *ps->all : 0);
}
