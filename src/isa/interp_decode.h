/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR Apache-2.0 */
/* Fetching and decoding. Included by interp_run.h only. */
#ifndef CULPRIT_ISA_INTERP_DECODE_H
#define CULPRIT_ISA_INTERP_DECODE_H

#include "isa/interp_state.h"
#include "isa/interp_table.h"

/* 1 or 0. Computed, as BPF would branch. */
INTERP_INLINE u32 interp_is_zero(u32 x)
{
	return (u32)(((u64)x - 1) >> 63);
}

INTERP_INLINE u32 interp_is_rex(u32 byte)
{
	return (u32)(((u64)(byte ^ 0x40) - 16) >> 63);
}

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

/* Puts the 16 bytes at ip into m->code, or as many as there are, and zeros. */
INTERP_FN int interp_fetch_lines(struct interp *m)
{
	u64 word[3] = {0}, ip;
	u32 shift, at, n;
	int line;

	if (!m)
		return -1;
	ip = m->ip;
	m->direct = m->available = 0;
	line = interp_line_at(m, ip & ~31ull);
	if (line < 0)
		return -1;
	m->available = 16;
	n = (u32)line % INTERP_LINES;
	at = ip >> 3 & 3;
	word[0] = m->line[n].code[at];
	if (at < 3)
		word[1] = m->line[n].code[(at + 1) & 3];
	if (at < 2)
		word[2] = m->line[n].code[(at + 2) & 3];
	if ((ip & 31) > 16) {
		line = interp_line_at(m, (ip & ~31ull) + 32);
		if (line < 0) {
			m->available = 32 - (ip & 31);
		} else {
			n = (u32)line % INTERP_LINES;
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

/* Eight bytes from the instruction's byte `at` on; those beyond 16 are rejected later, by the
 * length. */
INTERP_FN u64 interp_far(struct interp *m, u32 at)
{
	u32 shift = at * 8 & 63;
	u64 word;

	if (!m)
		return 0;
	if (m->direct) {
		if (interp_memory_code(m, m->ip + at, &word) == 0)
			return word;
		if (interp_fetch_lines(m) < 0)
			return 0;
	}
	if (at & 8)
		return m->code[1] >> shift;
	return m->code[0] >> shift | m->code[1] << 1 << (63 - shift);
}

/* The first eight bytes of the instruction; of most it is all. */
INTERP_INLINE int interp_fetch(struct interp *m, u64 *code)
{
	m->direct = 1;
	if (interp_memory_code(m, m->ip, code) == 0)
		return 0;
	if (interp_fetch_lines(m) < 0)
		return -1;
	*code = m->code[0];
	return 0;
}

/*
 * Eight bytes of code behind the legacy prefixes, and what is left of them. No opcode with modrm
 * and all is longer than that, displacement and immediate aside.
 */
struct interp_cursor {
	u64 window, code;
	u32 before, at; /* legacy prefixes; bytes behind them that are done */
	u32 have;       /* bytes of the window that are there */
	u32 rex, prefix;
};

INTERP_INLINE u32 interp_take(struct interp_cursor *p)
{
	u32 byte = p->code & 255;

	p->code >>= 8;
	p->at++;
	return byte;
}

/* Eight bytes of which so many are wanted. */
INTERP_INLINE u64 interp_bytes(struct interp *m, const struct interp_cursor *p, u32 wanted)
{
	if (p->at + wanted > p->have)
		return interp_far(m, p->before + p->at);
	return p->window >> (p->at * 8 & 63);
}

/* The lowest bytes, so many of them and fewer than eight, sign extended. */
INTERP_INLINE u64 interp_signed(u64 value, u32 size)
{
	return (u64)((s64)(value << 1 << ((63 - size * 8) & 63)) >> ((64 - size * 8) & 63));
}

/* The slot of an opcode behind a VEX or EVEX prefix, whose bytes are in `code`; negative: none.
 * Sets vvvv, opcode, prefix, length (of the two together) and base (as REX). */
INTERP_FN int interp_vex(struct interp *m, u32 first, u64 code)
{
	u32 b1 = code & 255, b2 = code >> 8 & 255, b3 = code >> 16 & 255, map;
	struct interp_insn *i;

	if (!m)
		return -1;
	i = &m->insn;
	if (first == 0xc5) {
		i->base = ~b1 >> 5 & 4;
		i->vvvv = ~b1 >> 3 & 15;
		i->prefix |= INTERP_P_VEX | (b1 >> 2 & 1) << INTERP_P_VL_SHIFT;
		i->opcode = b2;
		i->length = 2;
		return (int)(INTERP_SLOT_VEX + (b1 & 3) * 256 + b2);
	}
	i->base = (~b1 >> 5 & 7) | (b2 >> 7 << 3);
	i->prefix |= (b2 >> 7) * INTERP_P_W;
	i->vvvv = ~b2 >> 3 & 15;
	if (first == 0xc4) {
		map = b1 & 31;
		i->prefix |= INTERP_P_VEX | (b2 >> 2 & 1) << INTERP_P_VL_SHIFT;
		i->opcode = b3;
		i->length = 3;
		if (map < 1 || map > 3)
			return -1;
		return (int)(INTERP_SLOT_VEX + (map - 1) * 1024 + (b2 & 3) * 256 + b3);
	}
	map = b1 & 7;
	if (map > 3)
		map--; /* 5 and 6 follow 3 */
	if (map < 1 || map > 5 || (b1 & 7) == 4 || b1 & 8 || !(b2 & 4))
		return -1;
	/* A broadcast or rounding bit leaves the length of the vector open: the longest. */
	i->prefix |= INTERP_P_EVEX | (b3 & 0x10 ? 2u : b3 >> 5 & 3) << INTERP_P_VL_SHIFT;
	i->opcode = code >> 24 & 255;
	i->length = 4;
	return (int)(INTERP_SLOT_EVEX + (map - 1) * 1024 + (b2 & 3) * 256 + i->opcode);
}

/* The slot of an opcode of more than one byte; negative: none. */
INTERP_INLINE int interp_escape(struct interp *m, u32 first, struct interp_cursor *p)
{
	struct interp_insn *i = &m->insn;
	u32 b, base = INTERP_SLOT_0F, which;

	if (first != 0x0f) {
		int slot;

		i->prefix = p->prefix;
		slot = interp_vex(m, first, p->code);
		INTERP_HIDE(slot);
		p->prefix = i->prefix;
		p->rex = i->base;
		p->code >>= (i->length & 7) * 8;
		p->at += i->length;
		return slot;
	}
	b = interp_take(p);
	if (b == 0x38 || b == 0x3a) {
		base = b == 0x38 ? INTERP_SLOT_0F38 : INTERP_SLOT_0F3A;
		b = interp_take(p);
	}
	i->opcode = b;
	which = p->prefix & INTERP_P_REPNE ? 3
		: p->prefix & INTERP_P_REP ? 2
					   : p->prefix & INTERP_P_16;
	return (int)(base + which * 256 + b);
}

/* Bit 0 of the result is prefix 66, bit 1 REX.W. */
INTERP_INLINE u32 interp_width(u32 prefix)
{
	return (prefix & INTERP_P_16) | (prefix & INTERP_P_W) >> 8;
}

/* In bytes. */
INTERP_INLINE u32 interp_operand_size(u64 entry, u32 prefix)
{
	/* Logarithms, two bits each, by the entry's size and the width. */
	const u64 sizes = 0xffffaa55faf7f600ull;

	return 1u << (sizes >> (INTERP_E_SIZE(entry) * 8 + interp_width(prefix) * 2) & 3);
}

INTERP_INLINE u32 interp_immediate_size(u64 entry, u32 prefix)
{
	u32 kind = INTERP_E_IMMEDIATE(entry), size = 0x83444210u >> kind * 4 & 15;

	if (kind == INTERP_I_V && prefix & INTERP_P_W)
		return 8;
	if (prefix & (INTERP_P_16 | INTERP_P_ADDR32)) {
		if ((kind == INTERP_I_V || kind == INTERP_I_Z) && interp_width(prefix) == 1)
			return 2;
		if (kind == INTERP_I_ADDRESS && prefix & INTERP_P_ADDR32)
			return 4;
	}
	return size;
}

/* EVEX scales an 8-bit displacement by what is accessed; known only for stores and whole vectors.
 */
INTERP_FN u64 interp_scale_displacement(struct interp *m, u64 entry, u32 prefix, u64 displacement)
{
	u32 code = INTERP_E_STORE(entry);

	if (!m)
		return 0;
	if (code == INTERP_E_STORE_VL)
		return displacement * INTERP_P_VL(prefix);
	if (code == 3 && INTERP_E_SIZE(entry) == INTERP_S_Y && prefix & INTERP_P_W)
		return displacement << 3;
	if (code && code != INTERP_E_STORE_ANY)
		return displacement << (code - 1);
	m->insn.address_unknown = 1;
	return displacement;
}

/* The memory operand. */
INTERP_INLINE void interp_modrm_address(
	struct interp *m, struct interp_cursor *p, u64 entry, u32 modrm)
{
	struct interp_insn *i = &m->insn;
	u32 mod = modrm >> 6, rm = modrm & 7, base = rm | (p->rex & 1) << 3, used = 0;
	u32 has_base = 1;
	u64 address = 0, displacement = 0;

	i->memory = 1;
	if (rm == 4) {
		u32 sib = interp_take(p), index = (sib >> 3 & 7) | (p->rex & 2) << 2;

		base = (sib & 7) | (p->rex & 1) << 3;
		if (index != 4) {
			address = m->r[index & 15] << (sib >> 6);
			used |= 1u << index;
		}
		has_base = mod != 0 || (sib & 7) != 5;
	} else if (mod == 0 && rm == 5) {
		has_base = 0;
		i->memory = 2; /* relative to the next instruction */
	}
	i->base = 16;
	if (has_base) {
		address += m->r[base & 15];
		used |= 1u << base;
		i->base = base;
	}
	if (mod == 1) {
		displacement = (u64)(s64)(s8)p->code;
		p->at++;
		if (p->prefix & INTERP_P_EVEX)
			displacement = interp_scale_displacement(m, entry, p->prefix, displacement);
	} else if (mod == 2 || !has_base) {
		displacement = (u64)(s64)(s32)interp_bytes(m, p, 4);
		p->at += 4;
	}
	i->address = address + displacement;
	if (used & (m->unknown | m->unknown_low))
		i->address_unknown = 1;
}

/* Legacy prefixes, into m->insn.prefix; returns how many there are. */
INTERP_INLINE u32 interp_prefixes(struct interp *m, u64 code)
{
	u32 at = 0, prefix = 0;

	INTERP_ROLLED
	for (u32 k = 0; k < 14; k++) {
		u64 entry = interp_entry[code & 255];
		u32 b = INTERP_E_LEGACY(entry);

		if (!(entry & INTERP_E_PREFIX))
			break;
		/* Of two of a kind the last one counts. */
		if (b & (INTERP_P_FS | INTERP_P_GS))
			prefix &= ~(INTERP_P_FS | INTERP_P_GS);
		if (b & (INTERP_P_REP | INTERP_P_REPNE))
			prefix &= ~(INTERP_P_REP | INTERP_P_REPNE);
		prefix |= b;
		at++;
		code = at == 7 ? interp_far(m, 7) : code >> 8;
	}
	/* Through memory, so that the verifier goes on with any number of prefixes at once. */
	m->insn.prefix = prefix;
	m->insn.length = at;
	INTERP_BARRIER;
	return m->insn.length;
}

/* The immediate operand, and what follows from where the instruction ends. */
INTERP_INLINE void interp_finish(struct interp *m, struct interp_cursor *p, u64 entry)
{
	struct interp_insn *i = &m->insn;
	u32 size = interp_immediate_size(entry, p->prefix);
	u64 immediate = interp_bytes(m, p, size);

	if (size < 8)
		immediate = interp_signed(immediate, size);
	i->immediate = immediate;
	i->length = p->before + p->at + size;
	i->next = m->ip + i->length;
	if (INTERP_E_IMMEDIATE(entry) == INTERP_I_ADDRESS) {
		i->memory = 1;
		i->address = immediate;
	}
	if (i->memory == 2)
		i->address += i->next;
	if (p->prefix & INTERP_P_ADDR32)
		i->address = (u32)i->address;
	if (p->prefix & (INTERP_P_FS | INTERP_P_GS) && INTERP_E_OP(entry) != INTERP_OP_LEA)
		i->address += interp_segment(m, p->prefix);
}

/* The entry that a group has for a modrm. */
INTERP_INLINE u64 interp_group(u64 entry, u32 modrm)
{
	u32 n = INTERP_E_FIRST(entry) + (modrm + 0x40) / 256; /* 1: mod is 3 */

	if (entry & INTERP_E_GROUP)
		n += modrm >> 2 & 14;
	return interp_entry[n % INTERP_ENTRIES];
}

/* Fills m->insn from the code, of which eight bytes are given. */
INTERP_FN int interp_decode_any(struct interp *m, u64 code)
{
	struct interp_cursor p = {.window = code, .have = 8};
	u32 b, rex, modrm = 0;
	struct interp_insn *i;
	u64 entry;

	if (!m)
		return INTERP_FETCH;
	i = &m->insn;
	if (interp_entry[code & 255] & INTERP_E_PREFIX) {
		p.before = interp_prefixes(m, code);
		p.prefix = i->prefix;
		/* But for EVEX seven bytes hold all, long displacement and immediate aside. */
		if (p.before == 1 && (code >> 8 & 255) != 0x62) {
			p.window = code >> 8;
			p.have = 7;
		} else {
			p.window = interp_far(m, p.before);
		}
	}
	b = p.window & 255;
	rex = interp_is_rex(b);
	p.rex = b & (0 - rex);
	p.prefix |= rex * INTERP_P_REX | (p.rex & 8) * (INTERP_P_W / 8);
	p.code = p.window >> rex * 8;
	p.at = rex;
	b = interp_take(&p);
	entry = interp_entry[b];
	i->opcode = b;
	i->vvvv = 0;
	if (entry & INTERP_E_ESCAPE) {
		int slot = interp_escape(m, b, &p);

		if (slot < 0 || slot >= INTERP_SLOTS)
			return INTERP_INSTRUCTION;
		entry = interp_entry[interp_slot[slot] % INTERP_ENTRIES];
		/* Through memory: the verifier need not know how long it was. */
		i->prefix = p.prefix;
		i->length = p.at;
		i->base = p.rex;
		INTERP_BARRIER;
		p.prefix = i->prefix;
		p.at = i->length;
		p.rex = i->base;
	}
	i->memory = i->address_unknown = 0;
	i->reg = 0;
	i->rm = (i->opcode & 7) | (p.rex & 1) << 3; /* of forms without modrm */
	if (entry & INTERP_E_MODRM) {
		modrm = interp_take(&p);
		if (entry & (INTERP_E_GROUP | INTERP_E_SPLIT))
			entry = interp_group(entry, modrm);
		i->reg = (modrm >> 3 & 7) | (p.rex & 4) << 1;
		i->rm = (modrm & 7) | (p.rex & 1) << 3;
		if (modrm < 0xc0)
			interp_modrm_address(m, &p, entry, modrm);
	}
	i->modrm = modrm;
	i->entry = entry;
	i->prefix = p.prefix;
	i->size = interp_operand_size(entry, p.prefix);
	interp_finish(m, &p, entry);
	if (INTERP_E_OP(entry) == INTERP_OP_BAD || i->length > 15)
		return INTERP_INSTRUCTION;
	return !m->direct && i->length > m->available ? INTERP_FETCH : INTERP_GOES_ON;
}

/*
 * The memory operand of an instruction without a prefix but REX, whose code begins behind modrm;
 * returns the bytes that it takes. What operands differ in is computed instead of branched on, as
 * the interrupted program has left the processor nothing to predict a branch from.
 */
INTERP_INLINE u32 interp_quick_address(struct interp *m, u64 code, u32 modrm, u32 rex)
{
	struct interp_insn *i = &m->insn;
	u32 mod = modrm >> 6, has_sib = interp_is_zero((modrm & 7) ^ 4);
	u32 sib = code & 255 & (0 - has_sib), base = (modrm & 7 & (has_sib - 1)) | (sib & 7);
	u32 bare = interp_is_zero(mod | (base ^ 5)); /* no base */
	u32 index = (sib >> 3 & 7) | (rex & 2) << 2;
	u32 indexed = has_sib & ~interp_is_zero(index ^ 4);
	u32 size = (0x410u >> mod * 4 & 15) | bare << 2;

	base |= (rex & 1) << 3;
	i->memory = 1 + (bare & ~has_sib); /* 2: relative to the next instruction */
	i->base = base | bare << 4;
	i->address = (m->r[base] & ((u64)bare - 1)) +
		     (m->r[index] << (sib >> 6) & (0 - (u64)indexed)) +
		     interp_signed(code >> has_sib * 8, size);
	if (m->unknown | m->unknown_low) {
		u32 used = (1u << base & (bare - 1)) | (1u << index & (0 - indexed));

		i->address_unknown = (used & (m->unknown | m->unknown_low)) != 0;
	}
	return has_sib + size;
}

/*
 * The same as interp_decode_any for most of all code: no prefix but REX, an opcode of one or two
 * bytes, at most eight bytes in all; negative: it is none of that.
 */
INTERP_INLINE int interp_decode(struct interp *m, u64 code)
{
	struct interp_insn *i = &m->insn;
	u32 b = code & 255, has_rex = interp_is_rex(b), rex = b & (0 - has_rex);
	u32 prefix = has_rex * INTERP_P_REX | (rex & 8) * (INTERP_P_W / 8), at, size;
	u32 escape, opcode, modrm = 0;
	u64 entry;

	escape = interp_is_zero((code >> has_rex * 8 & 255) ^ 0x0f);
	at = has_rex + escape;
	opcode = code >> at * 8 & 255;
	at++;
	entry = interp_entry[opcode + escape * INTERP_ENTRY_0F];
	i->memory = i->address_unknown = i->vvvv = i->reg = 0;
	i->rm = (opcode & 7) | (rex & 1) << 3; /* of forms without modrm */
	if (entry & INTERP_E_MODRM) {
		modrm = code >> at * 8 & 255;
		at++;
		if (entry & (INTERP_E_GROUP | INTERP_E_SPLIT))
			entry = interp_group(entry, modrm);
		i->reg = (modrm >> 3 & 7) | (rex & 4) << 1;
		i->rm = (modrm & 7) | (rex & 1) << 3;
		if (modrm < 0xc0)
			at += interp_quick_address(m, code >> at * 8, modrm, rex);
	}
	size = interp_immediate_size(entry, prefix);
	if (INTERP_E_OP(entry) == INTERP_OP_BAD || at + size > 8)
		return -1;
	i->immediate = interp_signed(code >> (at * 8 & 63), size);
	i->opcode = opcode;
	i->modrm = modrm;
	i->entry = entry;
	i->prefix = prefix;
	i->size = interp_operand_size(entry, prefix);
	i->length = at + size;
	i->next = m->ip + i->length;
	if (i->memory == 2)
		i->address += i->next;
	return !m->direct && i->length > m->available ? INTERP_FETCH : INTERP_GOES_ON;
}

#endif
