/*
 * Machine models: what an instruction costs on a chip when nothing goes wrong. Figures come from
 * LLVM's scheduling models (src/isa/models/, see the notes there), corrected by hand where LLVM is
 * known to be off (model_corrections.c). Models are constant and shared; nothing is allocated.
 */
#ifndef CULPRIT_ISA_MODEL_H
#define CULPRIT_ISA_MODEL_H

#include "isa/decode.h"

struct model;

/* ---- which ---- */

size_t model_count(void);
const struct model *model_at(size_t i);
/*
 * NULL when there is none of that name. "NAME:llvm" is the model without corrections, as llvm-mca
 * has it.
 */
const struct model *model_by_name(const char *name);
/*
 * By what CPUID says; a chip that no model knows gets the generic one, and *known is false. Virtual
 * machines may be told the number of an older chip, but not that there is no AMX where there is.
 */
struct model_cpuid {
	char vendor[13];
	unsigned family, number;
	bool amx;
};
const struct model *model_by_cpuid(const struct model_cpuid *chip, bool *known);
const struct model *model_of_host(bool *known);

const char *model_name(const struct model *);  /* "icelake" */
const char *model_title(const struct model *); /* "Intel Ice Lake", with what must be said of it */
bool model_is_plain(const struct model *);     /* without corrections */

/* ---- the core ---- */

#define MODEL_QUEUES 8
#define MODEL_UNITS  32

struct model_limits {
	unsigned width;  /* micro-ops that enter the window in a cycle */
	unsigned retire; /* instructions that leave it in a cycle; 0 here and below: not bounded */
	unsigned window; /* micro-ops */
	unsigned load_queue, store_queue;
	unsigned integers, vectors;            /* physical registers */
	unsigned integer_moves, vector_moves;  /* eliminated at renaming in a cycle; 0: none is */
	unsigned nqueues, queue[MODEL_QUEUES]; /* entries of the schedulers */
	bool renames_memory; /* loads of what was just stored at the same address take no time */
};
const struct model_limits *model_limits(const struct model *);

/* Units that can do the same work; a port is a unit. */
struct model_group {
	const char *name;
	uint32_t units; /* a bit each */
};
struct model_group model_group(const struct model *, unsigned group);

/* ---- instructions ---- */

/* Names of what instructions read and write. */
enum model_register {
	MODEL_RAX = 0,
	MODEL_RDX = 2,
	MODEL_RSP = 4,
	MODEL_CARRY = 16, /* the carry flag */
	MODEL_FLAGS,      /* the others */
	MODEL_VECTOR,     /* 32 of them */
	MODEL_MASK = MODEL_VECTOR + 32,
	MODEL_MMX = MODEL_MASK + 8,
	MODEL_X87 = MODEL_MMX + 8,
	MODEL_REGISTERS = MODEL_X87 + 8,
	MODEL_NO_REGISTER = 255,
};

struct model_use {
	uint8_t group;
	uint8_t cycles; /* MODEL_WHOLE: of all its units */
};
#define MODEL_WHOLE 0x80u

struct model_read {
	uint8_t reg;
	int8_t late; /* it is needed so many cycles after the start */
};
struct model_write {
	uint8_t reg;
	uint16_t latency;
};

/* A memory operand as written. */
struct model_place {
	uint8_t base, index, scale; /* MODEL_NO_REGISTER: none */
	uint8_t segment;            /* 1: fs, 2: gs */
	uint16_t size;
	bool loads, stores;
	int64_t displacement; /* of rip-relative ones the distance from the instruction's start */
};

#define MODEL_UNKNOWN     0x01u /* not in the table: a guess */
#define MODEL_MICROCODED  0x02u
#define MODEL_ELIMINATED  0x04u /* takes no unit: zero idioms, nops */
#define MODEL_MOVE        0x08u /* a register move that renaming may eliminate */
#define MODEL_SERIALISING 0x10u /* waits for everything before it, and all after it wait */
#define MODEL_CORRECTED   0x20u
#define MODEL_FUSES       0x40u /* with a conditional branch right after it */

#define MODEL_USES   12
#define MODEL_READS  12
#define MODEL_WRITES 8
#define MODEL_PLACES 2

struct model_insn {
	uint8_t length;
	enum insn_kind kind;
	uint8_t flags;
	uint8_t queues; /* schedulers that it waits in, a bit each */
	uint16_t uops, latency;
	uint8_t nuses, nreads, nwrites, nplaces;
	struct model_use use[MODEL_USES];
	struct model_read read[MODEL_READS];
	struct model_write write[MODEL_WRITES];
	struct model_place place[MODEL_PLACES];
	/* What is known of general registers that it changes: moved by a constant. */
	uint8_t moved; /* or MODEL_NO_REGISTER */
	int64_t by;
};

/* 0, or -EBADMSG when the bytes are no instruction (or are cut off). */
int model_insn(const struct model *, const void *code, size_t n, struct model_insn *out);

#endif
