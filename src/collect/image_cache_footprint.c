#include "collect/image_cache_footprint.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

enum { TAIL_MOST = 32 }; /* new ranges are searched one by one up to here, then sorted in */

/* They are kept for good: room for an eighth more is enough, where arrays usually double. */
#define make_room(v)                                                            \
	do {                                                                    \
		if ((v)->n == (v)->space) {                                     \
			(v)->space += (v)->space / 8 + 4;                       \
			(v)->p = xrealloc((v)->p, (v)->space * sizeof *(v)->p); \
		}                                                               \
	} while (0)

static void drop_detail(struct seen_procedure *p)
{
	if (!p->detailed)
		return;
	free(p->detail->name);
	free(p->detail);
	p->size = 0;
	p->detailed = false;
}

void footprint_deinit(struct footprint *f)
{
	vec_each (p, &f->procedures)
		drop_detail(p);
	vec_deinit(&f->procedures);
	vec_deinit(&f->ranges);
	f->sorted = 0;
}

static bool holds(const struct seen_range *r, uint64_t vaddr)
{
	return vaddr - r->start < r->size;
}

ssize_t footprint_find(const struct footprint *f, uint64_t vaddr)
{
	size_t low = 0, high = f->sorted;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (f->ranges.p[middle].start > vaddr)
			high = middle;
		else
			low = middle + 1;
	}
	if (low && holds(&f->ranges.p[low - 1], vaddr))
		return f->ranges.p[low - 1].procedure;
	for (size_t i = f->sorted; i < f->ranges.n; i++) {
		if (holds(&f->ranges.p[i], vaddr))
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
	make_room(&f->ranges);
	*vec_add(&f->ranges) = (struct seen_range){.start = r->start,
		.size = r->size < UINT32_MAX ? (uint32_t)r->size : UINT32_MAX,
		.procedure = (uint32_t)procedure};
}

size_t footprint_add(struct footprint *f, const struct procedure *p)
{
	size_t n = f->procedures.n, bytes = p->nranges * sizeof *p->ranges;
	struct seen_detail *d = xmalloc(sizeof *d + bytes);

	d->name = p->name ? xstrdup(p->name) : NULL;
	memcpy(d->ranges, p->ranges, bytes);
	make_room(&f->procedures);
	*vec_add(&f->procedures) = (struct seen_procedure){.start = p->start,
		.detail = d,
		.detailed = true,
		.nranges = p->nranges,
		.source = (uint8_t)p->source};
	for (uint32_t i = 0; i < p->nranges; i++)
		add_range(f, &p->ranges[i], n);
	return n;
}

const struct range *seen_ranges(const struct seen_procedure *p, struct range *only)
{
	if (p->detailed)
		return p->detail->ranges;
	*only = (struct range){.start = p->start, .size = p->size};
	return only;
}

const char *seen_name(const struct seen_procedure *p)
{
	return p->detailed ? p->detail->name : NULL;
}

void footprint_begin(struct footprint *f)
{
	vec_each (p, &f->procedures) {
		p->fresh = 0;
		p->storing = p->coding = false;
	}
}

/* Keeps no more than a later flush can want. */
static void forget_detail(struct seen_procedure *p)
{
	if (p->nranges == 1 && p->detail->ranges[0].start == p->start) {
		uint64_t size = p->detail->ranges[0].size;

		drop_detail(p);
		p->size = size;
	} else if (p->coded) {
		drop_detail(p);
	} else {
		free(p->detail->name);
		p->detail->name = NULL;
	}
}

void footprint_flushed(struct footprint *f)
{
	vec_each (p, &f->procedures) {
		p->samples +=
			p->fresh < UINT32_MAX - p->samples ? p->fresh : UINT32_MAX - p->samples;
		p->fresh = 0;
		p->stored |= p->storing;
		p->coded |= p->coding;
		p->storing = p->coding = false;
		if (p->stored && p->detailed)
			forget_detail(p);
	}
}

size_t footprint_memory(const struct footprint *f)
{
	size_t bytes = f->procedures.space * sizeof *f->procedures.p +
		       f->ranges.space * sizeof *f->ranges.p;

	vec_each (p, &f->procedures) {
		if (!p->detailed)
			continue;
		bytes += sizeof *p->detail + p->nranges * sizeof *p->detail->ranges + 16;
		bytes += p->detail->name ? strlen(p->detail->name) + 16 : 0;
	}
	return bytes;
}
