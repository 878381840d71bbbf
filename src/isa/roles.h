/*
 * What the operands of an instruction are to it: which is the divisor, which the count, what is
 * memory, and what of it the code alone decides.
 *
 * Operands are counted as the interpreter (interp.h) does: the result is what is written to the
 * destination (what is compared, for cmp and test), the source is the second operand.
 */
#ifndef CULPRIT_ISA_ROLES_H
#define CULPRIT_ISA_ROLES_H

#include "isa/decode.h"

enum operation {
	OPERATION_OTHER,
	OPERATION_MOVE,    /* the result is the source; also loads, stores, push and pop */
	OPERATION_ADDRESS, /* lea */
	OPERATION_DIVIDE,  /* integers; the source is the divisor */
	OPERATION_MULTIPLY,
	OPERATION_SHIFT, /* and rotate; the source is the count */
	OPERATION_COMPARE,
	OPERATION_COPY,   /* movs, with or without rep */
	OPERATION_FILL,   /* stos */
	OPERATION_STRING, /* the other string operations */
};

struct roles {
	enum insn_kind kind;
	enum operation operation;
	uint8_t length;      /* of the instruction */
	uint8_t size;        /* bytes of an operand; of an element for string operations */
	uint8_t float_size;  /* bytes of a floating-point operand; 0: it has none */
	uint8_t memory_size; /* bytes of the memory operand; 0: there is none */
	bool loads, stores; /* from and to a memory operand; the stack of push, call, ... is none */
	bool repeats;       /* has a rep prefix */
	bool on_stack;      /* the memory operand is addressed by rsp or rbp */
	bool fixed_address; /* the memory operand's address is in the code */
	bool guard;         /* the memory operand is what stacks are guarded with, %fs:0x28 */
	bool constant_result;   /* the code alone decides it */
	bool constant_source;   /* an immediate */
	bool moves_stack;       /* writes rsp */
	uint16_t reads, writes; /* general registers, a bit each, in the order of their numbers */
	uint64_t constant;      /* the result, where it is an immediate; else 0 */
	uint64_t place;         /* stands for how the memory operand is written; 0: there is none */
};

/* 0, or -EBADMSG when the bytes are no instruction (or are cut off). */
int isa_roles(const void *code, size_t n, uint64_t address, struct roles *out);

/* The operands in words (AT&T); "" where there is none. Costs far more than the roles. */
#define ROLES_TEXT 48
struct role_texts {
	char result[ROLES_TEXT], source[ROLES_TEXT], memory[ROLES_TEXT];
};
int isa_role_texts(const void *code, size_t n, struct role_texts *out); /* as isa_roles */

/* The register that holds argument 0 to 5 of a procedure, by its number (rdi is 7) and name. */
unsigned isa_argument_register(unsigned argument);
const char *isa_argument_name(unsigned argument);

#endif
