#include "burst/checks.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/vec.h"
#include "edit/callers.h"
#include "edit/endings.h"
#include "flow/components.h"
#include "flow/loops.h"
#include "isa/decode.h"
#include "isa/reference.h"

/* ---- entries ---- */

struct calls {
	struct edit_function **functions;
	size_t n;
	bool *outside, *leaf;
	VEC(struct graph_edge) edges;
	struct graph graph; /* the functions, and a root that leads to those from outside */
	uint32_t *distance; /* from the root */
};

static void add_call(struct calls *c, uint32_t caller, const struct flow_insn *i)
{
	size_t to = c->n;

	c->leaf[caller] = false;
	if (i->kind == INSN_CALL || i->kind == INSN_JUMP || i->kind == INSN_BRANCH)
		to = endings_number(c->functions, c->n, flow_target(i));
	if (to < c->n)
		*vec_add(&c->edges) = (struct graph_edge){caller, (uint32_t)to};
}

static void find_calls(struct calls *c, uint32_t caller)
{
	const struct flow *flow = c->functions[caller]->flow;

	for (uint32_t b = 0; flow && b < flow->nblocks; b++) {
		const struct flow_insn *last =
			&flow->insns[flow->blocks[b].first + flow->blocks[b].count - 1];

		if (last->kind == INSN_CALL || last->kind == INSN_CALL_INDIRECT)
			add_call(c, caller, last);
		graph_each_out (e, &flow->graph, b)
			if (flow->edge_kind[*e] == FLOW_EDGE_TAIL)
				add_call(c, caller, last);
	}
}

static void make_graph(struct calls *c)
{
	uint32_t root = (uint32_t)c->n;

	for (uint32_t i = 0; i < root; i++) {
		c->leaf[i] = c->functions[i]->flow != NULL;
		find_calls(c, i);
		if (c->outside[i])
			*vec_add(&c->edges) = (struct graph_edge){root, i};
	}
	graph_init(&c->graph, root + 1, c->edges.p, (uint32_t)c->edges.n);
}

/* Breadth first. */
static void find_distances(struct calls *c)
{
	uint32_t *queue = graph_numbers((uint32_t)c->n + 1, 0), begin = 0, end = 0;

	c->distance = graph_numbers((uint32_t)c->n + 1, GRAPH_NONE);
	c->distance[c->n] = 0;
	queue[end++] = (uint32_t)c->n;
	while (begin < end) {
		uint32_t from = queue[begin++];

		graph_each_out (e, &c->graph, from) {
			uint32_t to = c->graph.edge[*e].to;

			if (c->distance[to] != GRAPH_NONE)
				continue;
			c->distance[to] = c->distance[from] + 1;
			queue[end++] = to;
		}
	}
	free(queue);
}

/* Called by one of the same component that is at least as far away from the roots. */
static bool recurses_from_below(
	const struct calls *c, const struct components *parts, uint32_t function)
{
	graph_each_in (e, &c->graph, function) {
		uint32_t from = c->graph.edge[*e].from;

		if (parts->of[from] == parts->of[function] &&
			c->distance[from] >= c->distance[function])
			return true;
	}
	return false;
}

static bool *checked_entries(struct calls *c)
{
	bool *checked = xcalloc(c->n + 1, sizeof *checked);
	struct components parts;

	make_graph(c);
	find_distances(c);
	components_init(&parts, &c->graph, (uint32_t)c->n);
	for (uint32_t i = 0; i < c->n; i++)
		checked[i] = !c->leaf[i] && (c->outside[i] || c->distance[i] == GRAPH_NONE ||
						    recurses_from_below(c, &parts, i));
	components_deinit(&parts);
	return checked;
}

bool *checks_at_entries(struct edit *e, enum checks_entries kind)
{
	struct calls c = {0};
	bool *checked;

	c.n = edit_functions(e, &c.functions);
	c.outside = callers_outside(e);
	c.leaf = xcalloc(c.n + 1, sizeof *c.leaf);
	checked = checked_entries(&c);
	for (size_t i = 0; i < c.n; i++)
		if (kind != CHECKS_CYCLES)
			checked[i] = kind == CHECKS_ALL || (kind == CHECKS_NO_LEAVES && !c.leaf[i]);
	graph_deinit(&c.graph);
	vec_deinit(&c.edges);
	free(c.distance);
	free(c.outside);
	free(c.leaf);
	return checked;
}

/* ---- loops ---- */

static bool ends_in_call(const struct flow *f, uint32_t block)
{
	uint8_t kind = f->insns[f->blocks[block].first + f->blocks[block].count - 1].kind;

	return kind == INSN_CALL || kind == INSN_CALL_INDIRECT;
}

static unsigned references_of(
	const struct edit *e, const struct edit_function *f, uint32_t block, unsigned most)
{
	const struct flow_block *b = &f->flow->blocks[block];
	struct reference list[REFERENCES_MAX];
	unsigned n = 0;

	for (uint32_t i = b->first; i < b->first + b->count && n <= most; i++)
		n += edit_references(e, f, i, list);
	return n;
}

/* By loop, with those inside: whether it has no calls and few references. */
static bool *boring_loops(
	const struct edit *e, const struct edit_function *f, const struct loops *loops, unsigned k)
{
	bool *boring = xcalloc(loops->n + 1, sizeof *boring);
	unsigned *found = xcalloc(loops->n + 1, sizeof *found);

	for (uint32_t b = 0; b < f->flow->nblocks; b++) {
		uint32_t l = loops->of[b];
		unsigned n = l == GRAPH_NONE            ? 0
			     : ends_in_call(f->flow, b) ? k + 1
							: references_of(e, f, b, k);

		for (; l != GRAPH_NONE; l = loops->loop[l].parent)
			found[l] = found[l] + n < found[l] ? UINT32_MAX : found[l] + n;
	}
	for (uint32_t l = 0; l < loops->n; l++)
		boring[l] = found[l] <= k;
	free(found);
	return boring;
}

void checks_loops_init(
	struct checks_loops *c, const struct edit *e, const struct edit_function *f, unsigned k)
{
	const struct flow *flow = f->flow;
	const struct loops *loops = &c->loops;
	bool none = k == CHECKS_NO_LOOPS;
	bool *boring;

	loops_init(&c->loops, &flow->graph, flow->entry_node);
	k = none ? 0 : k;
	boring = boring_loops(e, f, loops, k);
	c->boring = xcalloc(flow->nblocks + 1, sizeof *c->boring);
	c->back = xcalloc(flow->graph.edges + 1, sizeof *c->back);
	for (uint32_t b = 0; b < flow->nblocks; b++)
		c->boring[b] = k && loops->of[b] != GRAPH_NONE && boring[loops->of[b]];
	for (uint32_t i = 0; i < flow->graph.edges; i++)
		c->back[i] = !none && loops->edge[i] & LOOP_BACK && edit_edge_carries(f, i) &&
			     !c->boring[flow->graph.edge[i].to];
	free(boring);
}

void checks_loops_deinit(struct checks_loops *c)
{
	loops_deinit(&c->loops);
	free(c->back);
	free(c->boring);
}
