#include "collect/excursion_pool.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>

void excursion_pool_init(struct excursion_pool *p, uint64_t seed)
{
	*p = (struct excursion_pool){.reservoir.random = seed, .most = EXCURSION_POOL};
}

void excursion_pool_clear(struct excursion_pool *p)
{
	vec_each (x, &p->list)
		free(x->transfers);
	p->list.n = 0;
	p->most = EXCURSION_POOL;
	p->reservoir.seen = 0;
	p->transfers = 0;
}

void excursion_pool_deinit(struct excursion_pool *p)
{
	excursion_pool_clear(p);
	vec_deinit(&p->list);
}

static int compare(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int by_place(const void *a, const void *b)
{
	const struct pooled_transfer *x = a, *y = b;
	int order = compare(x->image, y->image);

	if (!order)
		order = compare(x->stretch, y->stretch);
	if (!order)
		order = compare(x->from, y->from);
	if (!order)
		order = compare(x->target, y->target);
	return order ? order : compare(x->to, y->to);
}

/* Any one; what is left is as uniform a sample. */
static void drop(struct excursion_pool *p)
{
	struct pooled_excursion *x = &p->list.p[reservoir_below(&p->reservoir, p->list.n)];

	p->transfers -= x->ntransfers;
	free(x->transfers);
	*x = p->list.p[--p->list.n];
	p->most = p->list.n;
}

void excursion_pool_add(struct excursion_pool *p, const struct pooled_excursion *x)
{
	size_t place = reservoir_place(&p->reservoir, p->most);
	struct pooled_excursion *to;

	if (place == RESERVOIR_NONE) {
		free(x->transfers);
		return;
	}
	if (place == p->list.n) {
		to = vec_add(&p->list);
	} else {
		to = &p->list.p[place];
		p->transfers -= to->ntransfers;
		free(to->transfers);
	}
	*to = *x;
	qsort(to->transfers, to->ntransfers, sizeof *to->transfers, by_place);
	p->transfers += to->ntransfers;
	while (p->transfers > EXCURSION_TRANSFERS && p->list.n > 1)
		drop(p);
}

static int by_number(const void *a, const void *b)
{
	const struct pooled_excursion *x = a, *y = b;

	return compare(x->number, y->number);
}

void excursion_pool_settle(struct excursion_pool *p)
{
	double more = p->list.n ? (double)p->reservoir.seen / (double)p->list.n : 1;

	vec_sort(&p->list, by_number);
	vec_each (x, &p->list)
		x->weight = (uint64_t)fmin((double)x->weight * more, 0x1p62);
	p->reservoir.seen = p->list.n; /* a flush that failed comes again */
}

size_t pooled_excursion_of(const struct pooled_excursion *x, uint32_t image, uint32_t stretch,
	const struct pooled_transfer **first)
{
	const struct pooled_transfer key = {.image = image, .stretch = stretch};
	size_t low = 0, high = x->ntransfers, n = 0;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (by_place(&x->transfers[middle], &key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	*first = x->transfers + low;
	while (low + n < x->ntransfers && x->transfers[low + n].image == image &&
		x->transfers[low + n].stretch == stretch)
		n++;
	return n;
}

size_t excursion_pool_memory(const struct excursion_pool *p)
{
	return p->list.space * sizeof *p->list.p + p->transfers * sizeof(struct pooled_transfer);
}
