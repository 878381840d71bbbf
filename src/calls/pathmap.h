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
 * and how often as the innermost frame. Maps add up as such profiles do.
 */
#ifndef CULPRIT_CALLS_PATHMAP_H
#define CULPRIT_CALLS_PATHMAP_H

#include "calls/tree.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct path_map;

/* What a height counts from. */
enum stack_kind {
	STACK_MAIN,   /* where the kernel put the program's arguments */
	STACK_THREAD, /* the thread's control block */
	STACK_SIGNAL, /* the end of the alternate stack for signals */
	STACK_OTHER,  /* nobody knows: heights mean nothing */
	STACK_KINDS,
};

/* A frame: of a procedure of an image (by its key, 0 unknown), so far below the base. */
struct path_frame {
	uint64_t image, procedure;
	int64_t height;
};

/* What a walked stack says of the answer that the map would have given before. */
enum path_verdict {
	PATH_PRECISE,   /* one path is known, and it was this one */
	PATH_FIRST,     /* several are; the likeliest was */
	PATH_AMBIGUOUS, /* another of them was */
	PATH_WRONG,     /* those that are known are others */
	PATH_MISSING,   /* none is known */
	PATH_VERDICTS,
};

struct path_map *path_map_create(void);
void path_map_destroy(struct path_map *m); /* takes NULL */

/* Its paths: nodes for path_map_find and path_map_learn. */
struct call_tree *path_map_tree(const struct path_map *m);

/*
 * A walked stack, innermost frame first, whose last frame is the root; returns the path's node.
 * `judge`: it was taken at random, and counts for the verdicts.
 */
uint32_t path_map_learn(struct path_map *m, enum stack_kind kind, const struct path_frame *frames,
	size_t n, bool judge);

/*
 * The likeliest path to a frame, CALL_NONE when none is known; *others is how many more there are.
 * Likely is what was sampled there most; then, what was seen there most.
 */
uint32_t path_map_find(const struct path_map *m, enum stack_kind kind,
	const struct path_frame *frame, uint32_t *others);

/* Stacks judged so far, by verdict. */
void path_map_verdicts(const struct path_map *m, uint64_t out[PATH_VERDICTS]);
/* The share of judged stacks whose path was named first; negative when none were judged. */
double path_map_precision(const uint64_t verdicts[PATH_VERDICTS]);

size_t path_map_size(const struct path_map *m); /* heights known */

/* Adds a stored map; -EBADMSG, and the map is of no use any more. */
int path_map_add(struct path_map *m, const void *p, size_t n);
void path_map_pack(struct path_map *m, struct buf *out);

#endif
