#include "edit/endings.h"

#include "base/mem.h"
#include "isa/decode.h"

#include <stdlib.h>

struct endings {
	struct edit_function *const *functions;
	size_t n;
	bool *never; /* by function */
};

static int by_start(const void *key, const void *function)
{
	const uint64_t *start = key;
	const struct edit_function *const *f = function;

	return *start < (*f)->procedure->start ? -1 : *start > (*f)->procedure->start;
}

size_t endings_number(struct edit_function *const *functions, size_t n, uint64_t start)
{
	struct edit_function *const *f =
		n ? bsearch(&start, functions, n, sizeof(*functions), by_start) : NULL;

	return f ? (size_t)(f - functions) : n;
}

/* Whether a block ends in a call or jump to a function that never comes back. */
static bool ends_there(const struct endings *x, const struct flow *f, uint32_t block)
{
	const struct flow_block *b = &f->blocks[block];
	const struct flow_insn *last = &f->insns[b->first + b->count - 1];
	size_t number;

	if (b->end != FLOW_CALLS && b->end != FLOW_JUMPS && b->end != FLOW_TAIL)
		return false;
	if (last->kind != INSN_CALL && last->kind != INSN_JUMP)
		return false;
	number = endings_number(x->functions, x->n, flow_target(last));
	return number < x->n && x->never[number];
}

/* Whether some way leads from the entry to an end from which control may come back. */
static bool comes_back(const struct endings *x, const struct flow *f)
{
	uint32_t *stack = graph_numbers(f->graph.nodes, 0), n = 0;
	bool *seen = xcalloc(f->graph.nodes, sizeof *seen), back = false;

	stack[n++] = f->entry_node;
	seen[f->entry_node] = true;
	while (n && !back) {
		uint32_t node = stack[--n];

		if (node < f->nblocks && ends_there(x, f, node))
			continue;
		graph_each_out (e, &f->graph, node) {
			uint32_t to = f->graph.edge[*e].to;

			back |= to == f->exit_node && f->edge_kind[*e] != FLOW_EDGE_STOP;
			if (!seen[to])
				stack[n++] = to;
			seen[to] = true;
		}
	}
	free(stack);
	free(seen);
	return back;
}

/* Grows from those that end by themselves: who calls them may end for it, and so on. */
bool *endings_find(struct edit_function *const *functions, size_t n)
{
	struct endings x = {functions, n, xcalloc(n + 1, sizeof *x.never)};
	bool changed = true;

	while (changed) {
		changed = false;
		for (size_t i = 0; i < n; i++) {
			const struct flow *f = functions[i]->flow;

			if (x.never[i] || !f || comes_back(&x, f))
				continue;
			x.never[i] = changed = true;
		}
	}
	return x.never;
}
