/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR Apache-2.0 */
/* Arithmetic and logic with one result. Included by interp_run.h only. */
#ifndef CULPRIT_ISA_INTERP_ALU_H
#define CULPRIT_ISA_INTERP_ALU_H

#include "isa/interp_state.h"

#ifdef INTERP_EFFECTS
#define INTERP_NOTE(statement) (statement)
#define INTERP_NOTED(m)        ((m)->effect.has & INTERP_HAS_ADDRESS)
#define INTERP_NOTES           1
#else
#define INTERP_NOTE(statement) ((void)0)
#define INTERP_NOTED(m)        1
#define INTERP_NOTES           0
#endif

/* ---- operands ---- */

/* Loads the memory operand into m->loaded. */
INTERP_FN int interp_load_operand(struct interp *m, u64 address, u32 size)
{
	if (!m)
		return INTERP_FETCH;
	INTERP_NOTE(m->effect.has |= INTERP_LOADS | INTERP_HAS_ADDRESS);
	INTERP_NOTE(m->effect.address = address);
	if (m->insn.address_unknown) {
		INTERP_NOTE(m->effect.has &= ~INTERP_HAS_ADDRESS);
		m->loaded = 0;
		m->loaded_unknown = 1;
		return INTERP_GOES_ON;
	}
	if (!interp_canonical(address))
		return INTERP_FAULT;
	interp_load(m, address, size);
	return INTERP_GOES_ON;
}

/* The same while all registers are known, and for the most part without a call. */
INTERP_INLINE int interp_load_plain(struct interp *m, u64 address, u32 size)
{
	INTERP_NOTE(m->effect.has |= INTERP_LOADS | INTERP_HAS_ADDRESS);
	INTERP_NOTE(m->effect.address = address);
	interp_load(m, address, size);
	return m->loaded_unknown && !interp_canonical(address) ? INTERP_FAULT : INTERP_GOES_ON;
}

INTERP_INLINE int interp_store_operand(
	struct interp *m, u64 address, u32 size, u64 value, u32 unknown)
{
	/* Of push [x] and call [x] the operand's address is noted, not the stack's. */
	if (!INTERP_NOTED(m))
		INTERP_NOTE(m->effect.address = address);
	INTERP_NOTE(m->effect.has |= INTERP_STORES | INTERP_HAS_ADDRESS);
	if (m->insn.address_unknown)
		return INTERP_STORE;
	if (!interp_canonical(address))
		return INTERP_FAULT;
	return interp_store(m, address, size, value, unknown) < 0 ? INTERP_ROOM : INTERP_GOES_ON;
}

INTERP_INLINE void interp_note_values(
	struct interp *m, u64 value, u32 unknown, u64 source, u32 source_unknown, u32 size)
{
	(void)m, (void)value, (void)unknown, (void)source, (void)source_unknown, (void)size;
	INTERP_NOTE(m->effect.value = value);
	INTERP_NOTE(m->effect.source = source);
	INTERP_NOTE(m->effect.size = (u8)size);
	INTERP_NOTE(m->effect.has = (m->effect.has & ~(INTERP_HAS_VALUE | INTERP_HAS_SOURCE)) |
				    (unknown ? 0 : INTERP_HAS_VALUE) |
				    (source_unknown ? 0 : INTERP_HAS_SOURCE));
}

/* ---- counting bits ---- */

INTERP_INLINE u64 interp_popcount(u64 x)
{
	x -= x >> 1 & 0x5555555555555555ull;
	x = (x & 0x3333333333333333ull) + (x >> 2 & 0x3333333333333333ull);
	x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0full;
	return x * 0x0101010101010101ull >> 56;
}

/* Of x != 0. */
INTERP_INLINE u64 interp_lowest(u64 x)
{
	return interp_popcount((x & (0 - x)) - 1);
}

INTERP_INLINE u64 interp_highest(u64 x)
{
	x |= x >> 1;
	x |= x >> 2;
	x |= x >> 4;
	x |= x >> 8;
	x |= x >> 16;
	x |= x >> 32;
	return interp_popcount(x) - 1;
}

INTERP_FN u64 interp_deposit(u64 x, u64 mask)
{
	u64 out = 0;

	for (u32 i = 0; i < 64 && mask; i++) {
		if (x & 1)
			out |= mask & (0 - mask);
		x >>= 1;
		mask &= mask - 1;
	}
	return out;
}

INTERP_FN u64 interp_extract(u64 x, u64 mask)
{
	u64 out = 0;

	for (u32 i = 0; i < 64 && mask; i++) {
		if (x & mask & (0 - mask))
			out |= 1ull << i;
		mask &= mask - 1;
	}
	return out;
}

INTERP_FN u64 interp_crc32(u64 crc, u64 data, u32 size)
{
	crc = (u32)crc ^ data;
	for (u32 i = 0; i < 64; i++) {
		if (i < size * 8)
			crc = crc & 1 ? crc >> 1 ^ 0x82f63b78ull : crc >> 1;
	}
	return (u32)crc;
}

INTERP_INLINE u64 interp_swap(u64 x, u32 size)
{
	x = (x & 0x00ff00ff00ff00ffull) << 8 | (x >> 8 & 0x00ff00ff00ff00ffull);
	x = (x & 0x0000ffff0000ffffull) << 16 | (x >> 16 & 0x0000ffff0000ffffull);
	x = x << 32 | x >> 32;
	return x >> ((64 - size * 8) & 63);
}

/* The upper half of the product of two unsigned numbers. */
INTERP_INLINE u64 interp_multiply_high(u64 a, u64 b)
{
	u64 al = (u32)a, ah = a >> 32, bl = (u32)b, bh = b >> 32;
	u64 middle = ah * bl + (al * bl >> 32), other = al * bh + (u32)middle;

	return ah * bh + (middle >> 32) + (other >> 32);
}

INTERP_INLINE u64 interp_multiply_high_signed(u64 a, u64 b)
{
	return interp_multiply_high(a, b) - ((s64)a < 0 ? b : 0) - ((s64)b < 0 ? a : 0);
}

/* ---- operations ---- */

/*
 * Sum and difference, on operands shifted up so that carry and sign are those of bit 63. Carries
 * are computed from bits: a comparison would be a branch in BPF, and one that nobody can predict.
 */
INTERP_INLINE u64 interp_add(struct interp *m, u64 a, u64 b, u64 carry, u32 shift)
{
	u64 x = a << shift, y = b << shift, all = x + y + (carry << shift);

	m->carry = ((x & y) | ((x | y) & ~all)) >> 63;
	m->overflow = ((x ^ all) & (y ^ all)) >> 63;
	interp_set_result(m, all, all >> shift);
	m->adjust = (u8)(a ^ b ^ all >> shift);
	return all >> shift;
}

INTERP_INLINE u64 interp_subtract(struct interp *m, u64 a, u64 b, u64 carry, u32 shift)
{
	u64 x = a << shift, y = b << shift, all = x - y - (carry << shift);

	m->carry = ((~x & y) | (~(x ^ y) & all)) >> 63;
	m->overflow = ((x ^ y) & (x ^ all)) >> 63;
	interp_set_result(m, all, all >> shift);
	m->adjust = (u8)(a ^ b ^ all >> shift);
	return all >> shift;
}

INTERP_INLINE u64 interp_logic(struct interp *m, u64 value, u32 shift)
{
	m->carry = m->overflow = m->adjust = 0;
	interp_set_result(m, value << shift, value);
	return value;
}

INTERP_INLINE u64 interp_multiply(struct interp *m, u64 a, u64 b, u32 size)
{
	u64 low, high;

	a = interp_extend(a, size);
	b = interp_extend(b, size);
	low = a * b;
	if (size == 8) {
		high = interp_multiply_high_signed(a, b);
		m->carry = high != (u64)((s64)low >> 63);
	} else {
		m->carry = interp_extend(low, size) != low;
	}
	m->overflow = m->carry;
	return low & interp_mask(size);
}

/* The bit instructions; `old` is the destination's value. Returns the result. */
INTERP_FN u64 interp_bits(struct interp *m, u64 a, u64 b, u32 *unknown)
{
	u32 op, size, bits, shift;
	u64 value = 0, x;

	if (!m || !unknown)
		return 0;
	op = INTERP_E_OP(m->insn.entry);
	size = m->insn.size;
	bits = size * 8;
	shift = (64 - bits) & 63;
	switch (op) {
	case INTERP_OP_BT:
	case INTERP_OP_BTS:
	case INTERP_OP_BTR:
	case INTERP_OP_BTC:
		x = 1ull << (b & (bits - 1) & 63);
		m->carry = (a & x) != 0;
		value = op == INTERP_OP_BTS ? a | x : op == INTERP_OP_BTR ? a & ~x : a ^ x;
		break;
	case INTERP_OP_BSF:
	case INTERP_OP_BSR:
		m->zero = b;
		*unknown |= !b; /* the destination is undefined then */
		value = !b ? a : op == INTERP_OP_BSF ? interp_lowest(b) : interp_highest(b);
		break;
	case INTERP_OP_TZCNT:
		value = b ? interp_lowest(b) : bits;
		m->carry = !b;
		m->zero = value;
		break;
	case INTERP_OP_LZCNT:
		value = b ? bits - 1 - interp_highest(b) : bits;
		m->carry = !b;
		m->zero = value;
		break;
	case INTERP_OP_POPCNT:
		value = interp_logic(m, interp_popcount(b), shift);
		m->zero = b;
		m->parity = m->sign = 0;
		m->parity = 1; /* PF is cleared */
		break;
	case INTERP_OP_ANDN:
		value = interp_logic(m, ~a & b & interp_mask(size), shift);
		break;
	case INTERP_OP_BLSI:
		value = interp_logic(m, b & (0 - b), shift);
		m->carry = b != 0;
		break;
	case INTERP_OP_BLSR:
		value = interp_logic(m, b & (b - 1), shift);
		m->carry = b == 0;
		break;
	case INTERP_OP_BLSMSK:
		value = interp_logic(m, (b ^ (b - 1)) & interp_mask(size), shift);
		m->carry = b == 0;
		break;
	case INTERP_OP_BZHI:
		x = b & 0xff;
		value = interp_logic(m, x < bits ? a & ((1ull << (x & 63)) - 1) : a, shift);
		m->carry = x >= bits;
		break;
	case INTERP_OP_BEXTR:
		x = b & 0xff;
		value = x < bits ? a >> (x & 63) : 0;
		x = b >> 8 & 0xff;
		if (x < 64)
			value &= (1ull << x) - 1;
		interp_logic(m, value, shift);
		break;
	case INTERP_OP_PDEP:
		value = interp_deposit(a, b);
		break;
	case INTERP_OP_PEXT:
		value = interp_extract(a, b);
		break;
	case INTERP_OP_ADCX:
		x = (a << shift) + (b << shift);
		value = x + ((u64)m->carry << shift);
		m->carry = x < a << shift || value < x;
		value >>= shift;
		break;
	case INTERP_OP_ADOX:
		x = (a << shift) + (b << shift);
		value = x + ((u64)m->overflow << shift);
		m->overflow = x < a << shift || value < x;
		value >>= shift;
		break;
	}
	return value;
}

/* All ones for an operation that is one of those in `which`, else 0. */
INTERP_INLINE u64 interp_is_one_of(u32 op, u32 which)
{
	return 0 - (u64)(which >> op & 1);
}

/*
 * The plain ones of the two-operand instructions; returns the result. Computed from what they have
 * in common, as nobody can predict which one it is.
 */
INTERP_INLINE u64 interp_operate_plain(struct interp *m, u32 op, u64 a, u64 b, u32 size)
{
	const u32 sums = 1u << INTERP_OP_ADD | 1u << INTERP_OP_SUB | 1u << INTERP_OP_CMP;
	u32 shift = (64 - size * 8) & 63;

	if (sums >> op & 1) { /* the difference is the sum with the complement, and 1 */
		u64 minus = interp_is_one_of(op, 1u << INTERP_OP_SUB | 1u << INTERP_OP_CMP);
		u64 x = a << shift, y = b << shift ^ minus, all = x + y - minus;

		m->carry = (((x & y) | ((x | y) & ~all)) ^ minus) >> 63;
		m->overflow = ((x ^ all) & (y ^ all)) >> 63;
		interp_set_result(m, all, all >> shift);
		m->adjust = (u8)(a ^ b ^ all >> shift);
		return all >> shift;
	}
	return interp_logic(m,
		(a & b & ~interp_is_one_of(op, 1u << INTERP_OP_XOR)) |
			((a ^ b) & interp_is_one_of(op, 1u << INTERP_OP_OR | 1u << INTERP_OP_XOR)),
		shift);
}

/* All of them. */
INTERP_INLINE u64 interp_operate(struct interp *m, u32 op, u64 a, u64 b, u32 size, u32 *unknown)
{
	u32 shift = (64 - size * 8) & 63, condition;
	u64 carry;

	switch (op) {
	case INTERP_OP_ADC:
		return interp_add(m, a, b, m->carry & 1, shift);
	case INTERP_OP_SBB:
		return interp_subtract(m, a, b, m->carry & 1, shift);
	case INTERP_OP_INC:
	case INTERP_OP_DEC:
		carry = m->carry;
		a = op == INTERP_OP_INC ? interp_add(m, a, 1, 0, shift)
					: interp_subtract(m, a, 1, 0, shift);
		m->carry = carry;
		return a;
	case INTERP_OP_NEG:
		return interp_subtract(m, 0, a, 0, shift);
	case INTERP_OP_NOT:
		return ~a & interp_mask(size);
	case INTERP_OP_MOVSX8:
		return interp_extend(b, 1) & interp_mask(size);
	case INTERP_OP_MOVSX16:
		return interp_extend(b, 2) & interp_mask(size);
	case INTERP_OP_MOVSX32:
		return size == 8 ? interp_extend(b, 4) : b & interp_mask(size);
	case INTERP_OP_SETCC:
	case INTERP_OP_CMOVCC:
		condition = interp_condition(m, m->insn.opcode);
		if (condition == 2)
			*unknown = 1;
		if (op == INTERP_OP_SETCC)
			return condition & 1;
		return condition & 1 ? b : a;
	case INTERP_OP_BSWAP:
		*unknown |= size == 2;
		return interp_swap(a, size);
	case INTERP_OP_MOVBE:
		return interp_swap(b, size);
	case INTERP_OP_IMUL:
	case INTERP_OP_IMUL3:
		return interp_multiply(m, a, b, size);
	default:
		return interp_operate_plain(m, op, a, b, size);
	}
}

/* With all operands known, and flags that it reads. */
INTERP_FN u64 interp_operate_known(struct interp *m, u64 a, u64 b)
{
	u32 unknown = 0;

	return m ? interp_operate(m, INTERP_E_OP(m->insn.entry), a, b, m->insn.size, &unknown) : 0;
}

/* Flags that the instruction reads. */
INTERP_INLINE u32 interp_flags_read(u32 op)
{
	return op == INTERP_OP_ADC || op == INTERP_OP_SBB || op == INTERP_OP_ADCX ? INTERP_CF
	       : op == INTERP_OP_ADOX                                             ? INTERP_OF
										  : 0;
}

/* Bytes of the rm operand. */
INTERP_INLINE u32 interp_source_size(const struct interp_insn *i)
{
	/* Nothing is wider than the operand. */
	u32 code = INTERP_E_SOURCE(i->entry), size = i->size, most = 8u >> ((4 - code) & 3);

	return size < most ? size : most;
}

INTERP_INLINE u32 interp_crc32_size(const struct interp_insn *i)
{
	return i->opcode == 0xf0 ? 1 : i->prefix & INTERP_P_W ? 8 : i->prefix & INTERP_P_16 ? 2 : 4;
}

/* Which operands are unknown, a bit each; that of memory is known better. */
INTERP_INLINE u32 interp_unknown_operands(const struct interp *m, u32 source)
{
	const struct interp_insn *i = &m->insn;
	u32 u = interp_get_unknown(m, i->reg, i->size, i->prefix) << INTERP_N_REG;

	if (!i->memory)
		u |= interp_get_unknown(m, i->rm, source, i->prefix) << INTERP_N_RM;
	if (i->prefix & INTERP_P_VEX)
		u |= interp_get_unknown(m, i->vvvv, i->size, i->prefix) << INTERP_N_V;
	return u;
}

/* Fetches the operands into m->operand; *lost has a bit for each that is unknown. */
INTERP_INLINE int interp_operands(struct interp *m, u64 address, u32 source, u32 quick, u32 *lost)
{
	struct interp_insn *i = &m->insn;
	u32 size = i->size, prefix = i->prefix;

	m->operand[INTERP_N_OTHER] = i->immediate & interp_mask(size);
	if (source > 1) { /* most; bytes may be the second ones of their registers */
		m->operand[INTERP_N_REG] = m->r[i->reg & 15] & interp_mask(size);
		m->operand[INTERP_N_RM] = m->r[i->rm & 15] & interp_mask(source);
	} else {
		m->operand[INTERP_N_REG] = interp_get(m, i->reg, size, prefix);
		m->operand[INTERP_N_RM] = interp_get(m, i->rm, source, prefix);
	}
	*lost = 0;
	if (i->memory && i->entry & INTERP_E_LOADS) {
		int stop = quick ? interp_load_plain(m, address, source)
				 : interp_load_operand(m, address, source);

		if (stop)
			return stop;
		INTERP_BARRIER;
		m->operand[INTERP_N_RM] = m->loaded;
		*lost = m->loaded_unknown << INTERP_N_RM;
	} else if (i->memory) { /* lea */
		m->operand[INTERP_N_RM] = address & interp_mask(size);
		*lost = i->address_unknown << INTERP_N_RM;
	}
	if (quick)
		return INTERP_GOES_ON;
	if (prefix & INTERP_P_VEX)
		m->operand[INTERP_N_V] = interp_get(m, i->vvvv, size, prefix);
	if (m->unknown | m->unknown_low)
		*lost |= interp_unknown_operands(m, source);
	return INTERP_GOES_ON;
}

/* Writes the result, and goes on. */
INTERP_INLINE int interp_result_to(struct interp *m, u64 address, u64 value, u32 unknown, u32 quick)
{
	struct interp_insn *i = &m->insn;
	u32 to = INTERP_E_TO(i->entry), reg = i->number[to];

	if (to == INTERP_N_RM && i->memory)
		return interp_store_operand(m, address, i->size, value, unknown);
	if (quick && i->size >= 4)
		m->r[reg & 15] = value;
	else if (quick)
		interp_write(m, reg, i->size, i->prefix, value);
	else
		interp_set(m, reg, i->size, i->prefix, value, unknown);
	INTERP_NOTE(m->effect.destination = (u8)reg);
	return INTERP_GOES_ON;
}

/* With all operands known, and registers too. */
INTERP_INLINE int interp_compute_plain(struct interp *m)
{
	struct interp_insn *i = &m->insn;
	u64 entry = i->entry, a = m->operand[INTERP_E_A(entry)], b = m->operand[INTERP_E_B(entry)];
	u64 value = b;

	if (INTERP_NOTES && entry & INTERP_E_CANCELS && !i->memory && i->reg == i->rm)
		a = b = 0;
	interp_note_values(m, a, 0, b, 0, i->size);
	if (!(entry & INTERP_E_COPIES))
		value = INTERP_E_OP(entry) <= INTERP_OP_TEST
				? interp_operate_plain(m, INTERP_E_OP(entry), a, b, i->size)
				: interp_operate_known(m, a, b);
	if (INTERP_E_TO(entry) != INTERP_N_OTHER) {
		int stop;

		interp_note_values(m, value, 0, b, 0, i->size);
		stop = interp_result_to(m, i->address, value, 0, 1);
		if (stop)
			return stop;
	}
	m->unknown_flags = (m->unknown_flags & ~INTERP_E_SET(entry)) | INTERP_E_UNDEFINED(entry);
	m->ip = i->next;
	return INTERP_GOES_ON;
}

INTERP_FN int interp_compute(struct interp *m, u64 address, u32 lost)
{
	u32 op, size, ua, ub, unknown;
	u64 entry, a, b, value;
	struct interp_insn *i;

	if (!m)
		return INTERP_FETCH;
	i = &m->insn;
	entry = i->entry;
	op = INTERP_E_OP(entry);
	size = i->size;
	a = m->operand[INTERP_E_A(entry)];
	b = m->operand[INTERP_E_B(entry)];
	ua = entry & INTERP_E_USES_A ? lost >> INTERP_E_A(entry) & 1 : 0;
	ub = lost >> INTERP_E_B(entry) & 1;
	if (entry & INTERP_E_CANCELS && !i->memory && i->reg == i->rm)
		a = b = ua = ub = 0;
	unknown = ua | ub | ((m->unknown_flags & interp_flags_read(op)) != 0);
	interp_note_values(m, a, ua, b, ub, size);
	if (entry & INTERP_E_COPIES)
		value = b;
	else if (op < INTERP_OP_BT)
		value = interp_operate(m, op, a, b, size, &unknown);
	else if (op == INTERP_OP_CRC32)
		value = interp_crc32(a, b, interp_crc32_size(i));
	else
		value = interp_bits(m, a, b, &unknown);
	if (INTERP_E_TO(entry) != INTERP_N_OTHER) {
		int stop;

		interp_note_values(m, value, unknown, b, ub, size);
		stop = interp_result_to(m, address, value, unknown, 0);
		if (stop)
			return stop;
	}
	/* An unknown destination of bsf leaves ZF known. */
	interp_settle_flags(m, entry, op == INTERP_OP_BSF || op == INTERP_OP_BSR ? ub : unknown);
	m->ip = i->next;
	return INTERP_GOES_ON;
}

/* Of a bit string in memory: the offset reaches beyond the operand. */
INTERP_INLINE u64 interp_bit_address(struct interp *m)
{
	struct interp_insn *i = &m->insn;
	u32 size = i->size;
	s64 offset = (s64)interp_extend(m->r[i->reg & 15], size);

	if (interp_get_unknown(m, i->reg, size, i->prefix))
		i->address_unknown = 1;
	return i->address + (u64)(size == 8     ? offset >> 6
				    : size == 4 ? offset >> 5
						: offset >> 4) *
				    size;
}

INTERP_FN int interp_alu(struct interp *m)
{
	u32 op, source, lost;
	struct interp_insn *i;
	u64 address;
	int stop;

	if (!m)
		return INTERP_FETCH;
	i = &m->insn;
	op = INTERP_E_OP(i->entry);
	source = op == INTERP_OP_CRC32 ? interp_crc32_size(i) : interp_source_size(i);
	address = i->address;
	if (op >= INTERP_OP_BT && op <= INTERP_OP_BTC && i->memory &&
		INTERP_E_FORM(i->entry) == INTERP_F_RM_R) {
		if (i->prefix & INTERP_P_ADDR32)
			return INTERP_INSTRUCTION; /* the sum would wrap */
		address = interp_bit_address(m);
	}
	stop = interp_operands(m, address, source, 0, &lost);
	return stop ? stop : interp_compute(m, address, lost);
}

/* The plain ones, while all registers are known. */
INTERP_INLINE int interp_alu_plain(struct interp *m)
{
	struct interp_insn *i = &m->insn;
	u32 lost;
	int stop;

	if (INTERP_E_OP(i->entry) >= INTERP_OP_SETCC &&
		m->unknown_flags & (INTERP_FLAGS & ~INTERP_AF))
		return interp_alu(m); /* a condition may be unknown */
	stop = interp_operands(m, i->address, interp_source_size(i), 1, &lost);
	if (stop)
		return stop;
	INTERP_BARRIER;
	return lost ? interp_compute(m, i->address, lost) : interp_compute_plain(m);
}

#endif
