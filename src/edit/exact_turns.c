#include "edit/exact_turns.h"

#include "base/mem.h"
#include "edit/edit_internal.h"
#include "flow/liveness.h"
#include "isa/form.h"

#include <stdlib.h>
#include <string.h>

/* ---- loops ---- */

static bool calls_in(const struct flow *flow, uint32_t block)
{
	const struct flow_block *b = &flow->blocks[block];
	const struct flow_insn *last = &flow->insns[b->first + b->count - 1];

	return b->end != FLOW_STOPS &&
	       (last->kind == INSN_CALL || last->kind == INSN_CALL_INDIRECT);
}

bool exact_way_next(struct exact_way *w, const struct exact_alone *a, const struct exact_loop *l)
{
	const struct graph *g = &a->flow->graph;

	for (; w->at < l->n; w->at++, w->of = 0) {
		uint32_t block = l->blocks[w->at], in = graph_in_degree(g, block);

		while (w->of < in + graph_out_degree(g, block)) {
			uint32_t i = w->of++;

			w->in = i < in;
			w->edge = w->in ? g->in[g->in_first[block] + i]
					: g->out[g->out_first[block] + i - in];
			uint32_t other = w->in ? g->edge[w->edge].from : g->edge[w->edge].to;
			if (a->loops->of[other] != l->number)
				return true;
		}
	}
	return false;
}

static bool is_alone(
	const struct exact_alone *a, const struct edit_function *f, const struct exact_loop *l)
{
	for (uint32_t i = 0; i < l->n; i++)
		if (calls_in(a->flow, l->blocks[i]))
			return false;
	exact_each_way(w, a, l)
	{
		bool shared = a->flow->edge_kind[w.edge] == FLOW_EDGE_TABLE && a->flow->njumps > 1;
		if (shared || !edit_edge_carries(f, w.edge))
			return false;
	}
	return true;
}

/* By loop: how many blocks it has, 0 where there are loops inside. */
static uint32_t *count_blocks(const struct flow *flow, const struct loops *l)
{
	uint32_t *n = graph_numbers(l->n, 0);

	for (uint32_t k = 0; k < flow->nblocks; k++)
		if (l->of[k] != GRAPH_NONE)
			n[l->of[k]]++;
	for (uint32_t i = 0; i < l->n; i++)
		if (l->loop[i].parent != GRAPH_NONE)
			n[l->loop[i].parent] = 0;
	return n;
}

void exact_alone_find(
	struct exact_alone *a, const struct edit_function *f, const struct loops *loops)
{
	const struct flow *flow = f->flow;
	uint32_t *n = count_blocks(flow, loops), *at = graph_numbers(loops->n, 0), sum = 0;

	*a = (struct exact_alone){
		.flow = flow, .loops = loops, .blocks = graph_numbers(flow->nblocks, 0)};
	for (uint32_t i = 0; i < loops->n; sum += n[i++])
		at[i] = sum;
	for (uint32_t k = 0; k < flow->nblocks; k++)
		if (loops->of[k] != GRAPH_NONE && n[loops->of[k]])
			a->blocks[at[loops->of[k]]++] = k;
	for (uint32_t i = 0; i < loops->n; i++) {
		struct exact_loop l = {i, n[i], a->blocks + at[i] - n[i]};
		if (n[i] && is_alone(a, f, &l))
			*vec_add(&a->list) = l;
	}
	free(n);
	free(at);
}

void exact_alone_deinit(struct exact_alone *a)
{
	vec_deinit(&a->list);
	free(a->blocks);
}

/* ---- registers ---- */

/* What has to be kept of the flags would be kept in rax. */
static bool needs_flags_around(struct edit *e, struct edit_function *f, const struct exact_alone *a,
	const struct exact_loop *l)
{
	exact_each_way(w, a, l)
	{
		uint32_t to = a->flow->graph.edge[w.edge].to;
		if (to >= a->flow->nblocks ||
			liveness_in(edit_liveness(e, f), to) & LIVE_FLAGS(FORM_FLAGS))
			return true;
	}
	return false;
}

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

static void find_in(struct edit *e, struct edit_function *f, const struct exact_alone *a,
	const struct exact_loop *l, const double *often, exact_turns *out)
{
	struct registers r = {0};
	double around = 0;

	for (uint32_t k = 0; k < l->n; k++)
		if (!read_block(e, a->flow, l->blocks[k], &r))
			return;
	exact_each_way(w, a, l) around += often[w.edge];
	for (uint8_t reg = 0; reg < 16; reg++) {
		struct exact_turn *t = &r.turn[reg];
		double times = t->step ? often_run(a->flow, often, t->block) : 0;
		if (reg == REG_RSP || !(r.written & ~r.twice & 1u << reg) || times <= around ||
			has_turn(out, t->block) ||
			(reg == REG_RAX && needs_flags_around(e, f, a, l)))
			continue;
		t->price = around / times;
		*vec_add(out) = *t;
	}
}

void exact_find_turns(struct edit *e, struct edit_function *f, const struct exact_alone *a,
	const double *often, exact_turns *out)
{
	vec_each (l, &a->list)
		find_in(e, f, a, l, often, out);
}
