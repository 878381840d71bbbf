#include "store/anchors.h"

#include "base/buf.h"
#include "base/mem.h"
#include "store/thin.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * A profile of anchors (unpacked):
 *
 *   uleb    number of anchors
 *   anchors, in the order of anchor_compare, each:
 *     uleb    pc less the one before's (less 0 for the first)
 *     sleb    last - pc modulo 2^64
 *     u8      bit 0: switched; bit 1: there were samples in the kernel; bit 2: it stands for more
 *             than one
 *     uleb    between
 *     uleb    kernel - 1, only with bit 1
 *     uleb    weight - 2, only with bit 2
 *     uleb    changed
 *     uleb    changed and not known
 *     sleb    difference of each that is known, by number
 *
 * 1. There are at most ANCHORS_MOST.
 * 2. What is not known is among what changed, and no difference is 0.
 * 3. Anchors ascend; two may be equal.
 * 4. The last anchor ends the blob.
 */
#define ANCHOR_SWITCHED 0x01
#define ANCHOR_KERNEL   0x02
#define ANCHOR_MANY     0x04
#define ANCHOR_LEAST    6 /* bytes of an anchor */

static int compare_numbers(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

int anchor_compare(const void *a, const void *b)
{
	const struct anchor *x = a, *y = b;
	int order = compare_numbers(x->pc, y->pc);

	if (!order)
		order = compare_numbers(x->last, y->last);
	if (!order)
		order = compare_numbers(x->between, y->between);
	if (!order)
		order = compare_numbers(x->kernel, y->kernel);
	if (!order)
		order = compare_numbers(x->switched, y->switched);
	if (!order)
		order = compare_numbers(x->changed, y->changed);
	if (!order)
		order = compare_numbers(x->known, y->known);
	for (size_t i = 0; !order && i < ANCHOR_REGISTERS; i++)
		order = compare_numbers((uint64_t)x->difference[i], (uint64_t)y->difference[i]);
	return order;
}

/* ---- writing ---- */

static void put_anchor(struct buf *out, uint64_t before, const struct anchor *a)
{
	buf_uleb(out, a->pc - before);
	buf_sleb(out, (int64_t)(a->last - a->pc));
	buf_u8(out, (uint8_t)((a->switched ? ANCHOR_SWITCHED : 0) |
			      (a->kernel ? ANCHOR_KERNEL : 0) | (a->weight > 1 ? ANCHOR_MANY : 0)));
	buf_uleb(out, a->between);
	if (a->kernel)
		buf_uleb(out, a->kernel - 1);
	if (a->weight > 1)
		buf_uleb(out, a->weight - 2);
	buf_uleb(out, a->changed);
	buf_uleb(out, a->changed & ~a->known);
	for (unsigned i = 0; i < ANCHOR_REGISTERS; i++)
		if (a->known >> i & 1)
			buf_sleb(out, a->difference[i]);
}

void anchors_pack(const struct anchor *list, size_t n, struct buf *out)
{
	assert(n <= ANCHORS_MOST);
	buf_uleb(out, n);
	for (size_t i = 0; i < n; i++) {
		assert(list[i].weight && (!i || anchor_compare(&list[i - 1], &list[i]) <= 0));
		put_anchor(out, i ? list[i - 1].pc : 0, &list[i]);
	}
}

/* ---- reading ---- */

int anchor_reader_init(struct anchor_reader *r, const void *p, size_t n)
{
	*r = (struct anchor_reader){.at = cursor_over(p, n)};
	r->left = cursor_uleb(&r->at);
	if (r->at.failed || r->left > ANCHORS_MOST || r->left > cursor_left(&r->at) / ANCHOR_LEAST)
		return -EBADMSG;
	return 0;
}

static int read_registers(struct cursor *c, struct anchor *a)
{
	uint64_t changed = cursor_uleb(c), unknown = cursor_uleb(c);

	if (changed >> ANCHOR_REGISTERS || unknown & ~changed)
		return -EBADMSG;
	a->changed = (uint16_t)changed;
	a->known = (uint16_t)(changed & ~unknown);
	for (unsigned i = 0; i < ANCHOR_REGISTERS; i++) {
		if (!(a->known >> i & 1))
			continue;
		a->difference[i] = cursor_sleb(c);
		if (!a->difference[i])
			return -EBADMSG;
	}
	return 0;
}

static int read_anchor(struct anchor_reader *r, struct anchor *a)
{
	uint64_t kernel;
	uint8_t head;

	memset(a, 0, sizeof *a); /* the padding too: whole anchors are compared by tests */
	a->weight = 1;
	if (__builtin_add_overflow(r->last.pc, cursor_uleb(&r->at), &a->pc))
		return -EBADMSG;
	a->last = a->pc + (uint64_t)cursor_sleb(&r->at);
	head = cursor_u8(&r->at);
	if (head & ~(ANCHOR_SWITCHED | ANCHOR_KERNEL | ANCHOR_MANY))
		return -EBADMSG;
	a->switched = head & ANCHOR_SWITCHED;
	a->between = cursor_uleb(&r->at);
	if (head & ANCHOR_KERNEL) {
		kernel = cursor_uleb(&r->at);
		if (kernel >= UINT32_MAX)
			return -EBADMSG;
		a->kernel = (uint32_t)kernel + 1;
	}
	if (head & ANCHOR_MANY && __builtin_add_overflow(cursor_uleb(&r->at), 2, &a->weight))
		return -EBADMSG;
	return read_registers(&r->at, a) || r->at.failed ? -EBADMSG : 0;
}

int anchor_reader_next(struct anchor_reader *r, struct anchor *out)
{
	struct anchor a;

	if (!r->left)
		return cursor_left(&r->at) ? -EBADMSG : 0;
	if (read_anchor(r, &a) || (r->last.weight && anchor_compare(&r->last, &a) > 0))
		return -EBADMSG;
	*out = r->last = a;
	r->left--;
	return 1;
}

/* ---- as a type of blob ---- */

static int read_all(const void *p, size_t n, struct anchor *list, size_t *count)
{
	struct anchor_reader reader;
	int r;

	if (anchor_reader_init(&reader, p, n))
		return -EBADMSG;
	while ((r = anchor_reader_next(&reader, &list[*count])) > 0)
		++*count;
	return r;
}

static uint64_t seed_of(const struct anchor *list, size_t n)
{
	uint64_t seed = n;

	for (size_t i = 0; i < n; i++) {
		seed = thin_seed(seed, list[i].pc);
		seed = thin_seed(seed, list[i].between);
		seed = thin_seed(seed, list[i].weight);
	}
	return seed;
}

/* Leaves ANCHORS_MOST of a sorted list that is longer. */
static size_t thin(struct anchor *list, size_t n)
{
	_cleanup_free_ uint64_t *weights = xcalloc(n, sizeof *weights);
	size_t kept = 0;

	for (size_t i = 0; i < n; i++)
		weights[i] = list[i].weight;
	thin_weights(weights, n, ANCHORS_MOST, seed_of(list, n));
	for (size_t i = 0; i < n; i++) {
		if (!weights[i])
			continue;
		list[kept] = list[i];
		list[kept++].weight = weights[i];
	}
	return kept;
}

static int compare_whole(const void *a, const void *b)
{
	const struct anchor *x = a, *y = b;
	int order = anchor_compare(a, b);

	return order ? order : compare_numbers(x->weight, y->weight);
}

static int anchor_merge(const void *a, size_t na, const void *b, size_t nb, struct buf *out)
{
	/* One more of room: the reader writes only what is there, but points to what follows. */
	_cleanup_free_ struct anchor *list = xcalloc(2 * ANCHORS_MOST + 1, sizeof *list);
	size_t n = 0;

	if (read_all(a, na, list, &n) || read_all(b, nb, list, &n))
		return -EBADMSG;
	qsort(list, n, sizeof *list, compare_whole);
	anchors_pack(list, n > ANCHORS_MOST ? thin(list, n) : n, out);
	return 0;
}

static int anchor_weight(const void *p, size_t n, uint64_t *samples)
{
	struct anchor_reader reader;
	struct anchor a;
	uint64_t sum = 0;
	int r;

	if (anchor_reader_init(&reader, p, n))
		return -EBADMSG;
	while ((r = anchor_reader_next(&reader, &a)) > 0)
		if (__builtin_add_overflow(sum, a.weight, &sum))
			sum = UINT64_MAX;
	if (!r)
		*samples = sum;
	return r;
}

static int anchor_check(const void *p, size_t n)
{
	uint64_t samples;

	return anchor_weight(p, n, &samples);
}

const struct blob_type blob_anchor = {
	.name = "anchor",
	.merge = anchor_merge,
	.check = anchor_check,
	.weight = anchor_weight,
};
