/*
 * A path map: which call paths were seen with a procedure at a height of the stack. A sample that
 * tells only these two then tells its call path (Mytkowicz, Coughlin and Diwan, OOPSLA 09: the
 * context identifier of section 3). It is learned from stacks that were walked; each of them
 * teaches the paths to all its frames. Heights are of the frame's address (CFA), so they are the
 * same wherever in the procedure a sample falls.
 *
 * Paths are folded as calling context trees are: who is called again, directly or not, is the same
 * node. So each depth of a recursion is another height of one path.
 *
 * A map is of one program. As a profile it is a calling context tree (store/contexts.h, blob type
 * "pathmap") whose nodes have leaves that are no calls: the heights they were seen at, how often,
 * and how often as the innermost frame; and how far from there their callers' frames were, so that
 * stacks can be unfolded (calls/unfold.h). Maps add up as such profiles do.
 */
#ifndef CULPRIT_CALLS_MAP_H
#define CULPRIT_CALLS_MAP_H

#include "calls/tree.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct call_map;

/* What a height counts from. */
enum stack_kind {
	STACK_MAIN,   /* where the kernel put the program's arguments */
	STACK_THREAD, /* the thread's control block */
	STACK_SIGNAL, /* the end of the alternate stack for signals */
	STACK_OTHER,  /* nobody knows: heights mean nothing */
	STACK_KINDS,
};

/*
 * Leaves have these in the place of an image's key, which are hashes and never so small. A height
 * is its `procedure`, the kind of stack its `site`; of a step, that is call_map_step_site.
 */
#define CALL_MAP_HEIGHT 1
#define CALL_MAP_STEP   3

/* A caller's frame so many bytes higher: the parent's, or (a hash that is not 0, of who it is) that
 * of a node below. */
static inline uint64_t call_map_step_site(int64_t down, enum stack_kind kind, uint16_t folded)
{
	return (uint64_t)down << 18 | (uint64_t)folded << 2 | kind;
}
uint16_t call_map_step_hash(const struct call_place *caller);

/* A frame: of a procedure of an image (by its key, 0 unknown), so far below the base. */
struct call_frame {
	uint64_t image, procedure;
	int64_t height;
};

/* What a walked stack says of the answer that the map would have given before. */
enum call_verdict {
	PATH_PRECISE,    /* one path is known, and it was this one */
	PATH_FIRST,      /* several are; the likeliest was */
	PATH_AMBIGUOUS,  /* another of them was */
	PATH_WRONG,      /* those that are known are others */
	PATH_MISSING,    /* none is known */
	PATH_CATEGORIES, /* those of the paper; */
	/* and of samples: it was named with a doubt, and is none of those that are known */
	PATH_DOUBTED = PATH_CATEGORIES,
	PATH_VERDICTS,
};

const char *call_verdict_word(enum call_verdict v); /* "precise", "first", ... */

struct call_map *call_map_create(void);
void call_map_destroy(struct call_map *m); /* takes NULL */

/* Its paths: nodes for call_map_find and call_map_learn. */
struct call_tree *call_map_tree(const struct call_map *m);

/* A path of some map's tree that frames are below. */
struct call_prefix {
	const struct call_tree *tree;
	uint32_t node;
};

/*
 * A walked stack, innermost frame first, whose last frame is the root or (with a prefix) was called
 * by that path; returns the path's node.
 */
uint32_t call_map_learn(struct call_map *m, const struct call_prefix *prefix, enum stack_kind kind,
	const struct call_frame *frames, size_t n);
/* The node of that path without learning its heights. */
uint32_t call_map_path(struct call_map *m, const struct call_prefix *prefix,
	const struct call_frame *frames, size_t n);

/* The node of a call from a path: an ancestor, if it is the same procedure. */
uint32_t call_map_call(struct call_map *m, uint32_t node, const struct call_frame *f);

/*
 * For a stack whose outer frames are not known: how many of the inner ones, from the first on, are
 * below a frame whose path is known for sure, and that path. 0: there is none, or none below it.
 */
size_t call_map_join(const struct call_map *m, enum stack_kind kind,
	const struct call_frame *frames, size_t n, uint32_t *node);

/*
 * The likeliest path to a frame, CALL_NONE when none is known; *others is how many more there are.
 * Likely is what was sampled there most; then, what was seen there most.
 */
uint32_t call_map_find(const struct call_map *m, enum stack_kind kind,
	const struct call_frame *frame, uint32_t *others);

/*
 * Callers that a sample has told. Heights are not their own but of the frames that they called.
 * Compared as bytes.
 */
#define CALL_TOLD 3
struct call_told {
	uint32_t n;
	uint32_t near; /* they are the nearest, one after the other */
	struct call_frame callers[CALL_TOLD];
};

/*
 * The frames, by their heights, whose callers tell the paths of a place apart, the best first; they
 * may be further out. Then those that others are known to call as well, which might be there.
 */
size_t call_map_ask(const struct call_map *m, enum stack_kind kind, const struct call_frame *frame,
	int64_t heights[CALL_TOLD]);
/* The likeliest among those that have these callers; of all if none has. */
uint32_t call_map_find_called(const struct call_map *m, enum stack_kind kind,
	const struct call_frame *frame, const struct call_told *told, uint32_t *others);
/* Whether others may have called somewhere here, and the sample has told nothing of that. */
bool call_map_wants_told(const struct call_map *m, enum stack_kind kind,
	const struct call_frame *frame, const struct call_told *told);
/* Whether there is one that has them. */
bool call_map_has_callers(const struct call_map *m, enum stack_kind kind,
	const struct call_frame *frame, const struct call_told *told);

/*
 * The likeliest path to a frame that was never seen at this height: by callers that were seen as
 * far from it elsewhere, and are known at the height that this makes, or may be guessed in turn. So
 * a recursion is known to depths that nobody has looked at. CALL_NONE when there is none.
 */
uint32_t call_map_guess(struct call_map *m, enum stack_kind kind, const struct call_frame *frame);
/*
 * The same where the nearest callers were told: from the first of them on that is known where it
 * is, or by who called the last of them.
 */
uint32_t call_map_guess_near(struct call_map *m, enum stack_kind kind,
	const struct call_frame *frame, const struct call_told *told);

/* What the map says of the path to a frame. */
struct call_answer {
	uint32_t node;   /* CALL_NONE: there is none */
	uint32_t degree; /* how many paths have this place; 0: it was never seen */
	uint32_t others; /* how many more of them may be it */
	bool ranked;     /* others may be it, known or not */
};
void call_map_answer(struct call_map *m, enum stack_kind kind, const struct call_frame *frame,
	const struct call_told *told, struct call_answer *out);

/*
 * What a path of the map's tree says of the answer that the map gives for its innermost frame.
 */
enum call_verdict call_map_judge(struct call_map *m, enum stack_kind kind,
	const struct call_frame *frame, const struct call_told *told, uint32_t node,
	struct call_answer *answer);

/* The verdict on a path that was named with a doubt. */
enum call_verdict call_verdict_ranked(enum call_verdict v);

/* Stacks that were taken at random, by verdict. */
void call_map_count(struct call_map *m, enum call_verdict verdict);
void call_map_verdicts(const struct call_map *m, uint64_t out[PATH_VERDICTS]);
/* The share of judged stacks whose path was named first; negative when none were judged. */
double call_map_precision(const uint64_t verdicts[PATH_VERDICTS]);

/* How many paths are known there. */
uint32_t call_map_paths_at(
	const struct call_map *m, enum stack_kind kind, const struct call_frame *frame);

size_t call_map_size(const struct call_map *m);   /* heights known */
size_t call_map_memory(const struct call_map *m); /* bytes, about; takes NULL */

/* One of them: the path to this frame was learned so often, so often as the innermost one. */
struct call_height {
	struct call_frame frame;
	enum stack_kind kind;
	uint32_t node, caller; /* caller: the number of the height that was last seen to call it */
	uint64_t count, sampled;
};
void call_map_height(const struct call_map *m, size_t number, struct call_height *out);

/* The number of a path at a height; CALL_NONE. */
uint32_t call_map_number(const struct call_map *m, enum stack_kind kind,
	const struct call_frame *frame, uint32_t node);

/* How far the frames of those are that this procedure was seen to call; 0 when that differs, or
 * was not seen. */
int64_t call_map_usual_step(const struct call_map *m, uint64_t image, uint64_t procedure);

/* That one called this frame, by what was counted: nobody saw a stack. Returns its number. */
uint32_t call_map_teach(
	struct call_map *m, uint32_t caller, const struct call_frame *frame, uint64_t count);

/* Adds a stored map; -EBADMSG, and the map is of no use any more. */
int call_map_add(struct call_map *m, const void *p, size_t n);
void call_map_pack(struct call_map *m, struct buf *out);

/* What was learned (not taught) and judged since the map was last settled, as a map. */
bool call_map_has_fresh(const struct call_map *m);
void call_map_pack_fresh(const struct call_map *m, struct buf *out);
void call_map_settle(struct call_map *m);

/*
 * Of a map that was just settled only heights stay that were seen so often, and those that called
 * them; nodes and numbers of heights are then others.
 */
void call_map_shrink(struct call_map *m, uint64_t least);

#endif
