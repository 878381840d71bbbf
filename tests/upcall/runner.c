/*
 * Runs a command with value sampling by upcall and writes what it found as text:
 *
 *	runner [-l LIBRARY] [-p PLUGIN]... [-t PERIOD] [-s STEPS] [-k SKIP] [-n] -o FILE COMMAND...
 *
 * FILE gets a line "KIND PC VALUE CONTEXT PID TID TEXT" for each value, TEXT as the plug-in prints
 * it, and lines "count NAME N". -n: only what plug-ins make. Exits as the command does, with 128
 * and the signal when one ended it.
 */
#include "base/err.h"
#include "isa/interp.h"
#include "values/upcall.h"
#include "values/values.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static struct plugin plugins[PLUGINS_MAX];
static size_t nplugins;
static FILE *out;

static void format(const struct upcall_tuple *t, char *text, size_t n)
{
	snprintf(text, n, "-");
	for (size_t i = 0; i < nplugins; i++) {
		if (plugins[i].kind == t->kind)
			plugin_format(&plugins[i], t->value, text, n);
	}
}

static void one_word(char *text)
{
	for (; *text; text++)
		*text = *text == ' ' ? '_' : *text;
}

static void print(void *arg, const struct upcall_tuple *t)
{
	const char *name = t->kind == UPCALL_EDGE ? "edge" : value_kind_name(t->kind);
	char text[128], kind[32];

	(void)arg;
	snprintf(kind, sizeof kind, "%s", name ? name : "?");
	format(t, text, sizeof text);
	one_word(kind);
	one_word(text);
	fprintf(out, "%s 0x%" PRIx64 " 0x%" PRIx64 " 0x%" PRIx64 " %u %u %s\n", kind, t->pc,
		t->value, t->context, t->pid, t->tid, text);
}

static void print_counts(const struct upcall *u)
{
	struct upcall_counts c;

	upcall_count(u, &c);
#define COUNT(name) fprintf(out, "count " #name " %" PRIu64 "\n", (uint64_t)c.name)
	COUNT(processes);
	COUNT(refused);
	COUNT(refused_errno);
	COUNT(bursts);
	COUNT(steps);
	COUNT(dropped);
	COUNT(blocked);
	COUNT(busy);
	COUNT(barred);
	COUNT(rings);
	COUNT(damaged);
#undef COUNT
	for (unsigned i = 0; i < 16; i++) {
		if (c.stops[i])
			fprintf(out, "count stop: %s %" PRIu64 "\n", interp_stop_name(i),
				c.stops[i]);
	}
}

static int run(struct upcall *u, char **command)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		environ = upcall_environment(u, environ);
		execvp(*command, command);
		perror(*command);
		_exit(127);
	}
	while (waitpid(pid, &status, WNOHANG) == 0) {
		upcall_read(u, print, NULL);
		poll(NULL, 0, 20);
	}
	upcall_read(u, print, NULL);
	print_counts(u);
	fclose(out);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void check(int rc, const struct err *e)
{
	if (rc == 0)
		return;
	fprintf(stderr, "runner: %s\n", e->text);
	exit(2);
}

int main(int argc, char **argv)
{
	struct upcall_options o = {0};
	struct upcall *u;
	struct err e = {0};
	int c, rc;

	while ((c = getopt(argc, argv, "+l:p:t:s:k:o:n")) != -1) {
		if (c == 'p') {
			check(plugin_load(&plugins[nplugins], optarg, plugins, nplugins, &e), &e);
			nplugins++;
		} else if (c == 'o') {
			out = fopen(optarg, "we");
		}
		o.library = c == 'l' ? optarg : o.library;
		o.period = c == 't' ? strtoull(optarg, NULL, 10) : o.period;
		o.steps = c == 's' ? (unsigned)atoi(optarg) : o.steps;
		o.skip = c == 'k' ? (unsigned)atoi(optarg) : o.skip;
		o.no_values = o.no_edges = c == 'n' || o.no_values;
	}
	if (!out || optind == argc) {
		fprintf(stderr, "usage: runner [OPTIONS] -o FILE COMMAND...\n");
		return 2;
	}
	o.plugins = plugins;
	o.nplugins = nplugins;
	check(upcall_prepare(&o, &u, &e), &e);
	rc = run(u, argv + optind);
	upcall_destroy(u);
	return rc;
}
