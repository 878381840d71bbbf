#include "base/err.h"
#include "cmd/cmd.h"

#include <getopt.h>
#include <stdarg.h>
#include <string.h>

int cmd_fail(const struct err *e)
{
	fflush(stdout);
	fprintf(stderr, "culprit: %s\n", e->text);
	return err_exit_code(e->code);
}

int cmd_usage(const char *verb, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "culprit %s: ", verb);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, "; see 'culprit help %s'\n", verb);
	return EXIT_USAGE;
}

int cmd_bad_option(const char *verb, int c, char **argv)
{
	const char *text = argv[optind - 1];
	bool is_long = !strncmp(text, "--", 2);

	if (c == ':')
		return is_long ? cmd_usage(verb, "%s needs a value", text)
			       : cmd_usage(verb, "-%c needs a value", optopt);
	if (!optopt)
		return cmd_usage(verb, "no option %s", text);
	return is_long ? cmd_usage(verb, "%s takes no value", text)
		       : cmd_usage(verb, "no option -%c", optopt);
}

void cmd_note(const char *fmt, ...)
{
	va_list ap;

	fputs("culprit: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

int cmd_help_text(const char *verb)
{
	static const char *const texts[][3] = {
#define USAGE(name, summary, usage) {#name, summary, usage},
		CMD_VERBS(USAGE)
#undef USAGE
	};

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		if (!strcmp(texts[i][0], verb))
			printf("culprit %s: %s\n\n%s\nThe man page: culprit-%s(1)\n", verb,
				texts[i][1], texts[i][2], verb);
	return EXIT_DONE;
}
