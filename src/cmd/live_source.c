#include "cmd/live_source.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/mem.h"
#include "cmd/cmd.h"
#include "collect/control.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Until a collection has found out what a sample costs and has opened its events. */
enum { START_S = 60, LOOK_MS = 50 };

struct live_source {
	char *database;
	const char *words;
	bool served;  /* a daemon writes it, and listens to us */
	char *folder; /* of our own, NULL: it is somebody else's */
	pid_t child;
};

static bool is_served(const char *database)
{
	struct buf answer = {0};
	int rc = control_ask(database, "status", &answer, NULL);

	buf_deinit(&answer);
	return !rc;
}

/* ---- a collection of our own ---- */

static char *log_path(const struct live_source *s)
{
	return xasprintf("%s/log", s->folder);
}

/* By its path, after which the process is named. */
static _Noreturn void become_collector(const struct live_source *s)
{
	_cleanup_free_ char *log = log_path(s), *program = realpath("/proc/self/exe", NULL);
	int null = open("/dev/null", O_RDWR), out = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	setpgid(0, 0); /* keys are not for it */
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	dup2(out, STDERR_FILENO);
	execl(program ? program : "/proc/self/exe", "culprit", "daemon", "start", "--foreground",
		"--db", s->database, "--flush", "1", "--drain", "0.5", "--keep-size", "512M",
		(char *)NULL);
	_exit(EXIT_MACHINE);
}

/* Its last line says why it ended. */
static int explain_end(const struct live_source *s, struct err *e)
{
	_cleanup_free_ char *log = log_path(s);
	FILE *f = fopen(log, "re");
	char line[512], last[512] = "";

	while (f && fgets(line, sizeof line, f))
		strcpy(last, line);
	if (f)
		fclose(f);
	last[strcspn(last, "\n")] = '\0';
	return err_set(e, -ECHILD, "%s",
		strncmp(last, "culprit: ", 9) == 0
			? last + 9
			: "sampling ended; 'culprit doctor' says what this machine allows");
}

static bool has_ended(struct live_source *s)
{
	if (s->child > 0 && waitpid(s->child, NULL, WNOHANG) == s->child)
		s->child = 0;
	return !s->child;
}

static int wait_for_collector(struct live_source *s, struct err *e)
{
	for (int ms = 0; ms < 1000 * START_S; ms += LOOK_MS) {
		if (has_ended(s))
			return explain_end(s, e);
		if (is_served(s->database))
			return 0;
		nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000l}, NULL);
	}
	return err_set(e, -ETIMEDOUT, "sampling did not begin within %d s", START_S);
}

static int collect(struct live_source *s, struct err *e)
{
	const char *in = getenv("XDG_RUNTIME_DIR");

	s->folder = xasprintf("%s/culprit-live-XXXXXX", in && *in == '/' ? in : "/tmp");
	if (!mkdtemp(s->folder)) {
		int rc = err_errno(e, -errno, "cannot make the folder %s", s->folder);

		free(s->folder);
		s->folder = NULL;
		return rc;
	}
	s->database = xasprintf("%s/live.db", s->folder);
	s->words = "this machine, sampled for this display";
	s->child = fork();
	if (s->child < 0)
		return err_errno(e, -errno, "cannot start sampling");
	if (s->child == 0)
		become_collector(s);
	s->served = true;
	return wait_for_collector(s, e);
}

static void remove_folder(const char *folder)
{
	DIR *d = opendir(folder);
	struct dirent *entry;

	while (d && (entry = readdir(d)))
		unlinkat(dirfd(d), entry->d_name, 0);
	if (d)
		closedir(d);
	rmdir(folder);
}

/* ---- all sources ---- */

int live_source_open(const char *input, struct live_source **out, struct err *e)
{
	struct live_source *s = xcalloc(1, sizeof *s);
	int rc = 0;

	if (!input && is_served(CULPRIT_SYSTEM_DB))
		input = CULPRIT_SYSTEM_DB;
	if (input) {
		s->database = xstrdup(input);
		s->served = is_served(input);
		s->words = s->served ? "what the daemon samples" : input;
	} else {
		rc = collect(s, e);
	}
	if (rc) {
		live_source_close(s);
		return rc;
	}
	*out = s;
	return 0;
}

void live_source_close(struct live_source *s)
{
	if (!s)
		return;
	if (s->child > 0) {
		kill(s->child, SIGTERM);
		waitpid(s->child, NULL, 0);
	}
	if (s->folder)
		remove_folder(s->folder);
	free(s->folder);
	free(s->database);
	free(s);
}

const char *live_source_database(const struct live_source *s)
{
	return s->database;
}

bool live_source_grows(const struct live_source *s)
{
	return s->served;
}

const char *live_source_words(const struct live_source *s)
{
	return s->words;
}

int live_source_turn(struct live_source *s, struct err *e)
{
	struct buf answer = {0};

	if (s->folder && has_ended(s))
		return explain_end(s, e);
	/* One that does not listen to us writes when it is time. */
	if (s->served)
		control_ask(s->database, "flush", &answer, NULL);
	buf_deinit(&answer);
	return 0;
}
