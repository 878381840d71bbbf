#include "edit/guess.h"

#include "base/mem.h"
#include "edit/edit_internal.h"
#include "flow/loops.h"
#include "isa/form.h"

#include <stdlib.h>

/* Weights against the other edge of a block: fitted to thirty programs (not those of bench/). */
#define TURNS      2.0   /* of a loop that calls somebody, or has others inside */
#define TURNS_FEW  5.0   /* of any other */
#define TURNS_ONE  6.25  /* of one that is a single block */
#define TURNS_EXIT 1.25  /* times that, of one with a single way out */
#define COLD       0.01  /* what surely comes to what is in line for so much is cold */
#define UNSEEN     0.001 /* landing pads and the like */
#define LEAVES     3.4   /* a branch that goes on in the loop, against one that leaves it */
#define LEAVES_END 1.7   /* the same where the loop goes back, and falls out of it */
#define LEAVES_MID 2.3   /* and where it falls out before its end */
#define FALLS      1.55  /* what follows, against a branch forwards: likely code follows */
#define FALLS_BACK 0.85  /* the same against a branch backwards */
#define CALLS      0.53  /* what surely comes to a call, against what does not */
#define BACK       1.95  /* a branch back to where a loop begins */

#define HIGHEST 1e12

struct guessing {
	const struct edit *edit;
	const struct flow *flow;
	const struct procedure *procedure;
	struct graph_walk walk;
	const struct loops *loops;
	double *turns; /* by loop */
	double *edge;
};

static bool is_cold(const struct guessing *g, uint32_t node)
{
	const struct range *hot = &g->procedure->ranges[0];
	const struct flow_block *b = &g->flow->blocks[node];

	if (node >= g->flow->nblocks)
		return false;
	return b->end == FLOW_STOPS || b->end == FLOW_BAD || b->start - hot->start >= hot->size;
}

static bool form_at(const struct guessing *g, uint32_t insn, struct form *out)
{
	const struct flow_insn *i = &g->flow->insns[insn];
	const uint8_t *code = edit_code(g->edit, i->address, i->length);

	return code && !isa_form(code, i->length, i->address, out);
}

/* What the flags of a branch were made by: with zero, with -1, with anything else. Of 8 bytes that
 * are tested, a pointer probably. */
enum compared { WITH_OTHERS, WITH_ZERO, WITH_MINUS, TESTED_POINTER };

static enum compared compared(const struct guessing *g, const struct flow_block *b)
{
	struct form f;

	for (uint32_t i = b->first + b->count - 1; i-- > b->first;) {
		if (!form_at(g, i, &f))
			break;
		if (!f.flags_written)
			continue;
		if (f.op == FORM_TEST)
			return f.to.size == 8 && f.from.type == FORM_REGISTER &&
					       f.to.type == FORM_REGISTER && f.to.reg == f.from.reg
				       ? TESTED_POINTER
				       : WITH_ZERO;
		if (f.op != FORM_COMPARE || f.from.type != FORM_IMMEDIATE)
			break;
		return f.immediate == -1 ? WITH_MINUS : f.immediate ? WITH_OTHERS : WITH_ZERO;
	}
	return WITH_OTHERS;
}

/*
 * How much likelier a branch is taken for what it asks: values that are compared differ, bits that
 * are tested are not set, pointers are; negative numbers, -1, overflow and NaN are rare, and so is
 * what lies above a bound.
 */
#define ALL(w)             \
	{                  \
		w, w, w, w \
	}
static const double asked[16][4] = {
	/* by what it was compared with: others, zero, -1, a pointer with zero */
	[0] = ALL(0.02), /* jo */
	[1] = ALL(50),
	[2] = ALL(1.1), /* jb */
	[3] = ALL(0.85),
	[4] = {0.7, 1.75, 0.55, 0.6}, /* je */
	[5] = {1.4, 0.7, 8, 1.9},
	[6] = ALL(1.9), /* jbe */
	[7] = ALL(0.5),
	[8] = ALL(0.35), /* js */
	[9] = ALL(2.2),
	[10] = ALL(0.02), /* jp */
	[11] = ALL(50),
	[12] = ALL(0.5), /* jl */
	[13] = ALL(0.85),
	[14] = {1.1, 0.75, 0.75, 0.45}, /* jle */
	[15] = {1, 1.5, 1.5, 1.8},
};

static double likely_by_flags(const struct guessing *g, const struct flow_block *b)
{
	struct form f;

	if (!form_at(g, b->first + b->count - 1, &f) || f.condition > 15)
		return 1;
	const double *row = asked[f.condition];
	return row[WITH_OTHERS] == row[WITH_ZERO] ? row[WITH_OTHERS] : row[compared(g, b)];
}

/* Blocks that surely come one behind the other: whether one of the first is cold, or calls. */
#define AHEAD 4

static bool comes_to(const struct guessing *g, uint32_t node, bool call)
{
	const struct graph *graph = &g->flow->graph;

	for (int i = 0; i < AHEAD && node < g->flow->nblocks; i++) {
		if (call ? g->flow->blocks[node].end == FLOW_CALLS : is_cold(g, node))
			return true;
		if (graph_out_degree(graph, node) != 1)
			return false;
		node = graph->edge[graph->out[graph->out_first[node]]].to;
	}
	return false;
}

/* The other edges of a block: whether one goes backwards, or back to the head of a loop. */
static bool has_other(const struct guessing *g, uint32_t edge, bool to_head)
{
	uint32_t from = g->flow->graph.edge[edge].from;

	graph_each_out (other, &g->flow->graph, from) {
		if (*other == edge)
			continue;
		if (to_head ? g->loops->edge[*other] & LOOP_BACK
			    : g->flow->graph.edge[*other].to <= from)
			return true;
	}
	return false;
}

static double likely_in_branch(const struct guessing *g, uint32_t edge)
{
	const struct graph_edge *e = &g->flow->graph.edge[edge];
	bool falls = g->flow->edge_kind[edge] == FLOW_EDGE_FALL;
	double weight = 1;

	if (falls)
		weight *= has_other(g, edge, false) ? FALLS_BACK : FALLS;
	else
		weight *= likely_by_flags(g, &g->flow->blocks[e->from]);
	if (comes_to(g, e->to, true))
		weight *= CALLS;
	if (!falls && g->loops->edge[edge] & LOOP_BACK)
		weight *= BACK;
	return weight;
}

/* Against the other edges of its block. */
static double likely(const struct guessing *g, uint32_t edge)
{
	const struct graph_edge *e = &g->flow->graph.edge[edge];
	enum flow_edge_kind kind = g->flow->edge_kind[edge];
	double weight = 1;

	if (kind == FLOW_EDGE_UNSEEN || kind == FLOW_EDGE_STOP)
		return UNSEEN;
	if (e->from < g->flow->nblocks && g->flow->blocks[e->from].end == FLOW_BRANCHES)
		weight = likely_in_branch(g, edge);
	if (g->loops->edge[edge] & LOOP_LEAVE)
		weight /= kind != FLOW_EDGE_FALL     ? LEAVES
			  : has_other(g, edge, true) ? LEAVES_END
						     : LEAVES_MID;
	if (!is_cold(g, e->from) && comes_to(g, e->to, false))
		weight *= COLD;
	return weight;
}

/* By loop: how often it turns when it is entered. */
static void guess_turns(struct guessing *g)
{
	const struct flow *f = g->flow;
	const struct loops *l = g->loops;

	g->turns = xcalloc(l->n + 1, sizeof *g->turns);
	for (uint32_t i = 0; i < l->n; i++)
		g->turns[i] = l->loop[i].nodes == 1 ? TURNS_ONE : TURNS_FEW;
	for (uint32_t k = 0; k < f->nblocks; k++)
		if (l->of[k] != GRAPH_NONE && f->blocks[k].end == FLOW_CALLS)
			g->turns[l->of[k]] = TURNS;
	for (uint32_t i = 0; i < l->n; i++) {
		if (l->loop[i].parent != GRAPH_NONE)
			g->turns[l->loop[i].parent] = TURNS;
	}
	for (uint32_t i = 0; i < l->n; i++)
		g->turns[i] *= l->loop[i].exits == 1 ? TURNS_EXIT : 1;
}

/* What comes into a node, apart from what goes around in its loop: that is guessed. */
static double inflow(const struct guessing *g, uint32_t node)
{
	double in = 0;
	bool heads = false;

	graph_each_in (e, &g->flow->graph, node) {
		uint32_t from = g->flow->graph.edge[*e].from;

		if (g->walk.post[from] == GRAPH_NONE)
			continue;
		if (g->walk.post[from] > g->walk.post[node])
			in += g->edge[*e];
		heads |= g->loops->edge[*e] & LOOP_BACK;
	}
	in *= heads ? g->turns[g->loops->of[node]] : 1;
	return in < HIGHEST ? in : HIGHEST;
}

static void share_out(struct guessing *g, uint32_t node)
{
	double in = node == g->flow->entry_node ? 1 : inflow(g, node), sum = 0;

	graph_each_out (e, &g->flow->graph, node) {
		g->edge[*e] = likely(g, *e);
		sum += g->edge[*e];
	}
	graph_each_out (e, &g->flow->graph, node)
		g->edge[*e] *= in / sum;
}

double *guess_edges(
	const struct edit *e, const struct edit_function *function, const struct loops *loops)
{
	const struct flow *f = function->flow;
	struct guessing g = {
		.edit = e, .flow = f, .procedure = function->procedure, .loops = loops};

	g.edge = xcalloc(f->graph.edges + 1, sizeof *g.edge);
	graph_walk_init(&g.walk, &f->graph, f->entry_node);
	guess_turns(&g);
	for (uint32_t i = g.walk.reached; i-- > 0;)
		share_out(&g, g.walk.postorder[i]);
	free(g.turns);
	graph_walk_deinit(&g.walk);
	return g.edge;
}
