/*
 * Instructions by what they do with addresses: the memory operand of any instruction, the registers
 * that are operands themselves, and the same instruction with another displacement.
 */
#ifndef CULPRIT_ISA_DISPLACE_H
#define CULPRIT_ISA_DISPLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct isa_memory {
	bool present;     /* it names memory; the stack of push, call and the like does not count */
	bool other_space; /* relative to fs or gs */
	uint8_t base, index; /* REG_NONE; as form.h numbers them */
	int64_t displacement;
	uint16_t operands; /* registers that it names as operands, not in an address */
};

/* 0, or -EBADMSG when the bytes are no instruction. */
int isa_memory(const void *code, size_t n, struct isa_memory *out);

#define ISA_DISPLACED_MAX 24

/* Writes it with `by` added to the displacement, in 32 bits; returns its length, 0: it cannot. */
size_t isa_displace(const void *code, size_t n, int64_t by, uint8_t out[ISA_DISPLACED_MAX]);

#endif
