#include "analyze/context_size.h"

#include "analyze/context_tree.h"
#include "base/mem.h"

/* The tree at hand. */
struct sizing {
	const struct call_tree *calls;
	const struct context_node *nodes;
	bool *inner; /* by node: has children */
	double heights;
	struct context_size *out;
};

/* The block of a record's paths that a call site is in, 0: none. */
static uint64_t block_of(const struct sizing *z, const struct call_node *n, uint64_t site)
{
	uint64_t block = 0;

	for (uint32_t i = 0; i < n->npaths; i++) {
		const struct path_shape *s = &call_tree_path(z->calls, n->path + i)->shape;

		for (uint32_t k = 0; k < s->n; k++)
			if (s->blocks[k] <= site && s->blocks[k] > block)
				block = s->blocks[k];
	}
	return block;
}

/* Whether only one path of its record leads to a call. */
static bool has_one_path(const struct sizing *z, const struct call_node *n, uint64_t site)
{
	uint64_t block = block_of(z, n, site);
	uint32_t found = 0;

	for (uint32_t i = 0; i < n->npaths && block && found < 2; i++) {
		const struct path_shape *s = &call_tree_path(z->calls, n->path + i)->shape;
		bool on_it = false;

		for (uint32_t k = 0; k < s->n; k++)
			on_it |= s->blocks[k] == block;
		found += on_it;
	}
	return found == 1;
}

static void count_node(struct sizing *z, const struct context_node *n)
{
	struct context_size *out = z->out;
	bool inner = z->inner[n - z->nodes];

	out->nodes++;
	out->paths += call_tree_node(z->calls, n->source)->npaths;
	out->roots += n->parent == CONTEXT_NONE;
	out->interior += inner;
	out->leaves += !inner;
	z->heights += inner ? 0 : n->depth + 1;
	if (n->depth + 1 > out->deepest)
		out->deepest = n->depth + 1;
}

static void count_site(struct sizing *z, const struct context_node *n)
{
	z->out->sites++;
	if (n->parent != CONTEXT_NONE)
		z->out->one_path += has_one_path(
			z, call_tree_node(z->calls, z->nodes[n->parent].source), n->site);
}

static void count_all(struct sizing *z, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!z->nodes[i].recursive && z->nodes[i].parent != CONTEXT_NONE)
			z->inner[z->nodes[i].parent] = true;
	for (size_t i = 0; i < n; i++) {
		if (z->nodes[i].site)
			count_site(z, &z->nodes[i]);
		if (z->nodes[i].recursive)
			z->out->recursive++;
		else
			count_node(z, &z->nodes[i]);
	}
}

void context_size(const struct context_tree *t, struct context_size *out)
{
	const struct context_procedure *procedures;
	struct sizing z = {.calls = context_tree_calls(t), .out = out};
	size_t n = context_tree_nodes(t, &z.nodes);
	_cleanup_free_ bool *inner = z.inner = xcalloc(n + 1, sizeof *inner);

	*out = (struct context_size){.bytes = context_tree_bytes(t),
		.procedures = (uint32_t)context_tree_procedures(t, &procedures)};
	count_all(&z, n);
	out->degree = out->interior ? (double)(out->nodes - out->roots) / out->interior : 0;
	out->height = out->leaves ? z.heights / out->leaves : 0;
	for (uint32_t i = 0; i < out->procedures; i++)
		if (procedures[i].records > out->replication) {
			out->replication = procedures[i].records;
			out->replicated = i;
		}
}
