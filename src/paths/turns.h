/*
 * Loops of one block: a path for each turn would be counted, and the variable set, in memory, on an
 * edge that has to be jumped to. All turns but the first are the same path, so it is enough to
 * count turns, in a register, and to make paths of them where the loop is left.
 */
#ifndef CULPRIT_PATHS_TURNS_H
#define CULPRIT_PATHS_TURNS_H

#include "paths/choose.h"

/* Variables of snippets. */
enum { TURNS_COUNTER = 3, TURNS_SAVED = 4 };

struct turn_loop {
	uint32_t block;
	uint32_t inside;  /* link from the block to where its ways part */
	uint32_t around;  /* link back: it is cut */
	uint32_t leaving; /* link out */
	bool borrowed;    /* the register is somebody's, saved in TURNS_SAVED */
};

typedef VEC(struct turn_loop) turn_loops;

/* Loops of the chosen function where it pays, and that have a register; in place of what was there.
 */
void turns_find(const struct choosing *c, turn_loops *out);

#endif
