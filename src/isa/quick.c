#include "isa/quick.h"

#include <string.h>

#include "isa/quick_internal.h"

/* ---- shapes ---- */

/* What follows an opcode. */
enum shape {
	UNKNOWN = 0,
	PLAIN = 1,
	MODRM = 2,
	BYTE = 4,  /* an immediate or displacement */
	WORD = 8,  /* of 32 bits */
	WIDE = 16, /* of 32 bits, or of 64 with REX.W */
};

#define ALU(n)                                                                          \
	[n] = MODRM, [n + 1] = MODRM, [n + 2] = MODRM, [n + 3] = MODRM, [n + 4] = BYTE, \
	[n + 5] = WORD

static const uint8_t shapes[256] = {
	ALU(0x00),
	ALU(0x08),
	ALU(0x10),
	ALU(0x18),
	ALU(0x20),
	ALU(0x28),
	ALU(0x30),
	ALU(0x38),
	[0x50 ... 0x5f] = PLAIN,
	[0x63] = MODRM,
	[0x68] = WORD,
	[0x6a] = BYTE,
	[0x70 ... 0x7f] = BYTE,
	[0x80] = MODRM | BYTE,
	[0x81] = MODRM | WORD,
	[0x83] = MODRM | BYTE,
	[0x84 ... 0x85] = MODRM,
	[0x88 ... 0x8b] = MODRM,
	[0x8d] = MODRM,
	[0x90] = PLAIN,
	[0xa8] = BYTE,
	[0xa9] = WORD,
	[0xb8 ... 0xbf] = WIDE,
	[0xc1] = MODRM | BYTE,
	[0xc3] = PLAIN,
	[0xc6] = MODRM | BYTE,
	[0xc7] = MODRM | WORD,
	[0xe8 ... 0xe9] = WORD,
	[0xeb] = BYTE,
	[0xf6 ... 0xf7] = MODRM,
	[0xff] = MODRM,
};

/* Behind 0x0f. */
static const uint8_t shapes2[256] = {
	[0x1f] = MODRM,
	[0x40 ... 0x4f] = MODRM,
	[0x80 ... 0x8f] = WORD,
	[0x90 ... 0x9f] = MODRM,
	[0xaf] = MODRM,
	[0xb6 ... 0xb7] = MODRM,
	[0xbe ... 0xbf] = MODRM,
};

static int32_t word_at(const uint8_t *p)
{
	int32_t word;

	memcpy(&word, p, sizeof word);
	return word;
}

/* Returns the bytes that it takes; 0: they are not there. */
static size_t take_memory(const uint8_t *p, size_t n, struct quick *q)
{
	unsigned mode = p[0] >> 6, low = p[0] & 7;
	size_t at = 1;

	q->memory = true;
	q->base = (uint8_t)(low | (q->rex & 1) << 3);
	if (low == 4) {
		if (n < 2)
			return 0;
		uint8_t index = (uint8_t)((p[1] >> 3 & 7) | (q->rex & 2) << 2);
		q->base = (uint8_t)((p[1] & 7) | (q->rex & 1) << 3);
		q->index = index == 4 ? REG_NONE : index;
		q->scale = (uint8_t)(1 << (p[1] >> 6));
		low = p[1] & 7;
		at = 2;
	} else if (mode == 0 && low == 5) {
		q->rip = true;
	}
	bool bare = mode == 0 && low == 5;
	if (bare)
		q->base = REG_NONE;
	size_t size = mode == 1 ? 1 : mode == 2 || bare ? 4 : 0;
	if (n < at + size)
		return 0;
	q->displacement = size == 4 ? word_at(p + at) : size ? (int8_t)p[at] : 0;
	return at + size;
}

static bool take_immediate(const uint8_t *p, size_t n, uint8_t shape, struct quick *q)
{
	q->immediate_size = shape & BYTE ? 1 : shape & (WORD | WIDE) ? 4 : 0;
	if (shape & WIDE && q->rex & 8)
		q->immediate_size = 8;
	if (n < q->immediate_size)
		return false;
	if (q->immediate_size == 8)
		memcpy(&q->immediate, p, 8);
	else
		q->immediate = q->immediate_size == 4   ? word_at(p)
			       : q->immediate_size == 1 ? (int8_t)p[0]
							: 0;
	return true;
}

/* Two opcodes have an immediate for some of their extensions. */
static uint8_t whole_shape(uint8_t shape, const struct quick *q)
{
	if ((q->opcode == 0xf6 || q->opcode == 0xf7) && (q->reg & 7) == 0)
		return shape | (q->opcode == 0xf6 ? BYTE : WORD);
	return shape;
}

/* Opcodes that are something else for some extensions. */
static bool is_expected(const struct quick *q)
{
	unsigned extension = q->reg & 7;

	switch (q->opcode) {
	case 0x63:
		return q->rex & 8;
	case 0x8d:
		return q->memory;
	case 0x90:
		return !q->rex;
	case 0xc1:
		return extension == 4 || extension == 5 || extension == 7;
	case 0xc6:
	case 0xc7:
		return extension == 0;
	case 0xf6:
	case 0xf7:
		return extension == 0 || extension == 2 || extension == 3;
	case 0xff:
		return extension != 3 && extension != 5 && extension != 7;
	default:
		return true;
	}
}

bool quick_take_apart(const uint8_t *code, size_t n, struct quick *q)
{
	size_t at = 0;
	uint8_t shape;

	*q = (struct quick){.base = REG_NONE, .index = REG_NONE};
	if (n && (code[0] & 0xf0) == 0x40)
		q->rex = code[at++];
	if (at < n && code[at] == 0x0f) {
		if (++at >= n)
			return false;
		q->opcode = (uint16_t)(0x100 | code[at]);
		shape = shapes2[code[at++]];
	} else {
		if (at >= n)
			return false;
		q->opcode = code[at];
		shape = shapes[code[at++]];
	}
	if (shape == UNKNOWN)
		return false;
	if (shape & MODRM) {
		if (at >= n)
			return false;
		q->reg = (uint8_t)((code[at] >> 3 & 7) | (q->rex & 4) << 1);
		q->rm = (uint8_t)((code[at] & 7) | (q->rex & 1) << 3);
		size_t size = code[at] >= 0xc0 ? 1 : take_memory(code + at, n - at, q);
		if (!size)
			return false;
		at += size;
		shape = whole_shape(shape, q);
	}
	q->behind = (uint8_t)at;
	if (!take_immediate(code + at, n - at, shape, q))
		return false;
	q->length = (uint8_t)(at + q->immediate_size);
	return is_expected(q);
}

/* ---- what it is ---- */

enum insn_kind quick_kind(const struct quick *q)
{
	unsigned opcode = q->opcode, extension = q->reg & 7;

	if ((opcode & ~15u) == 0x70 || (opcode & ~15u) == 0x180)
		return INSN_BRANCH;
	switch (opcode) {
	case 0xc3:
		return INSN_RETURN;
	case 0xe8:
		return INSN_CALL;
	case 0xe9:
	case 0xeb:
		return INSN_JUMP;
	case 0xff:
		return extension == 2   ? INSN_CALL_INDIRECT
		       : extension == 4 ? INSN_JUMP_INDIRECT
					: INSN_PLAIN;
	default:
		return INSN_PLAIN;
	}
}

bool quick_decode(const uint8_t *code, size_t n, uint64_t address, struct insn *out)
{
	struct quick q;

	if (!quick_take_apart(code, n, &q))
		return false;
	uint64_t next = address + q.length;
	*out = (struct insn){.address = address, .length = q.length, .kind = quick_kind(&q)};
	if (out->kind == INSN_BRANCH || out->kind == INSN_JUMP || out->kind == INSN_CALL)
		out->target = next + (uint64_t)q.immediate;
	else if (q.immediate_size >= 4)
		out->value = (uint64_t)q.immediate;
	out->filler = q.opcode == 0x90 || q.opcode == 0x11f;
	if (q.rip) {
		out->relative = true;
		out->memory = next + (uint64_t)(int64_t)q.displacement;
		out->behind = (uint8_t)(q.length - q.behind);
	}
	return true;
}
