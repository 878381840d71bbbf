#include "flow/callgraph.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/vec.h"
#include "isa/decode.h"

/*
 * What is kept of every flow until it is settled who returns: its blocks with the edges among them,
 * the procedures that they call, and how they leave.
 */
struct outline_block {
	uint32_t procedure;
	uint32_t first;   /* edge; the next block's are behind them */
	uint32_t callee;  /* a call that must come back for the edges to be taken, GRAPH_NONE */
	uint32_t tail;    /* a procedure that it jumps to, GRAPH_NONE */
	uint32_t waiting; /* the next one that waits for the same procedure to return */
	bool leaves;      /* it may return from here, for all that is known */
	bool entered;     /* where the procedure begins, or may be entered unseen */
	bool reached;
};

struct maker {
	struct program *program;
	const struct procedure *procedures;
	uint32_t n;
	struct callgraph *out;
	VEC(struct outline_block) blocks; /* of all procedures */
	VEC(uint32_t) edges;              /* to blocks */
	VEC(struct graph_edge) calls;
	VEC(uint8_t) kinds;
	VEC(uint64_t) sites;
	VEC(uint32_t) stack;    /* blocks to look at */
	VEC(uint32_t) returned; /* procedures, since somebody looked */
	uint32_t *waiting;      /* by procedure: the first block that waits for it */
	bool *returns;          /* by procedure */
};

/* ---- outlines ---- */

static uint32_t procedure_at(const struct maker *m, uint64_t address)
{
	uint32_t low = 0, high = m->n;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (m->procedures[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || address - m->procedures[low - 1].start >= m->procedures[low - 1].ranges[0].size)
		return GRAPH_NONE;
	return low - 1;
}

static uint32_t note_call(
	struct maker *m, uint32_t from, const struct flow_insn *i, enum callgraph_kind kind)
{
	uint64_t target = flow_target(i);
	uint32_t to = procedure_at(m, target);

	if (to == GRAPH_NONE)
		return to;
	bool whole = m->procedures[to].start == target;
	*vec_add(&m->calls) = (struct graph_edge){from, to};
	*vec_add(&m->kinds) = (uint8_t)(whole ? kind : CALLGRAPH_MIDDLE);
	*vec_add(&m->sites) = i->address;
	return whole ? to : GRAPH_NONE;
}

static struct outline_block *add_block(struct maker *m, uint32_t procedure)
{
	struct outline_block *b = vec_add(&m->blocks);

	*b = (struct outline_block){.procedure = procedure,
		.first = (uint32_t)m->edges.n,
		.callee = GRAPH_NONE,
		.tail = GRAPH_NONE,
		.waiting = GRAPH_NONE};
	return b;
}

/* Of a block's edges: those to blocks are kept, the others say how it leaves. */
static void outline_edges(struct maker *m, const struct flow *f, uint32_t k, uint32_t procedure)
{
	uint32_t base = (uint32_t)m->blocks.n - 1 - k;
	const struct flow_insn *last = &f->insns[f->blocks[k].first + f->blocks[k].count - 1];
	struct outline_block *b = &m->blocks.p[m->blocks.n - 1];

	graph_each_out (e, &f->graph, k) {
		uint8_t kind = f->edge_kind[*e];
		if (f->graph.edge[*e].to < f->nblocks)
			*vec_add(&m->edges) = base + f->graph.edge[*e].to;
		else if (kind == FLOW_EDGE_RETURN || kind == FLOW_EDGE_UNSEEN)
			b->leaves = true;
		else if (kind == FLOW_EDGE_TAIL && f->blocks[k].end == FLOW_TAIL_INDIRECT)
			b->leaves = true;
		else if (kind == FLOW_EDGE_TAIL)
			b->tail = note_call(m, procedure, last, CALLGRAPH_TAIL);
		if (kind == FLOW_EDGE_TAIL && b->tail == GRAPH_NONE)
			b->leaves = true;
	}
}

static void outline_block(struct maker *m, const struct flow *f, uint32_t k, uint32_t procedure)
{
	const struct flow_block *block = &f->blocks[k];
	const struct flow_insn *last = &f->insns[block->first + block->count - 1];
	uint8_t *marks = &m->out->marks[procedure];

	add_block(m, procedure);
	if (block->marks & FLOW_PADDING)
		return;
	if (last->kind == INSN_CALL && last->end != FLOW_BAD)
		m->blocks.p[m->blocks.n - 1].callee = note_call(m, procedure, last, CALLGRAPH_CALL);
	if (last->kind == INSN_CALL_INDIRECT && last->end != FLOW_BAD)
		*marks |= CALLGRAPH_INDIRECT;
	if (block->end == FLOW_TAIL_INDIRECT)
		*marks |= CALLGRAPH_INDIRECT_TAIL;
	outline_edges(m, f, k, procedure);
}

static void outline_flow(struct maker *m, const struct flow *f, uint32_t procedure)
{
	uint32_t base = (uint32_t)m->blocks.n;
	if (f->flags & FLOW_HAS_UNSEEN)
		m->out->marks[procedure] |= CALLGRAPH_UNSEEN;
	for (uint32_t k = 0; k < f->nblocks; k++)
		outline_block(m, f, k, procedure);
	graph_each_out (e, &f->graph, f->entry_node)
		m->blocks.p[base + f->graph.edge[*e].to].entered = true;
	m->out->insns += f->ninsns;
	m->out->blocks += f->nblocks;
}

static void outline_unknown(struct maker *m, uint32_t procedure)
{
	struct outline_block *b = add_block(m, procedure);

	b->leaves = b->entered = true;
	m->out->marks[procedure] |= CALLGRAPH_UNSEEN;
}

static void outline(struct maker *m, uint32_t procedure)
{
	struct flow *f;

	if (program_flow(m->program, &m->procedures[procedure], &f, NULL)) {
		outline_unknown(m, procedure);
		return;
	}
	outline_flow(m, f, procedure);
	flow_destroy(f);
}

/* ---- who returns ---- */

static void reach(struct maker *m, uint32_t block)
{
	if (m->blocks.p[block].reached)
		return;
	m->blocks.p[block].reached = true;
	*vec_add(&m->stack) = block;
}

static void set_returns(struct maker *m, uint32_t procedure)
{
	if (m->returns[procedure] || m->out->marks[procedure] & CALLGRAPH_NORETURN)
		return;
	m->returns[procedure] = true;
	*vec_add(&m->returned) = procedure;
}

/* The block goes on when the procedure is known to return. */
static void wait_for(struct maker *m, uint32_t block, uint32_t procedure)
{
	m->blocks.p[block].waiting = m->waiting[procedure];
	m->waiting[procedure] = block;
}

static void go_on(struct maker *m, uint32_t block)
{
	const struct outline_block *b = &m->blocks.p[block];

	if (b->leaves)
		set_returns(m, b->procedure);
	for (uint32_t e = b[0].first; e < b[1].first; e++)
		reach(m, m->edges.p[e]);
}

static void look_at(struct maker *m, uint32_t block)
{
	const struct outline_block *b = &m->blocks.p[block];
	uint32_t awaited = b->callee != GRAPH_NONE ? b->callee : b->tail;

	if (b->callee == GRAPH_NONE || m->returns[b->callee])
		go_on(m, block);
	if (awaited == GRAPH_NONE)
		return;
	if (!m->returns[awaited])
		wait_for(m, block, awaited);
	else if (awaited == b->tail)
		set_returns(m, b->procedure);
}

static void wake(struct maker *m, uint32_t procedure)
{
	for (uint32_t k = m->waiting[procedure]; k != GRAPH_NONE; k = m->blocks.p[k].waiting) {
		if (m->blocks.p[k].callee == GRAPH_NONE)
			set_returns(m, m->blocks.p[k].procedure);
		else
			go_on(m, k);
	}
}

/*
 * Starts from nobody returning, so that procedures which only call each other do not. Every block
 * is looked at once: one that calls waits until what it calls is known to return.
 */
static void settle_returns(struct maker *m)
{
	m->returns = xcalloc(m->n + 1, sizeof *m->returns);
	m->waiting = xmalloc((m->n + 1) * sizeof *m->waiting);
	for (uint32_t i = 0; i < m->n; i++) {
		m->waiting[i] = GRAPH_NONE;
		if (!program_returns(m->program, m->procedures[i].start))
			m->out->marks[i] |= CALLGRAPH_NORETURN;
	}
	for (uint32_t k = 0; k + 1 < m->blocks.n; k++)
		if (m->blocks.p[k].entered)
			reach(m, k);
	while (m->stack.n || m->returned.n) {
		if (m->stack.n)
			look_at(m, m->stack.p[--m->stack.n]);
		else
			wake(m, m->returned.p[--m->returned.n]);
	}
	for (uint32_t i = 0; i < m->n; i++) {
		if (m->returns[i])
			continue;
		m->out->marks[i] |= CALLGRAPH_NORETURN;
		program_note_noreturn(m->program, m->procedures[i].start);
	}
}

/* ---- life ---- */

static void maker_deinit(struct maker *m)
{
	vec_deinit(&m->blocks);
	vec_deinit(&m->edges);
	vec_deinit(&m->calls);
	vec_deinit(&m->stack);
	vec_deinit(&m->returned);
	free(m->waiting);
	free(m->returns);
}

void callgraph_create(struct program *p, struct flow *const *flows, struct callgraph **out)
{
	_cleanup_(maker_deinit) struct maker m = {.program = p, .out = xcalloc(1, sizeof *m.out)};

	m.n = (uint32_t)image_procedures(program_image(p), &m.procedures);
	m.out->marks = xcalloc(m.n + 1, 1);
	for (uint32_t i = 0; i < m.n; i++)
		if (!flows)
			outline(&m, i);
		else if (flows[i])
			outline_flow(&m, flows[i], i);
		else
			outline_unknown(&m, i);

	add_block(&m, m.n); /* ends the edges of the last one */
	graph_init(&m.out->graph, m.n, m.calls.p, (uint32_t)m.calls.n);
	m.out->edge_kind = m.kinds.p;
	m.out->site = m.sites.p;
	settle_returns(&m);
	*out = m.out;
}

void callgraph_destroy(struct callgraph *c)
{
	if (!c)
		return;
	graph_deinit(&c->graph);
	free(c->edge_kind);
	free(c->site);
	free(c->marks);
	free(c);
}
