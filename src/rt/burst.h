/*
 * Bursts (Hirzel and Chilimbi, FDDO 2001): what the code of the two copies of procedures and the
 * run time know, and how bursts lie in the file of a run.
 *
 * A thread's CHECK word counts checks down in the checking copies; below zero, control goes over to
 * the instrumented copies, which write records to the thread's buffer at its CURSOR word. There the
 * INSTR word counts down, and below zero the run time is asked (rt_burst_turn): whether a burst
 * begins, goes on, or is over. While one is under way CHECK stays below zero, so that who came back
 * into a checking copy by a return leaves it again at the next check; once it is over INSTR stays
 * zero, for the same in the other direction (section 2).
 *
 * The file: struct burst_file, then chunks. Each belongs to a thread and has whole
 * bursts, one after the other: struct burst_head and its words. A burst goes there when it is
 * over, or when the buffer is full: then its next part follows. What is in a chunk survives the
 * process, however that ends.
 *
 * A burst's words are records: the number of a point in the code (burst/map.h), which has the
 * highest bit set as no address has, and as many words as that point records.
 */
#ifndef CULPRIT_RT_BURST_H
#define CULPRIT_RT_BURST_H

#include <stdint.h>

#include "rt/burst_rates.h"
#include "rt/rt.h"

/* Words of a thread, in bytes from the thread pointer. */
#define BURST_CHECK  RT_WORD(48)
#define BURST_INSTR  RT_WORD(49)
#define BURST_CURSOR RT_WORD(50)
#define BURST_LIMIT  RT_WORD(51)
#define BURST_THREAD RT_WORD(52) /* the run time's own: struct burst_thread */
#define BURST_COUNT  RT_WORD(53) /* bursts that have begun */

#define BURST_MAGIC  0x32727562707c7563 /* the bytes "cu|pbur2" */
#define BURST_PAGE   (128 << 10) /* bytes of struct burst_file, with what is behind */
#define BURST_CHUNK  ((uint64_t)256 << 10)
#define BURST_NUMBER ((uint64_t)1 << 63) /* in numbers of points */

/*
 * Words. Buffers are small, so that they stay in the first cache and leave the program its share.
 * Behind a buffer's limit there is room for what a block writes, and for a signal's.
 */
#define BURST_BUFFER ((uint64_t)2048)
#define BURST_ROOM   ((uint64_t)2048)
#define BURST_BLOCK  512 /* that are written after room was asked for, at most */

#define BURST_CHUNKS 8192 /* at most */

/* What becomes of a chunk; whoever reads the file while programs run empties those that are full. */
enum burst_state { BURST_NEW, BURST_TAKEN, BURST_FULL, BURST_EMPTY };

struct burst_file {
	uint64_t magic;
	struct burst_rates rates; /* may be changed while programs run ... */
	uint64_t changed;         /* ... which is counted here, afterwards; 0: processes take what
				     their environment says, if that says something */
	uint64_t most;            /* chunks there may be */
	uint64_t chunks;          /* that were given out, or asked for beyond that */
	uint64_t lost;            /* bursts, or parts, that found no room */
	uint64_t empty;           /* chunks that may be used again */
	uint64_t given;           /* chunks that were given out, those used again too */
	uint64_t order[BURST_CHUNKS]; /* of the chunks: what was given before */
	uint8_t state[BURST_CHUNKS];  /* enum burst_state */
};

_Static_assert(sizeof(struct burst_file) <= BURST_PAGE, "it has room");

struct burst_chunk {
	uint32_t process, thread;
	uint64_t pointer; /* the thread's */
	uint64_t used;    /* bytes behind this head */
};

enum {
	BURST_GOES_ON = 1, /* the next burst of the thread is the rest of this one */
};

struct burst_head {
	uint32_t words, flags;
	uint64_t time; /* the time stamp counter when it was over */
};

#define BURST_CHUNK_ROOM (BURST_CHUNK - sizeof(struct burst_chunk))

_Static_assert(sizeof(struct burst_head) + (BURST_BUFFER + BURST_ROOM) * sizeof(uint64_t) <=
		       BURST_CHUNK_ROOM,
	"a full buffer has room in a chunk");

#endif
