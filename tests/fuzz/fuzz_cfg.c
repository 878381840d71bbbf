/*
 * The flow of any bytes, as code and as data: it must hold together, and so must what stands on it.
 */
#include "flow/cfg.h"

#include <assert.h>
#include <string.h>

#include "flow/liveness.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define BASE 0x401000

struct input {
	const uint8_t *data;
	size_t size;
};

/* The input again, where tables may be. */
static int read_data(void *arg, uint64_t address, void *out, size_t size)
{
	const struct input *in = arg;
	uint64_t into = address - 2 * BASE;

	if (into >= in->size || size > in->size - into)
		return -1;
	memcpy(out, in->data + into, size);
	return 0;
}

static bool returns(void *arg, uint64_t target)
{
	(void)arg;
	return target % 5;
}

static void check_blocks(const struct flow *f)
{
	for (uint32_t k = 0; k < f->nblocks; k++) {
		const struct flow_block *b = &f->blocks[k];
		uint64_t at = b->start;
		assert(!k || f->blocks[k - 1].start < b->start);
		assert(b->count && b->first + b->count <= f->ninsns);
		for (uint32_t i = b->first; i < b->first + b->count; i++) {
			assert(f->insns[i].address == at);
			at += f->insns[i].length;
		}
		assert(at == b->start + b->size);
		assert(b->marks & FLOW_PADDING || graph_out_degree(&f->graph, k));
		assert(b->marks & FLOW_PADDING || graph_in_degree(&f->graph, k));
		assert(!(b->marks & FLOW_PADDING) || !graph_in_degree(&f->graph, k));
		uint32_t found = flow_block_at(f, b->start);
		assert(found != GRAPH_NONE);
	}
}

static void check_jumps(const struct flow *f)
{
	for (uint32_t i = 0; i < f->njumps; i++) {
		const struct flow_jump *j = &f->jumps[i];
		const struct flow_block *b = &f->blocks[j->block];
		assert(b->first + b->count - 1 == j->insn || b->marks & FLOW_PADDING);
		assert(j->state == FLOW_JUMP_PROVED || j->state == FLOW_JUMP_TAIL ||
			b->marks & FLOW_LEAVES);
		for (uint32_t t = 0; t < j->targets; t++)
			assert(f->targets[j->first_target + t] < f->nblocks);
	}
}

static void check_edges(const struct flow *f)
{
	for (uint32_t e = 0; e < f->graph.edges; e++) {
		struct graph_edge edge = f->graph.edge[e];
		if (edge.from >= f->nblocks || edge.to >= f->nblocks)
			continue;
		const struct flow_block *from = &f->blocks[edge.from];
		const struct flow_insn *last = &f->insns[from->first + from->count - 1];
		uint64_t to = f->blocks[edge.to].start;
		if (f->edge_kind[e] == FLOW_EDGE_FALL)
			assert(to == last->address + last->length);
		if (f->edge_kind[e] == FLOW_EDGE_JUMP)
			assert(to == flow_target(last));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	size_t first = size > 1 ? 1 + data[0] % (size - 1) : size;
	struct range ranges[] = {{BASE, first}, {BASE + 0x40000, size - first}};
	struct flow_source source = {.ranges = ranges,
		.nranges = first < size ? 2 : 1,
		.entry = BASE,
		.code = data,
		.absolute = size & 1,
		.read = read_data,
		.returns = returns,
		.arg = &in};
	struct liveness *l;
	struct flow *f;

	if (flow_create(&source, &f, NULL))
		return 0;
	check_blocks(f);
	check_jumps(f);
	check_edges(f);
	liveness_create(f, &source, &l);
	for (uint32_t k = 0; k < f->nblocks; k++)
		assert(liveness_before(l, f->blocks[k].first) == liveness_in(l, k));
	liveness_destroy(l);
	flow_destroy(f);
	return 0;
}
