#include "collect/walk_pool.h"

#include "base/cursor.h"
#include "base/mem.h"

#include <stdlib.h>

void walk_pool_init(struct walk_pool *p, uint64_t seed)
{
	*p = (struct walk_pool){.reservoir.random = seed};
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
	buf_deinit(&p->steps);
}

bool walk_pool_begin(struct walk_pool *p, uint32_t image, uint32_t who, uint64_t start)
{
	p->place = reservoir_place(&p->reservoir, WALK_POOL);
	p->next = (struct pooled_walk){.image = image, .who = who, .start = start};
	p->steps.n = 0;
	p->last = start;
	return p->place != RESERVOIR_NONE;
}

bool walk_pool_step(struct walk_pool *p, uint64_t from, uint32_t target, uint64_t to)
{
	if (p->next.nsteps == WALK_STEPS)
		return false;
	p->next.nsteps++;
	buf_sleb(&p->steps, (int64_t)(from - p->last));
	buf_sleb(&p->steps, (int64_t)(to - from));
	buf_uleb(&p->steps, target);
	p->last = to;
	return true;
}

void walk_pool_void(struct walk_pool *p)
{
	p->reservoir.seen--;
}

void walk_pool_end(struct walk_pool *p, uint32_t instructions)
{
	struct pooled_walk *to;

	if (!p->next.nsteps && !instructions) {
		walk_pool_void(p);
		return;
	}
	if (p->place == p->list.n) {
		to = vec_add(&p->list);
	} else {
		to = &p->list.p[p->place];
		p->bytes -= to->size;
		free(to->steps);
	}
	*to = p->next;
	to->instructions = instructions;
	to->size = (uint32_t)p->steps.n;
	to->steps = to->size ? xmemdup(p->steps.p, to->size) : NULL;
	p->bytes += to->size;
}

void pooled_walk_steps(const struct pooled_walk *w, struct pooled_step *out)
{
	struct cursor c = cursor_over(w->steps, w->size);
	uint64_t last = w->start;

	for (uint32_t i = 0; i < w->nsteps; i++) {
		out[i].from = last + (uint64_t)cursor_sleb(&c);
		out[i].to = last = out[i].from + (uint64_t)cursor_sleb(&c);
		out[i].target = (uint32_t)cursor_uleb(&c);
	}
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
