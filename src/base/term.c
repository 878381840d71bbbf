#include "base/term.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"

/* What standard output was at the first question: a pager turns it into a pipe later. */
static struct {
	bool known, tty, colour;
	int width;
} term;

static struct {
	pid_t pid;
	int saved; /* the terminal behind the pipe */
	struct sigaction old_pipe, old_int;
} pager;

static int measure_width(void)
{
	struct winsize size = {0};
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col)
		return size.ws_col;
	const char *columns = getenv("COLUMNS");
	int n = columns ? atoi(columns) : 0;
	return n > 0 ? n : 80;
}

static void look(void)
{
	if (term.known)
		return;
	term.known = true;
	term.tty = isatty(STDOUT_FILENO) == 1;
	if (!term.tty)
		return;
	const char *no_color = getenv("NO_COLOR"), *kind = getenv("TERM");
	term.colour = !(no_color && *no_color) && kind && *kind && strcmp(kind, "dumb");
	term.width = measure_width();
}

bool term_is_tty(void)
{
	look();
	return term.tty;
}

int term_width(void)
{
	look();
	return term.width;
}

void term_resized(void)
{
	if (term.tty)
		term.width = measure_width();
}

static const char *sequence(const char *s)
{
	look();
	return term.colour ? s : "";
}

const char *term_bold(void)
{
	return sequence("\033[1m");
}

const char *term_dim(void)
{
	return sequence("\033[2m");
}

const char *term_red(void)
{
	return sequence("\033[31m");
}

const char *term_reset(void)
{
	return sequence("\033[0m");
}

static bool in_path(const char *name)
{
	const char *dirs = getenv("PATH");
	while (dirs && *dirs) {
		size_t n = strcspn(dirs, ":");
		_cleanup_free_ char *path = xasprintf("%.*s/%s", (int)n, dirs, name);
		if (n && access(path, X_OK) == 0)
			return true;
		dirs += n + (dirs[n] == ':');
	}
	return false;
}

/* The pager's command line, or NULL for none: set to nothing or to cat, or there is no less. */
static const char *choose_pager(void)
{
	const char *command = getenv("CULPRIT_PAGER");
	if (!command)
		command = getenv("PAGER");
	if (!command)
		command = in_path("less") ? "less" : "";
	return *command && strcmp(command, "cat") ? command : NULL;
}

bool term_has_pager(void)
{
	return choose_pager();
}

/*
 * Leaving the pager early is the user's good right and no failure. After an interrupt the pager
 * lives on and owns the terminal, so we wait for it instead of handing the terminal to the shell.
 */
static void end_with_pager(int sig)
{
	close(STDOUT_FILENO);
	while (waitpid(pager.pid, NULL, 0) < 0 && errno == EINTR)
		;
	_exit(sig == SIGPIPE ? 0 : 128 + sig);
}

static _Noreturn void become_pager(const char *command, int input)
{
	dup2(input, STDIN_FILENO);
	setenv("LESS", "FRX", 0);
	execl("/bin/sh", "sh", "-c", command, (char *)NULL);
	_exit(127);
}

void term_pager_start(void)
{
	const char *command = term_is_tty() && !pager.pid ? choose_pager() : NULL;
	int ends[2];
	if (!command || pipe2(ends, O_CLOEXEC) < 0)
		return;

	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0)
		become_pager(command, ends[0]);
	close(ends[0]);
	if (pid > 0) {
		pager.pid = pid;
		pager.saved = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
		dup2(ends[1], STDOUT_FILENO);
		struct sigaction act = {.sa_handler = end_with_pager};
		sigaction(SIGPIPE, &act, &pager.old_pipe);
		sigaction(SIGINT, &act, &pager.old_int);
	}
	close(ends[1]);
}

void term_pager_end(void)
{
	fflush(stdout);
	if (!pager.pid)
		return;
	signal(SIGINT, SIG_IGN); /* all is written: what is typed now is for the pager */
	dup2(pager.saved, STDOUT_FILENO);
	close(pager.saved);
	while (waitpid(pager.pid, NULL, 0) < 0 && errno == EINTR)
		;
	sigaction(SIGPIPE, &pager.old_pipe, NULL);
	sigaction(SIGINT, &pager.old_int, NULL);
	pager.pid = 0;
}
