/*
 * The whole terminal, drawn anew each time, and keys one by one. There is one screen; what the
 * terminal showed before comes back when it is closed.
 *
 * Sequences are those of ECMA-48 and xterm, which every terminal of today understands.
 */
#ifndef CULPRIT_BASE_SCREEN_H
#define CULPRIT_BASE_SCREEN_H

#include <stddef.h>

struct err;

/* What screen_key returns besides the code points of text. */
enum screen_key {
	SCREEN_NOTHING = -1, /* nobody typed in time */
	SCREEN_ENTER = '\r',
	SCREEN_ESCAPE = 27,
	SCREEN_ERASE = 127,
	SCREEN_UP = 0x110000, /* behind all of Unicode */
	SCREEN_DOWN,
	SCREEN_PAGE_UP,
	SCREEN_PAGE_DOWN,
	SCREEN_HOME,
	SCREEN_LAST,
	SCREEN_RESIZED,
	SCREEN_END, /* a signal or Ctrl-C asks to end, or the terminal is gone */
	SCREEN_UNKNOWN,
};

/* -ENOTTY when standard input or output is no terminal. */
int screen_open(struct err *e);
void screen_close(void); /* also when it is not open */

void screen_size(int *rows, int *columns);
int screen_key(int timeout_ms);

/* Lines from the top, cut to the screen, of which `marked` (SIZE_MAX: none) stands out. */
void screen_draw(const char *const *lines, size_t n, size_t marked);

#endif
