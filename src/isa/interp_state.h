/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR Apache-2.0 */
/* Registers, flags and memory of the interpreter. Included by interp_run.h only. */
#ifndef CULPRIT_ISA_INTERP_STATE_H
#define CULPRIT_ISA_INTERP_STATE_H

#include "isa/interp.h"
#include "isa/interp_ops.h"

/*
 * The verifier of BPF checks a global function once and for all, and a static one at each of its
 * calls. It wants every pointer checked and every index masked.
 */
#ifdef __bpf__
#define INTERP_FN __attribute__((noinline))
#else
#define INTERP_FN static
#endif
#ifdef __clang__
#define INTERP_ROLLED _Pragma("clang loop unroll(disable)") /* small code is warm code */
#else
#define INTERP_ROLLED
#endif
#define INTERP_BARRIER __asm__ volatile("" ::: "memory")
/*
 * The verifier takes all registers that may carry arguments for used by every call, and tells
 * states apart by what was left in them.
 */
#ifdef __bpf__
#define INTERP_FORGET                                                \
	__asm__ volatile("r1 = 0; r2 = 0; r3 = 0; r4 = 0; r5 = 0" :: \
				 : "r0", "r1", "r2", "r3", "r4", "r5", "memory")
#else
#define INTERP_FORGET INTERP_BARRIER
#endif
/* What the compiler knows of a value, and the verifier does not. */
#define INTERP_HIDE(x) __asm__("" : "+r"(x))
#define INTERP_INLINE  static inline __attribute__((always_inline))

INTERP_INLINE u64 interp_mask(u32 size)
{
	return ~0ull >> ((64 - size * 8) & 63);
}

INTERP_INLINE u64 interp_extend(u64 value, u32 size)
{
	u32 shift = (64 - size * 8) & 63;

	return (u64)((s64)(value << shift) >> shift);
}

/* ---- registers ---- */

/*
 * 4 for a byte without REX, where registers 4 to 7 are ah, ch, dh and bh: bits 8 to 15 of the first
 * four; else 0. Computed, as BPF would branch.
 */
INTERP_INLINE u32 interp_old_byte(u32 size, u32 prefix)
{
	u64 other = size >> 1 | (prefix & INTERP_P_REX);

	return (u32)((other - 1) >> 63) * 4;
}

/* By how many bits the operand is shifted in its register: 8 or 0. */
INTERP_INLINE u32 interp_high(u32 reg, u32 size, u32 prefix)
{
	return (reg & interp_old_byte(size, prefix)) * 2;
}

INTERP_INLINE u64 interp_get(const struct interp *m, u32 reg, u32 size, u32 prefix)
{
	u32 n = reg & ~interp_old_byte(size, prefix) & 15;

	return m->r[n] >> interp_high(reg, size, prefix) & interp_mask(size);
}

INTERP_INLINE u32 interp_get_unknown(const struct interp *m, u32 reg, u32 size, u32 prefix)
{
	if (interp_high(reg, size, prefix))
		return m->unknown >> (reg & 3) & 1;
	if (size == 1)
		return m->unknown_low >> (reg & 15) & 1;
	return (m->unknown | m->unknown_low) >> (reg & 15) & 1;
}

/* As the processor does: four bytes clear the upper half, one or two leave the rest alone. */
INTERP_INLINE void interp_write(struct interp *m, u32 reg, u32 size, u32 prefix, u64 value)
{
	u32 high = interp_high(reg, size, prefix), n = reg & ~interp_old_byte(size, prefix) & 15;
	u64 mask = interp_mask(size) << high, whole = 0 - (u64)(size >> 2 | size >> 3);

	m->r[n] = (m->r[n] & ~(mask | whole)) | (value << high & mask);
}

INTERP_INLINE void interp_set(
	struct interp *m, u32 reg, u32 size, u32 prefix, u64 value, u32 unknown)
{
	u32 bit = 1u << (reg & 15);

	interp_write(m, reg, size, prefix, value);
	if (!(unknown | m->unknown | m->unknown_low))
		return;
	if (interp_high(reg, size, prefix)) {
		if (unknown)
			m->unknown |= 1u << (reg & 3);
		return;
	}
	m->unknown_low = unknown ? m->unknown_low | bit : m->unknown_low & ~bit;
	if (unknown && size > 1)
		m->unknown |= bit;
	else if (size >= 4)
		m->unknown &= ~bit;
}

/* What a segment prefix adds to an address. */
INTERP_INLINE u64 interp_segment(const struct interp *m, u32 prefix)
{
	return prefix & INTERP_P_FS ? m->base[0] : prefix & INTERP_P_GS ? m->base[1] : 0;
}

INTERP_INLINE void interp_lose(struct interp *m, u32 reg)
{
	m->unknown |= 1u << (reg & 15);
	m->unknown_low |= 1u << (reg & 15);
}

/* ---- flags ---- */

/* SF, ZF and PF from a result that is shifted so that its sign is bit 63. */
INTERP_INLINE void interp_set_result(struct interp *m, u64 shifted, u64 value)
{
	m->zero = shifted;
	m->sign = shifted;
	m->parity = (u8)value;
}

/* After an instruction: which flags are known now. */
INTERP_INLINE void interp_settle_flags(struct interp *m, u64 entry, u32 unknown)
{
	u32 set = INTERP_E_SET(entry), undefined = INTERP_E_UNDEFINED(entry);

	if (unknown)
		m->unknown_flags |= set | undefined;
	else
		m->unknown_flags = (m->unknown_flags & ~set) | undefined;
}

INTERP_INLINE u32 interp_parity(const struct interp *m)
{
	u32 x = m->parity;

	x ^= x >> 4;
	return ~(0x6996u >> (x & 15)) & 1;
}

/*
 * Conditions without their lowest bit, which negates them. Bit n of the lower half tells the truth
 * for CF, ZF, SF and OF as in the bits of n; the upper half has the flags that it depends on.
 * (Of u32 it would go to a section for small constants, which libbpf does not know.)
 */
static const u64 interp_conditions[8] = {
	INTERP_OF << 16 | 0xff00,
	INTERP_CF << 16 | 0xaaaa,
	INTERP_ZF << 16 | 0xcccc,
	(INTERP_CF | INTERP_ZF) << 16 | 0xeeee,
	INTERP_SF << 16 | 0xf0f0,
	INTERP_PF << 16,
	(INTERP_SF | INTERP_OF) << 16 | 0x0ff0,
	(INTERP_ZF | INTERP_SF | INTERP_OF) << 16 | 0xcffc,
};

/*
 * The condition of jcc, setcc and cmovcc: 0 or 1, or 2 when a flag that it needs is unknown. By a
 * table, as what comes next cannot be predicted here.
 */
INTERP_INLINE u32 interp_condition(const struct interp *m, u32 code)
{
	u32 n = code >> 1 & 7, value = (u32)interp_conditions[n];
	u64 nonzero = (m->zero | (0 - m->zero)) >> 63;

	if (m->unknown_flags & value >> 16)
		return 2;
	if (n == 5)
		value = interp_parity(m);
	else
		value >>=
			m->carry | (nonzero ^ 1) << 1 | m->sign >> 63 << 2 | (u64)m->overflow << 3;
	return (value ^ code) & 1;
}

INTERP_INLINE u64 interp_pack_flags(const struct interp *m)
{
	return (m->carry & 1) | (u64)interp_parity(m) << 2 | (m->adjust & 16) |
	       (u64)(m->zero == 0) << 6 | (m->sign >> 63) << 7 | (u64)(m->direction & 1) << 10 |
	       (u64)(m->overflow & 1) << 11;
}

INTERP_INLINE void interp_unpack_flags(struct interp *m, u64 flags, u32 which)
{
	if (which & INTERP_CF)
		m->carry = flags & 1;
	if (which & INTERP_PF)
		m->parity = !(flags >> 2 & 1);
	if (which & INTERP_AF)
		m->adjust = (u8)flags;
	if (which & INTERP_ZF)
		m->zero = !(flags >> 6 & 1);
	if (which & INTERP_SF)
		m->sign = flags >> 7 << 63;
	if (which & INTERP_DF)
		m->direction = flags >> 10 & 1;
	if (which & INTERP_OF)
		m->overflow = flags >> 11 & 1;
}

/* ---- memory ---- */

/* The includer's (interp.h). */
#ifdef __bpf__
static __attribute__((always_inline)) int interp_memory(struct interp *m, u64 address, u64 *word);
int interp_memory_line(struct interp *m, u64 address, u32 n);
static __attribute__((always_inline)) int interp_memory_code(
	struct interp *m, u64 address, u64 *code);
#endif

#define INTERP_PROBES 12

/* Words of one line of memory are neighbours: what a burst stores is in few lines then. */
INTERP_INLINE u32 interp_hash(u64 address)
{
	return (u32)((address >> 6) * 0x9e3779b97f4a7c15ull >> 40 << 3 | (address >> 3 & 7));
}

/* The overlay's entry for a word: where it is, or could be put; negative: no room. */
INTERP_INLINE int interp_find_word(const struct interp *m, u64 address)
{
	u32 hash = interp_hash(address);

	INTERP_ROLLED
	for (u32 i = 0; i < INTERP_PROBES; i++) {
		u32 n = (hash + i * 9) % INTERP_WORDS;

		if (m->word[n].epoch != m->epoch || m->word[n].address == address)
			return (int)n;
	}
	return -1;
}

/* All bits of the bytes that a mask of eight bits names. */
INTERP_INLINE u64 interp_spread(u32 bytes)
{
	u64 low = (bytes & 0x7f) * 0x0002040810204081ull & 0x0101010101010101ull;

	return (low | (u64)(bytes >> 7 & 1) << 56) * 0xff;
}

/* What was stored over the word in m->loaded; m->loaded_unknown is a mask of its bytes. */
INTERP_FN int interp_overlay(struct interp *m, u64 address)
{
	const struct interp_word *w;
	u64 mask;
	int n;

	if (!m)
		return 0;
	n = interp_find_word(m, address);
	if (n < 0)
		return 0;
	w = &m->word[(u32)n % INTERP_WORDS];
	if (w->epoch != m->epoch)
		return 0;
	mask = interp_spread(w->stored);
	m->loaded = (m->loaded & ~mask) | (w->data & mask);
	m->loaded_unknown = (m->loaded_unknown & ~(u32)w->stored) | w->unknown;
	return 0;
}

/*
 * The eight bytes at an aligned address as the program would see them, into m->loaded: what was
 * stored over what is there. Returns a mask of the bytes that are unknown.
 */
INTERP_INLINE u32 interp_word_at(struct interp *m, u64 address)
{
	u64 word = 0;

	m->loaded_unknown = 0;
	if (interp_memory(m, address, &word) < 0) {
		m->failed++;
		m->loaded_unknown = 0xff;
	}
	m->loaded = word;
	if (m->filter >> (interp_hash(address) & 63) & 1)
		interp_overlay(m, address);
	INTERP_BARRIER; /* through memory: the verifier need not know which */
	return m->loaded_unknown;
}

INTERP_FN int interp_second_word(struct interp *m, u64 address)
{
	return m ? (int)interp_word_at(m, address) : 0;
}

/* Up to eight bytes anywhere, into m->loaded. */
INTERP_INLINE void interp_load(struct interp *m, u64 address, u32 size)
{
	u32 offset = address & 7, unknown = interp_word_at(m, address - offset) >> offset;
	u64 first = m->loaded >> offset * 8;

	if (offset + size > 8) {
		unknown |= (u32)interp_second_word(m, address - offset + 8) << (8 - offset);
		first |= m->loaded << ((64 - offset * 8) & 63);
	}
	m->loaded = first & interp_mask(size);
	m->loaded_unknown = (unknown & ((1u << (size & 15)) - 1)) != 0;
}

INTERP_INLINE int interp_store_word(struct interp *m, u64 address, u32 bytes, u64 data, u32 unknown)
{
	struct interp_word *w;
	int n = interp_find_word(m, address);

	if (n < 0)
		return -1;
	w = &m->word[(u32)n % INTERP_WORDS];
	unknown = unknown ? bytes : 0;
	w->by = m->ip;
	if (w->epoch != m->epoch) {
		w->address = address;
		w->data = data;
		w->epoch = m->epoch;
		w->stored = (u8)bytes;
		w->unknown = (u8)unknown;
		w->times = 1;
		m->stored++;
		m->filter |= 1ull << (interp_hash(address) & 63);
	} else {
		u64 mask = interp_spread(bytes);

		w->data = (w->data & ~mask) | (data & mask);
		w->stored |= (u8)bytes;
		w->unknown = (u8)((w->unknown & ~bytes) | unknown);
		w->times++;
	}
	return 0;
}

INTERP_FN int interp_store_second(struct interp *m, u64 address, u32 bytes, u64 data, u32 unknown)
{
	return m ? interp_store_word(m, address, bytes, data, unknown) : -1;
}

/* Up to eight bytes anywhere; negative when the overlay is full. */
INTERP_FN int interp_store(struct interp *m, u64 address, u32 size, u64 data, u32 unknown)
{
	u32 offset = address & 7, bytes = ((1u << (size & 15)) - 1) << offset;

	if (!m)
		return -1;
	if (interp_store_word(m, address - offset, bytes & 0xff, data << offset * 8, unknown) < 0)
		return -1;
	if (offset + size <= 8)
		return 0;
	return interp_store_second(m, address - offset + 8, bytes >> 8 & 0xff,
		data >> ((64 - offset * 8) & 63), unknown);
}

/* Real machines fault on addresses in the hole between the halves. */
INTERP_INLINE u32 interp_canonical(u64 address)
{
	return (u64)((s64)(address << 7) >> 7) == address;
}

#endif
