#include "analyze/why_internal.h"

#include "analyze/stays.h"
#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- instructions ---- */

/* The bytes of an instruction; NULL where the evidence has none. */
static const uint8_t *code_of(const struct evidence *ev, const struct flow_insn *in, size_t *n)
{
	const struct procedure *p = &ev->image->procedures.p[ev->procedure];
	size_t before = 0;

	for (uint32_t r = 0; r < p->nranges; r++) {
		uint64_t at = in->address - p->ranges[r].start;

		if (in->address >= p->ranges[r].start && at < p->ranges[r].size) {
			if (before + at >= ev->code_size)
				return NULL;
			*n = p->ranges[r].size - at;
			if (*n > ev->code_size - before - at)
				*n = ev->code_size - before - at;
			return ev->code + before + at;
		}
		before += p->ranges[r].size;
	}
	return NULL;
}

const struct why_fact *why_fact_of(struct why_work *w, uint32_t insn)
{
	const struct flow_insn *in = &w->flow->insns[insn];
	struct why_fact *f = &w->facts[insn];
	const uint8_t *code;
	size_t n = 0;

	if (f->ready)
		return f;
	f->ready = true;
	code = code_of(w->evidence, in, &n);
	if (!code || model_insn(w->machine->model, code, n, &f->model)) {
		/* No instruction: it takes a slot, and nothing is known. */
		memset(&f->model, 0, sizeof f->model);
		f->model.uops = f->model.latency = 1;
		f->model.length = in->length;
		f->model.moved = MODEL_NO_REGISTER;
		return f;
	}
	f->hazards = (uint8_t)isa_hazards(code, n);
	for (unsigned i = 0; i < f->model.nplaces; i++) {
		f->loads |= f->model.place[i].loads;
		f->stores |= f->model.place[i].stores;
	}
	return f;
}

bool why_fuses(struct why_work *w, uint32_t insn)
{
	const struct flow_block *b = &w->flow->blocks[w->block_of[insn]];

	return insn + 1 < b->first + b->count && w->flow->insns[insn + 1].kind == INSN_BRANCH &&
	       why_fact_of(w, insn)->model.flags & MODEL_FUSES;
}

uint32_t why_last(struct why_work *w, uint32_t block)
{
	const struct flow_block *b = &w->flow->blocks[block];
	uint32_t last = b->first + b->count - 1;

	return b->count > 1 && why_fuses(w, last - 1) ? last - 1 : last;
}

/* ---- ways ---- */

uint64_t why_offset(const struct why_work *w, uint64_t address)
{
	const struct selected_image *im = w->evidence->image;

	for (size_t i = 0; i < im->nsegments; i++) {
		uint64_t inside = address - im->segments[i].vaddr;

		if (address >= im->segments[i].vaddr && inside < im->segments[i].size)
			return im->segments[i].offset + inside;
	}
	return address;
}

double why_block_count(const struct why_work *w, uint32_t block)
{
	return w->frequency->block[block].count * w->why->assumed;
}

double why_edge_count(const struct why_work *w, uint32_t edge)
{
	return w->frequency->edge[edge].count * w->why->assumed;
}

static uint32_t most_frequent(const struct why_work *w, const uint32_t *edges, uint32_t n)
{
	uint32_t best = GRAPH_NONE;

	for (uint32_t i = 0; i < n; i++)
		if (best == GRAPH_NONE || why_edge_count(w, edges[i]) > why_edge_count(w, best))
			best = edges[i];
	return best;
}

uint32_t why_edge_in(const struct why_work *w, uint32_t block)
{
	const struct graph *g = &w->flow->graph;

	return most_frequent(w, g->in + g->in_first[block], graph_in_degree(g, block));
}

uint32_t why_edge_out(const struct why_work *w, uint32_t block)
{
	const struct graph *g = &w->flow->graph;

	return most_frequent(w, g->out + g->out_first[block], graph_out_degree(g, block));
}

size_t why_way_to(struct why_work *w, uint32_t insn, uint32_t *way, size_t most)
{
	const struct flow *f = w->flow;
	uint32_t block = w->block_of[insn], end = insn;
	size_t n = 0;

	for (;;) {
		uint32_t edge, first = f->blocks[block].first;

		while (end > first && n < most)
			way[n++] = --end;
		edge = n < most ? why_edge_in(w, block) : GRAPH_NONE;
		if (edge == GRAPH_NONE || f->graph.edge[edge].from == f->entry_node)
			break;
		block = f->graph.edge[edge].from;
		end = f->blocks[block].first + f->blocks[block].count;
	}
	for (size_t i = 0; i < n / 2; i++) {
		uint32_t swap = way[i];

		way[i] = way[n - 1 - i];
		way[n - 1 - i] = swap;
	}
	return n;
}

/* Ways that are followed at the same time. */
struct ways {
	struct why_work *work;
	why_way_fn *fn;
	void *arg;
	uint32_t *back, *way; /* from the instruction backwards; and in order, for fn */
	size_t most;
};

#define WAY_LEAST (1 / 16.0) /* of the executions: rarer ways are taken to be the usual one */

static void end_way(const struct ways *ways, size_t n, double share)
{
	for (size_t i = 0; i < n; i++)
		ways->way[i] = ways->back[n - 1 - i];
	ways->fn(ways->arg, ways->way, n, share);
}

static void follow_ways(
	const struct ways *ways, uint32_t block, uint32_t end, size_t n, double share);

/* Behind a join each way that comes often enough by itself, the others with the most frequent. */
static void split_ways(const struct ways *ways, uint32_t block, size_t n, double share)
{
	struct why_work *w = ways->work;
	const struct flow *f = w->flow;
	uint32_t usual = why_edge_in(w, block);
	double all = 0, rest = share;

	graph_each_in (e, &f->graph, block)
		all += why_edge_count(w, *e);
	graph_each_in (e, &f->graph, block) {
		double part = all > 0 ? share * why_edge_count(w, *e) / all : 0;
		uint32_t from = f->graph.edge[*e].from;

		if (*e == usual || part < WAY_LEAST)
			continue;
		rest -= part;
		if (from == f->entry_node)
			end_way(ways, n, part);
		else
			follow_ways(
				ways, from, f->blocks[from].first + f->blocks[from].count, n, part);
	}
	if (usual == GRAPH_NONE || f->graph.edge[usual].from == f->entry_node) {
		end_way(ways, n, rest);
		return;
	}
	block = f->graph.edge[usual].from;
	follow_ways(ways, block, f->blocks[block].first + f->blocks[block].count, n, rest);
}

static void follow_ways(
	const struct ways *ways, uint32_t block, uint32_t end, size_t n, double share)
{
	uint32_t first = ways->work->flow->blocks[block].first;

	while (end > first && n < ways->most)
		ways->back[n++] = --end;
	if (n == ways->most)
		end_way(ways, n, share);
	else
		split_ways(ways, block, n, share);
}

void why_ways_to(struct why_work *w, uint32_t insn, size_t most, why_way_fn *fn, void *arg)
{
	struct ways ways = {w, fn, arg, graph_numbers((uint32_t)most, 0),
		graph_numbers((uint32_t)most, 0), most};

	follow_ways(&ways, w->block_of[insn], insn, 0, 1);
	free(ways.back);
	free(ways.way);
}

/* ---- loops ---- */

static void note_writes(struct why_loop *l, const struct why_fact *f)
{
	for (unsigned i = 0; i < f->model.nwrites; i++) {
		uint8_t reg = f->model.write[i].reg;

		if (reg < 16 && reg != f->model.moved)
			l->replaced |= 1u << reg;
	}
	if (f->model.moved < 16)
		l->by[f->model.moved] =
			(int64_t)((uint64_t)l->by[f->model.moved] + (uint64_t)f->model.by);
}

#define LOOP_BLOCKS 512 /* of larger loops every register counts as replaced */
#define LINE        64
#define PAGE        4096

/* Code that follows on other code of the loop shares its last line and page. */
static void note_code(struct why_loop *l, const struct flow_block *b, uint64_t *last)
{
	uint64_t end = b->start + (b->size ? b->size - 1 : 0);

	l->lines += (uint32_t)(end / LINE - b->start / LINE) + (b->start / LINE != *last / LINE);
	l->pages += (uint32_t)(end / PAGE - b->start / PAGE) + (b->start / PAGE != *last / PAGE);
	*last = end;
}

static void note_block(struct why_work *w, struct why_loop *l, const struct flow_block *b)
{
	for (uint32_t i = 0; i < b->count; i++)
		note_writes(l, why_fact_of(w, b->first + i));
	l->calls |= b->end == FLOW_CALLS;
}

const struct why_loop *why_loop_of(struct why_work *w, uint32_t loop)
{
	struct why_loop *l = &w->loop[loop];
	bool large = w->loops.loop[loop].nodes > LOOP_BLOCKS;
	uint64_t last = 0;

	if (l->ready)
		return l;
	l->ready = true;
	for (uint32_t b = 0; b < w->flow->nblocks; b++)
		if (loops_contain(&w->loops, loop, b)) {
			note_code(l, &w->flow->blocks[b], &last);
			if (!large)
				note_block(w, l, &w->flow->blocks[b]);
		}
	if (large) {
		l->replaced = 0xffff;
		l->calls = true;
	} else if (l->calls) {
		l->replaced |= (uint32_t)(REGS_ALL & ~REGS_KEPT);
	}
	return l;
}

/* Adds what a register of an address does; false when it may become anything. */
static bool follow(const struct why_loop *l, uint8_t reg, int64_t factor, int64_t *stride)
{
	if (reg >= 16)
		return true;
	if (l->replaced >> reg & 1)
		return false;
	*stride = (int64_t)((uint64_t)*stride + (uint64_t)l->by[reg] * (uint64_t)factor);
	return true;
}

enum why_place why_place_of(
	struct why_work *w, uint32_t insn, const struct model_place *p, int64_t *stride)
{
	uint32_t loop = w->loops.of[w->block_of[insn]];
	const struct why_loop *l;

	*stride = 0;
	if (p->segment)
		return WHY_PLACE_ANY;
	if (p->index >= 16 && p->base == REG_RSP)
		return WHY_PLACE_STACK;
	if (p->index >= 16 && p->base >= 16)
		return WHY_PLACE_FIXED;
	if (loop == GRAPH_NONE)
		return WHY_PLACE_ANY;
	l = why_loop_of(w, loop);
	if (!follow(l, p->base, 1, stride) || !follow(l, p->index, p->scale, stride))
		return WHY_PLACE_ANY;
	return *stride ? WHY_PLACE_STRIDED : WHY_PLACE_SAME;
}

bool why_loads_far(struct why_work *w, uint32_t insn)
{
	const struct model_insn *in = &why_fact_of(w, insn)->model;
	int64_t stride;

	for (unsigned i = 0; i < in->nplaces; i++)
		if (in->place[i].loads &&
			why_place_of(w, insn, &in->place[i], &stride) > WHY_PLACE_FIXED)
			return true;
	return false;
}

void why_show_stays(struct why_work *w)
{
	const struct selected_image *im = w->evidence->image;
	const struct stays *s = w->machine->stays;
	uint64_t last = UINT64_MAX;

	for (uint32_t i = 0; i < w->flow->ninsns; i++) {
		struct why_insn *in = &w->why->insns[i];
		uint64_t offset = why_offset(w, w->flow->insns[i].address);
		struct stays_share share;

		in->gone = s && stays_data(s, im, offset, &share) ? share.likely : NAN;
		in->line_gone =
			s && offset / STAYS_LINE != last && stays_code(s, im, offset, &share)
				? share.likely
				: NAN;
		last = offset / STAYS_LINE;
	}
}
