#include "store/paces.h"

#include "base/buf.h"
#include "base/mem.h"

#include <errno.h>
#include <stdlib.h>

/*
 * A profile of paces (unpacked):
 *
 *   uleb    number of paces
 *   paces by offset, each:
 *     uleb    offset less the one before's and 1 (less 0 for the first)
 *     uleb    turns
 *     uleb    counted
 *     uleb    seen - 1
 *
 * 1. Offsets ascend.
 * 2. The last pace ends the blob.
 */
#define PACE_LEAST 4 /* bytes of a pace */

/* Sums that no longer fit stay at the most that does. */
static uint64_t add(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static int by_offset(const void *a, const void *b)
{
	const struct pace *x = a, *y = b;

	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static void add_pace(struct pace *to, const struct pace *t)
{
	to->turns = add(to->turns, t->turns);
	to->counted = add(to->counted, t->counted);
	to->seen = add(to->seen, t->seen);
}

size_t paces_settle(struct pace *list, size_t n)
{
	size_t kept = 0;

	if (n)
		qsort(list, n, sizeof *list, by_offset);
	for (size_t i = 0; i < n; i++)
		if (kept && list[kept - 1].offset == list[i].offset)
			add_pace(&list[kept - 1], &list[i]);
		else
			list[kept++] = list[i];
	return kept;
}

/* ---- writing ---- */

void paces_pack(const struct pace *list, size_t n, struct buf *out)
{
	buf_uleb(out, n);
	for (size_t i = 0; i < n; i++) {
		buf_uleb(out, i ? list[i].offset - list[i - 1].offset - 1 : list[i].offset);
		buf_uleb(out, list[i].turns);
		buf_uleb(out, list[i].counted);
		buf_uleb(out, list[i].seen - 1);
	}
}

/* ---- reading ---- */

int pace_reader_init(struct pace_reader *r, const void *p, size_t n)
{
	*r = (struct pace_reader){.at = cursor_over(p, n)};
	r->left = cursor_uleb(&r->at);
	if (r->at.failed || r->left > cursor_left(&r->at) / PACE_LEAST)
		return -EBADMSG;
	return 0;
}

int pace_reader_next(struct pace_reader *r, struct pace *out)
{
	struct pace t;

	if (!r->left)
		return cursor_left(&r->at) ? -EBADMSG : 0;
	if (r->full || __builtin_add_overflow(r->next, cursor_uleb(&r->at), &t.offset))
		return -EBADMSG;
	t.turns = cursor_uleb(&r->at);
	t.counted = cursor_uleb(&r->at);
	if (__builtin_add_overflow(cursor_uleb(&r->at), 1, &t.seen) || r->at.failed)
		return -EBADMSG;
	r->full = t.offset == UINT64_MAX;
	r->next = t.offset + 1;
	r->left--;
	*out = t;
	return 1;
}

/* ---- as a type of blob ---- */

struct both {
	struct pace *list;
	size_t n;
};

static int read_all(const void *p, size_t n, struct both *to)
{
	struct pace_reader reader;
	int r;

	if (pace_reader_init(&reader, p, n))
		return -EBADMSG;
	to->list = xrealloc(to->list, (to->n + reader.left + 1) * sizeof *to->list);
	while ((r = pace_reader_next(&reader, &to->list[to->n])) > 0)
		to->n++;
	return r;
}

static int pace_merge(const void *a, size_t na, const void *b, size_t nb, struct buf *out)
{
	struct both both = {0};
	int r = read_all(a, na, &both) || read_all(b, nb, &both) ? -EBADMSG : 0;

	if (!r) {
		both.n = paces_settle(both.list, both.n);
		paces_pack(both.list, both.n, out);
	}
	free(both.list);
	return r;
}

static int pace_weight(const void *p, size_t n, uint64_t *samples)
{
	struct pace_reader reader;
	struct pace t;
	uint64_t sum = 0;
	int r;

	if (pace_reader_init(&reader, p, n))
		return -EBADMSG;
	while ((r = pace_reader_next(&reader, &t)) > 0)
		sum = add(sum, t.seen);
	if (!r)
		*samples = sum;
	return r;
}

static int pace_check(const void *p, size_t n)
{
	uint64_t samples;

	return pace_weight(p, n, &samples);
}

const struct blob_type blob_turns = {
	.name = "turns",
	.merge = pace_merge,
	.check = pace_check,
	.weight = pace_weight,
};

const struct blob_type blob_pace = {
	.name = "pace",
	.merge = pace_merge,
	.check = pace_check,
	.weight = pace_weight,
};
