/*
 * What standard output is: a terminal gets colour and a pager, everything else plain text.
 */
#ifndef CULPRIT_BASE_TERM_H
#define CULPRIT_BASE_TERM_H

#include <stdbool.h>

bool term_is_tty(void);    /* standard output is a terminal */
int term_width(void);      /* columns of it, 0 when it is none */
void term_resized(void);   /* they are counted anew */
bool term_has_pager(void); /* somebody waits until the reader has seen all */

/* Escape sequences, or "" without a terminal or with NO_COLOR set. */
const char *term_bold(void);
const char *term_dim(void);
const char *term_red(void);
const char *term_reset(void);

/* Sends standard output through $CULPRIT_PAGER, $PAGER or less; a no-op without a terminal. */
void term_pager_start(void);
void term_pager_end(void); /* flushes and waits; called before exit */

#endif
