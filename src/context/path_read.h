/*
 * Paths by context (path_words.h), after a run: gathers what records counted while they are read
 * (arena.h), then adds the paths to the tree, and sums them up as if there were no contexts.
 */
#ifndef CULPRIT_CONTEXT_PATH_READ_H
#define CULPRIT_CONTEXT_PATH_READ_H

#include "base/vec.h"
#include "context/arena.h"
#include "context/path_words.h"
#include "paths/read.h"

struct call_tree;

/* What a record counted of one path. */
struct path_found {
	uint32_t map, procedure, node;
	uint32_t sums; /* the number of its metrics; 0: there are none */
	uint64_t number, count;
};

struct path_metrics {
	uint64_t sums[RT_METRICS];
};

/* Counters of a map, all contexts together: as paths_read (paths/read.h) wants them. */
typedef VEC(uint64_t) path_sums;
typedef VEC(struct paths_hashed) path_keys;

struct path_read {
	const struct path_words_map *maps;
	size_t nmaps;
	VEC(struct path_found) found;
	VEC(struct path_metrics) metrics; /* the first is nobody's */
	/* By map, after path_read_add: */
	path_sums *sums;
	path_keys *keys; /* of procedures that have trees */
};
void path_read_deinit(struct path_read *r);

struct context_sink path_read_sink(struct path_read *r);

/* Adds all paths to the nodes of the tree, and their metrics. -EBADMSG when something is damaged.
 */
int path_read_add(struct path_read *r, struct call_tree *tree);

#endif
