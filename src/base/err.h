/*
 * Errors with words.
 *
 * Functions return 0 or a negative errno. Those whose failure needs a place or a remedy also take a
 * struct err and fill it on failure. The text names the thing, the reason and the remedy in one
 * line without a trailing newline; only src/cmd prints it. Out parameters are untouched on failure.
 */
#ifndef CULPRIT_BASE_ERR_H
#define CULPRIT_BASE_ERR_H

struct err {
	int code; /* negative errno, 0 while nothing failed */
	char text[512];
};

/* Fills e (which may be NULL) and returns code, so that callers can `return err_set(...)`. */
int err_set(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* The same, with ": " and the words of the errno behind the text. */
int err_errno(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Exit codes of the program. */
enum {
	EXIT_DONE = 0,    /* done */
	EXIT_NO = 1,      /* done, and the answer is "no" */
	EXIT_USAGE = 2,   /* wrong usage, or input that is not there or not what it should be */
	EXIT_MACHINE = 3, /* the machine does not allow it: rights, space, missing kernel feature */
};

/*
 * The exit code that fits a negative errno: EXIT_USAGE for -EINVAL, -ENOENT, -ENOTDIR, -EISDIR,
 * -ESRCH, -EEXIST, -EBADMSG (damaged input), -EPROTO (a newer format), -ENOEXEC; EXIT_MACHINE for
 * everything else.
 */
int err_exit_code(int code);

#endif
