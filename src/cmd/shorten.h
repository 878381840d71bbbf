/*
 * Names and paths cut to a number of terminal columns, with an ellipsis where something is missing.
 */
#ifndef CULPRIT_CMD_SHORTEN_H
#define CULPRIT_CMD_SHORTEN_H

#include <stddef.h>

size_t text_columns(const char *s); /* one for each code point */

/* Malloc'ed; width 0 is no limit. */
char *shorten_name(const char *name, size_t width); /* its beginning stays */
char *shorten_path(
	const char *path, size_t width); /* its end stays, from a slash on if it can be */

#endif
