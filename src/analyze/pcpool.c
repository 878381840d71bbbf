#include "analyze/pcpool.h"

#include <stdlib.h>

static int compare_sums(const void *a, const void *b)
{
	const struct pc_sum *x = a, *y = b;

	if (x->vaddr != y->vaddr)
		return x->vaddr < y->vaddr ? -1 : 1;
	return x->event < y->event ? -1 : x->event > y->event;
}

void pc_pool_add(struct pc_pool *p, uint64_t vaddr, uint32_t event, uint64_t count)
{
	enum { ENOUGH = 4096 };

	/* Summing up whenever the list has doubled keeps it within twice what is distinct. */
	if (p->list.n >= ENOUGH && p->list.n >= 2 * p->settled)
		pc_pool_settle(p);
	*vec_add(&p->list) = (struct pc_sum){vaddr, count, event};
}

void pc_pool_settle(struct pc_pool *p)
{
	size_t kept = 0;

	vec_sort(&p->list, compare_sums);
	for (size_t i = 0; i < p->list.n; i++) {
		struct pc_sum *s = &p->list.p[i];
		if (kept && !compare_sums(&p->list.p[kept - 1], s))
			p->list.p[kept - 1].count += s->count;
		else
			p->list.p[kept++] = *s;
	}
	p->list.n = p->settled = kept;
}

void pc_pool_deinit(struct pc_pool *p)
{
	vec_deinit(&p->list);
}
