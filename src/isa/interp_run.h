/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR Apache-2.0 */
/*
 * One instruction of the interpreter. The includer has defined interp_memory (interp.h), and
 * INTERP_EFFECTS if it wants to know what the instruction did.
 */
#ifndef CULPRIT_ISA_INTERP_RUN_H
#define CULPRIT_ISA_INTERP_RUN_H

#include "isa/interp_alu.h"
#include "isa/interp_decode.h"
#include "isa/interp_flow.h"
#include "isa/interp_pair.h"
#include "isa/interp_shift.h"
#include "isa/interp_state.h"
#include "isa/interp_vector.h"

/* Does what m->insn says. The first three ways are most of all code. */
INTERP_INLINE int interp_execute(struct interp *m)
{
	u32 op = INTERP_E_OP(m->insn.entry);

	if (op < INTERP_OP_BT && m->insn.entry & INTERP_E_QUICK && !(m->unknown | m->unknown_low))
		return interp_alu_plain(m);
	if (op == INTERP_OP_JCC || op == INTERP_OP_JMP)
		return interp_branch(m, op);
	if (op >= INTERP_OP_PUSH && op <= INTERP_OP_RET && !(m->unknown | m->unknown_low)) {
		int stop = interp_call_plain(m, op);

		if (stop >= 0)
			return stop;
	}
	if (op < INTERP_OP_ROL)
		return interp_alu(m);
	if (op < INTERP_OP_XCHG)
		return interp_shift(m);
	if (op < INTERP_OP_PUSH)
		return interp_pair(m);
	if (op < INTERP_OP_JMP)
		return interp_stack(m);
	if (op < INTERP_OP_MOVS)
		return interp_control(m);
	if (op < INTERP_OP_NOP)
		return interp_string(m);
	if (op < INTERP_OP_XMOV)
		return interp_simple(m);
	if (op < INTERP_OP_RESULT)
		return interp_vector(m);
	if (op == INTERP_OP_RESULT)
		return interp_result(m);
	return interp_system(m);
}

/* Transfers whose target the code alone does not tell. */
INTERP_INLINE u32 interp_chooses(u32 op)
{
	return op >= INTERP_OP_JCC && op <= INTERP_OP_JRCXZ && op != INTERP_OP_CALL;
}

/* Instructions that may have many elements. */
INTERP_INLINE u32 interp_repeats(u32 op)
{
	return op >= INTERP_OP_MOVS && op <= INTERP_OP_CMPS;
}

/*
 * Transfers that AMD's and Intel's chips do not do alike: of prefix 66 the former keep 16 bits of
 * the target, and of F2 and F3 they take the condition of loope and loopne.
 */
INTERP_INLINE u32 interp_is_disputed(const struct interp_insn *i)
{
	u32 op = INTERP_E_OP(i->entry);

	if (op < INTERP_OP_JMP || op > INTERP_OP_JRCXZ)
		return 0;
	return (i->prefix & INTERP_P_16 && !(i->prefix & INTERP_P_W)) ||
	       ((op == INTERP_OP_LOOPNE || op == INTERP_OP_LOOPE) &&
		       i->prefix & (INTERP_P_REP | INTERP_P_REPNE));
}

/* Calls are dear in BPF, so this is one function with all that most instructions need. */
INTERP_INLINE int interp_one(struct interp *m)
{
	u64 code;
	int stop;

	if (!m || interp_fetch(m, &code) < 0)
		return INTERP_FETCH;
	stop = interp_decode(m, code);
	if (stop < 0) {
		stop = interp_decode_any(m, code);
		if (!stop && interp_is_disputed(&m->insn))
			return INTERP_INSTRUCTION;
	}
	if (stop)
		return stop;
	INTERP_FORGET; /* how it came here */
	return interp_execute(m);
}

#endif
