/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR Apache-2.0 */
/* Shifts and rotations. Included by interp_run.h only. */
#ifndef CULPRIT_ISA_INTERP_SHIFT_H
#define CULPRIT_ISA_INTERP_SHIFT_H

#include "isa/interp_alu.h"

/* Shifts by 64 and more give 0, as those of C do not. */
INTERP_INLINE u64 interp_left(u64 x, u32 n)
{
	return n > 63 ? 0 : x << n;
}

INTERP_INLINE u64 interp_right(u64 x, u32 n)
{
	return n > 63 ? 0 : x >> n;
}

/*
 * One shift by 1..63 that sets flags; the count is masked already. Where the manual says that a
 * flag or the result is undefined it becomes unknown.
 */
INTERP_FN u64 interp_shift_by(struct interp *m, u64 a, u64 b, u32 n, u32 *unknown)
{
	u32 op, size, bits, shift, undefined = INTERP_AF, set = INTERP_FLAGS & ~INTERP_AF, r;
	u64 value = 0, top, low;

	if (!m || !unknown)
		return 0;
	op = INTERP_E_OP(m->insn.entry);
	size = m->insn.size;
	bits = size * 8;
	shift = (64 - bits) & 63;
	top = 1ull << ((bits - 1) & 63);
	if (n != 1)
		undefined |= INTERP_OF;
	switch (op) {
	case INTERP_OP_SHL:
	case INTERP_OP_SAL:
		value = interp_left(a, n) & interp_mask(size);
		m->carry = n <= bits ? interp_right(a, bits - n) & 1 : 0;
		m->overflow = (value & top ? 1 : 0) ^ m->carry;
		if (n >= bits)
			undefined |= INTERP_CF;
		break;
	case INTERP_OP_SHR:
		value = interp_right(a, n);
		m->carry = interp_right(a, n - 1) & 1;
		m->overflow = a >> ((bits - 1) & 63) & 1;
		if (n >= bits)
			undefined |= INTERP_CF;
		break;
	case INTERP_OP_SAR:
		value = (u64)((s64)interp_extend(a, size) >> (n & 63)) & interp_mask(size);
		m->carry = (u64)((s64)interp_extend(a, size) >> ((n - 1) & 63)) & 1;
		m->overflow = 0;
		break;
	case INTERP_OP_SHLD:
		if (n > bits)
			*unknown = 1;
		value = (interp_left(a, n) | interp_right(b, bits - n)) & interp_mask(size);
		m->carry = interp_right(a, bits - n) & 1;
		m->overflow = (a ^ value) >> ((bits - 1) & 63) & 1;
		break;
	case INTERP_OP_SHRD:
		if (n > bits)
			*unknown = 1;
		value = (interp_right(a, n) | interp_left(b, bits - n)) & interp_mask(size);
		m->carry = interp_right(a, n - 1) & 1;
		m->overflow = (a ^ value) >> ((bits - 1) & 63) & 1;
		break;
	case INTERP_OP_ROL:
		r = n & (bits - 1);
		value = (interp_left(a, r) | interp_right(a, bits - r)) & interp_mask(size);
		m->carry = value & 1;
		m->overflow = (value & top ? 1 : 0) ^ m->carry;
		break;
	case INTERP_OP_ROR:
		r = n & (bits - 1);
		value = (interp_right(a, r) | interp_left(a, bits - r)) & interp_mask(size);
		m->carry = value & top ? 1 : 0;
		m->overflow = (value ^ value << 1) >> ((bits - 1) & 63) & 1;
		break;
	case INTERP_OP_RCL:
	case INTERP_OP_RCR:
		r = bits == 8 ? n % 9 : bits == 16 ? n % 17 : n;
		if (m->unknown_flags & INTERP_CF)
			*unknown = 1;
		low = m->carry & 1;
		if (!r) {
			value = a;
		} else if (op == INTERP_OP_RCL) {
			value = (interp_left(a, r) | interp_left(low, r - 1) |
					interp_right(a, bits + 1 - r)) &
				interp_mask(size);
			m->carry = interp_right(a, bits - r) & 1;
		} else {
			value = (interp_right(a, r) | interp_left(low, bits - r) |
					interp_left(a, bits + 1 - r)) &
				interp_mask(size);
			m->carry = interp_right(a, r - 1) & 1;
		}
		m->overflow = op == INTERP_OP_RCL ? (value & top ? 1 : 0) ^ m->carry
						  : (value ^ value << 1) >> ((bits - 1) & 63) & 1;
		break;
	}
	if (op >= INTERP_OP_ROL && op <= INTERP_OP_RCR) {
		set = INTERP_CF | INTERP_OF;
		undefined &= INTERP_OF;
	} else {
		interp_set_result(m, value << shift, value);
	}
	if (*unknown)
		m->unknown_flags |= set | undefined;
	else
		m->unknown_flags = (m->unknown_flags & ~set) | undefined;
	return value;
}

INTERP_INLINE u64 interp_shift_plain(u32 op, u64 a, u32 n, u32 size)
{
	u32 bits = size * 8;

	switch (op) {
	case INTERP_OP_RORX:
		return (interp_right(a, n) | interp_left(a, bits - n)) & interp_mask(size);
	case INTERP_OP_SARX:
		return (u64)((s64)interp_extend(a, size) >> (n & 63)) & interp_mask(size);
	case INTERP_OP_SHLX:
		return interp_left(a, n) & interp_mask(size);
	default:
		return interp_right(a, n);
	}
}

/*
 * Most shifts: a whole register by a constant, while all registers are known. Shifted up, so that
 * the bits that fall out at one end are the same for both sizes. Returns 0 for any other.
 */
INTERP_INLINE u32 interp_shift_quick(struct interp *m, u32 op)
{
	struct interp_insn *i = &m->insn;
	u32 form = INTERP_E_FORM(i->entry), size = i->size, up = (64 - size * 8) & 63;
	u32 n = (form == INTERP_F_RM_1 ? 1 : (u32)i->immediate) & (size * 8 - 1) & 63;
	u64 x = m->r[i->rm & 15] << up, value;

	if (i->memory || size < 4 || !n || m->unknown | m->unknown_low ||
		(form != INTERP_F_RM_1 && form != INTERP_F_RM_I))
		return 0;
	if (op == INTERP_OP_SHL || op == INTERP_OP_SAL) {
		value = x << n;
		m->carry = x >> (64 - n) & 1;
		m->overflow = value >> 63 ^ m->carry;
	} else if (op == INTERP_OP_SHR || op == INTERP_OP_SAR) {
		u64 sign = (0 - (u64)(op == INTERP_OP_SAR)) & (u64)((s64)x >> 63);

		m->carry = x >> (up + n - 1) & 1;
		m->overflow = (x & ~sign) >> 63;
		value = (x >> n | sign << (64 - n)) >> up << up;
	} else {
		return 0;
	}
	interp_set_result(m, value, value >> up);
	m->unknown_flags =
		(m->unknown_flags & ~INTERP_FLAGS) | INTERP_AF | (n != 1 ? INTERP_OF : 0);
	m->r[i->rm & 15] = value >> up;
	interp_note_values(m, value >> up, 0, n, 0, size);
	m->ip = i->next;
	return 1;
}

INTERP_FN int interp_shift(struct interp *m)
{
	u32 op, form, size, prefix, n, to, ua, ub = 0, un = 0, unknown;
	u64 a, b = 0, count = 0, value;
	struct interp_insn *i;
	int stop;

	if (!m)
		return INTERP_FETCH;
	i = &m->insn;
	op = INTERP_E_OP(i->entry);
	if (interp_shift_quick(m, op))
		return INTERP_GOES_ON;
	form = INTERP_E_FORM(i->entry);
	size = i->size;
	prefix = i->prefix;
	if (i->memory) {
		stop = interp_load_operand(m, i->address, size);
		if (stop)
			return stop;
		a = m->loaded;
		ua = m->loaded_unknown;
	} else {
		a = interp_get(m, i->rm, size, prefix);
		ua = interp_get_unknown(m, i->rm, size, prefix);
	}
	to = i->rm;
	if (form == INTERP_F_RM_1) {
		count = 1;
	} else if (form == INTERP_F_R_RM_V) {
		count = m->r[i->vvvv & 15];
		un = (m->unknown | m->unknown_low) >> (i->vvvv & 15) & 1;
		to = i->reg;
	} else if (INTERP_E_IMMEDIATE(i->entry) == INTERP_I_8) {
		count = i->immediate;
		to = form == INTERP_F_R_RM_I ? i->reg : i->rm;
	} else {
		count = m->r[INTERP_RCX];
		un = m->unknown_low >> INTERP_RCX & 1;
	}
	if (op == INTERP_OP_SHLD || op == INTERP_OP_SHRD) {
		b = interp_get(m, i->reg, size, prefix);
		ub = interp_get_unknown(m, i->reg, size, prefix);
	}
	n = count & (size == 8 ? 63 : 31);
	unknown = ua | ub | un;
	if (op >= INTERP_OP_RORX)
		value = interp_shift_plain(op, a, n, size);
	else if (un)
		value = a, m->unknown_flags |= INTERP_FLAGS;
	else if (n)
		value = interp_shift_by(m, a, b, n, &unknown);
	else
		value = a, unknown = ua;
	interp_note_values(m, value, unknown, count, un, size);
	if (to == i->rm && i->memory && op < INTERP_OP_RORX) {
		stop = interp_store_operand(m, i->address, size, value, unknown);
		if (stop)
			return stop;
	} else {
		interp_set(m, to, size, prefix, value, unknown);
	}
	m->ip = i->next;
	return INTERP_GOES_ON;
}

#endif
