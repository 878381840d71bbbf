#include "store/fixture.h"
#include "store/store_internal.h"

#include <sys/wait.h>

static void run_sql(const char *path, const char *sql)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	if (sqlite3_exec(db, sql, NULL, NULL, NULL)) {
		print_error("%s: %s\n", sql, sqlite3_errmsg(db));
		fail();
	}
	sqlite3_close(db);
}

static void write_text(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static mode_t mode_of(struct fixture *f, const char *suffix)
{
	char path[128];
	struct stat st;

	snprintf(path, sizeof path, "%s%s", f->path, suffix);
	return stat(path, &st) ? 0 : st.st_mode & 07777;
}

static int setup_empty(void **state)
{
	struct fixture *f = xcalloc(1, sizeof *f);

	fixture_paths(f);
	*state = f;
	return 0;
}

/* ---- the file ---- */

static void is_private(void **state)
{
	struct fixture *f = *state;
	mode_t old = umask(0);

	ok(f, store_open(f->path, STORE_WRITE, &f->s, &f->e));
	umask(old);
	assert_int_equal(mode_of(f, ""), 0600);
	ok(f, store_begin(f->s, &f->e));
	fixture_fill(f);
	ok(f, store_commit(f->s, &f->e));
	assert_int_equal(mode_of(f, "-wal"), 0600);
	assert_int_equal(mode_of(f, "-shm"), 0600);
}

static void closed_is_one_file(void **state)
{
	struct fixture *f = *state;

	ok(f, store_begin(f->s, &f->e));
	add_flush(f, 0, 100);
	ok(f, store_commit(f->s, &f->e));
	assert_int_equal(mode_of(f, "-wal"), 0600);
	store_close(f->s);
	f->s = NULL;
	assert_int_equal(mode_of(f, "-wal"), 0);
	assert_int_equal(mode_of(f, "-shm"), 0);
	assert_int_equal(mode_of(f, "-journal"), 0);
	ok(f, store_open(f->path, STORE_READ, &f->s, &f->e));
	assert_int_equal(profile_rows(f, NULL), 1);
	assert_int_equal(mode_of(f, "-wal"), 0); /* nor does a reader leave anything */
}

static void header_says_what_it_is(void **state)
{
	struct fixture *f = *state;
	int64_t v;

	ok(f, db_value(f->s, "PRAGMA application_id", &v, &f->e));
	assert_int_equal(v, STORE_APPLICATION);
	ok(f, db_value(f->s, "PRAGMA user_version", &v, &f->e));
	assert_int_equal(v, STORE_VERSION);
	ok(f, db_value(f->s, "PRAGMA auto_vacuum", &v, &f->e));
	assert_int_equal(v, 2);
	ok(f, db_value(f->s, "PRAGMA synchronous", &v, &f->e));
	assert_int_equal(v, 1);
}

static void a_mode_that_was_set_stays(void **state)
{
	struct fixture *f = *state;

	store_close(f->s);
	f->s = NULL;
	assert_int_equal(chmod(f->path, 0640), 0);
	ok(f, store_open(f->path, STORE_WRITE, &f->s, &f->e));
	ok(f, store_begin(f->s, &f->e));
	add_flush(f, 0, 100);
	ok(f, store_commit(f->s, &f->e));
	assert_int_equal(mode_of(f, ""), 0640);
	assert_int_equal(mode_of(f, "-wal"), 0640);
	assert_int_equal(mode_of(f, "-shm"), 0640);
}

/* Names that mean something to SQLite are names of files to us. */
static void odd_names(void **state)
{
	static const char *const names[] = {":memory:", "file:x?mode=memory", "a%41?b#c"};
	struct fixture *f = *state;
	char cwd[512];

	assert_non_null(getcwd(cwd, sizeof cwd));
	assert_int_equal(chdir(f->dir), 0);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		ok(f, store_open(names[i], STORE_WRITE, &f->s, &f->e));
		store_close(f->s);
		f->s = NULL;
		assert_int_equal(access(names[i], F_OK), 0);
	}
	assert_int_equal(chdir(cwd), 0);
}

/* ---- what is no database of ours ---- */

static void refuses_what_is_not_there(void **state)
{
	struct fixture *f = *state;
	char below[128];

	snprintf(below, sizeof below, "%s/none/t.db", f->dir);
	fails(f, store_open(f->path, STORE_READ, &f->s, &f->e), -ENOENT, "culprit record");
	fails(f, store_open(f->path, STORE_UPDATE, &f->s, &f->e), -ENOENT, f->path);
	assert_int_equal(access(f->path, F_OK), -1);
	fails(f, store_open(below, STORE_WRITE, &f->s, &f->e), -ENOENT, "mkdir");
	fails(f, store_open(f->dir, STORE_READ, &f->s, &f->e), -EISDIR, "directory");
	fails(f, store_open(f->dir, STORE_WRITE, &f->s, &f->e), -EISDIR, "directory");
	assert_int_equal(mkfifo(f->path, 0600), 0);
	fails(f, store_open(f->path, STORE_READ, &f->s, &f->e), -EBADMSG, "regular");
	fails(f, store_open("/dev/null", STORE_WRITE, &f->s, &f->e), -EBADMSG, "regular");
	assert_null(f->s);
}

static void refuses_text(void **state)
{
	static const enum store_mode modes[] = {STORE_READ, STORE_UPDATE, STORE_WRITE};
	struct fixture *f = *state;
	struct stat st;

	write_text(f->path, "Dear diary, this is not a database at all, it is a text.\n");
	for (int i = 0; i < 3; i++)
		fails(f, store_open(f->path, modes[i], &f->s, &f->e), -EBADMSG,
			"not a culprit database");
	assert_int_equal(stat(f->path, &st), 0);
	assert_int_equal(st.st_size, 57);
}

static void an_empty_file(void **state)
{
	struct fixture *f = *state;

	write_text(f->path, "");
	fails(f, store_open(f->path, STORE_READ, &f->s, &f->e), -EBADMSG, "empty");
	fails(f, store_open(f->path, STORE_UPDATE, &f->s, &f->e), -EBADMSG, "empty");
	/* As a writer leaves it that was killed at once. */
	ok(f, store_open(f->path, STORE_WRITE, &f->s, &f->e));
	assert_sound(f);
}

static void refuses_other_databases(void **state)
{
	static const enum store_mode modes[] = {STORE_READ, STORE_UPDATE, STORE_WRITE};
	struct fixture *f = *state;
	sqlite3 *db;

	run_sql(f->path, "CREATE TABLE diary(text); INSERT INTO diary VALUES('dear')");
	for (int i = 0; i < 3; i++)
		fails(f, store_open(f->path, modes[i], &f->s, &f->e), -EBADMSG, "another program");
	assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "SELECT * FROM diary", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}

static void refuses_a_newer_version(void **state)
{
	static const enum store_mode modes[] = {STORE_READ, STORE_UPDATE, STORE_WRITE};
	struct fixture *f = *state;

	store_close(f->s);
	f->s = NULL;
	run_sql(f->path, "PRAGMA user_version=99");
	for (int i = 0; i < 3; i++)
		fails(f, store_open(f->path, modes[i], &f->s, &f->e), -EPROTO, "newer");
	run_sql(f->path, "PRAGMA user_version=0");
	fails(f, store_open(f->path, STORE_READ, &f->s, &f->e), -EBADMSG, "damaged");
}

static int keep_event(void *arg, const struct store_event *ev)
{
	*(struct store_event *)arg = *ev;
	return 0;
}

/* Before events had a skid. Readers change nothing, and the first writer adds it. */
static void version_1(void **state)
{
	struct fixture *f = *state;
	struct store_event ev = {.skid = 9};
	int64_t version;

	store_close(f->s);
	f->s = NULL;
	run_sql(f->path, "ALTER TABLE events DROP COLUMN cycles_per_ns;"
			 "ALTER TABLE events DROP COLUMN skid_share;"
			 "ALTER TABLE events DROP COLUMN skid; PRAGMA user_version=1");
	ok(f, store_open(f->path, STORE_READ, &f->s, &f->e));
	ok(f, store_events(f->s, keep_event, &ev, &f->e));
	assert_int_equal(ev.skid, 0);
	assert_int_equal(ev.id, f->event.id);
	assert_sound(f);
	ok(f, db_value(f->s, "PRAGMA user_version", &version, &f->e));
	assert_int_equal(version, 1);
	store_close(f->s);
	f->s = NULL;
	ok(f, store_open(f->path, STORE_UPDATE, &f->s, &f->e));
	ok(f, db_value(f->s, "PRAGMA user_version", &version, &f->e));
	assert_int_equal(version, 2);
	f->event.skid = 3;
	ok(f, store_begin(f->s, &f->e));
	ok(f, store_event(f->s, &f->event, &f->e));
	ok(f, store_commit(f->s, &f->e));
	store_close(f->s);
	f->s = NULL;
	ok(f, store_open(f->path, STORE_READ, &f->s, &f->e)); /* it is as if made today */
	ok(f, store_events(f->s, keep_event, &ev, &f->e));
	assert_int_equal(ev.skid, 3);
	assert_sound(f);
}

static void refuses_other_tables(void **state)
{
	static const char *const changes[] = {
		"DROP TABLE code",
		"ALTER TABLE totals ADD COLUMN more TEXT",
		"CREATE TRIGGER t AFTER INSERT ON profiles BEGIN DELETE FROM hosts; END",
		"DROP INDEX profiles_by_stretch",
		"ALTER TABLE hosts RENAME TO h; CREATE VIEW hosts AS SELECT * FROM h",
	};

	for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
		struct fixture *f = *state;

		store_close(f->s);
		f->s = NULL;
		run_sql(f->path, changes[i]);
		fails(f, store_open(f->path, STORE_READ, &f->s, &f->e), -EBADMSG, "damaged");
		fails(f, store_open(f->path, STORE_WRITE, &f->s, &f->e), -EBADMSG, "damaged");
		teardown(state);
		setup(state);
	}
}

/* ---- transactions ---- */

static void rollback_leaves_nothing(void **state)
{
	struct fixture *f = *state;
	uint64_t samples;

	ok(f, store_begin(f->s, &f->e));
	add_flush(f, 0, 100);
	store_rollback(f->s);
	assert_int_equal(profile_rows(f, NULL), 0);
	ok(f, store_begin(f->s, &f->e));
	samples = add_flush(f, 0, 100); /* the stretch of the undone one must be made anew */
	ok(f, store_commit(f->s, &f->e));
	assert_int_equal(profile_samples(f, NULL), samples);
	assert_sound(f);

	ok(f, store_begin(f->s, &f->e));
	fails(f, store_begin(f->s, &f->e), -EINVAL, "open already");
	add_flush(f, 1, 100);
	store_close(f->s);
	f->s = NULL;
	ok(f, store_open(f->path, STORE_READ, &f->s, &f->e));
	assert_int_equal(profile_samples(f, NULL), samples);
	fails(f, store_commit(f->s, &f->e), -EIO, "undone");
}

static void readers_see_one_state(void **state)
{
	struct fixture *f = *state, reader = {0};

	ok(&reader, store_open(f->path, STORE_READ, &reader.s, &reader.e));
	ok(&reader, store_begin(reader.s, &reader.e));
	assert_int_equal(profile_rows(&reader, NULL), 0);
	ok(f, store_begin(f->s, &f->e));
	add_flush(f, 0, 100);
	ok(f, store_commit(f->s, &f->e));
	assert_int_equal(profile_rows(&reader, NULL), 0);
	ok(&reader, store_commit(reader.s, &reader.e));
	assert_int_equal(profile_rows(&reader, NULL), 1);
	store_close(reader.s);
}

/* A reader holds the closed file, which is in rollback mode; the log comes when it is gone. */
static void the_log_comes_later(void **state)
{
	struct fixture *f = *state, reader = {0};

	store_close(f->s);
	f->s = NULL;
	ok(&reader, store_open(f->path, STORE_READ, &reader.s, &reader.e));
	ok(&reader, store_begin(reader.s, &reader.e));
	assert_int_equal(profile_rows(&reader, NULL), 0);
	ok(f, store_open(f->path, STORE_WRITE, &f->s, &f->e));
	assert_false(f->s->log);
	store_close(reader.s);
	ok(f, store_begin(f->s, &f->e));
	assert_true(f->s->log);
	add_flush(f, 0, 10);
	ok(f, store_commit(f->s, &f->e));
	assert_int_equal(mode_of(f, "-wal"), 0600);
	assert_int_equal(profile_rows(f, NULL), 1);
}

static void readers_cannot_write(void **state)
{
	struct fixture *f = *state, reader = {0};
	int64_t id;

	ok(&reader, store_open(f->path, STORE_READ, &reader.s, &reader.e));
	ok(&reader, store_begin(reader.s, &reader.e));
	fails(&reader, store_epoch_start(reader.s, f->host, T0, "", &id, &reader.e), -EACCES,
		"written");
	store_rollback(reader.s);
	fails(&reader, store_expire(reader.s, INT64_MAX, 0, &reader.e), -EACCES, "written");
	store_close(reader.s);
}

static void one_writer_at_a_time(void **state)
{
	struct fixture *f = *state, second = {0};

	ok(&second, store_open(f->path, STORE_WRITE, &second.s, &second.e));
	sqlite3_busy_timeout(second.s->db, 1);
	ok(f, store_begin(f->s, &f->e));
	add_flush(f, 0, 10);
	fails(&second, store_begin(second.s, &second.e), -EBUSY, "locked");
	ok(f, store_commit(f->s, &f->e));
	ok(&second, store_begin(second.s, &second.e));
	store_rollback(second.s);
	assert_int_equal(profile_rows(&second, NULL), 1);
	store_close(second.s);
}

/* ---- without rights ---- */

struct outcome {
	int opened, rows, faults;
	char text[512];
};

/*
 * The other end of as_nobody: a program of its own, because SQLite's locks and mappings must not
 * come through a fork.
 */
static int be_nobody(const char *path, enum store_mode mode)
{
	struct outcome out = {0};
	struct store *s = NULL;
	struct err e = {0};

	if (setresuid(65534, 65534, 65534))
		return 1;
	out.opened = store_open(path, mode, &s, &e);
	if (!out.opened) {
		store_profiles(s, NULL, count_profile, &out.rows, &e);
		store_check(s, count_fault, &out.faults, &e);
	}
	store_close(s);
	memcpy(out.text, e.text, sizeof out.text);
	return write(STDOUT_FILENO, &out, sizeof out) != sizeof out;
}

/* Opens and reads without rights. */
static struct outcome as_nobody(struct fixture *f, enum store_mode mode)
{
	char number[2] = {(char)('0' + mode), 0};
	struct outcome out = {0};
	int ends[2], status;
	pid_t child;

	assert_int_equal(pipe(ends), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		dup2(ends[1], STDOUT_FILENO);
		execl("/proc/self/exe", "test_store", f->path, number, (char *)NULL);
		_exit(1);
	}
	close(ends[1]);
	assert_int_equal(read(ends[0], &out, sizeof out), sizeof out);
	close(ends[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	return out;
}

static void assert_readable(struct fixture *f, int rows)
{
	struct outcome out = as_nobody(f, STORE_READ);

	if (out.opened)
		print_error("%s\n", out.text);
	assert_int_equal(out.opened, 0);
	assert_int_equal(out.rows, rows);
	assert_int_equal(out.faults, 0);
}

static void assert_refused(struct fixture *f, enum store_mode mode, const char *words)
{
	struct outcome out = as_nobody(f, mode);

	assert_int_equal(out.opened, -EACCES);
	if (!strstr(out.text, words))
		print_error("%s\n", out.text);
	assert_non_null(strstr(out.text, words));
}

/* Copies the database with its log as a killed writer leaves them; the lock is not copied. */
static void copy_as_killed(struct fixture *f, const char *suffixes)
{
	char command[512];

	snprintf(command, sizeof command,
		"cd %s && for x in '' %s; do cp t.db$x killed.db$x && chmod 644 killed.db$x || "
		"exit 1; "
		"done",
		f->dir, suffixes);
	assert_int_equal(system(command), 0);
	snprintf(f->path, sizeof f->path, "%s/killed.db", f->dir);
}

static void readers_need_no_rights(void **state)
{
	struct fixture *f = *state;
	char odd[sizeof f->path];

	if (geteuid())
		skip();
	assert_int_equal(chmod(f->dir, 0755), 0);
	assert_refused(f, STORE_READ, "private");
	assert_int_equal(chmod(f->path, 0644), 0);
	store_close(f->s);
	ok(f, store_open(f->path, STORE_WRITE, &f->s, &f->e));
	ok(f, store_begin(f->s, &f->e));
	add_flush(f, 0, 100);
	ok(f, store_commit(f->s, &f->e));
	assert_readable(f, 1); /* while it is written */
	assert_refused(f, STORE_WRITE, "sudo");
	assert_refused(f, STORE_UPDATE, "sudo");
	store_close(f->s);
	f->s = NULL;
	assert_readable(f, 1);
	/* In log mode, but without a log: as after cp of the file alone. The name is put into a
	 * URI. */
	snprintf(odd, sizeof odd, "%s/a%%41?b#c", f->dir);
	assert_int_equal(rename(f->path, odd), 0);
	strcpy(f->path, odd);
	run_sql(f->path, "PRAGMA journal_mode=WAL");
	assert_int_equal(mode_of(f, "-wal"), 0);
	assert_readable(f, 1);
	assert_int_equal(mode_of(f, "-wal"), 0);
}

static void readers_after_a_killed_writer(void **state)
{
	struct fixture *f = *state;
	char log[128];

	if (geteuid())
		skip();
	assert_int_equal(chmod(f->dir, 0755), 0);
	ok(f, store_begin(f->s, &f->e));
	add_flush(f, 0, 100);
	ok(f, store_commit(f->s, &f->e));
	copy_as_killed(f, "-wal -shm");
	assert_readable(f, 1);
	snprintf(log, sizeof log, "%s-wal", f->path);
	assert_int_equal(chmod(log, 0600), 0);
	assert_refused(f, STORE_READ, "-wal: may not be read");
	assert_int_equal(chmod(log, 0644), 0);
	snprintf(log, sizeof log, "%s-shm", f->path);
	assert_int_equal(unlink(log), 0);
	assert_refused(f, STORE_READ, "killed");

	/* Root may, and sees what was committed. */
	struct fixture reader = {0};
	ok(&reader, store_open(f->path, STORE_READ, &reader.s, &reader.e));
	assert_int_equal(profile_rows(&reader, NULL), 1);
	store_close(reader.s);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(is_private, setup_empty, teardown),
		cmocka_unit_test_setup_teardown(closed_is_one_file, setup, teardown),
		cmocka_unit_test_setup_teardown(header_says_what_it_is, setup, teardown),
		cmocka_unit_test_setup_teardown(a_mode_that_was_set_stays, setup, teardown),
		cmocka_unit_test_setup_teardown(odd_names, setup_empty, teardown),
		cmocka_unit_test_setup_teardown(refuses_what_is_not_there, setup_empty, teardown),
		cmocka_unit_test_setup_teardown(refuses_text, setup_empty, teardown),
		cmocka_unit_test_setup_teardown(an_empty_file, setup_empty, teardown),
		cmocka_unit_test_setup_teardown(refuses_other_databases, setup_empty, teardown),
		cmocka_unit_test_setup_teardown(refuses_a_newer_version, setup, teardown),
		cmocka_unit_test_setup_teardown(version_1, setup, teardown),
		cmocka_unit_test_setup_teardown(refuses_other_tables, setup, teardown),
		cmocka_unit_test_setup_teardown(rollback_leaves_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(readers_see_one_state, setup, teardown),
		cmocka_unit_test_setup_teardown(the_log_comes_later, setup, teardown),
		cmocka_unit_test_setup_teardown(readers_cannot_write, setup, teardown),
		cmocka_unit_test_setup_teardown(one_writer_at_a_time, setup, teardown),
		cmocka_unit_test_setup_teardown(readers_need_no_rights, setup, teardown),
		cmocka_unit_test_setup_teardown(readers_after_a_killed_writer, setup, teardown),
	};

	if (argc == 3)
		return be_nobody(argv[1], (enum store_mode)(argv[2][0] - '0'));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
