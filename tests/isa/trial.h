/*
 * The interpreter on one case, against what an oracle says of it: the processor (native.h) or an
 * emulator. The includer says where the oracle's memory is and asks for a judgement; the first
 * thing that is wrong is in the trial's complaint.
 */
#ifndef CULPRIT_TESTS_TRIAL_H
#define CULPRIT_TESTS_TRIAL_H

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "isa/decode.h"
#include "isa/dice.h"
#include "isa/forms.h"
#include "isa/interp.h"
#include "isa/manual.h"
#include "isa/native.h"

enum { ALL_FLAGS = INTERP_FLAGS | INTERP_DF };

/* What the interpreter is not told; it gets other values there than the oracle. */
struct taint {
	bool any;
	u32 registers, low, flags, xmm;
	u64 words; /* which cannot be read */
};

struct tally {
	unsigned cases, done, faults, lacking, unmapped, shown, stops[INTERP_STOPS];
	unsigned registers, flags, memory, xmm; /* unknown after it, though nothing was before */
};

struct trial {
	const struct native_case *c;        /* with what the oracle says */
	const struct native_change *change; /* to memory, c->changes of them */
	const u64 *data;                    /* that was there before */
	const u8 *rights;                   /* of its pages */
	struct taint taint;
	struct form form; /* the first instruction */
	struct tally *tally;
	enum interp_stop stop; /* of the first instruction */
	char complaint[160];
	struct interp m;
};

/* ---- saying what went wrong ---- */

static inline void trial_show_code(const struct native_case *c)
{
	for (size_t at = 0, n; at < c->size; at += n) {
		char text[128];
		n = isa_text(c->code + at, c->size - at, c->before.ip + at, ISA_INTEL, NULL, NULL,
			text, sizeof text);
		fprintf(stderr, "   ");
		for (size_t i = 0; i < n; i++)
			fprintf(stderr, " %02x", c->code[at + i]);
		fprintf(stderr, "  %s\n", text);
	}
}

/* Registers that the instructions name or that are not what they were. */
static inline u32 trial_registers(const struct trial *t)
{
	const struct native_case *c = t->c;
	u32 mask = 0;
	for (size_t at = 0; at < c->size;) {
		struct form f;
		if (!form_decode(&f, c->code + at, c->size - at))
			break;
		for (int i = 0; i < f.in.operand_count; i++) {
			const ZydisDecodedOperand *op = &f.ops[i];
			bool memory = op->type == ZYDIS_OPERAND_TYPE_MEMORY;
			ZydisRegister name[2] = {memory ? op->mem.base : op->reg.value,
				memory ? op->mem.index : ZYDIS_REGISTER_NONE};
			for (int k = 0; k < 2; k++) {
				ZydisRegister whole = ZydisRegisterGetLargestEnclosing(
					ZYDIS_MACHINE_MODE_LONG_64, name[k]);
				if (ZydisRegisterGetClass(whole) == ZYDIS_REGCLASS_GPR64)
					mask |= 1u << ZydisRegisterGetId(whole);
			}
		}
		at += f.in.length;
	}
	for (int i = 0; i < 16; i++) {
		if (c->before.r[i] != c->after.r[i] || c->before.r[i] != t->m.r[i])
			mask |= 1u << i;
	}
	return mask;
}

static inline void trial_show_state(const struct trial *t)
{
	const struct native_case *c = t->c;
	const struct interp *m = &t->m;
	u32 interest = trial_registers(t);
	for (int i = 0; i < 16; i++) {
		if (interest >> i & 1)
			fprintf(stderr, "    r%-2d %016lx -> %016lx, interpreted %016lx%s%s\n", i,
				c->before.r[i], c->after.r[i], m->r[i],
				m->unknown >> i & 1 ? " unknown" : "",
				m->unknown_low >> i & 1 ? " unknown low" : "");
	}
	fprintf(stderr, "    ip  %lx -> %lx, interpreted %lx\n", c->before.ip, c->after.ip, m->ip);
	fprintf(stderr, "    flags %03lx -> %03lx, interpreted %03lx, unknown %03x\n",
		c->before.flags & ALL_FLAGS, c->after.flags & ALL_FLAGS, interp_flags(m),
		m->unknown_flags);
	if (t->taint.any)
		fprintf(stderr,
			"    unknown before: registers %04x low %04x flags %03x xmm %04x%s\n",
			t->taint.registers, t->taint.low, t->taint.flags, t->taint.xmm,
			t->taint.words ? ", some memory" : "");
}

__attribute__((format(printf, 2, 3))) static inline void trial_complain(
	struct trial *t, const char *format, ...)
{
	va_list args;
	if (t->complaint[0])
		return;
	va_start(args, format);
	vsnprintf(t->complaint, sizeof t->complaint, format, args);
	va_end(args);
}

/* The complaint, unless there were many already. */
static inline void trial_show(const struct trial *t)
{
	enum { SHOWN = 100, SHOWN_EACH = 2 };
	static unsigned shown;
	if (t->tally->shown >= SHOWN_EACH || shown >= SHOWN)
		return;
	t->tally->shown++;
	fprintf(stderr, "%u. %s (signal %d code %d)\n", ++shown, t->complaint, t->c->signal,
		t->c->signal_code);
	trial_show_code(t->c);
	trial_show_state(t);
}

/* ---- what it says against what happened ---- */

static inline const struct interp_word *trial_find_word(const struct interp *m, u64 address)
{
	for (int i = 0; i < INTERP_WORDS; i++) {
		if (m->word[i].epoch == m->epoch && m->word[i].address == address)
			return &m->word[i];
	}
	return NULL;
}

static inline bool is_data(u64 address)
{
	return address >= NATIVE_DATA && address < NATIVE_DATA + NATIVE_DATA_SIZE;
}

static inline bool trial_can_read(const struct trial *t, u64 address)
{
	return is_data(address) &&
	       t->rights[(address - NATIVE_DATA) / NATIVE_PAGE] != NATIVE_ABSENT;
}

static inline bool trial_can_write(const struct trial *t, u64 address)
{
	return is_data(address) &&
	       t->rights[(address - NATIVE_DATA) / NATIVE_PAGE] == NATIVE_WRITABLE;
}

/* With so many bits of addresses as a processor has. */
static inline bool is_canonical(u64 address, unsigned bits)
{
	return (u64)((s64)(address << (64 - bits)) >> (64 - bits)) == address;
}

static inline u64 trial_word(const struct trial *t, u32 word)
{
	for (u32 i = 0; i < t->c->changes; i++) {
		if (t->change[i].word == word)
			return t->change[i].data;
	}
	return t->data[word];
}

static inline void trial_compare_registers(struct trial *t)
{
	for (int i = 0; i < 16; i++) {
		u64 known = (t->m.unknown >> i & 1 ? 0 : ~0xffull) |
			    (t->m.unknown_low >> i & 1 ? 0 : 0xff);
		if ((t->m.r[i] ^ t->c->after.r[i]) & known)
			return trial_complain(t, "register %d is wrong", i);
	}
	u64 flags = ALL_FLAGS & ~t->m.unknown_flags;
	if ((interp_flags(&t->m) ^ t->c->after.flags) & flags)
		return trial_complain(t, "flags %03lx are wrong",
			(interp_flags(&t->m) ^ t->c->after.flags) & flags);
	for (int i = 0; i < 16; i++) {
		if (t->m.known_xmm >> i & 1 && memcmp(t->m.xmm[i], t->c->after.xmm[i], 16))
			return trial_complain(t,
				"xmm%d is wrong: %016lx%016lx, interpreted %016lx%016lx", i,
				t->c->after.xmm[i][1], t->c->after.xmm[i][0], t->m.xmm[i][1],
				t->m.xmm[i][0]);
	}
}

/* Each byte that changed was stored to, and each that was stored has what the interpreter says. */
static inline void trial_compare_memory(struct trial *t)
{
	for (u32 i = 0; i < t->c->changes; i++) {
		const struct interp_word *w =
			trial_find_word(&t->m, NATIVE_DATA + 8ull * t->change[i].word);
		u64 changed = t->change[i].data ^ t->data[t->change[i].word];
		for (int b = 0; b < 8; b++) {
			if (changed >> 8 * b & 0xff && (!w || !(w->stored >> b & 1)))
				return trial_complain(t, "missed a store to word %x byte %d",
					t->change[i].word, b);
		}
	}
	for (const struct interp_word *w = t->m.word; w < t->m.word + INTERP_WORDS; w++) {
		if (w->epoch != t->m.epoch)
			continue;
		if (!is_data(w->address) && w->stored == w->unknown)
			continue; /* fewer bytes than it believes are lost */
		if (!is_data(w->address))
			return trial_complain(
				t, "stores at %lx, and the processor does not", w->address);
		u64 differs = w->data ^ trial_word(t, (u32)((w->address - NATIVE_DATA) / 8));
		for (int b = 0; b < 8; b++) {
			if ((w->stored & ~w->unknown) >> b & 1 && differs >> 8 * b & 0xff)
				return trial_complain(t, "stores %016lx at %lx (bytes %02x)",
					w->data, w->address, w->stored);
		}
	}
}

static inline void trial_note_unknown(struct trial *t, struct tally *tally)
{
	const struct interp *m = &t->m;
	bool memory = false;
	for (int i = 0; i < INTERP_WORDS; i++)
		memory |= m->word[i].epoch == m->epoch && m->word[i].unknown;
	u32 flags = m->unknown_flags & ~manual_undefined_flags(&t->form, &t->c->before);
	tally->registers += m->unknown || m->unknown_low;
	tally->flags += flags != 0;
	tally->memory += memory;
	tally->xmm += m->known_xmm != 0xffff;
	if (!manual_is_integer(&t->form) || manual_reads_segment(&t->form) || m->failed)
		return;
	if ((m->unknown || m->unknown_low || memory) &&
		!manual_is_undefined(&t->form, &t->c->before))
		trial_complain(t, "a result is unknown");
	else if (flags && !manual_is_undefined(&t->form, &t->c->before))
		trial_complain(t, "flags %03x are unknown", flags);
	else if (m->known_xmm != 0xffff)
		trial_complain(t, "vectors %04x are unknown", m->known_xmm ^ 0xffff);
}

static inline void trial_compare_effect(struct trial *t)
{
	static const u32 kinds[] = {[INSN_JUMP] = INTERP_JUMP,
		[INSN_BRANCH] = INTERP_BRANCH,
		[INSN_CALL] = INTERP_CALL,
		[INSN_JUMP_INDIRECT] = INTERP_INDIRECT,
		[INSN_CALL_INDIRECT] = INTERP_CALL | INTERP_INDIRECT,
		[INSN_RETURN] = INTERP_RETURN | INTERP_INDIRECT,
		[INSN_TRAP] = 0};
	const u32 all = INTERP_JUMP | INTERP_BRANCH | INTERP_CALL | INTERP_INDIRECT | INTERP_RETURN;
	const struct interp_effect *e = &t->m.effect;
	const ZydisDecodedOperand *memory = form_memory(&t->form);
	struct insn insn;

	if (isa_decode(t->c->code, t->c->size, t->c->before.ip, &insn) < 0)
		return;
	if (e->ip != t->c->before.ip || e->next != t->m.ip || e->length != insn.length)
		trial_complain(
			t, "the effect has ip %lx next %lx length %u", e->ip, e->next, e->length);
	else if ((e->has & all) != kinds[insn.kind])
		trial_complain(t, "the effect's kind is %x", e->has);
	else if (t->c->changes && !(e->has & INTERP_STORES))
		trial_complain(t, "the effect does not store");
	else if (memory && e->has & INTERP_HAS_ADDRESS && e->has & (INTERP_LOADS | INTERP_STORES) &&
		 manual_is_integer(&t->form) &&
		 t->form.in.meta.category != ZYDIS_CATEGORY_BITBYTE &&
		 t->form.in.meta.category != ZYDIS_CATEGORY_POP &&
		 t->form.in.meta.category != ZYDIS_CATEGORY_PUSH &&
		 t->form.in.meta.category != ZYDIS_CATEGORY_CALL &&
		 t->form.in.meta.category != ZYDIS_CATEGORY_STRINGOP &&
		 e->address != form_address(&t->form, memory, &t->c->before, t->c->before.ip))
		trial_complain(t, "the effect's address is %lx", e->address);
}

/* What an address in NATIVE_DATA holds after the case. */
static inline u64 trial_bytes(const struct trial *t, u64 address, u64 mask)
{
	u64 offset = address - NATIVE_DATA, shift = offset % 8 * 8;
	u32 word = (u32)(offset / 8);
	u64 low = trial_word(t, word), high = word + 1 < NATIVE_WORDS ? trial_word(t, word + 1) : 0;
	return (shift ? low >> shift | high << (64 - shift) : low) & mask;
}

/* The value is that of the destination: a register, or the first operand in memory. */
static inline void trial_compare_value(struct trial *t)
{
	const struct interp_effect *e = &t->m.effect;
	bool whole = e->size == 2 || e->size == 4 || e->size == 8;
	u64 mask = e->size == 8 ? ~0ull : (1ull << 8 * (e->size & 7)) - 1;
	u64 value = e->value & mask;
	if (!whole || !manual_is_integer(&t->form))
		return;
	if (!(e->has & INTERP_HAS_VALUE))
		return;
	if (e->destination < 16) {
		if (value != (t->c->after.r[e->destination] & mask))
			trial_complain(t, "the effect's value is %lx (size %u, register %u)",
				e->value, e->size, e->destination);
	} else if (e->has & INTERP_HAS_ADDRESS && t->form.in.meta.category != ZYDIS_CATEGORY_POP &&
		   t->form.in.meta.category != ZYDIS_CATEGORY_STRINGOP &&
		   t->form.ops[0].type == ZYDIS_OPERAND_TYPE_MEMORY &&
		   t->form.ops[0].actions & ZYDIS_OPERAND_ACTION_WRITE &&
		   t->form.ops[0].size == e->size * 8 && is_data(e->address) &&
		   value != trial_bytes(t, e->address, mask)) {
		trial_complain(t, "the effect's value is %lx (size %u, at %lx)", e->value, e->size,
			e->address);
	}
}

/* ---- runs ---- */

static inline int trial_read_word(void *arg, u64 address, u64 *word)
{
	const struct trial *t = arg;
	struct dice d = {.state = address ^ t->taint.words};
	if (is_data(address)) {
		if (!trial_can_read(t, address) || (t->taint.words && dice_chance(&d, 15)))
			return -EFAULT;
		*word = t->data[(address - NATIVE_DATA) / 8];
		return 0;
	}
	if (address < NATIVE_CODE || address >= NATIVE_CODE + NATIVE_CODE_SIZE)
		return -EFAULT;
	for (u64 i = 0; i < 8; i++) {
		u64 offset = address + i - t->c->before.ip;
		((u8 *)word)[i] = offset < t->c->size ? t->c->code[offset] : NATIVE_INT3;
	}
	return 0;
}

static inline struct taint taint_roll(struct dice *d)
{
	struct taint t = {.any = true};
	t.registers = (u32)(dice_roll(d) & dice_roll(d) & 0xffff);
	t.low = dice_chance(d, 60) ? t.registers : (u32)(dice_roll(d) & dice_roll(d) & 0xffff);
	if (dice_chance(d, 40))
		t.flags = (u32)(dice_roll(d) & INTERP_FLAGS);
	if (dice_chance(d, 30))
		t.registers = t.low = 0;
	t.xmm = dice_chance(d, 50) ? 0xffff : (u32)(dice_roll(d) & 0xffff);
	t.words = dice_chance(d, 30) ? dice_roll(d) : 0;
	return t;
}

/* Where something is unknown the interpreter sees another value: if it uses it, that shows. */
static inline void trial_begin(struct trial *t, struct dice *d)
{
	struct interp *m = &t->m;
	interp_begin(m, trial_read_word, t);
	memcpy(m->r, t->c->before.r, sizeof m->r);
	memcpy(m->xmm, t->c->before.xmm, sizeof m->xmm);
	m->ip = t->c->before.ip;
	m->base[0] = NATIVE_FS;
	m->base[1] = NATIVE_GS;
	interp_set_flags(m, t->c->before.flags ^ t->taint.flags);
	m->unknown = t->taint.registers;
	m->unknown_low = t->taint.low;
	m->unknown_flags = t->taint.flags;
	m->known_xmm = 0xffff & ~t->taint.xmm;
	for (int i = 0; i < 16; i++) {
		if (t->taint.registers >> i & 1)
			m->r[i] ^= (dice_roll(d) | 0x100) & ~0xffull;
		if (t->taint.low >> i & 1)
			m->r[i] ^= 1 + dice_below(d, 255);
		if (t->taint.xmm >> i & 1)
			m->xmm[i][0] ^= dice_roll(d);
	}
}

/* A repeated string operation may go on in several steps. */
static inline enum interp_stop trial_step(struct interp *m, bool repeats)
{
	enum { MOST = 200 };
	u64 ip = m->ip;
	enum interp_stop stop = interp_step(m);
	for (int i = 0; repeats && stop == INTERP_GOES_ON && m->ip == ip && i < MOST; i++)
		stop = interp_step(m);
	return stop;
}

/* Whether the operand, or what the interpreter stored, is not all there to be used so. */
static inline bool trial_reaches_outside(const struct trial *t)
{
	const ZydisDecodedOperand *operand = form_memory(&t->form);
	const struct interp_effect *e = &t->m.effect;
	bool outside = t->m.failed || t->m.insn.address_unknown; /* as EVEX displacements can be */
	if (e->has & INTERP_HAS_ADDRESS)
		outside |= !trial_can_read(t, e->address);
	if (operand) { /* a store that does not happen may fault all the same */
		u64 at = form_address(&t->form, operand, &t->c->before, t->c->before.ip);
		u64 last = at + (operand->size ? operand->size / 8u - 1u : 0);
		bool stores = operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE;
		outside |= operand->mem.type == ZYDIS_MEMOP_TYPE_VSIB;
		for (u64 a = at; !outside && a - at <= last - at; a++)
			outside |= !(stores ? trial_can_write : trial_can_read)(t, a);
	}
	for (int i = 0; i < INTERP_WORDS; i++)
		outside |= t->m.word[i].epoch == t->m.epoch &&
			   !trial_can_write(t, t->m.word[i].address);
	return outside;
}

/* Instructions that trap for what the interpreter does not look at, and that it makes no known
 * results of. */
static inline bool trial_may_trap(const struct form *f)
{
	switch (f->in.mnemonic) {
	case ZYDIS_MNEMONIC_LDMXCSR: /* reserved bits */
	case ZYDIS_MNEMONIC_VLDMXCSR:
	case ZYDIS_MNEMONIC_FXRSTOR: /* and alignment */
	case ZYDIS_MNEMONIC_FXRSTOR64:
	case ZYDIS_MNEMONIC_RDPMC: /* the system decides */
	case ZYDIS_MNEMONIC_XGETBV:
	case ZYDIS_MNEMONIC_SGDT: /* and does them itself, as far as it understands them */
	case ZYDIS_MNEMONIC_SIDT:
	case ZYDIS_MNEMONIC_SLDT:
	case ZYDIS_MNEMONIC_SMSW:
	case ZYDIS_MNEMONIC_STR:
	case ZYDIS_MNEMONIC_ENTER: /* the end of the new frame, which is not written */
		return true;
	default:
		return false;
	}
}

/* The processor trapped, and the interpreter did not see why. */
static inline void trial_judge_missed_fault(struct trial *t)
{
	bool memory = t->c->signal == SIGSEGV || t->c->signal == SIGBUS;
	if (t->taint.any)
		return;
	if (t->c->signal == SIGILL && t->form.in.meta.isa_ext != ZYDIS_ISA_EXT_BASE &&
		t->form.in.meta.isa_ext != ZYDIS_ISA_EXT_LONGMODE)
		t->tally->lacking++;
	else if (memory && trial_reaches_outside(t))
		t->tally->unmapped++; /* what it would have loaded is unknown */
	else if (memory && !is_canonical(t->m.ip, 48) && is_canonical(t->m.ip, 57))
		t->tally->unmapped++; /* on a machine with longer addresses it would go there */
	else if (memory && trial_may_trap(&t->form))
		t->tally->unmapped++;
	else
		trial_complain(t, "goes on where the processor traps");
}

static inline bool trial_has_prefix(const struct form *f, uint8_t prefix)
{
	for (unsigned i = 0; i < f->in.raw.prefix_count; i++)
		if (f->in.raw.prefixes[i].value == prefix)
			return true;
	return false;
}

/* Chips of Intel and AMD do different things. */
static inline bool trial_is_disputed(const struct form *f)
{
	bool transfer = f->in.meta.branch_type != ZYDIS_BRANCH_TYPE_NONE ||
			f->in.meta.category == ZYDIS_CATEGORY_RET;

	if (transfer && trial_has_prefix(f, 0x66) && !f->in.raw.rex.W)
		return true;
	if ((f->in.mnemonic == ZYDIS_MNEMONIC_LOOPE || f->in.mnemonic == ZYDIS_MNEMONIC_LOOPNE) &&
		(trial_has_prefix(f, 0xf2) || trial_has_prefix(f, 0xf3)))
		return true;
	if (f->in.opcode == 0x90 && f->in.raw.rex.B && trial_has_prefix(f, 0xf3))
		return true;
	return f->in.opcode_map == ZYDIS_OPCODE_MAP_0F && f->in.opcode == 0x0d &&
	       f->in.raw.modrm.mod == 3;
}

/* What nobody writes may be unknown as an instruction. */
static inline bool trial_is_odd(const struct form *f)
{
	bool short_address = f->in.attributes & ZYDIS_ATTRIB_HAS_ADDRESSSIZE;
	bool strings = f->in.meta.category == ZYDIS_CATEGORY_STRINGOP ||
		       f->in.meta.category == ZYDIS_CATEGORY_BITBYTE;
	return trial_is_disputed(f) || form_has_lost_rex(f) || f->in.meta.isa_ext == ZYDIS_ISA_EXT_MPX ||
	       (short_address && strings) ||
	       (f->in.mnemonic == ZYDIS_MNEMONIC_ENTER && f->ops[1].imm.value.u & 31);
}

/* The interpreter stopped where the processor went on. */
static inline void trial_judge_stop(struct trial *t)
{
	bool integer = manual_is_integer(&t->form) && !manual_reads_segment(&t->form);
	if (t->taint.any || trial_is_odd(&t->form))
		return;
	if ((t->stop == INTERP_LENGTH || t->stop == INTERP_ROOM) &&
		(form_repeats(&t->form) || !integer))
		return;
	/* A masked vector that is not there does not fault. */
	bool masked = t->form.in.encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY;
	if (integer || (t->stop == INTERP_FAULT && !masked) || t->stop == INTERP_FETCH)
		trial_complain(t, "stops: %s", interp_stop_name(t->stop));
}

static inline void trial_run(struct trial *t)
{
	t->stop = trial_step(&t->m, form_repeats(&t->form));
}

/* Goes on where the oracle did: the same state, and nothing unknown that need not be. */
static inline void trial_judge_result(struct trial *t)
{
	if (t->m.ip != t->c->after.ip)
		return trial_complain(t, "goes elsewhere");
	trial_compare_registers(t);
	if (!t->c->overflow)
		trial_compare_memory(t);
	if (!t->taint.any)
		trial_note_unknown(t, t->tally);
	trial_compare_effect(t);
	trial_compare_value(t);
}

/* A repeated instruction that is not through. */
static inline bool trial_is_amid(const struct trial *t)
{
	return form_repeats(&t->form) && t->m.ip == t->c->before.ip;
}

static inline void trial_judge(struct trial *t)
{
	bool done = t->c->signal == SIGTRAP;

	t->tally->cases++;
	t->tally->faults += !done;
	t->tally->done += done && t->stop == INTERP_GOES_ON;
	if (t->stop != INTERP_GOES_ON) {
		t->tally->stops[t->stop] += done && !t->taint.any;
		if (t->m.ip != t->c->before.ip && !form_repeats(&t->form))
			trial_complain(t, "stops (%s) elsewhere", interp_stop_name(t->stop));
		if (done)
			trial_judge_stop(t);
	} else if (!trial_is_amid(t)) {
		if (done)
			trial_judge_result(t);
		else
			trial_judge_missed_fault(t);
	}
}

#endif
