/*
 * culprit cfg: the control-flow graph of a procedure as a picture, by Graphviz.
 */
#include "cmd/cfg_dot.h"

#include "base/err.h"
#include "cmd/cmd.h"
#include "cmd/explain.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct cfg {
	struct report report;
	const char *what, *output;
	bool full, everything;
};

extern char **environ;

/* ---- options ---- */

enum { CFG_FULL = REPORT_LAST, CFG_ALL };

static int cfg_option(void *arg, int c, const char *value)
{
	struct cfg *g = arg;

	switch (c) {
	case 'o':
		g->output = value;
		return 0;
	case CFG_FULL:
		g->full = true;
		return 0;
	case CFG_ALL:
		g->everything = true;
		return 0;
	}
	return 1;
}

/* What dot makes, by the end of the file's name. */
static const char *format_of(const char *path)
{
	static const char *const formats[] = {"svg", "png", "pdf", "dot"};
	const char *end = strrchr(path, '.');

	for (size_t i = 0; end && i < sizeof formats / sizeof *formats; i++)
		if (!strcmp(end + 1, formats[i]))
			return formats[i];
	return NULL;
}

static int parse(struct cfg *g, int argc, char **argv)
{
	static const struct option options[] = {REPORT_FILTERS, REPORT_SYNTAX_LONG,
		{"output", required_argument, NULL, 'o'}, {"full", no_argument, NULL, CFG_FULL},
		{"all", no_argument, NULL, CFG_ALL}, {0}};
	static const struct report_verb verb = {"cfg", ":o:" REPORT_SHORT, options, cfg_option};
	int rc = report_parse(&g->report, &verb, g, argc, argv);

	if (!rc)
		rc = report_operand("cfg", argc, argv, &g->what);
	if (!rc && !g->what)
		return cmd_usage("cfg", "name a procedure, as 'culprit top' shows it");
	if (!rc && !g->output)
		return cmd_usage("cfg", "name a file with -o: X.svg, X.png, X.pdf or X.dot");
	if (!rc && !format_of(g->output))
		return cmd_usage(
			"cfg", "-o takes X.svg, X.png, X.pdf or X.dot, not '%s'", g->output);
	return rc;
}

/* ---- dot ---- */

/* "-.svg" and the like. */
static bool is_standard_output(const char *output)
{
	return output[0] == '-' && output[1] == '.';
}

/* Starts dot with its input on a pipe, of which *input is our end. */
static int start_dot(
	const char *format, const char *output, pid_t *pid, FILE **input, struct err *e)
{
	char kind[8];
	/* dot without -o writes to standard output. */
	char *argv[] = {
		"dot", kind, is_standard_output(output) ? NULL : "-o", (char *)output, NULL};
	posix_spawn_file_actions_t actions;
	int ends[2], rc;

	snprintf(kind, sizeof kind, "-T%s", format);
	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_errno(e, -errno, "a pipe to dot");
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO);
	rc = posix_spawnp(pid, "dot", &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(ends[0]);
	if (rc) {
		close(ends[1]);
		if (rc == ENOENT)
			return err_set(e, -EOPNOTSUPP,
				"there is no program 'dot': install the package graphviz, or write "
				"X.dot");
		return err_errno(e, -rc, "dot cannot be started");
	}
	*input = fdopen(ends[1], "w");
	if (!*input)
		out_of_memory(0);
	return 0;
}

static int end_dot(const char *output, pid_t pid, FILE *input, struct err *e)
{
	bool failed = ferror(input);
	int status;

	failed |= fclose(input) != 0;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status) && !WEXITSTATUS(status) && !failed)
		return 0;
	return err_set(e, -EIO, "%s: dot failed to draw it (its exit status is %d); try X.dot",
		output, WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

static int draw(const struct cfg *g, const struct why_view *v, struct err *e)
{
	FILE *input = NULL;
	pid_t pid = 0;
	int rc = start_dot(format_of(g->output), g->output, &pid, &input, e);

	if (rc)
		return rc;
	/* A dot that dies early is told by its status. */
	signal(SIGPIPE, SIG_IGN);
	cfg_dot(v, g->full, input);
	rc = end_dot(g->output, pid, input, e);
	signal(SIGPIPE, SIG_DFL);
	return rc;
}

static int write_text(const struct cfg *g, const struct why_view *v, struct err *e)
{
	FILE *out = NULL;
	int rc;

	if (is_standard_output(g->output)) {
		cfg_dot(v, g->full, stdout);
		return 0;
	}
	rc = cmd_output_open(g->output, &out, e);
	if (rc)
		return rc;
	cfg_dot(v, g->full, out);
	return cmd_output_close(g->output, out, e);
}

/* ---- the whole ---- */

static int report(struct cfg *g, struct err *e)
{
	struct explanation x = {0};
	struct why_view view = {.everything = g->everything};
	int rc = explanation_init(&x, &g->report, g->what, e);

	if (!rc) {
		explanation_view(&x, &g->report, &view);
		rc = strcmp(format_of(g->output), "dot") ? draw(g, &view, e)
							 : write_text(g, &view, e);
	}
	if (!rc)
		explanation_notes(&x);
	explanation_deinit(&x);
	return rc;
}

int cmd_cfg(int argc, char **argv)
{
	struct cfg g = {0};
	struct err e = {0};
	int code = parse(&g, argc, argv);

	if (code < 0)
		code = cmd_help_text("cfg");
	else if (!code && report(&g, &e))
		code = cmd_fail(&e);
	report_deinit(&g.report);
	return code;
}
