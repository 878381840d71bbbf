#include "store/store_internal.h"

#include "base/cursor.h"

#include <errno.h>
#include <fnmatch.h>
#include <string.h>

/*
 * totals.data, unpacked: all rows of one flush. A task is a thread (pid, tid, started, comm,
 * thread, cgroup); its rows stand together. Column by column, because like compresses with like:
 *
 *   uleb           number of strings, tasks, rows
 *   COLUMNS x uleb bytes of each column; then the columns, in the order of enum column
 *
 *   STRINGS        each string and a NUL
 *   PID            sleb, less that of the task before
 *   TID            sleb, less the pid
 *   STARTED        sleb, less that of the task before
 *   COMM, CGROUP   uleb, number of the string
 *   THREAD         uleb, 0: the same as comm; else number of the string + 1
 *   ROWS           uleb, rows of the task - 1
 *   CPU            sleb       \
 *   IMAGE, EVENT   uleb, ids   > one a row
 *   SAMPLES        uleb       /
 *
 *  1. Every column is used up exactly.
 *  2. Numbers of strings are below the number of strings; pid, tid and cpu fit into 32 bits.
 */
enum column {
	STRINGS,
	PID,
	TID,
	STARTED,
	COMM,
	CGROUP,
	THREAD,
	ROWS,
	CPU,
	IMAGE,
	EVENT,
	SAMPLES,
	COLUMNS,
};

/* ---- packing ---- */

static int compare_text(const char *a, const char *b)
{
	return a == b ? 0 : strcmp(a, b);
}

static int compare_tasks(const struct store_total *a, const struct store_total *b)
{
	int c;

	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	if (a->started != b->started)
		return a->started < b->started ? -1 : 1;
	if (a->tid != b->tid)
		return a->tid < b->tid ? -1 : 1;
	c = compare_text(a->comm, b->comm);
	if (!c)
		c = compare_text(a->thread, b->thread);
	return c ? c : compare_text(a->cgroup, b->cgroup);
}

static int compare_rows(const void *x, const void *y)
{
	const struct store_total *a = *(const struct store_total *const *)x;
	const struct store_total *b = *(const struct store_total *const *)y;
	int c = compare_tasks(a, b);

	if (c)
		return c;
	if (a->event != b->event)
		return a->event < b->event ? -1 : 1;
	if (a->image != b->image)
		return a->image < b->image ? -1 : 1;
	return (a->cpu > b->cpu) - (a->cpu < b->cpu);
}

/* The difference as two's complement, whatever the numbers. */
static int64_t less(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a - (uint64_t)b);
}

static void put_task(struct buf *columns, struct strtab *strings, const struct store_total *task,
	const struct store_total *before)
{
	uint32_t comm = strtab_add(strings, task->comm), thread = strtab_add(strings, task->thread);

	buf_sleb(&columns[PID], less(task->pid, before->pid));
	buf_sleb(&columns[TID], less(task->tid, task->pid));
	buf_sleb(&columns[STARTED], less(task->started, before->started));
	buf_uleb(&columns[COMM], comm);
	buf_uleb(&columns[CGROUP], strtab_add(strings, task->cgroup));
	buf_uleb(&columns[THREAD], thread == comm ? 0 : (uint64_t)thread + 1);
}

static void put_rows(struct buf *columns, const struct store_total **rows, size_t n)
{
	buf_uleb(&columns[ROWS], n - 1);
	for (size_t i = 0; i < n; i++) {
		buf_sleb(&columns[CPU], rows[i]->cpu);
		buf_uleb(&columns[IMAGE], (uint64_t)rows[i]->image);
		buf_uleb(&columns[EVENT], (uint64_t)rows[i]->event);
		buf_uleb(&columns[SAMPLES], rows[i]->samples);
	}
}

void totals_encode(const struct store_total *list, size_t n, struct buf *out)
{
	static const struct store_total first;
	const struct store_total **rows = xcalloc(n, sizeof *rows), *before = &first;
	struct buf columns[COLUMNS] = {0};
	struct strtab strings = {0};
	size_t tasks = 0;

	for (size_t i = 0; i < n; i++)
		rows[i] = &list[i];
	qsort(rows, n, sizeof *rows, compare_rows);
	for (size_t i = 0, end; i < n; i = end, tasks++) {
		for (end = i + 1; end < n && !compare_tasks(rows[i], rows[end]); end++)
			;
		put_task(columns, &strings, rows[i], before);
		put_rows(columns, rows + i, end - i);
		before = rows[i];
	}
	for (size_t i = 0; i < strings.n; i++)
		buf_str(&columns[STRINGS], strings.strings[i]);
	buf_uleb(out, strings.n);
	buf_uleb(out, tasks);
	buf_uleb(out, n);
	for (int i = 0; i < COLUMNS; i++)
		buf_uleb(out, columns[i].n);
	for (int i = 0; i < COLUMNS; i++) {
		buf_put(out, columns[i].p, columns[i].n);
		buf_deinit(&columns[i]);
	}
	strtab_deinit(&strings);
	free(rows);
}

/* ---- unpacking ---- */

struct unpacking {
	struct cursor columns[COLUMNS];
	const char **strings;
	uint64_t nstrings, tasks, rows;
};

static int unpacking_init(struct unpacking *u, const void *p, size_t n)
{
	struct cursor c = cursor_over(p, n);
	uint64_t bytes[COLUMNS];

	u->nstrings = cursor_uleb(&c);
	u->tasks = cursor_uleb(&c);
	u->rows = cursor_uleb(&c);
	for (int i = 0; i < COLUMNS; i++)
		bytes[i] = cursor_uleb(&c);
	for (int i = 0; i < COLUMNS; i++)
		u->columns[i] = cursor_slice(&c, bytes[i]);
	/* A string takes a byte at least, as a task and a row do in their columns. */
	if (c.failed || cursor_left(&c) || u->nstrings > cursor_left(&u->columns[STRINGS]))
		return -EBADMSG;
	u->strings = xcalloc(u->nstrings, sizeof *u->strings);
	for (uint64_t i = 0; i < u->nstrings; i++)
		u->strings[i] = cursor_str(&u->columns[STRINGS]);
	return 0;
}

static bool take_int32(struct cursor *c, int64_t base, int32_t *out)
{
	int64_t v;

	if (__builtin_add_overflow(base, cursor_sleb(c), &v) || v < INT32_MIN || v > INT32_MAX)
		return false;
	*out = (int32_t)v;
	return true;
}

static bool take_string(struct unpacking *u, uint64_t number, const char **out)
{
	if (number >= u->nstrings)
		return false;
	*out = u->strings[number];
	return true;
}

static bool take_task(struct unpacking *u, struct store_total *t, uint64_t *nrows)
{
	uint64_t thread;

	if (!take_int32(&u->columns[PID], t->pid, &t->pid) ||
		!take_int32(&u->columns[TID], t->pid, &t->tid))
		return false;
	t->started = (int64_t)((uint64_t)t->started + (uint64_t)cursor_sleb(&u->columns[STARTED]));
	if (!take_string(u, cursor_uleb(&u->columns[COMM]), &t->comm) ||
		!take_string(u, cursor_uleb(&u->columns[CGROUP]), &t->cgroup))
		return false;
	thread = cursor_uleb(&u->columns[THREAD]);
	t->thread = t->comm;
	if (thread && !take_string(u, thread - 1, &t->thread))
		return false;
	*nrows = cursor_uleb(&u->columns[ROWS]);
	return ++*nrows && !u->columns[ROWS].failed;
}

static bool take_row(struct unpacking *u, struct store_total *t)
{
	if (!take_int32(&u->columns[CPU], 0, &t->cpu))
		return false;
	t->image = (int64_t)cursor_uleb(&u->columns[IMAGE]);
	t->event = (int64_t)cursor_uleb(&u->columns[EVENT]);
	t->samples = cursor_uleb(&u->columns[SAMPLES]);
	return !u->columns[SAMPLES].failed;
}

static int unpack_rows(struct unpacking *u, totals_fn *fn, void *arg)
{
	struct store_total t = {0};
	uint64_t left = u->rows, nrows;

	for (uint64_t task = 0; task < u->tasks; task++) {
		if (!take_task(u, &t, &nrows) || nrows > left)
			return -EBADMSG;
		for (left -= nrows; nrows; nrows--) {
			int r = take_row(u, &t) ? fn(arg, &t) : -EBADMSG;

			if (r)
				return r;
		}
	}
	for (int i = 0; i < COLUMNS; i++)
		if (u->columns[i].failed || cursor_left(&u->columns[i]))
			return -EBADMSG;
	return left ? -EBADMSG : 0;
}

int totals_decode(const void *p, size_t n, totals_fn *fn, void *arg)
{
	struct unpacking u;
	int r = unpacking_init(&u, p, n);

	if (r)
		return r;
	r = unpack_rows(&u, fn, arg);
	free(u.strings);
	return r;
}

/* ---- the database ---- */

int totals_insert(
	struct store *s, int64_t stretch, const struct store_total *rows, size_t n, struct err *e)
{
	struct buf raw = {0};
	sqlite3_stmt *st;
	int r = db_kept(s, "INSERT INTO totals(stretch, data) VALUES(?, ?)", &st, e);

	if (r)
		return r;
	totals_encode(rows, n, &raw);
	r = db_bind_packed(s, st, 2, &raw, e);
	buf_deinit(&raw);
	if (r)
		return r;
	sqlite3_bind_int64(st, 1, stretch);
	return db_run(s, st, e);
}

int store_totals_add(struct store *s, int64_t epoch, int64_t t0, int64_t t1,
	const struct store_total *rows, size_t n, struct err *e)
{
	int64_t stretch;
	int r = stretch_id(s, epoch, t0, t1, &stretch, e);

	if (r || !n)
		return r;
	return totals_insert(s, stretch, rows, n, e);
}

int totals_each(struct store *s, totals_fn *fn, void *arg, struct err *e)
{
	_cleanup_statement_ sqlite3_stmt *st = NULL;
	struct buf raw = {0};
	int r = db_prepare(s, "SELECT data FROM totals", &st, e);

	while (!r && (r = db_step(s, st, e)) > 0) {
		r = db_expand(s, st, 0, &raw);
		if (!r)
			r = totals_decode(raw.p, raw.n, fn, arg);
		if (r)
			r = db_damaged(s, "totals", e);
	}
	buf_deinit(&raw);
	return r;
}

/* What of a filter concerns rows inside a blob. */
struct choosing {
	const struct store_filter *f;
	struct hmap events, images; /* ids that pass; only used when there is a pattern */
	store_total_fn *fn;
	void *arg;
	int64_t t0, t1;
	bool stopped;
	int r;
};

static bool chosen(const struct choosing *c, const struct store_total *row)
{
	const struct store_filter *f = c->f;

	if (!f)
		return true;
	return (!f->pid || f->pid == row->pid) && (!f->comm || !fnmatch(f->comm, row->comm, 0)) &&
	       (!f->event || hmap_get(&c->events, &row->event)) &&
	       (!f->image || hmap_get(&c->images, &row->image));
}

static int choose(void *arg, const struct store_total *row)
{
	struct choosing *c = arg;

	if (!chosen(c, row))
		return 0;
	c->r = c->fn(c->arg, row, c->t0, c->t1);
	c->stopped = c->r != 0;
	return c->stopped;
}

static int read_ids(struct store *s, const char *sql, const struct store_filter *f,
	struct hmap *out, struct err *e)
{
	_cleanup_statement_ sqlite3_stmt *st = NULL;
	int r = db_prepare(s, sql, &st, e);

	if (r)
		return r;
	filter_bind(st, f);
	while ((r = db_step(s, st, e)) > 0)
		hmap_put(out, &(int64_t){sqlite3_column_int64(st, 0)}, NULL);
	return r;
}

static int choosing_init(struct store *s, struct choosing *c, struct err *e)
{
	int r = 0;

	hmap_init(&c->events, sizeof(int64_t), sizeof(int64_t));
	hmap_init(&c->images, sizeof(int64_t), sizeof(int64_t));
	if (c->f && c->f->event)
		r = read_ids(s, "SELECT id FROM events WHERE name = :event", c->f, &c->events, e);
	if (!r && c->f && c->f->image)
		r = read_ids(s, "SELECT id FROM images WHERE image_matches(:image, path, identity)",
			c->f, &c->images, e);
	return r;
}

static void choosing_deinit(struct choosing *c)
{
	hmap_deinit(&c->events);
	hmap_deinit(&c->images);
}

static int choose_blobs(struct store *s, struct choosing *c, struct err *e)
{
	_cleanup_statement_ sqlite3_stmt *st = NULL;
	struct buf sql = {0}, raw = {0};
	int r;

	buf_printf(&sql, "SELECT st.t0, st.t1, t.data FROM totals t "
			 "JOIN stretches st ON st.id = t.stretch WHERE 1 ");
	filter_times(c->f, &sql);
	r = db_prepare(s, buf_cstr(&sql), &st, e);
	if (!r)
		filter_bind(st, c->f);
	while (!r && (r = db_step(s, st, e)) > 0) {
		c->t0 = sqlite3_column_int64(st, 0);
		c->t1 = sqlite3_column_int64(st, 1);
		r = db_expand(s, st, 2, &raw);
		if (!r)
			r = totals_decode(raw.p, raw.n, choose, c);
		if (r && !c->stopped)
			r = db_damaged(s, "totals", e);
	}
	buf_deinit(&sql);
	buf_deinit(&raw);
	return c->stopped ? callback_result(c->r) : r;
}

int store_totals(
	struct store *s, const struct store_filter *f, store_total_fn *fn, void *arg, struct err *e)
{
	struct choosing c = {.f = f, .fn = fn, .arg = arg};
	int r = choosing_init(s, &c, e);

	if (!r)
		r = choose_blobs(s, &c, e);
	choosing_deinit(&c);
	return r;
}
