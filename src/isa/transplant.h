/*
 * Instructions taken out of their program, to be run by the chip elsewhere: what one does, for
 * whoever runs on with copies of another program's registers and memory.
 *
 * Whatever leaves the straight way or names memory in ways of its own (jumps, the stack, string
 * operations) is told by kind and left to the caller. All the rest is copied byte for byte, with
 * the memory operand, if there is one, moved to an address relative to rip that the caller chooses:
 * he brings there what the operand holds, and takes back what was stored.
 */
#ifndef CULPRIT_ISA_TRANSPLANT_H
#define CULPRIT_ISA_TRANSPLANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum transplant_kind {
	TRANSPLANT_STOP, /* leaves the program (syscall), traps, or is not known here */
	TRANSPLANT_COPY,
	TRANSPLANT_SKIP,      /* does nothing: nop, prefetch */
	TRANSPLANT_ADDRESS,   /* lea relative to rip: reg = address */
	TRANSPLANT_DIRECTION, /* cld, std: immediate */
	TRANSPLANT_BRANCH,
	TRANSPLANT_JUMP,
	TRANSPLANT_CALL,
	TRANSPLANT_JUMP_INDIRECT, /* through reg, or memory where reg is REG_NONE; as the next */
	TRANSPLANT_CALL_INDIRECT,
	TRANSPLANT_RETURN, /* and immediate bytes off the stack */
	TRANSPLANT_PUSH,   /* reg, or memory, or the immediate where there is neither */
	TRANSPLANT_POP,    /* reg or memory */
	TRANSPLANT_LEAVE,
	TRANSPLANT_MOVS,
	TRANSPLANT_STOS,
	TRANSPLANT_LODS,
	TRANSPLANT_SCAS,
	TRANSPLANT_CMPS,
};

/* Conditions of branches: 0 to 15 as encoded (0 jo, 1 jno, ... 15 jg), then: */
enum { TRANSPLANT_LOOPNE = 16, TRANSPLANT_LOOPE, TRANSPLANT_LOOP, TRANSPLANT_RCXZ };

enum transplant_repeat { TRANSPLANT_ONCE, TRANSPLANT_REPEAT, TRANSPLANT_REPEAT_NOT };

#define TRANSPLANT_OPERAND 128 /* bytes of a memory operand, at most */
#define TRANSPLANT_LENGTH  24

struct transplant {
	uint8_t kind, length;
	uint8_t condition; /* of a branch */
	uint8_t repeat;    /* of a string operation, */
	uint8_t size; /* and bytes of its elements; else of the memory operand; 0: there is none */
	bool loads, stores;
	uint8_t base, index, scale; /* of the memory operand, as form.h numbers them; REG_NONE */
	uint8_t segment;            /* 0, or 1 and 2: relative to the base of fs, gs */
	bool narrow;                /* its address is cut off to 32 bits */
	uint8_t reg, reg_size;
	uint64_t displacement; /* the whole address where it is relative to rip */
	uint64_t target;       /* of a direct transfer, or the immediate */
	uint8_t ncode, moved;  /* of the copy; where the displacement is, 0: no memory operand */
	uint8_t code[TRANSPLANT_LENGTH];
};

/* What is no instruction is TRANSPLANT_STOP of length 0. */
void isa_transplant(const void *code, size_t n, uint64_t address, struct transplant *out);

#endif
