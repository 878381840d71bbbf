/* Hosts, epochs, their events and the accounting. */
#include "store/store_internal.h"

#include <errno.h>

/* Runs a statement that looks for one id; *id stays 0 when there is none. */
static int find_id(struct store *s, sqlite3_stmt *st, int64_t *id, struct err *e)
{
	int r = db_step(s, st, e);

	*id = r > 0 ? sqlite3_column_int64(st, 0) : 0;
	sqlite3_reset(st);
	return r < 0 ? r : 0;
}

static int add_row(struct store *s, sqlite3_stmt *st, int64_t *id, struct err *e)
{
	int r = db_run(s, st, e);

	if (!r)
		*id = sqlite3_last_insert_rowid(s->db);
	return r;
}

static void bind_host(sqlite3_stmt *st, const struct store_host *h)
{
	db_bind_text(st, 1, h->name);
	db_bind_text(st, 2, h->machine_id);
	db_bind_text(st, 3, h->cpu);
	db_bind_text(st, 4, h->kernel);
	sqlite3_bind_int64(st, 5, h->cpus);
}

int store_host(struct store *s, const struct store_host *h, int64_t *id, struct err *e)
{
	sqlite3_stmt *st;
	int r = db_kept(s,
		"SELECT id FROM hosts WHERE name = ? AND machine_id = ? AND cpu = ? AND kernel = ? "
		"AND cpus = ?",
		&st, e);

	if (r)
		return r;
	bind_host(st, h);
	r = find_id(s, st, id, e);
	if (r || *id)
		return r;
	r = db_kept(s,
		"INSERT INTO hosts(name, machine_id, cpu, kernel, cpus) VALUES(?, ?, ?, ?, ?)", &st,
		e);
	if (r)
		return r;
	bind_host(st, h);
	return add_row(s, st, id, e);
}

/* ---- epochs ---- */

int store_epoch_start(
	struct store *s, int64_t host, int64_t time, const char *label, int64_t *id, struct err *e)
{
	sqlite3_stmt *st;
	int r = db_kept(s,
		"INSERT INTO epochs(host, started, ended, label) "
		"SELECT id, ?2, 0, ?3 FROM hosts WHERE id = ?1",
		&st, e);

	if (r)
		return r;
	sqlite3_bind_int64(st, 1, host);
	sqlite3_bind_int64(st, 2, time);
	db_bind_text(st, 3, label);
	r = add_row(s, st, id, e);
	if (r)
		return r;
	if (!sqlite3_changes(s->db))
		return err_set(e, -EINVAL, "%s: an epoch of a host that is not there", s->path);
	given_add(s, 'e', *id);
	return 0;
}

int store_epoch_end(struct store *s, int64_t epoch, int64_t time, struct err *e)
{
	given_drop(s, 'e', epoch);
	return db_run_ints(
		s, "UPDATE epochs SET ended = ?2 WHERE id = ?1", (int64_t[]){epoch, time}, 2, e);
}

/* Samples are those of the pc profiles: other types say more about the same samples. */
#define EPOCHS_SQL                                                                            \
	"SELECT e.id, e.host, e.started, e.ended, h.name, e.label, "                          \
	"(SELECT ifnull(sum(p.samples), 0) FROM stretches st JOIN profiles p ON p.stretch = " \
	"st.id "                                                                              \
	" JOIN names n ON n.id = p.type AND n.text = 'pc' WHERE st.epoch = e.id), "           \
	"(SELECT ifnull(sum(length(p.data)), 0) FROM stretches st "                           \
	" JOIN profiles p ON p.stretch = st.id WHERE st.epoch = e.id) + "                     \
	"(SELECT ifnull(sum(length(t.data)), 0) FROM stretches st "                           \
	" JOIN totals t ON t.stretch = st.id WHERE st.epoch = e.id), "                        \
	"(SELECT ifnull(group_concat(name), '') FROM "                                        \
	" (SELECT name FROM events WHERE epoch = e.id ORDER BY id)) "                         \
	"FROM epochs e JOIN hosts h ON h.id = e.host ORDER BY e.started, e.id"

int store_epochs(struct store *s, store_epoch_fn *fn, void *arg, struct err *e)
{
	_cleanup_statement_ sqlite3_stmt *st = NULL;
	int r = db_prepare(s, EPOCHS_SQL, &st, e);

	if (r)
		return r;
	while ((r = db_step(s, st, e)) > 0) {
		struct store_epoch epoch = {
			.id = sqlite3_column_int64(st, 0),
			.host = sqlite3_column_int64(st, 1),
			.started = sqlite3_column_int64(st, 2),
			.ended = sqlite3_column_int64(st, 3),
			.host_name = db_text(st, 4),
			.label = db_text(st, 5),
			.samples = (uint64_t)sqlite3_column_int64(st, 6),
			.bytes = (uint64_t)sqlite3_column_int64(st, 7),
			.events = db_text(st, 8),
		};

		r = fn(arg, &epoch);
		if (r)
			return callback_result(r);
	}
	return r;
}

/* ---- events ---- */

static void bind_event(sqlite3_stmt *st, const struct store_event *ev)
{
	sqlite3_bind_int64(st, 1, ev->epoch);
	db_bind_text(st, 2, ev->name);
	db_bind_text(st, 3, ev->unit);
	db_bind_double(st, 4, ev->period);
	db_bind_double(st, 5, ev->rate);
	db_bind_double(st, 6, ev->cost);
	db_bind_double(st, 7, ev->budget);
	sqlite3_bind_int64(st, 8, ev->skid);
	db_bind_double(st, 9, ev->skid_share);
	db_bind_double(st, 10, ev->cycles_per_ns);
}

int store_event(struct store *s, struct store_event *ev, struct err *e)
{
	sqlite3_stmt *st;
	int64_t id = 0;
	int r = db_kept(s,
		"UPDATE events SET unit = ?3, period = ?4, rate = ?5, cost = ?6, budget = ?7, "
		"skid = ?8, skid_share = ?9, cycles_per_ns = ?10 "
		"WHERE epoch = ?1 AND name = ?2 RETURNING id",
		&st, e);

	if (r)
		return r;
	bind_event(st, ev);
	while ((r = db_step(s, st, e)) > 0)
		id = sqlite3_column_int64(st, 0);
	sqlite3_reset(st);
	if (!r && !id) {
		r = db_kept(s,
			"INSERT INTO events(epoch, name, unit, period, rate, cost, budget, "
			"skid, skid_share, cycles_per_ns) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
			&st, e);
		if (r)
			return r;
		bind_event(st, ev);
		r = add_row(s, st, &id, e);
	}
	if (!r)
		ev->id = id;
	return r;
}

/* The columns of table `ev` that read_event takes; EVENT_FIELDS of them. */
#define EVENT_COLUMNS "ev.id, ev.epoch, ev.name, ev.unit, ev.period, ev.rate, ev.cost, ev.budget, "
#define EVENT_FIELDS  11

static const char *event_rest(const struct store *s)
{
	return s->version == 1 ? "0, 0.0, 0.0" : "ev.skid, ev.skid_share, ev.cycles_per_ns";
}

/* Readers step so far through code: what no host can have is not known. */
static int32_t read_skid(sqlite3_stmt *st, int column)
{
	int64_t skid = sqlite3_column_int64(st, column);

	return skid >= 0 && skid <= STORE_SKID_MOST ? (int32_t)skid : 0;
}

static struct store_event read_event(sqlite3_stmt *st)
{
	return (struct store_event){
		.id = sqlite3_column_int64(st, 0),
		.epoch = sqlite3_column_int64(st, 1),
		.name = db_text(st, 2),
		.unit = db_text(st, 3),
		.period = sqlite3_column_double(st, 4),
		.rate = sqlite3_column_double(st, 5),
		.cost = sqlite3_column_double(st, 6),
		.budget = sqlite3_column_double(st, 7),
		.skid = read_skid(st, 8),
		.skid_share = sqlite3_column_double(st, 9),
		.cycles_per_ns = sqlite3_column_double(st, 10),
	};
}

int store_events(struct store *s, store_event_fn *fn, void *arg, struct err *e)
{
	_cleanup_statement_ sqlite3_stmt *st = NULL;
	_cleanup_free_ char *sql = xasprintf(
		"SELECT " EVENT_COLUMNS "%s FROM events ev ORDER BY ev.id", event_rest(s));
	int r = db_prepare(s, sql, &st, e);

	if (r)
		return r;
	while ((r = db_step(s, st, e)) > 0) {
		struct store_event ev = read_event(st);

		r = fn(arg, &ev);
		if (r)
			return callback_result(r);
	}
	return r;
}

/* ---- stretches ---- */

int stretch_id(struct store *s, int64_t epoch, int64_t t0, int64_t t1, int64_t *id, struct err *e)
{
	const int64_t key[] = {epoch, t0, t1};
	sqlite3_stmt *st;
	int r;

	if (s->stretch && s->stretch_epoch == epoch && s->stretch_t0 == t0 && s->stretch_t1 == t1) {
		*id = s->stretch;
		return 0;
	}
	if (t1 < t0)
		return err_set(e, -EINVAL, "%s: a stretch that ends before it starts", s->path);
	r = db_kept(s, "SELECT id FROM stretches WHERE epoch = ? AND t0 = ? AND t1 = ?", &st, e);
	for (int i = 0; !r && i < 3; i++)
		sqlite3_bind_int64(st, i + 1, key[i]);
	if (!r)
		r = find_id(s, st, id, e);
	if (!r && !*id) {
		r = db_run_ints(
			s, "INSERT INTO stretches(epoch, t0, t1) VALUES(?, ?, ?)", key, 3, e);
		*id = sqlite3_last_insert_rowid(s->db);
	}
	if (r)
		return r;
	s->stretch = *id;
	s->stretch_epoch = epoch;
	s->stretch_t0 = t0;
	s->stretch_t1 = t1;
	return 0;
}

/* ---- accounting ---- */

static void add_count(uint64_t *a, uint64_t b)
{
	if (__builtin_add_overflow(*a, b, a))
		*a = UINT64_MAX;
}

void account_sum(struct store_account *a, const struct store_account *b)
{
	double weight = a->expected + b->expected;

	if (weight > 0)
		a->scale = (a->scale * a->expected + b->scale * b->expected) / weight;
	else if (b->scale > a->scale)
		a->scale = b->scale;
	add_count(&a->attributed, b->attributed);
	add_count(&a->unknown, b->unknown);
	add_count(&a->lost, b->lost);
	add_count(&a->throttled, b->throttled);
	add_count(&a->missed, b->missed);
	a->expected = weight;
}

void account_read(sqlite3_stmt *st, int column, struct store_account *out)
{
	*out = (struct store_account){
		.attributed = (uint64_t)sqlite3_column_int64(st, column),
		.unknown = (uint64_t)sqlite3_column_int64(st, column + 1),
		.lost = (uint64_t)sqlite3_column_int64(st, column + 2),
		.throttled = (uint64_t)sqlite3_column_int64(st, column + 3),
		.missed = (uint64_t)sqlite3_column_int64(st, column + 4),
		.expected = sqlite3_column_double(st, column + 5),
		.scale = sqlite3_column_double(st, column + 6),
	};
}

int account_insert(struct store *s, int64_t stretch, int64_t event, const struct store_account *a,
	struct err *e)
{
	sqlite3_stmt *st;
	int r = db_kept(s,
		"INSERT INTO accounts(stretch, event, " ACCOUNT_COLUMNS ") "
		"VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)",
		&st, e);

	if (r)
		return r;
	sqlite3_bind_int64(st, 1, stretch);
	sqlite3_bind_int64(st, 2, event);
	sqlite3_bind_int64(st, 3, (int64_t)a->attributed);
	sqlite3_bind_int64(st, 4, (int64_t)a->unknown);
	sqlite3_bind_int64(st, 5, (int64_t)a->lost);
	sqlite3_bind_int64(st, 6, (int64_t)a->throttled);
	sqlite3_bind_int64(st, 7, (int64_t)a->missed);
	db_bind_double(st, 8, a->expected);
	db_bind_double(st, 9, a->scale);
	return db_run(s, st, e);
}

int store_account_add(struct store *s, int64_t event, int64_t t0, int64_t t1,
	const struct store_account *a, struct err *e)
{
	sqlite3_stmt *st;
	int64_t epoch, stretch;
	int r = db_kept(s, "SELECT epoch FROM events WHERE id = ?", &st, e);

	if (r)
		return r;
	sqlite3_bind_int64(st, 1, event);
	r = find_id(s, st, &epoch, e);
	if (!r && !epoch)
		return err_set(e, -EINVAL, "%s: accounting of an event that is not there", s->path);
	if (!r)
		r = stretch_id(s, epoch, t0, t1, &stretch, e);
	return r ? r : account_insert(s, stretch, event, a, e);
}

#define ACCOUNTS_SQL                                                                             \
	"SELECT " EVENT_COLUMNS "%s, "                                                           \
	"sum(attributed), sum(unknown), sum(lost), sum(throttled), sum(missed), sum(expected), " \
	"CASE WHEN sum(expected) > 0 THEN sum(scale * expected) / sum(expected) "                \
	" ELSE max(scale) END "                                                                  \
	"FROM events ev JOIN accounts a ON a.event = ev.id "                                     \
	"JOIN stretches st ON st.id = a.stretch WHERE 1 "

int store_accounts(struct store *s, const struct store_filter *f, store_account_fn *fn, void *arg,
	struct err *e)
{
	_cleanup_statement_ sqlite3_stmt *st = NULL;
	struct buf sql = {0};
	int r;

	buf_printf(&sql, ACCOUNTS_SQL, event_rest(s));
	filter_times(f, &sql);
	if (f && f->event)
		buf_printf(&sql, "AND ev.name = :event ");
	buf_printf(&sql, "GROUP BY ev.id ORDER BY ev.id");
	r = db_prepare(s, buf_cstr(&sql), &st, e);
	buf_deinit(&sql);
	if (r)
		return r;
	filter_bind(st, f);
	while ((r = db_step(s, st, e)) > 0) {
		struct store_event ev = read_event(st);
		struct store_account sum;

		account_read(st, EVENT_FIELDS, &sum);
		r = fn(arg, &ev, &sum);
		if (r)
			return callback_result(r);
	}
	return r;
}
