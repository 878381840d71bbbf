/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR Apache-2.0 */
/*
 * A short way for the instructions that most code is made of, where nobody is going to run them
 * again. Included by interp_run.h only.
 *
 * In the sampling interrupt the processor cannot foresee the interpreter's branches, as each burst
 * is another program's. So an entry of the table says in its bits what is done, and masks do where
 * they are short. What does not fit is left, with nothing changed, to interp_one.
 */
#ifndef CULPRIT_ISA_INTERP_QUICK_H
#define CULPRIT_ISA_INTERP_QUICK_H

#include "isa/interp_decode.h"
#include "isa/interp_state.h"

/* The lowest three bits are the operation: as in the opcodes of arithmetic, or enum interp_way. */
#define INTERP_Q_MODRM     0x00000008u
#define INTERP_Q_TO_REG    0x00000010u /* to modrm.reg from rm, not the other way */
#define INTERP_Q_IMMEDIATE 0x00000020u /* the source is one */
#define INTERP_Q_BYTE      0x00000040u /* so long is it */
#define INTERP_Q_PLAIN     0x00000080u /* modrm.reg has to be 0 */
#define INTERP_Q_LONG      0x00000100u
#define INTERP_Q_COPIES    0x00000200u
#define INTERP_Q_COMPARES  0x00000400u /* the result goes nowhere */
#define INTERP_Q_WIDE      0x00000400u /* of those that copy: only with REX.W */
#define INTERP_Q_SHORT     0x00000800u /* the register is in the opcode */
#define INTERP_Q_GROUP     0x00001000u /* the operation is in modrm.reg */
#define INTERP_Q_LEA       0x00002000u
#define INTERP_Q_LOADS     0x00004000u /* a memory operand is read */
#define INTERP_Q_WAY       0x00008000u /* enum interp_way */
#define INTERP_Q_WIDENS    0x00400000u /* REX.W makes it 64 bits */
#define INTERP_Q_SIGNED    0x00800000u /* the source is sign extended */
#define INTERP_Q_SHIFTS    0x01000000u
#define INTERP_Q_CONDITION 0x02000000u /* setcc, cmovcc */

/* How far operand and source are shifted up to begin at bit 63. */
#define INTERP_Q_UP(bits)   ((64u - (bits)) << 16)
#define INTERP_Q_FROM(bits) ((64u - (bits)) << 26)

#define INTERP_Q_8 (INTERP_Q_UP(8) | INTERP_Q_FROM(8))
#define INTERP_Q_V (INTERP_Q_UP(32) | INTERP_Q_WIDENS)

enum interp_way {
	INTERP_W_JCC,
	INTERP_W_JMP,
	INTERP_W_NOP,
	INTERP_W_CALL,
	INTERP_W_RET,
	INTERP_W_PUSH,
	INTERP_W_POP,
	INTERP_W_INDIRECT /* call or jmp, by modrm.reg */
};

#define INTERP_Q_EV (INTERP_Q_MODRM | INTERP_Q_V)
#define INTERP_Q_EB (INTERP_Q_MODRM | INTERP_Q_8)

#define INTERP_Q_ARITHMETIC(op)                                                          \
	[(op)*8 + 0] = (op) | INTERP_Q_EB | INTERP_Q_LOADS,                              \
		  [(op)*8 + 1] = (op) | INTERP_Q_EV | INTERP_Q_LOADS,                    \
		  [(op)*8 + 2] = (op) | INTERP_Q_EB | INTERP_Q_LOADS | INTERP_Q_TO_REG,  \
		  [(op)*8 + 3] = (op) | INTERP_Q_EV | INTERP_Q_LOADS | INTERP_Q_TO_REG,  \
		  [(op)*8 + 4] = (op) | INTERP_Q_8 | INTERP_Q_IMMEDIATE | INTERP_Q_BYTE, \
		  [(op)*8 + 5] = (op) | INTERP_Q_V | INTERP_Q_IMMEDIATE | INTERP_Q_LONG

#define INTERP_Q_TIMES8(n, what)                                                  \
	[n] = (what), [(n) + 1] = (what), [(n) + 2] = (what), [(n) + 3] = (what), \
	[(n) + 4] = (what), [(n) + 5] = (what), [(n) + 6] = (what), [(n) + 7] = (what)

#define INTERP_Q_MOVX (INTERP_Q_EV | INTERP_Q_COPIES | INTERP_Q_LOADS | INTERP_Q_TO_REG)

#define INTERP_Q_SHIFT (INTERP_Q_EV | INTERP_Q_LOADS | INTERP_Q_GROUP | INTERP_Q_SHIFTS)
#define INTERP_Q_TESTS (INTERP_Q_LOADS | INTERP_Q_COMPARES | INTERP_Q_IMMEDIATE | INTERP_Q_PLAIN)

/* Opcodes of one byte, then those of two. 0: none of ours. */
static const u32 interp_quick_entry[512] = {
	INTERP_Q_ARITHMETIC(0),
	INTERP_Q_ARITHMETIC(1),
	INTERP_Q_ARITHMETIC(4),
	INTERP_Q_ARITHMETIC(5),
	INTERP_Q_ARITHMETIC(6),
	INTERP_Q_ARITHMETIC(7),
	INTERP_Q_TIMES8(0x50, INTERP_Q_WAY | INTERP_Q_SHORT | INTERP_W_PUSH),
	INTERP_Q_TIMES8(0x58, INTERP_Q_WAY | INTERP_Q_SHORT | INTERP_W_POP),
	[0x63] = INTERP_Q_MOVX | INTERP_Q_FROM(32) | INTERP_Q_SIGNED,
	INTERP_Q_TIMES8(0x70, INTERP_Q_WAY | INTERP_Q_BYTE | INTERP_W_JCC),
	INTERP_Q_TIMES8(0x78, INTERP_Q_WAY | INTERP_Q_BYTE | INTERP_W_JCC),
	[0x80] = INTERP_Q_GROUP | INTERP_Q_EB | INTERP_Q_LOADS | INTERP_Q_IMMEDIATE | INTERP_Q_BYTE,
	[0x81] = INTERP_Q_GROUP | INTERP_Q_EV | INTERP_Q_LOADS | INTERP_Q_IMMEDIATE | INTERP_Q_LONG,
	[0x83] = INTERP_Q_GROUP | INTERP_Q_EV | INTERP_Q_LOADS | INTERP_Q_IMMEDIATE | INTERP_Q_BYTE,
	[0x84] = 4 | INTERP_Q_EB | INTERP_Q_LOADS | INTERP_Q_COMPARES,
	[0x85] = 4 | INTERP_Q_EV | INTERP_Q_LOADS | INTERP_Q_COMPARES,
	[0x88] = INTERP_Q_EB | INTERP_Q_COPIES,
	[0x89] = INTERP_Q_EV | INTERP_Q_COPIES,
	[0x8a] = INTERP_Q_EB | INTERP_Q_COPIES | INTERP_Q_LOADS | INTERP_Q_TO_REG,
	[0x8b] = INTERP_Q_EV | INTERP_Q_COPIES | INTERP_Q_LOADS | INTERP_Q_TO_REG,
	[0x8d] = INTERP_Q_EV | INTERP_Q_COPIES | INTERP_Q_LEA | INTERP_Q_TO_REG,
	[0x98] = INTERP_Q_V | INTERP_Q_COPIES | INTERP_Q_FROM(32) | INTERP_Q_SIGNED | INTERP_Q_WIDE,
	[0xa8] = 4 | INTERP_Q_8 | INTERP_Q_IMMEDIATE | INTERP_Q_BYTE | INTERP_Q_COMPARES,
	[0xa9] = 4 | INTERP_Q_V | INTERP_Q_IMMEDIATE | INTERP_Q_LONG | INTERP_Q_COMPARES,
	INTERP_Q_TIMES8(0xb8, INTERP_Q_UP(32) | INTERP_Q_COPIES | INTERP_Q_SHORT |
				      INTERP_Q_IMMEDIATE | INTERP_Q_LONG),
	[0xc1] = INTERP_Q_SHIFT | INTERP_Q_BYTE,
	[0xd1] = INTERP_Q_SHIFT,
	[0xd3] = INTERP_Q_SHIFT,
	[0xc6] =
		INTERP_Q_EB | INTERP_Q_COPIES | INTERP_Q_IMMEDIATE | INTERP_Q_BYTE | INTERP_Q_PLAIN,
	[0xc7] =
		INTERP_Q_EV | INTERP_Q_COPIES | INTERP_Q_IMMEDIATE | INTERP_Q_LONG | INTERP_Q_PLAIN,
	[0xf6] = 4 | INTERP_Q_EB | INTERP_Q_TESTS | INTERP_Q_BYTE,
	[0xf7] = 4 | INTERP_Q_EV | INTERP_Q_TESTS | INTERP_Q_LONG,
	[0xc3] = INTERP_Q_WAY | INTERP_W_RET,
	[0xe8] = INTERP_Q_WAY | INTERP_Q_LONG | INTERP_W_CALL,
	[0xe9] = INTERP_Q_WAY | INTERP_Q_LONG | INTERP_W_JMP,
	[0xeb] = INTERP_Q_WAY | INTERP_Q_BYTE | INTERP_W_JMP,
	INTERP_Q_TIMES8(0x180, INTERP_Q_WAY | INTERP_Q_LONG | INTERP_W_JCC),
	INTERP_Q_TIMES8(0x188, INTERP_Q_WAY | INTERP_Q_LONG | INTERP_W_JCC),
	[0xff] = INTERP_Q_WAY | INTERP_Q_MODRM | INTERP_W_INDIRECT,
	[0x11f] = INTERP_Q_WAY | INTERP_Q_MODRM | INTERP_W_NOP,
	INTERP_Q_TIMES8(0x140, INTERP_Q_MOVX | INTERP_Q_CONDITION),
	INTERP_Q_TIMES8(0x148, INTERP_Q_MOVX | INTERP_Q_CONDITION),
	INTERP_Q_TIMES8(0x190, INTERP_Q_EB | INTERP_Q_COPIES | INTERP_Q_CONDITION),
	INTERP_Q_TIMES8(0x198, INTERP_Q_EB | INTERP_Q_COPIES | INTERP_Q_CONDITION),
	[0x1b6] = INTERP_Q_MOVX | INTERP_Q_FROM(8),
	[0x1b7] = INTERP_Q_MOVX | INTERP_Q_FROM(16),
	[0x1be] = INTERP_Q_MOVX | INTERP_Q_FROM(8) | INTERP_Q_SIGNED,
	[0x1bf] = INTERP_Q_MOVX | INTERP_Q_FROM(16) | INTERP_Q_SIGNED,
};

/* All bits, or none. */
INTERP_INLINE u64 interp_if(u64 bits, u32 n)
{
	return 0 - (bits >> n & 1);
}

/* An instruction: first what has been taken from its code, and what is left of that. */
struct interp_quick {
	u64 code;
	u32 at, rex;
	u32 entry, op;     /* of the table; the operation */
	u32 opcode, modrm; /* modrm is 0xff where there is none */
	u32 reg, rm, up;
	u64 address, immediate, next;
};

/* Eight bytes of which some may have been stored; negative: not all are known. */
INTERP_FN int interp_quick_stored(struct interp *m, u64 address)
{
	if (!m || !interp_canonical(address))
		return -1;
	interp_load(m, address, 8);
	return m->loaded_unknown ? -1 : 0;
}

/* Eight bytes from any address; negative: by the long way. */
INTERP_INLINE int interp_quick_load(struct interp *m, u64 address, u64 *word)
{
	if ((m->filter >> (address >> 3 & 63) | m->filter >> ((address + 7) >> 3 & 63)) & 1) {
		if (interp_quick_stored(m, address) < 0)
			return -1;
		*word = m->loaded;
		return 0;
	}
	return interp_memory_code(m, address, word);
}

/* The memory operand; returns 1 where it still is relative to the next instruction. */
INTERP_INLINE u32 interp_quick_operand(const struct interp *m, struct interp_quick *q)
{
	u32 modrm = q->modrm, mod = modrm >> 6, has_sib = interp_is_zero((modrm & 7) ^ 4);
	u32 sib = (u32)q->code & 255 & (0 - has_sib);
	u32 base = ((modrm & 7) ^ has_sib << 2) | (sib & 7),
	    bare = interp_is_zero(mod | (base ^ 5));
	u32 index = (sib >> 3 & 7) | (q->rex & 2) << 2, size = (0x410u >> mod * 4 & 5) | bare << 2;
	u64 indexed = (u64)interp_is_zero(index ^ 4) - has_sib; /* all bits if it is */

	q->code >>= has_sib * 8;
	q->address = (m->r[base | (q->rex & 1) << 3] & ((u64)bare - 1)) +
		     (m->r[index] << (sib >> 6) & indexed) + interp_signed(q->code, size);
	q->code >>= size * 8;
	q->at += has_sib + size;
	return bare & ~has_sib;
}

/* push, pop, call and ret. */
INTERP_INLINE int interp_quick_stack(struct interp *m, const struct interp_quick *q)
{
	u64 rsp = m->r[INTERP_RSP], next = q->next, word;
	u32 way = q->op;

	if (way == INTERP_W_RET || way == INTERP_W_POP) {
		if (interp_quick_load(m, rsp, &word) < 0)
			return -1;
		if (way == INTERP_W_RET && !interp_canonical(word))
			return -1;
		m->r[INTERP_RSP] = rsp + 8;
		if (way == INTERP_W_RET)
			next = word;
		else
			m->r[q->rm] = word;
	} else {
		if (!interp_canonical(rsp - 8))
			return -1;
		word = way == INTERP_W_PUSH ? m->r[q->rm] : next;
		if (interp_store(m, rsp - 8, 8, word, 0) < 0)
			return -1;
		m->r[INTERP_RSP] = rsp - 8;
		if (way == INTERP_W_CALL)
			next += q->immediate;
	}
	m->ip = next;
	return way == INTERP_W_RET;
}

/* Of shifted operands, and the flags; by bits that tell what it is instead of branches. */
INTERP_INLINE u64 interp_quick_compute(struct interp *m, u32 op, u64 a, u64 b, u32 up)
{
	/* A bit for each operation: subtracts, is arithmetic, has what both have, what one has. */
	u64 subtracts = interp_if(0xa0, op), sums = interp_if(0xa1, op);
	u64 x = a << up, y = b << up, other = y ^ subtracts, sum = x + other - subtracts, all;

	all = (sum & sums) | (x & y & interp_if(0x12, op)) | ((x ^ y) & interp_if(0x42, op));
	m->carry = (((x & other) | ((x | other) & ~all)) ^ subtracts) >> 63 & sums;
	m->overflow = ((x ^ all) & (other ^ all)) >> 63 & sums;
	m->zero = m->sign = all;
	all >>= up;
	m->parity = all;
	m->adjust = (a ^ b ^ all) & sums;
	m->unknown_flags = (m->unknown_flags & ~INTERP_FLAGS) | (INTERP_AF & ~(u32)sums);
	return all;
}

/* shl, shr and sar by one bit or more. */
INTERP_INLINE u64 interp_quick_shift(struct interp *m, u32 op, u64 a, u32 n, u32 up)
{
	u64 x = a << up, value, last; /* what was shifted out is the last one's lowest bit */

	if (op == 7) {
		last = (u64)((s64)x >> up >> (n - 1));
		value = (u64)((s64)last >> 1) << up >> up;
		m->overflow = 0;
	} else if (op == 5) {
		last = x >> up >> (n - 1);
		value = last >> 1;
		m->overflow = x >> 63;
	} else {
		last = x >> (64 - n);
		value = x << n >> up;
		m->overflow = (x << n >> 63) ^ (last & 1);
	}
	m->carry = last & 1;
	m->zero = m->sign = value << up;
	m->parity = value;
	m->unknown_flags = (m->unknown_flags & ~INTERP_FLAGS) | INTERP_AF | (n > 1 ? INTERP_OF : 0);
	return value;
}

/* jmp, jcc, and nop. */
INTERP_INLINE int interp_quick_jump(struct interp *m, const struct interp_quick *q)
{
	u32 condition = q->op & 1;

	if (q->op == INTERP_W_JCC)
		condition = interp_condition(m, q->opcode);
	if (condition == 2)
		return -1;
	m->ip = q->next + (q->immediate & (0 - (u64)condition));
	return q->op == INTERP_W_JCC;
}

/* What the entry does not tell from ours: adc and sbb, rotations; a long immediate; cwde; lea of a
 * register; others of a group. */
INTERP_INLINE u32 interp_quick_refuses(const struct interp_quick *q)
{
	const u32 wide = INTERP_Q_COPIES | INTERP_Q_WIDE;
	u32 entry = q->entry;

	if (entry & (INTERP_Q_SHORT | INTERP_Q_LEA | INTERP_Q_PLAIN | INTERP_Q_WIDE))
		return (entry & INTERP_Q_SHORT && q->rex & 8) ||
		       ((entry & wide) == wide && !(q->rex & 8)) ||
		       (entry & INTERP_Q_LEA && q->modrm >= 0xc0) ||
		       (entry & INTERP_Q_PLAIN && q->modrm & 0x38);
	return (entry & INTERP_Q_SHIFTS ? 0x4fu : 0x0cu) >> q->op & 1;
}

/* One of ah, ch, dh and bh takes part: byte operands without REX. */
INTERP_INLINE u32 interp_quick_is_high(const struct interp_quick *q)
{
	if (!(q->entry & INTERP_Q_MODRM))
		return 0;
	return (q->modrm & 0xc4) == 0xc4 ||
	       (q->up == 56 && !(q->entry & INTERP_Q_IMMEDIATE) && q->modrm & 0x20);
}

/* call and jmp through a register or memory. */
INTERP_FN int interp_quick_indirect(struct interp *m, u32 modrm, u32 rm, u64 next, u64 address)
{
	u64 target, rsp;

	if (!m || ((modrm & 0x38) != 0x20 && (modrm & 0x38) != 0x10))
		return -1;
	target = m->r[rm & 15];
	rsp = m->r[INTERP_RSP] - 8;
	if (modrm < 0xc0 && interp_quick_load(m, address, &target) < 0)
		return -1;
	if (!interp_canonical(target))
		return -1;
	if ((modrm & 0x38) == 0x10) {
		if (!interp_canonical(rsp) || interp_store(m, rsp, 8, next, 0) < 0)
			return -1;
		m->r[INTERP_RSP] = rsp;
	}
	m->ip = target;
	return 1;
}

/* What the table does not have. */
INTERP_INLINE int interp_quick_other(struct interp *m, u64 code)
{
	if ((u32)code != 0xfa1e0ff3) /* endbr64 */
		return -1;
	m->ip += 4;
	return 0;
}

/* The opcode and its entry; 0: none. */
INTERP_INLINE u32 interp_quick_opcode(struct interp_quick *q, u64 code)
{
	u32 b = ((u32)code & 255) ^ 0x40, has_rex = (u32)(((u64)b - 16) >> 63), escape;

	q->rex = (b | 16) & (0 - has_rex);
	code >>= has_rex * 8;
	escape = interp_is_zero(((u32)code & 255) ^ 0x0f);
	code >>= escape * 8;
	q->opcode = (u32)code & 255;
	q->code = code >> 8;
	q->at = has_rex + escape + 1;
	q->entry = interp_quick_entry[q->opcode | escape << 8];
	return q->entry;
}

/* Operands of 16 bits. Returns the bytes of the immediate, or more than there may be. */
INTERP_INLINE u32 interp_quick_narrow(struct interp_quick *q, u32 size)
{
	u32 entry = q->entry;

	if (entry & (INTERP_Q_SHIFTS | INTERP_Q_SHORT) ||
		(entry & INTERP_Q_WAY && q->op != INTERP_W_NOP))
		return 16;
	q->at++;
	q->up |= q->up >> 1 & 16;
	return size >> (size >> 2 & ~q->rex >> 3); /* without REX.W 4 become 2 */
}

/* Everything but the operands' values; negative: none of ours. */
INTERP_INLINE int interp_quick_decode(struct interp *m, struct interp_quick *q, u32 narrow)
{
	u32 entry = q->entry, size = entry >> 6 & 5, relative = 0;

	q->op = entry & 7;
	q->rm = ((q->opcode & 7) | (q->rex & 1) << 3) & (0 - (entry >> 11 & 1)); /* or rax */
	q->reg = 0;
	q->modrm = 0xff;
	q->address = 0;
	if (entry & INTERP_Q_MODRM) {
		q->modrm = (u32)q->code & 255;
		q->code >>= 8;
		q->at++;
		q->reg = q->modrm >> 3 & 7;
		q->op |= q->reg & (0 - (entry >> 12 & 1));
		q->reg |= (q->rex & 4) << 1;
		q->rm = (q->modrm & 7) | (q->rex & 1) << 3;
		if (q->modrm < 0xc0)
			relative = interp_quick_operand(m, q);
	}
	q->up = (entry >> 16 & 63) - ((q->rex & entry >> 19) << 2 & 32);
	if (narrow)
		size = interp_quick_narrow(q, size);
	if (q->at + size > 8 &&
		(q->at > 8 || size > 8 || interp_memory_code(m, m->ip + q->at, &q->code) < 0))
		return -1;
	q->immediate = (u64)((s64)(q->code << ((0 - size * 8) & 63)) >> ((0 - size * 8) & 63));
	q->next = m->ip + q->at + size;
	q->address += q->next & (0 - (u64)relative);
	return 0;
}

/* The result of the second operand, or of both; negative: by the long way. */
INTERP_INLINE int interp_quick_value(
	struct interp *m, const struct interp_quick *q, u64 a, u64 b, u64 *value)
{
	u32 entry = q->entry, down = entry >> 26, n;
	u64 condition, sign = 1ull << (63 - down) & interp_if(entry, 23);

	if (entry & INTERP_Q_CONDITION) {
		condition = interp_condition(m, q->opcode);
		if (condition == 2)
			return -1;
		b = entry & INTERP_Q_TO_REG ? b ^ ((b ^ a) & (condition - 1)) : condition;
	}
	if (entry & INTERP_Q_COPIES) {
		b = b << down >> down;
		*value = ((b ^ sign) - sign) << q->up >> q->up;
	} else if (entry & INTERP_Q_SHIFTS) {
		n = q->opcode == 0xc1 ? (u32)q->immediate : (u32)m->r[INTERP_RCX];
		n = (q->opcode == 0xd1 ? 1 : n) & (63 - q->up);
		if (!n)
			return -1;
		*value = interp_quick_shift(m, q->op, a, n, q->up);
	} else {
		*value = interp_quick_compute(m, q->op, a, b, q->up);
	}
	return 0;
}

/* What has two operands at most and one result. */
INTERP_INLINE int interp_quick_execute(struct interp *m, const struct interp_quick *q)
{
	u32 entry = q->entry, to = q->rm ^ ((q->rm ^ q->reg) & (u32)interp_if(entry, 4));
	u64 a, b = m->r[q->rm], other = m->r[q->reg], swap, value;

	if (q->modrm < 0xc0) {
		b = q->address;
		if (entry & INTERP_Q_LOADS && interp_quick_load(m, q->address, &b) < 0)
			return -1;
	}
	swap = (other ^ b) & interp_if(entry, 4);
	a = b ^ swap;
	b = other ^ swap;
	b ^= (b ^ q->immediate) & interp_if(entry, 5);
	if (interp_quick_value(m, q, a, b, &value) < 0)
		return -1;
	if (!(entry & (INTERP_Q_COPIES | INTERP_Q_SHIFTS)) &&
		(entry & INTERP_Q_COMPARES || q->op == 7)) {
		m->ip = q->next;
		return 0;
	}
	if (q->modrm < 0xc0 && !(entry & INTERP_Q_TO_REG)) {
		/* Where it fails flags have changed, but then they are going to be set anyway. */
		if (!interp_canonical(q->address) ||
			interp_store(m, q->address, 8 - q->up / 8, value, 0) < 0)
			return -1;
	} else {
		m->r[to & 15] = (m->r[to & 15] & interp_if(q->up, 4) & ~(~0ull >> q->up)) | value;
	}
	m->ip = q->next;
	return 0;
}

INTERP_INLINE int interp_quick_try(struct interp *m, u64 code)
{
	u32 narrow = ((u32)code & 255) == 0x66;
	struct interp_quick q;

	if (!interp_quick_opcode(&q, narrow ? code >> 8 : code))
		return interp_quick_other(m, code);
	if (interp_quick_decode(m, &q, narrow) < 0)
		return -1;
	if (q.entry & INTERP_Q_WAY) {
		if (q.op == INTERP_W_INDIRECT)
			return interp_quick_indirect(m, q.modrm, q.rm, q.next, q.address);
		return q.op > INTERP_W_NOP ? interp_quick_stack(m, &q) : interp_quick_jump(m, &q);
	}
	if (interp_quick_refuses(&q))
		return -1;
	if (q.entry >> 26 == 56 && !q.rex && interp_quick_is_high(&q))
		return -1;
	return interp_quick_execute(m, &q);
}

/*
 * The instruction whose first eight bytes are given, if it is one of the commonest: negative if it
 * is not, and nothing is changed then that matters; 1 if it chose where to go, else 0. All general
 * registers have to be known.
 */
INTERP_INLINE int interp_quick(struct interp *m, u64 code)
{
	u32 failed = m->failed;
	int r = interp_quick_try(m, code);

	if (r < 0)
		m->failed = failed; /* the long way counts it again */
	return r;
}

#endif
