#include "store/traces.h"

#include "base/buf.h"
#include "base/mem.h"
#include "store/pack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * A profile of traces (unpacked):
 *
 *   uleb    number of parts
 *   parts, each:
 *     keys    of images (keys.h)
 *     uleb    number of sites, each:
 *       uleb    number of its image's key
 *       sleb    start of its procedure - that of the one before, modulo 2^64
 *       sleb    address - start of its procedure, modulo 2^64
 *       u8      kind
 *       uleb    bytes
 *       of a path: u8 1 and its shape (shape.h), or 0
 *     uleb    bursts that found no room
 *     uleb    number of bursts, each:
 *       uleb    process, uleb thread
 *       sleb    time - that of the one before, modulo 2^64
 *       uleb    number of references, each:
 *         uleb    site
 *         sleb    address - the one before at that site, modulo 2^64
 *
 * The last part ends the blob.
 */
#define SITE_LEAST      5 /* bytes */
#define BURST_LEAST     4
#define REFERENCE_LEAST 2

const char *trace_kind_name(uint8_t kind)
{
	static const char *const names[TRACE_KINDS] = {[TRACE_LOAD] = "load",
		[TRACE_STORE] = "store",
		[TRACE_CHANGE] = "change",
		[TRACE_ENTER] = "enter",
		[TRACE_LEAVE] = "leave",
		[TRACE_CALL] = "call",
		[TRACE_PATH] = "path",
		[TRACE_VALUE] = "value"};

	return kind < TRACE_KINDS ? names[kind] : NULL;
}

/* ---- writing ---- */

static void put_path(const struct trace_site *s, struct buf *out)
{
	buf_u8(out, s->path != NULL);
	if (s->path)
		path_shape_put(s->path, s->procedure, out);
}

static void put_sites(const struct trace_site *sites, uint32_t n, struct buf *out)
{
	struct key_list keys = {0};
	uint64_t last = 0;

	for (uint32_t i = 0; i < n; i++)
		*vec_add(&keys.list) = sites[i].image;
	key_list_settle(&keys);
	key_list_put(&keys, out);
	buf_uleb(out, n);
	for (uint32_t i = 0; i < n; i++) {
		buf_uleb(out, key_list_number(&keys, sites[i].image));
		buf_sleb(out, (int64_t)(sites[i].procedure - last));
		buf_sleb(out, (int64_t)(sites[i].at - sites[i].procedure));
		buf_u8(out, sites[i].kind);
		buf_uleb(out, sites[i].size);
		if (sites[i].kind == TRACE_PATH)
			put_path(&sites[i], out);
		last = sites[i].procedure;
	}
	key_list_deinit(&keys);
}

#define REFERENCE_MOST 20 /* bytes of two numbers, at most */

static uint8_t *put_uleb(uint8_t *at, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		*at++ = (uint8_t)value | 0x80;
	*at++ = (uint8_t)value;
	return at;
}

static uint8_t *put_sleb(uint8_t *at, int64_t value)
{
	for (; value < -64 || value > 63; value >>= 7)
		*at++ = (uint8_t)((value & 0x7f) | 0x80);
	*at++ = (uint8_t)(value & 0x7f);
	return at;
}

/* There are millions a second: room is made for all at once. */
static void put_references(struct trace_writer *w, const struct trace_reference *r, size_t n)
{
	uint8_t *at;

	buf_reserve(&w->body, n * REFERENCE_MOST);
	at = w->body.p + w->body.n;
	for (size_t i = 0; i < n; i++) {
		at = put_uleb(at, r[i].site);
		at = put_sleb(at, (int64_t)(r[i].address - w->last.p[r[i].site]));
		w->last.p[r[i].site] = r[i].address;
	}
	w->body.n = (size_t)(at - w->body.p);
}

void trace_writer_put(struct trace_writer *w, const struct trace_burst *b)
{
	buf_uleb(&w->body, b->process);
	buf_uleb(&w->body, b->thread);
	buf_sleb(&w->body, (int64_t)(b->time - w->time));
	buf_uleb(&w->body, b->n);
	w->time = b->time;
	w->bursts++;
	for (size_t i = 0; i < b->n; i++)
		while (b->references[i].site >= w->last.n)
			*vec_add(&w->last) = 0;
	put_references(w, b->references, b->n);
}

void trace_writer_end(struct trace_writer *w, const struct trace_site *sites, uint32_t n,
	uint64_t lost, struct buf *out)
{
	buf_uleb(out, 1);
	put_sites(sites, n, out);
	buf_uleb(out, lost);
	buf_uleb(out, w->bursts);
	buf_put(out, w->body.p, w->body.n);
	buf_deinit(&w->body);
	vec_deinit(&w->last);
	*w = (struct trace_writer){0};
}

/* ---- reading ---- */

int trace_reader_init(struct trace_reader *r, const void *p, size_t n)
{
	*r = (struct trace_reader){.at = cursor_over(p, n)};
	r->parts = cursor_uleb(&r->at);
	return r->at.failed ? -EBADMSG : 0;
}

/* Shapes stay where they are until the next part. */
static int read_path(struct trace_reader *r, struct trace_site *s, block_list *blocks)
{
	uint8_t known = cursor_u8(&r->at);
	struct path_shape shape, *own;
	uint64_t *list;

	if (!known)
		return 0;
	if (known > 1 || path_shape_read(&shape, s->procedure, &r->at, blocks))
		return -EBADMSG;
	own = arena_alloc(&r->shapes, sizeof *own);
	list = arena_alloc(&r->shapes, blocks->n * sizeof *list);
	memcpy(list, blocks->p, blocks->n * sizeof *list);
	*own = shape;
	own->blocks = list;
	s->path = own;
	return 0;
}

static int read_sites_with(struct trace_reader *r, block_list *blocks)
{
	struct key_table keys;
	uint64_t n, last = 0;

	if (key_table_read(&keys, &r->at))
		return -EBADMSG;
	n = cursor_uleb(&r->at);
	if (n > cursor_left(&r->at) / SITE_LEAST)
		return -EBADMSG;
	for (uint64_t i = 0; i < n; i++) {
		struct trace_site *s = vec_add(&r->sites);
		uint64_t key = cursor_uleb(&r->at), size;

		*s = (struct trace_site){.procedure = last + (uint64_t)cursor_sleb(&r->at)};
		s->at = s->procedure + (uint64_t)cursor_sleb(&r->at);
		s->kind = cursor_u8(&r->at);
		size = cursor_uleb(&r->at);
		if (r->at.failed || key >= keys.n || size > UINT16_MAX || !trace_kind_name(s->kind))
			return -EBADMSG;
		s->image = key_table_at(&keys, key);
		s->size = (uint16_t)size;
		if (s->kind == TRACE_PATH && read_path(r, s, blocks))
			return -EBADMSG;
		last = s->procedure;
		*vec_add(&r->last) = 0;
	}
	return 0;
}

static int read_sites(struct trace_reader *r)
{
	block_list blocks = {0};
	int rc;

	arena_deinit(&r->shapes);
	rc = read_sites_with(r, &blocks);
	vec_deinit(&blocks);
	return rc;
}

int trace_reader_part(struct trace_reader *r)
{
	struct trace_burst skipped;
	int rc;

	while (r->bursts)
		if ((rc = trace_reader_next(r, &skipped)) < 0)
			return rc;
	if (!r->parts)
		return cursor_left(&r->at) ? -EBADMSG : 0;
	r->parts--;
	r->sites.n = r->last.n = 0;
	r->time = 0;
	if (read_sites(r))
		return -EBADMSG;
	r->lost = cursor_uleb(&r->at);
	r->bursts = cursor_uleb(&r->at);
	return r->at.failed || r->bursts > cursor_left(&r->at) / BURST_LEAST ? -EBADMSG : 1;
}

static int read_references(struct trace_reader *r, uint64_t n)
{
	r->references.n = 0;
	if (n > cursor_left(&r->at) / REFERENCE_LEAST)
		return -EBADMSG;
	for (uint64_t i = 0; i < n; i++) {
		uint64_t site = cursor_uleb(&r->at), by = (uint64_t)cursor_sleb(&r->at);

		if (r->at.failed || site >= r->sites.n)
			return -EBADMSG;
		r->last.p[site] += by;
		*vec_add(&r->references) =
			(struct trace_reference){(uint32_t)site, r->last.p[site]};
	}
	return 0;
}

int trace_reader_next(struct trace_reader *r, struct trace_burst *out)
{
	uint64_t process, thread, n;

	if (!r->bursts)
		return 0;
	r->bursts--;
	process = cursor_uleb(&r->at);
	thread = cursor_uleb(&r->at);
	r->time += (uint64_t)cursor_sleb(&r->at);
	n = cursor_uleb(&r->at);
	if (r->at.failed || process > UINT32_MAX || thread > UINT32_MAX || read_references(r, n)) {
		r->bursts = 0;
		return -EBADMSG;
	}
	*out = (struct trace_burst){
		(uint32_t)process, (uint32_t)thread, r->time, r->references.p, r->references.n};
	return 1;
}

void trace_reader_deinit(struct trace_reader *r)
{
	arena_deinit(&r->shapes);
	vec_deinit(&r->sites);
	vec_deinit(&r->last);
	vec_deinit(&r->references);
}

/* ---- as a blob ---- */

static int weigh(const void *p, size_t n, uint64_t *references)
{
	struct trace_reader r;
	struct trace_burst b;
	int rc = trace_reader_init(&r, p, n);

	*references = 0;
	while (!rc && (rc = trace_reader_part(&r)) > 0)
		while ((rc = trace_reader_next(&r, &b)) > 0)
			*references += b.n;
	trace_reader_deinit(&r);
	return rc;
}

static int check(const void *p, size_t n)
{
	uint64_t references;

	return weigh(p, n, &references);
}

static int merge(const void *a, size_t na, const void *b, size_t nb, struct buf *out)
{
	if (check(a, na) || check(b, nb))
		return -EBADMSG;
	parts_join(a, na, b, nb, out);
	return 0;
}

const struct blob_type blob_trace = {
	.name = "trace", .merge = merge, .check = check, .weight = weigh};
