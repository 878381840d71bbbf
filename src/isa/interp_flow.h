/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR Apache-2.0 */
/* Stack, control flow, strings and what has no operands. Included by interp_run.h only. */
#ifndef CULPRIT_ISA_INTERP_FLOW_H
#define CULPRIT_ISA_INTERP_FLOW_H

#include "isa/interp_pair.h"

#define INTERP_RSP_UNKNOWN(m) (((m)->unknown | (m)->unknown_low) >> INTERP_RSP & 1)

/* ---- stack ---- */

INTERP_INLINE int interp_push(struct interp *m, u64 value, u32 size, u32 unknown)
{
	int stop;

	if (INTERP_RSP_UNKNOWN(m))
		return INTERP_STORE;
	m->insn.address_unknown = 0;
	stop = interp_store_operand(m, m->r[INTERP_RSP] - size, size, value, unknown);
	if (!stop)
		m->r[INTERP_RSP] -= size;
	return stop;
}

/* Into m->loaded. */
INTERP_INLINE int interp_pop(struct interp *m, u32 size)
{
	int stop;

	m->insn.address_unknown = INTERP_RSP_UNKNOWN(m);
	stop = interp_load_operand(m, m->r[INTERP_RSP], size);
	if (stop)
		return stop;
	m->r[INTERP_RSP] += size;
	if (INTERP_RSP_UNKNOWN(m))
		interp_lose(m, INTERP_RSP); /* a carry from one byte into the next */
	return INTERP_GOES_ON;
}

INTERP_INLINE int interp_push_operand(struct interp *m)
{
	struct interp_insn *i = &m->insn;
	u32 form = INTERP_E_FORM(i->entry), unknown = 0;
	u64 value = i->immediate;
	int stop;

	if (form == INTERP_F_RM && i->memory) {
		stop = interp_load_operand(m, i->address, i->size);
		if (stop)
			return stop;
		value = m->loaded;
		unknown = m->loaded_unknown;
	} else if (form == INTERP_F_RM || form == INTERP_F_O) {
		value = interp_get(m, i->rm, i->size, INTERP_P_REX);
		unknown = interp_get_unknown(m, i->rm, i->size, INTERP_P_REX);
	}
	interp_note_values(m, value, unknown, 0, 1, i->size);
	return interp_push(m, value, i->size, unknown);
}

INTERP_INLINE int interp_pop_operand(struct interp *m)
{
	struct interp_insn *i = &m->insn;
	u32 unknown = i->address_unknown, size = i->size;
	u64 rsp = m->r[INTERP_RSP];
	int stop = interp_pop(m, size);

	if (stop)
		return stop;
	interp_note_values(m, m->loaded, m->loaded_unknown, 0, 1, size);
	if (!i->memory) {
		interp_set(m, i->rm, size, INTERP_P_REX, m->loaded, m->loaded_unknown);
		return INTERP_GOES_ON;
	}
	/* An address from rsp uses what rsp is after the pop. */
	i->address_unknown = unknown;
	stop = interp_store_operand(m, i->address + (i->base == INTERP_RSP ? size : 0), size,
		m->loaded, m->loaded_unknown);
	if (stop)
		m->r[INTERP_RSP] = rsp;
	return stop;
}

INTERP_FN int interp_stack(struct interp *m)
{
	u64 old_rsp, value;
	u32 op, size, unknown;
	struct interp_insn *i;
	int stop;

	if (!m)
		return INTERP_FETCH;
	i = &m->insn;
	op = INTERP_E_OP(i->entry);
	size = i->size;
	switch (op) {
	case INTERP_OP_PUSH:
		stop = interp_push_operand(m);
		break;
	case INTERP_OP_POP:
		stop = interp_pop_operand(m);
		break;
	case INTERP_OP_PUSHF:
		/* Interrupts are on in user mode; in the kernel nobody told us. */
		unknown = m->unknown_flags != 0 || m->kernel;
		stop = interp_push(m, interp_pack_flags(m) | 0x202, size, unknown);
		break;
	case INTERP_OP_POPF:
		stop = interp_pop(m, size);
		if (stop)
			break;
		interp_unpack_flags(m, m->loaded, INTERP_FLAGS | INTERP_DF);
		m->unknown_flags = m->loaded_unknown ? INTERP_FLAGS | INTERP_DF : 0;
		break;
	case INTERP_OP_LEAVE:
		old_rsp = m->r[INTERP_RSP];
		if ((m->unknown | m->unknown_low) >> INTERP_RBP & 1)
			return INTERP_STORE; /* rsp would be unknown: nothing goes on from there */
		m->r[INTERP_RSP] = m->r[INTERP_RBP];
		m->unknown &= ~(1u << INTERP_RSP);
		m->unknown_low &= ~(1u << INTERP_RSP);
		stop = interp_pop(m, size);
		if (stop)
			m->r[INTERP_RSP] = old_rsp;
		else
			interp_set(m, INTERP_RBP, size, INTERP_P_REX, m->loaded, m->loaded_unknown);
		break;
	default: /* enter */
		if (i->immediate >> 16 & 31)
			return INTERP_INSTRUCTION;
		value = interp_get(m, INTERP_RBP, size, INTERP_P_REX);
		unknown = interp_get_unknown(m, INTERP_RBP, size, INTERP_P_REX);
		stop = interp_push(m, value, size, unknown);
		if (stop)
			break;
		interp_set(m, INTERP_RBP, size, INTERP_P_REX, m->r[INTERP_RSP], 0);
		m->r[INTERP_RSP] -= i->immediate & 0xffff;
		break;
	}
	if (!stop)
		m->ip = i->next;
	return stop;
}

/* ---- control flow ---- */

INTERP_INLINE int interp_go(struct interp *m, u64 target, u32 unknown)
{
	if (unknown)
		return INTERP_CONTROL;
	if (!interp_canonical(target))
		return INTERP_FAULT;
	m->ip = target;
	return INTERP_GOES_ON;
}

INTERP_INLINE int interp_loop(struct interp *m, u32 op)
{
	struct interp_insn *i = &m->insn;
	u32 size = i->prefix & INTERP_P_ADDR32 ? 4 : 8, taken;
	u64 count = interp_get(m, INTERP_RCX, size, INTERP_P_REX);

	if (interp_get_unknown(m, INTERP_RCX, size, INTERP_P_REX))
		return INTERP_CONTROL;
	if (op == INTERP_OP_JRCXZ) {
		taken = count == 0;
	} else {
		if (op != INTERP_OP_LOOP && m->unknown_flags & INTERP_ZF)
			return INTERP_CONTROL;
		count = (count - 1) & interp_mask(size);
		interp_set(m, INTERP_RCX, size, INTERP_P_REX, count, 0);
		taken = count != 0 &&
			(op == INTERP_OP_LOOP || (op == INTERP_OP_LOOPE) == (m->zero == 0));
	}
	INTERP_NOTE(m->effect.has |= INTERP_BRANCH);
	m->ip = taken ? i->next + i->immediate : i->next;
	return INTERP_GOES_ON;
}

/* jmp and jcc. */
INTERP_INLINE int interp_branch(struct interp *m, u32 op)
{
	struct interp_insn *i = &m->insn;
	u32 condition = 1;

	if (op == INTERP_OP_JCC)
		condition = interp_condition(m, i->opcode);
	if (condition == 2)
		return INTERP_CONTROL;
	INTERP_NOTE(m->effect.has |= op == INTERP_OP_JCC ? INTERP_BRANCH : INTERP_JUMP);
	m->ip = i->next + (i->immediate & (0 - (u64)condition));
	return INTERP_GOES_ON;
}

INTERP_FN int interp_control(struct interp *m)
{
	u64 target, rsp;
	struct interp_insn *i;
	u32 op, unknown;
	int stop;

	if (!m)
		return INTERP_FETCH;
	i = &m->insn;
	op = INTERP_E_OP(i->entry);
	target = i->next + i->immediate;
	rsp = m->r[INTERP_RSP];
	switch (op) {
	case INTERP_OP_CALL:
		INTERP_NOTE(m->effect.has |= INTERP_CALL);
		stop = interp_push(m, i->next, 8, 0);
		if (!stop)
			m->ip = target;
		return stop;
	case INTERP_OP_RET:
		INTERP_NOTE(m->effect.has |= INTERP_RETURN | INTERP_INDIRECT);
		stop = interp_pop(m, 8);
		if (!stop)
			stop = interp_go(m, m->loaded, m->loaded_unknown);
		if (stop)
			m->r[INTERP_RSP] = rsp;
		else
			m->r[INTERP_RSP] += i->immediate & 0xffff;
		return stop;
	case INTERP_OP_JMPI:
	case INTERP_OP_CALLI:
		if (i->memory) {
			stop = interp_load_operand(m, i->address, 8);
			if (stop)
				return stop;
			target = m->loaded;
			unknown = m->loaded_unknown;
		} else {
			target = m->r[i->rm & 15];
			unknown = interp_get_unknown(m, i->rm, 8, INTERP_P_REX);
		}
		INTERP_NOTE(m->effect.has |=
			    INTERP_INDIRECT | (op == INTERP_OP_CALLI ? INTERP_CALL : 0));
		interp_note_values(m, target, unknown, 0, 1, 8);
		stop = unknown ? INTERP_CONTROL : INTERP_GOES_ON;
		if (!stop && op == INTERP_OP_CALLI)
			stop = interp_push(m, i->next, 8, 0);
		if (!stop)
			stop = interp_go(m, target, 0);
		if (stop)
			m->r[INTERP_RSP] = rsp;
		return stop;
	default:
		return interp_loop(m, op);
	}
}

/* ---- what procedures begin and end with, while all registers are known ---- */

/* pop and ret. */
INTERP_INLINE int interp_pop_plain(struct interp *m)
{
	struct interp_insn *i = &m->insn;
	int stop = interp_load_operand(m, m->r[INTERP_RSP], 8);
	u64 rsp;

	if (stop)
		return stop;
	INTERP_BARRIER;
	rsp = m->r[INTERP_RSP] + 8;
	if (INTERP_E_OP(i->entry) == INTERP_OP_RET) {
		INTERP_NOTE(m->effect.has |= INTERP_RETURN | INTERP_INDIRECT);
		stop = interp_go(m, m->loaded, m->loaded_unknown);
		if (!stop)
			m->r[INTERP_RSP] = rsp + (i->immediate & 0xffff);
		return stop;
	}
	interp_note_values(m, m->loaded, m->loaded_unknown, 0, 1, 8);
	m->r[INTERP_RSP] = rsp;
	m->r[i->rm & 15] = m->loaded;
	if (m->loaded_unknown)
		interp_lose(m, i->rm);
	m->ip = i->next;
	return INTERP_GOES_ON;
}

/* push and call. */
INTERP_INLINE int interp_push_plain(struct interp *m, u32 op)
{
	struct interp_insn *i = &m->insn;
	u64 value = i->immediate, target = i->next;
	u32 form = INTERP_E_FORM(i->entry);
	int stop;

	if (op == INTERP_OP_CALL) {
		INTERP_NOTE(m->effect.has |= INTERP_CALL);
		value = i->next;
		target += i->immediate;
	} else {
		if (form == INTERP_F_RM || form == INTERP_F_O)
			value = m->r[i->rm & 15];
		interp_note_values(m, value, 0, 0, 1, 8);
	}
	stop = interp_store_operand(m, m->r[INTERP_RSP] - 8, 8, value, 0);
	if (!stop) {
		m->r[INTERP_RSP] -= 8;
		m->ip = target;
	}
	return stop;
}

/* Negative: it is none of these, or not as plain as that. */
INTERP_INLINE int interp_call_plain(struct interp *m, u32 op)
{
	if (m->insn.memory || m->insn.size != 8)
		return -1;
	if (op == INTERP_OP_POP || op == INTERP_OP_RET)
		return interp_pop_plain(m);
	if (op == INTERP_OP_PUSH || op == INTERP_OP_CALL)
		return interp_push_plain(m, op);
	return -1;
}

/* ---- strings ---- */

#define INTERP_ELEMENTS 16 /* of one repeated instruction; the rest is another visit */

INTERP_FN int interp_string_element(struct interp *m, u32 op, u32 size)
{
	u64 step, source, a, b;
	u32 ua, ub, shift = (64 - size * 8) & 63;
	struct interp_insn *i;
	int stop;

	if (!m)
		return INTERP_FETCH;
	i = &m->insn;
	step = m->direction & 1 ? (u64)0 - size : size;
	source = m->r[INTERP_RSI] + interp_segment(m, i->prefix);
	a = interp_get(m, INTERP_RAX, size, INTERP_P_REX);
	ua = interp_get_unknown(m, INTERP_RAX, size, INTERP_P_REX);
	if (op == INTERP_OP_MOVS || op == INTERP_OP_LODS || op == INTERP_OP_CMPS) {
		stop = interp_load_operand(m, source, size);
		if (stop)
			return stop;
		a = m->loaded;
		ua = m->loaded_unknown;
	}
	interp_note_values(m, a, ua, 0, 1, size);
	if (op == INTERP_OP_MOVS || op == INTERP_OP_STOS) {
		stop = interp_store_operand(m, m->r[INTERP_RDI], size, a, ua);
		if (stop)
			return stop;
	} else if (op == INTERP_OP_LODS) {
		interp_set(m, INTERP_RAX, size, INTERP_P_REX, a, ua);
	} else {
		stop = interp_load_operand(m, m->r[INTERP_RDI], size);
		if (stop)
			return stop;
		b = m->loaded;
		ub = m->loaded_unknown;
		interp_subtract(m, a, b, 0, shift);
		interp_settle_flags(m, i->entry, ua | ub);
	}
	if (op != INTERP_OP_STOS && op != INTERP_OP_SCAS)
		m->r[INTERP_RSI] += step;
	if (op != INTERP_OP_LODS)
		m->r[INTERP_RDI] += step;
	return INTERP_GOES_ON;
}

/*
 * A repeated instruction is left with the instruction pointer still on it when it has many
 * elements: the processor could be interrupted there too, and goes on with the same registers.
 */
INTERP_FN int interp_string(struct interp *m)
{
	const u32 used = 1u << INTERP_RSI | 1u << INTERP_RDI;
	u32 op, size, repeats, compares, count_unknown;
	struct interp_insn *i;
	int stop = 0;

	if (!m)
		return INTERP_FETCH;
	i = &m->insn;
	op = INTERP_E_OP(i->entry);
	size = i->size;
	repeats = i->prefix & (INTERP_P_REP | INTERP_P_REPNE);
	compares = op == INTERP_OP_SCAS || op == INTERP_OP_CMPS;
	count_unknown = (m->unknown | m->unknown_low) >> INTERP_RCX & 1;
	if (i->prefix & INTERP_P_ADDR32)
		return INTERP_INSTRUCTION;
	if (m->unknown_flags & INTERP_DF || (m->unknown | m->unknown_low) & used ||
		(repeats && count_unknown))
		return op == INTERP_OP_MOVS || op == INTERP_OP_STOS ? INTERP_STORE : INTERP_CONTROL;
	i->address_unknown = 0;
	if (!repeats) {
		stop = interp_string_element(m, op, size);
		if (!stop)
			m->ip = i->next;
		return stop;
	}
	INTERP_ROLLED
	for (u32 k = 0; k < INTERP_ELEMENTS; k++) {
		if (!m->r[INTERP_RCX])
			break;
		stop = interp_string_element(m, op, size);
		if (stop)
			return stop;
		m->r[INTERP_RCX]--;
		if (compares && m->unknown_flags & INTERP_ZF)
			return INTERP_CONTROL;
		if (compares && (m->zero == 0) != !(i->prefix & INTERP_P_REPNE)) {
			m->ip = i->next;
			return INTERP_GOES_ON;
		}
	}
	if (!m->r[INTERP_RCX])
		m->ip = i->next;
	return INTERP_GOES_ON;
}

/* ---- the rest ---- */

INTERP_FN int interp_simple(struct interp *m)
{
	u32 op, size, unknown;
	struct interp_insn *i;
	u64 value;

	if (!m)
		return INTERP_FETCH;
	i = &m->insn;
	op = INTERP_E_OP(i->entry);
	size = i->size;
	unknown = interp_get_unknown(m, INTERP_RAX, size, INTERP_P_REX);
	value = interp_get(m, INTERP_RAX, size, INTERP_P_REX);
	switch (op) {
	case INTERP_OP_NOP:
		/* cli, sti */
		if (!m->kernel && !(i->entry & INTERP_E_MODRM) && (i->opcode | 1) == 0xfb)
			return INTERP_SYSTEM;
		/* A prefetch of a register: nothing on Intel's chips, no instruction on AMD's. */
		if (i->opcode == 0x0d && !i->memory)
			return INTERP_INSTRUCTION;
		/* 90 with REX.B is no nop; with F3 it is one on Intel's chips alone. */
		if (i->opcode == 0x90 && i->rm == 8 && !(i->entry & INTERP_E_MODRM)) {
			if (i->prefix & INTERP_P_REP)
				return INTERP_INSTRUCTION;
			i->size = i->prefix & INTERP_P_W ? 8 : i->prefix & INTERP_P_16 ? 2 : 4;
			return interp_exchange(m, interp_get(m, 8, i->size, i->prefix),
				interp_get_unknown(m, 8, i->size, i->prefix));
		}
		break;
	case INTERP_OP_CBW:
		unknown = interp_get_unknown(m, INTERP_RAX, size / 2, INTERP_P_REX);
		interp_set(
			m, INTERP_RAX, size, INTERP_P_REX, interp_extend(value, size / 2), unknown);
		break;
	case INTERP_OP_CWD:
		value = (u64)((s64)interp_extend(value, size) >> 63);
		interp_set(m, INTERP_RDX, size, INTERP_P_REX, value, unknown);
		break;
	case INTERP_OP_LAHF:
		value = (interp_pack_flags(m) & 0xd5) | 2;
		m->r[INTERP_RAX] = (m->r[INTERP_RAX] & ~0xff00ull) | value << 8;
		if (m->unknown_flags & (INTERP_FLAGS & ~INTERP_OF))
			m->unknown |= 1u << INTERP_RAX;
		break;
	case INTERP_OP_SAHF:
		interp_unpack_flags(m, m->r[INTERP_RAX] >> 8, INTERP_FLAGS & ~INTERP_OF);
		m->unknown_flags &= ~(INTERP_FLAGS & ~INTERP_OF);
		if (m->unknown >> INTERP_RAX & 1)
			m->unknown_flags |= INTERP_FLAGS & ~INTERP_OF;
		break;
	case INTERP_OP_CLC:
	case INTERP_OP_STC:
		m->carry = op == INTERP_OP_STC;
		m->unknown_flags &= ~INTERP_CF;
		break;
	case INTERP_OP_CMC:
		m->carry ^= 1;
		break;
	case INTERP_OP_CLD:
	case INTERP_OP_STD:
		m->direction = op == INTERP_OP_STD;
		m->unknown_flags &= ~INTERP_DF;
		break;
	case INTERP_OP_XLAT:
		i->address_unknown = (m->unknown_low >> INTERP_RAX & 1) |
				     ((m->unknown | m->unknown_low) >> INTERP_RBX & 1);
		value = m->r[INTERP_RBX] + (m->r[INTERP_RAX] & 0xff);
		if (i->prefix & INTERP_P_ADDR32)
			value = (u32)value;
		value += interp_segment(m, i->prefix);
		if (interp_load_operand(m, value, 1))
			return INTERP_FAULT;
		interp_set(m, INTERP_RAX, 1, INTERP_P_REX, m->loaded, m->loaded_unknown);
		break;
	case INTERP_OP_RDBASE:
		size = i->prefix & INTERP_P_W ? 8 : 4;
		interp_set(m, i->rm, size, INTERP_P_REX, m->base[i->modrm >> 3 & 1], 0);
		break;
	}
	m->ip = i->next;
	return INTERP_GOES_ON;
}

INTERP_INLINE u32 interp_misaligned(const struct interp_insn *i)
{
	return i->entry & INTERP_E_ALIGNED && i->memory && !i->address_unknown &&
	       i->address & (INTERP_P_VL(i->prefix) - 1);
}

/* What the table says is written becomes unknown. */
INTERP_FN int interp_result(struct interp *m)
{
	u32 code, bytes;
	struct interp_insn *i;
	u64 entry;
	int stop;

	if (!m)
		return INTERP_FETCH;
	i = &m->insn;
	entry = i->entry;
	code = INTERP_E_STORE(entry);
	INTERP_NOTE(m->effect.address = i->address);
	if (i->memory && !i->address_unknown)
		INTERP_NOTE(m->effect.has |=
			    INTERP_HAS_ADDRESS | (code ? INTERP_STORES : INTERP_LOADS));
	/* Intel's chips trap where AMD's do not (sha1msg1 and its like). */
	if (interp_misaligned(i))
		return INTERP_INSTRUCTION;
	if (code == INTERP_E_STORE_ANY)
		return INTERP_STORE;
	if (code && i->memory) {
		bytes = code == INTERP_E_STORE_VL ? INTERP_P_VL(i->prefix) : 1u << (code - 1);
		if (bytes == 4 && INTERP_E_SIZE(entry) == INTERP_S_Y)
			bytes = i->size;
		if (entry & INTERP_E_TEN)
			bytes = 10;
		for (u32 k = 0; k < 8; k++) {
			if (k * 8 >= bytes)
				break;
			stop = interp_store_operand(
				m, i->address + k * 8, bytes - k * 8 < 8 ? bytes - k * 8 : 8, 0, 1);
			if (stop)
				return stop;
		}
		INTERP_NOTE(m->effect.address = i->address);
	}
	if (entry & INTERP_E_REG)
		interp_lose(m, i->reg);
	if (entry & INTERP_E_RM && !i->memory)
		interp_lose(m, i->rm);
	if (entry & INTERP_E_V)
		interp_lose(m, i->vvvv);
	m->unknown |= (u32)(entry >> 51 & 15); /* rax, rcx, rdx, rbx */
	m->unknown_low |= (u32)(entry >> 51 & 15);
	if (entry & INTERP_E_XREG)
		m->known_xmm &= ~(1u << (i->reg & 15));
	if (entry & INTERP_E_XRM && !i->memory)
		m->known_xmm &= ~(1u << (i->rm & 15));
	if (entry & INTERP_E_XV)
		m->known_xmm &= ~(1u << (i->vvvv & 15));
	if (entry & INTERP_E_XMM0)
		m->known_xmm &= ~1u;
	if (entry & INTERP_E_XALL && !(i->prefix & INTERP_P_VEX && INTERP_P_VL(i->prefix) == 16))
		m->known_xmm = 0;
	interp_settle_flags(m, entry, 1);
	m->ip = i->next;
	return INTERP_GOES_ON;
}

/* 0f 01 with a register: some of the sixty-four leave the machine as it is. */
INTERP_INLINE int interp_system(struct interp *m)
{
	struct interp_insn *i = &m->insn;

	if (i->opcode != 1 || i->prefix & (INTERP_P_VEX | INTERP_P_EVEX) || !i->modrm)
		return INTERP_SYSTEM;
	switch (i->modrm) {
	case 0xf9: /* rdtscp */
		interp_lose(m, INTERP_RCX);
		/* fall through */
	case 0xd0: /* xgetbv */
		interp_lose(m, INTERP_RAX);
		interp_lose(m, INTERP_RDX);
		break;
	case 0xca: /* clac, stac */
	case 0xcb:
		if (!m->kernel)
			return INTERP_SYSTEM;
		break;
	default:
		return INTERP_SYSTEM;
	}
	m->ip = i->next;
	return INTERP_GOES_ON;
}

#endif
