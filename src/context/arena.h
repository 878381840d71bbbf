/*
 * The file in which edited programs build calling context trees (rt/context.h), from outside: made
 * before a run, read afterwards. A killed program loses nothing; what is read may also be under
 * way. Reading trusts nothing.
 */
#ifndef CULPRIT_CONTEXT_ARENA_H
#define CULPRIT_CONTEXT_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "context/map.h"

struct call_tree;
struct err;

/* Makes the file ready, which has nothing but zeros if it exists. */
int context_arena_create(const char *path, struct err *e);

struct context_summary {
	uint64_t bytes;                     /* of the file, in use */
	uint64_t roots, records, stand_ins; /* threads at a time; contexts; recursive calls */
	uint64_t counted;                   /* contexts that are only a count in their caller's */
	uint64_t lost;                      /* entries that found no room */
	bool shared; /* a parent and a child of fork may have counted at once */
};

/*
 * Gets what was counted of paths, of those that ran: of a node of the tree, which is a procedure of
 * a map, by number. Where the map has no words for them, it is how often the procedure was entered,
 * as path 0.
 */
struct context_ran {
	size_t map, procedure;
	uint32_t node;
	uint64_t number, count;
	const uint64_t *sums; /* of metrics; NULL: it was only counted */
};
struct context_sink {
	void (*take)(void *arg, const struct context_ran *ran);
	void *arg;
};

/* Adds everything to the tree, and what was measured unless that was by path; maps are of all
 * images that were edited. The sink may be NULL. -EBADMSG. */
int context_arena_read(const void *p, size_t n, const struct context_map *maps, size_t nmaps,
	struct call_tree *out, const struct context_sink *sink, struct context_summary *sum);
/* The same of a file. */
int context_arena_load(const char *path, const struct context_map *maps, size_t nmaps,
	struct call_tree *out, const struct context_sink *sink, struct context_summary *sum,
	struct err *e);

#endif
