#include "isa/model_internal.h"

/* What is known better than by LLVM. Every fact names where it is known from. */

#define INTEL                                                                                 \
	(MODEL_CHIP_GENERIC | MODEL_CHIP_SKYLAKE | MODEL_CHIP_SKYLAKEX | MODEL_CHIP_ICELAKE | \
		MODEL_CHIP_ALDER | MODEL_CHIP_SAPPHIRE)
#define GOLDEN     (MODEL_CHIP_ALDER | MODEL_CHIP_SAPPHIRE)
#define COVES      (MODEL_CHIP_ICELAKE | GOLDEN)
#define LATER_ZENS (MODEL_CHIP_ZEN3 | MODEL_CHIP_ZEN4 | MODEL_CHIP_ZEN5)
#define ZENS       (MODEL_CHIP_ZEN2 | LATER_ZENS)

/*
 * Figures of single instructions: micro-ops, latency (of rax, and of all else), cycles for which
 * the unit is busy. uops.info, html-instr/: DIV_R32 and DIV_R64 on Alder Lake-P and Rocket Lake
 * (Ice Lake's core); idiv is div with the same divider. LLVM 19 has Skylake's for Ice Lake.
 */
static const struct figure {
	uint32_t chips;
	uint16_t mnemonic;
	uint8_t width; /* of the operand, in bits; 0: any */
	uint8_t uops, rax, latency, busy, group;
} figures[] = {
	{COVES, ZYDIS_MNEMONIC_DIV, 64, 4, 14, 18, 10, MODEL_GROUP_DIVIDE},
	{COVES, ZYDIS_MNEMONIC_IDIV, 64, 4, 14, 18, 10, MODEL_GROUP_DIVIDE},
	{COVES, ZYDIS_MNEMONIC_DIV, 32, 4, 12, 15, 6, MODEL_GROUP_DIVIDE},
	{COVES, ZYDIS_MNEMONIC_IDIV, 32, 4, 12, 15, 6, MODEL_GROUP_DIVIDE},
};

/*
 * A locked operation holds up those after it for as long as it takes. uops.info: INC_LOCK_M32 is
 * 18 cycles on Alder Lake-P, 20 on Rocket Lake. LLVM has none for them; AMD's
 * is that of its commit "[X86][Btver2] Fix latency and throughput of CMPXCHG instructions".
 */
static const struct lock {
	uint32_t chips;
	uint8_t cycles;
} locks[] = {{GOLDEN, 18}, {INTEL & ~GOLDEN, 20}, {ZENS, 17}};

static void set_latency(struct model_insn *out, unsigned rax, unsigned latency)
{
	out->latency = (uint16_t)latency;
	for (unsigned i = 0; i < out->nwrites; i++)
		out->write[i].latency = (uint16_t)(out->write[i].reg == MODEL_RAX ? rax : latency);
	for (unsigned i = 0; i < out->nreads; i++)
		out->read[i].late = 0;
}

/* Keeps one unit busy that nothing of LLVM's shares. */
static void set_busy(struct model_insn *out, unsigned group, unsigned cycles)
{
	out->use[0] = (struct model_use){(uint8_t)group, (uint8_t)cycles};
	out->nuses = 1;
	out->flags |= MODEL_CORRECTED;
	out->flags &= (uint8_t)~MODEL_UNKNOWN;
}

static void correct_figures(
	const struct model *m, const struct model_decoded *d, struct model_insn *out)
{
	unsigned load = out->nplaces ? 5 : 0;

	for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
		const struct figure *f = &figures[i];

		if (!(f->chips & m->chip) || f->mnemonic != d->in.mnemonic ||
			(f->width && f->width != d->in.operand_width))
			continue;
		out->uops = f->uops;
		set_latency(out, f->rax + load, f->latency + load);
		set_busy(out, f->group, f->busy);
		out->flags &= (uint8_t)~MODEL_MICROCODED;
		return;
	}
}

/* An exchange with memory is locked without a prefix. */
static void correct_locked(
	const struct model *m, const struct model_decoded *d, struct model_insn *out)
{
	bool exchanges = d->in.mnemonic == ZYDIS_MNEMONIC_XCHG && out->nplaces;

	if (!(d->form & MODEL_LOCKED) && !exchanges)
		return;
	for (size_t i = 0; i < sizeof locks / sizeof *locks; i++) {
		if (!(locks[i].chips & m->chip))
			continue;
		set_latency(out, locks[i].cycles, locks[i].cycles);
		set_busy(out, MODEL_GROUP_LOCKED, locks[i].cycles);
	}
}

/* Operations that add, subtract, compare or choose numbers. */
#define OF_NUMBERS(operation)                                           \
	ZYDIS_MNEMONIC_##operation##PS, ZYDIS_MNEMONIC_##operation##PD, \
		ZYDIS_MNEMONIC_##operation##SS, ZYDIS_MNEMONIC_##operation##SD
static const uint16_t additions[] = {OF_NUMBERS(ADD), OF_NUMBERS(VADD), OF_NUMBERS(SUB),
	OF_NUMBERS(VSUB), OF_NUMBERS(MIN), OF_NUMBERS(VMIN), OF_NUMBERS(MAX), OF_NUMBERS(VMAX),
	OF_NUMBERS(CMP), OF_NUMBERS(VCMP)};

static bool adds_numbers(const struct model_decoded *d)
{
	for (size_t i = 0; i < sizeof additions / sizeof *additions; i++)
		if (additions[i] == d->in.mnemonic)
			return true;
	return false;
}

/*
 * Zen 5's table is Zen 4's. Its vector units take two cycles for what takes one there (integers,
 * logic, shuffles) and for adding numbers, which takes three there. (Measured on a server of family
 * 26, model 2, with chains of operations: 2.0 cycles for addps, addsd, maxps, cmpps, andps, paddd,
 * pmaxub, psubusb, pslld, pshufd, pshufb, shufps and unpcklps; 3.0 for mulps, pmulld, pmaddwd, 4.0
 * for vfmadd, as on Zen 4.)
 */
static void correct_vectors(
	const struct model *m, const struct model_decoded *d, struct model_insn *out)
{
	enum { OPERATION = 2, ADDED = 3 };
	int load = 0, took, more;

	if (m->chip != MODEL_CHIP_ZEN5 || out->flags & (MODEL_MOVE | MODEL_ELIMINATED) ||
		out->nwrites != 1 || out->write[0].reg < MODEL_VECTOR ||
		out->write[0].reg >= MODEL_MASK)
		return;
	for (unsigned i = 0; i < out->nreads; i++) {
		if (out->read[i].late > load)
			load = out->read[i].late;
	}
	took = out->write[0].latency - load;
	if (took != 1 && !(took == ADDED && adds_numbers(d)))
		return;
	more = OPERATION - took;
	out->write[0].latency = (uint16_t)(out->write[0].latency + more);
	out->latency = (uint16_t)(out->latency + more);
	out->flags |= MODEL_CORRECTED;
}

/* ---- renaming ---- */

/*
 * The stack pointer of push, pop, call and ret is followed ahead of the core (Intel 248966, "Stack
 * Pointer Tracker"; AMD 56305, "Stack Engine"): nobody waits for it.
 */
static void free_stack_pointer(const struct model_decoded *d, struct model_insn *out)
{
	unsigned n = 0;

	switch (d->in.mnemonic) {
	case ZYDIS_MNEMONIC_PUSH:
	case ZYDIS_MNEMONIC_POP:
	case ZYDIS_MNEMONIC_CALL:
	case ZYDIS_MNEMONIC_RET:
		break;
	default:
		return;
	}
	for (unsigned i = 0; i < out->nreads; i++)
		if (out->read[i].reg != MODEL_RSP)
			out->read[n++] = out->read[i];
	out->nreads = (uint8_t)n;
	n = 0;
	for (unsigned i = 0; i < out->nwrites; i++)
		if (out->write[i].reg != MODEL_RSP)
			out->write[n++] = out->write[i];
	out->nwrites = (uint8_t)n;
}

/*
 * LLVM has 12 cycles for all that stores on Golden Cove, which is until the cache has it. What is
 * stored is there for loads as soon as it is in the store buffer: at once, or behind the load and
 * the operation of an instruction that has these too, as on the cores before. (Measured: blocked
 * forwarding takes 19 cycles a round, and forwarding less than 2: culprits.c of the tests.)
 */
static void correct_stores(const struct model *m, struct model_insn *out)
{
	enum { UNTIL_IN_CACHE = 12, OPERATION = 7 };

	if (!(m->chip & GOLDEN) || !out->nplaces || !out->place[0].stores ||
		out->latency != UNTIL_IN_CACHE)
		return;
	if (out->place[0].loads)
		set_latency(out, OPERATION, OPERATION);
	else
		out->latency = 1;
	out->flags |= MODEL_CORRECTED;
}

/*
 * LLVM counts micro-ops as they execute. They enter and leave Intel's cores fused: a load with the
 * operation on it, the address of a store with its data (248966, "Micro-fusion").
 */
static void fuse_micro_ops(const struct model *m, struct model_insn *out)
{
	if (!(m->chip & INTEL) || out->flags & MODEL_MICROCODED)
		return;
	for (unsigned i = 0; i < out->nplaces; i++) {
		if (out->place[i].loads && out->uops > 1)
			out->uops--;
		if (out->place[i].stores && out->uops > 1)
			out->uops--;
	}
}

/* Macro-fusion: 248966, "Macro-Fusion"; AMD 56305 and 56665, "Branch Fusion". */
static void find_fusion(
	const struct model *m, const struct model_decoded *d, struct model_insn *out)
{
	switch (d->in.mnemonic) {
	case ZYDIS_MNEMONIC_CMP:
	case ZYDIS_MNEMONIC_TEST:
		break;
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_SUB:
	case ZYDIS_MNEMONIC_INC:
	case ZYDIS_MNEMONIC_DEC:
	case ZYDIS_MNEMONIC_AND:
		if (!(m->chip & (INTEL | LATER_ZENS)) || (out->nplaces && out->place[0].stores))
			return;
		break;
	default:
		return;
	}
	/* Not with both an immediate and memory. */
	if (!out->nplaces || d->ops[1].type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
		out->flags |= MODEL_FUSES;
}

/* Moves that renaming does (248966, "Move Elimination"); how many is a limit of the core. */
static void find_moves(const struct model_decoded *d, struct model_insn *out)
{
	uint32_t form = d->form & ~MODEL_EVEX;

	switch (d->in.mnemonic) {
	case ZYDIS_MNEMONIC_MOV:
		if (form == MODEL_FORM(MODEL_R64, MODEL_R64, 0, 0) ||
			form == MODEL_FORM(MODEL_R32, MODEL_R32, 0, 0))
			out->flags |= MODEL_MOVE;
		return;
	case ZYDIS_MNEMONIC_MOVAPS:
	case ZYDIS_MNEMONIC_MOVAPD:
	case ZYDIS_MNEMONIC_MOVUPS:
	case ZYDIS_MNEMONIC_MOVUPD:
	case ZYDIS_MNEMONIC_MOVDQA:
	case ZYDIS_MNEMONIC_MOVDQU:
	case ZYDIS_MNEMONIC_VMOVAPS:
	case ZYDIS_MNEMONIC_VMOVAPD:
	case ZYDIS_MNEMONIC_VMOVUPS:
	case ZYDIS_MNEMONIC_VMOVUPD:
	case ZYDIS_MNEMONIC_VMOVDQA:
	case ZYDIS_MNEMONIC_VMOVDQU:
		if (form == MODEL_FORM(MODEL_X, MODEL_X, 0, 0) ||
			form == MODEL_FORM(MODEL_Y, MODEL_Y, 0, 0))
			out->flags |= MODEL_MOVE;
		return;
	default:
		return;
	}
}

static bool is_zero_idiom(const struct model_decoded *d)
{
	if (!(d->form & MODEL_SAME))
		return false;
	switch (d->in.mnemonic) {
	case ZYDIS_MNEMONIC_XOR:
	case ZYDIS_MNEMONIC_SUB:
		return d->in.operand_width >= 32;
	case ZYDIS_MNEMONIC_PXOR:
	case ZYDIS_MNEMONIC_XORPS:
	case ZYDIS_MNEMONIC_XORPD:
	case ZYDIS_MNEMONIC_VPXOR:
	case ZYDIS_MNEMONIC_VXORPS:
	case ZYDIS_MNEMONIC_VXORPD:
		return d->in.operand_count_visible >= 2 &&
		       d->ops[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		       ZydisRegisterGetClass(d->ops[0].reg.value) != ZYDIS_REGCLASS_MMX;
	default:
		return false;
	}
}

/*
 * Renaming makes zeros (248966, "Zero-Latency"; AMD 56305, "Zero idioms"), which LLVM has for some
 * of the chips only; and it takes a slot for whatever it does away with.
 */
static void correct_renaming(const struct model_decoded *d, struct model_insn *out)
{
	if (is_zero_idiom(d)) {
		out->flags |= MODEL_ELIMINATED;
		out->nreads = out->nuses = out->queues = 0;
		for (unsigned i = 0; i < out->nwrites; i++)
			out->write[i].latency = 0;
		out->latency = 0;
		out->uops = 1;
	}
	if (!out->uops)
		out->uops = 1;
}

/* ---- what waits for everything ---- */

/* As Intel 325384 ("Serializing Instructions") and AMD 24593 list them; lfence waits for all that
 * is older and holds up what is younger, and a system call leaves. */
static bool is_serialising(const struct model_decoded *d)
{
	switch (d->in.mnemonic) {
	case ZYDIS_MNEMONIC_CPUID:
	case ZYDIS_MNEMONIC_IRET:
	case ZYDIS_MNEMONIC_IRETD:
	case ZYDIS_MNEMONIC_IRETQ:
	case ZYDIS_MNEMONIC_RSM:
	case ZYDIS_MNEMONIC_INVD:
	case ZYDIS_MNEMONIC_WBINVD:
	case ZYDIS_MNEMONIC_INVLPG:
	case ZYDIS_MNEMONIC_LGDT:
	case ZYDIS_MNEMONIC_LIDT:
	case ZYDIS_MNEMONIC_LLDT:
	case ZYDIS_MNEMONIC_LTR:
	case ZYDIS_MNEMONIC_WRMSR:
	case ZYDIS_MNEMONIC_SERIALIZE:
	case ZYDIS_MNEMONIC_LFENCE:
	case ZYDIS_MNEMONIC_SYSCALL:
	case ZYDIS_MNEMONIC_SYSRET:
		return true;
	default:
		return false;
	}
}

void model_correct(const struct model *m, const struct model_decoded *d, struct model_insn *out)
{
	/* Its operands are only there for its length. */
	if (d->in.mnemonic == ZYDIS_MNEMONIC_NOP)
		out->nreads = out->nplaces = 0;
	if (m->plain)
		return;
	correct_renaming(d, out);
	free_stack_pointer(d, out);
	fuse_micro_ops(m, out);
	find_fusion(m, d, out);
	find_moves(d, out);
	correct_vectors(m, d, out);
	correct_stores(m, out);
	correct_figures(m, d, out);
	correct_locked(m, d, out);
	if (is_serialising(d))
		out->flags |= MODEL_SERIALISING;
}
