#include "collect/anchor_pool.h"

#include <stdlib.h>

void anchor_pool_init(struct anchor_pool *p, uint64_t seed)
{
	*p = (struct anchor_pool){.reservoir.random = seed};
}

void anchor_pool_deinit(struct anchor_pool *p)
{
	vec_deinit(&p->list);
}

void anchor_pool_clear(struct anchor_pool *p)
{
	p->list.n = 0;
	p->reservoir.seen = p->written = 0;
}

void anchor_pool_add(
	struct anchor_pool *p, uint32_t image, uint32_t who, const struct anchor *anchor)
{
	size_t at = reservoir_place(&p->reservoir, ANCHORS_MOST);
	struct pooled_anchor *to;

	if (at == RESERVOIR_NONE)
		return;
	to = at == p->list.n ? vec_add(&p->list) : &p->list.p[at];
	*to = (struct pooled_anchor){.image = image, .who = who, .anchor = *anchor};
}

static int compare_groups(const struct pooled_anchor *a, const struct pooled_anchor *b)
{
	if (a->image != b->image)
		return a->image < b->image ? -1 : 1;
	return a->who < b->who ? -1 : a->who > b->who;
}

static int compare_pooled(const void *a, const void *b)
{
	const struct pooled_anchor *x = a, *y = b;
	int order = compare_groups(x, y);

	return order ? order : anchor_compare(&x->anchor, &y->anchor);
}

void anchor_pool_settle(struct anchor_pool *p)
{
	p->written = 0;
	vec_sort(&p->list, compare_pooled);
	for (size_t i = 0; i < p->list.n; i++)
		p->list.p[i].anchor.weight = reservoir_weight(&p->reservoir, i, p->list.n);
}

size_t anchor_pool_find(const struct anchor_pool *p, uint32_t image, uint32_t who,
	const struct pooled_anchor **first)
{
	const struct pooled_anchor key = {.image = image, .who = who};
	size_t low = 0, high = p->list.n, n = 0;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare_groups(&p->list.p[middle], &key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	*first = p->list.p + low;
	while (low + n < p->list.n && !compare_groups(&p->list.p[low + n], &key))
		n++;
	return n;
}

size_t anchor_pool_memory(const struct anchor_pool *p)
{
	return p->list.space * sizeof *p->list.p;
}
