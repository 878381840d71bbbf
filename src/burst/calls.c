/*
 * The payload of calls and returns: procedures that are entered and left, and calls, each without a
 * word. Calls through pointers enter first copies, whose check leads to the second's first
 * instruction: there it is seen that a procedure is entered. Also with references, so that these
 * have calling contexts (analyze/burst_stacks.h).
 */
#include "burst/burst_internal.h"
#include "burst/payload.h"
#include "edit/edit.h"
#include "isa/decode.h"
#include "store/traces.h"

static void put_event(struct burst *b, struct edit_function *f, uint32_t insn, uint8_t kind)
{
	const struct flow_insn *i = &f->flow->insns[insn];
	bool told = kind == TRACE_CALL && i->kind == INSN_CALL;

	point_put_event(b, f, insn,
		&(struct burst_event){.at = i->address,
			.kind = kind,
			.word = BURST_NO_WORD,
			.by = told ? (int64_t)flow_target(i) : 0});
}

static bool leaves(const struct flow *flow, uint32_t block, const struct flow_insn *last)
{
	if (last->kind == INSN_RETURN)
		return true;
	graph_each_out (e, &flow->graph, block)
		if (flow->edge_kind[*e] == FLOW_EDGE_TAIL && last->kind != INSN_BRANCH)
			return true;
	return false;
}

/* A loop that goes back to the very first instruction does not enter again. */
static bool is_entered_only(const struct flow *flow, uint32_t block)
{
	graph_each_in (e, &flow->graph, block)
		if (flow->edge_kind[*e] != FLOW_EDGE_ENTRY)
			return false;
	return true;
}

static void put_entry(struct burst *b, struct edit_function *twin)
{
	uint32_t entry = flow_block_at(twin->flow, twin->flow->entry);

	if (is_entered_only(twin->flow, entry))
		put_event(b, twin, twin->flow->blocks[entry].first, TRACE_ENTER);
}

static void put_calls(struct burst *b, struct edit_function *twin)
{
	const struct flow *flow = twin->flow;

	for (uint32_t k = 0; k < flow->nblocks; k++) {
		uint32_t last = flow->blocks[k].first + flow->blocks[k].count - 1;
		uint8_t kind = flow->insns[last].kind;

		if (kind == INSN_CALL || kind == INSN_CALL_INDIRECT)
			put_event(b, twin, last, TRACE_CALL);
		else if (leaves(flow, k, &flow->insns[last]))
			put_event(b, twin, last, TRACE_LEAVE);
	}
}

static void put(struct burst *b, struct edit_function *twin, const bool *boring)
{
	(void)boring; /* they have no calls */
	put_entry(b, twin);
	put_calls(b, twin);
}

const struct payload payload_calls = {.name = "calls", .words = "calls and returns", .put = put};

/* What stands before one instruction runs in this order. */
static void put_with_references(struct burst *b, struct edit_function *twin, const bool *boring)
{
	put_entry(b, twin);
	payload_references.put(b, twin, boring);
	put_calls(b, twin);
}

const struct payload payload_references_calls = {
	.name = "refs+calls", .words = "references, calls and returns", .put = put_with_references};
