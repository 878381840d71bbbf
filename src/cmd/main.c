/*
 * The program: finds the verb and runs it.
 */
#include "base/err.h"
#include "base/near.h"
#include "base/term.h"
#include "cmd/cmd.h"

#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct verb {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *summary;
} verbs[] = {
#define VERB(verb, summary, usage) {#verb, cmd_##verb, summary},
	CMD_VERBS(VERB)
#undef VERB
};
enum { NVERBS = sizeof verbs / sizeof *verbs };

static const struct verb *verb_find(const char *name)
{
	for (int i = 0; i < NVERBS; i++)
		if (!strcmp(verbs[i].name, name))
			return &verbs[i];
	return NULL;
}

static const char *verb_nearest(const char *name)
{
	const char *best = NULL;
	int distance = 3;

	for (int i = 0; i < NVERBS; i++) {
		int d = edit_distance(name, verbs[i].name);
		if (d < distance) {
			distance = d;
			best = verbs[i].name;
		}
	}
	return best;
}

static int unknown_verb(const char *name)
{
	const char *near = verb_nearest(name);

	if (near)
		fprintf(stderr, "culprit: no verb '%s'; did you mean 'culprit %s'?\n", name, near);
	else
		fprintf(stderr, "culprit: no verb '%s'; 'culprit --help' lists them\n", name);
	return EXIT_USAGE;
}

static int print_overview(FILE *out)
{
	fputs("usage: culprit VERB [options] [-- COMMAND...]\n\n"
	      "Where have all the cycles gone?\n\n",
		out);
	for (int i = 0; i < NVERBS; i++)
		fprintf(out, "  %-8s %s\n", verbs[i].name, verbs[i].summary);
	fputs("\n'culprit help VERB' tells more. Start with: culprit record -- COMMAND; culprit "
	      "top\n",
		out);
	return EXIT_DONE;
}

/* Shows the man page; false when there is none to show. */
static bool show_man_page(const char *verb)
{
	char page[64];
	int status;
	pid_t child;

	snprintf(page, sizeof page, "culprit-%s", verb);
	child = fork();
	if (child < 0)
		return false;
	if (child == 0) {
		if (!freopen("/dev/null", "w", stderr))
			_exit(127);
		execlp("man", "man", page, (char *)NULL);
		_exit(127);
	}
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static int help(int argc, char **argv)
{
	if (argc < 2)
		return print_overview(stdout);
	if (argc > 2) {
		fputs("culprit: help takes one verb\n", stderr);
		return EXIT_USAGE;
	}
	if (!verb_find(argv[1]))
		return unknown_verb(argv[1]);
	if (term_is_tty() && show_man_page(argv[1]))
		return EXIT_DONE;
	return cmd_help_text(argv[1]);
}

static int run(int argc, char **argv)
{
	const struct verb *v;

	if (argc < 2) {
		print_overview(stderr);
		return EXIT_USAGE;
	}
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
		puts("culprit " CULPRIT_VERSION);
		return EXIT_DONE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help"))
		return help(argc - 1, argv + 1);
	if (argv[1][0] == '-') {
		fprintf(stderr, "culprit: no option %s; 'culprit --help' lists the verbs\n",
			argv[1]);
		return EXIT_USAGE;
	}
	v = verb_find(argv[1]);
	return v ? v->run(argc - 1, argv + 1) : unknown_verb(argv[1]);
}

int main(int argc, char **argv)
{
	int code;

	setlocale(LC_CTYPE, ""); /* widths of names in tables; numbers stay as they are */
	code = run(argc, argv);

	/* A full disk behind standard output must not look like success. */
	if (fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "culprit: cannot write the output: %s\n", strerror(errno));
		code = EXIT_MACHINE;
	}
	term_pager_end();
	return code;
}
