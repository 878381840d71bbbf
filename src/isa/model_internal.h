/*
 * The tables behind model.h: what LLVM's scheduling models say, as tools/models/generate.cc wrote
 * it into src/isa/models/, and the facts of chips and corrections that are kept by hand.
 */
#ifndef CULPRIT_ISA_MODEL_INTERNAL_H
#define CULPRIT_ISA_MODEL_INTERNAL_H

#include "isa/model.h"
#include "isa/model_key.h"

/* Which line of every chip's classes an instruction has. Sorted by mnemonic, then form. */
struct model_form_row {
	uint32_t form;
	uint16_t mnemonic, row;
};

/* Figures that many instructions of a chip share. */
struct model_class {
	uint16_t uops, latency;
	uint16_t first[2]; /* latency of the first and second visible destination, */
	uint16_t rax, rdx; /* of hidden ones, */
	uint16_t flags;    /* of flags; all others have latency */
	int8_t late;       /* visible register operands may come so much later than addresses, */
	int8_t late_hidden;
	uint8_t is;     /* MODEL_CLASS_* */
	uint8_t queues; /* a bit each */
	uint16_t use;   /* where its uses begin */
	uint8_t uses;   /* so many */
};
#define MODEL_CLASS_ELIMINATED  0x01u /* nothing executes */
#define MODEL_CLASS_INDEPENDENT 0x02u /* of what its visible register operands hold */
#define MODEL_CLASS_MOVE        0x04u /* may be eliminated at renaming */

#define MODEL_CLASS_NONE 0xffffu

struct model_tables {
	const char *source; /* LLVM's name */
	struct model_limits limits;
	const struct model_group *group;
	const struct model_use *use;
	const struct model_class *class;
	uint16_t ngroups, nclasses;
	uint8_t column; /* in model_rows */
};

#define MODEL_TABLES 9
extern const struct model_form_row model_forms[];
extern const size_t model_nforms;
extern const uint16_t model_rows[][MODEL_TABLES];
extern const size_t model_nrows;
extern const struct model_tables *const model_tables[MODEL_TABLES];

/* Units that only corrections use, so that they meet no unit of LLVM's. */
#define MODEL_GROUP_LOCKED 254
#define MODEL_GROUP_DIVIDE 255

struct model {
	const char *name, *title;
	uint8_t table;
	bool plain;
	uint32_t chip; /* MODEL_CHIP_*, for the corrections */
	struct model_limits limits;
};
#define MODEL_CHIP_GENERIC  0x001u
#define MODEL_CHIP_ZEN2     0x002u
#define MODEL_CHIP_ZEN3     0x004u
#define MODEL_CHIP_ZEN4     0x008u
#define MODEL_CHIP_ZEN5     0x010u
#define MODEL_CHIP_SKYLAKE  0x020u
#define MODEL_CHIP_SKYLAKEX 0x040u
#define MODEL_CHIP_ICELAKE  0x080u
#define MODEL_CHIP_ALDER    0x100u
#define MODEL_CHIP_SAPPHIRE 0x200u
#define MODEL_CHIP_COUNT    10

/* An instruction with its operands, as Zydis sees it. */
struct model_decoded {
	ZydisDecodedInstruction in;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	uint32_t form;
};

/* Registers and memory that it reads and writes, with the class's latencies. */
void model_operands(const struct model *, const struct model_decoded *, const struct model_class *,
	struct model_insn *out);
/* What is known better than by LLVM; nothing on plain models. */
void model_correct(const struct model *, const struct model_decoded *, struct model_insn *out);

#endif
