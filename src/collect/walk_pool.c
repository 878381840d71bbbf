#include "collect/walk_pool.h"

#include "base/mem.h"

#include <stdlib.h>

void walk_pool_init(struct walk_pool *p, uint64_t seed)
{
	p->list.p = NULL;
	p->list.n = p->list.space = 0;
	p->reservoir = (struct reservoir){.random = seed};
	p->bytes = 0;
}

void walk_pool_clear(struct walk_pool *p)
{
	vec_each (w, &p->list)
		free(w->steps);
	p->list.n = 0;
	p->reservoir.seen = 0;
	p->bytes = 0;
}

void walk_pool_deinit(struct walk_pool *p)
{
	walk_pool_clear(p);
	vec_deinit(&p->list);
}

bool walk_pool_begin(struct walk_pool *p, uint32_t image, uint32_t who, uint64_t start)
{
	p->place = reservoir_place(&p->reservoir, WALK_POOL);
	p->next = (struct pooled_walk){.image = image, .who = who, .start = start};
	return p->place != RESERVOIR_NONE;
}

bool walk_pool_step(struct walk_pool *p, uint64_t from, uint32_t target, uint64_t to)
{
	if (p->next.nsteps == WALK_STEPS)
		return false;
	p->steps[p->next.nsteps++] = (struct pooled_step){.from = from, .to = to, .target = target};
	return true;
}

void walk_pool_void(struct walk_pool *p)
{
	p->reservoir.seen--;
}

void walk_pool_end(struct walk_pool *p, uint32_t instructions)
{
	size_t size = p->next.nsteps * sizeof *p->steps;
	struct pooled_walk *to;

	if (!p->next.nsteps && !instructions) {
		walk_pool_void(p);
		return;
	}
	if (p->place == p->list.n) {
		to = vec_add(&p->list);
	} else {
		to = &p->list.p[p->place];
		p->bytes -= to->nsteps * sizeof *p->steps;
		free(to->steps);
	}
	*to = p->next;
	to->instructions = instructions;
	to->steps = size ? xmemdup(p->steps, size) : NULL;
	p->bytes += size;
}

static int compare_groups(const void *a, const void *b)
{
	const struct pooled_walk *x = a, *y = b;

	if (x->image != y->image)
		return x->image < y->image ? -1 : 1;
	return x->who < y->who ? -1 : x->who > y->who;
}

void walk_pool_settle(struct walk_pool *p)
{
	vec_sort(&p->list, compare_groups);
	for (size_t i = 0; i < p->list.n; i++)
		p->list.p[i].weight = reservoir_weight(&p->reservoir, i, p->list.n);
}

size_t walk_pool_find(
	const struct walk_pool *p, uint32_t image, uint32_t who, const struct pooled_walk **first)
{
	const struct pooled_walk key = {.image = image, .who = who};
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

size_t walk_pool_memory(const struct walk_pool *p)
{
	return p->list.space * sizeof *p->list.p + p->bytes;
}
