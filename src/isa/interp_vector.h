/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR Apache-2.0 */
/*
 * Moves, integer operations and comparisons of numbers in 128-bit vectors whose value is known
 * because the run itself loaded or made it. Included by interp_run.h only.
 */
#ifndef CULPRIT_ISA_INTERP_VECTOR_H
#define CULPRIT_ISA_INTERP_VECTOR_H

#include "isa/interp_flow.h"

#define INTERP_X_UNKNOWN(m, n) (~(m)->known_xmm >> ((n)&15) & 1)

INTERP_INLINE void interp_set_vector(struct interp *m, u32 reg, u64 low, u64 high, u32 unknown)
{
	u32 bit = 1u << (reg & 15);

	m->xmm[reg & 15][0] = low;
	m->xmm[reg & 15][1] = high;
	m->known_xmm = unknown ? m->known_xmm & ~bit : m->known_xmm | bit;
}

/* Sums and differences of lanes without carries between them; `high` has each lane's top bit. */
INTERP_INLINE u64 interp_lanes_add(u64 a, u64 b, u64 high)
{
	return ((a & ~high) + (b & ~high)) ^ ((a ^ b) & high);
}

INTERP_INLINE u64 interp_lanes_subtract(u64 a, u64 b, u64 high)
{
	return ((a | high) - (b & ~high)) ^ ((a ^ ~b) & high);
}

/* All ones in the lanes that are equal. */
INTERP_INLINE u64 interp_lanes_equal(u64 a, u64 b, u64 high, u32 width)
{
	u64 x = a ^ b, zero;

	zero = ~(((x & ~high) + ~high) | x) & high; /* the top bit of lanes that are zero */
	return (zero >> (width - 1)) * (~0ull >> (64 - width));
}

#define INTERP_HIGH8  0x8080808080808080ull
#define INTERP_HIGH16 0x8000800080008000ull
#define INTERP_HIGH32 0x8000000080000000ull
#define INTERP_HIGH64 0x8000000000000000ull

/* All ones in the lanes of a that are below those of b, without signs. */
INTERP_INLINE u64 interp_lanes_below(u64 a, u64 b, u64 high, u32 width)
{
	u64 less = ((~a & b) | ((~a | b) & interp_lanes_subtract(a, b, high))) & high;

	return (less >> (width - 1)) * (~0ull >> (64 - width));
}

/* With signs: b is below a. */
INTERP_INLINE u64 interp_lanes_greater(u64 a, u64 b, u64 high, u32 width)
{
	return interp_lanes_below(b ^ high, a ^ high, high, width);
}

INTERP_INLINE u64 interp_lanes(u32 op, u64 a, u64 b)
{
	u64 less;

	switch (op) {
	case INTERP_OP_XAND:
		return a & b;
	case INTERP_OP_XANDN:
		return ~a & b;
	case INTERP_OP_XOR_:
		return a | b;
	case INTERP_OP_XXOR:
		return a ^ b;
	case INTERP_OP_XADD8:
		return interp_lanes_add(a, b, INTERP_HIGH8);
	case INTERP_OP_XADD16:
		return interp_lanes_add(a, b, INTERP_HIGH16);
	case INTERP_OP_XADD32:
		return interp_lanes_add(a, b, INTERP_HIGH32);
	case INTERP_OP_XADD64:
		return a + b;
	case INTERP_OP_XSUB8:
		return interp_lanes_subtract(a, b, INTERP_HIGH8);
	case INTERP_OP_XSUB16:
		return interp_lanes_subtract(a, b, INTERP_HIGH16);
	case INTERP_OP_XSUB32:
		return interp_lanes_subtract(a, b, INTERP_HIGH32);
	case INTERP_OP_XSUB64:
		return a - b;
	case INTERP_OP_XEQ8:
		return interp_lanes_equal(a, b, INTERP_HIGH8, 8);
	case INTERP_OP_XEQ16:
		return interp_lanes_equal(a, b, INTERP_HIGH16, 16);
	case INTERP_OP_XEQ32:
		return interp_lanes_equal(a, b, INTERP_HIGH32, 32);
	case INTERP_OP_XGREATER8:
		return interp_lanes_greater(a, b, INTERP_HIGH8, 8);
	case INTERP_OP_XGREATER16:
		return interp_lanes_greater(a, b, INTERP_HIGH16, 16);
	case INTERP_OP_XGREATER32:
		return interp_lanes_greater(a, b, INTERP_HIGH32, 32);
	default: /* XMINU8 and XMAXU8 */
		less = interp_lanes_below(a, b, INTERP_HIGH8, 8);
		less = op == INTERP_OP_XMINU8 ? less : ~less;
		return (a & less) | (b & ~less);
	}
}

/* The lanes of 32 bits, with as much room behind each. */
INTERP_INLINE u64 interp_widen_lanes(u64 lanes, u32 width)
{
	u64 x = lanes & 0xffffffff;

	if (width <= 16)
		x = (x | x << 16) & 0x0000ffff0000ffffull;
	if (width == 8)
		x = (x | x << 8) & 0x00ff00ff00ff00ffull;
	return x;
}

/* The lanes of a and b in turns. */
INTERP_INLINE u64 interp_interleave(u64 a, u64 b, u32 width)
{
	return interp_widen_lanes(a, width) | interp_widen_lanes(b, width) << width;
}

/* The words of x that an immediate names. */
INTERP_INLINE u64 interp_shuffle16(u64 x, u32 which)
{
	u64 out = 0;

	for (u32 k = 0; k < 4; k++)
		out |= (x >> (which >> k * 2 & 3) * 16 & 0xffff) << k * 16;
	return out;
}

INTERP_INLINE u64 interp_byte_mask(u64 x)
{
	return ((x & INTERP_HIGH8) >> 7) * 0x0102040810204080ull >> 56;
}

INTERP_INLINE u64 interp_sign_mask(u64 low, u64 high, u32 width)
{
	u64 mask = low >> 63 | high >> 63 << 1;

	if (width == 64)
		return mask;
	return (low >> 31 & 1) | low >> 63 << 1 | (high >> 31 & 1) << 2 | high >> 63 << 3;
}

/* ---- numbers with a fraction ---- */

/* One of four bytes stands in the upper half, so that signs and orders are as in one of eight. */
#define INTERP_INFINITY(bytes) ((bytes) == 4 ? 0x7f80000000000000ull : 0x7ff0000000000000ull)
#define INTERP_NORMAL(bytes)   ((bytes) == 4 ? 0x0080000000000000ull : 0x0010000000000000ull)

/* Whether it is too small to have all its digits: a mode of the processor takes that for zero. */
INTERP_INLINE u32 interp_is_denormal(u64 x, u32 bytes)
{
	return x << 1 && x << 1 < INTERP_NORMAL(bytes) << 1;
}

INTERP_INLINE u64 interp_order(u64 x)
{
	u64 size = x & ~INTERP_HIGH64;

	return x & INTERP_HIGH64 ? INTERP_HIGH64 - size : INTERP_HIGH64 + size;
}

/* comiss and the like: the flags, and whether nobody knows them. */
INTERP_INLINE u32 interp_compare_numbers(struct interp *m, u64 a, u64 b, u32 bytes)
{
	u32 none;

	if (bytes == 4) {
		a <<= 32;
		b <<= 32;
	}
	none = (a & ~INTERP_HIGH64) > INTERP_INFINITY(bytes) ||
	       (b & ~INTERP_HIGH64) > INTERP_INFINITY(bytes);
	m->zero = none ? 0 : interp_order(a) ^ interp_order(b);
	m->carry = none || interp_order(a) < interp_order(b);
	m->parity = !none;
	m->sign = m->overflow = m->adjust = 0;
	return interp_is_denormal(a, bytes) | interp_is_denormal(b, bytes);
}

/* Four bytes to eight, which loses nothing; unknown for what is denormal. */
INTERP_INLINE u64 interp_widen(u64 number, u32 *unknown)
{
	u64 x = number << 32, size = (x & ~INTERP_HIGH64) >> 3, sign = x & INTERP_HIGH64;

	*unknown |= interp_is_denormal(x, 4);
	if (!size)
		return sign;
	if (size < INTERP_INFINITY(4) >> 3)
		return sign | (size + ((1023ull - 127) << 52));
	size |= INTERP_INFINITY(8);
	return sign | size | (size & 0x000fffffffffffffull ? 1ull << 51 : 0); /* a quiet one */
}

/* Bytes of high:low from byte n on, n below 16. */
INTERP_INLINE u64 interp_window(u64 low, u64 high, u32 n)
{
	u32 shift = n * 8 & 63;

	if (n >= 8)
		return high >> shift;
	return low >> shift | high << 1 << (63 - shift);
}

INTERP_INLINE int interp_store_vector(struct interp *m, u64 low, u64 high, u32 unknown)
{
	u64 address = m->insn.address;
	int stop = interp_store_operand(m, address, 8, low, unknown);

	if (!stop)
		stop = interp_store_operand(m, address + 8, 8, high, unknown);
	INTERP_NOTE(m->effect.address = address);
	return stop;
}

/* The rm operand: 16, 8 or 4 bytes of memory, or a register. */
INTERP_INLINE int interp_vector_operand(
	struct interp *m, u32 bytes, u64 *low, u64 *high, u32 *unknown)
{
	struct interp_insn *i = &m->insn;
	int stop;

	*high = 0;
	if (!i->memory) {
		*low = m->xmm[i->rm & 15][0];
		*high = m->xmm[i->rm & 15][1];
		*unknown = INTERP_X_UNKNOWN(m, i->rm);
		return INTERP_GOES_ON;
	}
	if (bytes == 16) {
		stop = interp_load_operand(m, i->address + 8, 8);
		if (stop)
			return stop;
		*high = m->loaded;
		*unknown = m->loaded_unknown;
		bytes = 8;
	} else {
		*unknown = 0;
	}
	stop = interp_load_operand(m, i->address, bytes);
	*low = m->loaded;
	*unknown |= m->loaded_unknown;
	return stop;
}

INTERP_INLINE u32 interp_vector_bytes(u32 op, u64 entry)
{
	if (op == INTERP_OP_XMOVQ || op == INTERP_OP_XLOW || op == INTERP_OP_XHIGH)
		return 8;
	if (op == INTERP_OP_XCOMPARE32 || op == INTERP_OP_XWIDEN)
		return 4;
	if (op == INTERP_OP_XCOMPARE64)
		return 8;
	if (op == INTERP_OP_XMOVS)
		return INTERP_E_SIZE(entry) == INTERP_S_32 ? 4 : 8;
	return 16;
}

/* To and from general registers and memory. */
INTERP_INLINE int interp_vector_store(struct interp *m, u32 op)
{
	struct interp_insn *i = &m->insn;
	u64 low = m->xmm[i->reg & 15][0], high = m->xmm[i->reg & 15][1];
	u32 unknown = INTERP_X_UNKNOWN(m, i->reg), size = i->size;

	interp_note_values(m, op == INTERP_OP_XSTOREHIGH ? high : low, unknown, 0, 1, 8);
	switch (op) {
	case INTERP_OP_XSTORE:
		if (i->memory)
			return interp_store_vector(m, low, high, unknown);
		interp_set_vector(m, i->rm, low, high, unknown);
		return INTERP_GOES_ON;
	case INTERP_OP_XSTOREQ:
		size = INTERP_E_SIZE(i->entry) == INTERP_S_32 ? 4 : 8;
		if (i->memory)
			return interp_store_operand(m, i->address, size, low, unknown);
		interp_set_vector(m, i->rm, low, 0, unknown);
		return INTERP_GOES_ON;
	case INTERP_OP_XSTOREHIGH:
		return interp_store_operand(m, i->address, 8, high, unknown);
	default: /* XTO */
		if (i->memory)
			return interp_store_operand(m, i->address, size, low, unknown);
		interp_set(m, i->rm, size, INTERP_P_REX, low, unknown);
		return INTERP_GOES_ON;
	}
}

INTERP_INLINE int interp_vector_from(struct interp *m)
{
	struct interp_insn *i = &m->insn;
	u64 value;
	u32 unknown;

	if (i->memory) {
		int stop = interp_load_operand(m, i->address, i->size);

		if (stop)
			return stop;
		value = m->loaded;
		unknown = m->loaded_unknown;
	} else {
		value = interp_get(m, i->rm, i->size, INTERP_P_REX);
		unknown = interp_get_unknown(m, i->rm, i->size, INTERP_P_REX);
	}
	interp_note_values(m, value, unknown, 0, 1, i->size);
	interp_set_vector(m, i->reg, value, 0, unknown);
	return INTERP_GOES_ON;
}

INTERP_FN int interp_vector(struct interp *m)
{
	u64 a, a2, b = 0, b2 = 0, low = 0, high = 0;
	u32 op, form, ua, ub = 0, from, to, n;
	struct interp_insn *i;
	int stop = 0;

	if (!m)
		return INTERP_FETCH;
	i = &m->insn;
	op = INTERP_E_OP(i->entry);
	form = INTERP_E_FORM(i->entry);
	if (i->prefix & INTERP_P_VEX && INTERP_P_VL(i->prefix) != 16)
		return interp_result(m);
	if (interp_misaligned(i))
		return INTERP_FAULT;
	if ((op >= INTERP_OP_XSTORE && op <= INTERP_OP_XSTOREQ && op != INTERP_OP_XMOVQ) ||
		op == INTERP_OP_XSTOREHIGH || op == INTERP_OP_XTO || op == INTERP_OP_XFROM) {
		stop = op == INTERP_OP_XFROM ? interp_vector_from(m) : interp_vector_store(m, op);
		if (!stop)
			m->ip = i->next;
		return stop;
	}
	stop = interp_vector_operand(m, interp_vector_bytes(op, i->entry), &b, &b2, &ub);
	if (stop)
		return stop;
	from = i->prefix & INTERP_P_VEX ? i->vvvv : i->reg;
	to = i->reg;
	a = m->xmm[from & 15][0];
	a2 = m->xmm[from & 15][1];
	ua = INTERP_X_UNKNOWN(m, from);
	switch (op) {
	case INTERP_OP_XMOV:
		low = b;
		high = b2;
		ua = 0;
		break;
	case INTERP_OP_XMOVQ:
	case INTERP_OP_XMOVS:
		low = b;
		ua = 0;
		break;
	case INTERP_OP_XLOW:
		low = i->memory ? b : b2;
		high = a2;
		break;
	case INTERP_OP_XHIGH:
		low = a;
		high = b;
		break;
	case INTERP_OP_XUNPACKLQ:
		low = a;
		high = b;
		break;
	case INTERP_OP_XUNPACKHQ:
		low = a2;
		high = b2;
		break;
	case INTERP_OP_XUNPACKL8:
	case INTERP_OP_XUNPACKL16:
	case INTERP_OP_XUNPACKL32:
		n = 8u << ((op - INTERP_OP_XUNPACKL8) & 3);
		low = interp_interleave(a, b, n);
		high = interp_interleave(a >> 32, b >> 32, n);
		break;
	case INTERP_OP_XUNPACKH8:
	case INTERP_OP_XUNPACKH16:
	case INTERP_OP_XUNPACKH32:
		n = 8u << ((op - INTERP_OP_XUNPACKH8) & 3);
		low = interp_interleave(a2, b2, n);
		high = interp_interleave(a2 >> 32, b2 >> 32, n);
		break;
	case INTERP_OP_XSHUFL16:
		low = interp_shuffle16(b, (u32)i->immediate);
		high = b2;
		ua = 0;
		break;
	case INTERP_OP_XSHUFH16:
		low = b;
		high = interp_shuffle16(b2, (u32)i->immediate);
		ua = 0;
		break;
	case INTERP_OP_XWIDEN:
		low = interp_widen(b, &ub);
		high = a2;
		break;
	case INTERP_OP_XMASK8:
	case INTERP_OP_XMASK32:
	case INTERP_OP_XMASK64:
		low = op == INTERP_OP_XMASK8
			      ? interp_byte_mask(b) | interp_byte_mask(b2) << 8
			      : interp_sign_mask(b, b2, op == INTERP_OP_XMASK32 ? 32 : 64);
		interp_note_values(m, low, ub, b, ub, 4);
		interp_set(m, i->reg, 4, INTERP_P_REX, low, ub);
		m->ip = i->next;
		return INTERP_GOES_ON;
	case INTERP_OP_XSHUF32:
		for (u32 k = 0; k < 4; k++) {
			u32 lane = (u32)i->immediate >> k * 2 & 3;
			u64 word = (lane & 2 ? b2 : b) >> (lane & 1) * 32 & 0xffffffff;

			if (k < 2)
				low |= word << k * 32;
			else
				high |= word << (k - 2) * 32;
		}
		ua = 0;
		break;
	case INTERP_OP_XSHR128:
	case INTERP_OP_XSHL128:
		/* The register is rm; VEX writes it to vvvv. */
		n = i->immediate & 0xff;
		to = form == INTERP_F_V_RM ? i->vvvv : i->rm;
		ua = 0;
		if (n > 15)
			break;
		if (op == INTERP_OP_XSHR128) {
			low = interp_window(b, b2, n);
			high = n < 8 ? b2 >> n * 8 : 0;
		} else {
			low = n < 8 ? b << n * 8 : 0;
			high = n ? interp_window(b, b2, 0) : b;
			high = n == 0   ? b2
			       : n >= 8 ? b << ((n - 8) * 8 & 63)
					: b2 << n * 8 | b >> (64 - n * 8);
		}
		break;
	case INTERP_OP_XCOMPARE32:
	case INTERP_OP_XCOMPARE64:
		/* The first operand is the register of modrm.reg also with VEX. */
		ua = INTERP_X_UNKNOWN(m, i->reg);
		a = m->xmm[i->reg & 15][0];
		ua |= interp_compare_numbers(m, a, b, op == INTERP_OP_XCOMPARE32 ? 4 : 8);
		interp_settle_flags(m, i->entry, ua | ub);
		m->ip = i->next;
		return INTERP_GOES_ON;
	case INTERP_OP_XPTEST:
		ua = INTERP_X_UNKNOWN(m, i->reg);
		a = m->xmm[i->reg & 15][0];
		a2 = m->xmm[i->reg & 15][1];
		m->zero = (a & b) | (a2 & b2);
		m->carry = !((~a & b) | (~a2 & b2));
		m->sign = m->overflow = m->adjust = 0;
		m->parity = 1;
		interp_settle_flags(m, i->entry, ua | ub);
		m->ip = i->next;
		return INTERP_GOES_ON;
	default:
		/* A register with itself: all zeros or all ones. */
		if (!i->memory && i->rm == from &&
			(op == INTERP_OP_XXOR || op == INTERP_OP_XANDN ||
				(op >= INTERP_OP_XSUB8 && op <= INTERP_OP_XEQ32)))
			a = a2 = b = b2 = ua = ub = 0;
		low = interp_lanes(op, a, b);
		high = interp_lanes(op, a2, b2);
		break;
	}
	interp_note_values(m, low, ua | ub, b, ub, 8);
	interp_set_vector(m, to, low, high, ua | ub);
	m->ip = i->next;
	return INTERP_GOES_ON;
}

#endif
