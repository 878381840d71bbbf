#include "store/store_internal.h"

#include "base/cursor.h"

#include <errno.h>
#include <string.h>

/*
 * images.segments: not compressed.
 *
 *   uleb   number of segments, at most SEGMENTS_MOST
 *   each:  uleb offset, uleb size, uleb virtual address
 */
#define SEGMENTS_MOST 4096

static void encode_segments(const struct store_image *im, struct buf *out)
{
	size_t n = im->nsegments < SEGMENTS_MOST ? im->nsegments : SEGMENTS_MOST;

	buf_uleb(out, n);
	for (size_t i = 0; i < n; i++) {
		buf_uleb(out, im->segments[i].offset);
		buf_uleb(out, im->segments[i].size);
		buf_uleb(out, im->segments[i].vaddr);
	}
}

static int decode_segments(const void *p, size_t n, struct segment **out, size_t *count)
{
	struct cursor c = cursor_over(p, n);
	uint64_t segments = cursor_uleb(&c);
	struct segment *list;

	if (c.failed || segments > SEGMENTS_MOST)
		return -EBADMSG;
	list = xcalloc(segments, sizeof *list);
	for (uint64_t i = 0; i < segments; i++) {
		list[i].offset = cursor_uleb(&c);
		list[i].size = cursor_uleb(&c);
		list[i].vaddr = cursor_uleb(&c);
	}
	if (c.failed || cursor_left(&c)) {
		free(list);
		return -EBADMSG;
	}
	*out = list;
	*count = segments;
	return 0;
}

static void encode_identity(const struct image_id *id, struct buf *out)
{
	if (!id->size)
		return;
	buf_u8(out, id->is_hash);
	buf_put(out, id->bytes, id->size);
}

static int decode_identity(const uint8_t *p, size_t n, struct image_id *id)
{
	*id = (struct image_id){0};
	if (!p)
		return 0;
	if (n < 2 || n > 1 + sizeof id->bytes || p[0] > 1)
		return -EBADMSG;
	id->is_hash = p[0];
	id->size = (uint8_t)(n - 1);
	memcpy(id->bytes, p + 1, n - 1);
	return 0;
}

int image_decode(sqlite3_stmt *st, int column, struct store_image *im, struct segment **segments)
{
	int64_t kind = sqlite3_column_int64(st, column + 1);
	const void *identity = sqlite3_column_blob(st, column + 2);
	size_t identity_size = (size_t)sqlite3_column_bytes(st, column + 2);
	const void *packed = sqlite3_column_blob(st, column + 4);
	size_t packed_size = (size_t)sqlite3_column_bytes(st, column + 4);

	if (kind < 0 || kind > IMAGE_UNKNOWN)
		return -EBADMSG;
	*im = (struct store_image){
		.id = sqlite3_column_int64(st, column),
		.kind = (enum image_kind)kind,
		.path = db_text(st, column + 3),
	};
	if (decode_identity(identity, identity_size, &im->identity) ||
		decode_segments(packed, packed_size, segments, &im->nsegments))
		return -EBADMSG;
	im->segments = *segments;
	return 0;
}

static int find_image(struct store *s, const struct store_image *im, const struct buf *identity,
	int64_t *id, bool *bare, struct err *e)
{
	sqlite3_stmt *st;
	int r = identity->n ? db_kept(s,
				      "SELECT id, length(segments) FROM images WHERE identity = ? "
				      "AND kind = ?",
				      &st, e)
			    : db_kept(s,
				      "SELECT id, length(segments) FROM images "
				      "WHERE identity IS NULL AND path = ? AND kind = ?",
				      &st, e);

	if (r)
		return r;
	if (identity->n)
		sqlite3_bind_blob(st, 1, identity->p, (int)identity->n, SQLITE_TRANSIENT);
	else
		db_bind_text(st, 1, im->path);
	sqlite3_bind_int64(st, 2, im->kind);
	r = db_step(s, st, e);
	*id = r > 0 ? sqlite3_column_int64(st, 0) : 0;
	*bare = r > 0 && sqlite3_column_int64(st, 1) <= 1;
	sqlite3_reset(st);
	return r < 0 ? r : 0;
}

static int add_image(struct store *s, const struct store_image *im, const struct buf *identity,
	const struct buf *segments, int64_t *id, struct err *e)
{
	sqlite3_stmt *st;
	int r = db_kept(
		s, "INSERT INTO images(kind, identity, path, segments) VALUES(?, ?, ?, ?)", &st, e);

	if (r)
		return r;
	sqlite3_bind_int64(st, 1, im->kind);
	if (identity->n)
		sqlite3_bind_blob(st, 2, identity->p, (int)identity->n, SQLITE_TRANSIENT);
	db_bind_text(st, 3, im->path);
	sqlite3_bind_blob(st, 4, segments->p, (int)segments->n, SQLITE_TRANSIENT);
	r = db_run(s, st, e);
	*id = sqlite3_last_insert_rowid(s->db);
	return r;
}

/* An image that was first seen when its file could not be read gets its segments later. */
static int complete_image(struct store *s, int64_t id, const struct buf *segments, struct err *e)
{
	sqlite3_stmt *st;
	int r = db_kept(s, "UPDATE images SET segments = ?2 WHERE id = ?1", &st, e);

	if (r)
		return r;
	sqlite3_bind_int64(st, 1, id);
	sqlite3_bind_blob(st, 2, segments->p, (int)segments->n, SQLITE_TRANSIENT);
	return db_run(s, st, e);
}

int store_image(struct store *s, const struct store_image *im, int64_t *id, struct err *e)
{
	struct buf identity = {0}, segments = {0};
	int64_t found = 0;
	bool bare;
	int r;

	encode_identity(&im->identity, &identity);
	encode_segments(im, &segments);
	r = find_image(s, im, &identity, &found, &bare, e);
	if (!r && found && bare && im->nsegments)
		r = complete_image(s, found, &segments, e);
	if (!r && !found)
		r = add_image(s, im, &identity, &segments, &found, e);
	buf_deinit(&identity);
	buf_deinit(&segments);
	if (r)
		return r;
	given_add(s, 'i', found);
	*id = found;
	return 0;
}

/* 1: the caller's function wants no more. */
static int give_image(
	struct store *s, sqlite3_stmt *st, store_image_fn *fn, void *arg, struct err *e)
{
	_cleanup_free_ struct segment *segments = NULL;
	struct store_image im;

	if (image_decode(st, 0, &im, &segments))
		return db_damaged(s, "an image", e);
	return fn(arg, &im);
}

int store_images(struct store *s, store_image_fn *fn, void *arg, struct err *e)
{
	_cleanup_statement_ sqlite3_stmt *st = NULL;
	int r = db_prepare(s, "SELECT " IMAGE_COLUMNS " FROM images ORDER BY id", &st, e);

	if (r)
		return r;
	while ((r = db_step(s, st, e)) > 0) {
		r = give_image(s, st, fn, arg, e);
		if (r)
			return callback_result(r);
	}
	return r;
}

int store_image_get(struct store *s, int64_t id, store_image_fn *fn, void *arg, struct err *e)
{
	_cleanup_statement_ sqlite3_stmt *st = NULL;
	int r = db_prepare(s, "SELECT " IMAGE_COLUMNS " FROM images WHERE id = ?", &st, e);

	if (r)
		return r;
	sqlite3_bind_int64(st, 1, id);
	r = db_step(s, st, e);
	if (r < 0)
		return r;
	if (!r)
		return err_set(e, -ENOENT, "%s: no image %lld in it", s->path, (long long)id);
	return callback_result(give_image(s, st, fn, arg, e));
}
