/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR Apache-2.0 */
/* Fetching and decoding. Included by interp_run.h only. */
#ifndef CULPRIT_ISA_INTERP_DECODE_H
#define CULPRIT_ISA_INTERP_DECODE_H

#include "isa/interp_state.h"
#include "isa/interp_table.h"

/* The 32 bytes of code at an aligned address, from the cache of lines; negative: cannot be read. */
INTERP_INLINE int interp_line_at(struct interp *m, u64 address)
{
	u32 n = (address >> 5) % INTERP_LINES;
	struct interp_line *line = &m->line[n];

	if (line->address == address && line->epoch == m->epoch)
		return (int)n;
	line->epoch = 0;
	if (interp_memory_line(m, address, n) < 0)
		return -1;
	line->address = address;
	line->epoch = m->epoch;
	return (int)n;
}

/* Puts the 16 bytes at ip into m->code. */
INTERP_INLINE int interp_fetch(struct interp *m)
{
	u64 word[3] = {0}, ip = m->ip, next;
	u32 shift, at, n;
	int line;

	line = interp_line_at(m, ip & ~31ull);
	if (line < 0)
		return -1;
	n = (u32)line % INTERP_LINES;
	at = ip >> 3 & 3;
	word[0] = m->line[n].code[at];
	if (at < 3)
		word[1] = m->line[n].code[(at + 1) & 3];
	if (at < 2)
		word[2] = m->line[n].code[(at + 2) & 3];
	m->available = 32 - (ip & 31);
	if (m->available < 16) {
		next = (ip & ~31ull) + 32;
		line = interp_line_at(m, next);
		if (line >= 0) {
			n = (u32)line % INTERP_LINES;
			m->available = 16;
			if (at == 3) {
				word[1] = m->line[n].code[0];
				word[2] = m->line[n].code[1];
			} else {
				word[2] = m->line[n].code[0];
			}
		}
	}
	shift = (ip & 7) * 8;
	m->code[0] = word[0] >> shift | word[1] << 1 << (63 - shift);
	m->code[1] = word[1] >> shift | word[2] << 1 << (63 - shift);
	return 0;
}

INTERP_INLINE u32 interp_byte(const struct interp *m, u32 at)
{
	return ((const u8 *)m->code)[at & 15];
}

/* Eight bytes from `at` on; those beyond the 16 are rejected later, by the length. */
INTERP_INLINE u64 interp_bytes(const struct interp *m, u32 at)
{
#ifdef __bpf__
	/* x86 does not mind, and the compiler would put it together byte by byte. */
	return *(const u64 *)((const u8 *)m->code + (at & 15));
#else
	u64 value;

	__builtin_memcpy(&value, (const u8 *)m->code + (at & 15), sizeof value);
	return value;
#endif
}

/* The slot of an opcode behind a VEX or EVEX prefix; negative: none. Leaves `at` at the modrm byte.
 */
INTERP_INLINE int interp_vex(struct interp *m, u32 first, u32 *at, u32 *rex, u32 *prefix)
{
	struct interp_insn *i = &m->insn;
	u32 p = *at, b1 = interp_byte(m, p), b2, b3, map;

	if (first == 0xc5) {
		*rex = ~b1 >> 5 & 4;
		i->vvvv = ~b1 >> 3 & 15;
		*prefix |= INTERP_P_VEX | (b1 >> 2 & 1) << INTERP_P_VL_SHIFT;
		i->opcode = interp_byte(m, p + 1);
		*at = p + 2;
		return (int)(INTERP_SLOT_VEX + (b1 & 3) * 256 + i->opcode);
	}
	b2 = interp_byte(m, p + 1);
	*rex = (~b1 >> 5 & 7) | (b2 >> 7 << 3);
	if (b2 >> 7)
		*prefix |= INTERP_P_W;
	i->vvvv = ~b2 >> 3 & 15;
	if (first == 0xc4) {
		map = b1 & 31;
		*prefix |= INTERP_P_VEX | (b2 >> 2 & 1) << INTERP_P_VL_SHIFT;
		i->opcode = interp_byte(m, p + 2);
		*at = p + 3;
		if (map < 1 || map > 3)
			return -1;
		return (int)(INTERP_SLOT_VEX + (map - 1) * 1024 + (b2 & 3) * 256 + i->opcode);
	}
	b3 = interp_byte(m, p + 2);
	map = b1 & 7;
	if (map > 3)
		map--; /* 5 and 6 follow 3 */
	if (map < 1 || map > 5 || (b1 & 7) == 4 || b1 & 8 || !(b2 & 4))
		return -1;
	/* A broadcast or rounding bit leaves the length of the vector open: the longest. */
	*prefix |= INTERP_P_EVEX | (b3 & 0x10 ? 2u : b3 >> 5 & 3) << INTERP_P_VL_SHIFT;
	i->opcode = interp_byte(m, p + 3);
	*at = p + 4;
	return (int)(INTERP_SLOT_EVEX + (map - 1) * 1024 + (b2 & 3) * 256 + i->opcode);
}

/* The slot of the opcode; *at and *rex as above. */
INTERP_INLINE int interp_opcode(struct interp *m, u32 *at, u32 *rex, u32 *prefixes)
{
	u32 p = *at, b = interp_byte(m, p++), base = INTERP_SLOT_0F, which;

	m->insn.vvvv = 0;
	if (b == 0xc5 || b == 0xc4 || b == 0x62) {
		*at = p;
		return interp_vex(m, b, at, rex, prefixes);
	}
	if (b != 0x0f) {
		m->insn.opcode = b;
		*at = p;
		return (int)b;
	}
	b = interp_byte(m, p++);
	if (b == 0x38 || b == 0x3a) {
		base = b == 0x38 ? INTERP_SLOT_0F38 : INTERP_SLOT_0F3A;
		b = interp_byte(m, p++);
	}
	m->insn.opcode = b;
	*at = p;
	which = *prefixes & INTERP_P_REPNE ? 3
		: *prefixes & INTERP_P_REP ? 2
					   : *prefixes & INTERP_P_16;
	return (int)(base + which * 256 + b);
}

INTERP_INLINE u32 interp_operand_size(u64 entry, u32 prefix)
{
	switch (INTERP_E_SIZE(entry)) {
	case INTERP_S_8:
		return 1;
	case INTERP_S_V:
		return prefix & INTERP_P_W ? 8 : prefix & INTERP_P_16 ? 2 : 4;
	case INTERP_S_64:
		return prefix & INTERP_P_16 && !(prefix & INTERP_P_W) ? 2 : 8;
	case INTERP_S_Y:
		return prefix & INTERP_P_W ? 8 : 4;
	case INTERP_S_16:
		return 2;
	case INTERP_S_32:
		return 4;
	default:
		return 8;
	}
}

INTERP_INLINE u32 interp_immediate_size(u64 entry, u32 prefix)
{
	switch (INTERP_E_IMMEDIATE(entry)) {
	case INTERP_I_NONE:
		return 0;
	case INTERP_I_8:
		return 1;
	case INTERP_I_16:
		return 2;
	case INTERP_I_Z:
		return prefix & INTERP_P_16 && !(prefix & INTERP_P_W) ? 2 : 4;
	case INTERP_I_V:
		return prefix & INTERP_P_W ? 8 : prefix & INTERP_P_16 ? 2 : 4;
	case INTERP_I_32:
		return 4;
	case INTERP_I_24:
		return 3;
	default:
		return prefix & INTERP_P_ADDR32 ? 4 : 8;
	}
}

/* EVEX scales an 8-bit displacement by what is accessed; known only for stores and whole vectors.
 */
INTERP_INLINE u64 interp_scale_displacement(
	struct interp *m, u64 entry, u32 prefix, u64 displacement)
{
	u32 code = INTERP_E_STORE(entry);

	if (code == INTERP_E_STORE_VL)
		return displacement * INTERP_P_VL(prefix);
	if (code == 3 && INTERP_E_SIZE(entry) == INTERP_S_Y && prefix & INTERP_P_W)
		return displacement << 3;
	if (code && code != INTERP_E_STORE_ANY)
		return displacement << (code - 1);
	m->insn.address_unknown = 1;
	return displacement;
}

/* The memory operand; returns where it ends. */
INTERP_INLINE u32 interp_modrm_address(struct interp *m, u32 at, u32 rex, u32 prefix, u64 entry)
{
	struct interp_insn *i = &m->insn;
	u32 mod = i->modrm >> 6, rm = i->modrm & 7, sib, base = rm | (rex & 1) << 3, used = 0;
	u32 has_base = 1;
	u64 address = 0, displacement = 0;

	if (rm == 4) {
		u32 index;

		sib = interp_byte(m, at++);
		index = (sib >> 3 & 7) | (rex & 2) << 2;
		base = (sib & 7) | (rex & 1) << 3;
		if (index != 4) {
			address = m->r[index & 15] << (sib >> 6);
			used |= 1u << index;
		}
		has_base = mod != 0 || (sib & 7) != 5;
	} else if (mod == 0 && rm == 5) {
		has_base = 0;
	}
	if (has_base) {
		address += m->r[base & 15];
		used |= 1u << base;
	}
	if (mod == 1) {
		displacement = interp_extend(interp_byte(m, at), 1);
		at++;
		if (prefix & INTERP_P_EVEX)
			displacement = interp_scale_displacement(m, entry, prefix, displacement);
	} else if (mod == 2 || !has_base) {
		displacement = interp_extend(interp_bytes(m, at), 4);
		at += 4;
	}
	i->address = address + displacement;
	if (used & (m->unknown | m->unknown_low))
		i->address_unknown = 1;
	i->base = has_base ? base : 16;
	i->memory = mod == 0 && rm == 5 ? 2 : 1; /* 2: relative to the next instruction */
	return at;
}

/* Fills m->insn from m->code. */
INTERP_INLINE int interp_decode(struct interp *m)
{
	struct interp_insn *i;
	u32 at = 0, rex = 0, prefix = 0, b, size;
	u64 entry;
	int slot;

	i = &m->insn;
	INTERP_ROLLED
	for (u32 k = 0; k < 14; k++) {
		b = interp_prefix[interp_byte(m, at) & 255];
		if (!b)
			break;
		/* Of two of a kind the last one counts. */
		if (b & (INTERP_P_FS | INTERP_P_GS))
			prefix &= ~(INTERP_P_FS | INTERP_P_GS);
		if (b & (INTERP_P_REP | INTERP_P_REPNE))
			prefix &= ~(INTERP_P_REP | INTERP_P_REPNE);
		prefix |= b;
		at++;
	}
	/* Through memory, so that the verifier goes on with any number of prefixes at once. */
	i->length = at;
	i->prefix = prefix;
	INTERP_BARRIER;
	at = i->length & 15;
	prefix = i->prefix;
	b = interp_byte(m, at);
	if ((b & 0xf0) == 0x40) {
		rex = b;
		prefix |= INTERP_P_REX | (b & 8 ? INTERP_P_W : 0);
		at++;
		b = interp_byte(m, at); /* compilers write nothing between REX and the opcode */
		if ((b & 0xf0) == 0x40 || interp_prefix[b & 255])
			return INTERP_INSTRUCTION;
	}
	slot = interp_opcode(m, &at, &rex, &prefix);
	if (slot < 0 || slot >= INTERP_SLOTS)
		return INTERP_INSTRUCTION;
	i->reg = 0;
	i->rm = (i->opcode & 7) | (rex & 1) << 3; /* of forms without modrm */
	i->memory = i->address_unknown = i->modrm = 0;
	b = interp_slot[slot];
	entry = interp_entry[b % INTERP_ENTRIES];
	if (entry & INTERP_E_MODRM) {
		i->modrm = interp_byte(m, at++);
		i->reg = (i->modrm >> 3 & 7) | (rex & 4) << 1;
		i->rm = (i->modrm & 7) | (rex & 1) << 3;
		if (entry & INTERP_E_GROUP)
			b += (i->modrm >> 3 & 7) * 2 + (i->modrm >= 0xc0);
		else if (entry & INTERP_E_SPLIT)
			b += i->modrm >= 0xc0;
		entry = interp_entry[b % INTERP_ENTRIES];
		if (i->modrm < 0xc0)
			at = interp_modrm_address(m, at, rex, prefix, entry);
	}
	size = interp_immediate_size(entry, prefix);
	i->immediate = interp_bytes(m, at);
	if (INTERP_E_IMMEDIATE(entry) == INTERP_I_16 || INTERP_E_IMMEDIATE(entry) == INTERP_I_24)
		i->immediate &= size == 2 ? 0xffff : 0xffffff;
	else if (size < 8)
		i->immediate = size ? interp_extend(i->immediate, size) : 0;
	at += size;
	i->length = at;
	if (at > m->available || at > 15)
		return at > 15 ? INTERP_INSTRUCTION : INTERP_FETCH;
	i->next = m->ip + at;
	if (i->memory == 2)
		i->address += i->next;
	if (prefix & INTERP_P_ADDR32)
		i->address = (u32)i->address;
	if (prefix & INTERP_P_FS)
		i->address += m->base[0];
	if (prefix & INTERP_P_GS)
		i->address += m->base[1];
	i->entry = entry;
	i->prefix = prefix;
	i->size = interp_operand_size(entry, prefix);
	return INTERP_E_OP(entry) == INTERP_OP_BAD ? INTERP_INSTRUCTION : INTERP_GOES_ON;
}

#endif
