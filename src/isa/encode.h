/*
 * Makes the few instructions that inserted code is built of. All work on 64 bits; registers are
 * numbered as in form.h. What is made appends to a buffer, position-independent but for the 32-bit
 * displacements of rip-relative operands and jumps: their offset in the buffer is returned (0:
 * there is none), they count from the end of the instruction, and the caller fills them in.
 */
#ifndef CULPRIT_ISA_ENCODE_H
#define CULPRIT_ISA_ENCODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define ENCODE_RIP 0x10 /* as a base; REG_NONE: no base */

struct encode_memory {
	uint8_t base, index; /* REG_NONE; the index is not rsp */
	uint8_t scale;       /* 1, 2, 4, 8 */
	bool thread;         /* relative to fs */
	int32_t displacement;
};

enum encode_op {
	ENCODE_LOAD,    /* reg = memory */
	ENCODE_STORE,   /* memory = reg */
	ENCODE_ADDRESS, /* lea */
	ENCODE_ADD,     /* reg += memory; this and the rest set flags */
	ENCODE_ADD_TO,  /* memory += reg */
	ENCODE_SUB,
	ENCODE_SUB_TO,
	ENCODE_COMPARE,    /* reg with memory */
	ENCODE_COMPARE_TO, /* memory with reg */
	ENCODE_OPS
};

/* Between a register and memory, or two registers (`other` in place of the memory). */
size_t encode_memory(
	struct buf *b, enum encode_op op, unsigned reg, const struct encode_memory *memory);
void encode_registers(struct buf *b, enum encode_op op, unsigned reg, unsigned other);

/* With an immediate of 32 bits, sign-extended; only ADD, SUB, COMPARE and (for STORE) mov. */
size_t encode_immediate(
	struct buf *b, enum encode_op op, const struct encode_memory *memory, int32_t value);
void encode_register_immediate(struct buf *b, enum encode_op op, unsigned reg, int32_t value);

void encode_constant(struct buf *b, unsigned reg, uint64_t value); /* the shortest mov */
void encode_test(struct buf *b, unsigned reg);                     /* with itself */
size_t encode_step(struct buf *b, const struct encode_memory *memory, bool down); /* inc, dec */
void encode_lock(struct buf *b);                      /* prefix of the next one */
void encode_save_flags(struct buf *b, bool overflow); /* into ax */
void encode_restore_flags(struct buf *b, bool overflow);

void encode_clock(struct buf *b, unsigned reg); /* the time stamp counter; changes rax and rdx */

size_t encode_jump(struct buf *b);
size_t encode_call(struct buf *b);
size_t encode_branch(struct buf *b, unsigned condition); /* as in form.condition */

#endif
