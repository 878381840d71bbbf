#include <string.h>

#include "flow/cfg_internal.h"

/* ---- places ---- */

static const struct span *span_at(const struct builder *b, uint64_t address)
{
	size_t low = 0, high = b->spans.n;

	while (low < high) {
		size_t middle = (low + high) / 2;
		if (b->spans.p[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || address - b->spans.p[low - 1].start >= b->spans.p[low - 1].size)
		return NULL;
	return &b->spans.p[low - 1];
}

bool builder_holds(const struct builder *b, uint64_t address)
{
	return span_at(b, address);
}

uint32_t builder_insn_at(const struct builder *b, uint64_t address)
{
	const struct span *s = span_at(b, address);

	return s ? b->at[s->offset + (uint32_t)(address - s->start)] : GRAPH_NONE;
}

size_t builder_code(const struct builder *b, uint64_t address, const uint8_t **out)
{
	const struct span *s = span_at(b, address);
	uint64_t into;

	if (!s)
		return 0;
	into = address - s->start;
	*out = b->source->code + s->offset + into;
	return s->size - into;
}

/* ---- ends ---- */

bool flow_goes_on(enum flow_end end)
{
	return end == FLOW_FALLS || end == FLOW_BRANCHES || end == FLOW_CALLS || end == FLOW_TRAPS;
}

static enum flow_end end_of_call(const struct builder *b, const struct insn *insn)
{
	const struct flow_source *s = b->source;

	return !s->returns || s->returns(s->arg, insn->target) ? FLOW_CALLS : FLOW_STOPS;
}

static enum flow_end end_of_jump(const struct builder *b, const struct insn *insn)
{
	const struct flow_source *s = b->source;

	if (builder_holds(b, insn->target))
		return FLOW_JUMPS;
	return s->thunk && s->thunk(s->arg, insn->target) >= 0 ? FLOW_UNRESOLVED : FLOW_TAIL;
}

static enum flow_end end_of(const struct builder *b, const struct insn *insn)
{
	switch (insn->kind) {
	case INSN_PLAIN:
	case INSN_SYSCALL:
		return FLOW_FALLS;
	case INSN_JUMP:
		return end_of_jump(b, insn);
	case INSN_BRANCH:
		return FLOW_BRANCHES;
	case INSN_CALL:
		return end_of_call(b, insn);
	case INSN_CALL_INDIRECT:
		return FLOW_CALLS;
	case INSN_JUMP_INDIRECT:
		return FLOW_UNRESOLVED;
	case INSN_RETURN:
		return FLOW_RETURNS;
	case INSN_TRAP:
		return b->source->kernel ? FLOW_TRAPS : FLOW_STOPS;
	}
	return FLOW_BAD;
}

/* ---- decoding ---- */

static void note_pointer(struct builder *b, uint64_t address)
{
	if (address && address != b->source->entry && builder_holds(b, address))
		*vec_add(&b->pointers) = address;
}

static bool is_direct(const struct flow_insn *i)
{
	return i->end != FLOW_BAD &&
	       (i->kind == INSN_JUMP || i->kind == INSN_BRANCH || i->kind == INSN_CALL);
}

/* Where an operand lies that is relative to the instruction. */
static void note_memory(struct builder *b, struct flow_insn *f, const struct insn *insn)
{
	unsigned code = insn->behind == 4 ? 3 : insn->behind;

	note_pointer(b, insn->memory);
	if (insn->low || code > 3 || is_direct(f)) {
		f->flags |= FLOW_INSN_FIXED;
		return;
	}
	f->relative = (int32_t)(insn->memory - f->address - f->length);
	f->flags |= (uint8_t)(FLOW_INSN_MEMORY | code << 5);
}

/* One byte that is no instruction counts as one, so that the sweep goes on behind it. */
static const struct flow_insn *decode_at(struct builder *b, const struct span *s, uint32_t into)
{
	uint64_t address = s->start + into;
	struct flow_insn *f = vec_add(&b->insns);
	struct insn insn;

	b->at[s->offset + into] = (uint32_t)(b->insns.n - 1);
	*f = (struct flow_insn){.address = address, .length = 1, .end = FLOW_BAD};
	if (isa_decode(b->source->code + s->offset + into, s->size - into, address, &insn)) {
		b->bad++;
		return f;
	}
	f->length = insn.length;
	f->kind = (uint8_t)insn.kind;
	f->end = (uint8_t)end_of(b, &insn);
	if (is_direct(f))
		f->relative = (int32_t)(insn.target - address - insn.length);
	f->flags = insn.filler ? FLOW_INSN_FILLER : 0;
	if (insn.relative)
		note_memory(b, f, &insn);
	if (insn.value && b->source->absolute)
		note_pointer(b, insn.value);
	return f;
}

static void sweep(struct builder *b)
{
	vec_each (s, &b->spans) {
		for (uint32_t into = 0; into < s->size;)
			into += decode_at(b, s, into)->length;
	}
	b->swept = (uint32_t)b->insns.n;
}

static void mark(struct builder *b, uint64_t address, uint8_t flags)
{
	uint32_t i = builder_insn_at(b, address);

	if (i != GRAPH_NONE)
		b->insns.p[i].flags |= (uint8_t)(FLOW_INSN_LEADER | flags);
}

/* From the middle of an instruction until both ways meet again, or nothing goes on. */
static void decode_overlap(struct builder *b, uint64_t address)
{
	const struct span *s = span_at(b, address);

	for (uint32_t into = (uint32_t)(address - s->start); into < s->size;) {
		if (b->at[s->offset + into] != GRAPH_NONE) {
			mark(b, s->start + into, 0);
			return;
		}
		const struct flow_insn *f = decode_at(b, s, into);
		if (!flow_goes_on(f->end))
			return;
		into += f->length;
	}
}

/* The list grows while it is walked: overlapping code has targets of its own. */
static void follow_targets(struct builder *b)
{
	for (uint32_t i = 0; i < b->insns.n; i++) {
		const struct flow_insn *f = &b->insns.p[i];
		bool call = f->kind == INSN_CALL;
		if (!is_direct(f))
			continue;
		uint64_t target = flow_target(f);
		if (!builder_holds(b, target) || (call && target == b->source->entry))
			continue;
		if (builder_insn_at(b, target) == GRAPH_NONE)
			decode_overlap(b, target);
		mark(b, target, call ? FLOW_INSN_CALLED : 0);
	}
}

/* A word of a proved table is read only by the jumps through it. */
static bool is_in_table(const struct builder *b, uint64_t slot)
{
	vec_each (j, &b->jumps) {
		if (j->state == FLOW_JUMP_PROVED && j->table && !j->relative &&
			slot - j->table < (uint64_t)j->entries * j->stride)
			return true;
	}
	return false;
}

static void mark_entered(struct builder *b, const struct span *span)
{
	const struct flow_source *s = b->source;
	size_t low = 0, high = s->nentered;

	while (low < high) {
		size_t middle = (low + high) / 2;
		if (s->entered[middle] < span->start)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < s->nentered && s->entered[low] - span->start < span->size; low++)
		if (s->entered[low] != s->entry)
			mark(b, s->entered[low], FLOW_INSN_POINTER);
}

static void mark_slots(struct builder *b, const struct span *span)
{
	const struct flow_source *s = b->source;
	size_t low = 0, high = s->nslots;

	while (low < high) {
		size_t middle = (low + high) / 2;
		if (s->slots[middle].target < span->start)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < s->nslots && s->slots[low].target - span->start < span->size; low++)
		if (s->slots[low].target != s->entry && !is_in_table(b, s->slots[low].slot))
			mark(b, s->slots[low].target, FLOW_INSN_POINTER);
}

/* Pointers that code mentions are often to data; only those to whole instructions count. */
void builder_mark_pointers(struct builder *b)
{
	vec_each (i, &b->insns)
		i->flags &= (uint8_t)~FLOW_INSN_POINTER;
	vec_each (p, &b->pointers)
		mark(b, *p, FLOW_INSN_POINTER);
	vec_each (span, &b->spans) {
		mark_entered(b, span);
		mark_slots(b, span);
	}
}

void builder_decode(struct builder *b)
{
	b->at = xmalloc(((size_t)b->bytes + 1) * sizeof *b->at);
	memset(b->at, 0xff, ((size_t)b->bytes + 1) * sizeof *b->at);
	vec_reserve(&b->insns, (size_t)b->bytes / 4 + 4);
	sweep(b);
	if (builder_insn_at(b, b->source->entry) == GRAPH_NONE)
		decode_overlap(b, b->source->entry);
	mark(b, b->source->entry, 0);
	follow_targets(b);
	builder_mark_pointers(b);
	for (uint32_t i = 0; i < b->insns.n; i++)
		if (b->insns.p[i].end == FLOW_UNRESOLVED)
			*vec_add(&b->jumps) = (struct flow_jump){.insn = i};
}
