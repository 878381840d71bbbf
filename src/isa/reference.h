/*
 * The memory that an instruction names: where it is, and what happens to it. The stack of push,
 * pop, call and ret is not named, nor is what only lea, nop and prefetch speak of; string
 * operations name what rsi and rdi point to when they begin.
 */
#ifndef CULPRIT_ISA_REFERENCE_H
#define CULPRIT_ISA_REFERENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REFERENCES_MAX 2

struct reference {
	uint8_t base, index, scale; /* as in form.h; REG_NONE */
	bool relative;              /* to rip: the displacement is the whole address */
	bool thread;                /* relative to fs */
	bool loads, stores;
	uint16_t size; /* bytes */
	uint64_t displacement;
};

/*
 * How many there are; 0 also when the bytes are no instruction. Those whose address no lea gives
 * before the instruction (gs, 32 bits, gathers, xlat, pop relative to rsp) are left out, and
 * counted in *untold (may be NULL).
 */
unsigned isa_references(const void *code, size_t n, uint64_t address,
	struct reference out[REFERENCES_MAX], unsigned *untold);

#endif
