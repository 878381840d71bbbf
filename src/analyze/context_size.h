/*
 * How large a calling context tree is (Ammons, Ball and Larus, PLDI 97, table 3).
 */
#ifndef CULPRIT_ANALYZE_CONTEXT_SIZE_H
#define CULPRIT_ANALYZE_CONTEXT_SIZE_H

#include <stdint.h>

struct context_tree;

struct context_size {
	uint64_t bytes; /* of the profiles, unpacked */
	uint32_t nodes, roots, interior, leaves, recursive, procedures;
	double degree;        /* children of interior nodes, mean */
	double height;        /* of leaves, mean */
	uint32_t deepest;     /* the largest height */
	uint32_t replication; /* most records of one procedure */
	uint32_t replicated;  /* whose */
	uint32_t sites;       /* that were called from, in all records */
	uint32_t one_path;    /* of these, reached by one path only; 0 without paths */
	uint64_t paths;       /* in all records */
};

/* Sites are those of a tree that keeps them apart. Recursive nodes are edges, and no nodes. */
void context_size(const struct context_tree *t, struct context_size *out);

#endif
