/*
 * A snippet as snippet.c reads it and snippet_lower.c makes code of it.
 */
#ifndef CULPRIT_EDIT_SNIPPET_INTERNAL_H
#define CULPRIT_EDIT_SNIPPET_INTERNAL_H

#include "edit/snippet.h"

#define SNIPPET_STATEMENTS  32
#define SNIPPET_ARGUMENTS   8
#define SNIPPET_TEMPORARIES 6
#define SNIPPET_NO          0xff /* no register, no argument */

/* Registers of a snippet: temporaries, then variables. */
#define SNIPPET_VARIABLE0 SNIPPET_TEMPORARIES
#define SNIPPET_REGISTERS (SNIPPET_TEMPORARIES + SNIPPET_VARIABLES)

enum operand_type {
	OPERAND_NONE,
	OPERAND_REGISTER,
	OPERAND_CONSTANT,
	OPERAND_MEMORY,
	OPERAND_ADDRESS,
	OPERAND_NAMED, /* the address of memory that the instruction names; base: which */
};

enum memory_space {
	SPACE_IMAGE,  /* begins with an address of the program */
	SPACE_BASE,   /* begins with a register */
	SPACE_THREAD, /* from the thread pointer */
};

#define OPERAND_TERMS 4

/* A register; or a sum, of which registers are only in memory and addresses. */
struct operand {
	uint8_t type; /* enum operand_type */
	uint8_t space;
	uint8_t base, index, scale;
	uint8_t argument[OPERAND_TERMS]; /* added up; of SPACE_IMAGE the first is the address */
	uint8_t narguments;
	int64_t number;
};

enum statement_type {
	STATEMENT_SET,
	STATEMENT_ADD,
	STATEMENT_SUB,
	STATEMENT_IF,
	STATEMENT_GOTO,
	STATEMENT_CLOBBER,
	STATEMENT_CALL,
	STATEMENT_CLOCK,
	STATEMENT_APART, /* what stands before it goes on behind the snippet */
};

struct statement {
	uint8_t type;      /* enum statement_type */
	uint8_t condition; /* as in form.condition */
	bool atomic;
	struct operand left, right;
	struct operand second; /* value of a call; the first is right */
	uint8_t target;        /* statement, where argument is SNIPPET_NO */
	uint8_t argument;      /* where code outside goes on; the routine */
};

struct snippet {
	struct statement statement[SNIPPET_STATEMENTS];
	unsigned n, arguments;
	unsigned apart;     /* which statement says so; n: none */
	uint16_t registers; /* that it uses, a bit each */
	uint8_t named;      /* memory of the instruction that it uses, a bit each */
};

#endif
