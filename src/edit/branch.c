#include <string.h>

#include "edit/edit_internal.h"

enum { JUMP_SHORT = 0xeb, JUMP_LONG = 0xe9 };

/* Where the opcode is: behind hints, bnd and size prefixes. */
static unsigned prefixes(const uint8_t *code, unsigned length)
{
	unsigned n = 0;

	while (n + 1 < length &&
		(code[n] == 0x2e || code[n] == 0x3e || code[n] == 0xf2 || code[n] == 0x66 ||
			code[n] == 0x67 || (code[n] & 0xf0) == 0x40))
		n++;
	return n;
}

static bool is_long(const uint8_t *op, unsigned n)
{
	if (n == 5)
		return op[0] == JUMP_LONG || op[0] == 0xe8;
	return n == 6 &&
	       ((op[0] == 0x0f && (op[1] & 0xf0) == 0x80) || (op[0] == 0xc7 && op[1] == 0xf8));
}

enum branch_shape branch_shape(const uint8_t *code, const struct flow_insn *i)
{
	unsigned skip = prefixes(code, i->length), n = i->length - skip;
	const uint8_t *op = code + skip;
	int32_t far;

	if (is_long(op, n)) {
		memcpy(&far, code + i->length - 4, 4);
		return far == i->relative ? BRANCH_LONG : BRANCH_STRANGE;
	}
	if (n != 2 || (int8_t)op[1] != i->relative)
		return BRANCH_STRANGE;
	if (op[0] == JUMP_SHORT || (op[0] & 0xf0) == 0x70)
		return BRANCH_SHORT;
	return op[0] >= 0xe0 && op[0] <= 0xe3 ? BRANCH_COUNT : BRANCH_STRANGE;
}

uint32_t branch_size(const uint8_t *code, const struct flow_insn *i, bool grown)
{
	if (!grown)
		return i->length;
	switch (branch_shape(code, i)) {
	case BRANCH_SHORT:
		return i->length - 2u + (code[i->length - 2] == JUMP_SHORT ? 5 : 6);
	case BRANCH_COUNT:
		return i->length + 2u + 5u;
	default:
		return i->length;
	}
}

static void put_far(uint8_t *end, uint64_t at, uint64_t target)
{
	int32_t far = (int32_t)(target - at);

	memcpy(end - 4, &far, 4);
}

void jump_write(bool grown, uint64_t at, uint64_t target, uint8_t *out)
{
	if (grown) {
		out[0] = JUMP_LONG;
		put_far(out + 5, at + 5, target);
	} else {
		out[0] = JUMP_SHORT;
		out[1] = (uint8_t)(target - at - 2);
	}
}

/* The long forms of short branches keep their prefixes. */
static void write_grown(
	const uint8_t *code, const struct flow_insn *i, uint64_t at, uint64_t target, uint8_t *out)
{
	unsigned skip = i->length - 2u;
	uint8_t op = code[skip];
	uint32_t size = branch_size(code, i, true);

	memcpy(out, code, skip);
	if (op == JUMP_SHORT) {
		out[skip] = JUMP_LONG;
	} else {
		out[skip] = 0x0f;
		out[skip + 1] = (uint8_t)(0x80 | (op & 0x0f));
	}
	put_far(out + size, at + size, target);
}

/* Those that count have only a short form: over a jump that goes on, to one that goes far. */
static void write_island(
	const uint8_t *code, const struct flow_insn *i, uint64_t at, uint64_t target, uint8_t *out)
{
	unsigned n = i->length;

	memcpy(out, code, n - 1u);
	out[n - 1] = 2;
	jump_write(false, 0, 7, out + n);
	jump_write(true, at + n + 2, target, out + n + 2);
}

void branch_write(const uint8_t *code, const struct flow_insn *i, bool grown, uint64_t at,
	uint64_t target, uint8_t *out)
{
	enum branch_shape shape = branch_shape(code, i);

	if (grown && shape == BRANCH_SHORT) {
		write_grown(code, i, at, target, out);
	} else if (grown && shape == BRANCH_COUNT) {
		write_island(code, i, at, target, out);
	} else {
		memcpy(out, code, i->length);
		if (shape == BRANCH_LONG)
			put_far(out + i->length, at + i->length, target);
		else
			out[i->length - 1] = (uint8_t)(target - at - i->length);
	}
}

/* Where the condition is told: in the low bits of the last byte of the opcode. */
static const uint8_t *condition_of(const uint8_t *code, const struct flow_insn *i)
{
	enum branch_shape shape = branch_shape(code, i);
	const uint8_t *op = code + i->length - (shape == BRANCH_LONG ? 5 : 2);

	if (shape == BRANCH_LONG)
		return i->length >= 6 && op[-1] == 0x0f && (*op & 0xf0) == 0x80 ? op : NULL;
	return shape == BRANCH_SHORT && (*op & 0xf0) == 0x70 ? op : NULL;
}

bool branch_turns(const uint8_t *code, const struct flow_insn *i)
{
	return condition_of(code, i) != NULL;
}

uint32_t branch_turned_size(bool grown)
{
	return grown ? 6 : 2;
}

void branch_write_turned(const uint8_t *code, const struct flow_insn *i, bool grown, uint64_t at,
	uint64_t target, uint8_t *out)
{
	uint8_t condition = (*condition_of(code, i) ^ 1) & 0x0f;
	uint32_t size = branch_turned_size(grown);

	if (grown) {
		out[0] = 0x0f;
		out[1] = 0x80 | condition;
		put_far(out + size, at + size, target);
	} else {
		out[0] = 0x70 | condition;
		out[1] = (uint8_t)(target - at - size);
	}
}
