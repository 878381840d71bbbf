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

#include "isa/dice.h"
#include "isa/forms.h"
#include "isa/interp.h"
#include "isa/manual.h"
#include "isa/native.h"
#include "isa/trial.h"

enum { CASES = 200000, BATCH = 4096 };

static struct tally tallies[ZYDIS_MNEMONIC_MAX_VALUE + 1], sum;
static unsigned wrong, died, overflown;

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
		enum interp_stop stop = trial_step(&t->m, false);
		if (stop != INTERP_GOES_ON) {
			sum.stops[stop]++;
			return;
		}
	}
	if (t->m.ip != t->c->after.ip)
		return trial_complain(t, "goes elsewhere");
	if (is_half_done(t))
		return;
	sum.done++;
	trial_compare_registers(t);
	if (!t->c->overflow)
		trial_compare_memory(t);
}

static void judge(const struct native *n, const struct native_case *c, bool single, struct dice *d)
{
	struct trial t = {.c = c,
		.change = n->changes + c->change,
		.data = n->shared->data,
		.rights = n->shared->rights};
	if (!c->signal) {
		died++;
		return trial_show_code(c);
	}
	overflown += c->overflow;
	if (dice_chance(d, single ? 30 : 15))
		t.taint = taint_roll(d);
	if (!form_decode(&t.form, c->code, c->size))
		abort();
	t.tally = &tallies[t.form.in.mnemonic];
	trial_begin(&t, d);
	if (single) {
		trial_run(&t);
		trial_judge(&t);
	} else {
		judge_row(&t);
	}
	if (!t.complaint[0])
		return;
	wrong++;
	trial_show(&t);
}

/* ---- statistics ---- */

static void print_tally(const char *name, const struct tally *t)
{
	printf("%-14s %7u cases %7u done %6u faults %5u lacking %5u past a page | unknown: %6u "
	       "registers %6u flags "
	       "%6u memory %6u xmm |",
		name, t->cases, t->done, t->faults, t->lacking, t->unmapped, t->registers, t->flags,
		t->memory, t->xmm);
	for (int i = 0; i < INTERP_STOPS; i++) {
		if (t->stops[i])
			printf(" %s %u", interp_stop_name((enum interp_stop)i), t->stops[i]);
	}
	printf("\n");
}

static void print_statistics(void)
{
	printf("died %u, overflown %u\n", died, overflown);
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
	struct dice d = {.state = dice_option("CULPRIT_INTERP_SEED", 2000)};

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
