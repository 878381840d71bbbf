#include "analyze/codemap.h"

#include "base/vec.h"

#include <stdbool.h>
#include <stdlib.h>

typedef VEC(struct code_range) range_list;

/* Outer ranges before the inner ones that start at the same address. */
static int range_compare(const void *a, const void *b)
{
	const struct code_range *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->end == y->end ? 0 : x->end > y->end ? -1 : 1;
}

static void gather(range_list *out, const struct procedure *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		for (uint32_t j = 0; j < list[i].nranges; j++) {
			const struct range *r = &list[i].ranges[j];
			if (r->size && r->start + r->size > r->start)
				*vec_add(out) = (struct code_range){
					r->start, r->start + r->size, (uint32_t)i};
		}
	}
	vec_sort(out, range_compare);
}

/* Adds what `r` covers from *pos up to `end`, and moves *pos there. */
static void emit(range_list *out, uint64_t *pos, uint64_t end, const struct code_range *r)
{
	uint64_t start = *pos > r->start ? *pos : r->start;

	if (end > r->end)
		end = r->end;
	if (start >= end)
		return;
	*vec_add(out) = (struct code_range){start, end, r->procedure};
	*pos = end;
}

/* A sweep with the stack of ranges that are open: the top one, which started last, has the code. */
static void make_disjoint(range_list *in, range_list *out)
{
	range_list open = {0};
	uint64_t pos = 0;

	vec_each (r, in) {
		while (open.n && open.p[open.n - 1].end <= r->start) {
			emit(out, &pos, r->start, &open.p[open.n - 1]);
			open.n--;
		}
		if (open.n)
			emit(out, &pos, r->start, &open.p[open.n - 1]);
		*vec_add(&open) = *r;
	}
	while (open.n) {
		emit(out, &pos, UINT64_MAX, &open.p[open.n - 1]);
		open.n--;
	}
	vec_deinit(&open);
}

void code_map_init(struct code_map *m, const struct procedure *list, size_t n)
{
	range_list all = {0}, disjoint = {0};

	gather(&all, list, n);
	make_disjoint(&all, &disjoint);
	vec_deinit(&all);
	m->ranges = disjoint.p;
	m->n = disjoint.n;
}

void code_map_deinit(struct code_map *m)
{
	free(m->ranges);
	*m = (struct code_map){0};
}

struct code_walk code_walk_start(
	const struct code_map *m, const struct segment *segments, size_t nsegments)
{
	return (struct code_walk){.map = m, .segments = segments, .nsegments = nsegments};
}

static bool in_segment(const struct segment *s, uint64_t offset)
{
	return offset >= s->offset && offset - s->offset < s->size;
}

static bool walk_vaddr(struct code_walk *w, uint64_t offset, uint64_t *vaddr)
{
	*vaddr = offset;
	if (!w->nsegments)
		return true;
	if (!w->segment || !in_segment(w->segment, offset)) {
		w->segment = NULL;
		for (size_t i = 0; i < w->nsegments && !w->segment; i++)
			if (in_segment(&w->segments[i], offset))
				w->segment = &w->segments[i];
		if (!w->segment)
			return false;
	}
	*vaddr = offset - w->segment->offset + w->segment->vaddr;
	return true;
}

/* The last range that starts at or before vaddr (or the first of all). */
static size_t search(const struct code_map *m, uint64_t vaddr)
{
	size_t low = 0, high = m->n;

	while (high - low > 1) {
		size_t mid = low + (high - low) / 2;
		if (m->ranges[mid].start <= vaddr)
			low = mid;
		else
			high = mid;
	}
	return low;
}

uint32_t code_walk_to(struct code_walk *w, uint64_t offset, uint64_t *vaddr)
{
	enum { NEAR = 8 };
	const struct code_map *m = w->map;

	if (!walk_vaddr(w, offset, vaddr) || !m->n)
		return CODE_NOWHERE;
	if (*vaddr < m->ranges[w->at].start)
		w->at = search(m, *vaddr);
	for (int i = 0; i < NEAR && w->at + 1 < m->n && *vaddr >= m->ranges[w->at + 1].start; i++)
		w->at++;
	if (w->at + 1 < m->n && *vaddr >= m->ranges[w->at + 1].start)
		w->at = search(m, *vaddr);

	const struct code_range *r = &m->ranges[w->at];
	return *vaddr >= r->start && *vaddr < r->end ? r->procedure : CODE_NOWHERE;
}
