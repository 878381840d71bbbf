#include "isa/encode.h"

#include "isa/form.h"

#define REX_W 0x48

/* Opcodes of the form "register, register or memory". */
static const uint8_t opcodes[ENCODE_OPS] = {
	[ENCODE_LOAD] = 0x8b,
	[ENCODE_STORE] = 0x89,
	[ENCODE_ADDRESS] = 0x8d,
	[ENCODE_ADD] = 0x03,
	[ENCODE_ADD_TO] = 0x01,
	[ENCODE_SUB] = 0x2b,
	[ENCODE_SUB_TO] = 0x29,
	[ENCODE_COMPARE] = 0x3b,
	[ENCODE_COMPARE_TO] = 0x39,
};

/* What stands for the register where there is an immediate. */
static uint8_t extension(enum encode_op op)
{
	switch (op) {
	case ENCODE_SUB:
	case ENCODE_SUB_TO:
		return 5;
	case ENCODE_COMPARE:
	case ENCODE_COMPARE_TO:
		return 7;
	default: /* add, and mov */
		return 0;
	}
}

static bool is_short(int32_t value)
{
	return value >= -128 && value <= 127;
}

static unsigned high(unsigned reg)
{
	return reg < 16 ? reg >> 3 : 0;
}

static uint8_t scale_bits(unsigned scale)
{
	return scale == 8 ? 3 : scale == 4 ? 2 : scale == 2 ? 1 : 0;
}

static void put_prefix(struct buf *b, unsigned reg, const struct encode_memory *m)
{
	if (m->thread)
		buf_u8(b, 0x64);
	buf_u8(b, (uint8_t)(REX_W | high(reg) << 2 | high(m->index) << 1 | high(m->base)));
}

/* rsp and r12 as a base, and having an index or no base, need a SIB byte. */
static void put_base(struct buf *b, unsigned mode, unsigned reg, const struct encode_memory *m)
{
	uint8_t modrm = (uint8_t)(mode << 6 | (reg & 7) << 3);
	uint8_t index = m->index == REG_NONE ? 4 : m->index & 7;
	uint8_t base = m->base == REG_NONE ? 5 : m->base & 7;

	if (m->index == REG_NONE && m->base != REG_NONE && base != REG_RSP) {
		buf_u8(b, modrm | base);
		return;
	}
	buf_u8(b, modrm | 4);
	buf_u8(b, (uint8_t)(scale_bits(m->scale) << 6 | index << 3 | base));
}

static size_t put_memory(struct buf *b, unsigned reg, const struct encode_memory *m)
{
	size_t at;

	if (m->base == ENCODE_RIP) {
		buf_u8(b, (uint8_t)((reg & 7) << 3 | 5));
		at = b->n;
		buf_u32(b, (uint32_t)m->displacement);
		return at;
	}
	if (m->base == REG_NONE) {
		put_base(b, 0, reg, m);
		buf_u32(b, (uint32_t)m->displacement);
	} else if (!m->displacement && (m->base & 7) != REG_RBP) {
		put_base(b, 0, reg, m);
	} else if (is_short(m->displacement)) {
		put_base(b, 1, reg, m);
		buf_u8(b, (uint8_t)m->displacement);
	} else {
		put_base(b, 2, reg, m);
		buf_u32(b, (uint32_t)m->displacement);
	}
	return 0;
}

static void put_immediate(struct buf *b, bool as_byte, int32_t value)
{
	if (as_byte)
		buf_u8(b, (uint8_t)value);
	else
		buf_u32(b, (uint32_t)value);
}

size_t encode_memory(
	struct buf *b, enum encode_op op, unsigned reg, const struct encode_memory *memory)
{
	put_prefix(b, reg, memory);
	buf_u8(b, opcodes[op]);
	return put_memory(b, reg, memory);
}

void encode_registers(struct buf *b, enum encode_op op, unsigned reg, unsigned other)
{
	buf_u8(b, (uint8_t)(REX_W | high(reg) << 2 | high(other)));
	buf_u8(b, opcodes[op]);
	buf_u8(b, (uint8_t)(0xc0 | (reg & 7) << 3 | (other & 7)));
}

size_t encode_immediate(
	struct buf *b, enum encode_op op, const struct encode_memory *memory, int32_t value)
{
	bool as_byte = op != ENCODE_STORE && is_short(value);

	put_prefix(b, 0, memory);
	buf_u8(b, op == ENCODE_STORE ? 0xc7 : as_byte ? 0x83 : 0x81);
	size_t at = put_memory(b, extension(op), memory);
	put_immediate(b, as_byte, value);
	return at;
}

void encode_register_immediate(struct buf *b, enum encode_op op, unsigned reg, int32_t value)
{
	buf_u8(b, (uint8_t)(REX_W | high(reg)));
	buf_u8(b, is_short(value) ? 0x83 : 0x81);
	buf_u8(b, (uint8_t)(0xc0 | extension(op) << 3 | (reg & 7)));
	put_immediate(b, is_short(value), value);
}

void encode_constant(struct buf *b, unsigned reg, uint64_t value)
{
	if (value <= UINT32_MAX) { /* a 32-bit mov clears the rest */
		if (high(reg))
			buf_u8(b, 0x41);
		buf_u8(b, (uint8_t)(0xb8 | (reg & 7)));
		buf_u32(b, (uint32_t)value);
	} else if ((int64_t)value == (int32_t)value) {
		buf_u8(b, (uint8_t)(REX_W | high(reg)));
		buf_u8(b, 0xc7);
		buf_u8(b, (uint8_t)(0xc0 | (reg & 7)));
		buf_u32(b, (uint32_t)value);
	} else {
		buf_u8(b, (uint8_t)(REX_W | high(reg)));
		buf_u8(b, (uint8_t)(0xb8 | (reg & 7)));
		buf_u64(b, value);
	}
}

void encode_test(struct buf *b, unsigned reg)
{
	buf_u8(b, (uint8_t)(REX_W | high(reg) << 2 | high(reg)));
	buf_u8(b, 0x85);
	buf_u8(b, (uint8_t)(0xc0 | (reg & 7) << 3 | (reg & 7)));
}

size_t encode_step(struct buf *b, const struct encode_memory *memory, bool down)
{
	put_prefix(b, 0, memory);
	buf_u8(b, 0xff);
	return put_memory(b, down, memory);
}

void encode_lock(struct buf *b)
{
	buf_u8(b, 0xf0);
}

/* lahf; seto %al */
void encode_save_flags(struct buf *b, bool overflow)
{
	buf_u8(b, 0x9f);
	if (overflow)
		buf_put(b, "\x0f\x90\xc0", 3);
}

/* add $0x7f, %al overflows when al is 1; sahf leaves the overflow flag. */
void encode_restore_flags(struct buf *b, bool overflow)
{
	if (overflow)
		buf_put(b, "\x04\x7f", 2);
	buf_u8(b, 0x9e);
}

/* rdtsc; two swaps of bytes that shift rdx by 32 bits without flags; lea */
void encode_clock(struct buf *b, unsigned reg)
{
	struct encode_memory sum = {.base = REG_RAX, .index = REG_RDX, .scale = 1};

	buf_put(b, "\x0f\x31\x0f\xca\x48\x0f\xca", 7);
	encode_memory(b, ENCODE_ADDRESS, reg, &sum);
}

size_t encode_call(struct buf *b)
{
	buf_u8(b, 0xe8);
	buf_u32(b, 0);
	return b->n - 4;
}

size_t encode_jump(struct buf *b)
{
	buf_u8(b, 0xe9);
	buf_u32(b, 0);
	return b->n - 4;
}

size_t encode_branch(struct buf *b, unsigned condition)
{
	buf_u8(b, 0x0f);
	buf_u8(b, (uint8_t)(0x80 | condition));
	buf_u32(b, 0);
	return b->n - 4;
}
