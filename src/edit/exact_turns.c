#include "edit/exact_turns.h"

#include "base/mem.h"
#include "edit/edit_internal.h"
#include "isa/form.h"

#include <stdlib.h>
#include <string.h>

/* ---- loops ---- */

static bool has_inner(const struct loops *l, uint32_t loop)
{
	for (uint32_t i = loop + 1; i < l->n; i++)
		if (l->loop[i].parent == loop)
			return true;
	return false;
}

static bool calls_in(const struct flow *flow, uint32_t block)
{
	const struct flow_block *b = &flow->blocks[block];
	const struct flow_insn *last = &flow->insns[b->first + b->count - 1];

	return b->end != FLOW_STOPS &&
	       (last->kind == INSN_CALL || last->kind == INSN_CALL_INDIRECT);
}

static bool is_inside(const struct flow *flow, const bool *blocks, uint32_t node)
{
	return node < flow->nblocks && blocks[node];
}

static bool crosses(const struct flow *flow, const bool *blocks, uint32_t edge)
{
	const struct graph_edge *e = &flow->graph.edge[edge];

	return is_inside(flow, blocks, e->from) != is_inside(flow, blocks, e->to);
}

bool exact_turns_alone(
	const struct edit_function *f, const struct loops *l, uint32_t loop, bool *blocks)
{
	const struct flow *flow = f->flow;

	if (has_inner(l, loop))
		return false;
	for (uint32_t k = 0; k < flow->nblocks; k++) {
		blocks[k] = loops_contain(l, loop, k);
		if (blocks[k] && calls_in(flow, k))
			return false;
	}
	for (uint32_t i = 0; i < flow->graph.edges; i++) {
		bool shared = flow->edge_kind[i] == FLOW_EDGE_TABLE && flow->njumps > 1;
		if (crosses(flow, blocks, i) && (shared || !edit_edge_carries(f, i)))
			return false;
	}
	return true;
}

/* ---- registers ---- */

/* Those that variables can be (snippet.h). */
#define CANDIDATES (REGS_ALL & ~(1u << REG_RAX | 1u << REG_RSP | 1u << REG_RBP))

/* What an instruction adds to a register; 0: it does something else. */
static int32_t step_of(const struct form *f, uint8_t reg)
{
	int64_t by = 0;

	if (f->to.type != FORM_REGISTER || f->to.reg != reg || f->to.size != 8)
		return 0;
	if (f->op == FORM_ADDRESS)
		by = f->base == reg && f->index == REG_NONE && !f->other_space
			     ? (int64_t)f->displacement
			     : 0;
	else if (f->from.type == FORM_IMMEDIATE && f->op == FORM_ADD)
		by = f->immediate;
	else if (f->from.type == FORM_IMMEDIATE && f->op == FORM_SUBTRACT)
		by = -f->immediate;
	return by == (int32_t)by ? (int32_t)by : 0;
}

/* What is known of the registers of a loop. */
struct registers {
	uint16_t written, twice;
	struct exact_turn turn[16]; /* by register: what its first write does; step 0: no sum */
};

static bool read_block(struct edit *e, const struct flow *flow, uint32_t k, struct registers *r)
{
	const struct flow_block *b = &flow->blocks[k];

	for (uint32_t i = b->first; i < b->first + b->count; i++) {
		const struct flow_insn *insn = &flow->insns[i];
		const uint8_t *code = edit_code(e, insn->address, insn->length);
		struct form f;
		if (!code || isa_form(code, insn->length, insn->address, &f))
			return false;
		r->twice |= r->written & f.writes;
		for (uint8_t reg = 0; reg < 16; reg++)
			if (f.writes & ~r->written & 1u << reg)
				r->turn[reg] = (struct exact_turn){
					.block = k, .step = step_of(&f, reg), .reg = reg};
		r->written |= f.writes;
	}
	return true;
}

static double often_run(const struct flow *flow, const double *often, uint32_t block)
{
	double sum = 0;

	graph_each_out (edge, &flow->graph, block)
		sum += often[*edge];
	return sum;
}

static bool has_turn(const exact_turns *list, uint32_t block)
{
	vec_each (t, list)
		if (t->block == block)
			return true;
	return false;
}

static void find_in(struct edit *e, const struct flow *flow, const bool *blocks,
	const double *often, exact_turns *out)
{
	struct registers r = {0};
	double around = 0;

	for (uint32_t k = 0; k < flow->nblocks; k++)
		if (blocks[k] && !read_block(e, flow, k, &r))
			return;
	for (uint32_t i = 0; i < flow->graph.edges; i++)
		around += crosses(flow, blocks, i) ? often[i] : 0;
	for (uint8_t reg = 0; reg < 16; reg++) {
		struct exact_turn *t = &r.turn[reg];
		double times = t->step ? often_run(flow, often, t->block) : 0;
		if (!(CANDIDATES & r.written & ~r.twice & 1u << reg) || times <= around ||
			has_turn(out, t->block))
			continue;
		t->price = around / times;
		*vec_add(out) = *t;
	}
}

void exact_find_turns(
	struct edit *e, const struct edit_function *f, const double *often, exact_turns *out)
{
	bool *blocks = xcalloc(f->flow->nblocks + 1, sizeof *blocks);
	struct loops loops;

	loops_init(&loops, &f->flow->graph, f->flow->entry_node);
	for (uint32_t i = 0; i < loops.n; i++)
		if (exact_turns_alone(f, &loops, i, blocks))
			find_in(e, f->flow, blocks, often, out);
	loops_deinit(&loops);
	free(blocks);
}
