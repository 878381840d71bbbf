/*
 * What a path map is made of, for its parts: map.c, map_guess.c (who may have called), map_ask.c
 * (which word of a stack tells paths apart), map_shrink.c (what goes when it is too large).
 */
#ifndef CULPRIT_CALLS_MAP_INTERNAL_H
#define CULPRIT_CALLS_MAP_INTERNAL_H

#include "base/hmap.h"
#include "base/vec.h"
#include "calls/map.h"

/* In the place of an image's key, as the header's of leaves: at the root, a verdict. */
#define CALL_MAP_VERDICT 2

/* Compared as bytes: there is nothing between the fields. */
struct place_key {
	uint64_t image, procedure;
	int64_t height;
	uint64_t kind;
};

struct place {
	struct place_key key;
	uint32_t first, n; /* candidates, linked */
	/* What call_map_ask said last, and what it knew then. */
	int64_t ask[CALL_TOLD];
	uint32_t asks, asked_paths, asked_size, pad;
};

struct candidate {
	uint32_t node; /* the path */
	uint32_t leaf; /* its height, which counts */
	uint32_t next;
	uint32_t caller; /* the candidate that was last seen to call it; CALL_NONE */
	/* What call_map_is_doubtful said, whether the caller was known then, and how large the map
	 * was; 0: nothing yet. */
	bool doubtful, doubted_caller;
	uint32_t doubted_size;
};

/* Compared as bytes. */
struct procedure_key {
	uint64_t image, procedure;
};

/* A procedure, and who was seen calling it. */
struct called {
	struct procedure_key key;
	uint32_t first, pad; /* of its steps, linked */
};

/* From a frame to its caller's. */
struct step {
	struct procedure_key caller;
	int64_t down; /* how much lower the caller's height is */
	uint64_t count;
	uint32_t next, pad;
};

struct hashed {
	uint64_t hash;
	uint32_t first, pad; /* of those with this hash, linked */
};

struct namesake {
	struct procedure_key key;
	uint32_t next, pad;
};

/* A frame that was learned, called by a candidate (CALL_NONE: a root): what counts it. The key is
 * compared as bytes. */
struct lesson_key {
	struct call_frame frame;
	uint32_t by, kind;
};
struct lesson {
	struct lesson_key key;
	uint32_t node, candidate;
	uint32_t step,
		leaf; /* to its caller: of the steps, and of the tree; CALL_NONE: it has none */
};

/* What a node has counted since the map was last settled. */
struct fresh {
	uint64_t count, sampled;
};

struct call_map {
	struct call_tree *tree;
	VEC(struct fresh) fresh; /* by node; those behind have nothing */
	struct hmap places;      /* struct place */
	VEC(struct candidate) candidates;
	struct hmap called; /* struct called */
	VEC(struct step) steps;
	struct hmap hashed; /* struct hashed: procedures by call_map_step_hash */
	VEC(struct namesake) namesakes;
	/* The last stack that was learned from its root on, outermost frame first: the next one
	   mostly begins like it. */
	VEC(struct lesson) last;
	struct hmap lessons; /* struct lesson: all that were learned so */
	enum stack_kind last_kind;
};

static inline struct place_key call_map_key(enum stack_kind kind, const struct call_frame *f)
{
	return (struct place_key){f->image, f->procedure, f->height, kind};
}

struct candidate *call_map_candidate(
	const struct call_map *m, const struct place *p, uint32_t node); /* NULL: none */

/* Somebody was seen calling, so many times. The number of the step. */
uint32_t call_map_learn_step(struct call_map *m, const struct call_frame *callee,
	const struct call_frame *caller, uint64_t count);

/* Whether a candidate has these callers (call_map_find_called). */
enum call_match {
	CALL_MATCH,
	CALL_MATCH_SILENT, /* it has no frames there, so the words say nothing of it */
	CALL_MATCH_NOT,
	CALL_MATCHES,
};
enum call_match call_map_match(
	const struct call_map *m, uint32_t candidate, const struct call_told *told);

/* Whether others were seen to call this frame's procedure, and are known where they would be. */
bool call_map_is_doubtful(
	const struct call_map *m, enum stack_kind kind, const struct candidate *c);

/* Answers stay until the map has grown so much. */
static inline bool call_map_has_grown(const struct call_map *m, uint32_t size)
{
	return (uint32_t)m->candidates.n - size > size / 16;
}

/* Of a map that was read: takes the steps to callers from the node on, whose names it has all. */
void call_map_name(struct call_map *m, const struct call_place *at);
void call_map_take_step(struct call_map *m, uint32_t number);

#endif
