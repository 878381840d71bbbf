/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR Apache-2.0 */
/* Instructions with two results: exchanges, multiplication, division. Included by interp_run.h
 * only. */
#ifndef CULPRIT_ISA_INTERP_PAIR_H
#define CULPRIT_ISA_INTERP_PAIR_H

#include "isa/interp_alu.h"

/* high:low / divisor for high < divisor, bit by bit; the remainder goes to *rest. */
INTERP_FN u64 interp_divide_long(u64 high, u64 low, u64 divisor, u64 *rest)
{
	u64 quotient = 0;

	if (!rest)
		return 0;
	for (u32 i = 0; i < 64; i++) {
		u64 carry = high >> 63;

		high = high << 1 | low >> 63;
		low <<= 1;
		quotient <<= 1;
		if (carry || high >= divisor) {
			high -= divisor;
			quotient |= 1;
		}
	}
	*rest = high;
	return quotient;
}

/* Unsigned; 1 when the quotient does not fit in size bytes. high is 0 for all but 8 bytes. */
INTERP_INLINE u32 interp_divide(u64 high, u64 low, u64 divisor, u64 *quotient, u64 *rest)
{
	if (!divisor || high >= divisor)
		return 1;
	if (high) {
		*quotient = interp_divide_long(high, low, divisor, rest);
	} else {
		*quotient = low / divisor;
		*rest = low % divisor;
	}
	return 0;
}

/* mul, imul, div, idiv with the accumulator, and mulx. */
INTERP_FN int interp_muldiv(struct interp *m, u64 b, u32 unknown)
{
	u64 a, high = 0, low = 0, q = 0, r = 0, magnitude;
	u32 op, size, prefix, negative, divides;
	struct interp_insn *i;

	if (!m)
		return INTERP_FETCH;
	i = &m->insn;
	op = INTERP_E_OP(i->entry);
	size = i->size;
	prefix = i->prefix | INTERP_P_REX; /* al, not ah */
	divides = op == INTERP_OP_DIV || op == INTERP_OP_IDIV;
	if (op == INTERP_OP_MULX) {
		a = m->r[INTERP_RDX] & interp_mask(size);
		unknown |= (m->unknown | m->unknown_low) >> INTERP_RDX & 1;
	} else {
		a = m->r[INTERP_RAX] & interp_mask(size);
		unknown |= interp_get_unknown(m, INTERP_RAX, size, prefix);
	}
	if (divides) {
		if (size == 1) {
			a = m->r[INTERP_RAX] & 0xffff;
			unknown |= interp_get_unknown(m, INTERP_RAX, 2, prefix);
		} else {
			high = m->r[INTERP_RDX] & interp_mask(size);
			unknown |= interp_get_unknown(m, INTERP_RDX, size, prefix);
			if (size < 8) {
				a |= high << size * 8;
				high = 0;
			}
		}
	}
	if (divides && !unknown && op == INTERP_OP_DIV) {
		if (interp_divide(high, a, b, &q, &r) || q > interp_mask(size))
			return INTERP_FAULT;
	} else if (divides && !unknown) {
		u64 divisor = interp_extend(b, size);

		/* On magnitudes; the dividend's sign is the remainder's. */
		if (size == 8) {
			negative = high >> 63;
			if (negative) {
				high = ~high + (a == 0);
				a = 0 - a;
			}
		} else {
			a = interp_extend(a, size * 2);
			negative = a >> 63;
			if (negative)
				a = 0 - a;
		}
		magnitude = (s64)divisor < 0 ? 0 - divisor : divisor;
		if (interp_divide(high, a, magnitude, &q, &r))
			return INTERP_FAULT;
		if (q > (interp_mask(size) >> 1) + (negative != (divisor >> 63)))
			return INTERP_FAULT;
		if (negative != (divisor >> 63))
			q = 0 - q;
		if (negative)
			r = 0 - r;
	} else if (op == INTERP_OP_IMUL1) {
		low = interp_extend(a, size) * interp_extend(b, size);
		high = size == 8 ? interp_multiply_high_signed(a, b) : low >> (size * 8 & 63);
		m->carry =
			size == 8 ? high != (u64)((s64)low >> 63) : interp_extend(low, size) != low;
		m->overflow = m->carry;
	} else if (!divides) {
		low = a * b;
		high = size == 8 ? interp_multiply_high(a, b) : low >> (size * 8 & 63);
		if (op == INTERP_OP_MUL) {
			m->carry = (high & interp_mask(size)) != 0;
			m->overflow = m->carry;
		}
	}
	if (divides) {
		low = q;
		high = r;
	}
	interp_note_values(m, low & interp_mask(size), unknown, b, unknown, size);
	if (op == INTERP_OP_MULX) {
		interp_set(m, i->vvvv, size, prefix, low, unknown);
		interp_set(m, i->reg, size, prefix, high, unknown);
	} else if (size == 1) {
		interp_set(m, INTERP_RAX, 2, prefix, (low & 0xff) | (high & 0xff) << 8, unknown);
	} else {
		interp_set(m, INTERP_RAX, size, prefix, low, unknown);
		interp_set(m, INTERP_RDX, size, prefix, high, unknown);
	}
	interp_settle_flags(m, i->entry, unknown);
	m->ip = i->next;
	return INTERP_GOES_ON;
}

/* xchg, xadd, cmpxchg. */
INTERP_FN int interp_exchange(struct interp *m, u64 rm, u32 urm)
{
	u32 op, size, prefix, ub, ua, shift, equal, reg;
	u64 b, accumulator, value, old;
	struct interp_insn *i;
	int stop = 0;

	if (!m)
		return INTERP_FETCH;
	i = &m->insn;
	op = INTERP_E_OP(i->entry);
	size = i->size;
	prefix = i->prefix;
	shift = (64 - size * 8) & 63;
	/* Opcode 90 to 97 exchanges with the accumulator. */
	reg = INTERP_E_FORM(i->entry) == INTERP_F_O || op == INTERP_OP_NOP ? INTERP_RAX : i->reg;
	b = interp_get(m, reg, size, prefix);
	ub = interp_get_unknown(m, reg, size, prefix);
	old = rm;
	if (op == INTERP_OP_CMPXCHG) {
		accumulator = interp_get(m, INTERP_RAX, size, prefix | INTERP_P_REX);
		ua = interp_get_unknown(m, INTERP_RAX, size, prefix | INTERP_P_REX) | urm;
		interp_subtract(m, accumulator, rm, 0, shift);
		interp_settle_flags(m, i->entry, ua);
		equal = m->zero == 0;
		interp_note_values(m, rm, urm, b, ub, size);
		if (ua) { /* who knows which */
			b = 0;
			ub = 1;
		} else if (!equal) {
			b = rm;
			ub = urm;
		}
		if (i->memory)
			stop = interp_store_operand(m, i->address, size, b, ub);
		else if (equal || ua)
			interp_set(m, i->rm, size, prefix, b, ub);
		if (stop)
			return stop;
		if (!equal || ua)
			interp_set(m, INTERP_RAX, size, prefix | INTERP_P_REX, rm, ua);
	} else {
		value = b;
		if (op == INTERP_OP_XADD) {
			value = interp_add(m, rm, b, 0, shift);
			ub |= urm;
			interp_settle_flags(m, i->entry, ub);
		}
		interp_note_values(m, value, ub, b, ub, size);
		if (i->memory) {
			stop = interp_store_operand(m, i->address, size, value, ub);
			if (stop)
				return stop;
			interp_set(m, reg, size, prefix, old, urm);
		} else if (op == INTERP_OP_XADD) {
			interp_set(m, reg, size, prefix, old, urm);
			interp_set(m, i->rm, size, prefix, value, ub);
		} else {
			interp_set(m, i->rm, size, prefix, value, ub);
			interp_set(m, reg, size, prefix, old, urm);
		}
	}
	m->ip = i->next;
	return INTERP_GOES_ON;
}

/* cmpxchg8b and 16b: rdx:rax against memory. */
INTERP_FN int interp_exchange_wide(struct interp *m)
{
	const u32 used = 1u << INTERP_RAX | 1u << INTERP_RDX;
	u64 low, high, mask;
	u32 half, unknown, equal;
	struct interp_insn *i;
	int stop;

	if (!m)
		return INTERP_FETCH;
	i = &m->insn;
	half = i->size;
	mask = interp_mask(half);
	if (!i->memory)
		return INTERP_INSTRUCTION;
	if (half == 8 && i->address & 15 && !i->address_unknown)
		return INTERP_FAULT;
	stop = interp_load_operand(m, i->address, half);
	if (stop)
		return stop;
	low = m->loaded;
	unknown = m->loaded_unknown;
	interp_load_operand(m, i->address + half, half);
	high = m->loaded;
	unknown |= m->loaded_unknown | (((m->unknown | m->unknown_low) & used) != 0);
	equal = low == (m->r[INTERP_RAX] & mask) && high == (m->r[INTERP_RDX] & mask);
	if (unknown || equal) {
		u32 lost = unknown || (m->unknown | m->unknown_low) >> INTERP_RBX & 1;

		stop = interp_store_operand(m, i->address, half, m->r[INTERP_RBX], lost);
		lost = unknown || (m->unknown | m->unknown_low) >> INTERP_RCX & 1;
		if (!stop)
			stop = interp_store_operand(
				m, i->address + half, half, m->r[INTERP_RCX], lost);
		if (stop)
			return stop;
	}
	if (unknown || !equal) {
		interp_set(m, INTERP_RAX, half, INTERP_P_REX, low, unknown);
		interp_set(m, INTERP_RDX, half, INTERP_P_REX, high, unknown);
	}
	INTERP_NOTE(m->effect.address = i->address);
	/* Of the flags ZF alone changes. */
	if (unknown)
		m->unknown_flags |= INTERP_ZF;
	else
		m->unknown_flags &= ~INTERP_ZF;
	m->zero = !equal;
	m->ip = i->next;
	return INTERP_GOES_ON;
}

INTERP_FN int interp_pair(struct interp *m)
{
	u32 op, size, unknown;
	struct interp_insn *i;
	u64 rm;

	if (!m)
		return INTERP_FETCH;
	i = &m->insn;
	op = INTERP_E_OP(i->entry);
	size = i->size;
	if (op == INTERP_OP_CMPXCHG8B)
		return interp_exchange_wide(m);
	if (i->memory) {
		int stop = interp_load_operand(m, i->address, size);

		if (stop)
			return stop;
		rm = m->loaded;
		unknown = m->loaded_unknown;
	} else {
		rm = interp_get(m, i->rm, size, i->prefix);
		unknown = interp_get_unknown(m, i->rm, size, i->prefix);
	}
	if (op >= INTERP_OP_MUL && op <= INTERP_OP_MULX)
		return interp_muldiv(m, rm, unknown);
	return interp_exchange(m, rm, unknown);
}

#endif
