#include <stdlib.h>

#include "flow/cfg_internal.h"

/* ---- blocks ---- */

/* Whether an instruction goes on in the block of the one before it. */
static bool continues(const struct builder *b, uint32_t i, const struct flow_block *block)
{
	const struct flow_insn *f = &b->insns.p[i], *last = f - 1;

	if (f->flags & FLOW_INSN_LEADER || i == b->swept ||
		f->address != last->address + last->length)
		return false;
	if (block->marks & FLOW_PADDING)
		return f->flags & FLOW_INSN_FILLER;
	return last->end == FLOW_FALLS || (last->end == FLOW_BAD && f->end == FLOW_BAD);
}

/* Fillers behind what does not go on are a block of their own, that nothing leads to. */
static bool is_padding(const struct builder *b, uint32_t i)
{
	const struct flow_insn *f = &b->insns.p[i];

	if (f->flags & FLOW_INSN_LEADER || !(f->flags & FLOW_INSN_FILLER) || i >= b->swept)
		return false;
	return !i || !flow_goes_on(f[-1].end) || f->address != f[-1].address + f[-1].length;
}

static uint8_t first_marks(const struct builder *b, uint32_t i)
{
	uint8_t flags = b->insns.p[i].flags;

	return (uint8_t)((flags & FLOW_INSN_POINTER ? FLOW_ENTERED_POINTER : 0) |
			 (flags & FLOW_INSN_CALLED ? FLOW_ENTERED_CALLED : 0) |
			 (is_padding(b, i) ? FLOW_PADDING : 0));
}

static int by_start(const void *a, const void *b)
{
	const struct flow_block *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* Only where jumps go into instructions: blocks in order of address, those that share bytes marked.
 */
static void sort_overlaps(struct builder *b)
{
	uint64_t end = 0;
	uint32_t holder = 0;

	b->overlaps = true;
	vec_sort(&b->blocks, by_start);
	for (uint32_t i = 0; i < b->blocks.n; i++) {
		struct flow_block *block = &b->blocks.p[i];
		if (block->start < end) {
			block->marks |= FLOW_OVERLAPS;
			b->blocks.p[holder].marks |= FLOW_OVERLAPS;
		}
		if (block->start + block->size > end) {
			end = block->start + block->size;
			holder = i;
		}
	}
}

static void make_blocks(struct builder *b)
{
	struct flow_block *block = NULL;

	b->blocks.n = 0;
	for (uint32_t i = 0; i < b->insns.n; i++) {
		const struct flow_insn *f = &b->insns.p[i];
		if (!block || !continues(b, i, block)) {
			block = vec_add(&b->blocks);
			*block = (struct flow_block){
				.start = f->address, .first = i, .marks = first_marks(b, i)};
		}
		block->count++;
		block->size += f->length;
		block->end = block->marks & FLOW_PADDING ? FLOW_STOPS : f->end;
	}
	if (b->insns.n > b->swept)
		sort_overlaps(b);
	if (!b->block_of)
		b->block_of = xmalloc((b->insns.n + 1) * sizeof *b->block_of);
	for (uint32_t k = 0; k < b->blocks.n; k++)
		for (uint32_t i = 0; i < b->blocks.p[k].count; i++)
			b->block_of[b->blocks.p[k].first + i] = k;
}

/* ---- edges ---- */

static void add_edge(struct builder *b, uint32_t from, uint32_t to, enum flow_edge_kind kind)
{
	*vec_add(&b->edges) = (struct graph_edge){from, to};
	*vec_add(&b->kinds) = (uint8_t)kind;
}

static void add_exit(struct builder *b, uint32_t from, enum flow_edge_kind kind)
{
	if (kind == FLOW_EDGE_UNSEEN)
		b->blocks.p[from].marks |= FLOW_LEAVES;
	add_edge(b, from, builder_exit(b), kind);
}

/* To the block at an address, or out of the procedure by an edge of the second kind. */
static void add_to(struct builder *b, uint32_t from, uint64_t address, enum flow_edge_kind inside,
	enum flow_edge_kind outside)
{
	uint32_t i = builder_insn_at(b, address);

	if (i == GRAPH_NONE)
		add_exit(b, from, outside);
	else
		add_edge(b, from, b->block_of[i], inside);
}

static int by_insn(const void *key, const void *jump)
{
	const uint32_t *insn = key;
	const struct flow_jump *j = jump;

	return *insn < j->insn ? -1 : *insn > j->insn;
}

static void add_table(struct builder *b, uint32_t from, uint32_t insn)
{
	const struct flow_jump *j =
		bsearch(&insn, b->jumps.p, b->jumps.n, sizeof *b->jumps.p, by_insn);

	for (uint32_t i = 0; i < j->targets; i++)
		add_edge(b, from, b->block_of[b->targets.p[j->first_target + i]], FLOW_EDGE_TABLE);
	if (j->state != FLOW_JUMP_PROVED || j->leaves)
		add_exit(b, from, FLOW_EDGE_UNSEEN);
}

static void add_edges(struct builder *b, uint32_t k)
{
	const struct flow_block *block = &b->blocks.p[k];
	uint32_t number = block->first + block->count - 1;
	const struct flow_insn *last = &b->insns.p[number];
	uint64_t next = last->address + last->length;

	if (block->marks & FLOW_PADDING)
		return;
	switch ((enum flow_end)block->end) {
	case FLOW_FALLS:
	case FLOW_CALLS:
		add_to(b, k, next, FLOW_EDGE_FALL, FLOW_EDGE_UNSEEN);
		return;
	case FLOW_JUMPS:
		add_to(b, k, flow_target(last), FLOW_EDGE_JUMP, FLOW_EDGE_TAIL);
		return;
	case FLOW_BRANCHES:
		add_to(b, k, flow_target(last), FLOW_EDGE_JUMP, FLOW_EDGE_TAIL);
		add_to(b, k, next, FLOW_EDGE_FALL, FLOW_EDGE_UNSEEN);
		return;
	case FLOW_TABLE:
		add_table(b, k, number);
		return;
	case FLOW_RETURNS:
		add_exit(b, k, FLOW_EDGE_RETURN);
		return;
	case FLOW_TAIL:
	case FLOW_TAIL_INDIRECT:
		add_exit(b, k, FLOW_EDGE_TAIL);
		return;
	case FLOW_STOPS:
		add_exit(b, k, FLOW_EDGE_STOP);
		return;
	case FLOW_TRAPS:
		add_to(b, k, next, FLOW_EDGE_FALL, FLOW_EDGE_STOP);
		add_exit(b, k, FLOW_EDGE_STOP);
		return;
	case FLOW_UNRESOLVED:
	case FLOW_BAD:
		add_exit(b, k, FLOW_EDGE_UNSEEN);
		return;
	}
}

void builder_make_blocks(struct builder *b)
{
	make_blocks(b);
	b->edges.n = b->kinds.n = b->first_edge.n = 0;
	for (uint32_t k = 0; k < b->blocks.n; k++) {
		*vec_add(&b->first_edge) = (uint32_t)b->edges.n;
		add_edges(b, k);
	}
	*vec_add(&b->first_edge) = (uint32_t)b->edges.n;
}
