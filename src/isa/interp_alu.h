/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR Apache-2.0 */
/* Arithmetic and logic with one result. Included by interp_run.h only. */
#ifndef CULPRIT_ISA_INTERP_ALU_H
#define CULPRIT_ISA_INTERP_ALU_H

#include "isa/interp_state.h"

#ifdef INTERP_EFFECTS
#define INTERP_NOTE(statement) (statement)
#define INTERP_NOTED(m)        ((m)->effect.has & INTERP_HAS_ADDRESS)
#else
#define INTERP_NOTE(statement) ((void)0)
#define INTERP_NOTED(m)        1
#endif

/* ---- operands ---- */

/* Loads the memory operand into m->loaded. */
INTERP_INLINE int interp_load_operand(struct interp *m, u64 address, u32 size)
{
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

/* Sum and difference, on operands shifted up so that carry and sign are those of bit 63. */
INTERP_INLINE u64 interp_add(struct interp *m, u64 a, u64 b, u64 carry, u32 shift)
{
	u64 x = a << shift, y = b << shift, sum = x + y, all = sum + (carry << shift);

	m->carry = sum < x || all < sum;
	m->overflow = ((x ^ all) & (y ^ all)) >> 63;
	all >>= shift;
	m->adjust = (a ^ b ^ all) >> 4 & 1;
	interp_set_result(m, all << shift, all);
	return all;
}

INTERP_INLINE u64 interp_subtract(struct interp *m, u64 a, u64 b, u64 carry, u32 shift)
{
	u64 x = a << shift, y = b << shift, difference = x - y, all = difference - (carry << shift);

	m->carry = x < y || difference < carry << shift;
	m->overflow = ((x ^ y) & (x ^ all)) >> 63;
	all >>= shift;
	m->adjust = (a ^ b ^ all) >> 4 & 1;
	interp_set_result(m, all << shift, all);
	return all;
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
		value = x + (m->carry << shift);
		m->carry = x < a << shift || value < x;
		value >>= shift;
		break;
	case INTERP_OP_ADOX:
		x = (a << shift) + (b << shift);
		value = x + (m->overflow << shift);
		m->overflow = x < a << shift || value < x;
		value >>= shift;
		break;
	}
	return value;
}

/* The two-operand instructions; returns the result. */
INTERP_INLINE u64 interp_operate(struct interp *m, u32 op, u64 a, u64 b, u32 size, u32 *unknown)
{
	u32 shift = (64 - size * 8) & 63, condition;
	u64 carry;

	switch (op) {
	case INTERP_OP_ADD:
		return interp_add(m, a, b, 0, shift);
	case INTERP_OP_ADC:
		return interp_add(m, a, b, m->carry & 1, shift);
	case INTERP_OP_SUB:
	case INTERP_OP_CMP:
		return interp_subtract(m, a, b, 0, shift);
	case INTERP_OP_SBB:
		return interp_subtract(m, a, b, m->carry & 1, shift);
	case INTERP_OP_AND:
	case INTERP_OP_TEST:
		return interp_logic(m, a & b, shift);
	case INTERP_OP_OR:
		return interp_logic(m, a | b, shift);
	case INTERP_OP_XOR:
		return interp_logic(m, a ^ b, shift);
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
	default: /* mov, movzx */
		return b;
	}
}

/* Flags that the instruction reads. */
INTERP_INLINE u32 interp_flags_read(u32 op)
{
	return op == INTERP_OP_ADC || op == INTERP_OP_SBB || op == INTERP_OP_ADCX ? INTERP_CF
	       : op == INTERP_OP_ADOX                                             ? INTERP_OF
										  : 0;
}

INTERP_INLINE u32 interp_source_size(const struct interp_insn *i, u32 op)
{
	if (op == INTERP_OP_MOVZX8 || op == INTERP_OP_MOVSX8)
		return 1;
	if (op == INTERP_OP_MOVZX16 || op == INTERP_OP_MOVSX16)
		return 2;
	if (op == INTERP_OP_MOVSX32)
		return i->prefix & INTERP_P_16 && !(i->prefix & INTERP_P_W) ? 2 : 4;
	if (op == INTERP_OP_CRC32)
		return i->opcode == 0xf0         ? 1
		       : i->prefix & INTERP_P_W  ? 8
		       : i->prefix & INTERP_P_16 ? 2
						 : 4;
	return i->size;
}

/* A register with itself gives the same result whatever is in it. */
INTERP_INLINE u32 interp_cancels(const struct interp_insn *i, u32 op, u32 form)
{
	return (op == INTERP_OP_XOR || op == INTERP_OP_SUB || op == INTERP_OP_SBB ||
		       op == INTERP_OP_CMP) &&
	       form <= INTERP_F_R_RM && !i->memory && i->reg == i->rm;
}

INTERP_INLINE int interp_alu(struct interp *m)
{
	u64 a = 0, b = 0, rm = 0, address, entry, value;
	u32 op, form, size, source, prefix, to, to_rm, ua = 0, ub = 0, urm = 0, unknown;
	struct interp_insn *i;

	i = &m->insn;
	entry = i->entry;
	op = INTERP_E_OP(entry);
	form = INTERP_E_FORM(entry);
	size = i->size;
	prefix = i->prefix;
	source = interp_source_size(i, op);
	address = i->address;
	to_rm = form == INTERP_F_RM_R || form == INTERP_F_RM_I || form == INTERP_F_RM;
	if (op == INTERP_OP_BT || op == INTERP_OP_BTS || op == INTERP_OP_BTR ||
		op == INTERP_OP_BTC) {
		/* A bit string in memory: the offset reaches beyond the operand. */
		if (i->memory && form == INTERP_F_RM_R) {
			s64 offset = (s64)interp_extend(m->r[i->reg & 15], size);

			if (prefix & INTERP_P_ADDR32)
				return INTERP_INSTRUCTION; /* the sum would wrap */
			if (interp_get_unknown(m, i->reg, size, prefix))
				i->address_unknown = 1;
			address += (u64)(size == 8     ? offset >> 6
					   : size == 4 ? offset >> 5
						       : offset >> 4) *
				   size;
		}
	}
	if (op == INTERP_OP_LEA) {
		rm = address - (prefix & INTERP_P_FS ? m->base[0] : 0) -
		     (prefix & INTERP_P_GS ? m->base[1] : 0);
		urm = i->address_unknown;
	} else if (form == INTERP_F_MOFFS) {
		address = i->immediate + (prefix & INTERP_P_FS ? m->base[0] : 0) +
			  (prefix & INTERP_P_GS ? m->base[1] : 0);
		if (prefix & INTERP_P_ADDR32)
			address = (u32)i->immediate + (address - i->immediate);
	} else if (!i->memory) {
		rm = interp_get(m, i->rm, source, prefix);
		urm = interp_get_unknown(m, i->rm, source, prefix);
	} else if (!(to_rm && (op == INTERP_OP_MOV || op == INTERP_OP_SETCC ||
				      (op == INTERP_OP_MOVBE)))) {
		int stop = interp_load_operand(m, address, source);

		if (stop)
			return stop;
		rm = m->loaded;
		urm = m->loaded_unknown;
	}
	to = i->reg;
	switch (form) {
	case INTERP_F_RM_R:
		a = rm;
		ua = urm;
		b = interp_get(m, i->reg, size, prefix);
		ub = interp_get_unknown(m, i->reg, size, prefix);
		to = i->rm;
		break;
	case INTERP_F_R_RM:
		a = interp_get(m, i->reg, size, prefix);
		ua = interp_get_unknown(m, i->reg, size, prefix);
		b = rm;
		ub = urm;
		break;
	case INTERP_F_RM_I:
	case INTERP_F_RM:
	case INTERP_F_O:
		a = rm;
		ua = urm;
		b = i->immediate & interp_mask(size);
		to = i->rm;
		break;
	case INTERP_F_R_RM_I:
		a = rm;
		ua = urm;
		b = i->immediate & interp_mask(size);
		break;
	case INTERP_F_O_I:
		b = i->immediate & interp_mask(size);
		to = i->rm;
		break;
	case INTERP_F_A_I:
		a = interp_get(m, INTERP_RAX, size, prefix);
		ua = interp_get_unknown(m, INTERP_RAX, size, prefix);
		b = i->immediate & interp_mask(size);
		to = INTERP_RAX;
		break;
	case INTERP_F_R_V_RM:
		a = interp_get(m, i->vvvv, size, prefix);
		ua = interp_get_unknown(m, i->vvvv, size, prefix);
		b = rm;
		ub = urm;
		break;
	case INTERP_F_R_RM_V:
		a = rm;
		ua = urm;
		b = interp_get(m, i->vvvv, size, prefix);
		ub = interp_get_unknown(m, i->vvvv, size, prefix);
		break;
	case INTERP_F_V_RM:
		b = rm;
		ub = urm;
		to = i->vvvv;
		break;
	case INTERP_F_MOFFS:
		to = INTERP_RAX;
		if (i->opcode & 2) {
			b = interp_get(m, INTERP_RAX, size, prefix);
			ub = interp_get_unknown(m, INTERP_RAX, size, prefix);
			to_rm = 1;
			i->memory = 1;
		} else {
			int stop = interp_load_operand(m, address, size);

			if (stop)
				return stop;
			b = m->loaded;
			ub = m->loaded_unknown;
		}
		break;
	default:
		return INTERP_INSTRUCTION;
	}
	/* What only writes does not depend on what was there. */
	if ((op >= INTERP_OP_MOV && op <= INTERP_OP_LEA) || op == INTERP_OP_SETCC ||
		op == INTERP_OP_MOVBE)
		ua = 0;
	if (op == INTERP_OP_TZCNT || op == INTERP_OP_LZCNT || op == INTERP_OP_POPCNT ||
		op == INTERP_OP_BSF || op == INTERP_OP_BSR)
		ua = 0;
	if (interp_cancels(i, op, form))
		a = b = ua = ub = 0;
	unknown = ua | ub | ((m->unknown_flags & interp_flags_read(op)) != 0);
	interp_note_values(m, a, ua, b, ub, size);
	if (op < INTERP_OP_BT) {
		value = interp_operate(m, op, a, b, size, &unknown);
	} else if (op == INTERP_OP_CRC32) {
		value = interp_crc32(a, b, source);
	} else {
		value = interp_bits(m, a, b, &unknown);
	}
	if (op != INTERP_OP_CMP && op != INTERP_OP_TEST && op != INTERP_OP_BT) {
		interp_note_values(m, value, unknown, b, ub, size);
		if (to_rm && i->memory) {
			int stop = interp_store_operand(m, address, size, value, unknown);

			if (stop)
				return stop;
		} else {
			interp_set(m, to, size, prefix, value, unknown);
			INTERP_NOTE(m->effect.destination = (u8)to);
		}
	}
	/* An unknown destination of bsf leaves ZF known. */
	interp_settle_flags(m, entry, op == INTERP_OP_BSF || op == INTERP_OP_BSR ? ub : unknown);
	m->ip = i->next;
	return INTERP_GOES_ON;
}

#endif
