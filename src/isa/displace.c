#include "isa/displace.h"

#include <errno.h>
#include <string.h>

#include "isa/zydis_internal.h"

static bool decode(const void *code, size_t n, struct decoded *d)
{
	ZydisDecoder decoder;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	return ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code, n, &d->in, d->ops));
}

static void set_memory(const ZydisDecodedOperand *op, struct isa_memory *out)
{
	out->present = true;
	out->other_space =
		op->mem.segment == ZYDIS_REGISTER_FS || op->mem.segment == ZYDIS_REGISTER_GS;
	out->base = number_of(op->mem.base);
	out->index = number_of(op->mem.index);
	out->displacement = op->mem.disp.has_displacement ? op->mem.disp.value : 0;
}

int isa_memory(const void *code, size_t n, struct isa_memory *out)
{
	struct decoded d;

	*out = (struct isa_memory){.base = REG_NONE, .index = REG_NONE};
	if (!decode(code, n, &d))
		return -EBADMSG;
	for (unsigned i = 0; i < d.in.operand_count_visible; i++) {
		const ZydisDecodedOperand *op = &d.ops[i];
		if (op->type == ZYDIS_OPERAND_TYPE_MEMORY)
			set_memory(op, out);
		if (op->type != ZYDIS_OPERAND_TYPE_REGISTER)
			continue;
		uint8_t reg = number_of(op->reg.value);
		if (reg != REG_NONE)
			out->operands |= (uint16_t)(1u << reg);
	}
	return 0;
}

static const ZydisDecodedOperand *memory_of(const struct decoded *d)
{
	for (unsigned i = 0; i < d->in.operand_count_visible; i++)
		if (d->ops[i].type == ZYDIS_OPERAND_TYPE_MEMORY)
			return &d->ops[i];
	return NULL;
}

/* The mode of 32 bits, then what stood before the displacement and what stood behind it. */
size_t isa_displace(const void *code, size_t n, int64_t by, uint8_t out[ISA_DISPLACED_MAX])
{
	const uint8_t *bytes = code;
	struct decoded d;

	if (!decode(code, n, &d) || !(d.in.attributes & ZYDIS_ATTRIB_HAS_MODRM))
		return 0;
	const ZydisDecodedOperand *op = memory_of(&d);
	if (!op || op->mem.base == ZYDIS_REGISTER_NONE || op->mem.base == ZYDIS_REGISTER_RIP)
		return 0;
	int64_t value = (op->mem.disp.has_displacement ? op->mem.disp.value : 0) + by;
	size_t modrm = d.in.raw.modrm.offset, size = d.in.raw.disp.size / 8;
	size_t at = modrm + 1 + (d.in.attributes & ZYDIS_ATTRIB_HAS_SIB ? 1 : 0);
	if (value != (int32_t)value || d.in.raw.modrm.mod == 3)
		return 0;
	int32_t narrow = (int32_t)value;
	memcpy(out, bytes, at);
	out[modrm] = (uint8_t)((out[modrm] & 0x3f) | 0x80);
	memcpy(out + at, &narrow, sizeof narrow);
	memcpy(out + at + 4, bytes + at + size, d.in.length - at - size);
	return d.in.length - size + 4;
}
