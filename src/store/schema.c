#include "store/store_internal.h"

#include <errno.h>
#include <string.h>

/*
 * The database, version 2. The header of the SQLite file holds application_id STORE_APPLICATION and
 * user_version STORE_VERSION. Blobs marked (packed) are laid out where they are written: pack.c,
 * edges.c, anchors.c, walks.c, images.c, procedures.c, totals.c. Times are microseconds since 1970.
 *
 *  1. A stretch is what one flush wrote, or several flushes put together by compaction. Profiles,
 *     totals and accounting of one stretch come and go together.
 *  2. The stretches of an epoch lie inside it; events and processes belong to one epoch.
 *  3. Every sample of an event is in exactly one "pc" profile: for each event the samples of
 *     these profiles are attributed + unknown of its accounting.
 *  4. profiles.samples is the weight of the unpacked data.
 *  5. processes.pid is 0 for all processes of one comm (and cgroup) together.
 *  6. images.identity is NULL, or one byte (1: a hash of our own, 0: a build-id) and the bytes. No
 *     two images have the same kind and identity, or without identity the same kind and path.
 *  7. procedures holds batches: n procedures by start. A start that is in two batches of an image
 *     has code in the later one only. The code of a batch, where there is any, stands in `code`
 *     under the same id, in the same order.
 *
 * The statements are compared with those in the file when it is opened: a table that is not as
 * written here could do anything.
 */
struct object {
	const char *name, *sql;
};

#define EVENTS_1                                                             \
	"CREATE TABLE events("                                               \
	"id INTEGER PRIMARY KEY, epoch INTEGER NOT NULL REFERENCES epochs, " \
	"name TEXT NOT NULL, unit TEXT NOT NULL, period REAL NOT NULL, "     \
	"rate REAL NOT NULL, cost REAL NOT NULL, budget REAL NOT NULL"
/* What version 2 added, column by column: SQLite writes a new column behind the others. */
#define SKID       "skid INTEGER NOT NULL DEFAULT 0"
#define SKID_SHARE "skid_share REAL NOT NULL DEFAULT 0"
#define CYCLES     "cycles_per_ns REAL NOT NULL DEFAULT 0"

static const struct object objects[] = {
	{"hosts", "CREATE TABLE hosts("
		  "id INTEGER PRIMARY KEY, name TEXT NOT NULL, machine_id TEXT NOT NULL, "
		  "cpu TEXT NOT NULL, kernel TEXT NOT NULL, cpus INTEGER NOT NULL) STRICT"},
	{"epochs", "CREATE TABLE epochs("
		   "id INTEGER PRIMARY KEY, host INTEGER NOT NULL REFERENCES hosts, "
		   "started INTEGER NOT NULL, ended INTEGER NOT NULL, label TEXT NOT NULL) STRICT"},
	{"events", EVENTS_1 ", " SKID ", " SKID_SHARE ", " CYCLES ") STRICT"},
	{"stretches", "CREATE TABLE stretches("
		      "id INTEGER PRIMARY KEY, epoch INTEGER NOT NULL REFERENCES epochs, "
		      "t0 INTEGER NOT NULL, t1 INTEGER NOT NULL) STRICT"},
	{"stretches_by_time", "CREATE INDEX stretches_by_time ON stretches(epoch, t0, t1)"},
	{"accounts",
		"CREATE TABLE accounts("
		"stretch INTEGER NOT NULL REFERENCES stretches, "
		"event INTEGER NOT NULL REFERENCES events, "
		"attributed INTEGER NOT NULL, unknown INTEGER NOT NULL, "
		"lost INTEGER NOT NULL, throttled INTEGER NOT NULL, "
		"missed INTEGER NOT NULL, expected REAL NOT NULL, scale REAL NOT NULL) STRICT"},
	{"accounts_by_stretch", "CREATE INDEX accounts_by_stretch ON accounts(stretch)"},
	{"images", "CREATE TABLE images("
		   "id INTEGER PRIMARY KEY, kind INTEGER NOT NULL, identity BLOB, "
		   "path TEXT NOT NULL, segments BLOB NOT NULL) STRICT"},
	{"images_by_identity", "CREATE INDEX images_by_identity ON images(identity) "
			       "WHERE identity IS NOT NULL"},
	{"images_by_path", "CREATE INDEX images_by_path ON images(path) WHERE identity IS NULL"},
	{"names", "CREATE TABLE names(id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE) STRICT"},
	{"processes", "CREATE TABLE processes("
		      "id INTEGER PRIMARY KEY, epoch INTEGER NOT NULL REFERENCES epochs, "
		      "pid INTEGER NOT NULL, started INTEGER NOT NULL, "
		      "comm INTEGER NOT NULL REFERENCES names, "
		      "cgroup INTEGER NOT NULL REFERENCES names) STRICT"},
	{"processes_by_pid", "CREATE INDEX processes_by_pid ON processes(epoch, pid, comm)"},
	{"profiles", "CREATE TABLE profiles("
		     "id INTEGER PRIMARY KEY, stretch INTEGER NOT NULL REFERENCES stretches, "
		     "event INTEGER NOT NULL REFERENCES events, "
		     "image INTEGER NOT NULL REFERENCES images, "
		     "process INTEGER NOT NULL REFERENCES processes, "
		     "type INTEGER NOT NULL REFERENCES names, "
		     "samples INTEGER NOT NULL, data BLOB NOT NULL) STRICT"},
	{"profiles_by_stretch", "CREATE INDEX profiles_by_stretch ON profiles(stretch)"},
	{"profiles_by_image", "CREATE INDEX profiles_by_image ON profiles(image, process)"},
	{"totals", "CREATE TABLE totals("
		   "id INTEGER PRIMARY KEY, stretch INTEGER NOT NULL REFERENCES stretches, "
		   "data BLOB NOT NULL) STRICT"},
	{"totals_by_stretch", "CREATE INDEX totals_by_stretch ON totals(stretch)"},
	{"procedures", "CREATE TABLE procedures("
		       "id INTEGER PRIMARY KEY, image INTEGER NOT NULL REFERENCES images, "
		       "n INTEGER NOT NULL, data BLOB NOT NULL) STRICT"},
	{"procedures_by_image", "CREATE INDEX procedures_by_image ON procedures(image)"},
	{"code", "CREATE TABLE code("
		 "id INTEGER PRIMARY KEY REFERENCES procedures, data BLOB NOT NULL) STRICT"},
};
#define NOBJECTS (sizeof objects / sizeof *objects)

static const struct object events_1 = {"events", EVENTS_1 ") STRICT"};

int schema_is_empty(struct store *s, bool *empty, struct err *e)
{
	int64_t objects_there, application;
	int r = db_value(s, "SELECT count(*) FROM sqlite_schema", &objects_there, e);

	if (!r)
		r = db_value(s, "PRAGMA application_id", &application, e);
	if (!r)
		*empty = !objects_there && !application;
	return r;
}

int schema_create(struct store *s, struct err *e)
{
	struct buf sql = {0};
	int r;

	for (size_t i = 0; i < NOBJECTS; i++)
		buf_printf(&sql, "%s;", objects[i].sql);
	buf_printf(&sql, "PRAGMA application_id=%d; PRAGMA user_version=%d;", STORE_APPLICATION,
		STORE_VERSION);
	r = db_exec(s, buf_cstr(&sql), e);
	buf_deinit(&sql);
	return r;
}

static int verify_version(struct store *s, struct err *e)
{
	int64_t application, version;
	bool empty;
	int r = schema_is_empty(s, &empty, e);

	if (!r)
		r = db_value(s, "PRAGMA application_id", &application, e);
	if (!r)
		r = db_value(s, "PRAGMA user_version", &version, e);
	if (r)
		return r;
	if (empty)
		return err_set(e, -EBADMSG,
			"%s: empty, nothing was recorded into it: name another database", s->path);
	if (application != STORE_APPLICATION)
		return err_set(e, -EBADMSG,
			"%s: an SQLite database of another program: name the file that 'culprit "
			"record' wrote",
			s->path);
	if (version > STORE_VERSION)
		return err_set(e, -EPROTO,
			"%s: written by a newer culprit (format %lld, this one knows %d): use that "
			"version",
			s->path, (long long)version, STORE_VERSION);
	if (version < 1)
		return db_damaged(s, "format version", e);
	s->version = (int)version;
	return 0;
}

static int verify_object(
	struct store *s, sqlite3_stmt *st, const struct object *wanted, struct err *e)
{
	int r;

	if (s->version == 1 && !strcmp(wanted->name, events_1.name))
		wanted = &events_1;
	sqlite3_reset(st);
	sqlite3_bind_text(st, 1, wanted->name, -1, SQLITE_STATIC);
	r = db_step(s, st, e);
	if (r < 0)
		return r;
	if (!r || strcmp(db_text(st, 0), wanted->sql))
		return db_damaged(s, wanted->name, e);
	return 0;
}

int schema_verify(struct store *s, struct err *e)
{
	_cleanup_statement_ sqlite3_stmt *st = NULL;
	int64_t strange;
	int r = verify_version(s, e);

	if (r)
		return r;
	r = db_value(s, "SELECT count(*) FROM sqlite_schema WHERE type NOT IN ('table', 'index')",
		&strange, e);
	if (r)
		return r;
	if (strange)
		return db_damaged(s, "triggers or views", e);
	r = db_prepare(s, "SELECT sql FROM sqlite_schema WHERE name = ?", &st, e);
	for (size_t i = 0; !r && i < NOBJECTS; i++)
		r = verify_object(s, st, &objects[i], e);
	return r;
}

/* Whoever comes second waits and finds it done. */
int schema_upgrade(struct store *s, struct err *e)
{
	int r;

	if (s->version == STORE_VERSION)
		return 0;
	r = db_exec(s, "BEGIN IMMEDIATE", e);
	if (r)
		return r;
	r = verify_version(s, e);
	if (!r && s->version == 1)
		r = db_exec(s,
			"ALTER TABLE events ADD COLUMN " SKID ";"
			"ALTER TABLE events ADD COLUMN " SKID_SHARE ";"
			"ALTER TABLE events ADD COLUMN " CYCLES ";"
			"PRAGMA user_version=2",
			e);
	if (!r)
		r = db_exec(s, "COMMIT", e);
	if (r)
		sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
	else
		s->version = STORE_VERSION;
	return r;
}
