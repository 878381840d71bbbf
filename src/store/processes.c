/* Processes, and the text that many rows share. */
#include "store/store_internal.h"

#include <errno.h>

int name_id(struct store *s, const char *text, int64_t *id, struct err *e)
{
	sqlite3_stmt *st;
	int r = db_kept(s, "SELECT id FROM names WHERE text = ?", &st, e);

	if (r)
		return r;
	db_bind_text(st, 1, text);
	r = db_step(s, st, e);
	if (r > 0)
		*id = sqlite3_column_int64(st, 0);
	sqlite3_reset(st);
	if (r)
		return r < 0 ? r : 0;
	r = db_kept(s, "INSERT INTO names(text) VALUES(?)", &st, e);
	if (r)
		return r;
	db_bind_text(st, 1, text);
	r = db_run(s, st, e);
	*id = sqlite3_last_insert_rowid(s->db);
	return r;
}

int store_process(struct store *s, const struct store_process *p, int64_t *id, struct err *e)
{
	int64_t row[] = {p->epoch, p->pid, p->started, 0, 0};
	sqlite3_stmt *st;
	int r = name_id(s, p->comm, &row[3], e);

	if (!r)
		r = name_id(s, p->cgroup, &row[4], e);
	if (!r)
		r = db_kept(s,
			"SELECT id FROM processes WHERE epoch = ?1 AND pid = ?2 AND comm = ?4 "
			"AND started = ?3 AND cgroup = ?5",
			&st, e);
	if (r)
		return r;
	for (int i = 0; i < 5; i++)
		sqlite3_bind_int64(st, i + 1, row[i]);
	r = db_step(s, st, e);
	if (r > 0)
		*id = sqlite3_column_int64(st, 0);
	sqlite3_reset(st);
	if (r)
		return r < 0 ? r : 0;
	r = db_run_ints(s,
		"INSERT INTO processes(epoch, pid, started, comm, cgroup) VALUES(?, ?, ?, ?, ?)",
		row, 5, e);
	if (!r)
		*id = sqlite3_last_insert_rowid(s->db);
	return r;
}

int store_processes(struct store *s, store_process_fn *fn, void *arg, struct err *e)
{
	_cleanup_statement_ sqlite3_stmt *st = NULL;
	int r = db_prepare(s,
		"SELECT p.id, p.epoch, p.pid, p.started, c.text, g.text FROM processes p "
		"JOIN names c ON c.id = p.comm JOIN names g ON g.id = p.cgroup ORDER BY p.id",
		&st, e);

	if (r)
		return r;
	while ((r = db_step(s, st, e)) > 0) {
		struct store_process p = {
			.id = sqlite3_column_int64(st, 0),
			.epoch = sqlite3_column_int64(st, 1),
			.pid = sqlite3_column_int(st, 2),
			.started = sqlite3_column_int64(st, 3),
			.comm = db_text(st, 4),
			.cgroup = db_text(st, 5),
		};

		r = fn(arg, &p);
		if (r)
			return callback_result(r);
	}
	return r;
}
