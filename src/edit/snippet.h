/*
 * Snippets: code that is inserted into programs. A snippet is written once as text and lowered for
 * every place where it goes, to the cheapest code that leaves alone what is live there.
 *
 *	[a0] += 1                               a counter at the address a0
 *	atomic [a0] += 1                        the same, for several threads
 *	t0 = tls[a0]; [t0 + a1] += 1            in a block of the thread's own
 *	v0 += a0                                a path register
 *	[a0 + v0*8] += 1; v0 = a1               the end of a path
 *	[a0] -= 1; if [a0] < 0 goto a1          a check: leave for another copy of the body
 *	t0 = [a0]; if t0 == a1 goto same; [a0] = a1; same:
 *	t0 = tls[a0]; if t0 == 0 goto no; on: [t0 + a3] += 1; apart; no: t0 = call a1(a2); goto on
 *	t0 = rdtsc; t1 = t0; t0 -= v1; [a0] += t0; v1 = t1
 *
 * Statements are divided by ";". All values have 64 bits, comparisons are signed.
 *	a0 to a7	arguments: constants that differ from place to place
 *	t0 to t5	temporaries, undefined at the start
 *	v0 to v6	variables that live through a procedure, where the place says: a register,
 *or a word of the frame
 *	[...]		memory: a sum of an address (a register or an argument, which comes first),
 *a register that may be multiplied by 2, 4 or 8, arguments and numbers. An argument in front is an
 *address of the program and relocated with it; others and numbers are offsets of 32 bits. tls[...]
 *counts from the thread pointer; arguments are offsets there.
 *	&[...]		the address of it
 *	&m0 to &m3	the address of memory that the instruction names before which the snippet
 *stands, or that the place lists (isa/reference.h); a register can be set to it, in snippets that
 *leave flags alone
 * "place = value", "place += value", "place -= value", "if value CMP value goto target" (CMP: ==
 * != < <= > >=), "goto target", "name:". A target is a name in the snippet, or an argument: code
 * elsewhere. A statement has one memory operand at most.
 *
 * "register = call routine(value, value)", with or without a result, with up to two values: a
 * routine of the run time, which an argument names by its offset there (rt/routines.h). It leaves
 * alone everything but its result, so it costs its place nothing but the call.
 * "register = rdtsc": the time stamp counter.
 *
 * "apart": what follows is seldom run, and lies behind the procedure, so that nothing has to jump
 * over it. It ends with a goto, and may go back to what stands before.
 *
 * "clobber value", alone in a snippet, overwrites all that is dead: where that does no harm, no
 * snippet does.
 */
#ifndef CULPRIT_EDIT_SNIPPET_H
#define CULPRIT_EDIT_SNIPPET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/vec.h"
#include "flow/liveness.h"

struct err;
struct reference;
struct snippet;

/* -EINVAL with the place where the text stops making sense. */
int snippet_create(const char *text, struct snippet **out, struct err *e);
void snippet_destroy(struct snippet *s);

unsigned snippet_arguments(const struct snippet *s); /* how many it takes */

#define SNIPPET_VARIABLES 7
#define SNIPPET_NAMED     4 /* m0 to m3 */

struct snippet_place {
	uint16_t kept;    /* registers that must not be touched, not even saved and put back */
	uint32_t live;    /* LIVE_*: what must survive; liveness_before and the like */
	uint8_t red_zone; /* bytes below rsp that may be in use, 0 to 128; liveness_red_zone */
	bool fixed;       /* the file runs at the addresses that it is linked to */
	struct {
		uint8_t reg;            /* live; not rax, rsp or rbp; REG_NONE: in memory */
		uint8_t base;           /* there: REG_RSP or REG_RBP, as it is at this place, */
		int32_t slot;           /* and how far from it */
	} variable[SNIPPET_VARIABLES];  /* of those that the snippet uses */
	const struct reference *memory; /* of those that the snippet uses */
};

/* A displacement of 32 bits that is to lead from the end of its instruction to target. */
struct snippet_fixup {
	uint32_t offset, end;
	uint64_t target;
	bool jumps;  /* target is the argument of a goto: what it means is between tool and emitter
		      */
	bool calls;  /* target is an offset in the run time */
	bool across; /* from one part to the other: target is an offset in all of the bytes */
	bool table;  /* target is a table of the other copy: its number (edit/bridge.c) */
};

/* From offset on, rsp is so many bytes lower than where the snippet was inserted. */
struct snippet_shift {
	uint32_t offset, pushed;
};

/* Zeroed at first; then used again and again. */
struct snippet_code {
	struct buf bytes;
	size_t apart; /* where the part begins that lies elsewhere; bytes.n: there is none */
	VEC(struct snippet_fixup) fixups;
	VEC(struct snippet_shift) shifts; /* ascending; 0 before the first */
};

/* Whether it asks for addresses that the instruction names. */
bool snippet_asks_memory(const struct snippet *s);

/* -ERANGE: an argument that is used as an offset does not fit; -EINVAL: &m0 while flags have to be
 * kept. out is undefined then. */
int snippet_lower(const struct snippet *s, const uint64_t *arguments,
	const struct snippet_place *place, struct snippet_code *out);
void snippet_code_deinit(struct snippet_code *c);

#endif
