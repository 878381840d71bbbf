#include "analyze/frequency_internal.h"

#include "base/mem.h"
#include "base/vec.h"
#include "isa/decode.h"

#include <stdlib.h>
#include <string.h>

enum { TARGETS_FEW = 8 }; /* of a table: always all of them are in the graph */

/* The graph while it is made. */
struct tracing {
	const struct evidence *ev;
	const struct flow *f;
	VEC(struct graph_edge) edges;
	VEC(uint32_t) numbers;
	VEC(uint32_t) ways;
	VEC(double) outcomes;
	bool *alive;     /* by node: samples or outcomes show that it ran */
	bool *kept;      /* by edge of the flow */
	bool *reached;   /* by node, from the entry over kept edges and those only seen */
	uint32_t *stack; /* of the walk */
};

/* A transfer to a block that the graph has no edge to. */
struct seen {
	uint32_t from, to;
	uint32_t way;
};
typedef VEC(struct seen) seen_list;

static void find_seen(const struct evidence *ev, seen_list *out)
{
	const struct flow *f = ev->flow;

	for (size_t i = 0; i < ev->nways; i++) {
		const struct evidence_way *w = &ev->ways[i];
		uint32_t from, to;

		if (w->target || f->insns[w->insn].kind != INSN_JUMP_INDIRECT)
			continue;
		evidence_insn_at(f, f->insns[w->insn].address, &from);
		to = flow_block_at(f, w->to);
		if (to != GRAPH_NONE && f->blocks[to].start == w->to)
			*vec_add(out) = (struct seen){from, to, (uint32_t)i};
	}
}

static bool is_taken(const struct evidence *ev, uint32_t edge)
{
	return ev->edges[edge] || (ev->passed && ev->passed[edge]) ||
	       (ev->counts && ev->counts->edge[edge] > 0);
}

static void mark_alive(struct tracing *t, const seen_list *seen)
{
	const struct flow *f = t->f;

	for (uint32_t b = 0; b < f->nblocks; b++)
		for (uint32_t i = 0; i < f->blocks[b].count; i++)
			t->alive[b] |= t->ev->samples[f->blocks[b].first + i] > 0;
	for (uint32_t e = 0; e < f->graph.edges; e++)
		if (is_taken(t->ev, e)) {
			t->alive[f->graph.edge[e].from] = true;
			t->alive[f->graph.edge[e].to] = true;
		}
	vec_each (s, seen)
		t->alive[s->from] = t->alive[s->to] = true;
}

/*
 * Whether a jump through a table goes to fewer places than it could, as far as anybody knows. An
 * interpreter of byte code has hundreds of jumps to hundreds of targets each: a graph that nobody
 * can solve. Where such a jump was followed, or never ran, what was not taken is left out.
 */
static bool is_narrowed(const struct tracing *t, uint32_t node)
{
	bool taken = false;

	if (node >= t->f->nblocks || t->f->blocks[node].end != FLOW_TABLE ||
		graph_out_degree(&t->f->graph, node) <= TARGETS_FEW)
		return false;
	graph_each_out (it, &t->f->graph, node)
		taken |= is_taken(t->ev, *it);
	return taken || !t->alive[node];
}

/* What is certain to be there stays, and what was taken. */
static void keep_shown(struct tracing *t)
{
	const struct graph *g = &t->f->graph;

	for (uint32_t n = 0; n < g->nodes; n++) {
		bool narrowed = is_narrowed(t, n);

		graph_each_out (it, g, n) {
			uint8_t kind = t->f->edge_kind[*it];

			t->kept[*it] = is_taken(t->ev, *it) ||
				       (kind != FLOW_EDGE_UNSEEN &&
					       !(narrowed && kind == FLOW_EDGE_TABLE));
		}
	}
}

/* A block that nothing else leaves is left in the way that is not seen, or by one of its table. */
static void keep_ways_out(struct tracing *t, const seen_list *seen)
{
	const struct graph *g = &t->f->graph;
	bool *leaves = xcalloc(g->nodes, sizeof *leaves);

	vec_each (s, seen)
		leaves[s->from] = true;
	for (uint32_t e = 0; e < g->edges; e++)
		if (t->kept[e])
			leaves[g->edge[e].from] = true;
	for (uint32_t e = 0; e < g->edges; e++)
		if (g->edge[e].to == t->f->exit_node && !leaves[g->edge[e].from])
			t->kept[e] = leaves[g->edge[e].from] = true;
	for (uint32_t e = 0; e < g->edges; e++)
		if (t->f->edge_kind[e] == FLOW_EDGE_TABLE && !leaves[g->edge[e].from])
			t->kept[e] = leaves[g->edge[e].from] = true;
	free(leaves);
}

static void reach(struct tracing *t, uint32_t from, const seen_list *seen)
{
	const struct graph *g = &t->f->graph;
	uint32_t n = 0;

	if (t->reached[from])
		return;
	t->reached[from] = true;
	t->stack[n++] = from;
	while (n) {
		uint32_t node = t->stack[--n];

		graph_each_out (it, g, node)
			if (t->kept[*it] && !t->reached[g->edge[*it].to]) {
				t->reached[g->edge[*it].to] = true;
				t->stack[n++] = g->edge[*it].to;
			}
		vec_each (s, seen)
			if (s->from == node && !t->reached[s->to]) {
				t->reached[s->to] = true;
				t->stack[n++] = s->to;
			}
	}
}

/* Targets of tables that ran although no jump to them was followed: from jumps that ran, or from
 * any that is reached. True when there were some. */
static bool keep_targets(struct tracing *t, const seen_list *seen, bool from_any)
{
	const struct graph *g = &t->f->graph;
	bool found = false;

	for (uint32_t e = 0; e < g->edges; e++) {
		uint32_t from = g->edge[e].from, to = g->edge[e].to;

		if (t->f->edge_kind[e] != FLOW_EDGE_TABLE || !t->alive[to] || t->reached[to] ||
			!t->reached[from] || !(t->alive[from] || from_any))
			continue;
		t->kept[e] = found = true;
		reach(t, to, seen);
		if (from_any)
			break;
	}
	return found;
}

/* What ran is entered somehow: where nothing leads to it, in the way that is not seen. */
static void keep_ways_in(struct tracing *t, const seen_list *seen)
{
	const struct graph *g = &t->f->graph;

	reach(t, t->f->entry_node, seen);
	while (keep_targets(t, seen, false) || keep_targets(t, seen, true))
		;
	graph_each_out (it, g, t->f->entry_node) {
		uint32_t to = g->edge[*it].to;

		if (t->kept[*it] || !t->alive[to] || t->reached[to])
			continue;
		t->kept[*it] = true;
		reach(t, to, seen);
	}
}

/* Nodes from which the exit can be reached, over kept edges and those only seen. */
static void mark_ending(const struct tracing *t, const seen_list *seen, bool *ends)
{
	const struct graph *g = &t->f->graph;
	bool more = true;

	ends[t->f->exit_node] = true;
	while (more) {
		more = false;
		for (uint32_t e = g->edges; e-- > 0;)
			if (t->kept[e] && ends[g->edge[e].to] && !ends[g->edge[e].from])
				more = ends[g->edge[e].from] = true;
		vec_each (s, seen)
			if (ends[s->to] && !ends[s->from])
				more = ends[s->from] = true;
	}
}

/* Loops that end in a way that was left out would be endless. */
static void keep_ends(struct tracing *t, const seen_list *seen)
{
	const struct graph *g = &t->f->graph;
	bool *ends = xcalloc(g->nodes, sizeof *ends), more = true;

	while (more) {
		more = false;
		mark_ending(t, seen, ends);
		for (uint32_t e = 0; e < g->edges; e++)
			if (!t->kept[e] && t->f->edge_kind[e] == FLOW_EDGE_TABLE &&
				t->reached[g->edge[e].from] && !ends[g->edge[e].from] &&
				ends[g->edge[e].to])
				t->kept[e] = ends[g->edge[e].from] = more = true;
	}
	free(ends);
}

static void add(
	struct tracing *t, struct graph_edge edge, uint32_t number, uint32_t way, double outcome)
{
	*vec_add(&t->edges) = edge;
	*vec_add(&t->numbers) = number;
	*vec_add(&t->ways) = way;
	*vec_add(&t->outcomes) = outcome;
}

static void collect(struct tracing *t, const seen_list *seen)
{
	const struct graph *g = &t->f->graph;

	for (uint32_t e = 0; e < g->edges; e++)
		if (t->kept[e])
			add(t, g->edge[e], e, GRAPH_NONE,
				t->ev->outcomes ? t->ev->outcomes[e] : (double)t->ev->edges[e]);
	vec_each (s, seen)
		add(t, (struct graph_edge){s->from, s->to}, GRAPH_NONE, s->way,
			(double)t->ev->ways[s->way].count);
}

void traced_init(struct traced *out, const struct evidence *ev)
{
	struct tracing t = {.ev = ev, .f = ev->flow};
	uint32_t nodes = ev->flow->graph.nodes;
	seen_list seen = {0};

	t.alive = xcalloc(nodes, sizeof *t.alive);
	t.reached = xcalloc(nodes, sizeof *t.reached);
	t.stack = xcalloc(nodes, sizeof *t.stack);
	t.kept = xcalloc(ev->flow->graph.edges + 1, sizeof *t.kept);
	find_seen(ev, &seen);
	mark_alive(&t, &seen);
	keep_shown(&t);
	keep_ways_out(&t, &seen);
	keep_ways_in(&t, &seen);
	keep_ends(&t, &seen);
	collect(&t, &seen);
	graph_init(&out->graph, nodes, t.edges.p, (uint32_t)t.edges.n);
	out->edge = t.numbers.p;
	out->way = t.ways.p;
	out->outcome = t.outcomes.p;
	vec_deinit(&t.edges);
	vec_deinit(&seen);
	free(t.alive);
	free(t.reached);
	free(t.stack);
	free(t.kept);
}

void traced_deinit(struct traced *t)
{
	graph_deinit(&t->graph);
	free(t->edge);
	free(t->way);
	free(t->outcome);
}
