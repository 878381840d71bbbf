/*
 * Ways from one copy of a function to the other, where registers hold the address of a jump table:
 * each copy has tables of its own, and who went on with those of the other would be back there at
 * the next jump. Such registers get the address of the other copy's table on the way.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "edit/edit_internal.h"
#include "flow/liveness.h"
#include "isa/encode.h"
#include "isa/form.h"

/* ---- which registers hold a table ---- */

/*
 * Registers that may hold something else than the table's address, and, further up, those that may
 * hold one of its entries: these mean nothing without the address that they were had by.
 */
#define ENTRIES 16

/* What an instruction makes of that. */
static uint32_t pass_insn(const struct flow_insn *i, const struct form *f, uint32_t state)
{
	uint32_t others = state & REGS_ALL, entries = state >> ENTRIES, writes = f->writes;
	bool copies = f->op == FORM_MOVE && f->from.type == FORM_REGISTER &&
		      f->to.type == FORM_REGISTER && f->to.size == 8;
	bool looks_up = f->from.type == FORM_MEMORY && f->base < 16 && !(others >> f->base & 1);

	if (i->kind == INSN_CALL || i->kind == INSN_CALL_INDIRECT)
		writes |= REGS_ALL & ~REGS_KEPT;
	if (looks_up || f->reads & entries)
		entries |= writes;
	else
		entries &= ~writes;
	if (copies && !(others >> f->from.reg & 1))
		others &= ~(1u << f->to.reg);
	else
		others |= writes;
	return (others & REGS_ALL) | entries << ENTRIES;
}

static uint32_t pass(const struct edit *e, const struct function *twin, uint32_t clone,
	uint32_t from, uint32_t to, uint32_t state)
{
	const struct flow *flow = twin->public.flow;

	for (uint32_t i = from; i < to; i++) {
		const struct flow_insn *insn = &flow->insns[i];
		const struct naming *n = twin_naming(twin, i);
		struct form f;

		if (isa_form(edit_code(e, insn->address, insn->length), insn->length, insn->address,
			    &f))
			state = UINT32_MAX;
		else if (n && n->clone == clone && f.op == FORM_ADDRESS)
			state &= ~((1u << f.to.reg) | (1u << ENTRIES << f.to.reg));
		else
			state = pass_insn(insn, &f, state);
	}
	return state;
}

static void find_others(
	const struct edit *e, const struct function *twin, uint32_t clone, uint32_t *others)
{
	const struct flow *flow = twin->public.flow;
	VEC(uint32_t) work = {0};
	bool *seen = xcalloc(flow->nblocks + 1, sizeof *seen);

	graph_each_out (edge, &flow->graph, flow->entry_node) {
		uint32_t to = flow->graph.edge[*edge].to;

		if (to >= flow->nblocks)
			continue;
		others[to] = REGS_ALL; /* and no entries */
		seen[to] = true;
		*vec_add(&work) = to;
	}
	while (work.n) {
		uint32_t k = work.p[--work.n];
		const struct flow_block *b = &flow->blocks[k];
		uint32_t out = pass(e, twin, clone, b->first, b->first + b->count, others[k]);

		graph_each_out (edge, &flow->graph, k) {
			uint32_t to = flow->graph.edge[*edge].to;

			if (to >= flow->nblocks || (seen[to] && !(out & ~others[to])))
				continue;
			others[to] |= out;
			seen[to] = true;
			*vec_add(&work) = to;
		}
	}
	for (uint32_t k = 0; k < flow->nblocks; k++)
		others[k] = seen[k] ? others[k] : UINT32_MAX;
	vec_deinit(&work);
	free(seen);
}

void bridge_find(const struct edit *e, struct function *twin)
{
	uint32_t blocks = twin->public.flow->nblocks;

	twin->others = xcalloc(twin->clones.n * blocks + 1, sizeof *twin->others);
	for (uint32_t k = 0; k < twin->clones.n; k++)
		find_others(e, twin, k, twin->others + (size_t)k * blocks);
}

/* ---- code ---- */

static const struct function *twin_of(const struct function *f)
{
	return f->original ? f : f->twin;
}

/* Registers that hold the table and are in use where control goes on. */
static uint32_t holders(struct edit *e, const struct function *f, uint32_t clone, uint32_t insn)
{
	const struct function *twin = twin_of(f);
	const struct flow *flow = twin->public.flow;
	uint32_t k = flow_block_at(flow, flow->insns[insn].address);
	uint32_t live = liveness_before(edit_liveness(e, (struct edit_function *)f), insn);
	uint32_t state = pass(e, twin, clone, flow->blocks[k].first, insn,
		twin->others[(size_t)clone * flow->nblocks + k]);

	return state >> ENTRIES & live ? 0 : ~state & live & REGS_ALL;
}

static void load_table(struct snippet_code *c, unsigned reg, uint32_t clone)
{
	struct encode_memory m = {.base = ENCODE_RIP, .index = REG_NONE, .scale = 1};
	size_t at = encode_memory(&c->bytes, ENCODE_ADDRESS, reg, &m);

	*vec_add(&c->fixups) = (struct snippet_fixup){.offset = (uint32_t)at,
		.end = (uint32_t)c->bytes.n,
		.target = clone,
		.table = true};
}

/* From where the snippet already lies apart the distance is known. */
static bool lead_inside(struct snippet_code *c, const struct snippet_fixup *x, size_t added)
{
	uint32_t by = (uint32_t)(added - x->end);

	if (x->offset < c->apart)
		return false;
	memcpy(c->bytes.p + x->offset, &by, sizeof by);
	return true;
}

/* The jumps to the other copy go to what was added, which goes on from there. */
static void lead_over(struct snippet_code *c, size_t added)
{
	size_t n = 0, at = encode_jump(&c->bytes);

	vec_each (x, &c->fixups) {
		if (x->jumps && x->target == EDIT_OTHER) {
			if (lead_inside(c, x, added))
				continue;
			x->jumps = false;
			x->across = true;
			x->target = added;
		}
		c->fixups.p[n++] = *x;
	}
	c->fixups.n = n;
	*vec_add(&c->fixups) = (struct snippet_fixup){.offset = (uint32_t)at,
		.end = (uint32_t)c->bytes.n,
		.target = EDIT_OTHER,
		.jumps = true};
}

static bool goes_over(const struct snippet_code *c)
{
	vec_each (x, &c->fixups)
		if (x->jumps && x->target == EDIT_OTHER)
			return true;
	return false;
}

void bridge_add(struct edit *e, const struct function *f, uint32_t insn, struct snippet_code *c)
{
	const struct function *twin = twin_of(f);
	size_t added = c->bytes.n;

	if (!twin || !twin->others || !goes_over(c))
		return;
	for (uint32_t k = 0; k < twin->clones.n; k++) {
		uint32_t regs = holders(e, f, k, insn);

		for (unsigned reg = 0; reg < 16; reg++)
			if (regs >> reg & 1)
				load_table(c, reg, k);
	}
	if (c->bytes.n == added)
		return;
	c->apart = c->apart < added ? c->apart : added;
	lead_over(c, added);
}

uint64_t bridge_table(const struct edit *e, const struct function *to, uint64_t clone)
{
	const struct clone *c = &twin_of(to)->clones.p[clone];

	return to->original ? c->name + e->tables + c->offset - c->from : c->name;
}
