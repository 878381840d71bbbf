/*
 * A calling context tree in memory: nodes are known by their parent and by who is called from where
 * (Ammons, Ball and Larus, PLDI 97, section 4). Whoever reads contexts builds one; it becomes a
 * profile (store/contexts.h) and is made of profiles again.
 *
 * Nodes are numbered as they come, so a parent is before its children; a pointer to one is good
 * until the next is made. What is added to a node that is there already adds up.
 */
#ifndef CULPRIT_CALLS_TREE_H
#define CULPRIT_CALLS_TREE_H

#include "store/metrics.h"
#include "store/shape.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct call_tree;

#define CALL_NONE UINT32_MAX /* no node: the parent of roots */

/* Who is called: an image by its key (store/edges.h; 0 unknown), a procedure by its start. */
struct call_place {
	uint64_t image, procedure;
	uint64_t site;  /* the call instruction, in the caller; 0 unknown */
	bool recursive; /* closed: its callees are those of the next ancestor that is the same */
};

struct call_node {
	struct call_place at;
	uint32_t parent, depth;
	uint64_t count;
	uint64_t metrics[METRICS_MOST]; /* without callees; in the order of the tree's names */
	/* After call_tree_settle: */
	uint32_t child, next;  /* the first of its children, the next of its parent's; CALL_NONE */
	uint32_t path, npaths; /* its first among call_tree_path's */
};

/* A path that was counted in the context of a node. */
struct call_path {
	uint32_t node;
	struct path_shape shape; /* blocks belong to the tree */
	uint64_t count;
	uint64_t metrics[METRICS_MOST];
};

struct call_tree *call_tree_create(const struct metric_names *names); /* NULL: none */
void call_tree_destroy(struct call_tree *t);                          /* takes NULL */

const struct metric_names *call_tree_metrics(const struct call_tree *t);
uint32_t call_tree_size(const struct call_tree *t);
size_t call_tree_memory(const struct call_tree *t); /* bytes of its nodes */
struct call_node *call_tree_node(const struct call_tree *t, uint32_t number);

/* The node of this place below parent (CALL_NONE: a root), made when it is not there. */
uint32_t call_tree_child(struct call_tree *t, uint32_t parent, const struct call_place *at);
/* One that is known not to be there, in a tree that is then only packed: it cannot be found. */
uint32_t call_tree_append(struct call_tree *t, uint32_t parent, const struct call_place *at);
/* The same as call_tree_child if it is there; CALL_NONE. */
uint32_t call_tree_find(const struct call_tree *t, uint32_t parent, const struct call_place *at);
/* The same path in another tree: places only. CALL_NONE is that of nobody. */
uint32_t call_tree_copy_path(struct call_tree *to, const struct call_tree *from, uint32_t node);
/* Adds to a path of a node; the blocks are copied. */
void call_tree_add_path(struct call_tree *t, uint32_t node, const struct path_shape *shape,
	uint64_t count, const uint64_t *metrics);
/* Adds a stored profile; -EBADMSG, and the tree is of no use any more. */
int call_tree_add(struct call_tree *t, const void *p, size_t n);

/* Links children in order, sorts paths and puts equal ones together; again after additions. */
void call_tree_settle(struct call_tree *t);
uint32_t call_tree_root(const struct call_tree *t); /* the first of them; CALL_NONE */
const struct call_path *call_tree_path(const struct call_tree *t, uint32_t number);
/* The one behind it in preorder, CALL_NONE at the end. */
uint32_t call_tree_after(const struct call_tree *t, uint32_t node);

/* Settles it and appends it as a profile. */
void call_tree_pack(struct call_tree *t, struct buf *out);

#endif
