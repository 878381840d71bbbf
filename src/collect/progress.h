/*
 * Words in memory that count: where every store to a word that bursts have shown adds the same
 * number, its difference from one burst of the thread to the next tells how often it was stored to,
 * whatever ran in between. That is the absolute scale which samples alone do not have.
 *
 * Bursts tell which words they move. A word that was moved several times, always by the same step,
 * is watched: the interpreter reads it at each burst of the thread from then on (shadow.h). Most
 * words begin at nothing, so the first reading tells the turns before; what was reset tells those
 * since. What goes too far, by no multiple of the step, or back to anywhere is another thing by
 * now, and is left out; so is what went less far than bursts saw it go, since it is moved back as
 * well. Words that several instructions move tell nothing. Of values nothing is kept but the number
 * of steps.
 *
 * An instruction's turns are counted while its words are watched. What share of its turns that is,
 * bursts know: they see it move words all the time, and those among them that were counted. So all
 * of its turns are known (as of fish that are caught, marked and caught again). Memory is bounded.
 */
#ifndef CULPRIT_COLLECT_PROGRESS_H
#define CULPRIT_COLLECT_PROGRESS_H

#include "base/hmap.h"
#include "base/vec.h"
#include "collect/shadow.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A place in code. */
struct progress_place {
	uint64_t offset;
	uint32_t image, pad;
};

/* What became of an instruction that moves a watched word, since the last flush. */
struct progress_pace {
	struct progress_place by;
	uint32_t who;
	uint64_t turns;   /* that were counted; 0: none were, but they might have been */
	uint64_t counted; /* of those that bursts saw */
	uint64_t seen;    /* by bursts, in all */
};

struct progress {
	struct hmap followed; /* by thread */
	VEC(struct progress_pace) paces;
};

/* The thread of a burst. */
struct progress_thread {
	uint64_t id; /* SHADOW_PROCESS, of its own number */
	uint32_t who;
};

void progress_init(struct progress *p);
void progress_deinit(struct progress *p);

void progress_moved(struct progress *p, const struct progress_thread *t,
	const struct shadow_moved *m, const struct progress_place *by);
void progress_read(struct progress *p, const struct progress_thread *t,
	const struct shadow_reading *r, size_t n, uint64_t wall);

/* True and the words to watch when they are others than when it was last asked. */
bool progress_orders(struct progress *p, uint64_t thread, struct shadow_watch *out);

/* Makes p->paces of what has come together, by image, who and offset. */
void progress_settle(struct progress *p);
/* Once settled: where the paces of an image and who begin, and how many they are. */
size_t progress_find(
	const struct progress *p, uint32_t image, uint32_t who, const struct progress_pace **first);

/* After a flush: forgets what was told, and threads that have not been seen since the last. */
void progress_clear(struct progress *p);

size_t progress_memory(const struct progress *p);

#endif
