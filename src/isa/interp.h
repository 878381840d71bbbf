/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR Apache-2.0 */
/*
 * An x86-64 interpreter that runs in shadow: it computes what a program is about to do from the
 * registers of an interrupted context, and never touches the program. Stores go to a private
 * overlay; what it cannot know (vector registers at the start, a page that is not there) is
 * unknown, and unknown values spread to what is computed from them. It stops where control flow is
 * unknown.
 *
 * One source for user space (interp.c) and for BPF (the sampling interrupt), see the ASPLOS 2000
 * paper's section 3. The two differ only in how a word of memory is read: the includer defines
 *
 *	int interp_memory(struct interp *m, u64 address, u64 *word);
 *	int interp_memory_line(struct interp *m, u64 address, u32 n);
 *
 * for aligned 8-byte words, and for four of them (aligned to 32 bytes) that become line n of the
 * code; 0, or negative when they cannot be read. Then it includes interp_run.h. Everything that a
 * run depends on is in struct interp and in the words that it reads, so a run can be repeated
 * elsewhere from its first state and these words, in their order. Where nobody is going to repeat
 * it,
 *
 *	int interp_memory_code(struct interp *m, u64 address, u64 *code);
 *
 * may hand out the 8 bytes at any address of code; negative sends it to the lines.
 */
#ifndef CULPRIT_ISA_INTERP_H
#define CULPRIT_ISA_INTERP_H

#ifndef __bpf__
#include <stdint.h>
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;
#endif

enum interp_stop {
	INTERP_GOES_ON,
	INTERP_FETCH,       /* the code cannot be read */
	INTERP_INSTRUCTION, /* an instruction it does not know */
	INTERP_SYSTEM,      /* syscall, int, iret, hlt, privileged: it leaves what we can see */
	INTERP_CONTROL,     /* where to go on is unknown */
	INTERP_STORE,       /* a store to an unknown address */
	INTERP_FAULT,       /* it would trap: division by zero, a non-canonical address */
	INTERP_ROOM,        /* the overlay or the list of words is full */
	INTERP_LENGTH,      /* a string operation on too many elements */
	INTERP_DONE,        /* as many instructions as asked for */
	INTERP_TIME,        /* as long as allowed in an interrupt */
	INTERP_STOPS
};

enum interp_register {
	INTERP_RAX,
	INTERP_RCX,
	INTERP_RDX,
	INTERP_RBX,
	INTERP_RSP,
	INTERP_RBP,
	INTERP_RSI,
	INTERP_RDI,
	INTERP_REGISTERS = 16
};

/* As in rflags. */
#define INTERP_CF    0x001u
#define INTERP_PF    0x004u
#define INTERP_AF    0x010u
#define INTERP_ZF    0x040u
#define INTERP_SF    0x080u
#define INTERP_DF    0x400u
#define INTERP_OF    0x800u
#define INTERP_FLAGS (INTERP_CF | INTERP_PF | INTERP_AF | INTERP_ZF | INTERP_SF | INTERP_OF)

#define INTERP_WORDS   128 /* of the overlay */
#define INTERP_LINES   16  /* of code, 32 bytes each */
#define INTERP_PAGES   64  /* translations; used by BPF */
#define INTERP_REGIONS 32  /* of 2 MB: what of a walk serves neighbours too */
#define INTERP_INPUTS  1024

/* Eight bytes that the run stored to. */
struct interp_word {
	u64 address;
	u64 data;
	u32 epoch;
	u8 stored;  /* which bytes */
	u8 unknown; /* which of these nobody knows */
	u16 times;  /* how often */
	u64 by;     /* the last instruction that did */
};

struct interp_line {
	u64 address;
	u64 code[4];
	u32 epoch, pad;
};

struct interp_page {
	u64 tag; /* its address, and in the low bits the mapping that it is of */
	u64 place;
};

/*
 * What one instruction did, for whoever wants to know; filled in user space only (INTERP_EFFECTS).
 * The value is what it wrote to its destination (or compared, for cmp and test: the first operand).
 */
struct interp_effect {
	u64 ip, next;
	u64 value, source; /* result; second operand */
	u64 address;       /* of the memory operand */
	u32 has;           /* INTERP_HAS_* */
	u8 length, op, size,
		destination; /* size in bytes of value; destination: register, or 0xff */
};
#define INTERP_HAS_VALUE   0x01u /* and it is known */
#define INTERP_HAS_SOURCE  0x02u
#define INTERP_HAS_ADDRESS 0x08u
#define INTERP_LOADS       0x10u
#define INTERP_STORES      0x20u
#define INTERP_BRANCH      0x40u /* conditional; next tells how it went */
#define INTERP_INDIRECT    0x80u /* jump or call through register or memory, or return */
#define INTERP_CALL        0x100u
#define INTERP_RETURN      0x200u
#define INTERP_JUMP        0x400u /* direct */
#define INTERP_FLOATING    0x800u /* the value is a floating-point operand */

/* What decoding found; private to the interpreter. */
struct interp_insn {
	u64 entry; /* of the table */
	u64 immediate;
	u64 address; /* effective address of a memory operand */
	u64 next;    /* address of the next instruction */
	u16 prefix;  /* INTERP_P_* */
	u8 length, opcode, size;
	u8 memory;          /* modrm names memory, at address */
	u8 address_unknown; /* some register in it is */
	u8 base;            /* register of the address, or 16 */
	union {
		struct {
			u8 reg, rm, modrm, vvvv;
		};
		u8 number[4]; /* by enum interp_operand */
	};
};

/*
 * What most instructions touch comes first, within 128 bytes: machine code reaches that with short
 * displacements, and in an interrupt no code is in the first cache yet.
 */
struct interp {
	struct interp_insn insn;
	u32 unknown_flags;
	u64 ip;
	u64 code_page, code_place; /* the code's last page and where it is; used by BPF */
	u32 unknown;     /* registers of which a byte above the lowest is unknown, a bit each */
	u32 unknown_low; /* registers whose lowest byte is */
	u32 loaded_unknown;
	u32 keeps; /* the words that are read are kept, for running again; used by BPF */
	/*
	 * Flags, as far as an instruction has to go to set them: ZF is zero == 0, SF is bit 63 of
	 * sign, PF the parity of parity, AF bit 4 of adjust; the others are 0 or 1.
	 */
	u64 zero, sign;
	u8 parity, carry, overflow, adjust, direction;
	u8 direct;  /* code was not read by lines */
	u64 filter; /* of the overlay: words that are certainly not in it have a 0 */
	u64 loaded; /* what the last load found */
	u64 r[INTERP_REGISTERS];
	u64 operand[4]; /* values, by enum interp_operand */
	u64 base[2];    /* of fs and gs */
	u32 known_xmm;  /* vector registers whose lower 128 bits are known, a bit each */
	u32 epoch;      /* of the overlay and the caches: what has another one is free */
	u32 kernel;     /* interprets kernel code */
	u32 stored;     /* words in the overlay */
	u32 failed;     /* loads that could not be read; their values are unknown */
	u32 available;  /* bytes of code */
	u64 code[2];    /* from ip on, where it was read by lines */
	u64 pgd, stack; /* memory as the interrupt sees it; used by BPF */
	u64 mapping;    /* number of that memory, 1 to 4095 */
	struct interp_page page[INTERP_PAGES];
	struct interp_page region[INTERP_REGIONS];
	struct interp_word word[INTERP_WORDS];
	struct interp_line line[INTERP_LINES];
	u64 xmm[16][2];
#ifdef __bpf__
	u32 ninputs, pad;
	u64 input[INTERP_INPUTS];
	u64 lost[INTERP_INPUTS / 64]; /* inputs that could not be read, a bit each */
#else
	struct interp_effect effect;
	int (*read)(void *arg, u64 address, u64 *word);
	void *arg;
#endif
};

#ifndef __bpf__
/*
 * ---- in user space ----
 *
 * Starts a run: forgets overlay and caches, takes everything for known except vector registers. The
 * caller sets r, ip, base and the flags; `read` answers for memory.
 */
void interp_begin(struct interp *m, int (*read)(void *arg, u64 address, u64 *word), void *arg);
void interp_set_flags(struct interp *m, u64 rflags);
u64 interp_flags(const struct interp *m); /* unknown ones are 0 */

/* Begins with something stored: up to eight bytes. */
void interp_put(struct interp *m, u64 address, unsigned size, u64 value);

/* One instruction; m->effect tells what it did. Where it does not go on, ip is unchanged, and what
 * else the instruction changes may be changed. */
enum interp_stop interp_step(struct interp *m);

/* The length of the instruction at code, or 0 if it is none; n bytes are there. */
unsigned interp_length(const u8 *code, unsigned n);

const char *interp_stop_name(enum interp_stop s);
#endif

#endif
