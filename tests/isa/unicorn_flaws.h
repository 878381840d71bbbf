/*
 * What Unicorn 2.0.1 (QEMU 5) does otherwise than the processor, by name and with the reason. Each
 * was seen in a case that the processor decided against it.
 */
#ifndef CULPRIT_TESTS_UNICORN_FLAWS_H
#define CULPRIT_TESTS_UNICORN_FLAWS_H

#include "isa/forms.h"
#include "isa/trial.h"

/* ---- classes ---- */

static inline unsigned flaw_count_prefixes(const struct form *f, const char *which)
{
	unsigned n = 0;
	for (; *which; which++)
		n += memchr(f->bytes, *which, f->in.raw.prefix_count) != NULL;
	return n;
}

static inline bool flaw_is_short_jump(const struct trial *t)
{
	return form_jumps(&t->form) && flaw_count_prefixes(&t->form, "\x66");
}

static inline bool flaw_is_far_target(const struct trial *t)
{
	return form_jumps(&t->form) && t->stop == INTERP_FAULT;
}

static inline bool flaw_is_two_segments(const struct trial *t)
{
	return flaw_count_prefixes(&t->form, "\x64\x65") &&
	       flaw_count_prefixes(&t->form, "\x26\x2e\x36\x3e");
}

static inline bool flaw_is_two_prefixes(const struct trial *t)
{
	return flaw_count_prefixes(&t->form, "\x66\xf2\xf3") > 1;
}

static inline bool flaw_is_unaligned(const struct trial *t)
{
	const ZydisDecodedOperand *operand = form_memory(&t->form);
	return t->stop == INTERP_FAULT && operand && operand->size == 128 &&
	       form_address(&t->form, operand, &t->c->before, t->c->before.ip) % 16;
}

static inline bool flaw_is_vex(const struct trial *t)
{
	return t->form.in.encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY &&
	       t->form.in.meta.isa_ext != ZYDIS_ISA_EXT_BMI1 &&
	       t->form.in.meta.isa_ext != ZYDIS_ISA_EXT_BMI2;
}

static inline bool flaw_is_extension(const struct trial *t)
{
	switch (t->form.in.meta.isa_ext) {
	case ZYDIS_ISA_EXT_CET:
	case ZYDIS_ISA_EXT_CLFLUSHOPT:
	case ZYDIS_ISA_EXT_CLWB:
	case ZYDIS_ISA_EXT_ENQCMD:
	case ZYDIS_ISA_EXT_GFNI:
	case ZYDIS_ISA_EXT_KEYLOCKER:
	case ZYDIS_ISA_EXT_KEYLOCKER_WIDE:
	case ZYDIS_ISA_EXT_MOVBE:
	case ZYDIS_ISA_EXT_MOVDIR:
	case ZYDIS_ISA_EXT_MPX:
	case ZYDIS_ISA_EXT_PCLMULQDQ:
	case ZYDIS_ISA_EXT_PT:
	case ZYDIS_ISA_EXT_RDPID:
	case ZYDIS_ISA_EXT_RDRAND:
	case ZYDIS_ISA_EXT_RDSEED:
	case ZYDIS_ISA_EXT_RDWRFSGS:
	case ZYDIS_ISA_EXT_SHA:
	case ZYDIS_ISA_EXT_SSE4A:
		return true;
	default:
		return t->form.in.mnemonic == ZYDIS_MNEMONIC_POPCNT ||
		       t->form.in.mnemonic == ZYDIS_MNEMONIC_XGETBV;
	}
}

static inline bool flaw_is_mmx_rex(const struct trial *t)
{
	return t->form.in.meta.isa_set == ZYDIS_ISA_SET_SSSE3MMX && t->form.in.raw.rex.R;
}

/* A program relative operand of an instruction with an immediate. */
static inline bool flaw_is_relative(const struct trial *t)
{
	const ZydisDecodedOperand *operand = form_memory(&t->form);
	switch (t->form.in.mnemonic) {
	case ZYDIS_MNEMONIC_SHLD:
	case ZYDIS_MNEMONIC_SHRD:
	case ZYDIS_MNEMONIC_RORX:
		return operand && form_is_relative(operand);
	default:
		return false;
	}
}

static inline bool flaw_is_wide_load(const struct trial *t)
{
	switch (t->form.in.mnemonic) {
	case ZYDIS_MNEMONIC_CVTDQ2PD:
	case ZYDIS_MNEMONIC_CVTPS2PD:
	case ZYDIS_MNEMONIC_CVTPS2PI:
	case ZYDIS_MNEMONIC_CVTTPS2PI:
	case ZYDIS_MNEMONIC_PUNPCKLBW:
	case ZYDIS_MNEMONIC_PUNPCKLWD:
	case ZYDIS_MNEMONIC_PUNPCKLDQ:
	case ZYDIS_MNEMONIC_ROUNDSS:
	case ZYDIS_MNEMONIC_ROUNDSD:
		return t->c->signal != SIGILL && form_memory(&t->form);
	default:
		return false;
	}
}

static inline bool flaw_is_comparison(const struct trial *t)
{
	switch (t->form.in.mnemonic) {
	case ZYDIS_MNEMONIC_CMPPS:
	case ZYDIS_MNEMONIC_CMPPD:
	case ZYDIS_MNEMONIC_CMPSS:
	case ZYDIS_MNEMONIC_CMPSD:
		return t->form.in.raw.imm[0].value.u > 7;
	default:
		return false;
	}
}

static inline bool flaw_is_memory_shift(const struct trial *t)
{
	switch (t->form.in.mnemonic) {
	case ZYDIS_MNEMONIC_SHL:
	case ZYDIS_MNEMONIC_SHR:
	case ZYDIS_MNEMONIC_SAR:
	case ZYDIS_MNEMONIC_SHLD:
	case ZYDIS_MNEMONIC_SHRD:
		return form_memory(&t->form);
	default:
		return false;
	}
}

static inline bool flaw_is_system(const struct trial *t)
{
	switch (t->form.in.mnemonic) {
	case ZYDIS_MNEMONIC_CLI:
	case ZYDIS_MNEMONIC_STI:
	case ZYDIS_MNEMONIC_RDPMC:
		return true;
	default:
		return false;
	}
}

static inline bool flaw_is_encoding(const struct trial *t)
{
	switch (t->form.in.mnemonic) {
	case ZYDIS_MNEMONIC_TEST:
		return t->form.in.raw.modrm.reg == 1;
	case ZYDIS_MNEMONIC_MOV:
		return (t->form.in.opcode | 1) == 0xc7 && t->form.in.raw.rex.R;
	case ZYDIS_MNEMONIC_NOP:
		return t->form.in.raw.modrm.mod == 3;
	default:
		return false;
	}
}

static inline bool flaw_is_rex_lost(const struct trial *t)
{
	switch (t->form.in.mnemonic) {
	case ZYDIS_MNEMONIC_LAHF:
	case ZYDIS_MNEMONIC_SAHF:
		return t->form.in.attributes & ZYDIS_ATTRIB_HAS_REX;
	case ZYDIS_MNEMONIC_PAUSE:
		return t->form.in.raw.rex.B;
	default:
		return false;
	}
}

static inline bool flaw_is_bits(const struct trial *t)
{
	switch (t->form.in.mnemonic) {
	case ZYDIS_MNEMONIC_BEXTR:
	case ZYDIS_MNEMONIC_BLSI:
	case ZYDIS_MNEMONIC_BZHI:
	case ZYDIS_MNEMONIC_PDEP:
	case ZYDIS_MNEMONIC_PEXT:
		return true;
	default:
		return false;
	}
}

static inline bool flaw_is_integer(const struct trial *t)
{
	const struct form *f = &t->form;
	switch (f->in.mnemonic) {
	case ZYDIS_MNEMONIC_CMPXCHG:
		return f->ops[0].size == 32;
	case ZYDIS_MNEMONIC_NEG:
		return f->in.attributes & ZYDIS_ATTRIB_HAS_LOCK;
	case ZYDIS_MNEMONIC_RET:
		return f->in.raw.imm[0].value.u & 0x8000;
	case ZYDIS_MNEMONIC_ENTER:
		return flaw_count_prefixes(f, "\x66");
	default:
		return false;
	}
}

/* ---- the list ---- */

static struct flaw {
	bool (*is)(const struct trial *t);
	bool unasked; /* Unicorn dies of some of them, at once or later */
	const char *why;
	unsigned times;
} flaws[] = {
	{flaw_is_short_jump, true, "66 jumps: keeps 16 bits of the target, as AMD does, or dies",
		0},
	{flaw_is_far_target, false, "jumps: goes to non-canonical addresses", 0},
	{flaw_is_two_segments, false, "fs or gs, then another segment: takes the last", 0},
	{flaw_is_two_prefixes, false, "66, f2, f3: of several takes another than the processor", 0},
	{flaw_is_unaligned, false, "16 bytes: goes on when they are not aligned", 0},
	{flaw_is_vex, false, "VEX and EVEX: knows none; takes some for those without", 0},
	{flaw_is_extension, false,
		"clwb, gfni, movbe, mpx, popcnt, rdrand, sha, sse4a and others: are not there", 0},
	{flaw_is_mmx_rex, true, "ssse3 on mm with REX.R: writes beyond the mm registers", 0},
	{flaw_is_relative, false, "shld, shrd, rorx [rip]: forgets the immediate", 0},
	{flaw_is_wide_load, false, "cvtps2pd and others: load more than they use", 0},
	{flaw_is_comparison, false, "cmpps and others: refuse what is above 7, not ignore it", 0},
	{flaw_is_memory_shift, false, "shl [m] and others: lose CF and OF", 0},
	{flaw_is_system, false, "cli, sti, rdpmc: are for the system, and it is never in user mode",
		0},
	{flaw_is_encoding, false, "test /1, mov with REX.R, nop of registers: refuses them", 0},
	{flaw_is_rex_lost, false, "lahf, sahf, pause with REX: use spl, exchange r8", 0},
	{flaw_is_bits, false, "bextr, blsi, bzhi, pdep, pext: wrong flags or upper halves", 0},
	{flaw_is_integer, false, "cmpxchg r32, lock neg, ret imm16, 16-bit enter: wrong", 0},
};

enum { FLAWS = sizeof flaws / sizeof *flaws };

static inline struct flaw *flaw_find(const struct trial *t)
{
	for (struct flaw *w = flaws; w < flaws + FLAWS; w++) {
		if (w->is(t))
			return w;
	}
	return NULL;
}

#endif
