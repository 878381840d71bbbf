#include "edit/debug_map.h"

#include "edit/edit_internal.h"

#include <stdlib.h>

static int compare_spans(const void *a, const void *b)
{
	const struct edit_span *x = a, *y = b;

	if (x->old != y->old)
		return x->old < y->old ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

static int compare_pieces(const void *a, const void *b)
{
	const struct debug_piece *x = a, *y = b;

	if (x->old != y->old)
		return x->old < y->old ? -1 : 1;
	return x->fragment->twin - y->fragment->twin;
}

static void sort_part(span_list *list, const struct debug_part *part)
{
	if (part->first < part->end)
		qsort(list->p + part->first, part->end - part->first, sizeof *list->p,
			compare_spans);
}

static void add_piece(struct debug_map *m, const struct edit *e, const struct edit_fragment *f)
{
	const struct home *home = edit_home(e, f->old_start);
	struct debug_piece piece = {.old = f->old_start,
		.fragment = f,
		.copied.first = m->copied.n,
		.added.first = m->added.n};

	if (!home || !f->nspans)
		return;
	piece.old_end = home->start + home->size;
	for (size_t i = 0; i < f->nspans; i++)
		*vec_add(f->spans[i].copied ? &m->copied : &m->added) = f->spans[i];
	piece.copied.end = m->copied.n;
	piece.added.end = m->added.n;
	sort_part(&m->copied, &piece.copied);
	sort_part(&m->added, &piece.added);
	*vec_add(&m->pieces) = piece;
}

void debug_map_init(
	struct debug_map *m, const struct edit *e, const struct edit_fragment *fragments, size_t n)
{
	*m = (struct debug_map){0};
	for (size_t i = 0; i < n; i++)
		add_piece(m, e, &fragments[i]);
	vec_sort(&m->pieces, compare_pieces);
}

void debug_map_deinit(struct debug_map *m)
{
	vec_deinit(&m->pieces);
	vec_deinit(&m->copied);
	vec_deinit(&m->added);
}

size_t debug_map_from(const struct debug_map *m, uint64_t old)
{
	size_t low = 0, high = m->pieces.n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (m->pieces.p[middle].old_end <= old)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct debug_piece *debug_map_piece(const struct debug_map *m, uint64_t old)
{
	size_t i = debug_map_from(m, old);

	return i < m->pieces.n && m->pieces.p[i].old <= old && !m->pieces.p[i].fragment->twin
		       ? &m->pieces.p[i]
		       : NULL;
}

/* The first of the spans from an old address on. */
static size_t find_span(const span_list *list, const struct debug_part *part, uint64_t old)
{
	size_t low = part->first, high = part->end;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (list->p[middle].old < old)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* What was added right before an instruction belongs to it; what is elsewhere does not. */
static uint64_t with_added(
	const struct debug_map *m, const struct debug_piece *p, uint64_t old, uint64_t at)
{
	size_t first = find_span(&m->added, &p->added, old), i = first;

	while (i < p->added.end && m->added.p[i].old == old)
		i++;
	for (; i-- > first;)
		if (m->added.p[i].at + m->added.p[i].size == at)
			at = m->added.p[i].at;
	return at;
}

uint64_t debug_piece_at(const struct debug_map *m, const struct debug_piece *p, uint64_t old)
{
	size_t copy = find_span(&m->copied, &p->copied, old + 1);
	size_t next = find_span(&m->added, &p->added, old);

	if (old <= p->old)
		return p->fragment->start;
	if (copy > p->copied.first && old - m->copied.p[copy - 1].old < m->copied.p[copy - 1].size)
		return with_added(
			m, p, old, m->copied.p[copy - 1].at + (old - m->copied.p[copy - 1].old));
	/* A branch that grew, or what was left out: then what comes behind it. */
	if (next < p->added.end && (m->added.p[next].old == old || copy == p->copied.end ||
					   m->added.p[next].old < m->copied.p[copy].old))
		return m->added.p[next].at;
	return copy < p->copied.end ? m->copied.p[copy].at : p->fragment->start + p->fragment->size;
}

uint64_t debug_map_start(const struct debug_map *m, uint64_t old)
{
	const struct debug_piece *p = debug_map_piece(m, old);

	return p ? debug_piece_at(m, p, old) : old;
}

static uint64_t end_in(const struct debug_map *m, const struct debug_piece *p, uint64_t old)
{
	return old >= p->old_end ? p->fragment->start + p->fragment->size
				 : debug_piece_at(m, p, old);
}

uint64_t debug_map_end(const struct debug_map *m, uint64_t old)
{
	const struct debug_piece *p = old ? debug_map_piece(m, old - 1) : NULL;

	return p ? end_in(m, p, old) : old;
}

static void add_range(range_list *out, uint64_t start, uint64_t end)
{
	if (start < end)
		*vec_add(out) = (struct range){.start = start, .size = end - start};
}

void debug_map_range(
	const struct debug_map *m, uint64_t start, uint64_t end, bool twins, range_list *out)
{
	uint64_t at = start;

	for (size_t i = debug_map_from(m, start); i < m->pieces.n; i++) {
		const struct debug_piece *p = &m->pieces.p[i];

		if (p->old >= end)
			break;
		if (p->fragment->twin && !twins)
			continue;
		add_range(out, at, p->old);
		add_range(out, start <= p->old ? p->fragment->start : debug_piece_at(m, p, start),
			end_in(m, p, end));
		at = p->old_end > at ? p->old_end : at;
	}
	add_range(out, at, end);
}
