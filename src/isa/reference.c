#include "isa/reference.h"

#include "isa/zydis_internal.h"

/* Whether memory is meant that the code names, and somebody touches. */
static bool is_named(const struct decoded *d, const ZydisDecodedOperand *op)
{
	if (op->type != ZYDIS_OPERAND_TYPE_MEMORY || op->mem.type == ZYDIS_MEMOP_TYPE_AGEN)
		return false;
	switch (d->in.meta.category) {
	case ZYDIS_CATEGORY_STRINGOP:
		return true;
	case ZYDIS_CATEGORY_NOP:
	case ZYDIS_CATEGORY_WIDENOP:
	case ZYDIS_CATEGORY_PREFETCH:
	case ZYDIS_CATEGORY_PREFETCHWT1:
		return false;
	default:
		return op->visibility == ZYDIS_OPERAND_VISIBILITY_EXPLICIT ||
		       d->in.mnemonic == ZYDIS_MNEMONIC_XLAT ||
		       d->in.mnemonic == ZYDIS_MNEMONIC_MASKMOVQ ||
		       d->in.mnemonic == ZYDIS_MNEMONIC_MASKMOVDQU;
	}
}

static bool is_told(const struct decoded *d, const ZydisDecodedOperand *op)
{
	const ZydisDecodedOperandMem *mem = &op->mem;

	if (mem->type != ZYDIS_MEMOP_TYPE_MEM || d->in.address_width != 64 ||
		mem->segment == ZYDIS_REGISTER_GS || d->in.mnemonic == ZYDIS_MNEMONIC_XLAT)
		return false;
	return d->in.mnemonic != ZYDIS_MNEMONIC_POP || mem->base != ZYDIS_REGISTER_RSP;
}

static struct reference reference_of(
	const struct decoded *d, const ZydisDecodedOperand *op, uint64_t address)
{
	const ZydisDecodedOperandMem *mem = &op->mem;
	struct reference r = {.base = number_of(mem->base),
		.index = number_of(mem->index),
		.scale = mem->scale ? mem->scale : 1,
		.relative = mem->base == ZYDIS_REGISTER_RIP,
		.thread = mem->segment == ZYDIS_REGISTER_FS,
		.loads = op->actions & ZYDIS_OPERAND_ACTION_MASK_READ,
		.stores = op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE,
		.size = (uint16_t)(op->size / 8),
		.displacement = (uint64_t)mem->disp.value};

	if (r.relative)
		r.displacement += address + d->in.length;
	return r;
}

unsigned isa_references(const void *code, size_t n, uint64_t address,
	struct reference out[REFERENCES_MAX], unsigned *untold)
{
	ZydisDecoder decoder;
	struct decoded d;
	unsigned found = 0;

	if (untold)
		*untold = 0;
	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	if (ZYAN_FAILED(ZydisDecoderDecodeFull(&decoder, code, n, &d.in, d.ops)))
		return 0;
	for (unsigned i = 0; i < d.in.operand_count; i++) {
		if (!is_named(&d, &d.ops[i]))
			continue;
		if (found < REFERENCES_MAX && is_told(&d, &d.ops[i]))
			out[found++] = reference_of(&d, &d.ops[i], address);
		else if (untold)
			++*untold;
	}
	return found;
}
