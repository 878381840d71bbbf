/* Whether a database is what the invariants of schema.c and the packed forms say. */
#include "store/store_internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define FAULTS_MOST 100

struct checking {
	struct store *s;
	store_fault_fn *fn;
	void *arg;
	struct err *e;
	size_t faults;
	struct hmap images, events; /* ids that are there: struct known */
	struct buf raw;
	const char *table; /* of the totals row that is being read */
	int64_t row, epoch;
};

struct known {
	int64_t id, epoch;
};

static void __attribute__((format(printf, 2, 3))) fault(struct checking *c, const char *fmt, ...)
{
	char text[512];
	va_list args;

	if (c->faults++ >= FAULTS_MOST)
		return;
	if (c->faults == FAULTS_MOST) {
		c->fn(c->arg, "more faults than are listed");
		return;
	}
	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	c->fn(c->arg, text);
}

/* Damage that stops one check is a fault; what the machine refuses is an error. */
static int finding(struct checking *c, int r)
{
	struct err *e = c->e;

	if (r != -EBADMSG)
		return r;
	fault(c, "%s", e->text);
	e->code = 0;
	return 0;
}

typedef int check_fn(struct checking *c, sqlite3_stmt *st);

static int each_row(struct checking *c, const char *sql, check_fn *fn)
{
	_cleanup_statement_ sqlite3_stmt *st = NULL;
	int r = db_prepare(c->s, sql, &st, c->e);

	while (!r && (r = db_step(c->s, st, c->e)) > 0)
		r = fn(c, st);
	return finding(c, r);
}

/* ---- rows ---- */

static int check_integrity(struct checking *c, sqlite3_stmt *st)
{
	if (strcmp(db_text(st, 0), "ok"))
		fault(c, "SQLite: %s", db_text(st, 0));
	return 0;
}

static int check_reference(struct checking *c, sqlite3_stmt *st)
{
	fault(c, "%s row %lld: refers to nothing in %s", db_text(st, 0),
		(long long)sqlite3_column_int64(st, 1), db_text(st, 2));
	return 0;
}

/* For statements that select what must not be: the id and what is wrong with it. */
static int check_none(struct checking *c, sqlite3_stmt *st)
{
	fault(c, "%s %lld: %s", db_text(st, 0), (long long)sqlite3_column_int64(st, 1),
		db_text(st, 2));
	return 0;
}

#define EPOCHS_SQL \
	"SELECT 'epoch', id, 'ends before it starts' FROM epochs WHERE ended AND ended < started"
#define STRETCHES_SQL "SELECT 'stretch', id, 'ends before it starts' FROM stretches WHERE t1 < t0"
#define TWINS_SQL                                                \
	"SELECT 'image', max(id), 'is there twice' FROM images " \
	"GROUP BY kind, identity, CASE WHEN identity IS NULL THEN path END HAVING count(*) > 1"
#define PROFILE_EPOCHS_SQL                                                           \
	"SELECT 'profile', p.id, 'event, process and time are of different epochs' " \
	"FROM profiles p JOIN stretches st ON st.id = p.stretch "                    \
	"JOIN events ev ON ev.id = p.event JOIN processes pr ON pr.id = p.process "  \
	"WHERE ev.epoch != st.epoch OR pr.epoch != st.epoch"
#define ACCOUNT_EPOCHS_SQL                                                            \
	"SELECT 'accounting row', a.rowid, 'event and time are of different epochs' " \
	"FROM accounts a JOIN stretches st ON st.id = a.stretch "                     \
	"JOIN events ev ON ev.id = a.event WHERE ev.epoch != st.epoch"
/* Invariant 3 of schema.c. total() does not overflow. */
#define ACCOUNTING_SQL                                                                    \
	"SELECT ev.id, ev.name, ifnull(k.n, 0), ifnull(c.n, 0) FROM events ev "           \
	"LEFT JOIN (SELECT event, total(samples) AS n FROM profiles "                     \
	" WHERE type IN (SELECT id FROM names WHERE text = 'pc') GROUP BY event) k "      \
	" ON k.event = ev.id "                                                            \
	"LEFT JOIN (SELECT event, total(attributed) + total(unknown) AS n FROM accounts " \
	" GROUP BY event) c ON c.event = ev.id "                                          \
	"WHERE ifnull(k.n, 0) != ifnull(c.n, 0)"

static int check_accounting(struct checking *c, sqlite3_stmt *st)
{
	fault(c, "event %lld (%s): %.0f samples in profiles, %.0f in the accounting",
		(long long)sqlite3_column_int64(st, 0), db_text(st, 1),
		sqlite3_column_double(st, 2), sqlite3_column_double(st, 3));
	return 0;
}

/* ---- blobs ---- */

static int check_image(struct checking *c, sqlite3_stmt *st)
{
	_cleanup_free_ struct segment *segments = NULL;
	struct known key = {.id = sqlite3_column_int64(st, 0)};
	struct store_image im;

	hmap_put(&c->images, &key, NULL);
	if (image_decode(st, 0, &im, &segments))
		fault(c, "image %lld: kind, identity or segments are damaged", (long long)key.id);
	return 0;
}

static int note_event(struct checking *c, sqlite3_stmt *st)
{
	struct known key = {.id = sqlite3_column_int64(st, 0)}, *known;

	known = hmap_put(&c->events, &key, NULL);
	known->epoch = sqlite3_column_int64(st, 1);
	return 0;
}

static int check_profile(struct checking *c, sqlite3_stmt *st)
{
	const struct blob_type *type = type_find(c->s, db_text(st, 1));
	long long id = sqlite3_column_int64(st, 0);
	uint64_t weight = 0;

	if (db_expand(c->s, st, 3, &c->raw)) {
		fault(c, "profile %lld: does not unpack", id);
		return 0;
	}
	if (type && type->check && type->check(c->raw.p, c->raw.n))
		fault(c, "profile %lld: is no %s profile", id, type->name);
	else if (type && type->weight &&
		 (type->weight(c->raw.p, c->raw.n, &weight) ||
			 weight != (uint64_t)sqlite3_column_int64(st, 2)))
		fault(c, "profile %lld: has %llu samples, not %lld", id, (unsigned long long)weight,
			(long long)sqlite3_column_int64(st, 2));
	return 0;
}

static int check_total(void *arg, const struct store_total *row)
{
	struct checking *c = arg;
	const struct known *event = hmap_get(&c->events, &row->event);

	if (!event || event->epoch != c->epoch)
		fault(c, "totals %lld: event %lld is not of their epoch", (long long)c->row,
			(long long)row->event);
	if (!hmap_get(&c->images, &row->image))
		fault(c, "totals %lld: image %lld is not there", (long long)c->row,
			(long long)row->image);
	return c->faults > FAULTS_MOST ? -ECANCELED : 0;
}

static int check_totals(struct checking *c, sqlite3_stmt *st)
{
	c->row = sqlite3_column_int64(st, 0);
	c->epoch = sqlite3_column_int64(st, 1);
	if (db_expand(c->s, st, 2, &c->raw) ||
		totals_decode(c->raw.p, c->raw.n, check_total, c) == -EBADMSG)
		fault(c, "totals %lld: do not unpack", (long long)c->row);
	return 0;
}

static int check_procedures(struct checking *c, sqlite3_stmt *st)
{
	long long id = sqlite3_column_int64(st, 0);
	bool stored = sqlite3_column_type(st, 3) != SQLITE_NULL, any = false;
	procedure_rows rows = {0};
	struct arena arena = {0};
	uint64_t code = 0;

	if (db_expand(c->s, st, 2, &c->raw) || procedures_decode(c->raw.p, c->raw.n, &arena, &rows))
		fault(c, "procedures %lld: do not unpack", id);
	else if (rows.n != (uint64_t)sqlite3_column_int64(st, 1))
		fault(c, "procedures %lld: are %zu, not %lld", id, rows.n,
			(long long)sqlite3_column_int64(st, 1));
	vec_each (row, &rows) {
		any |= row->has_code;
		code += row->code_size;
	}
	c->raw.n = 0;
	if (any != stored || (stored && db_expand(c->s, st, 3, &c->raw)) || code != c->raw.n)
		fault(c, "procedures %lld: their code is damaged", id);
	vec_deinit(&rows);
	arena_deinit(&arena);
	return 0;
}

/* ---- all of it ---- */

static const struct {
	const char *sql;
	check_fn *fn;
} checks[] = {
	{"PRAGMA integrity_check(100)", check_integrity},
	{"PRAGMA foreign_key_check", check_reference},
	{EPOCHS_SQL, check_none},
	{STRETCHES_SQL, check_none},
	{TWINS_SQL, check_none},
	{PROFILE_EPOCHS_SQL, check_none},
	{ACCOUNT_EPOCHS_SQL, check_none},
	{ACCOUNTING_SQL, check_accounting},
	{"SELECT " IMAGE_COLUMNS " FROM images", check_image},
	{"SELECT id, epoch FROM events", note_event},
	{"SELECT p.id, n.text, p.samples, p.data FROM profiles p JOIN names n ON n.id = p.type",
		check_profile},
	{"SELECT t.id, st.epoch, t.data FROM totals t JOIN stretches st ON st.id = t.stretch",
		check_totals},
	{"SELECT p.id, p.n, p.data, c.data FROM procedures p LEFT JOIN code c ON c.id = p.id",
		check_procedures},
};

int store_check(struct store *s, store_fault_fn *fn, void *arg, struct err *e)
{
	struct err own = {0};
	struct checking c = {.s = s, .fn = fn, .arg = arg, .e = e ? e : &own};
	bool began = s->began;
	/* Somebody may write meanwhile: all is compared as it was at one time. */
	int r = began ? 0 : store_begin(s, c.e);

	hmap_init(&c.images, sizeof(struct known), sizeof(int64_t));
	hmap_init(&c.events, sizeof(struct known), sizeof(int64_t));
	for (size_t i = 0; !r && i < sizeof checks / sizeof *checks; i++)
		r = each_row(&c, checks[i].sql, checks[i].fn);
	if (!began)
		store_rollback(s);
	hmap_deinit(&c.images);
	hmap_deinit(&c.events);
	buf_deinit(&c.raw);
	return r;
}
