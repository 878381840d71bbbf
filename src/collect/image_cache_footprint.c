#include "collect/image_cache_footprint.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

enum { TAIL_MOST = 32 }; /* new ranges are searched one by one up to here, then sorted in */

void footprint_deinit(struct footprint *f)
{
	vec_each (p, &f->procedures) {
		free(p->ranges);
		free(p->name);
	}
	vec_deinit(&f->procedures);
	vec_deinit(&f->ranges);
	f->sorted = 0;
}

ssize_t footprint_find(const struct footprint *f, uint64_t vaddr)
{
	size_t low = 0, high = f->sorted;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (f->ranges.p[middle].end > vaddr)
			high = middle;
		else
			low = middle + 1;
	}
	if (low < f->sorted && f->ranges.p[low].start <= vaddr)
		return f->ranges.p[low].procedure;
	for (size_t i = f->sorted; i < f->ranges.n; i++) {
		if (f->ranges.p[i].start <= vaddr && vaddr < f->ranges.p[i].end)
			return f->ranges.p[i].procedure;
	}
	return -1;
}

static int compare_ranges(const void *a, const void *b)
{
	const struct seen_range *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* Sorts the tail and merges it in from behind. */
static void settle(struct footprint *f)
{
	struct seen_range tail[TAIL_MOST], *all = f->ranges.p;
	size_t n = f->ranges.n - f->sorted, at = f->ranges.n, i = f->sorted;

	memcpy(tail, all + f->sorted, n * sizeof *tail);
	qsort(tail, n, sizeof *tail, compare_ranges);
	while (n) {
		if (i && all[i - 1].start > tail[n - 1].start)
			all[--at] = all[--i];
		else
			all[--at] = tail[--n];
	}
	f->sorted = f->ranges.n;
}

static void add_range(struct footprint *f, const struct range *r, size_t procedure)
{
	if (f->ranges.n - f->sorted == TAIL_MOST)
		settle(f);
	*vec_add(&f->ranges) = (struct seen_range){
		.start = r->start, .end = r->start + r->size, .procedure = (uint32_t)procedure};
}

size_t footprint_add(struct footprint *f, const struct procedure *p)
{
	size_t n = f->procedures.n;

	*vec_add(&f->procedures) = (struct seen_procedure){.start = p->start,
		.ranges = xmemdup(p->ranges, p->nranges * sizeof *p->ranges),
		.nranges = p->nranges,
		.source = p->source,
		.name = p->name ? xstrdup(p->name) : NULL};
	for (uint32_t i = 0; i < p->nranges; i++)
		add_range(f, &p->ranges[i], n);
	return n;
}

void footprint_begin(struct footprint *f)
{
	vec_each (p, &f->procedures) {
		p->fresh = 0;
		p->storing = p->coding = false;
	}
}

void footprint_flushed(struct footprint *f)
{
	vec_each (p, &f->procedures) {
		p->samples += p->fresh;
		p->fresh = 0;
		p->stored |= p->storing;
		p->coded |= p->coding;
		p->storing = p->coding = false;
		if (p->stored) {
			free(p->name);
			p->name = NULL;
		}
		if (p->stored && p->coded) {
			free(p->ranges);
			p->ranges = NULL;
		}
	}
}

size_t footprint_memory(const struct footprint *f)
{
	size_t bytes = f->procedures.space * sizeof *f->procedures.p +
		       f->ranges.space * sizeof *f->ranges.p;

	vec_each (p, &f->procedures) {
		bytes += p->name ? strlen(p->name) + 16 : 0;
		bytes += p->ranges ? p->nranges * sizeof *p->ranges + 16 : 0;
	}
	return bytes;
}
