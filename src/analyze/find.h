/*
 * Which procedure a user means: "deflate", "def*", "gzip!0x4330" or "0x4330".
 */
#ifndef CULPRIT_ANALYZE_FIND_H
#define CULPRIT_ANALYZE_FIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tally;
struct tally_row;

enum find_kind {
	FIND_NONE,
	FIND_EXACT,   /* that name; several: static functions that share it, or several images */
	FIND_ADDRESS, /* covers that address */
	FIND_PATTERN, /* matches as a glob, or contains the text */
};

/*
 * The rows of a tally by procedure that fit, hottest first, in *out (free it); *n may be 0. A name
 * is taken as exact when any row has it, only else as a pattern.
 */
enum find_kind find_procedure(
	const struct tally *t, const char *what, const struct tally_row ***out, size_t *n);

#endif
