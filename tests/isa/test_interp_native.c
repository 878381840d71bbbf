/*
 * The interpreter against the processor: random instructions on random states, alone and in rows,
 * with everything known and with some of it unknown.
 *
 * CULPRIT_INTERP_CASES sets the number of cases, CULPRIT_INTERP_SEED the seed;
 * CULPRIT_INTERP_STATISTICS prints what happened by mnemonic.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "isa/decode.h"
#include "isa/dice.h"
#include "isa/forms.h"
#include "isa/interp.h"
#include "isa/manual.h"
#include "isa/native.h"

enum {
	CASES = 200000,
	BATCH = 4096,
	SHOWN = 100,
	SHOWN_EACH = 2,
	ALL_FLAGS = INTERP_FLAGS | INTERP_DF
};

/* What the interpreter is not told; it gets other values there than the processor. */
struct taint {
	bool any;
	u32 registers, low, flags, xmm;
	u64 words; /* which cannot be read */
};

struct tally {
	unsigned cases, done, faults, lacking, shown, stops[INTERP_STOPS];
	unsigned registers, flags, memory, xmm; /* unknown after it, though nothing was before */
};

static struct tally tallies[ZYDIS_MNEMONIC_MAX_VALUE + 1], sum;
static unsigned wrong, died, overflown, unmapped;

struct trial {
	const struct native *native;
	const struct native_case *c;
	struct taint taint;
	struct form form; /* the first instruction */
	bool single;
	struct interp m;
};

/* ---- saying what went wrong ---- */

static void show_code(const struct native_case *c)
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
static u32 registers_of_interest(const struct trial *t)
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

static void show_state(const struct trial *t)
{
	const struct native_case *c = t->c;
	const struct interp *m = &t->m;
	u32 interest = registers_of_interest(t);
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

__attribute__((format(printf, 2, 3))) static void complain(
	const struct trial *t, const char *format, ...)
{
	static unsigned shown;
	struct tally *tally = &tallies[t->form.in.mnemonic];
	va_list args;
	wrong++;
	if (tally->shown >= SHOWN_EACH || shown >= SHOWN)
		return;
	tally->shown++;
	fprintf(stderr, "%u. ", ++shown);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, " (signal %d code %d)\n", t->c->signal, t->c->signal_code);
	show_code(t->c);
	show_state(t);
}

/* ---- what it says against what happened ---- */

static const struct interp_word *find_word(const struct interp *m, u64 address)
{
	for (int i = 0; i < INTERP_WORDS; i++) {
		if (m->word[i].epoch == m->epoch && m->word[i].address == address)
			return &m->word[i];
	}
	return NULL;
}

static bool is_data(u64 address)
{
	return address >= NATIVE_DATA && address < NATIVE_DATA + NATIVE_DATA_SIZE;
}

static bool is_canonical(u64 address)
{
	return (u64)((s64)(address << 16) >> 16) == address;
}

static u64 native_word(const struct trial *t, u32 word)
{
	const struct native_change *change = t->native->changes + t->c->change;
	for (u32 i = 0; i < t->c->changes; i++) {
		if (change[i].word == word)
			return change[i].data;
	}
	return t->native->shared->data[word];
}

static void compare_registers(struct trial *t)
{
	for (int i = 0; i < 16; i++) {
		u64 known = (t->m.unknown >> i & 1 ? 0 : ~0xffull) |
			    (t->m.unknown_low >> i & 1 ? 0 : 0xff);
		if ((t->m.r[i] ^ t->c->after.r[i]) & known)
			return complain(t, "register %d is wrong", i);
	}
	u64 flags = ALL_FLAGS & ~t->m.unknown_flags;
	if ((interp_flags(&t->m) ^ t->c->after.flags) & flags)
		return complain(t, "flags %03lx are wrong",
			(interp_flags(&t->m) ^ t->c->after.flags) & flags);
	for (int i = 0; i < 16; i++) {
		if (t->m.known_xmm >> i & 1 && memcmp(t->m.xmm[i], t->c->after.xmm[i], 16))
			return complain(t, "xmm%d is wrong: %016lx%016lx, interpreted %016lx%016lx",
				i, t->c->after.xmm[i][1], t->c->after.xmm[i][0], t->m.xmm[i][1],
				t->m.xmm[i][0]);
	}
}

/* Each byte that changed was stored to, and each that was stored has what the interpreter says. */
static void compare_memory(struct trial *t)
{
	const struct native_change *change = t->native->changes + t->c->change;
	for (u32 i = 0; i < t->c->changes; i++) {
		const struct interp_word *w = find_word(&t->m, NATIVE_DATA + 8ull * change[i].word);
		u64 changed = change[i].data ^ t->native->shared->data[change[i].word];
		for (int b = 0; b < 8; b++) {
			if (changed >> 8 * b & 0xff && (!w || !(w->stored >> b & 1)))
				return complain(
					t, "missed a store to word %x byte %d", change[i].word, b);
		}
	}
	for (const struct interp_word *w = t->m.word; w < t->m.word + INTERP_WORDS; w++) {
		if (w->epoch != t->m.epoch)
			continue;
		if (!is_data(w->address) && w->stored == w->unknown)
			continue; /* fewer bytes than it believes are lost */
		if (!is_data(w->address))
			return complain(t, "stores at %lx, and the processor does not", w->address);
		u64 differs = w->data ^ native_word(t, (u32)((w->address - NATIVE_DATA) / 8));
		for (int b = 0; b < 8; b++) {
			if ((w->stored & ~w->unknown) >> b & 1 && differs >> 8 * b & 0xff)
				return complain(t, "stores %016lx at %lx (bytes %02x)", w->data,
					w->address, w->stored);
		}
	}
}

static void note_unknown(struct trial *t, struct tally *tally)
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
		complain(t, "a result is unknown");
	else if (flags && !manual_is_undefined(&t->form, &t->c->before))
		complain(t, "flags %03x are unknown", flags);
	else if (m->known_xmm != 0xffff)
		complain(t, "vectors %04x are unknown", m->known_xmm ^ 0xffff);
}

static void compare_effect(struct trial *t)
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
		complain(t, "the effect has ip %lx next %lx length %u", e->ip, e->next, e->length);
	else if ((e->has & all) != kinds[insn.kind])
		complain(t, "the effect's kind is %x", e->has);
	else if (t->c->changes && !(e->has & INTERP_STORES))
		complain(t, "the effect does not store");
	else if (memory && e->has & INTERP_HAS_ADDRESS && e->has & (INTERP_LOADS | INTERP_STORES) &&
		 manual_is_integer(&t->form) &&
		 t->form.in.meta.category != ZYDIS_CATEGORY_BITBYTE &&
		 t->form.in.meta.category != ZYDIS_CATEGORY_POP &&
		 t->form.in.meta.category != ZYDIS_CATEGORY_PUSH &&
		 t->form.in.meta.category != ZYDIS_CATEGORY_CALL &&
		 t->form.in.meta.category != ZYDIS_CATEGORY_STRINGOP &&
		 e->address != form_address(&t->form, memory, &t->c->before, t->c->before.ip))
		complain(t, "the effect's address is %lx", e->address);
}

/* What an address in NATIVE_DATA holds after the case. */
static u64 native_bytes(const struct trial *t, u64 address, u64 mask)
{
	u64 offset = address - NATIVE_DATA, shift = offset % 8 * 8;
	u32 word = (u32)(offset / 8);
	u64 low = native_word(t, word),
	    high = word + 1 < NATIVE_WORDS ? native_word(t, word + 1) : 0;
	return (shift ? low >> shift | high << (64 - shift) : low) & mask;
}

/* The value is that of the destination: a register, or the first operand in memory. */
static void compare_value(struct trial *t)
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
			complain(t, "the effect's value is %lx (size %u, register %u)", e->value,
				e->size, e->destination);
	} else if (e->has & INTERP_HAS_ADDRESS && t->form.in.meta.category != ZYDIS_CATEGORY_POP &&
		   t->form.in.meta.category != ZYDIS_CATEGORY_STRINGOP &&
		   t->form.ops[0].type == ZYDIS_OPERAND_TYPE_MEMORY &&
		   t->form.ops[0].actions & ZYDIS_OPERAND_ACTION_WRITE &&
		   t->form.ops[0].size == e->size * 8 && is_data(e->address) &&
		   value != native_bytes(t, e->address, mask)) {
		complain(t, "the effect's value is %lx (size %u, at %lx)", e->value, e->size,
			e->address);
	}
}

/* ---- runs ---- */

static int read_word(void *arg, u64 address, u64 *word)
{
	const struct trial *t = arg;
	struct dice d = {address ^ t->taint.words};
	if (is_data(address)) {
		if (t->taint.words && dice_chance(&d, 15))
			return -EFAULT;
		*word = t->native->shared->data[(address - NATIVE_DATA) / 8];
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

static struct taint roll_taint(struct dice *d)
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
static void begin(struct trial *t, struct dice *d)
{
	struct interp *m = &t->m;
	interp_begin(m, read_word, t);
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
static enum interp_stop run_one(struct interp *m, bool repeats)
{
	enum { MOST = 200 };
	u64 ip = m->ip;
	enum interp_stop stop = interp_step(m);
	for (int i = 0; repeats && stop == INTERP_GOES_ON && m->ip == ip && i < MOST; i++)
		stop = interp_step(m);
	return stop;
}

/* The processor trapped, and the interpreter did not see why. */
static void judge_missed_fault(struct trial *t)
{
	const ZydisDecodedOperand *operand = form_memory(&t->form);
	bool outside = t->m.failed, memory = t->c->signal == SIGSEGV || t->c->signal == SIGBUS;
	if (operand) /* a store that does not happen may fault all the same */
		outside |=
			!is_data(form_address(&t->form, operand, &t->c->before, t->c->before.ip));
	for (int i = 0; i < INTERP_WORDS; i++)
		outside |= t->m.word[i].epoch == t->m.epoch && !is_data(t->m.word[i].address);
	if (t->taint.any)
		return;
	if (t->c->signal == SIGILL && t->form.in.meta.isa_ext != ZYDIS_ISA_EXT_BASE &&
		t->form.in.meta.isa_ext != ZYDIS_ISA_EXT_LONGMODE)
		tallies[t->form.in.mnemonic].lacking++;
	else if (memory && (outside || !manual_is_integer(&t->form)))
		unmapped++; /* what it would have loaded is unknown */
	else if (memory && !is_canonical(t->m.ip))
		unmapped++; /* on a machine with longer addresses it would go there */
	else if (memory && t->form.in.mnemonic == ZYDIS_MNEMONIC_ENTER)
		unmapped++; /* the end of the new frame, which is not written */
	else
		complain(t, "goes on where the processor traps");
}

/* What nobody writes may be unknown as an instruction. */
static bool is_odd(const struct form *f)
{
	bool short_address = f->in.attributes & ZYDIS_ATTRIB_HAS_ADDRESSSIZE;
	bool strings = f->in.meta.category == ZYDIS_CATEGORY_STRINGOP ||
		       f->in.meta.category == ZYDIS_CATEGORY_BITBYTE;
	return form_has_lost_rex(f) || f->in.meta.isa_ext == ZYDIS_ISA_EXT_MPX ||
	       (short_address && strings) ||
	       (f->in.mnemonic == ZYDIS_MNEMONIC_ENTER && f->ops[1].imm.value.u & 31);
}

/* The interpreter stopped where the processor went on. */
static void judge_stop(struct trial *t, enum interp_stop stop)
{
	bool integer = manual_is_integer(&t->form) && !manual_reads_segment(&t->form);
	if (t->taint.any || is_odd(&t->form))
		return;
	if ((stop == INTERP_LENGTH || stop == INTERP_ROOM) && (form_repeats(&t->form) || !integer))
		return;
	/* A masked vector that is not there does not fault. */
	bool masked = t->form.in.encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY;
	if (integer || (stop == INTERP_FAULT && !masked) || stop == INTERP_FETCH)
		complain(t, "stops: %s", interp_stop_name(stop));
}

static void judge_single(struct trial *t)
{
	struct tally *tally = &tallies[t->form.in.mnemonic];
	enum interp_stop stop = run_one(&t->m, form_repeats(&t->form));
	bool done = t->c->signal == SIGTRAP;
	unsigned wrong_before = wrong;

	tally->cases++;
	tally->faults += !done;
	tally->done += done && stop == INTERP_GOES_ON;
	if (stop != INTERP_GOES_ON) {
		tally->stops[stop] += done && !t->taint.any;
		if (t->m.ip != t->c->before.ip && !form_repeats(&t->form))
			complain(t, "stops (%s) elsewhere", interp_stop_name(stop));
		if (done)
			judge_stop(t, stop);
		return;
	}
	if (form_repeats(&t->form) && t->m.ip == t->c->before.ip)
		return; /* not through yet */
	if (!done)
		return judge_missed_fault(t);
	if (t->m.ip != t->c->after.ip)
		return complain(t, "goes elsewhere");
	compare_registers(t);
	if (wrong == wrong_before && !t->c->overflow)
		compare_memory(t);
	if (wrong == wrong_before && !t->taint.any)
		note_unknown(t, tally);
	if (wrong == wrong_before)
		compare_effect(t);
	if (wrong == wrong_before)
		compare_value(t);
}

/* Vectors, x87 and system instructions may have done a part of their work when they fault. */
static bool is_half_done(const struct trial *t)
{
	struct form last;
	u64 at = t->c->after.ip - t->c->before.ip;
	return at < t->c->size && form_decode(&last, t->c->code + at, t->c->size - at) &&
	       !manual_is_integer(&last);
}

/* Up to where the processor came, by its end or by a fault. */
static void judge_row(struct trial *t)
{
	enum { MOST = 8 };
	for (int i = 0; i < MOST && t->m.ip != t->c->after.ip; i++) {
		enum interp_stop stop = run_one(&t->m, false);
		if (stop != INTERP_GOES_ON) {
			sum.stops[stop]++;
			return;
		}
	}
	if (t->m.ip != t->c->after.ip)
		return complain(t, "goes elsewhere");
	if (is_half_done(t))
		return;
	sum.done++;
	unsigned wrong_before = wrong;
	compare_registers(t);
	if (wrong == wrong_before && !t->c->overflow)
		compare_memory(t);
}

static void judge(const struct native *n, const struct native_case *c, bool single, struct dice *d)
{
	struct trial t = {.native = n, .c = c, .single = single};
	if (!c->signal) {
		died++;
		return show_code(c);
	}
	overflown += c->overflow;
	if (dice_chance(d, single ? 30 : 15))
		t.taint = roll_taint(d);
	if (!form_decode(&t.form, c->code, c->size))
		abort();
	begin(&t, d);
	if (single)
		judge_single(&t);
	else
		judge_row(&t);
}

/* ---- statistics ---- */

static void print_tally(const char *name, const struct tally *t)
{
	printf("%-14s %7u cases %7u done %6u faults %5u lacking | unknown: %6u registers %6u flags "
	       "%6u memory %6u xmm |",
		name, t->cases, t->done, t->faults, t->lacking, t->registers, t->flags, t->memory,
		t->xmm);
	for (int i = 0; i < INTERP_STOPS; i++) {
		if (t->stops[i])
			printf(" %s %u", interp_stop_name((enum interp_stop)i), t->stops[i]);
	}
	printf("\n");
}

static void print_statistics(void)
{
	printf("died %u, overflown %u, past a page that is not there %u\n", died, overflown,
		unmapped);
	print_tally("rows", &sum);
	for (int i = 0; i <= ZYDIS_MNEMONIC_MAX_VALUE; i++) {
		if (tallies[i].cases)
			print_tally(ZydisMnemonicGetString((ZydisMnemonic)i), &tallies[i]);
	}
}

static void test_native(void **state)
{
	(void)state;
	struct native n;
	u64 total = dice_option("CULPRIT_INTERP_CASES", CASES), done = 0;
	struct dice d = {dice_option("CULPRIT_INTERP_SEED", 2000)};

	if (!native_open(&n, BATCH))
		fail_msg("the addresses of the test are taken");
	while (done < total) {
		bool single = done / BATCH % 4 != 3;
		size_t count = total - done < BATCH ? (size_t)(total - done) : BATCH;
		data_roll(&d, n.shared->data);
		for (size_t i = 0; i < count; i++)
			(single ? case_roll_single : case_roll_row)(
				&d, &n.cases[i], n.shared->data);
		native_run(&n, count);
		for (size_t i = 0; i < count; i++)
			judge(&n, &n.cases[i], single, &d);
		sum.cases += single ? 0 : (unsigned)count;
		done += count;
	}
	native_close(&n);
	if (getenv("CULPRIT_INTERP_STATISTICS"))
		print_statistics();
	assert_int_equal(wrong, 0);
	assert_int_equal(died, 0);
}

/* ---- what never goes on ---- */

enum { STOP_CODE = 64 };

static int read_code(void *arg, u64 address, u64 *word)
{
	if (address < NATIVE_CODE || address >= NATIVE_CODE + STOP_CODE)
		return -EFAULT;
	memcpy(word, (u8 *)arg + (address - NATIVE_CODE), 8);
	return 0;
}

static void test_stops(void **state)
{
	(void)state;
	static const char *const stops[] = {"\x0f\x05" /* syscall */, "\x0f\x34" /* sysenter */,
		"\xcd\x80", "\xcc", "\xf1", "\x0f\x0b" /* ud2 */, "\xf4" /* hlt */,
		"\x48\xcf" /* iretq */, "\xcb" /* lret */, "\xff\x28" /* ljmp */,
		"\xff\x18" /* lcall */, "\x8e\xe0" /* mov fs, eax */, "\x0f\xa1" /* pop fs */,
		"\x0f\xb4\x00" /* lfs */, "\xc7\xf8\x10\x10\x10\x10" /* xbegin */,
		"\x0f\x01\xc1" /* vmcall */, "\xfa" /* cli */, "\xec" /* in */,
		"\x0f\x30" /* wrmsr */, "\x0f\x22\xd8" /* mov cr3 */};
	for (size_t i = 0; i < sizeof stops / sizeof *stops; i++) {
		struct interp m = {0};
		u8 code[STOP_CODE] = {0};
		memcpy(code, stops[i], strlen(stops[i]));
		interp_begin(&m, read_code, code);
		memset(m.r, 0, sizeof m.r);
		m.ip = NATIVE_CODE;
		m.base[0] = m.base[1] = 0;
		interp_set_flags(&m, 0x202);
		enum interp_stop stop = interp_step(&m);
		if (stop == INTERP_GOES_ON || stop == INTERP_FETCH)
			fail_msg("%02x %02x: %s", code[0], code[1], interp_stop_name(stop));
		assert_int_equal(m.ip, NATIVE_CODE);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stops),
		cmocka_unit_test(test_native),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
