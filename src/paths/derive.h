/*
 * Paths that need no counter, since others tell how often they ran (Knuth and Stevenson 1973, with
 * paths in place of edges). A path leads from where it begins to where it ends: heads, behind cuts,
 * or the outside. As many begin at a head as end there. So of all paths, those of a heaviest
 * spanning tree between heads need not be counted.
 *
 * That holds only where no path is lost: a head from which a call can be reached that may not come
 * back says nothing.
 */
#ifndef CULPRIT_PATHS_DERIVE_H
#define CULPRIT_PATHS_DERIVE_H

#include "paths/plan.h"

/* A path that is told by where it ends, or where it begins, once those before it in a list are. */
struct path_derived {
	uint64_t number;
	bool by_end;
};
typedef VEC(struct path_derived) path_derived_list;

/* Takes counters out of the plan: of paths that have a place to themselves, the dearest. `safe`
 * says of nodes whether who comes there goes on. */
void derive_choose(const struct numbering *n, const double *weight, const bool *safe,
	struct plan *plan, path_derived_list *out);

/*
 * From the counts of all paths, by number, with those of the list in any state. Returns by how much
 * they fail to add up, which should be 0; -EBADMSG: there is no such path, or it does not end or
 * begin at a head.
 */
int derive_counts(const struct numbering *n, const struct path_derived *list, size_t nlist,
	uint64_t *counts, uint64_t *off);

#endif
