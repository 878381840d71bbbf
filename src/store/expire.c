/* Old profiles removed, and what nothing refers to any more. */
#include "store/store_internal.h"

#include <errno.h>

/* Bytes that the file will have once its free pages are given back. */
static int used_bytes(struct store *s, uint64_t *out, struct err *e)
{
	int64_t pages, unused, size;
	int r = db_value(s, "PRAGMA page_count", &pages, e);

	if (!r)
		r = db_value(s, "PRAGMA freelist_count", &unused, e);
	if (!r)
		r = db_value(s, "PRAGMA page_size", &size, e);
	if (!r)
		*out = (uint64_t)(pages - unused) * (uint64_t)size;
	return r;
}

/* ---- stretches ---- */

/* The condition uses ?1. */
static int drop_stretches(struct store *s, const char *condition, int64_t v, struct err *e)
{
	static const char *const statements[] = {
		"DELETE FROM profiles WHERE stretch IN (SELECT id FROM stretches WHERE %s)",
		"DELETE FROM totals WHERE stretch IN (SELECT id FROM stretches WHERE %s)",
		"DELETE FROM accounts WHERE stretch IN (SELECT id FROM stretches WHERE %s)",
		"DELETE FROM stretches WHERE %s",
	};
	int r = 0;

	for (size_t i = 0; !r && i < sizeof statements / sizeof *statements; i++) {
		_cleanup_free_ char *sql = xasprintf(statements[i], condition);
		_cleanup_statement_ sqlite3_stmt *st = NULL;

		r = db_prepare(s, sql, &st, e);
		if (r)
			return r;
		sqlite3_bind_int64(st, 1, v);
		r = db_run(s, st, e);
	}
	s->stretch = 0;
	return r;
}

/* 1: the oldest is gone, and *t1 is when it ended; 0: there is none. */
static int drop_oldest(struct store *s, int64_t *t1, struct err *e)
{
	sqlite3_stmt *st;
	int64_t id = 0;
	int r = db_kept(s, "SELECT id, t1 FROM stretches ORDER BY t1, id LIMIT 1", &st, e);

	if (r)
		return r;
	r = db_step(s, st, e);
	if (r > 0) {
		id = sqlite3_column_int64(st, 0);
		*t1 = sqlite3_column_int64(st, 1);
	}
	sqlite3_reset(st);
	if (r <= 0)
		return r;
	r = drop_stretches(s, "id = ?1", id, e);
	return r ? r : 1;
}

/* *until becomes the end of the last stretch that had to go. */
static int drop_until_small(struct store *s, uint64_t bytes, int64_t *until, struct err *e)
{
	uint64_t used = 0;
	int64_t t1 = 0;
	int r = used_bytes(s, &used, e);

	while (!r && used > bytes) {
		r = drop_oldest(s, &t1, e);
		if (r <= 0)
			return r;
		*until = t1 > *until ? t1 : *until;
		r = used_bytes(s, &used, e);
	}
	return r;
}

/* ---- what nothing refers to ---- */

typedef VEC(int64_t) id_list;

static int list_ids(struct store *s, const char *sql, int64_t v, id_list *out, struct err *e)
{
	_cleanup_statement_ sqlite3_stmt *st = NULL;
	int r = db_prepare(s, sql, &st, e);

	if (r)
		return r;
	if (sqlite3_bind_parameter_count(st))
		sqlite3_bind_int64(st, 1, v);
	while ((r = db_step(s, st, e)) > 0)
		*vec_add(out) = sqlite3_column_int64(st, 0);
	return r;
}

/* An epoch without an end was closed by the next one of its host; the last may still be open. */
#define EMPTY_EPOCHS                                                               \
	"SELECT e.id FROM epochs e "                                               \
	"WHERE NOT EXISTS (SELECT 1 FROM stretches st WHERE st.epoch = e.id) AND " \
	"CASE WHEN e.ended != 0 THEN e.ended "                                     \
	" ELSE (SELECT min(n.started) FROM epochs n "                              \
	"  WHERE n.host = e.host AND n.started > e.started) END <= ?1"

static int drop_epochs(struct store *s, int64_t until, struct err *e)
{
	id_list list = {0};
	int r = list_ids(s, EMPTY_EPOCHS, until, &list, e);

	vec_each (id, &list) {
		if (r || given_has(s, 'e', *id))
			continue;
		r = db_run_ints(s, "DELETE FROM processes WHERE epoch = ?", id, 1, e);
		if (!r)
			r = db_run_ints(s, "DELETE FROM events WHERE epoch = ?", id, 1, e);
		if (!r)
			r = db_run_ints(s, "DELETE FROM epochs WHERE id = ?", id, 1, e);
	}
	vec_deinit(&list);
	return r;
}

static int note_image(void *arg, const struct store_total *row)
{
	hmap_put(arg, &row->image, NULL);
	return 0;
}

static int drop_image(struct store *s, int64_t id, struct err *e)
{
	int r = db_run_ints(s,
		"DELETE FROM code WHERE id IN (SELECT id FROM procedures WHERE image = ?)", &id, 1,
		e);

	if (!r)
		r = db_run_ints(s, "DELETE FROM procedures WHERE image = ?", &id, 1, e);
	if (!r)
		r = db_run_ints(s, "DELETE FROM images WHERE id = ?", &id, 1, e);
	return r;
}

static int drop_images(struct store *s, struct err *e)
{
	struct hmap totals;
	id_list list = {0};
	int r;

	hmap_init(&totals, sizeof(int64_t), sizeof(int64_t));
	r = totals_each(s, note_image, &totals, e);
	if (!r)
		r = list_ids(s,
			"SELECT id FROM images WHERE id NOT IN (SELECT image FROM profiles)", 0,
			&list, e);
	vec_each (id, &list)
		if (!r && !given_has(s, 'i', *id) && !hmap_get(&totals, id))
			r = drop_image(s, *id, e);
	vec_deinit(&list);
	hmap_deinit(&totals);
	return r;
}

static int drop_orphans(struct store *s, int64_t until, struct err *e)
{
	int r = drop_epochs(s, until, e);

	if (!r)
		r = drop_images(s, e);
	if (r)
		return r;
	return db_exec(s,
		"DELETE FROM processes WHERE pid != 0 AND id NOT IN (SELECT process FROM profiles);"
		"DELETE FROM names WHERE id NOT IN (SELECT comm FROM processes UNION "
		"SELECT cgroup FROM processes UNION SELECT type FROM profiles);"
		"DELETE FROM hosts WHERE id NOT IN (SELECT host FROM epochs)",
		e);
}

/* ---- all of it ---- */

static int expire(struct store *s, int64_t before, uint64_t bytes, struct err *e)
{
	int64_t until = before;
	int r = drop_stretches(s, "t1 <= ?1", before, e);

	/* Before anything is removed by size: it may suffice. */
	if (!r)
		r = drop_orphans(s, until, e);
	if (!r && bytes)
		r = drop_until_small(s, bytes, &until, e);
	if (!r && until != before)
		r = drop_orphans(s, until, e);
	if (!r)
		r = db_exec(s, "PRAGMA incremental_vacuum", e);
	s->shrink = !r;
	return r;
}

int store_expire(struct store *s, int64_t before, uint64_t bytes, struct err *e)
{
	bool own;
	int r = db_begin(s, &own, e);

	return r ? r : db_end(s, own, expire(s, before, bytes, e), e);
}
