/*
 * Calling context trees as edited programs build them (Ammons, Ball and Larus 1997, section 4):
 * the layout that the code added to programs, the run time and whoever reads it share.
 *
 * A record stands for a procedure in a context. It has a slot for each call site, the first two
 * in one line of the cache with what entries look at;
 * before it the second metric, if there are two, or the counters of its paths (where they are too
 * many, the root of a tree of those that ran), and before these a count for each site that calls a
 * procedure which itself calls nobody. A thread's word
 * CONTEXT_WORD points to the slot of the call under way: callers set it, a callee looks there.
 *
 * A slot holds the address of one of these, told apart by their first word:
 *   a record of the callee, whose parent is the record that has the slot;
 *   a stand-in, a record without slots, when the callee is active in this context already: its
 *     `body` is that ancestor (for all other records, themselves), so recursion makes no new
 *     contexts, and the stand-in counts it. Its first word is the procedure's number negated, so
 *     that others need not ask for their body;
 *   a fan, where several procedures were called from one site: one place for each of 64 groups of
 *     procedures, which again holds nobody or a ring of records;
 *   nobody: the word `nobody` of the record that has the slot.
 * So the owner of a slot is known from what is in it, and a callee compares one word to find its
 * record.
 *
 * All lies in one file, mapped at the same address by all processes of a run: addresses in it are
 * offsets from CONTEXT_ARENA. It is made beforehand (context/arena.h) and grows. What is in a slot
 * is complete; objects are never moved or removed, and added by compare and exchange, so signal
 * handlers, threads and children of fork need no locks. Each thread has a tree, its root is left to
 * others when it has gone. When there is no more room, everything goes to one record for what is
 * lost.
 */
#ifndef CULPRIT_RT_CONTEXT_H
#define CULPRIT_RT_CONTEXT_H

#include <stddef.h>
#include <stdint.h>

#include "rt/rt.h"

#define CONTEXT_ARENA  0x3a5000000000
#define CONTEXT_WINDOW ((uint64_t)64 << 30) /* bytes that are mapped, whatever the file has */
#define CONTEXT_MAGIC  0x3178746e6f437543
#define CONTEXT_WORD   RT_WORD(RT_WORD_SLOT)
#define CONTEXT_ALIGN  32 /* of all objects */
#define CONTEXT_LINE   64 /* room is given out by these */
#define CONTEXT_PLACES 64 /* of a fan */

/* First words; procedures have numbers from CONTEXT_PROCEDURES on, below 2^31. */
enum context_kind {
	CONTEXT_NOBODY = 0,
	CONTEXT_FAN = 1,
	CONTEXT_LOST = 2,
	CONTEXT_ROOT = 3,
	CONTEXT_PROCEDURES = 16,
};

#define CONTEXT_NEAR 2 /* slots that are near what entries look at */

struct context_record {
	uint64_t procedure; /* of a stand-in: negated */
	uint64_t count;     /* how often it was entered */
	uint64_t slot[CONTEXT_NEAR];
	uint64_t body;          /* address of a record */
	uint64_t parent;        /* the record with the slot; 0 for roots; what is lost: itself */
	uint64_t next;          /* in the ring of those in the same place of a fan */
	uint64_t metric;        /* its own, without callees; the first if there are two */
	uint32_t counts, slots; /* words before it; slots, of which the others are behind it */
	uint64_t nobody;        /* 0 */
};

static inline uint64_t context_named(const struct context_record *r)
{
	return (int64_t)r->procedure < 0 ? -r->procedure : r->procedure;
}

/* From the record on. */
static inline uint64_t context_slot_at(uint32_t slot)
{
	return slot < CONTEXT_NEAR ? offsetof(struct context_record, slot) + slot * 8ul
				   : sizeof(struct context_record) + (slot - CONTEXT_NEAR) * 8ul;
}

static inline uint64_t *context_slot(const struct context_record *r, uint32_t slot)
{
	return (uint64_t *)((uint64_t)r + context_slot_at(slot));
}

struct context_fan {
	uint64_t kind, spare[4];
	uint64_t parent; /* where a record has it */
	uint64_t place[CONTEXT_PLACES];
};
_Static_assert(offsetof(struct context_fan, parent) == offsetof(struct context_record, parent),
	"so that it need not be asked which it is");

/* A path of a record, in a tree: from the root on, each two bits of a hash lead to a child. */
struct context_path {
	uint64_t number;
	uint64_t count, sums[RT_METRICS];
	uint64_t child[4]; /* addresses; 0 */
};

static inline uint64_t context_path_hash(uint64_t number)
{
	return number * 0x9e3779b97f4a7c15u;
}

struct context_root {
	struct context_record record; /* with one slot */
	uint64_t owner;               /* process and thread; CONTEXT_SHARED */
	uint64_t thread;              /* the owner's thread pointer */
	uint64_t link;                /* the next root */
};
#define CONTEXT_SHARED UINT64_MAX /* several processes counted there, perhaps at once */

struct context_arena {
	uint64_t magic;
	uint64_t used;          /* bytes of the file that are given out */
	uint64_t there;         /* bytes of the file that exist */
	uint64_t full;          /* it could not grow any more */
	uint64_t roots;         /* address of the first, 0 */
	uint64_t device, inode; /* of the file: other paths may lead to others */
};

/* What is lost has room for all sites of any procedure, on both sides. */
#define CONTEXT_COUNTS_MAX 16384
#define CONTEXT_SLOTS_MAX  8192
#define CONTEXT_LOST_AT    (4096 + CONTEXT_COUNTS_MAX * 8)
#define CONTEXT_FIRST      (CONTEXT_LOST_AT + 4096 + CONTEXT_SLOTS_MAX * 8)

/* The words that a procedure's records have. */
struct context_shape {
	uint16_t counts, slots;
};

#endif
