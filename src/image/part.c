#include "image/part.h"

uint32_t parts_at(const struct parts *ps, uint64_t vaddr)
{
	size_t low = 0, high = ps->list.n;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (ps->list.p[middle].start <= vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || vaddr - ps->list.p[low - 1].start >= ps->list.p[low - 1].size)
		return PART_NONE;
	return (uint32_t)(low - 1);
}

static int compare_parts(const void *x, const void *y)
{
	const struct part *a = x, *b = y;
	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	if (a->size != b->size)
		return a->size > b->size ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

void parts_settle(struct parts *ps)
{
	vec_sort(&ps->list, compare_parts);
	size_t n = 0;
	for (size_t i = 0; i < ps->list.n; i++) {
		struct part *p = &ps->list.p[i], *last = n ? &ps->list.p[n - 1] : NULL;
		if (!p->size || (last && last->start == p->start))
			continue;
		if (last && last->size > p->start - last->start)
			last->size = p->start - last->start;
		ps->list.p[n++] = *p;
	}
	ps->list.n = n;
}
