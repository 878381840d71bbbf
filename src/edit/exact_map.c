#include "edit/exact_map.h"

#include <errno.h>
#include <string.h>

/*
 * A map:
 *
 *   u64     MAP_MAGIC
 *   u8      size of the identity, with bit 7 when it is a hash; its bytes
 *   text    path of the original, with a NUL
 *   uleb    number of counters
 *   uleb    number of functions, by start, each:
 *     uleb    start - that of the one before
 *     uleb    number of its counters
 *     uleb    bytes that follow
 *     uleb    number of blocks, of tables, of links
 *     blocks: sleb start - end of the one before (of the first: the function's start), uleb size,
 *             u8 last, u8 call with bit 7 for padding, sleb callee - start if call is counted
 *     links:  sleb from - from of the one before, sleb to - from, u8 kind with bit 7 if counted,
 *             bit 6 if that is in a register for a while, bit 5 if the counter then gains
 *             another number than 1 each time: sleb
 */
#define MAP_MAGIC   0x31706d7478456c43
#define MAP_FLAG    0x80
#define MAP_HELD    0x40
#define MAP_STEP    0x20
#define BLOCK_LEAST 4 /* bytes */
#define LINK_LEAST  3

uint64_t exact_counters(const struct exact_function *f)
{
	uint64_t n = 0;

	vec_each (l, &f->links)
		n += l->counted;
	return n;
}

void exact_function_deinit(struct exact_function *f)
{
	vec_deinit(&f->blocks);
	vec_deinit(&f->links);
}

/* ---- writing ---- */

static void put_blocks(const struct exact_function *f, struct buf *out)
{
	uint64_t end = f->start;

	vec_each (b, &f->blocks) {
		buf_sleb(out, (int64_t)(b->start - end));
		buf_uleb(out, b->size);
		buf_u8(out, b->last);
		buf_u8(out, b->call | (b->padding ? MAP_FLAG : 0));
		if (b->call == EXACT_CALLS_COUNTED)
			buf_sleb(out, (int64_t)(b->callee - f->start));
		end = b->start + b->size;
	}
}

static void put_links(const struct exact_function *f, struct buf *out)
{
	uint32_t from = 0;

	vec_each (l, &f->links) {
		buf_sleb(out, (int64_t)l->from - from);
		buf_sleb(out, (int64_t)l->to - l->from);
		buf_u8(out, l->kind | (l->counted ? MAP_FLAG : 0) | (l->held ? MAP_HELD : 0) |
				    (l->step ? MAP_STEP : 0));
		if (l->step)
			buf_sleb(out, l->step);
		from = l->from;
	}
}

void exact_map_add(struct exact_map_writer *w, struct exact_function *f)
{
	uint64_t n = exact_counters(f);
	struct buf body = {0};

	buf_uleb(&body, f->blocks.n);
	buf_uleb(&body, f->tables);
	buf_uleb(&body, f->links.n);
	put_blocks(f, &body);
	put_links(f, &body);
	buf_uleb(&w->body, f->start - w->last);
	buf_uleb(&w->body, n);
	buf_uleb(&w->body, body.n);
	buf_put(&w->body, body.p, body.n);
	buf_deinit(&body);
	f->first = w->counters;
	w->counters += n;
	w->last = f->start;
	w->functions++;
}

void exact_map_finish(
	struct exact_map_writer *w, const struct image_id *id, const char *path, struct buf *out)
{
	buf_u64(out, MAP_MAGIC);
	buf_u8(out, id->size | (id->is_hash ? MAP_FLAG : 0));
	buf_put(out, id->bytes, id->size);
	buf_str(out, path);
	buf_uleb(out, w->counters);
	buf_uleb(out, w->functions);
	buf_put(out, w->body.p, w->body.n);
	buf_deinit(&w->body);
	*w = (struct exact_map_writer){0};
}

/* ---- reading ---- */

static int read_identity(struct cursor *at, struct image_id *id)
{
	uint8_t size = cursor_u8(at);
	const void *bytes;

	*id = (struct image_id){.size = size & ~MAP_FLAG, .is_hash = size & MAP_FLAG};
	if (id->size > sizeof id->bytes || !(bytes = cursor_bytes(at, id->size)))
		return -EBADMSG;
	memcpy(id->bytes, bytes, id->size);
	return 0;
}

int exact_map_open(struct exact_map_reader *r, const void *p, size_t n)
{
	*r = (struct exact_map_reader){.at = cursor_over(p, n)};
	if (cursor_u64(&r->at) != MAP_MAGIC || read_identity(&r->at, &r->id))
		return -EBADMSG;
	r->path = cursor_str(&r->at);
	r->counters = cursor_uleb(&r->at);
	r->left = cursor_uleb(&r->at);
	return r->at.failed ? -EBADMSG : 0;
}

int exact_map_next(struct exact_map_reader *r)
{
	uint64_t bytes;

	if (!r->left)
		return cursor_left(&r->at) || r->next != r->counters ? -EBADMSG : 0;
	r->start = r->last + cursor_uleb(&r->at);
	r->first = r->next;
	r->count = cursor_uleb(&r->at);
	bytes = cursor_uleb(&r->at);
	if (r->start < r->last || (r->begun && r->start == r->last) ||
		r->count > r->counters - r->next || bytes > cursor_left(&r->at))
		return -EBADMSG;
	r->body = cursor_slice(&r->at, bytes);
	r->last = r->start;
	r->begun = true;
	r->next += r->count;
	r->left--;
	return r->at.failed ? -EBADMSG : 1;
}

static void read_block(struct cursor *at, uint64_t start, uint64_t *end, struct exact_block *b)
{
	uint8_t call;

	*b = (struct exact_block){.start = *end + (uint64_t)cursor_sleb(at)};
	b->size = (uint32_t)cursor_uleb(at);
	b->last = cursor_u8(at);
	call = cursor_u8(at);
	b->call = call & ~MAP_FLAG;
	b->padding = call & MAP_FLAG;
	if (b->call == EXACT_CALLS_COUNTED)
		b->callee = start + (uint64_t)cursor_sleb(at);
	if (b->call > EXACT_CALLS_WILD || b->last > b->size)
		at->failed = true;
	*end = b->start + b->size;
}

static bool comes_from_outside(uint8_t kind)
{
	return kind == EXACT_LINK_ENTRY || kind == EXACT_LINK_ENTERED || kind == EXACT_LINK_BACK;
}

static bool link_makes_sense(const struct exact_link *l, uint32_t outside)
{
	if (l->from > outside || l->to > outside || l->kind >= EXACT_LINK_KINDS)
		return false;
	return (l->from == outside) == comes_from_outside(l->kind) &&
	       (l->to == outside) == (l->kind >= EXACT_LINK_RETURN);
}

static void read_link(struct cursor *at, uint32_t outside, uint32_t *from, struct exact_link *l)
{
	uint8_t kind;

	l->from = *from + (uint32_t)cursor_sleb(at);
	l->to = l->from + (uint32_t)cursor_sleb(at);
	kind = cursor_u8(at);
	l->kind = kind & ~(MAP_FLAG | MAP_HELD | MAP_STEP);
	l->counted = kind & MAP_FLAG;
	l->held = kind & MAP_HELD;
	l->step = kind & MAP_STEP ? (int32_t)cursor_sleb(at) : 0;
	if (!link_makes_sense(l, outside))
		at->failed = true;
	*from = l->from;
}

int exact_map_read(const struct exact_map_reader *r, struct exact_function *out)
{
	struct cursor at = r->body;
	uint64_t blocks = cursor_uleb(&at), tables = cursor_uleb(&at), links = cursor_uleb(&at);
	uint64_t end = r->start;
	uint32_t from = 0;

	out->start = r->start;
	out->first = r->first;
	out->blocks.n = out->links.n = 0;
	if (at.failed || blocks > cursor_left(&at) / BLOCK_LEAST || tables > blocks ||
		links > cursor_left(&at) / LINK_LEAST)
		return -EBADMSG;
	out->tables = (uint32_t)tables;
	for (uint64_t i = 0; i < blocks && !at.failed; i++)
		read_block(&at, r->start, &end, vec_add(&out->blocks));
	for (uint64_t i = 0; i < links && !at.failed; i++)
		read_link(&at, (uint32_t)(blocks + tables), &from, vec_add(&out->links));
	return at.failed || cursor_left(&at) || exact_counters(out) != r->count ? -EBADMSG : 0;
}
