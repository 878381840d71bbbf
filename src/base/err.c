#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Words from elsewhere (SQLite, libbpf, paths) may hold newlines; a message is one line. */
static void one_line(char *text)
{
	for (char *p = text; *p; p++) {
		if (*p == '\n' || *p == '\r')
			*p = ' ';
	}
}

int err_set(struct err *e, int code, const char *fmt, ...)
{
	if (!e)
		return code;

	va_list args;
	va_start(args, fmt);
	e->code = code;
	vsnprintf(e->text, sizeof e->text, fmt, args);
	va_end(args);
	one_line(e->text);
	return code;
}

int err_errno(struct err *e, int code, const char *fmt, ...)
{
	if (!e)
		return code;

	va_list args;
	va_start(args, fmt);
	e->code = code;
	vsnprintf(e->text, sizeof e->text, fmt, args);
	va_end(args);

	char words[128];
	size_t n = strlen(e->text);
	snprintf(e->text + n, sizeof e->text - n, ": %s", strerror_r(-code, words, sizeof words));
	one_line(e->text);
	return code;
}

int err_exit_code(int code)
{
	switch (code) {
	case 0:
		return EXIT_DONE;
	case -EINVAL:
	case -ENOENT:
	case -ENOTDIR:
	case -EISDIR:
	case -ESRCH:
	case -EEXIST:
	case -EBADMSG:
	case -EPROTO:
	case -ENOEXEC:
		return EXIT_USAGE;
	default:
		return EXIT_MACHINE;
	}
}
