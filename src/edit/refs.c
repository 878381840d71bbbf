#include <stdlib.h>
#include <string.h>

#include "edit/edit_internal.h"
#include "flow/program.h"
#include "image/data.h"
#include "isa/decode.h"

/*
 * What the code of the file says about functions from outside: jumps and calls that are not to
 * entries, labels whose address others take, data that lies among the instructions.
 */
struct refs {
	struct edit *e;
	uint64_t low, high; /* all code of functions lies between */
	VEC(uint64_t) entered;
};

static bool is_within(const struct procedure *p, uint64_t address)
{
	for (uint32_t r = 0; r < p->nranges; r++)
		if (address - p->ranges[r].start < p->ranges[r].size)
			return true;
	return false;
}

bool edit_is_lea(const struct edit *e, const struct flow_insn *i)
{
	const uint8_t *code = edit_code(e, i->address, i->length);
	unsigned n = 0;

	while (code && n < i->length && (code[n] == 0x66 || (code[n] & 0xf0) == 0x40))
		n++;
	return code && code[n] == 0x8d;
}

static struct function *function_at(const struct refs *r, uint64_t address)
{
	const struct home *h =
		address - r->low < r->high - r->low ? edit_home(r->e, address) : NULL;

	return h ? h->function : NULL;
}

/* A rip-relative operand that lies in a function. */
static void note_memory(struct refs *r, const struct flow_insn *i)
{
	struct function *f = function_at(r, flow_target(i));

	if (!f)
		return;
	f->referred |= f->public.procedure->start == flow_target(i);
	if (edit_is_lea(r->e, i))
		*vec_add(&r->entered) = flow_target(i);
	else
		edit_refuse(f, "data among its instructions", flow_target(i));
}

static void note_insn(struct refs *r, const struct procedure *p, const struct flow_insn *i)
{
	if (i->flags & FLOW_INSN_MEMORY) {
		note_memory(r, i);
		return;
	}
	if (i->end == FLOW_BAD ||
		(i->kind != INSN_JUMP && i->kind != INSN_BRANCH && i->kind != INSN_CALL))
		return;
	uint64_t target = flow_target(i);
	if (is_within(p, target))
		return;
	struct function *f = function_at(r, target);
	if (f && target != f->public.procedure->start)
		*vec_add(&r->entered) = target;
	else if (f && p->source == PROCEDURE_GAP)
		f->referred = true;
}

static void note_flow(struct refs *r, const struct procedure *p, const struct flow *flow)
{
	for (uint32_t n = 0; n < flow->ninsns; n++)
		note_insn(r, p, &flow->insns[n]);
}

/*
 * Code that nothing describes is not moved, but it may go where others do not expect it. There can
 * be much of it, so it is only read from one end to the other.
 */
static void note_gap(struct refs *r, const struct procedure *p)
{
	uint64_t end = p->start + p->ranges[0].size;
	const uint8_t *code = edit_code(r->e, p->start, p->ranges[0].size);
	struct insn insn;

	for (uint64_t at = p->start; code && at < end; at += insn.length) {
		if (isa_decode(code + (at - p->start), end - at, at, &insn) < 0) {
			insn.length = 1;
			continue;
		}
		uint64_t to = insn.relative ? insn.memory : insn.target;
		note_insn(r, p,
			&(struct flow_insn){.address = at,
				.relative = (int32_t)(to - at - insn.length),
				.length = insn.length,
				.kind = (uint8_t)insn.kind,
				.flags = insn.relative ? FLOW_INSN_MEMORY : 0});
	}
}

static void note_gaps(struct refs *r)
{
	const struct procedure *all;
	size_t n = image_procedures(r->e->image, &all);

	for (size_t i = 0; i < n; i++)
		if (all[i].source == PROCEDURE_GAP)
			note_gap(r, &all[i]);
}

/*
 * Where the file is linked to a fixed address, any four bytes of code may be that of a function.
 * There are few that only look so.
 */
static void note_constants(struct refs *r, const struct range *range)
{
	const uint8_t *code = edit_code(r->e, range->start, range->size);

	for (uint64_t i = 0; code && i + sizeof(uint32_t) <= range->size; i++) {
		uint32_t value;
		memcpy(&value, code + i, sizeof value);
		struct function *f = function_at(r, value);
		if (f)
			f->referred |= f->public.procedure->start == value;
	}
}

static void note_all_constants(struct refs *r)
{
	const struct procedure *all;
	size_t n = image_procedures(r->e->image, &all);

	for (size_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < all[i].nranges; k++)
			note_constants(r, &all[i].ranges[k]);
}

static int by_address(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void drop_entries(struct refs *r)
{
	size_t kept = 0;

	vec_sort(&r->entered, by_address);
	for (size_t i = 0; i < r->entered.n; i++) {
		uint64_t address = r->entered.p[i];
		const struct function *f = function_at(r, address);
		if (f->public.procedure->start != address &&
			(!kept || r->entered.p[kept - 1] != address))
			r->entered.p[kept++] = address;
	}
	r->entered.n = kept;
}

static bool is_marked(const struct flow *flow, uint64_t address)
{
	uint32_t k = flow_block_at(flow, address);

	return k != GRAPH_NONE && flow->blocks[k].start == address &&
	       flow->blocks[k].marks & (FLOW_ENTERED_POINTER | FLOW_ENTERED_CALLED);
}

void refs_find(struct edit *e)
{
	struct refs r = {.e = e};

	if (!e->homes.n)
		return;
	const struct home *last = &e->homes.p[e->homes.n - 1];
	r.low = e->homes.p[0].start;
	r.high = last->start + last->size;
	for (size_t i = 0; i < e->nfunctions; i++)
		if (e->list[i]->flow)
			note_flow(&r, e->list[i]->procedure, e->list[i]->flow);
	note_gaps(&r);
	if (program_data(e->program) && image_data_is_fixed(program_data(e->program)))
		note_all_constants(&r);
	drop_entries(&r);
	program_note_entered(e->program, r.entered.p, r.entered.n);
	vec_each (address, &r.entered) {
		struct function *f = function_at(&r, *address);
		if (f->public.flow && !is_marked(f->public.flow, *address)) {
			edit_make_flow(e, f);
			edit_judge(e, f);
		}
		if (f->public.flow && !is_marked(f->public.flow, *address))
			edit_refuse(f, "entered in the middle of an instruction", *address);
	}
	vec_deinit(&r.entered);
}
