#include "flow/cfg.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "flow/cfg_internal.h"
#include "flow/tables.h"

/* ---- the source ---- */

static int by_start(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static int take_spans(struct builder *b, struct err *e)
{
	const struct flow_source *s = b->source;
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < s->nranges; i++) {
		const struct range *r = &s->ranges[i];
		if (r->size > FLOW_BYTES_MAX || bytes + r->size > FLOW_BYTES_MAX)
			return err_set(e, -EFBIG,
				"procedure at 0x%llx: larger than 64 MB, so not analysed",
				(unsigned long long)s->entry);
		if (r->size && r->start + r->size > r->start)
			*vec_add(&b->spans) =
				(struct span){r->start, (uint32_t)r->size, (uint32_t)bytes};
		bytes += r->size;
	}
	b->bytes = (uint32_t)bytes;
	vec_sort(&b->spans, by_start);
	for (size_t i = 1; i < b->spans.n; i++)
		if (b->spans.p[i].start - b->spans.p[i - 1].start < b->spans.p[i - 1].size)
			return err_set(e, -EINVAL, "procedure at 0x%llx: its ranges overlap",
				(unsigned long long)s->entry);
	if (!builder_holds(b, s->entry))
		return err_set(e, -EINVAL, "procedure at 0x%llx: its ranges do not hold its entry",
			(unsigned long long)s->entry);
	return 0;
}

/* ---- what the edges do not show ---- */

static void visit(const struct builder *b, uint32_t from, bool *reached, uint32_t *stack)
{
	uint32_t n = 0;

	if (reached[from])
		return;
	reached[from] = true;
	stack[n++] = from;
	while (n) {
		uint32_t k = stack[--n];
		for (uint32_t e = b->first_edge.p[k]; e < b->first_edge.p[k + 1]; e++) {
			uint32_t to = b->edges.p[e].to;
			if (to >= b->blocks.n || reached[to])
				continue;
			reached[to] = true;
			stack[n++] = to;
		}
	}
}

static void mark_unreached(struct builder *b)
{
	bool *reached = xcalloc(b->blocks.n, sizeof *reached);
	uint32_t *stack = xmalloc(b->blocks.n * sizeof *stack);

	visit(b, b->block_of[builder_insn_at(b, b->source->entry)], reached, stack);
	for (uint32_t k = 0; k < b->blocks.n; k++)
		if (b->blocks.p[k].marks & FLOW_ENTERED)
			visit(b, k, reached, stack);
	for (uint32_t k = 0; k < b->blocks.n; k++)
		if (!reached[k] && !(b->blocks.p[k].marks & FLOW_PADDING))
			b->blocks.p[k].marks |= FLOW_ENTERED_UNREACHED;
	free(reached);
	free(stack);
}

/* A jump that may go elsewhere may go to any block. */
static void mark_entered(struct builder *b)
{
	uint8_t marks = 0;

	mark_unreached(b);
	vec_each (j, &b->jumps) {
		if (j->state == FLOW_JUMP_UNPROVED)
			marks |= FLOW_ENTERED_TABLE;
		if (j->state == FLOW_JUMP_UNRESOLVED)
			marks |= FLOW_ENTERED_JUMP;
	}
	vec_each (block, &b->blocks) {
		if (!(block->marks & FLOW_PADDING))
			block->marks |= marks;
	}
}

static void add_entries(struct builder *b)
{
	uint32_t entry = b->block_of[builder_insn_at(b, b->source->entry)];

	*vec_add(&b->edges) = (struct graph_edge){builder_entry(b), entry};
	*vec_add(&b->kinds) = FLOW_EDGE_ENTRY;
	for (uint32_t k = 0; k < b->blocks.n; k++) {
		if (!(b->blocks.p[k].marks & FLOW_ENTERED))
			continue;
		*vec_add(&b->edges) = (struct graph_edge){builder_entry(b), k};
		*vec_add(&b->kinds) = FLOW_EDGE_UNSEEN;
	}
}

/* ---- the flow ---- */

static int by_number(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static int by_block(const void *a, const void *b)
{
	const struct flow_jump *x = a, *y = b;

	return x->block < y->block ? -1 : x->block > y->block;
}

/* Targets were instructions while blocks could change. */
static void finish_jumps(struct builder *b)
{
	vec_each (t, &b->targets)
		*t = b->block_of[*t];
	vec_each (j, &b->jumps) {
		j->block = b->block_of[j->insn];
		if (j->targets)
			qsort(b->targets.p + j->first_target, j->targets, sizeof *b->targets.p,
				by_number);
	}
	vec_sort(&b->jumps, by_block);
}

static uint32_t flags_of(const struct builder *b)
{
	uint32_t flags = (b->overlaps ? FLOW_HAS_OVERLAPS : 0) | (b->bad ? FLOW_HAS_BAD : 0);

	vec_each (block, &b->blocks) {
		if (block->marks & (FLOW_ENTERED | FLOW_LEAVES))
			flags |= FLOW_HAS_UNSEEN;
	}
	return flags;
}

/* The arrays change hands. */
static struct flow *finish(struct builder *b)
{
	struct flow *f = xcalloc(1, sizeof *f);

	mark_entered(b);
	add_entries(b);
	finish_jumps(b);
	vec_shrink(&b->insns);
	vec_shrink(&b->blocks);
	*f = (struct flow){.entry = b->source->entry,
		.insns = b->insns.p,
		.ninsns = (uint32_t)b->insns.n,
		.blocks = b->blocks.p,
		.nblocks = (uint32_t)b->blocks.n,
		.jumps = b->jumps.p,
		.njumps = (uint32_t)b->jumps.n,
		.targets = b->targets.p,
		.flags = flags_of(b),
		.edge_kind = b->kinds.p,
		.entry_node = builder_entry(b),
		.exit_node = builder_exit(b)};
	graph_init(&f->graph, f->nblocks + 2, b->edges.p, (uint32_t)b->edges.n);
	b->insns.p = NULL;
	b->blocks.p = NULL;
	b->jumps.p = NULL;
	b->targets.p = NULL;
	b->kinds.p = NULL;
	return f;
}

static void builder_deinit(struct builder *b)
{
	vec_deinit(&b->spans);
	free(b->at);
	vec_deinit(&b->insns);
	vec_deinit(&b->pointers);
	vec_deinit(&b->jumps);
	vec_deinit(&b->targets);
	vec_deinit(&b->blocks);
	free(b->block_of);
	vec_deinit(&b->edges);
	vec_deinit(&b->kinds);
	vec_deinit(&b->first_edge);
}

int flow_create(const struct flow_source *source, struct flow **out, struct err *e)
{
	_cleanup_(builder_deinit) struct builder b = {.source = source};
	int r = take_spans(&b, e);

	if (r < 0)
		return r;
	builder_decode(&b);
	builder_make_blocks(&b);
	if (b.jumps.n)
		tables_resolve(&b);
	*out = finish(&b);
	return 0;
}

void flow_destroy(struct flow *f)
{
	if (!f)
		return;
	free(f->insns);
	free(f->blocks);
	free(f->jumps);
	free(f->targets);
	free(f->edge_kind);
	graph_deinit(&f->graph);
	free(f);
}

static bool covers(const struct flow *f, uint32_t k, uint64_t address)
{
	const struct flow_block *block = &f->blocks[k];

	return address - block->start < block->size;
}

uint32_t flow_block_at(const struct flow *f, uint64_t address)
{
	uint32_t low = 0, high = f->nblocks;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (f->blocks[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	while (low-- > 0) {
		if (covers(f, low, address))
			return low;
		if (!(f->flags & FLOW_HAS_OVERLAPS))
			break;
	}
	return GRAPH_NONE;
}
