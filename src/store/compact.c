/* Many small stretches put together into few. */
#include "store/store_internal.h"

#include <errno.h>
#include <string.h>

struct stretch {
	int64_t id, epoch, number, t0, t1; /* number: which span of time it starts in */
};

/* Stretches that become one: the first stays. */
struct group {
	const struct stretch *p;
	size_t n;
	const char *ids; /* "1, 2, 3" for SQL */
};

struct profile_key {
	int64_t id, event, image, process, type;
};

static int exec_ids(struct store *s, const char *sql, const struct group *g, struct err *e)
{
	_cleanup_free_ char *text = xasprintf("%s(%s)", sql, g->ids);

	return db_exec(s, text, e);
}

static int prepare_ids(struct store *s, const char *sql, const struct group *g, const char *order,
	sqlite3_stmt **out, struct err *e)
{
	_cleanup_free_ char *text = xasprintf("%s(%s)%s", sql, g->ids, order);

	return db_prepare(s, text, out, e);
}

/* ---- profiles ---- */

static int load_profile(struct store *s, int64_t id, struct buf *out, struct err *e)
{
	sqlite3_stmt *st;
	int r = db_kept(s, "SELECT data FROM profiles WHERE id = ?", &st, e);

	if (r)
		return r;
	sqlite3_bind_int64(st, 1, id);
	r = db_step(s, st, e);
	if (r >= 0)
		r = r && !db_expand(s, st, 0, out) ? 0 : db_damaged(s, "a profile", e);
	sqlite3_reset(st);
	return r;
}

/* Halves are merged first: each PC is then touched log n times and not n. */
static int merge_profiles(struct store *s, const struct blob_type *type,
	const struct profile_key *rows, size_t n, struct buf *out, struct err *e)
{
	struct buf a = {0}, b = {0};
	int r;

	if (n == 1)
		return load_profile(s, rows->id, out, e);
	r = merge_profiles(s, type, rows, n / 2, &a, e);
	if (!r)
		r = merge_profiles(s, type, rows + n / 2, n - n / 2, &b, e);
	if (!r && type->merge(a.p, a.n, b.p, b.n, out))
		r = db_damaged(s, "a profile", e);
	buf_deinit(&a);
	buf_deinit(&b);
	return r;
}

static int replace_profile(struct store *s, int64_t id, const struct blob_type *type,
	const struct buf *data, struct err *e)
{
	uint64_t weight = 0;
	sqlite3_stmt *st;
	int r;

	if (type->weight && type->weight(data->p, data->n, &weight))
		return db_damaged(s, "a profile", e);
	r = db_kept(s, "UPDATE profiles SET samples = ?2, data = ?3 WHERE id = ?1", &st, e);
	if (!r)
		r = db_bind_packed(s, st, 3, data, e);
	if (r)
		return r;
	sqlite3_bind_int64(st, 1, id);
	sqlite3_bind_int64(st, 2, weight > INT64_MAX ? INT64_MAX : (int64_t)weight);
	return db_run(s, st, e);
}

static int join_profiles(struct store *s, const struct blob_type *type,
	const struct profile_key *rows, size_t n, struct err *e)
{
	struct buf data = {0};
	int r;

	if (n < 2 || !type || !type->merge)
		return 0;
	r = merge_profiles(s, type, rows, n, &data, e);
	if (!r)
		r = replace_profile(s, rows->id, type, &data, e);
	for (size_t i = 1; !r && i < n; i++)
		r = db_run_ints(s, "DELETE FROM profiles WHERE id = ?", &rows[i].id, 1, e);
	buf_deinit(&data);
	return r;
}

/* The registered type behind an id of `names`, or NULL. */
static int find_type(struct store *s, int64_t id, const struct blob_type **type, struct err *e)
{
	sqlite3_stmt *st;
	int r = db_kept(s, "SELECT text FROM names WHERE id = ?", &st, e);

	if (r)
		return r;
	sqlite3_bind_int64(st, 1, id);
	r = db_step(s, st, e);
	*type = r > 0 ? type_find(s, db_text(st, 0)) : NULL;
	sqlite3_reset(st);
	return r < 0 ? r : 0;
}

static bool same_profile(const struct profile_key *a, const struct profile_key *b)
{
	return a->event == b->event && a->image == b->image && a->process == b->process &&
	       a->type == b->type;
}

static int compact_profiles(struct store *s, const struct group *g, struct err *e)
{
	_cleanup_statement_ sqlite3_stmt *st = NULL;
	VEC(struct profile_key) rows = {0};
	const struct blob_type *type;
	int r = prepare_ids(s,
		"SELECT id, event, image, process, type FROM profiles WHERE stretch IN ", g,
		" ORDER BY event, image, process, type, id", &st, e);

	while (!r && (r = db_step(s, st, e)) > 0) {
		*vec_add(&rows) = (struct profile_key){
			.id = sqlite3_column_int64(st, 0),
			.event = sqlite3_column_int64(st, 1),
			.image = sqlite3_column_int64(st, 2),
			.process = sqlite3_column_int64(st, 3),
			.type = sqlite3_column_int64(st, 4),
		};
		r = 0;
	}
	for (size_t i = 0, end; !r && i < rows.n; i = end) {
		for (end = i + 1; end < rows.n && same_profile(&rows.p[i], &rows.p[end]); end++)
			;
		r = find_type(s, rows.p[i].type, &type, e);
		if (!r)
			r = join_profiles(s, type, rows.p + i, end - i, e);
	}
	vec_deinit(&rows);
	return r;
}

/* ---- totals and accounting ---- */

static int compact_totals(struct store *s, const struct group *g, struct err *e)
{
	_cleanup_statement_ sqlite3_stmt *st = NULL;
	struct totals_sum *sum = totals_sum_create();
	const struct store_total *rows;
	struct buf raw = {0};
	size_t n;
	int r = prepare_ids(s, "SELECT data FROM totals WHERE stretch IN ", g, "", &st, e);

	while (!r && (r = db_step(s, st, e)) > 0) {
		r = db_expand(s, st, 0, &raw);
		if (!r)
			r = totals_sum_add(sum, raw.p, raw.n);
		if (r)
			r = db_damaged(s, "totals", e);
	}
	buf_deinit(&raw);
	if (!r)
		r = exec_ids(s, "DELETE FROM totals WHERE stretch IN ", g, e);
	n = totals_sum_rows(sum, &rows);
	if (!r && n)
		r = totals_insert(s, g->p->id, rows, n, e);
	totals_sum_destroy(sum);
	return r;
}

struct event_account {
	int64_t event;
	struct store_account sum;
};

static int compact_accounts(struct store *s, const struct group *g, struct err *e)
{
	_cleanup_statement_ sqlite3_stmt *st = NULL;
	VEC(struct event_account) sums = {0};
	struct store_account a;
	int r = prepare_ids(s, "SELECT event, " ACCOUNT_COLUMNS " FROM accounts WHERE stretch IN ",
		g, " ORDER BY event", &st, e);

	while (!r && (r = db_step(s, st, e)) > 0) {
		int64_t event = sqlite3_column_int64(st, 0);

		if (!sums.n || sums.p[sums.n - 1].event != event)
			*vec_add(&sums) = (struct event_account){.event = event};
		account_read(st, 1, &a);
		account_sum(&sums.p[sums.n - 1].sum, &a);
		r = 0;
	}
	if (!r)
		r = exec_ids(s, "DELETE FROM accounts WHERE stretch IN ", g, e);
	vec_each (sum, &sums)
		if (!r)
			r = account_insert(s, g->p->id, sum->event, &sum->sum, e);
	vec_deinit(&sums);
	return r;
}

/* ---- stretches ---- */

/* Moves what is left of the group to its first stretch, which then covers the time of all. */
static int become_one(struct store *s, const struct group *g, struct err *e)
{
	int64_t v[] = {g->p->id, g->p->t0, g->p->t1};
	_cleanup_free_ char *move =
		xasprintf("UPDATE profiles SET stretch = %lld WHERE stretch != %lld "
			  "AND stretch IN ",
			(long long)g->p->id, (long long)g->p->id);
	_cleanup_free_ char *drop =
		xasprintf("DELETE FROM stretches WHERE id != %lld AND id IN ", (long long)g->p->id);
	int r = exec_ids(s, move, g, e);

	for (size_t i = 1; i < g->n; i++) {
		v[1] = g->p[i].t0 < v[1] ? g->p[i].t0 : v[1];
		v[2] = g->p[i].t1 > v[2] ? g->p[i].t1 : v[2];
	}
	if (!r)
		r = exec_ids(s, drop, g, e);
	if (!r)
		r = db_run_ints(s, "UPDATE stretches SET t0 = ?2, t1 = ?3 WHERE id = ?1", v, 3, e);
	s->stretch = 0;
	return r;
}

static int compact_group(struct store *s, const struct stretch *p, size_t n, struct err *e)
{
	struct group g = {.p = p, .n = n};
	struct buf ids = {0};
	bool own;
	int r;

	for (size_t i = 0; i < n; i++)
		buf_printf(&ids, "%s%lld", i ? ", " : "", (long long)p[i].id);
	g.ids = buf_cstr(&ids);
	r = db_begin(s, &own, e);
	if (!r) {
		r = compact_profiles(s, &g, e);
		if (!r)
			r = compact_totals(s, &g, e);
		if (!r)
			r = compact_accounts(s, &g, e);
		if (!r)
			r = become_one(s, &g, e);
		r = db_end(s, own, r, e);
	}
	buf_deinit(&ids);
	return r;
}

static int join_procedures(struct store *s, struct err *e)
{
	bool own;
	int r = db_begin(s, &own, e);

	return r ? r : db_end(s, own, procedures_join(s, e), e);
}

int store_compact(struct store *s, int64_t before, int64_t span, struct err *e)
{
	_cleanup_statement_ sqlite3_stmt *st = NULL;
	VEC(struct stretch) list = {0};
	int r;

	if (span <= 0)
		return err_set(e, -EINVAL, "%s: stretches of no length", s->path);
	r = db_prepare(s,
		"SELECT id, epoch, t0 / ?2, t0, t1 FROM stretches WHERE t1 <= ?1 ORDER BY 2, 3, 4, "
		"1",
		&st, e);
	if (r)
		return r;
	sqlite3_bind_int64(st, 1, before);
	sqlite3_bind_int64(st, 2, span);
	while ((r = db_step(s, st, e)) > 0)
		*vec_add(&list) = (struct stretch){
			.id = sqlite3_column_int64(st, 0),
			.epoch = sqlite3_column_int64(st, 1),
			.number = sqlite3_column_int64(st, 2),
			.t0 = sqlite3_column_int64(st, 3),
			.t1 = sqlite3_column_int64(st, 4),
		};
	db_finish(&st);
	for (size_t i = 0, end; !r && i < list.n; i = end) {
		for (end = i + 1; end < list.n && list.p[end].epoch == list.p[i].epoch &&
				  list.p[end].number == list.p[i].number;
			end++)
			;
		if (end - i > 1)
			r = compact_group(s, list.p + i, end - i, e);
	}
	vec_deinit(&list);
	return r ? r : join_procedures(s, e);
}
