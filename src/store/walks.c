#include "store/walks.h"

#include "base/buf.h"
#include "base/mem.h"
#include "store/thin.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * A profile of walks (unpacked):
 *
 *   keys of other images (keys.h)
 *   uleb    number of walks
 *   walks, in the order of walk_compare, each:
 *     uleb    start less the one before's (less 0 for the first)
 *     uleb    2 * instructions, and 1 when it stands for more than one
 *     uleb    weight - 2, only then
 *     uleb    number of steps
 *     steps, each:
 *       u8      bit 0: the image changes; bits 1 to 6: low bits of z; bit 7: more of z follows
 *       uleb    z >> 6, only with bit 7
 *       uleb    which of the keys, only with bit 0
 *       sleb    to - from modulo 2^64; with bit 0 instead a uleb, to
 *
 * 1. There are at most WALKS_MOST, of at most WALK_STEPS.
 * 2. z is from less the last `to` (the start for the first step) modulo 2^64, as a signed number
 *    whose sign was moved to bit 0.
 * 3. Walks ascend, so that none is there twice; none has neither steps nor instructions.
 * 4. The last walk ends the blob.
 *
 * Between two steps there is mostly a straight line: two bytes, three where the branch went far.
 */
#define STEP_OTHER 0x01
#define STEP_MORE  0x80
#define STEP_LOW   6 /* bits of z in the first byte */
#define WALK_LEAST 3 /* bytes of a walk */
#define STEP_LEAST 2 /* bytes of a step */

static uint64_t add_weights(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

/* ---- lists ---- */

static int compare_numbers(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int compare_steps(const struct walk_step *a, const struct walk_step *b)
{
	int order = compare_numbers(a->from, b->from);

	if (!order)
		order = compare_numbers(a->target, b->target);
	return order ? order : compare_numbers(a->to, b->to);
}

int walk_compare(const void *a, const void *b)
{
	const struct walk *x = a, *y = b;
	int order = compare_numbers(x->start, y->start);

	for (uint32_t i = 0; !order && i < x->nsteps && i < y->nsteps; i++)
		order = compare_steps(&x->steps[i], &y->steps[i]);
	if (!order)
		order = compare_numbers(x->nsteps, y->nsteps);
	return order ? order : compare_numbers(x->instructions, y->instructions);
}

size_t walks_settle(struct walk *list, size_t n)
{
	size_t kept = 0;

	if (n)
		qsort(list, n, sizeof *list, walk_compare);
	for (size_t i = 0; i < n; i++) {
		if (kept && !walk_compare(&list[kept - 1], &list[i]))
			list[kept - 1].weight = add_weights(list[kept - 1].weight, list[i].weight);
		else
			list[kept++] = list[i];
	}
	return kept;
}

/* ---- writing ---- */

static void put_step(
	struct buf *out, uint64_t last, const struct walk_step *s, const struct key_list *keys)
{
	uint64_t d = s->from - last, z = d << 1 ^ (d >> 63 ? ~0ull : 0), more = z >> STEP_LOW;

	buf_u8(out, (uint8_t)((z & ((1 << STEP_LOW) - 1)) << 1 | (more ? STEP_MORE : 0) |
			      (s->target ? STEP_OTHER : 0)));
	if (more)
		buf_uleb(out, more);
	if (s->target) {
		buf_uleb(out, key_list_number(keys, s->target));
		buf_uleb(out, s->to);
	} else {
		buf_sleb(out, (int64_t)(s->to - s->from));
	}
}

static void put_walk(
	struct buf *out, uint64_t before, const struct walk *w, const struct key_list *keys)
{
	uint64_t last = w->start;

	buf_uleb(out, w->start - before);
	buf_uleb(out, (uint64_t)w->instructions << 1 | (w->weight > 1));
	if (w->weight > 1)
		buf_uleb(out, w->weight - 2);
	buf_uleb(out, w->nsteps);
	for (uint32_t i = 0; i < w->nsteps; i++) {
		put_step(out, last, &w->steps[i], keys);
		last = w->steps[i].to;
	}
}

static void add_keys(const struct walk *w, struct key_list *keys)
{
	for (uint32_t i = 0; i < w->nsteps; i++)
		if (w->steps[i].target)
			*vec_add(&keys->list) = w->steps[i].target;
}

void walks_pack(const struct walk *list, size_t n, struct buf *out)
{
	struct key_list keys = {0};

	assert(n <= WALKS_MOST);
	for (size_t i = 0; i < n; i++)
		add_keys(&list[i], &keys);
	key_list_settle(&keys);
	key_list_put(&keys, out);
	buf_uleb(out, n);
	for (size_t i = 0; i < n; i++) {
		assert(list[i].weight && list[i].nsteps <= WALK_STEPS);
		assert(list[i].nsteps || list[i].instructions);
		assert(!i || walk_compare(&list[i - 1], &list[i]) < 0);
		put_walk(out, i ? list[i - 1].start : 0, &list[i], &keys);
	}
	key_list_deinit(&keys);
}

/* ---- reading ---- */

int walk_reader_init(struct walk_reader *r, const void *p, size_t n)
{
	r->at = cursor_over(p, n);
	r->last = (struct walk){0};
	r->turn = 0;
	if (key_table_read(&r->keys, &r->at))
		return -EBADMSG;
	r->left = cursor_uleb(&r->at);
	if (r->at.failed || r->left > WALKS_MOST || r->left > cursor_left(&r->at) / WALK_LEAST)
		return -EBADMSG;
	return 0;
}

static int read_step(struct walk_reader *r, uint64_t last, struct walk_step *s)
{
	uint8_t head = cursor_u8(&r->at);
	uint64_t more = head & STEP_MORE ? cursor_uleb(&r->at) : 0, number;
	uint64_t z = more << STEP_LOW | (head >> 1 & ((1 << STEP_LOW) - 1));

	if (more >> (64 - STEP_LOW))
		return -EBADMSG;
	*s = (struct walk_step){.from = last + (z >> 1 ^ (z & 1 ? ~0ull : 0))};
	if (!(head & STEP_OTHER)) {
		s->to = s->from + (uint64_t)cursor_sleb(&r->at);
		return 0;
	}
	number = cursor_uleb(&r->at);
	if (number >= r->keys.n)
		return -EBADMSG;
	s->target = key_table_at(&r->keys, number);
	s->to = cursor_uleb(&r->at);
	return 0;
}

static int read_head(struct walk_reader *r, struct walk *w)
{
	uint64_t length, steps;

	if (__builtin_add_overflow(r->last.start, cursor_uleb(&r->at), &w->start))
		return -EBADMSG;
	length = cursor_uleb(&r->at);
	w->weight = 1;
	if (length & 1 && __builtin_add_overflow(cursor_uleb(&r->at), 2, &w->weight))
		return -EBADMSG;
	steps = cursor_uleb(&r->at);
	if (length >> 1 > UINT32_MAX || steps > WALK_STEPS || (!steps && length < 2) ||
		steps > cursor_left(&r->at) / STEP_LEAST)
		return -EBADMSG;
	w->instructions = (uint32_t)(length >> 1);
	w->nsteps = (uint32_t)steps;
	return 0;
}

static int read_walk(struct walk_reader *r, struct walk *w)
{
	struct walk_step *steps = r->steps[r->turn];
	uint64_t last;

	if (read_head(r, w))
		return -EBADMSG;
	last = w->start;
	for (uint32_t i = 0; i < w->nsteps; i++) {
		if (read_step(r, last, &steps[i]))
			return -EBADMSG;
		last = steps[i].to;
	}
	w->steps = steps;
	return r->at.failed ? -EBADMSG : 0;
}

int walk_reader_next(struct walk_reader *r, struct walk *out)
{
	struct walk w;

	if (!r->left)
		return cursor_left(&r->at) ? -EBADMSG : 0;
	if (read_walk(r, &w) || (r->last.weight && walk_compare(&r->last, &w) >= 0))
		return -EBADMSG;
	*out = r->last = w;
	r->turn = !r->turn;
	r->left--;
	return 1;
}

/* ---- as a type of blob ---- */

struct walk_list {
	VEC(struct walk) list;
	struct arena steps;
};

static int read_all(const void *p, size_t n, struct walk_list *out)
{
	_cleanup_free_ struct walk_reader *reader = xmalloc(sizeof *reader);
	struct walk w;
	int r;

	if (walk_reader_init(reader, p, n))
		return -EBADMSG;
	while ((r = walk_reader_next(reader, &w)) > 0) {
		size_t bytes = w.nsteps * sizeof *w.steps;

		w.steps = memcpy(arena_alloc(&out->steps, bytes + 1), w.steps, bytes);
		*vec_add(&out->list) = w;
	}
	return r;
}

static uint64_t seed_of(const struct walk *list, size_t n)
{
	uint64_t seed = n;

	for (size_t i = 0; i < n; i++) {
		seed = thin_seed(seed, list[i].start);
		seed = thin_seed(seed, list[i].weight);
		seed = thin_seed(seed, (uint64_t)list[i].instructions << 32 | list[i].nsteps);
		for (uint32_t k = 0; k < list[i].nsteps; k++)
			seed = thin_seed(seed, list[i].steps[k].from ^ list[i].steps[k].to << 32);
	}
	return seed;
}

/* Leaves of a settled list what is worth keeping for long. */
static size_t thin(struct walk *list, size_t n)
{
	_cleanup_free_ uint64_t *weights = xcalloc(n + 1, sizeof *weights);
	uint64_t bursts = 0, most;
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		weights[i] = list[i].weight;
		bursts = add_weights(bursts, list[i].weight);
	}
	most = bursts / WALKS_BURSTS < WALKS_MERGED ? bursts / WALKS_BURSTS : WALKS_MERGED;
	most = most ? most : 1;
	if (n <= most)
		return n;
	thin_weights(weights, n, most, seed_of(list, n));
	for (size_t i = 0; i < n; i++) {
		if (!weights[i])
			continue;
		list[kept] = list[i];
		list[kept++].weight = weights[i];
	}
	return kept;
}

static int walk_merge(const void *a, size_t na, const void *b, size_t nb, struct buf *out)
{
	struct walk_list all = {0};
	int r = read_all(a, na, &all);

	if (!r)
		r = read_all(b, nb, &all);
	if (!r) {
		size_t n = walks_settle(all.list.p, all.list.n);

		walks_pack(all.list.p, thin(all.list.p, n), out);
	}
	vec_deinit(&all.list);
	arena_deinit(&all.steps);
	return r;
}

static int walk_weight(const void *p, size_t n, uint64_t *samples)
{
	_cleanup_free_ struct walk_reader *reader = xmalloc(sizeof *reader);
	struct walk w;
	uint64_t sum = 0;
	int r;

	if (walk_reader_init(reader, p, n))
		return -EBADMSG;
	while ((r = walk_reader_next(reader, &w)) > 0)
		sum = add_weights(sum, w.weight);
	if (!r)
		*samples = sum;
	return r;
}

static int walk_check(const void *p, size_t n)
{
	uint64_t samples;

	return walk_weight(p, n, &samples);
}

const struct blob_type blob_walk = {
	.name = "walk",
	.merge = walk_merge,
	.check = walk_check,
	.weight = walk_weight,
};
