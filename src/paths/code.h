/*
 * The code that counts the paths of a function, as a plan says: which snippets, and where.
 *
 * The variable v0 is where the path's counter is, or a key of the table. With metrics, every
 * counter is followed by a word for each sum, and v1 (v2 for the second) is what was read when the
 * path began, moved on by what callees took: while one runs it is how much the path has taken.
 *
 * By context (context/path_words.h) counters lie in a record whose address is v0, and v2 is how far
 * the path's is from the first, or its number in the record's table; v3 (and v4) is what was read.
 * Functions that have no place for v0 find their record anew wherever a path ends.
 */
#ifndef CULPRIT_PATHS_CODE_H
#define CULPRIT_PATHS_CODE_H

#include "edit/edit.h"
#include "edit/measure.h"
#include "paths/fast.h"
#include "paths/handover.h"
#include "paths/turns.h"

struct snippet;

#define CODE_TEXTS 1024

/* Whether the variable is in a loop's own register (fast.h) where an edge comes from, and where it
 * leads to. */
enum { CODE_FROM = 1, CODE_TO = 2 };

struct paths_code {
	struct edit *edit;
	bool atomic;
	struct measures measures;        /* n is 0: paths are only counted */
	const struct handover *handover; /* with measures */
	bool records;      /* counters lie in a record that v0 points at; then v2 is the variable */
	const char *finds; /* statements that have its address in t4, by arguments a3 to a6 */
	uint64_t words;    /* else: where counters begin */
	uint64_t threads;  /* edit/threads.h; 0: all threads count together */
	struct snippet *snippets[CODE_TEXTS];
	struct snippet *unmeasured[4][CODE_TEXTS]; /* of functions that only count; by CODE_* */
	struct snippet *turns[4][2][2];            /* with a borrowed register; by CODE_FROM */
	struct snippet *moves[2]; /* a register that is borrowed: saved, put back */
	turn_loops loops;         /* of one function */
};
void paths_code_deinit(struct paths_code *c);

/* Words of a path. */
static inline uint64_t paths_code_stride(const struct paths_code *c)
{
	return 1 + c->measures.n;
}

struct paths_body {
	const struct choosing *chosen;
	struct path_function *model; /* its own; `first` is known; gets fixed counters */
	size_t number;               /* of the function, as edit_functions lists it */
	bool measured;               /* paths_code_can_measure was true */
	/* In a record: */
	uint64_t below;          /* words that the first counter is below it */
	const uint64_t *finding; /* arguments by which it is found; NULL: v0 has it */
};
#define CODE_FINDING 4 /* arguments */

/* Whether there is a place for readings, everywhere: wherever it is entered, a path begins. */
bool paths_code_can_measure(const struct paths_code *c, struct edit_function *f);
void paths_code_insert(struct paths_code *c, const struct paths_body *b);

#endif
