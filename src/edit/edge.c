#include "edit/edit_internal.h"

bool edge_falls(const struct flow_block *b)
{
	return (b->end == FLOW_FALLS || b->end == FLOW_CALLS || b->end == FLOW_BRANCHES ||
		       b->end == FLOW_TRAPS) &&
	       !(b->marks & FLOW_PADDING);
}

/* Whether there is no way into the block but this edge and those that share its code. */
static bool is_only_way(const struct function *f, uint32_t block, uint32_t edge)
{
	uint32_t group = edit_edge_group(&f->public, edge);

	graph_each_in (other, &f->public.flow->graph, block)
		if (edit_edge_group(&f->public, *other) != group)
			return false;
	return true;
}

/* Branches backwards are mostly taken. */
static bool turns_back(
	const struct edit *e, const struct flow *flow, const struct graph_edge *ends)
{
	const struct flow_block *b = &flow->blocks[ends->from];
	const struct flow_insn *last = &flow->insns[b->first + b->count - 1];

	return ends->to <= ends->from &&
	       branch_turns(edit_code(e, last->address, last->length), last);
}

enum edge_place edge_place(const struct edit *e, const struct function *f, uint32_t edge)
{
	const struct flow *flow = f->public.flow;
	const struct graph_edge *ends = &flow->graph.edge[edge];
	uint8_t kind = flow->edge_kind[edge];

	if (ends->from == flow->entry_node)
		return PLACE_ENTER;
	if (kind == FLOW_EDGE_FALL)
		return PLACE_FALL;
	bool branches = flow->blocks[ends->from].end == FLOW_BRANCHES;
	if (ends->to == flow->exit_node)
		return branches ? PLACE_STUB : PLACE_BEFORE;
	if (kind == FLOW_EDGE_JUMP && !branches)
		return PLACE_BEFORE;
	if (is_only_way(f, ends->to, edge))
		return PLACE_TARGET;
	return branches && turns_back(e, flow, ends) ? PLACE_AROUND : PLACE_STUB;
}

/* Blocks of one range lie as they did; the first of a range follows nobody. */
static bool is_fallen_into(const struct flow *flow, uint32_t block)
{
	const struct flow_block *before = &flow->blocks[block - 1];

	return block && before->start + before->size == flow->blocks[block].start &&
	       edge_falls(before);
}

enum edit_way edit_edge_way(const struct edit *e, const struct edit_function *public, uint32_t edge)
{
	const struct function *f = (const struct function *)public;
	const struct flow *flow = public->flow;
	uint32_t to = flow->graph.edge[edge].to;

	switch (edge_place(e, f, edge)) {
	case PLACE_AROUND:
		return EDIT_AROUND;
	case PLACE_STUB:
		return to == flow->exit_node || to <= flow->graph.edge[edge].from ||
				       is_fallen_into(flow, to)
			       ? EDIT_ASIDE
			       : EDIT_IN_LINE;
	default:
		return EDIT_IN_LINE;
	}
}
