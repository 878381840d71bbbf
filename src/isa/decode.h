/*
 * The one x86-64 decoder of the project: a facade over Zydis, which no other room includes.
 */
#ifndef CULPRIT_ISA_DECODE_H
#define CULPRIT_ISA_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum insn_kind {
	INSN_PLAIN,         /* falls through */
	INSN_JUMP,          /* jmp, direct */
	INSN_BRANCH,        /* conditional, direct (also loop, jrcxz, xbegin) */
	INSN_CALL,          /* call, direct */
	INSN_JUMP_INDIRECT, /* jmp through register or memory */
	INSN_CALL_INDIRECT,
	INSN_RETURN,  /* ret, iret, sysret */
	INSN_SYSCALL, /* syscall, sysenter, int n */
	INSN_TRAP,    /* ud2, hlt, int3 */
};

struct insn {
	uint64_t address;
	uint8_t length;
	enum insn_kind kind;
	uint64_t target; /* of a direct transfer, else 0 */
	bool relative;   /* has a rip-relative memory operand */
	uint64_t memory; /* its address, which may be 0 */
	uint8_t behind;  /* bytes of the instruction behind that operand's displacement */
	bool low;        /* that operand is relative to eip */
	uint64_t value;  /* an immediate of 32 or 64 bits, else 0 */
	bool filler;     /* nop or int3: what compilers fill gaps with */
};

/* 0, or -EBADMSG when the bytes are no instruction (or are cut off). */
int isa_decode(const void *code, size_t n, uint64_t address, struct insn *out);

enum isa_syntax { ISA_ATT, ISA_INTEL };

/* Names an address, or returns false: `name` gets "symbol+0x10" (at most size bytes). */
typedef bool isa_namer(void *arg, uint64_t address, char *name, size_t size);

/*
 * The text of one instruction, as objdump prints it; "(bad)" where nothing decodes. Addresses of
 * transfers and rip-relative operands are named through namer (may be NULL). Returns the length of
 * the instruction in bytes (1 for a bad one, 0 when n is 0).
 */
size_t isa_text(const void *code, size_t n, uint64_t address, enum isa_syntax syntax,
	isa_namer *namer, void *arg, char *text, size_t size);

#endif
