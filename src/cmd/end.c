#include "base/err.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "cmd/cmd.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

void cmd_put(FILE *out, const char *s)
{
	while (*s) {
		size_t n;
		uint32_t c = utf8_decode(s, &n);

		if ((c < 0x20 && c != '\t') || (c >= 0x7f && c < 0xa0) || c == UTF8_BAD)
			fputc('?', out);
		else
			fwrite(s, 1, n, out);
		s += n;
	}
}

int cmd_fail(const struct err *e)
{
	fflush(stdout);
	fputs("culprit: ", stderr);
	cmd_put(stderr, e->text);
	fputc('\n', stderr);
	return err_exit_code(e->code);
}

static void __attribute__((format(printf, 1, 0))) put_formatted(const char *fmt, va_list ap)
{
	_cleanup_free_ char *text = xvasprintf(fmt, ap);

	cmd_put(stderr, text);
}

int cmd_usage(const char *verb, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "culprit %s: ", verb);
	va_start(ap, fmt);
	put_formatted(fmt, ap);
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
	put_formatted(fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

void cmd_progress(const char *fmt, ...)
{
	va_list ap;

	if (isatty(STDERR_FILENO) != 1)
		return;
	fputc('\r', stderr);
	va_start(ap, fmt);
	put_formatted(fmt, ap);
	va_end(ap);
	fputs("\033[K", stderr);
}

void cmd_progress_end(void)
{
	if (isatty(STDERR_FILENO) == 1)
		fputs("\r\033[K", stderr);
}

int cmd_output_open(const char *path, FILE **out, struct err *e)
{
	FILE *f = fopen(path, "we");

	if (!f)
		return err_set(e, -errno, "%s: cannot be made: %s: name another place with -o",
			path, strerror(errno));
	*out = f;
	return 0;
}

int cmd_output_close(const char *path, FILE *out, struct err *e)
{
	bool failed = ferror(out);

	errno = 0;
	if (fclose(out) || failed)
		return err_set(e, errno ? -errno : -EIO,
			"%s: cannot be written: %s: name another place with -o", path,
			strerror(errno ? errno : EIO));
	return 0;
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
