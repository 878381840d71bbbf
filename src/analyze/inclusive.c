#include "analyze/inclusive.h"

#include "analyze/context_tree.h"
#include "base/mem.h"

#include <string.h>

/* The nodes from a root to where the walk is, and how often each procedure is among them. */
struct way {
	const struct context_node *nodes;
	uint32_t *active; /* by procedure */
	VEC(uint32_t) procedures;
};

static void leave_to(struct way *w, uint32_t depth)
{
	while (w->procedures.n > depth)
		w->active[w->procedures.p[--w->procedures.n]]--;
}

static bool enter(struct way *w, const struct context_node *n)
{
	leave_to(w, n->depth);
	*vec_add(&w->procedures) = n->procedure;
	return !w->active[n->procedure]++;
}

static int compare_rows(const void *a, const void *b)
{
	const struct inclusive_row *x = a, *y = b;

	if (x->all != y->all)
		return x->all > y->all ? -1 : 1;
	if (x->own != y->own)
		return x->own > y->own ? -1 : 1;
	return x->procedure < y->procedure ? -1 : x->procedure > y->procedure;
}

void inclusive_rows(const struct context_tree *t, inclusive_list *out)
{
	const struct context_procedure *procedures;
	struct way w = {0};
	size_t n = context_tree_nodes(t, &w.nodes), total = context_tree_procedures(t, &procedures);
	_cleanup_free_ double *all = xcalloc(total + 1, sizeof *all);

	w.active = xcalloc(total + 1, sizeof *w.active);
	for (size_t i = 0; i < n; i++)
		if (enter(&w, &w.nodes[i]))
			all[w.nodes[i].procedure] += w.nodes[i].all;
	for (uint32_t p = 0; p < total; p++)
		if (all[p] > 0)
			*vec_add(out) = (struct inclusive_row){p, procedures[p].own, all[p]};
	vec_sort(out, compare_rows);
	vec_deinit(&w.procedures);
	free(w.active);
}
