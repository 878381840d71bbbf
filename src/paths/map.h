/*
 * What the counters of a file that counts paths mean: for each procedure its graph, which links are
 * cut, the values that number its paths, and where they are counted. Whoever reads counts needs
 * nothing else.
 *
 * Graphs are kept as an exact_map is, where "counted" means cut. The map is kept as bytes
 * (map.c); reading trusts nothing.
 *
 * What is counted into is an array of words: counters, and behind them a hash table (rt/rt.h) for
 * procedures with more paths than an array should have.
 */
#ifndef CULPRIT_PATHS_MAP_H
#define CULPRIT_PATHS_MAP_H

#include "edit/exact_map.h"
#include "paths/derive.h"
#include "store/paths.h"

struct path_fixed {
	uint64_t number, word;
};

struct path_function {
	struct exact_function graph;
	uint8_t how;          /* enum path_how */
	bool shortened;       /* edges are cut that no loop needs: paths would be too many */
	bool pieces;          /* paths are cut at seams (seams.h): they can be put together */
	uint64_t first;       /* counters from this word on, by number; hashed: keys from this on */
	VEC(uint64_t) values; /* by edge of the dag */
	VEC(struct path_fixed) fixed; /* hashed: paths with a counter of their own */
	path_derived_list derived;    /* paths that have no counter */
	VEC(uint8_t) readings; /* of each metric, by block, for a call; none: nothing is measured */
	bool takes;            /* at the entry nothing is read: a caller did */
};

void path_function_deinit(struct path_function *f);

struct path_layout {
	uint64_t words;         /* all of them */
	uint64_t stride;        /* words of a path in an array: its count, sums of metrics */
	uint64_t unmeasured;    /* procedures that are only counted, where others are measured */
	uint64_t hash, entries; /* the table: its first word, how many; a power of two, or 0 */
	struct metric_names metrics; /* what the sums are of */
};

/* Words of an entry of the table: its key, and what an array has of a path. */
static inline uint64_t path_entry_words(const struct path_layout *l)
{
	return 1 + l->stride;
}

/* ---- writing ---- */

struct paths_map_writer {
	struct exact_map_writer graphs;
	struct buf body;
};
void paths_map_add(struct paths_map_writer *w, struct path_function *f); /* by ascending start */
void paths_map_finish(struct paths_map_writer *w, const struct path_layout *layout,
	const struct image_id *id, const char *path, struct buf *out);

/* ---- reading ---- */

struct paths_map_reader {
	struct exact_map_reader graphs;
	struct cursor at;
	struct path_layout layout;
};
int paths_map_open(struct paths_map_reader *r, const void *p, size_t n); /* -EBADMSG */
/*
 * 1 and the next function with its numbering, 0 at the end, -EBADMSG. What is in `out` is replaced;
 * its memory is used again. The numbering is to be deinitialised.
 */
int paths_map_next(struct paths_map_reader *r, struct path_function *out, struct numbering *n);

/* The graph that is numbered: links are its edges. */
void path_graph(const struct exact_function *f, struct graph *out);

#endif
