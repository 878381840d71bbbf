/*
 * Counting by thread (rt/rt.h), for tools: every thread has counters of its own, in a block that
 * lies behind the shared ones in memory by so much as a word of the thread says.
 *
 * A thread that has no block yet has zero there, and would count with others. It gets one where it
 * comes in: who is only called by functions that look need not look.
 */
#ifndef CULPRIT_EDIT_THREADS_H
#define CULPRIT_EDIT_THREADS_H

#include <stdint.h>

#include "edit/edit.h"

struct err;
struct snippet;

/* Statements of a snippet that have the displacement in register R; argument A is threads_begin's
 * address. */
#define THREADS_FIND(R, A) R " = [" A "]; " R " = tls[" R " + 632]; "

struct threads {
	struct snippet *check;
	uint64_t at; /* of what the run time knows of them */
};

/* -EOPNOTSUPP when the file has no words in threads. */
int threads_begin(struct threads *t, struct edit *e, struct err *err);
/* Once it is settled which functions are chosen, before anything is counted at entries. */
void threads_check(struct threads *t, struct edit *e);
/* The first bytes of the counters, whole pages, are those that threads have for themselves. */
void threads_finish(struct threads *t, struct edit *e, uint64_t bytes);
void threads_deinit(struct threads *t); /* after edit_write */

#endif
