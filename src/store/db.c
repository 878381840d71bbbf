/* SQL in few words, and what its failures mean to the user. */
#include "store/store_internal.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/statvfs.h>

static int no_space(struct store *s, int why, struct err *e)
{
	struct statvfs fs;
	unsigned long long room = 0, need = (s->bytes + s->bytes / 8) / 1024 + 64;

	if (!statvfs(s->path, &fs))
		room = (unsigned long long)fs.f_bavail * fs.f_frsize / 1024;
	return err_set(e, -ENOSPC,
		"%s: %s (%llu KiB free, about %llu KiB needed): make room, or remove old profiles "
		"with 'culprit db expire'",
		s->path, strerror(why), room, need);
}

/* The errno behind a failure: where SQLite forgot it, the database or its log may know. */
static int system_error(struct store *s)
{
	static const int pointers[] = {SQLITE_FCNTL_FILE_POINTER, SQLITE_FCNTL_JOURNAL_POINTER};
	int why = sqlite3_system_errno(s->db);
	sqlite3_file *file;

	for (int i = 0; !why && i < 2; i++) {
		file = NULL;
		sqlite3_file_control(s->db, NULL, pointers[i], &file);
		if (file && file->pMethods)
			file->pMethods->xFileControl(file, SQLITE_FCNTL_LAST_ERRNO, &why);
	}
	return why;
}

static int io_error(struct store *s, int rc, struct err *e)
{
	int why = system_error(s);

	switch (why) {
	case ENOSPC:
	case EDQUOT:
	case EFBIG:
		return no_space(s, why, e);
	case EACCES:
	case EPERM:
	case EROFS:
		return err_set(e, -why,
			"%s: %s: get the right to write the file and its directory, or use another",
			s->path, strerror(why));
	case ENOENT:
		return err_set(e, -ENOENT, "%s: no such file: name another with -i or -o", s->path);
	}
	return err_set(e, -EIO, "%s: %s%s%s: check the disk, then 'culprit db check'", s->path,
		sqlite3_errstr(rc), why ? ": " : "", why ? strerror(why) : "");
}

int db_damaged(struct store *s, const char *what, struct err *e)
{
	return err_set(e, -EBADMSG,
		"%s: damaged database (%s): see 'culprit db check', and restore a copy or record "
		"anew",
		s->path, what);
}

int db_error(struct store *s, int rc, struct err *e)
{
	switch (rc & 0xff) {
	case SQLITE_FULL:
		return no_space(s, ENOSPC, e);
	case SQLITE_NOTADB:
		return err_set(e, -EBADMSG,
			"%s: not a culprit database: name the file that 'culprit record' wrote",
			s->path);
	case SQLITE_CORRUPT:
		return db_damaged(s, sqlite3_errmsg(s->db), e);
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return err_set(e, -EBUSY,
			"%s: locked by another process: try again when it is done", s->path);
	case SQLITE_READONLY:
	case SQLITE_PERM:
		return err_set(e, -EACCES,
			"%s: may not be written: get the right to write the file and its directory",
			s->path);
	case SQLITE_CANTOPEN:
	case SQLITE_IOERR:
		return io_error(s, rc, e);
	case SQLITE_NOMEM:
		return err_set(e, -ENOMEM, "%s: out of memory: close other programs", s->path);
	case SQLITE_TOOBIG:
		return err_set(
			e, -EFBIG, "%s: a profile is too large: use shorter epochs", s->path);
	}
	return db_damaged(s, sqlite3_errmsg(s->db), e);
}

int db_exec(struct store *s, const char *sql, struct err *e)
{
	int rc = sqlite3_exec(s->db, sql, NULL, NULL, NULL);

	return rc ? db_error(s, rc, e) : 0;
}

int db_prepare(struct store *s, const char *sql, sqlite3_stmt **out, struct err *e)
{
	int rc = sqlite3_prepare_v2(s->db, sql, -1, out, NULL);

	return rc ? db_error(s, rc, e) : 0;
}

int db_kept(struct store *s, const char *sql, sqlite3_stmt **out, struct err *e)
{
	int rc;

	vec_each (k, &s->kept) {
		if (k->sql != sql)
			continue;
		sqlite3_reset(k->st);
		sqlite3_clear_bindings(k->st);
		*out = k->st;
		return 0;
	}
	rc = sqlite3_prepare_v3(s->db, sql, -1, SQLITE_PREPARE_PERSISTENT, out, NULL);
	if (rc)
		return db_error(s, rc, e);
	*vec_add(&s->kept) = (struct kept_statement){.sql = sql, .st = *out};
	return 0;
}

int db_step(struct store *s, sqlite3_stmt *st, struct err *e)
{
	int rc = sqlite3_step(st);

	if (rc == SQLITE_ROW)
		return 1;
	if (rc == SQLITE_DONE)
		return 0;
	return db_error(s, rc, e);
}

int db_run(struct store *s, sqlite3_stmt *st, struct err *e)
{
	int r;

	do
		r = db_step(s, st, e);
	while (r > 0);
	sqlite3_reset(st);
	return r;
}

int db_run_ints(struct store *s, const char *sql, const int64_t *v, int n, struct err *e)
{
	sqlite3_stmt *st;
	int r = db_kept(s, sql, &st, e);

	if (r)
		return r;
	for (int i = 0; i < n; i++)
		sqlite3_bind_int64(st, i + 1, v[i]);
	return db_run(s, st, e);
}

int db_value(struct store *s, const char *sql, int64_t *out, struct err *e)
{
	_cleanup_statement_ sqlite3_stmt *st = NULL;
	int r = db_prepare(s, sql, &st, e);

	if (r)
		return r;
	r = db_step(s, st, e);
	if (r < 0)
		return r;
	*out = r ? sqlite3_column_int64(st, 0) : 0;
	return 0;
}

void db_finish(sqlite3_stmt **st)
{
	sqlite3_finalize(*st);
	*st = NULL;
}

int db_begin(struct store *s, bool *own, struct err *e)
{
	*own = !s->began;
	return *own ? store_begin(s, e) : 0;
}

int db_end(struct store *s, bool own, int r, struct err *e)
{
	if (!own)
		return r;
	if (!r)
		return store_commit(s, e);
	store_rollback(s);
	return r;
}

const char *db_text(sqlite3_stmt *st, int column)
{
	const char *text = (const char *)sqlite3_column_text(st, column);

	return text ? text : "";
}

void db_bind_double(sqlite3_stmt *st, int at, double v)
{
	/* SQLite would make NULL of it. */
	sqlite3_bind_double(st, at, isnan(v) ? 0 : v);
}

void db_bind_text(sqlite3_stmt *st, int at, const char *text)
{
	sqlite3_bind_text(st, at, text ? text : "", -1, SQLITE_TRANSIENT);
}

int db_bind_packed(struct store *s, sqlite3_stmt *st, int at, const struct buf *raw, struct err *e)
{
	struct buf packed = {0};
	int r;

	if (!s->compress)
		s->compress = ZSTD_createCCtx();
	if (!s->compress)
		return err_set(e, -ENOMEM, "%s: out of memory: close other programs", s->path);
	r = pack_compress_with(s->compress, raw->p, raw->n, &packed);
	if (r)
		err_set(e, r, "%s: a profile is too large: use shorter epochs", s->path);
	else
		sqlite3_bind_blob64(st, at, packed.p, packed.n, SQLITE_TRANSIENT);
	s->bytes += packed.n;
	buf_deinit(&packed);
	return r;
}

int db_expand(struct store *s, sqlite3_stmt *st, int column, struct buf *out)
{
	const void *p = sqlite3_column_blob(st, column);

	out->n = 0;
	if (!s->expand)
		s->expand = ZSTD_createDCtx();
	if (!p || !s->expand)
		return -EBADMSG;
	return pack_expand_with(s->expand, p, (size_t)sqlite3_column_bytes(st, column), out);
}

void given_add(struct store *s, char what, int64_t id)
{
	hmap_put(&s->given, &(struct given){.id = id, .what = (uint64_t)what}, NULL);
}

void given_drop(struct store *s, char what, int64_t id)
{
	hmap_delete(&s->given, &(struct given){.id = id, .what = (uint64_t)what});
}

bool given_has(const struct store *s, char what, int64_t id)
{
	return hmap_get(&s->given, &(struct given){.id = id, .what = (uint64_t)what}) != NULL;
}
