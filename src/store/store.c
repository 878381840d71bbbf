/* Opening, closing and transactions. */
#include "store/anchors.h"
#include "store/commands.h"
#include "store/contexts.h"
#include "store/edges.h"
#include "store/exact.h"
#include "store/excursions.h"
#include "store/objects.h"
#include "store/paces.h"
#include "store/paths.h"
#include "store/stays.h"
#include "store/store_internal.h"
#include "store/traces.h"
#include "store/walks.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUSY_MS   5000
#define LOG_BYTES "4194304" /* what is kept of the -wal file between checkpoints */

/* What can be said about the file before SQLite sees it. */
static int check_file(struct store *s, bool *absent, struct err *e)
{
	struct stat st;

	*absent = false;
	if (stat(s->path, &st)) {
		if (errno != ENOENT)
			return err_errno(
				e, -errno, "%s: name a database that you may read", s->path);
		*absent = true;
		return 0;
	}
	if (S_ISDIR(st.st_mode))
		return err_set(e, -EISDIR, "%s: a directory: name a database file in it", s->path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, -EBADMSG, "%s: not a regular file: name a database", s->path);
	if (access(s->path, R_OK))
		return err_set(e, -errno,
			"%s: %s: profiles are private: use sudo, or have its group let you read it",
			s->path, strerror(errno));
	if (s->mode != STORE_READ && access(s->path, W_OK))
		return err_set(e, -errno, "%s: %s: use sudo, or write to another database", s->path,
			strerror(errno));
	return 0;
}

/*
 * The file must be private from its first moment, and SQLite gives -wal and -shm its mode. An
 * existing file is not opened here: closing it would drop the locks this process has on it.
 */
static int make_file(struct store *s, struct err *e)
{
	int fd = open(s->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0 && errno == EEXIST)
		return 0;
	if (fd < 0 && errno == ENOENT)
		return err_set(e, -ENOENT,
			"%s: its directory does not exist: make it with mkdir -p", s->path);
	if (fd < 0)
		return err_set(e, -errno, "%s: cannot be made: %s: name another place with -o",
			s->path, strerror(errno));
	close(fd);
	return 0;
}

/* "file:" names and the like are file names to us; immutable needs a real URI. */
static const char *sqlite_name(struct store *s, bool immutable, struct buf *out)
{
	if (immutable)
		buf_printf(out, "file:");
	if (s->path[0] != '/')
		buf_printf(out, "./");
	for (const char *p = s->path; *p; p++) {
		if (immutable && strchr("%?#", *p))
			buf_printf(out, "%%%02x", (unsigned char)*p);
		else
			buf_u8(out, (uint8_t)*p);
	}
	if (immutable)
		buf_printf(out, "?immutable=1");
	return buf_cstr(out);
}

/* Opens and reads the first page; returns SQLite's code. */
static int connect(struct store *s, int flags, bool immutable)
{
	struct buf name = {0};
	int rc;

	sqlite3_close(s->db);
	rc = sqlite3_open_v2(sqlite_name(s, immutable, &name), &s->db,
		flags | SQLITE_OPEN_NOMUTEX | (immutable ? SQLITE_OPEN_URI : 0), NULL);
	buf_deinit(&name);
	if (rc)
		return rc;
	sqlite3_extended_result_codes(s->db, 1);
	sqlite3_busy_timeout(s->db, BUSY_MS);
	sqlite3_limit(s->db, SQLITE_LIMIT_LENGTH, PACK_LIMIT);
	sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(s->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	rc = sqlite3_exec(
		s->db, "PRAGMA cell_size_check=ON; PRAGMA temp_store=MEMORY", NULL, NULL, NULL);
	if (!rc)
		rc = filter_functions(s);
	if (!rc)
		rc = sqlite3_exec(s->db, "SELECT count(*) FROM sqlite_schema", NULL, NULL, NULL);
	return rc;
}

/* Whether a file beside the database, like its log, is there and not empty. */
static bool beside(const struct store *s, const char *suffix, bool *readable)
{
	_cleanup_free_ char *path = xasprintf("%s%s", s->path, suffix);
	struct stat st;

	*readable = !access(path, R_OK);
	return !stat(path, &st) && st.st_size > 0;
}

/*
 * A reader changes nothing; but where a writer was killed while it made the file or changed its
 * journal mode, somebody has to undo the half-written page first.
 */
static int recover(struct store *s, struct err *e)
{
	int rc = connect(s, SQLITE_OPEN_READWRITE, false);

	if (!rc)
		rc = connect(s, SQLITE_OPEN_READONLY, false);
	if (rc)
		return err_set(e, -EACCES,
			"%s: its writer was killed and you may not clean up: open it once with the "
			"right to write ('sudo culprit db check')",
			s->path);
	return 0;
}

static int open_reader(struct store *s, struct err *e)
{
	int rc = connect(s, SQLITE_OPEN_READONLY, false), kind = rc & 0xff;
	bool readable;

	if (kind == SQLITE_CANTOPEN || kind == SQLITE_READONLY) {
		if (beside(s, "-wal", &readable) && !readable)
			return err_set(e, -EACCES,
				"%s-wal: may not be read: give it the group and mode of the "
				"database",
				s->path);
		if (beside(s, "-wal", &readable) || beside(s, "-journal", &readable))
			return recover(s, e);
		/* No log, and no right to make one: nobody is writing. */
		rc = connect(s, SQLITE_OPEN_READONLY, true);
	}
	return rc ? db_error(s, rc, e) : 0;
}

/*
 * Everything that makes an empty file a database is one transaction. Whoever comes second waits and
 * finds it done.
 */
static int initialise(struct store *s, struct err *e)
{
	bool empty;
	int r = db_exec(s, "PRAGMA auto_vacuum=INCREMENTAL; BEGIN IMMEDIATE", e);

	if (r)
		return r;
	r = schema_is_empty(s, &empty, e);
	if (!r && empty)
		r = schema_create(s, e);
	if (!r)
		r = db_exec(s, "COMMIT", e);
	if (r)
		sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
	return r;
}

/*
 * With a log, readers and a writer do not wait for each other. A reader of a closed database, or a
 * file system without shared memory, may prevent it; then it is tried again at each transaction.
 * NORMAL: the log is written through at checkpoints only. A killed writer loses nothing that was
 * committed, a power cut may lose the last minutes, and neither damages the file.
 */
static void use_log(struct store *s)
{
	_cleanup_statement_ sqlite3_stmt *st = NULL;

	sqlite3_busy_timeout(s->db, 0);
	if (!sqlite3_prepare_v2(s->db, "PRAGMA journal_mode=WAL", -1, &st, NULL) &&
		sqlite3_step(st) == SQLITE_ROW)
		s->log = !strcmp(db_text(st, 0), "wal");
	db_finish(&st);
	sqlite3_exec(s->db, s->log ? "PRAGMA synchronous=NORMAL" : "PRAGMA synchronous=FULL", NULL,
		NULL, NULL);
	sqlite3_busy_timeout(s->db, BUSY_MS);
	/* A writer appends; what it keeps of the file would only grow with it. */
	sqlite3_exec(s->db, "PRAGMA cache_size=-512", NULL, NULL, NULL);
}

static int open_writer(struct store *s, struct err *e)
{
	bool empty;
	int r, rc = connect(s, SQLITE_OPEN_READWRITE, false);

	if (rc)
		return db_error(s, rc, e);
	r = schema_is_empty(s, &empty, e);
	if (!r && empty && s->mode == STORE_WRITE)
		r = initialise(s, e);
	if (!r)
		r = schema_verify(s, e);
	if (!r)
		r = schema_upgrade(s, e);
	if (r)
		return r;
	use_log(s);
	/* A small cache: a writer appends blobs and hardly reads, and the daemon's memory is
	 * counted. */
	return db_exec(s,
		"PRAGMA secure_delete=FAST; PRAGMA cache_size=-512; "
		"PRAGMA journal_size_limit=" LOG_BYTES,
		e);
}

static int open_by_mode(struct store *s, struct err *e)
{
	bool absent;
	int r = check_file(s, &absent, e);

	if (r)
		return r;
	if (absent && s->mode != STORE_WRITE)
		return err_set(e, -ENOENT,
			"%s: no such database: record one with 'culprit record', or name it with "
			"-i",
			s->path);
	if (s->mode == STORE_READ) {
		r = open_reader(s, e);
		return r ? r : schema_verify(s, e);
	}
	if (absent)
		r = make_file(s, e);
	return r ? r : open_writer(s, e);
}

int store_open(const char *path, enum store_mode mode, struct store **out, struct err *e)
{
	struct store *s = xcalloc(1, sizeof *s);
	int r;

	s->path = xstrdup(path);
	s->mode = mode;
	hmap_init(&s->given, sizeof(struct given), sizeof(struct given));
	store_register(s, &blob_pc);
	store_register(s, &blob_edge);
	store_register(s, &blob_anchor);
	store_register(s, &blob_walk);
	store_register(s, &blob_excursion);
	store_register(s, &blob_pace);
	store_register(s, &blob_turns);
	store_register(s, &blob_stay);
	store_register(s, &blob_exact);
	store_register(s, &blob_path);
	store_register(s, &blob_context);
	store_register(s, &blob_trace);
	store_register(s, &blob_objects);
	store_register(s, &blob_pathmap);
	store_register(s, &blob_command);
	r = open_by_mode(s, e);
	if (r) {
		store_close(s);
		return r;
	}
	*out = s;
	return 0;
}

/*
 * A database that nobody writes is one file in rollback mode: it can be copied with cp and read
 * from a read-only disk. When a reader is still there it stays in log mode, which is right as well.
 */
static void fold_log(struct store *s)
{
	sqlite3_busy_timeout(s->db, 0);
	sqlite3_exec(s->db, "PRAGMA journal_mode=DELETE", NULL, NULL, NULL);
}

static void forget_statements(struct store *s)
{
	vec_each (k, &s->kept)
		sqlite3_finalize(k->st);
	vec_deinit(&s->kept);
}

void store_close(struct store *s)
{
	if (!s)
		return;
	forget_statements(s);
	if (s->db && s->began)
		store_rollback(s);
	if (s->db && s->mode != STORE_READ)
		fold_log(s);
	sqlite3_close(s->db);
	vec_each (t, &s->strange) {
		free((char *)(*t)->name);
		free(*t);
	}
	vec_deinit(&s->strange);
	vec_deinit(&s->types);
	hmap_deinit(&s->given);
	ZSTD_freeCCtx(s->compress);
	ZSTD_freeDCtx(s->expand);
	free(s->path);
	free(s);
}

static void ended(struct store *s)
{
	s->began = false;
	s->bytes = 0;
	ZSTD_freeCCtx(s->compress);
	s->compress = NULL;
}

/* Copies the log into the file and cuts both; readers may prevent it, then a later one does. */
static void checkpoint(struct store *s)
{
	sqlite3_busy_timeout(s->db, 0);
	sqlite3_wal_checkpoint_v2(s->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
	sqlite3_busy_timeout(s->db, BUSY_MS);
	s->shrink = false;
}

int store_begin(struct store *s, struct err *e)
{
	int r;

	if (s->began)
		return err_set(e, -EINVAL, "%s: a transaction is open already", s->path);
	if (s->mode != STORE_READ && !s->log)
		use_log(s);
	r = db_exec(s, s->mode == STORE_READ ? "BEGIN" : "BEGIN IMMEDIATE", e);
	s->began = !r;
	return r;
}

int store_commit(struct store *s, struct err *e)
{
	int r;

	if (!s->began || sqlite3_get_autocommit(s->db)) {
		store_rollback(s);
		return err_set(
			e, -EIO, "%s: the transaction was undone by an earlier error", s->path);
	}
	r = db_exec(s, "COMMIT", e);
	if (r) {
		store_rollback(s);
		return r;
	}
	ended(s);
	if (s->shrink)
		checkpoint(s);
	return 0;
}

void store_rollback(struct store *s)
{
	if (!sqlite3_get_autocommit(s->db))
		sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
	s->stretch = 0;
	s->shrink = false;
	ended(s);
}
