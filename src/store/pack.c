#include "store/pack.h"

#include "base/buf.h"
#include "base/cursor.h"
#include "store/store.h"

#include <assert.h>
#include <errno.h>
#include <zstd.h>

/*
 * A packed blob:
 *
 *   uleb    unpacked size * 2, + 1 when what follows is compressed
 *   bytes   one zstd frame, or the unpacked bytes themselves
 *
 * 1. The unpacked size is at most PACK_LIMIT.
 * 2. A frame states the same size, and nothing follows it.
 * 3. Compressed is used only where it saves an eighth: expanding costs microseconds a blob.
 *
 * A PC profile (unpacked):
 *
 *   uleb    number of pairs
 *   pairs, by offset, each:
 *     u8      bit 0: the count is 1; bits 1 to 6: low bits of d; bit 7: more of d follows
 *     uleb    d >> 6, only with bit 7
 *     uleb    count - 2, only without bit 0
 *
 * 4. d is the offset less the smallest possible one (0, then the offset before + 1), so a profile
 *    that decodes is sorted and has no offset twice and no count 0.
 * 5. The last pair ends the blob.
 *
 * Most sampled instructions have one sample and a neighbour less than 64 bytes away: a byte each.
 */
#define LEVEL 3
#define TRY   48 /* bytes below which zstd's own header eats what it saves */

#define PC_ONE  0x01
#define PC_MORE 0x80

int pack_compress_with(ZSTD_CCtx *c, const void *p, size_t n, struct buf *out)
{
	size_t start = out->n, body, bound = ZSTD_compressBound(n), got;

	if (n > PACK_LIMIT)
		return -EFBIG;
	if (n >= TRY) {
		buf_uleb(out, (uint64_t)n << 1 | 1);
		body = out->n;
		buf_reserve(out, bound);
		got = ZSTD_compressCCtx(c, out->p + body, bound, p, n, LEVEL);
		if (!ZSTD_isError(got) && got < n - n / 8) {
			out->n = body + got;
			return 0;
		}
		out->n = start;
	}
	buf_uleb(out, (uint64_t)n << 1);
	buf_put(out, p, n);
	return 0;
}

int pack_expand_with(ZSTD_DCtx *d, const void *p, size_t n, struct buf *out)
{
	struct cursor c = cursor_over(p, n);
	uint64_t head = cursor_uleb(&c), size = head >> 1;
	size_t left = cursor_left(&c), got;
	const void *body = cursor_bytes(&c, left);

	if (c.failed || size > PACK_LIMIT || !body)
		return -EBADMSG;
	if (!(head & 1)) {
		if (left != size)
			return -EBADMSG;
		buf_put(out, body, left);
		return 0;
	}
	if (ZSTD_getFrameContentSize(body, left) != size ||
		ZSTD_findFrameCompressedSize(body, left) != left)
		return -EBADMSG;
	buf_reserve(out, size);
	got = ZSTD_decompressDCtx(d, out->p + out->n, size, body, left);
	if (ZSTD_isError(got) || got != size)
		return -EBADMSG;
	out->n += size;
	return 0;
}

int pack_compress(const void *p, size_t n, struct buf *out)
{
	ZSTD_CCtx *c = ZSTD_createCCtx();
	int r = c ? pack_compress_with(c, p, n, out) : -ENOMEM;

	ZSTD_freeCCtx(c);
	return r;
}

int pack_expand(const void *p, size_t n, struct buf *out)
{
	ZSTD_DCtx *d = ZSTD_createDCtx();
	int r = d ? pack_expand_with(d, p, n, out) : -ENOMEM;

	ZSTD_freeDCtx(d);
	return r;
}

/* ---- PC profiles ---- */

static void put_pair(struct buf *out, uint64_t d, uint64_t count)
{
	uint8_t head = (uint8_t)((d & 63) << 1);

	if (count == 1)
		head |= PC_ONE;
	if (d >> 6)
		head |= PC_MORE;
	buf_u8(out, head);
	if (d >> 6)
		buf_uleb(out, d >> 6);
	if (count != 1)
		buf_uleb(out, count - 2);
}

void pack_pcs(const struct pc_count *list, size_t n, struct buf *out)
{
	uint64_t least = 0;

	buf_uleb(out, n);
	for (size_t i = 0; i < n; i++) {
		assert(list[i].count && list[i].offset >= least && (least || !i));
		put_pair(out, list[i].offset - least, list[i].count);
		least = list[i].offset + 1;
	}
}

/* The fast way through millions of small numbers; the rest of the store uses struct cursor. */
static inline int uleb_next(struct pc_reader *r, uint64_t *value)
{
	uint64_t v = 0;
	unsigned shift = 0;

	while (r->at < r->end && shift < 64) {
		uint8_t b = *r->at++;

		if (shift == 63 && b > 1)
			return -EBADMSG;
		v |= (uint64_t)(b & 0x7f) << shift;
		if (!(b & 0x80)) {
			*value = v;
			return 0;
		}
		shift += 7;
	}
	return -EBADMSG;
}

int pc_reader_init(struct pc_reader *r, const void *p, size_t n)
{
	*r = (struct pc_reader){.at = p, .end = (const uint8_t *)p + n};
	if (uleb_next(r, &r->left) || r->left > (size_t)(r->end - r->at))
		return -EBADMSG;
	return 0;
}

int pc_reader_next(struct pc_reader *r, struct pc_count *out)
{
	uint64_t d, more, offset, count = 1;
	uint8_t head;

	if (!r->left)
		return r->at == r->end ? 0 : -EBADMSG;
	if (r->at == r->end)
		return -EBADMSG;
	head = *r->at++;
	d = head >> 1 & 63;
	if (head & PC_MORE) {
		if (uleb_next(r, &more) || more >> 58)
			return -EBADMSG;
		d |= more << 6;
	}
	if (!(head & PC_ONE)) {
		if (uleb_next(r, &count) || count > UINT64_MAX - 2)
			return -EBADMSG;
		count += 2;
	}
	if (__builtin_add_overflow(r->offset, d, &offset) || (offset == UINT64_MAX && r->left > 1))
		return -EBADMSG;
	out->offset = offset;
	out->count = count;
	r->offset = offset + 1;
	r->left--;
	return 1;
}

/* ---- PC profiles as a type of blob ---- */

/* Two profiles read as one. */
struct pc_merger {
	struct pc_reader a, b;
	struct pc_count pa, pb;
	int ra, rb; /* what the readers said last */
};

static int merger_init(struct pc_merger *m, const void *a, size_t na, const void *b, size_t nb)
{
	if (pc_reader_init(&m->a, a, na) || pc_reader_init(&m->b, b, nb))
		return -EBADMSG;
	m->ra = pc_reader_next(&m->a, &m->pa);
	m->rb = pc_reader_next(&m->b, &m->pb);
	return 0;
}

static int merger_next(struct pc_merger *m, struct pc_count *out)
{
	bool take_a, take_b;

	if (m->ra < 0 || m->rb < 0)
		return -EBADMSG;
	if (!m->ra && !m->rb)
		return 0;
	take_a = m->ra && (!m->rb || m->pa.offset <= m->pb.offset);
	take_b = m->rb && (!m->ra || m->pb.offset <= m->pa.offset);
	*out = take_a ? m->pa : m->pb;
	if (take_a && take_b && __builtin_add_overflow(out->count, m->pb.count, &out->count))
		out->count = UINT64_MAX;
	if (take_a)
		m->ra = pc_reader_next(&m->a, &m->pa);
	if (take_b)
		m->rb = pc_reader_next(&m->b, &m->pb);
	return 1;
}

static int pc_merge(const void *a, size_t na, const void *b, size_t nb, struct buf *out)
{
	struct pc_merger m;
	struct pc_count pc;
	uint64_t n = 0, least = 0;
	int r;

	/* Once to count, once to write: the number comes first. */
	if (merger_init(&m, a, na, b, nb))
		return -EBADMSG;
	while ((r = merger_next(&m, &pc)) > 0)
		n++;
	if (r < 0)
		return r;
	buf_uleb(out, n);
	merger_init(&m, a, na, b, nb);
	while (merger_next(&m, &pc) > 0) {
		put_pair(out, pc.offset - least, pc.count);
		least = pc.offset + 1;
	}
	return 0;
}

static int pc_weight(const void *p, size_t n, uint64_t *samples)
{
	struct pc_reader reader;
	struct pc_count pc;
	uint64_t sum = 0;
	int r;

	if (pc_reader_init(&reader, p, n))
		return -EBADMSG;
	while ((r = pc_reader_next(&reader, &pc)) > 0)
		if (__builtin_add_overflow(sum, pc.count, &sum))
			sum = UINT64_MAX;
	if (r < 0)
		return r;
	*samples = sum;
	return 0;
}

static int pc_check(const void *p, size_t n)
{
	uint64_t samples;

	return pc_weight(p, n, &samples);
}

const struct blob_type blob_pc = {
	.name = "pc",
	.merge = pc_merge,
	.check = pc_check,
	.weight = pc_weight,
};

void parts_join(const void *a, size_t na, const void *b, size_t nb, struct buf *out)
{
	struct cursor x = cursor_over(a, na), y = cursor_over(b, nb);
	uint64_t parts = cursor_uleb(&x), more = cursor_uleb(&y);

	buf_uleb(out, parts + more);
	buf_put(out, x.at, cursor_left(&x));
	buf_put(out, y.at, cursor_left(&y));
}
