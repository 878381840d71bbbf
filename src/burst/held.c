#include "burst/held.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "burst/burst_internal.h"
#include "burst/checks.h"
#include "edit/edit.h"
#include "edit/guess.h"
#include "edit/snippet.h"
#include "isa/decode.h"
#include "rt/burst.h"

/* ---- which loops ---- */

/*
 * In cycles, about: from store to load of the thread's counter (measured: five), what a way in or
 * out costs (more than it takes: loops that turn less often than is guessed lose by it), and a
 * call inside; instructions that a core does in a cycle, and that are called.
 */
#define FORWARDING 5.0
#define WAY        1.5
#define CALL       1.5
#define AT_ONCE    4.0
#define CALLED     20.0

struct choosing {
	struct burst *burst;
	struct edit_function *f;
	const struct flow *flow;
	const struct checks_loops *checks;
	const struct loops *loops;
	double *often; /* by edge */
	double *gain;  /* by loop: of what is counted in it, but not in those inside */
	double *most;  /* by loop: the most that can be had with it or with loops inside */
	bool *blocks;  /* by block: it is in the loop that is looked at */
	uint8_t *variable;
};

static bool is_inside(const struct choosing *c, uint32_t node)
{
	return node < c->flow->nblocks && c->blocks[node];
}

static double often_run(const struct choosing *c, uint32_t block)
{
	double sum = 0;

	graph_each_out (e, &c->flow->graph, block)
		sum += c->often[*e];
	return sum;
}

static bool calls(const struct flow *flow, uint32_t block)
{
	return flow->blocks[block].end == FLOW_CALLS;
}

/* What is gained where a turn takes less time than the counter. */
static void find_gains(struct choosing *c)
{
	const struct graph *g = &c->flow->graph;
	double *insns = xcalloc(c->loops->n + 1, sizeof *insns);
	double *checks = xcalloc(c->loops->n + 1, sizeof *checks);

	for (uint32_t k = 0; k < c->flow->nblocks; k++)
		if (c->loops->of[k] != GRAPH_NONE)
			insns[c->loops->of[k]] +=
				often_run(c, k) *
				(c->flow->blocks[k].count + CALLED * calls(c->flow, k));
	for (uint32_t i = 0; i < g->edges; i++)
		if (c->checks->back[i])
			checks[c->loops->of[g->edge[i].to]] += c->often[i];
	for (uint32_t l = 0; l < c->loops->n; l++) {
		double gain = FORWARDING * checks[l] - insns[l] / AT_ONCE;
		c->gain[l] = checks[l] > 0 && gain > 0 ? gain : 0;
	}
	free(insns);
	free(checks);
}

static void look_at(struct choosing *c, uint32_t loop)
{
	for (uint32_t k = 0; k < c->flow->nblocks; k++)
		c->blocks[k] = loops_contain(c->loops, loop, k);
}

/* Code has to be put on all ways in and out, to run then and only then. */
static bool can_be_held(const struct choosing *c)
{
	const struct graph *g = &c->flow->graph;

	for (uint32_t k = 0; k < c->flow->nblocks; k++)
		if (c->blocks[k] && c->flow->blocks[k].marks & (FLOW_ENTERED | FLOW_LEAVES))
			return false;
	for (uint32_t i = 0; i < g->edges; i++) {
		const struct graph_edge *e = &g->edge[i],
					*like = &g->edge[edit_edge_group(c->f, i)];
		bool from = is_inside(c, e->from), to = is_inside(c, e->to);

		if (from != is_inside(c, like->from) || to != is_inside(c, like->to) ||
			(from != to && !edit_edge_carries(c->f, i)))
			return false;
	}
	return true;
}

/* With the loop itself; those inside come behind it. */
static double gain_of(const struct choosing *c, uint32_t loop)
{
	const struct graph *g = &c->flow->graph;
	double gain = 0;

	for (uint32_t l = loop; l < c->loops->n; l++)
		if (tree_contains(&c->loops->tree, loop, l))
			gain += c->gain[l];
	for (uint32_t i = 0; gain > 0 && i < g->edges; i++)
		if (is_inside(c, g->edge[i].from) != is_inside(c, g->edge[i].to))
			gain -= WAY * c->often[i];
	for (uint32_t k = 0; gain > 0 && k < c->flow->nblocks; k++)
		if (c->blocks[k] && calls(c->flow, k))
			gain -= CALL * often_run(c, k);
	return gain;
}

/* A variable that is not in use on any edge around; HELD_END: there is none. */
static unsigned free_variable(const struct choosing *c)
{
	const struct graph *g = &c->flow->graph;
	unsigned taken = 0, v = HELD_FIRST;

	for (uint32_t i = 0; i < g->edges; i++) {
		uint32_t from = g->edge[i].from, to = g->edge[i].to;

		if (is_inside(c, from) && to < c->flow->nblocks)
			taken |= 1u << c->variable[to];
		if (is_inside(c, to) && from < c->flow->nblocks)
			taken |= 1u << c->variable[from];
	}
	while (v < HELD_END && taken >> v & 1)
		v++;
	return v;
}

static bool hold(struct choosing *c)
{
	unsigned v = free_variable(c);
	const char *why;

	if (v == HELD_END || !edit_variable(c->burst->edit, c->f, v, c->blocks, &why))
		return false;
	for (uint32_t k = 0; k < c->flow->nblocks; k++)
		if (c->blocks[k])
			c->variable[k] = (uint8_t)v;
	return true;
}

/* From the inside out: what is gained most by this loop, or by those inside. */
static void find_most(struct choosing *c, double *own)
{
	double *inside = xcalloc(c->loops->n + 1, sizeof *inside);

	for (uint32_t l = c->loops->n; l-- > 0;) {
		uint32_t parent = c->loops->loop[l].parent;

		look_at(c, l);
		own[l] = gain_of(c, l);
		own[l] = own[l] > 0 && can_be_held(c) ? own[l] : 0;
		c->most[l] = own[l] > inside[l] ? own[l] : inside[l];
		if (parent != GRAPH_NONE)
			inside[parent] += c->most[l];
	}
	free(inside);
}

static bool is_held(const struct choosing *c, uint32_t loop)
{
	return c->variable[c->loops->loop[loop].header];
}

/* Outer loops come first; where one cannot be had, those inside are tried. */
static void choose(struct choosing *c)
{
	double *own = xcalloc(c->loops->n + 1, sizeof *own);

	find_most(c, own);
	for (uint32_t l = 0; l < c->loops->n; l++) {
		if (own[l] <= 0 || own[l] < c->most[l] || is_held(c, l))
			continue;
		look_at(c, l);
		hold(c);
	}
	free(own);
}

static bool has_checks(const struct flow *flow, const struct checks_loops *loops)
{
	for (uint32_t i = 0; i < flow->graph.edges; i++)
		if (loops->back[i])
			return true;
	return false;
}

void held_init(
	struct held *h, struct burst *b, struct edit_function *f, const struct checks_loops *loops)
{
	const struct flow *flow = f->flow;
	struct choosing c = {.burst = b,
		.f = f,
		.flow = flow,
		.checks = loops,
		.loops = &loops->loops,
		.variable = h->variable = xcalloc(flow->nblocks + 1, sizeof *h->variable)};

	if (!has_checks(flow, loops))
		return;
	c.often = guess_edges(b->edit, f, c.loops);
	c.gain = xcalloc(c.loops->n + 1, sizeof *c.gain);
	c.most = xcalloc(c.loops->n + 1, sizeof *c.most);
	c.blocks = xcalloc(flow->nblocks + 1, sizeof *c.blocks);
	find_gains(&c);
	choose(&c);
	free(c.often);
	free(c.gain);
	free(c.most);
	free(c.blocks);
}

void held_deinit(struct held *h)
{
	free(h->variable);
}

/* ---- what is put there ---- */

static unsigned variable_of(const struct held *h, const struct flow *flow, uint32_t node)
{
	return node < flow->nblocks ? h->variable[node] : 0;
}

unsigned held_on_edge(const struct held *h, const struct edit_function *f, uint32_t edge)
{
	const struct graph_edge *e = &f->flow->graph.edge[edge];
	unsigned from = variable_of(h, f->flow, e->from);

	return from == variable_of(h, f->flow, e->to) ? from : 0;
}

/* Around a call the thread's counter is right, so it is when the loop is left there. */
void held_put_before(const struct held *h, struct burst *b, struct edit_function *f)
{
	const struct flow *flow = f->flow;

	for (uint32_t k = 0; k < flow->nblocks; k++)
		if (h->variable[k] && calls(flow, k))
			edit_before(b->edit, f, flow->blocks[k].first + flow->blocks[k].count - 1,
				b->held[h->variable[k]].end, NULL);
	for (uint32_t i = 0; i < flow->graph.edges; i++) {
		const struct graph_edge *e = &flow->graph.edge[i];
		unsigned from = variable_of(h, flow, e->from), to = variable_of(h, flow, e->to);

		if (!from || edit_edge_group(f, i) != i)
			continue;
		if (from == to && calls(flow, e->from))
			edit_on_edge(b->edit, f, i, b->held[from].begin, NULL);
		if (from != to && !calls(flow, e->from))
			edit_on_edge(b->edit, f, i, b->held[from].end, NULL);
	}
}

void held_put_behind(const struct held *h, struct burst *b, struct edit_function *f)
{
	const struct flow *flow = f->flow;

	for (uint32_t i = 0; i < flow->graph.edges; i++) {
		const struct graph_edge *e = &flow->graph.edge[i];
		unsigned from = variable_of(h, flow, e->from), to = variable_of(h, flow, e->to);

		if (to && from != to && edit_edge_group(f, i) == i)
			edit_on_edge(b->edit, f, i, b->held[to].begin, NULL);
	}
}

/* ---- code ---- */

_Static_assert(BURST_CHECK == 512 && BURST_INSTR == 520, "as the snippets have it");

/*
 * The counter only goes down: where it is less than the variable, a signal handler has counted, or
 * has left a burst under way. Whoever goes over needs no more than a counter below zero.
 */
static const char *const texts[] = {
	"v%u = tls[512]",
	"t0 = v%u; if tls[512] < t0 goto keep; tls[512] = t0; keep:",
	"v%u -= 1; if v%u < 0 goto over; apart; over: tls[512] = -1; goto a0",
	"v%u -= 1; if v%u < 0 goto over; apart; over: tls[512] = -1; v0 = a1; goto a0",
	"tls[520] -= 1; if tls[520] >= 0 goto stay; t0 = call a0(0); if t0 == 0 goto stay; "
	"t0 = tls[512]; v%u = t0; goto a1; stay:",
};

int held_snippets_create(struct held_snippets *s, struct err *e)
{
	char text[160];

	for (unsigned v = HELD_FIRST; v < HELD_END; v++) {
		struct snippet **list[] = {
			&s[v].begin, &s[v].end, &s[v].leave, &s[v].lead, &s[v].turn};

		for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
			int rc;

			snprintf(text, sizeof text, texts[i], v, v);
			rc = snippet_create(text, list[i], e);
			if (rc)
				return rc;
		}
	}
	return 0;
}

void held_snippets_destroy(struct held_snippets *s)
{
	for (unsigned v = HELD_FIRST; v < HELD_END; v++) {
		snippet_destroy(s[v].begin);
		snippet_destroy(s[v].end);
		snippet_destroy(s[v].leave);
		snippet_destroy(s[v].lead);
		snippet_destroy(s[v].turn);
	}
}
