/*
 * The interpreter against a second oracle, where memory is missing or read-only: random
 * instructions whose operands lie at and across the edges of pages, in Unicorn. Where the two
 * differ the processor decides (native.h); what Unicorn has wrong is listed by name
 * (unicorn_flaws.h), and anything else that it has wrong fails the test too.
 *
 * A page that is not there is two questions. As it is, the instruction faults, and the interpreter
 * has to see it or not to know the result. And the system may bring the page in, with contents that
 * the interpreter did not see: what it says it knows must be right whatever they are.
 *
 * CULPRIT_INTERP_CASES sets the number of cases, CULPRIT_INTERP_SEED the seed;
 * CULPRIT_INTERP_STATISTICS prints what happened.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "isa/dice.h"
#include "isa/emulated.h"
#include "isa/forms.h"
#include "isa/interp.h"
#include "isa/native.h"
#include "isa/trial.h"
#include "isa/unicorn_flaws.h"

enum { CASES = 30000, BATCH = 512, BATCHES = 100 };

/* The pages as they are, and all of them there, those that were missing with other contents. */
enum { AS_IS, MENDED, WORLDS };

struct world {
	u64 data[NATIVE_WORDS];
	u8 rights[NATIVE_PAGES];
	struct emulated emulated;
};

static struct world worlds[WORLDS];
static struct tally tallies[ZYDIS_MNEMONIC_MAX_VALUE + 1];
static unsigned wrong, unlisted, endless, faulted, mended;

/* ---- cases ---- */

/* Instructions that are for the system alone run in Unicorn, which is never in user mode. */
static void roll_case(struct dice *d, struct native_case *c, struct form *f)
{
	do {
		case_roll_single(d, c, worlds[AS_IS].data);
		if (!form_decode(f, c->code, c->size))
			abort();
	} while (f->in.attributes & ZYDIS_ATTRIB_IS_PRIVILEGED);
	if (f->in.length > 1 && dice_chance(d, 3)) /* the code ends amid the instruction */
		c->before.ip = NATIVE_CODE + NATIVE_CODE_SIZE - 1 - dice_below(d, f->in.length - 1);
}

static void roll_worlds(struct dice *d)
{
	struct world *is = &worlds[AS_IS], *mend = &worlds[MENDED];
	data_roll(d, is->data);
	data_roll(d, mend->data);
	memset(mend->rights, NATIVE_WRITABLE, sizeof mend->rights);
	for (size_t i = 0; i < NATIVE_PAGES; i++) {
		is->rights[i] = dice_chance(d, 50)   ? NATIVE_WRITABLE
				: dice_chance(d, 40) ? NATIVE_READ_ONLY
						     : NATIVE_ABSENT;
		if (is->rights[i] != NATIVE_ABSENT)
			memcpy((u8 *)mend->data + i * NATIVE_PAGE, (u8 *)is->data + i * NATIVE_PAGE,
				NATIVE_PAGE);
	}
	for (int i = 0; i < WORLDS; i++)
		emulated_map(&worlds[i].emulated, worlds[i].data, worlds[i].rights);
}

/* ---- judging ---- */

#define NO_INSTRUCTION "is no instruction"

/* With the page brought in: what the interpreter knows is so, and it did not see another fault. */
static void judge_mended(struct trial *t)
{
	if (t->c->signal != SIGTRAP || trial_is_amid(t))
		return;
	if (t->stop == INTERP_FAULT)
		return trial_complain(t, "faults where a page is missing");
	if (t->stop != INTERP_GOES_ON)
		return;
	if (t->m.ip != t->c->after.ip)
		return trial_complain(t, "goes elsewhere");
	trial_compare_registers(t);
	if (!t->c->overflow)
		trial_compare_memory(t);
}

static bool needs_mending(const struct trial *t)
{
	return t->c->signal == SIGSEGV && (t->stop == INTERP_GOES_ON || t->stop == INTERP_FAULT);
}

static bool is_written(const struct emulated *e, u64 address)
{
	for (size_t i = 0; i < e->writes; i++) {
		if (address - e->write[i].address < e->write[i].size)
			return true;
	}
	return false;
}

/* Not a byte more is stored than the instruction stores. */
static void compare_writes(struct trial *t, const struct emulated *e)
{
	if (t->stop != INTERP_GOES_ON || t->c->signal != SIGTRAP || t->c->overflow)
		return;
	for (const struct interp_word *w = t->m.word; w < t->m.word + INTERP_WORDS; w++) {
		for (unsigned b = 0; w->epoch == t->m.epoch && b < 8; b++) {
			if (w->stored >> b & 1 && !is_written(e, w->address + b))
				trial_complain(t, "stores too much, at %lx", w->address + b);
		}
	}
}

static void ask_world(struct trial *t, struct native_case *c, int which)
{
	struct world *w = &worlds[which];
	t->c = c;
	t->data = w->data;
	t->rights = w->rights;
	t->change = w->emulated.change;
	const struct flaw *flaw = flaw_find(t);
	if (flaw && flaw->unasked)
		return trial_complain(t, "is not asked about");
	if (!emulated_run(&w->emulated, c, &t->form)) {
		endless++;
		return;
	}
	if (which == AS_IS)
		trial_judge(t);
	else
		judge_mended(t);
	if (c->signal == SIGILL && t->stop == INTERP_GOES_ON)
		trial_complain(t, NO_INSTRUCTION);
	compare_writes(t, &w->emulated);
}

/* ---- disputes ---- */

struct dispute {
	struct trial t;
	struct native_case c;
	char said[160];
	bool mends;
};

static struct dispute disputes[BATCH];
static size_t ndisputes;

/* Asks the processor about those that `which` is the question of. */
static void decide(struct native *n, int which)
{
	size_t at[BATCH], count = 0;
	memcpy(n->shared->data, worlds[which].data, sizeof n->shared->data);
	memcpy(n->shared->rights, worlds[which].rights, sizeof n->shared->rights);
	for (size_t i = 0; i < ndisputes; i++) {
		if (which == MENDED && !disputes[i].mends)
			continue;
		n->cases[count] = disputes[i].c;
		at[count++] = i;
	}
	native_run(n, count);
	for (size_t i = 0; i < count; i++) {
		struct dispute *p = &disputes[at[i]];
		struct trial *t = &p->t;
		p->c = n->cases[i];
		t->c = &p->c;
		t->change = n->changes + p->c.change;
		t->data = worlds[which].data;
		t->rights = worlds[which].rights;
		if (which == AS_IS)
			trial_judge(t);
		else
			judge_mended(t);
		p->mends = needs_mending(t);
		if (t->complaint[0]) {
			p->mends = false;
			wrong++;
			trial_show(t);
		}
	}
}

static void settle(struct native *n)
{
	decide(n, AS_IS);
	decide(n, MENDED);
	for (size_t i = 0; i < ndisputes; i++) {
		struct trial *t = &disputes[i].t;
		struct flaw *flaw = flaw_find(t);
		if (t->complaint[0])
			continue;
		if (disputes[i].c.signal == SIGILL && !strcmp(disputes[i].said, NO_INSTRUCTION))
			continue; /* the processor says so too: one of another maker's */
		if (flaw) {
			flaw->times++;
			continue;
		}
		unlisted++;
		snprintf(t->complaint, sizeof t->complaint, "Unicorn alone: %.120s",
			disputes[i].said);
		trial_show(t);
	}
	ndisputes = 0;
}

static void judge(struct dice *d)
{
	struct dispute *p = &disputes[ndisputes];
	struct trial *t = &p->t;
	*p = (struct dispute){0};
	t->data = worlds[AS_IS].data;
	t->rights = worlds[AS_IS].rights;
	t->c = &p->c;
	roll_case(d, &p->c, &t->form);
	t->tally = &tallies[t->form.in.mnemonic];
	if (dice_chance(d, 20))
		t->taint = taint_roll(d);
	trial_begin(t, d);
	trial_run(t);
	ask_world(t, &p->c, AS_IS);
	faulted += p->c.signal != SIGTRAP;
	if (!t->complaint[0] && needs_mending(t)) {
		ask_world(t, &p->c, MENDED);
		mended += p->c.signal == SIGTRAP;
	}
	if (t->complaint[0]) {
		memcpy(p->said, t->complaint, sizeof p->said);
		t->complaint[0] = 0;
		ndisputes++;
	}
}

static void print_statistics(u64 total)
{
	printf("%lu cases, %u faults, %u of them done with the page there, %u without end\n", total,
		faulted, mended, endless);
	for (struct flaw *w = flaws; w < flaws + FLAWS; w++)
		printf("%8u %s\n", w->times, w->why);
}

/* Unicorn never gives back what a mapping took: more than a gigabyte in two million cases. */
static void renew(bool again)
{
	for (int i = 0; i < WORLDS; i++) {
		if (again)
			emulated_close(&worlds[i].emulated);
		emulated_open(&worlds[i].emulated);
	}
}

static void test_unicorn(void **state)
{
	(void)state;
	struct native n;
	u64 total = dice_option("CULPRIT_INTERP_CASES", CASES);
	struct dice d = {.state = dice_option("CULPRIT_INTERP_SEED", 97), .edges = 40};

	if (!native_open(&n, BATCH))
		fail_msg("the addresses of the test are taken");
	for (u64 done = 0; done < total; done += BATCH) {
		if (done / BATCH % BATCHES == 0)
			renew(done > 0);
		roll_worlds(&d);
		for (int i = 0; i < BATCH; i++)
			judge(&d);
		settle(&n);
	}
	for (int i = 0; i < WORLDS; i++)
		emulated_close(&worlds[i].emulated);
	native_close(&n);
	if (getenv("CULPRIT_INTERP_STATISTICS"))
		print_statistics(total);
	assert_int_equal(wrong, 0);
	assert_int_equal(unlisted, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unicorn),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
