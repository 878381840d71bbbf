#include "cmd/record_exact.h"

#include "base/err.h"
#include "base/io.h"
#include "base/mem.h"
#include "collect/forks.h"
#include "edit/cache.h"
#include "edit/exact_store.h"
#include "edit/linked.h"
#include "edit/place.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <glob.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A file that is replaced, and what it counts into. */
struct counted {
	char *original, *counts;
	struct cached_edit edit;
};

struct session {
	const struct exact_choice *choice;
	char **command;
	bool quiet;
	char *folder; /* of the counts */
	VEC(struct counted) files;
	int status; /* of the command */
	struct forks_seen forks;
	bool blind; /* nobody could see forks */
	int64_t t0, t1;
	VEC(struct exact_image) images;
	struct books_summary sum;
};

static int64_t now_us(void)
{
	return (int64_t)(io_clock_ns(CLOCK_REALTIME) / 1000);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* ---- which files ---- */

static bool is_there(const struct session *s, const char *path)
{
	vec_each (f, &s->files)
		if (!strcmp(f->original, path))
			return true;
	return false;
}

/* Copies of the program must be; of a library that cannot be edited the original is used. */
static int add_file(struct session *s, const char *path, bool must, struct err *e)
{
	struct cached_edit edit;
	struct err own = {0};
	int rc;

	if (is_there(s, path))
		return 0;
	cmd_progress("editing %s", path);
	rc = cache_exact(path, s->choice->atomic, &edit, &own);
	cmd_progress_end();
	if (rc && must) {
		*e = own;
		return rc;
	}
	if (rc) {
		if (!s->quiet)
			cmd_note("%s; it is not counted", own.text);
		return 0;
	}
	*vec_add(&s->files) = (struct counted){.original = xstrdup(path), .edit = edit};
	return 0;
}

/* They start before anything can be counted, or are what everything else stands on. */
static bool is_left_alone(const char *path)
{
	const char *name = base_name(path);

	return !strncmp(name, "ld-linux", 8) || !strncmp(name, "libc.so", 7) ||
	       !strncmp(name, "libc-", 5) || !strncmp(name, "ld-", 3);
}

static bool is_chosen(const struct session *s, const char *path)
{
	const name_list *libs = &s->choice->libs;

	if (is_left_alone(path))
		return false;
	vec_each (pattern, libs)
		if (!fnmatch(*pattern, strchr(*pattern, '/') ? path : base_name(path), 0))
			return true;
	return !libs->n;
}

/* Patterns with a path also find what the program loads later. */
static int add_named(struct session *s, const char *pattern, struct err *e)
{
	glob_t found = {0};
	int rc = 0;

	if (strchr(pattern, '/') && !glob(pattern, 0, NULL, &found)) {
		for (size_t i = 0; i < found.gl_pathc && !rc; i++) {
			_cleanup_free_ char *real = realpath(found.gl_pathv[i], NULL);

			if (real && !is_left_alone(real))
				rc = add_file(s, real, false, e);
		}
	}
	globfree(&found);
	return rc;
}

static int find_files(struct session *s, struct err *e)
{
	_cleanup_free_ char *program = NULL;
	path_list libraries = {0};
	int rc = linked_program(s->command[0], &program, e);

	if (!rc)
		rc = add_file(s, program, true, e);
	if (!rc)
		rc = linked_libraries(program, &libraries, e);
	for (size_t i = 0; i < libraries.n && !rc; i++)
		if (is_chosen(s, libraries.p[i]))
			rc = add_file(s, libraries.p[i], false, e);
	vec_each (pattern, &s->choice->libs)
		rc = rc ? rc : add_named(s, *pattern, e);
	path_list_deinit(&libraries);
	return rc;
}

/* ---- where they count ---- */

/* In memory if there is such a folder: pages of a disk are written back while we count. */
static int make_folder(struct session *s, struct err *e)
{
	const char *temporary = getenv("TMPDIR");
	const char *folders[] = {"/dev/shm", temporary ? temporary : "/tmp"};

	for (size_t i = 0; i < 2; i++) {
		s->folder = xasprintf("%s/culprit-XXXXXX", folders[i]);
		if (mkdtemp(s->folder))
			return 0;
		free(s->folder);
		s->folder = NULL;
	}
	return err_errno(e, -errno, "%s: no room to count into", folders[1]);
}

static int make_counts(struct session *s, struct counted *f, struct err *e)
{
	_cleanup_close_ int fd = -1;
	int rc;

	f->counts = xasprintf("%s/%zu", s->folder, (size_t)(f - s->files.p));
	fd = open(f->counts, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_errno(e, -errno, "%s: cannot be made", f->counts);
	rc = posix_fallocate(fd, 0, (off_t)f->edit.bytes);
	return rc ? err_errno(e, -rc, "%s: no room to count into", f->counts) : 0;
}

static void remove_counts(struct session *s)
{
	vec_each (f, &s->files) {
		if (f->counts && s->folder)
			unlink(f->counts);
		free(f->original);
		free(f->counts);
		cached_edit_deinit(&f->edit);
	}
	vec_deinit(&s->files);
	if (s->folder)
		rmdir(s->folder);
	free(s->folder);
}

/* ---- running ---- */

static pid_t child; /* for the handler */

static void pass_on(int signal)
{
	kill(child, signal);
}

/* The terminal sends SIGINT to the command itself; what others send us goes on to it. */
static void catch_signals(void)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN}, pass = {.sa_handler = pass_on};

	sigaction(SIGINT, &ignore, NULL);
	sigaction(SIGQUIT, &ignore, NULL);
	sigaction(SIGTERM, &pass, NULL);
	sigaction(SIGHUP, &pass, NULL);
}

/* In the child, when it is let; says through the pipe why it could not. */
static _Noreturn void become(struct session *s, int go, int failed)
{
	VEC(struct placement) list = {0};
	struct err e = {0};
	char byte;

	if (read(go, &byte, 1) != 1)
		_exit(127);
	vec_each (f, &s->files) {
		*vec_add(&list) = (struct placement){f->edit.counts, f->counts};
		*vec_add(&list) = (struct placement){f->original, f->edit.image};
	}
	if (!place_files(list.p, list.n, &e)) {
		execvp(s->command[0], s->command);
		err_errno(&e, -errno, "cannot run '%s'", s->command[0]);
	}
	if (write(failed, &e, sizeof e) < 0)
		_exit(126);
	_exit(127);
}

/* Lets the child go, and waits until it has ended. */
static int follow(struct session *s, int go, int failed, struct err *e)
{
	struct forks *forks = NULL;
	struct err why;

	s->blind = forks_watch(child, &forks, NULL) != 0;
	catch_signals();
	if (write(go, "", 1) != 1)
		err_errno(e, -errno, "cannot start '%s'", s->command[0]);
	if (read(failed, &why, sizeof why) == (ssize_t)sizeof why)
		*e = why;
	while (waitpid(child, &s->status, 0) < 0 && errno == EINTR)
		;
	s->t1 = now_us();
	if (forks)
		forks_read(forks, &s->forks);
	forks_destroy(forks);
	return e->code;
}

static int run(struct session *s, struct err *e)
{
	int go[2], failed[2], rc;

	if (pipe2(go, O_CLOEXEC) < 0 || pipe2(failed, O_CLOEXEC) < 0)
		return err_errno(e, -errno, "cannot start '%s'", s->command[0]);
	s->t0 = now_us();
	child = fork();
	if (!child) {
		close(go[1]);
		become(s, go[0], failed[1]);
	}
	close(go[0]);
	close(failed[1]);
	rc = child < 0 ? err_errno(e, -errno, "cannot start '%s'", s->command[0])
		       : follow(s, go[1], failed[0], e);
	close(go[1]);
	close(failed[0]);
	return rc;
}

/* Whether counts may have been lost because several counted at once. */
static bool is_shared(const struct session *s)
{
	return !s->choice->atomic && s->forks.threads + s->forks.processes;
}

/* ---- what came out ---- */

static int read_counts(struct session *s, const struct counted *f, struct err *e)
{
	struct books_summary sum;
	struct exact_image image = {.path = f->original};
	int fd = open(f->counts, O_RDONLY | O_CLOEXEC), rc;
	uint64_t *counters =
		fd < 0 ? MAP_FAILED : mmap(NULL, f->edit.bytes, PROT_READ, MAP_SHARED, fd, 0);

	if (fd >= 0)
		close(fd);
	if (counters == MAP_FAILED)
		return err_errno(e, -errno, "%s: cannot be read", f->counts);
	rc = books_close(&(struct books_source){.map = f->edit.map.p,
				 .size = f->edit.map.n,
				 .counters = counters,
				 .n = f->edit.bytes / sizeof *counters,
				 .killed = s->choice->counted || WIFSIGNALED(s->status),
				 .shared = is_shared(s)},
		&image.rows, &sum);
	munmap(counters, f->edit.bytes);
	if (rc)
		return err_set(e, rc, "%s: the map of its counters is damaged", f->edit.image);
	s->sum.procedures += sum.procedures;
	s->sum.exact += sum.exact;
	s->sum.blocks += sum.blocks;
	*vec_add(&s->images) = image;
	return 0;
}

static void say_status(const struct session *s)
{
	if (WIFSIGNALED(s->status))
		cmd_note("%s was ended by signal %d (%s)", s->command[0], WTERMSIG(s->status),
			strsignal(WTERMSIG(s->status)));
	else if (s->status)
		cmd_note("%s exited with %d", s->command[0], WEXITSTATUS(s->status));
}

static void say_what(const struct session *s, const char *database)
{
	size_t images = 0;

	vec_each (im, &s->images)
		images += im->rows.n > 0;
	say_status(s);
	cmd_note("exact: %" PRIu64 " blocks run in %" PRIu32 " procedures of %zu files -> %s",
		s->sum.blocks, s->sum.procedures, images, database);
	if (is_shared(s))
		cmd_note("%s started %" PRIu64 " threads and %" PRIu64
			 " processes, which may have counted at once: nothing is called exact; "
			 "--atomic makes it so",
			s->command[0], s->forks.threads, s->forks.processes);
	else if (s->sum.exact < s->sum.procedures)
		cmd_note("the books of %" PRIu32 " procedures do not balance (calls that did not "
			 "come back): they are not called exact",
			s->sum.procedures - s->sum.exact);
	if (s->blind && !s->choice->atomic)
		cmd_note("whether it had threads is not known%s: if so, counts are exact only with "
			 "--atomic",
			s->choice->counted ? "" : " (sysctl kernel.perf_event_paranoid)");
}

static int keep(struct session *s, const char *database, struct err *e)
{
	struct exact_run kept = {.command = base_name(s->command[0]), .t0 = s->t0, .t1 = s->t1};
	int rc = 0;

	for (size_t i = 0; i < s->files.n && !rc; i++)
		rc = read_counts(s, &s->files.p[i], e);
	kept.images = s->images.p;
	kept.n = s->images.n;
	return rc ? rc : exact_store(database, &kept, e);
}

/* What a copy counted that somebody else made and ran. */
static int record_counted(struct session *s, const char *database, struct err *e)
{
	struct counted f = {0};
	struct stat st;
	int rc = cache_edited(s->choice->counted, &f.edit, &f.original, e);

	if (rc)
		return rc;
	f.counts = xstrdup(f.edit.counts);
	*vec_add(&s->files) = f;
	if (stat(f.counts, &st) < 0)
		return err_errno(
			e, -errno, "%s: nothing was counted yet; run %s", f.counts, f.edit.image);
	if ((uint64_t)st.st_size < f.edit.bytes)
		return err_set(e, -EBADMSG, "%s: is too short; remove it and run %s again",
			f.counts, f.edit.image);
	s->t0 = (int64_t)st.st_ctim.tv_sec * 1000000;
	s->t1 = now_us();
	s->blind = true;
	return keep(s, database, e);
}

static int record_command(struct session *s, const char *database, struct err *e)
{
	int rc = find_files(s, e);

	if (!rc)
		rc = make_folder(s, e);
	for (size_t i = 0; i < s->files.n && !rc; i++)
		rc = make_counts(s, &s->files.p[i], e);
	if (!rc)
		rc = run(s, e);
	return rc ? rc : keep(s, database, e);
}

int record_exact(
	const struct exact_choice *choice, char **command, const char *database, bool quiet)
{
	char *none[] = {(char *)choice->counted, NULL};
	struct session s = {.choice = choice, .command = command ? command : none, .quiet = quiet};
	struct err e = {0};
	int rc = choice->counted ? record_counted(&s, database, &e)
				 : record_command(&s, database, &e);

	if (!rc && !quiet)
		say_what(&s, database);
	remove_counts(&s);
	vec_each (im, &s.images)
		vec_deinit(&im->rows);
	vec_deinit(&s.images);
	return rc ? cmd_fail(&e) : EXIT_DONE;
}
