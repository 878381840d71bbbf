/*
 * The calling contexts that a selection holds: one tree, heaviest children first, with names
 * (Ammons, Ball and Larus, PLDI 97, section 4).
 *
 * A node's own weight is what it has of the metric that is asked for, without callees; `all` has
 * its callees in it. A recursive node counts calls of a procedure that was active; what it called
 * is below the ancestor that is the same. Nodes that the filter's image or the procedure pattern
 * leave out keep their place and weigh nothing.
 */
#ifndef CULPRIT_ANALYZE_CONTEXT_TREE_H
#define CULPRIT_ANALYZE_CONTEXT_TREE_H

#include "analyze/selection.h"
#include "calls/map.h"
#include "calls/tree.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct context_tree;

#define CONTEXT_BY_CALLS   "calls"
#define CONTEXT_BY_SAMPLES "samples"
#define CONTEXT_NONE       UINT32_MAX

struct context_procedure {
	const char *name;                   /* never NULL */
	const struct selected_image *image; /* NULL: not in the database */
	uint64_t start;
	uint32_t records; /* contexts that it has */
	double own;       /* in all of them */
	uint64_t count;
};

struct context_node {
	uint32_t parent;     /* CONTEXT_NONE: a root */
	uint32_t depth, end; /* end: number of the first node behind all below it */
	uint32_t procedure;  /* number */
	uint32_t source;     /* the node of context_tree_calls */
	bool recursive;
	bool jumped; /* on no stack: it was called, and jumped to the one below */
	uint64_t site, count;
	double own, all;
};

/* How the path of a context is known. */
enum context_known {
	CONTEXT_EXACT,   /* it was counted */
	CONTEXT_UNIQUE,  /* no other was seen with this procedure at this height of the stack */
	CONTEXT_RANKED,  /* it is the likeliest of several, for most of its samples */
	CONTEXT_WALKED,  /* by their own stacks, most of its samples */
	CONTEXT_UNKNOWN, /* only the innermost procedure is known */
};

struct context_tree_options {
	const char *metric;    /* NULL: the first that was measured, else calls or samples */
	bool events;           /* only what the selection's events have; else counts come first */
	const char *procedure; /* glob over names, NULL: all */
	bool sites;            /* contexts that differ in a call site only stay apart */
};

/* -ENOENT when there are none, -EINVAL for a metric that is not there. */
int context_tree_create(struct selection *sel, const struct context_tree_options *o,
	struct context_tree **out, struct err *e);
void context_tree_destroy(struct context_tree *t); /* takes NULL */

/*
 * The same in parts: `group` says which of the n trees a process of the store belongs to. What has
 * no contexts stays NULL, as all of *out must be before. They have no verdicts.
 */
typedef size_t context_group_fn(void *arg, int64_t process);
int context_tree_groups(struct selection *sel, const struct context_tree_options *o,
	context_group_fn *group, void *arg, struct context_tree **out, size_t n, struct err *e);

const char *context_tree_metric(const struct context_tree *t);
/* The event whose samples it holds; NULL: calls were counted. */
const char *context_tree_sampled(const struct context_tree *t);
enum context_known context_tree_known(const struct context_tree *t, const struct context_node *n);
const char *context_known_word(enum context_known k);
/* How often the stacks that were looked at at random had the path that would have been named, by
 * verdict (calls/map.h); all 0 when none were, or nothing was sampled. */
void context_tree_verdicts(const struct context_tree *t, uint64_t out[PATH_VERDICTS]);
double context_tree_total(const struct context_tree *t); /* of all nodes, also those left out */
/* In preorder, siblings by weight. */
size_t context_tree_nodes(const struct context_tree *t, const struct context_node **out);
size_t context_tree_procedures(const struct context_tree *t, const struct context_procedure **out);
uint64_t context_tree_bytes(const struct context_tree *t); /* of its profiles, unpacked */
/* What it was made of: paths and metrics by node. */
const struct call_tree *context_tree_calls(const struct context_tree *t);

/*
 * Who called: roots are the procedures with at least `least` of the own weight, and below each node
 * are its callers, weighted by what they are to blame for. Destroy it before the other.
 */
struct context_tree *context_tree_callers(const struct context_tree *t, double least);

#endif
