#include "cmd/record_edited.h"

#include "base/err.h"
#include "base/io.h"
#include "base/mem.h"
#include "burst/file.h"
#include "collect/command.h"
#include "edit/linked.h"
#include "edit/place.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <glob.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const struct edited_kind *const kinds[] = {
	&edited_exact, &edited_paths, &edited_context, &edited_bursts};

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

static bool is_there(const struct edited_run *r, const char *path)
{
	vec_each (f, &r->files)
		if (!strcmp(f->original, path))
			return true;
	return false;
}

/* Copies of the program must be; of a library that cannot be edited the original is used. */
static int add_file(struct edited_run *r, const char *path, bool must, struct err *e)
{
	struct edit_tool tool;
	struct cached_edit edit;
	struct err own = {0};
	int rc;

	if (is_there(r, path))
		return 0;
	cmd_progress("editing %s", path);
	rc = r->kind->tool(r, path, &tool, &own);
	if (!rc)
		rc = cache_copy(path, &tool, &edit, &own);
	cmd_progress_end();
	if (rc && must) {
		*e = own;
		return rc;
	}
	if (rc) {
		if (!r->quiet)
			cmd_note("%s; it is not counted", own.text);
		return 0;
	}
	*vec_add(&r->files) = (struct edited_file){.original = xstrdup(path), .edit = edit};
	return 0;
}

/* They start before anything can be counted, or are what everything else stands on. */
static bool is_left_alone(const char *path)
{
	const char *name = base_name(path);

	return !strncmp(name, "ld-linux", 8) || !strncmp(name, "libc.so", 7) ||
	       !strncmp(name, "libc-", 5) || !strncmp(name, "ld-", 3);
}

static bool is_chosen(const struct edited_run *r, const char *path)
{
	const name_list *libs = &r->choice->libs;

	if (is_left_alone(path))
		return false;
	vec_each (pattern, libs)
		if (!fnmatch(*pattern, strchr(*pattern, '/') ? path : base_name(path), 0))
			return true;
	return !libs->n;
}

/* Patterns with a path also find what the program loads later. */
static int add_named(struct edited_run *r, const char *pattern, struct err *e)
{
	glob_t found = {0};
	int rc = 0;

	if (strchr(pattern, '/') && !glob(pattern, 0, NULL, &found)) {
		for (size_t i = 0; i < found.gl_pathc && !rc; i++) {
			_cleanup_free_ char *real = realpath(found.gl_pathv[i], NULL);

			if (real && !is_left_alone(real))
				rc = add_file(r, real, false, e);
		}
	}
	globfree(&found);
	return rc;
}

static int find_files(struct edited_run *r, struct err *e)
{
	_cleanup_free_ char *program = NULL;
	path_list libraries = {0};
	int rc = linked_program(r->command[0], &program, e);

	if (!rc)
		rc = add_file(r, program, true, e);
	if (!rc)
		rc = linked_libraries(program, &libraries, e);
	for (size_t i = 0; i < libraries.n && !rc; i++)
		if (is_chosen(r, libraries.p[i]))
			rc = add_file(r, libraries.p[i], false, e);
	vec_each (pattern, &r->choice->libs)
		rc = rc ? rc : add_named(r, *pattern, e);
	path_list_deinit(&libraries);
	return rc;
}

/* ---- where they count ---- */

/* In memory if there is such a folder: pages of a disk are written back while we count. */
static int make_folder(struct edited_run *r, struct err *e)
{
	const char *temporary = getenv("TMPDIR");
	const char *folders[] = {"/dev/shm", temporary ? temporary : "/tmp"};

	for (size_t i = 0; i < 2; i++) {
		r->folder = xasprintf("%s/culprit-XXXXXX", folders[i]);
		if (mkdtemp(r->folder))
			return 0;
		free(r->folder);
		r->folder = NULL;
	}
	return err_errno(e, -errno, "%s: no room to count into", folders[1]);
}

static int make_file(const char *path, uint64_t bytes, struct err *e)
{
	_cleanup_close_ int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int rc;

	if (fd < 0)
		return err_errno(e, -errno, "%s: cannot be made", path);
	rc = posix_fallocate(fd, 0, (off_t)bytes);
	return rc ? err_errno(e, -rc, "%s: no room to count into", path) : 0;
}

static int make_counts(struct edited_run *r, struct edited_file *f, struct err *e)
{
	size_t number = (size_t)(f - r->files.p);
	int rc = 0;

	f->counts = xasprintf("%s/%zu", r->folder, r->kind->one_file ? 0 : number);
	if (number && r->kind->one_file)
		return 0;
	rc = make_file(f->counts, f->edit.bytes, e);
	return rc || !r->kind->prepare ? rc : r->kind->prepare(r, f->counts, e);
}

static void remove_counts(struct edited_run *r)
{
	vec_each (f, &r->files) {
		if (f->counts && r->folder)
			unlink(f->counts);
		free(f->original);
		free(f->counts);
		cached_edit_deinit(&f->edit);
	}
	vec_deinit(&r->files);
	if (r->log)
		unlink(r->log);
	free(r->log);
	if (r->folder)
		rmdir(r->folder);
	free(r->folder);
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
static _Noreturn void become(struct edited_run *r, int go, int failed)
{
	VEC(struct placement) list = {0};
	struct err e = {0};
	char byte;

	if (read(go, &byte, 1) != 1)
		_exit(127);
	vec_each (f, &r->files) {
		*vec_add(&list) = (struct placement){f->edit.counts, f->counts};
		*vec_add(&list) = (struct placement){f->original, f->edit.image};
	}
	if (!place_files(list.p, list.n, &e)) {
		if (r->kind->enter)
			r->kind->enter(r);
		execvp(r->command[0], r->command);
		err_errno(&e, -errno, "cannot run '%s'", r->command[0]);
	}
	if (write(failed, &e, sizeof e) < 0)
		_exit(126);
	_exit(127);
}

#define ATTEND_MS 5

static void attend(struct edited_run *r)
{
	struct pollfd ended = {.fd = (int)syscall(SYS_pidfd_open, child, 0), .events = POLLIN};

	while (ended.fd >= 0 && poll(&ended, 1, ATTEND_MS) <= 0)
		r->kind->attend(r);
	if (ended.fd >= 0)
		close(ended.fd);
}

/* Lets the child go, and waits until it has ended. */
static int follow(struct edited_run *r, int go, int failed, struct err *e)
{
	struct forks *forks = NULL;
	struct err why;

	r->blind = forks_watch(child, &forks, NULL) != 0;
	catch_signals();
	if (write(go, "", 1) != 1)
		err_errno(e, -errno, "cannot start '%s'", r->command[0]);
	if (read(failed, &why, sizeof why) == (ssize_t)sizeof why)
		*e = why;
	if (r->kind->attend)
		attend(r);
	while (wait4(child, &r->status, 0, &r->used) < 0 && errno == EINTR)
		;
	r->results.t1 = now_us();
	if (forks)
		forks_read(forks, &r->forks);
	forks_destroy(forks);
	return e->code;
}

static int run(struct edited_run *r, struct err *e)
{
	int go[2], failed[2], rc;

	if (pipe2(go, O_CLOEXEC) < 0 || pipe2(failed, O_CLOEXEC) < 0)
		return err_errno(e, -errno, "cannot start '%s'", r->command[0]);
	r->results.t0 = now_us();
	child = fork();
	if (!child) {
		close(go[1]);
		become(r, go[0], failed[1]);
	}
	close(go[0]);
	close(failed[1]);
	rc = child < 0 ? err_errno(e, -errno, "cannot start '%s'", r->command[0])
		       : follow(r, go[1], failed[0], e);
	close(go[1]);
	close(failed[0]);
	return rc;
}

/* ---- for kinds ---- */

int edited_map_counts(
	struct edited_run *r, const struct edited_file *f, struct counts *out, struct err *e)
{
	int rc = counts_map(f->counts, f->edit.bytes, out, e);

	if (rc)
		return rc;
	r->apart = out->by_thread;
	r->together |= out->together;
	return 0;
}

int edited_find_guide(
	const struct edited_run *r, const char *path, struct guide **guide, struct err *e)
{
	struct image *im;
	int rc;

	guide_destroy(*guide);
	*guide = NULL;
	if (!r->choice->refine)
		return 0;
	rc = image_open_path(path, &im, e);
	if (rc)
		return rc;
	rc = guide_create(r->choice->refine, image_id(im), guide, e);
	image_destroy(im);
	return rc;
}

bool edited_is_shared(const struct edited_run *r)
{
	uint64_t threads = r->apart && !r->together ? 0 : r->forks.threads;

	return !r->choice->atomic && threads + r->forks.processes;
}

void edited_say_shared(const struct edited_run *r)
{
	if (edited_is_shared(r))
		cmd_note("%s started %" PRIu64 " threads and %" PRIu64
			 " processes, which may have counted at once: nothing is called exact; "
			 "--atomic makes it so%s",
			r->command[0], r->forks.threads, r->forks.processes,
			r->forks.processes || r->apart ? "" : ", and --per-thread faster");
	if (r->together)
		cmd_note("some threads had no counters of their own: there was no room for more");
	if (r->blind && !r->choice->atomic && !r->apart)
		cmd_note("whether it had threads is not known%s: if so, counts are exact only with "
			 "--atomic or --per-thread",
			r->choice->counted ? "" : " (sysctl kernel.perf_event_paranoid)");
}

/* ---- what came out ---- */

static double seconds_of(const struct timeval *t)
{
	return (double)t->tv_sec + (double)t->tv_usec / 1e6;
}

static void say_status(const struct edited_run *r)
{
	if (WIFSIGNALED(r->status))
		cmd_note("%s was ended by signal %d (%s)", r->command[0], WTERMSIG(r->status),
			strsignal(WTERMSIG(r->status)));
	else if (r->status)
		cmd_note("%s exited with %d", r->command[0], WEXITSTATUS(r->status));
	if (!r->choice->counted)
		cmd_note("%s took %.3f s of user time, %.3f s of system time", r->command[0],
			seconds_of(&r->used.ru_utime), seconds_of(&r->used.ru_stime));
}

static int keep(struct edited_run *r, const char *database, struct err *e)
{
	int rc = r->kind->read(r, e);

	if (!rc && !r->choice->counted && WIFEXITED(r->status))
		r->results.hash = command_hash(r->command);
	return rc ? rc : results_store(database, &r->results, e);
}

/* What a copy counted that somebody else made and ran. */
static int record_counted(struct edited_run *r, const char *database, struct err *e)
{
	struct edited_file f = {0};
	struct stat st;
	struct edit_tool tool;
	int rc = r->kind->tool(r, r->choice->counted, &tool, e);

	if (!rc)
		rc = cache_edited(r->choice->counted, &tool, &f.edit, &f.original, e);
	if (rc)
		return rc;
	f.counts = xstrdup(f.edit.counts);
	*vec_add(&r->files) = f;
	if (stat(f.counts, &st) < 0)
		return err_errno(
			e, -errno, "%s: nothing was counted yet; run %s", f.counts, f.edit.image);
	if ((uint64_t)st.st_size < f.edit.bytes)
		return err_set(e, -EBADMSG, "%s: is too short; remove it and run %s again",
			f.counts, f.edit.image);
	r->results.t0 = (int64_t)st.st_ctim.tv_sec * 1000000;
	r->results.t1 = now_us();
	r->blind = true;
	return keep(r, database, e);
}

static int record_command(struct edited_run *r, const char *database, struct err *e)
{
	int rc = find_files(r, e);

	if (!rc)
		rc = make_folder(r, e);
	for (size_t i = 0; i < r->files.n && !rc; i++)
		rc = make_counts(r, &r->files.p[i], e);
	if (!rc)
		rc = run(r, e);
	return rc ? rc : keep(r, database, e);
}

/* ---- the whole ---- */

static const char *name_of(const struct edited_choice *c)
{
	return c->bursts ? "bursts" : c->context ? "context" : c->paths ? "paths" : "exact";
}

static const struct edited_kind *kind_of(const struct edited_choice *c)
{
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (!strcmp(kinds[i]->name, name_of(c)))
			return kinds[i];
	return NULL;
}

bool edited_wanted(const struct edited_choice *c)
{
	return c->exact || c->paths || c->context || c->bursts || c->all_checks || c->no_objects ||
	       c->checks || c->payload || c->boring || c->counted || c->atomic || c->per_thread ||
	       c->libs.n || c->metrics.n || c->refine || c->full;
}

static int check_bursts(const struct edited_choice *c)
{
	struct burst_rates rates;
	int status;

	if (!c->bursts)
		return c->all_checks || c->checks || c->boring || c->payload || c->no_objects
			       ? cmd_usage("record", "--all-checks, --checks, --boring, "
						     "--payload and --no-objects go with --bursts")
			       : 0;
	if (c->exact || c->paths || c->context || c->atomic || c->per_thread || c->full ||
		c->metrics.n || c->refine)
		return cmd_usage("record",
			"--bursts goes with --libs, --payload, --all-checks, --checks, "
			"--boring and --no-objects");
	status = bursts_check(c);
	return status ? status : bursts_rates("record", c->rates, &rates);
}

int edited_check(const struct edited_choice *c, char **command)
{
	int status = check_bursts(c);

	if (status)
		return status;
	if (!c->exact && !c->paths && !c->context && !c->bursts && !c->counted)
		return cmd_usage("record",
			"--libs, --atomic, --per-thread, --full, --metric and --refine go with "
			"--exact, --paths or --context");
	if (c->per_thread && c->context)
		return cmd_usage("record", "--per-thread goes with --exact and --paths; contexts "
					   "are counted by thread always");
	if (c->exact && (c->paths || c->context))
		return cmd_usage("record", "--exact goes neither with --paths nor with --context");
	if (c->metrics.n > 2 || (c->metrics.n && c->exact))
		return cmd_usage(
			"record", "--metric goes with --paths or --context, twice at most");
	if (c->refine && !c->paths && !c->exact)
		return cmd_usage("record", "--refine goes with --exact and --paths");
	if (c->full && !c->paths)
		return cmd_usage("record", "--full goes with --paths");
	if (!command && !c->counted)
		return cmd_usage("record", "--%s needs a command to run", name_of(c));
	if (command && c->counted)
		return cmd_usage("record", "--counted reads what was counted, and runs no command");
	if (c->full && c->refine)
		return cmd_usage("record", "--full counts all paths, --refine those that matter");
	if (c->counted && c->metrics.n)
		return cmd_usage(
			"record", "--counted knows what the copy measured, without --metric");
	if (!kind_of(c))
		return cmd_usage("record", "--%s is not there yet", name_of(c));
	return 0;
}

int record_edited(
	const struct edited_choice *choice, char **command, const char *database, bool quiet)
{
	char *none[] = {(char *)choice->counted, NULL};
	struct edited_run r = {.choice = choice,
		.kind = kind_of(choice),
		.command = command ? command : none,
		.quiet = quiet};
	struct err e = {0};
	int rc;

	r.results.command = base_name(r.command[0]);
	rc = measures_parse(choice->metrics.p, choice->metrics.n, &r.measures, &e);
	if (!rc)
		rc = choice->counted ? record_counted(&r, database, &e)
				     : record_command(&r, database, &e);
	if (!rc && !quiet) {
		say_status(&r);
		r.kind->say(&r, database);
	}
	remove_counts(&r);
	results_deinit(&r.results);
	if (r.own && r.kind->release)
		r.kind->release(&r);
	free(r.own);
	return rc ? cmd_fail(&e) : EXIT_DONE;
}
