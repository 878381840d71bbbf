/* What `culprit calls` was asked, and what it found: for its parts (calls*.c). */
#ifndef CULPRIT_CMD_CALLS_VIEW_H
#define CULPRIT_CMD_CALLS_VIEW_H

#include "analyze/context_size.h"
#include "analyze/context_tree.h"
#include "cmd/cmd.h"

enum calls_form {
	CALLS_TREE,
	CALLS_CALLERS,
	CALLS_HOT,
	CALLS_SIZE,
	CALLS_FOLDED,
	CALLS_SVG,
	CALLS_CHECK,
	CALLS_AT,
};

struct calls_view {
	struct report report;
	enum calls_form form;
	const char *metric, *output;
	const char *other;   /* --check: the database to compare with; --at: the place */
	const char *earlier; /* --new: the database that contexts must not be in */
	bool *fresh;         /* by node: whether they are not; NULL: nobody asked */
	bool sites, paths, whole;
	double least; /* share of what is shown */
	struct context_tree *tree;
};

/* Contexts with at least that share (and --new, if that is asked), by their own weight; to be
 * freed. */
size_t calls_hot(const struct calls_view *v, double least, const struct context_node ***out);
/* Numbers of the nodes from the root to this one, in a list that is used again. */
typedef VEC(uint32_t) calls_chain;
void calls_chain_of(const struct calls_view *v, const struct context_node *n, calls_chain *out);

void calls_print_text(struct calls_view *v);

/* Other questions than what the contexts are. */
int calls_check(struct calls_view *v, struct err *e);
int calls_at(struct calls_view *v, struct err *e);

#endif
