/*
 * Paths by context (path_words.h), after a run: gathers what records counted while they are read
 * (arena.h), then adds the paths to the tree, and sums them up as if there were no contexts.
 */
#ifndef CULPRIT_CONTEXT_PATH_READ_H
#define CULPRIT_CONTEXT_PATH_READ_H

#include "base/vec.h"
#include "context/arena.h"
#include "context/path_words.h"

struct call_tree;

/* What a record counted of one path. */
struct path_found {
	uint32_t map, procedure, node;
	uint32_t number;
	uint64_t count;
};

/* Counters of a map, all contexts together: as paths_read (paths/read.h) wants them. */
typedef VEC(uint64_t) path_sums;

struct path_read {
	const struct path_words_map *maps;
	size_t nmaps;
	VEC(struct path_found) found;
	path_sums *sums; /* by map, after path_read_add */
};
void path_read_deinit(struct path_read *r);

struct context_sink path_read_sink(struct path_read *r);

/* Adds all paths to the nodes of the tree. -EBADMSG when a map is damaged. */
int path_read_add(struct path_read *r, struct call_tree *tree);

#endif
