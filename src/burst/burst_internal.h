/*
 * The tool that traces in bursts while it works, for the files that make it: burst.c makes second
 * copies and puts checks, held.c says which loops count for themselves, point.c puts points where
 * something is recorded, payloads (payload.h) say where and what.
 */
#ifndef CULPRIT_BURST_BURST_INTERNAL_H
#define CULPRIT_BURST_BURST_INTERNAL_H

#include "burst/burst.h"
#include "burst/held.h"
#include "burst/map.h"
#include "burst/payload.h"
#include "isa/reference.h"

struct snippet;

struct burst {
	const struct burst_options *options;
	struct edit *edit;
	struct edit_function **functions, **twins;
	size_t n;
	bool *checked; /* entries */
	struct burst_map map;
	struct snippet *leave, *lead, *turn, *room, *point[BURST_WORDS + 1];
	struct held_snippets held[HELD_END];
	/* The payload's: */
	struct snippet *own_snippets[PAYLOAD_SNIPPETS];
	void *own;
};

/* ---- points ---- */

/* What a point is to record, while it is put together; zeroed at first, and used again. */
struct point {
	VEC(struct burst_event) events;
	struct reference word[BURST_WORDS];
	unsigned words;
};

/* The number of a new point, whose code its payload puts; the point is empty then. */
uint64_t point_add(struct burst *b, const struct edit_function *f, struct point *p);
/* Before an instruction; the point is empty then. Who puts it has asked for room. */
void point_put(struct burst *b, struct edit_function *f, uint32_t insn, struct point *p);
/* An event that needs no word, alone and with the room that it takes. */
void point_put_event(
	struct burst *b, struct edit_function *f, uint32_t insn, const struct burst_event *event);
/*
 * Room for what is recorded from `insn` on, BURST_BLOCK words; the code may stand earlier, from
 * `from` on in the same block, where that costs less.
 */
void point_ask_room(struct burst *b, struct edit_function *f, uint32_t from, uint32_t insn);

#endif
