/* One database added to another. */
#include "store/store_internal.h"

#include <errno.h>
#include <sys/stat.h>

/* An id of the one database and what it became in the other. */
struct mapped {
	int64_t from, to;
};

struct merging {
	struct store *to, *from;
	struct hmap hosts, epochs, events, images, processes, stretches; /* struct mapped */
	struct err *e;
};

static void map_put(struct hmap *m, int64_t from, int64_t to)
{
	struct mapped *pair = hmap_put(m, &from, NULL);

	pair->to = to;
}

static int map_get(struct merging *m, struct hmap *map, int64_t from, int64_t *to)
{
	const struct mapped *pair = hmap_get(map, &from);

	if (!pair)
		return db_damaged(m->from, "a reference to nothing", m->e);
	*to = pair->to;
	return 0;
}

/* ---- each table ---- */

typedef int row_fn(struct merging *m, sqlite3_stmt *st);

static int each_row(struct merging *m, const char *sql, row_fn *fn)
{
	_cleanup_statement_ sqlite3_stmt *st = NULL;
	int r = db_prepare(m->from, sql, &st, m->e);

	while (!r && (r = db_step(m->from, st, m->e)) > 0)
		r = fn(m, st);
	return r;
}

static int copy_host(struct merging *m, sqlite3_stmt *st)
{
	struct store_host host = {
		.name = db_text(st, 1),
		.machine_id = db_text(st, 2),
		.cpu = db_text(st, 3),
		.kernel = db_text(st, 4),
		.cpus = (uint32_t)sqlite3_column_int64(st, 5),
	};
	int64_t id;
	int r = store_host(m->to, &host, &id, m->e);

	if (!r)
		map_put(&m->hosts, sqlite3_column_int64(st, 0), id);
	return r;
}

static int copy_epoch(struct merging *m, sqlite3_stmt *st)
{
	sqlite3_stmt *add;
	int64_t host = 0;
	int r = map_get(m, &m->hosts, sqlite3_column_int64(st, 1), &host);

	if (!r)
		r = db_kept(m->to,
			"INSERT INTO epochs(host, started, ended, label) VALUES(?, ?, ?, ?)", &add,
			m->e);
	if (r)
		return r;
	sqlite3_bind_int64(add, 1, host);
	sqlite3_bind_int64(add, 2, sqlite3_column_int64(st, 2));
	sqlite3_bind_int64(add, 3, sqlite3_column_int64(st, 3));
	db_bind_text(add, 4, db_text(st, 4));
	r = db_run(m->to, add, m->e);
	if (!r)
		map_put(&m->epochs, sqlite3_column_int64(st, 0),
			sqlite3_last_insert_rowid(m->to->db));
	return r;
}

static int copy_event(void *arg, const struct store_event *event)
{
	struct merging *m = arg;
	struct store_event copy = *event;
	int r = map_get(m, &m->epochs, event->epoch, &copy.epoch);

	if (!r)
		r = store_event(m->to, &copy, m->e);
	if (!r)
		map_put(&m->events, event->id, copy.id);
	return r;
}

static int copy_image(void *arg, const struct store_image *im)
{
	struct merging *m = arg;
	int64_t id;
	int r = store_image(m->to, im, &id, m->e);

	if (!r)
		r = procedures_copy(m->from, im->id, m->to, id, m->e);
	if (!r)
		map_put(&m->images, im->id, id);
	return r;
}

static int copy_process(void *arg, const struct store_process *p)
{
	struct merging *m = arg;
	struct store_process copy = *p;
	int64_t id;
	int r = map_get(m, &m->epochs, p->epoch, &copy.epoch);

	if (!r)
		r = store_process(m->to, &copy, &id, m->e);
	if (!r)
		map_put(&m->processes, p->id, id);
	return r;
}

static int copy_stretch(struct merging *m, sqlite3_stmt *st)
{
	int64_t epoch = 0;
	int r = map_get(m, &m->epochs, sqlite3_column_int64(st, 1), &epoch);

	if (!r)
		r = db_run_ints(m->to, "INSERT INTO stretches(epoch, t0, t1) VALUES(?, ?, ?)",
			(int64_t[]){
				epoch, sqlite3_column_int64(st, 2), sqlite3_column_int64(st, 3)},
			3, m->e);
	if (!r)
		map_put(&m->stretches, sqlite3_column_int64(st, 0),
			sqlite3_last_insert_rowid(m->to->db));
	return r;
}

static int copy_account(struct merging *m, sqlite3_stmt *st)
{
	struct store_account a;
	int64_t stretch = 0, event = 0;
	int r = map_get(m, &m->stretches, sqlite3_column_int64(st, 0), &stretch);

	if (!r)
		r = map_get(m, &m->events, sqlite3_column_int64(st, 1), &event);
	if (r)
		return r;
	account_read(st, 2, &a);
	return account_insert(m->to, stretch, event, &a, m->e);
}

/* Damage should not travel: what can be checked is. */
static int check_profile(struct merging *m, sqlite3_stmt *st)
{
	const struct blob_type *type = type_find(m->to, db_text(st, 4));
	struct buf raw = {0};
	int r = db_expand(m->from, st, 6, &raw);

	if (!r && type && type->check)
		r = type->check(raw.p, raw.n);
	buf_deinit(&raw);
	return r ? db_damaged(m->from, "a profile", m->e) : 0;
}

/* The packed bytes are taken over as they are, also those of types that nobody here knows. */
static int copy_profile(struct merging *m, sqlite3_stmt *st)
{
	struct hmap *maps[] = {&m->stretches, &m->events, &m->images, &m->processes};
	int64_t v[6] = {0, 0, 0, 0, 0, sqlite3_column_int64(st, 5)};
	sqlite3_stmt *add;
	int r = check_profile(m, st);

	for (int i = 0; !r && i < 4; i++)
		r = map_get(m, maps[i], sqlite3_column_int64(st, i), &v[i]);
	if (!r)
		r = name_id(m->to, db_text(st, 4), &v[4], m->e);
	if (!r)
		r = db_kept(m->to,
			"INSERT INTO profiles(stretch, event, image, process, type, samples, data) "
			"VALUES(?, ?, ?, ?, ?, ?, ?)",
			&add, m->e);
	if (r)
		return r;
	for (int i = 0; i < 6; i++)
		sqlite3_bind_int64(add, i + 1, v[i]);
	sqlite3_bind_blob(
		add, 7, sqlite3_column_blob(st, 6), sqlite3_column_bytes(st, 6), SQLITE_TRANSIENT);
	m->to->bytes += (uint64_t)sqlite3_column_bytes(st, 6);
	return db_run(m->to, add, m->e);
}

struct total_rows {
	struct merging *m;
	VEC(struct store_total) rows;
};

static int map_total(void *arg, const struct store_total *row)
{
	struct total_rows *t = arg;
	struct store_total copy = *row;

	if (map_get(t->m, &t->m->images, row->image, &copy.image) ||
		map_get(t->m, &t->m->events, row->event, &copy.event))
		return -EBADMSG;
	*vec_add(&t->rows) = copy;
	return 0;
}

static int copy_totals(struct merging *m, sqlite3_stmt *st)
{
	struct total_rows t = {.m = m};
	struct buf raw = {0};
	int64_t stretch = 0;
	int r = map_get(m, &m->stretches, sqlite3_column_int64(st, 0), &stretch);

	if (!r && (db_expand(m->from, st, 1, &raw) || totals_decode(raw.p, raw.n, map_total, &t)))
		r = db_damaged(m->from, "totals", m->e);
	if (!r)
		r = totals_insert(m->to, stretch, t.rows.p, t.rows.n, m->e);
	vec_deinit(&t.rows);
	buf_deinit(&raw);
	return r;
}

/* ---- all of it ---- */

static int copy_all(struct merging *m)
{
	int r = each_row(m, "SELECT id, name, machine_id, cpu, kernel, cpus FROM hosts", copy_host);

	if (!r)
		r = each_row(m, "SELECT id, host, started, ended, label FROM epochs ORDER BY id",
			copy_epoch);
	if (!r)
		r = store_events(m->from, copy_event, m, m->e);
	if (!r)
		r = store_images(m->from, copy_image, m, m->e);
	if (!r)
		r = store_processes(m->from, copy_process, m, m->e);
	if (!r)
		r = each_row(
			m, "SELECT id, epoch, t0, t1 FROM stretches ORDER BY id", copy_stretch);
	if (!r)
		r = each_row(m, "SELECT stretch, event, " ACCOUNT_COLUMNS " FROM accounts",
			copy_account);
	if (!r)
		r = each_row(m,
			"SELECT p.stretch, p.event, p.image, p.process, n.text, p.samples, p.data "
			"FROM profiles p JOIN names n ON n.id = p.type ORDER BY p.id",
			copy_profile);
	if (!r)
		r = each_row(m, "SELECT stretch, data FROM totals ORDER BY id", copy_totals);
	return r;
}

static int merge_mapped(struct store *s, struct store *from, struct err *e)
{
	struct merging m = {.to = s, .from = from, .e = e};
	struct hmap *maps[] = {
		&m.hosts, &m.epochs, &m.events, &m.images, &m.processes, &m.stretches};
	const size_t n = sizeof maps / sizeof *maps;
	int r;

	for (size_t i = 0; i < n; i++)
		hmap_init(maps[i], sizeof(struct mapped), offsetof(struct mapped, to));
	r = copy_all(&m);
	for (size_t i = 0; i < n; i++)
		hmap_deinit(maps[i]);
	return r;
}

static bool same_file(const char *a, const char *b)
{
	struct stat x, y;

	return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

int store_merge(struct store *s, struct store *from, struct err *e)
{
	bool own = false, own_from = false;
	int r;

	if (same_file(s->path, from->path))
		return err_set(e, -EINVAL,
			"%s: cannot be merged into itself: name another database", s->path);
	/* A transaction on both sides: a daemon may be writing the source. */
	r = db_begin(from, &own_from, e);
	if (!r)
		r = db_begin(s, &own, e);
	if (!r)
		r = db_end(s, own, merge_mapped(s, from, e), e);
	if (own_from)
		store_rollback(from);
	return r;
}
