/*
 * What an instruction does to general registers, flags and memory, in two ways: its effects (which
 * it reads, writes and overwrites whole), which hold for every instruction; and its form, a small
 * set of operations that addresses and bounds are computed with. What has no form is FORM_OTHER and
 * known by its effects alone.
 *
 * Registers are counted as the machine does: rax 0, rcx 1, rdx 2, rbx 3, rsp 4, rbp 5, rsi 6, rdi
 * 7, r8 to r15.
 */
#ifndef CULPRIT_ISA_FORM_H
#define CULPRIT_ISA_FORM_H

#include "isa/decode.h"

enum { REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI, REG_NONE = 0xff };

/* Sets of registers by the System V ABI, a bit each. */
#define REGS_ALL  0xffffu
#define REGS_KEPT 0xf038u /* by a callee: rbx, rsp, rbp, r12 to r15 */
#define REGS_ARGUMENTS \
	0x07c7u              /* rdi, rsi, rdx, rcx, r8, r9; rax counts vectors, r10 is the chain */
#define REGS_RESULTS 0x0005u /* rax, rdx */

enum form_flag {
	FORM_CF = 1 << 0,
	FORM_PF = 1 << 1,
	FORM_AF = 1 << 2,
	FORM_ZF = 1 << 3,
	FORM_SF = 1 << 4,
	FORM_OF = 1 << 5,
	FORM_FLAGS = 0x3f,
};

enum form_op {
	FORM_OTHER,
	FORM_MOVE,        /* to = from, zero-extended */
	FORM_MOVE_SIGNED, /* to = from, sign-extended */
	FORM_ADDRESS,     /* lea: to = the address of from */
	FORM_ADD,         /* to += from; also inc and dec */
	FORM_SUBTRACT,    /* to -= from */
	FORM_AND,
	FORM_XOR,
	FORM_SHIFT_LEFT,  /* by an immediate, as the next two */
	FORM_SHIFT_RIGHT, /* logical */
	FORM_MULTIPLY,    /* to = from * factor */
	FORM_COMPARE,     /* to - from, for the flags only */
	FORM_TEST,        /* to & from, for the flags only */
	FORM_PUSH,        /* from */
	FORM_POP,         /* to */
	FORM_LEAVE,
	FORM_TRANSFER, /* jumps, branches, calls: from is where an indirect one goes */
};

enum form_operand_type { FORM_ABSENT, FORM_REGISTER, FORM_HIGH, FORM_IMMEDIATE, FORM_MEMORY };

struct form_operand {
	uint8_t type; /* enum form_operand_type; FORM_HIGH: ah, ch, dh or bh */
	uint8_t reg;
	uint8_t size; /* bytes */
};

/* Of the condition of a branch, as it is encoded: 0 jo, 1 jno, 2 jb, ... 15 jg. */
#define FORM_NO_CONDITION 0xff

#define FORM_BELOW_MAX 128 /* the red zone of the ABI */

struct form {
	uint8_t op, length;
	uint8_t kind; /* enum insn_kind */
	uint8_t condition;
	struct form_operand to, from;
	uint8_t base, index, scale; /* of the memory operand; REG_NONE */
	bool other_space;           /* relative to fs or gs, or of 32 bits: not where it seems */
	bool loads, stores;         /* memory, the stack of push and call included */
	uint64_t displacement;      /* the whole address when it is rip-relative */
	int64_t immediate;          /* sign-extended; the factor of a FORM_MULTIPLY */
	uint16_t reads, writes;     /* registers, any part of them */
	uint16_t kills;             /* written whole in any case, and not read for it */
	uint8_t flags_read, flags_written, flags_killed;

	/* How many bytes below rsp and rbp its memory operand lies; rbp: FORM_BELOW_MAX where that
	 * is not told, by an index or when the address is taken. */
	uint8_t below_rsp, below_rbp;
	bool copies_rsp; /* what is below rsp may be meant without being named: also by an index */
};

/* 0, or -EBADMSG when the bytes are no instruction (or are cut off). */
int isa_form(const void *code, size_t n, uint64_t address, struct form *out);

#endif
