#include "store/stays.h"

#include "base/buf.h"
#include "base/mem.h"

#include <errno.h>
#include <stdlib.h>

/*
 * A profile of stays (unpacked):
 *
 *   uleb    number of stays
 *   stays by offset, data before code, each:
 *     uleb    twice the offset less the one before's, and 1 more for code
 *     uleb    kept
 *     uleb    gone
 *
 * 1. Stays ascend: where the offset is that of the one before, this one is code and that one data.
 * 2. Something is not 0.
 * 3. The last stay ends the blob.
 */
#define STAY_LEAST 3 /* bytes of a stay */

/* Sums that no longer fit stay at the most that does. */
static uint64_t add(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static uint64_t sum_of(const struct stay *s)
{
	return add(s->kept, s->gone);
}

static int by_place(const void *a, const void *b)
{
	const struct stay *x = a, *y = b;

	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	return x->is_code < y->is_code ? -1 : x->is_code > y->is_code;
}

size_t stays_settle(struct stay *list, size_t n)
{
	size_t kept = 0;

	if (n)
		qsort(list, n, sizeof *list, by_place);
	for (size_t i = 0; i < n; i++) {
		if (!kept || by_place(&list[kept - 1], &list[i])) {
			list[kept++] = list[i];
			continue;
		}
		list[kept - 1].kept = add(list[kept - 1].kept, list[i].kept);
		list[kept - 1].gone = add(list[kept - 1].gone, list[i].gone);
	}
	return kept;
}

/* ---- writing ---- */

void stays_pack(const struct stay *list, size_t n, struct buf *out)
{
	buf_uleb(out, n);
	for (size_t i = 0; i < n; i++) {
		buf_uleb(out,
			(list[i].offset - (i ? list[i - 1].offset : 0)) << 1 | list[i].is_code);
		buf_uleb(out, list[i].kept);
		buf_uleb(out, list[i].gone);
	}
}

/* ---- reading ---- */

int stay_reader_init(struct stay_reader *r, const void *p, size_t n)
{
	*r = (struct stay_reader){.at = cursor_over(p, n)};
	r->left = cursor_uleb(&r->at);
	if (r->at.failed || r->left > cursor_left(&r->at) / STAY_LEAST)
		return -EBADMSG;
	return 0;
}

int stay_reader_next(struct stay_reader *r, struct stay *out)
{
	struct stay s;
	uint64_t place;

	if (!r->left)
		return cursor_left(&r->at) ? -EBADMSG : 0;
	place = cursor_uleb(&r->at);
	s.is_code = place & 1;
	s.kept = cursor_uleb(&r->at);
	s.gone = cursor_uleb(&r->at);
	if (r->at.failed || !sum_of(&s) ||
		__builtin_add_overflow(r->last.offset, place >> 1, &s.offset) || s.offset >> 63 ||
		(r->begun && by_place(&r->last, &s) >= 0))
		return -EBADMSG;
	r->begun = true;
	r->left--;
	*out = r->last = s;
	return 1;
}

/* ---- as a type of blob ---- */

struct both {
	struct stay *list;
	size_t n;
};

static int read_all(const void *p, size_t n, struct both *to)
{
	struct stay_reader reader;
	int r;

	if (stay_reader_init(&reader, p, n))
		return -EBADMSG;
	to->list = xrealloc(to->list, (to->n + reader.left + 1) * sizeof *to->list);
	while ((r = stay_reader_next(&reader, &to->list[to->n])) > 0)
		to->n++;
	return r;
}

static int stay_merge(const void *a, size_t na, const void *b, size_t nb, struct buf *out)
{
	struct both both = {0};
	int r = read_all(a, na, &both) || read_all(b, nb, &both) ? -EBADMSG : 0;

	if (!r) {
		both.n = stays_settle(both.list, both.n);
		stays_pack(both.list, both.n, out);
	}
	free(both.list);
	return r;
}

static int stay_weight(const void *p, size_t n, uint64_t *times)
{
	struct stay_reader reader;
	struct stay s;
	uint64_t sum = 0;
	int r;

	if (stay_reader_init(&reader, p, n))
		return -EBADMSG;
	while ((r = stay_reader_next(&reader, &s)) > 0)
		sum = add(sum, sum_of(&s));
	if (!r)
		*times = sum;
	return r;
}

static int stay_check(const void *p, size_t n)
{
	uint64_t times;

	return stay_weight(p, n, &times);
}

const struct blob_type blob_stay = {
	.name = "stay",
	.merge = stay_merge,
	.check = stay_check,
	.weight = stay_weight,
};
