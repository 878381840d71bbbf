/*
 * Every rule that acquits: a small loop in which the culprit is guilty, and one in which it is not.
 */
#include "analyze/residence.h"
#include "analyze/stays.h"
#include "analyze/walk_scene.h"
#include "analyze/why_rig.h"
#include "store/stays.h"

#define ROUNDS  1e6
#define ENTRIES 1e3

/* A loop of one block: rax counts up to rsi. The first instruction of the body is number 1. */
#define LOOP(body)                                                                      \
	FUNCTION("f", "xor %eax, %eax\n1: " body "inc %rax\n cmp %rsi, %rax\n jne 1b\n" \
		      "ret\n")

static void open_loop(struct rig *r, const char *text)
{
	rig_open(r, text);
	assert_int_equal(r->evidence.flow->nblocks, 3);
	entered(r, ENTRIES);
	went(r, 0, 1, ENTRIES);
	went(r, 1, 1, ROUNDS - ENTRIES);
	went(r, 1, 2, ENTRIES);
	left(r, 2, ENTRIES);
}

/* A procedure of one block. */
static void open_line(struct rig *r, const char *text)
{
	rig_open(r, text);
	assert_int_equal(r->evidence.flow->nblocks, 1);
	entered(r, ROUNDS);
	left(r, 0, ROUNDS);
}

struct expected {
	const char *text;
	uint32_t insn;
	double cycles;
	enum culprit culprit;
	bool guilty;
};

static void check(struct rig *r, const struct expected *x)
{
	took(r, x->insn, x->cycles, ROUNDS);
	explain(r);
	if (x->guilty)
		assert_guilty(r, x->insn, x->culprit);
	else
		assert_acquitted(r, x->insn, x->culprit);
}

static void check_loops(const struct expected *x, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct rig r;

		open_loop(&r, x[i].text);
		check(&r, &x[i]);
		rig_close(&r);
	}
}
#define CHECK_LOOPS(...)                                              \
	do {                                                          \
		static const struct expected cases[] = {__VA_ARGS__}; \
		check_loops(cases, sizeof cases / sizeof *cases);     \
	} while (0)

/* ---- data ---- */

static void test_dcache(void **state)
{
	(void)state;
	CHECK_LOOPS({LOOP("mov (%rdi,%rax,8), %rcx\n"), 1, 30, CULPRIT_DCACHE, true},
		{LOOP("mov (%rdx), %rdx\n"), 1, 300, CULPRIT_DCACHE, true},
		/* no load */
		{LOOP("lea (%rdi,%rax,8), %rcx\n"), 1, 30, CULPRIT_DCACHE, false},
		{LOOP("mov %rcx, (%rdi,%rax,8)\n nop\n"), 1, 30, CULPRIT_DCACHE, false},
		/* just stored */
		{LOOP("mov %rcx, (%rdx)\n mov (%rdx), %rdx\n"), 2, 30, CULPRIT_DCACHE, false},
		/* same line: the older load brought it */
		{LOOP("mov (%rdx), %rcx\n mov (%rdx), %rdx\n"), 2, 30, CULPRIT_DCACHE, false},
		{LOOP("mov (%rdx), %rcx\n mov 64(%rdx), %rdx\n"), 2, 30, CULPRIT_DCACHE, true},
		/* a store brings nothing yet */
		{LOOP("mov %rcx, 8(%rdx)\n mov (%rdx), %rdx\n"), 2, 30, CULPRIT_DCACHE, true},
		/* same place */
		{LOOP("mov (%rdi), %rcx\n"), 1, 30, CULPRIT_DCACHE, false},
		/* near place */
		{LOOP("mov 8(%rsp), %rcx\n"), 1, 30, CULPRIT_DCACHE, false});
}

static void test_dtlb(void **state)
{
	(void)state;
	CHECK_LOOPS({LOOP("mov (%rdx), %rdx\n"), 1, 100, CULPRIT_DTLB, true},
		{LOOP("mov %rcx, (%rdx)\n mov (%rdx), %rdx\n"), 1, 100, CULPRIT_DTLB, true},
		/* no access */
		{LOOP("imul %rcx, %rdx\n"), 1, 100, CULPRIT_DTLB, false},
		/* known page: a stride of eight bytes */
		{LOOP("mov (%rdi,%rax,8), %rcx\n"), 1, 100, CULPRIT_DTLB, false},
		/* with a miss: what takes so little time needs no page that is not at hand */
		{LOOP("mov (%rdx), %rdx\n"), 1, 15, CULPRIT_DTLB, false});
}

/* ---- stores ---- */

static void test_store_buffer(void **state)
{
	(void)state;
	CHECK_LOOPS(
		{LOOP("mov %rcx, (%rdx)\n add %rcx, %rdx\n"), 1, 30, CULPRIT_STORE_BUFFER, true},
		/* what enters the window with it */
		{LOOP("add %rcx, %rdx\n mov %rcx, (%rdx)\n"), 1, 30, CULPRIT_STORE_BUFFER, true},
		/* no store */
		{LOOP("add %rcx, %rdx\n nop\n"), 1, 30, CULPRIT_STORE_BUFFER, false},
		/* loads first */
		{LOOP("add %rcx, (%rdx)\n add %rcx, %rdx\n"), 1, 30, CULPRIT_STORE_BUFFER, false},
		/* stores hit */
		{LOOP("mov %rcx, 8(%rsp)\n nop\n"), 1, 30, CULPRIT_STORE_BUFFER, false},
		{LOOP("mov %rcx, (%rdi)\n nop\n"), 1, 30, CULPRIT_STORE_BUFFER, false});
}

static void test_forwarding(void **state)
{
	(void)state;
	CHECK_LOOPS(
		{LOOP("mov %ecx, (%rdi)\n mov (%rdi), %rcx\n"), 2, 15, CULPRIT_FORWARDING, true},
		/* an element of what is loaded whole */
		{LOOP("movss %xmm0, (%rdi,%rcx,4)\n movups (%rdi), %xmm1\n"), 2, 15,
			CULPRIT_FORWARDING, true},
		/* no partial store */
		{LOOP("mov %rcx, (%rdi)\n mov (%rdi), %rcx\n"), 2, 15, CULPRIT_FORWARDING, false},
		{LOOP("mov %rcx, (%rdi)\n mov (%rdi), %ecx\n"), 2, 15, CULPRIT_FORWARDING, false},
		{LOOP("mov %ecx, (%rdi)\n mov 8(%rdi), %rcx\n"), 2, 15, CULPRIT_FORWARDING, false},
		{LOOP("mov %ecx, (%rdi)\n add %rcx, %rdi\n mov (%rdi), %rcx\n"), 3, 15,
			CULPRIT_FORWARDING, false});
}

static void test_alias(void **state)
{
	(void)state;
	CHECK_LOOPS({LOOP("mov %rcx, (%rdi)\n mov 8192(%rdi), %rcx\n"), 2, 5, CULPRIT_ALIAS, true},
		/* no alias */
		{LOOP("mov %rcx, (%rdi)\n mov 8256(%rdi), %rcx\n"), 2, 5, CULPRIT_ALIAS, false},
		{LOOP("mov %rcx, (%rdi)\n mov (%rdi), %rcx\n"), 2, 15, CULPRIT_ALIAS, false});
}

static void test_clear(void **state)
{
	(void)state;
	CHECK_LOOPS({LOOP("mov %rcx, (%rdx)\n mov (%r8), %rdx\n"), 2, 1.3, CULPRIT_CLEAR, true},
		/* seldom */
		{LOOP("mov %rcx, (%rdx)\n mov (%r8), %rdx\n"), 2, 30, CULPRIT_CLEAR, false},
		/* no conflict */
		{LOOP("mov (%r8), %rdx\n nop\n"), 1, 1.3, CULPRIT_CLEAR, false});
}

/* ---- operations ---- */

static void test_divider(void **state)
{
	(void)state;
	CHECK_LOOPS({LOOP("div %rcx\n"), 1, 30, CULPRIT_DIVIDER, true},
		{LOOP("sqrtsd %xmm1, %xmm0\n"), 1, 30, CULPRIT_DIVIDER, true},
		{LOOP("imul %rcx, %rdx\n"), 1, 30, CULPRIT_DIVIDER, false});
}

static void test_locked(void **state)
{
	(void)state;
	CHECK_LOOPS({LOOP("lock addq $1, (%rdi)\n"), 1, 30, CULPRIT_LOCKED, true},
		{LOOP("xchg %rcx, (%rdi)\n"), 1, 30, CULPRIT_LOCKED, true},
		{LOOP("xchg %rcx, %rdx\n"), 1, 30, CULPRIT_LOCKED, false},
		{LOOP("addq $1, (%rdi)\n"), 1, 30, CULPRIT_LOCKED, false});
}

static void test_serialising(void **state)
{
	(void)state;
	CHECK_LOOPS({LOOP("mfence\n"), 1, 30, CULPRIT_SERIALISING, true},
		{LOOP("add %rcx, %rdx\n mfence\n"), 1, 30, CULPRIT_SERIALISING, true},
		{LOOP("add %rcx, %rdx\n nop\n nop\n nop\n mfence\n nop\n nop\n"), 1, 30,
			CULPRIT_SERIALISING, false});
}

static void test_assist(void **state)
{
	(void)state;
	CHECK_LOOPS({LOOP("mulsd %xmm1, %xmm0\n"), 1, 100, CULPRIT_ASSIST, true},
		{LOOP("fmul %st(1), %st\n"), 1, 100, CULPRIT_ASSIST, true},
		/* no arithmetic */
		{LOOP("movapd %xmm1, %xmm0\n"), 1, 100, CULPRIT_ASSIST, false},
		{LOOP("imul %rcx, %rdx\n"), 1, 100, CULPRIT_ASSIST, false},
		/* too short */
		{LOOP("mulsd %xmm1, %xmm0\n"), 1, 9, CULPRIT_ASSIST, false});
}

/* What a slow operation takes in any case is nobody else's. */
static void test_known(void **state)
{
	struct rig r;

	(void)state;
	open_loop(&r, LOOP("divq (%rcx)\n mov (%rcx), %rcx\n"));
	took(&r, 1, 60, ROUNDS);
	explain(&r);
	assert_true(stall_by(&r, 1, CULPRIT_DIVIDER)->min > 10);
	assert_true(stall_by(&r, 1, CULPRIT_DCACHE)->max < 50);
	rig_close(&r);
}

/* ---- branches ---- */

/* The branch at the end of block 1 skips block 2 in a share of the rounds. */
static void open_branch(struct rig *r, double skipped)
{
	rig_open(r, FUNCTION("f", "xor %eax, %eax\n"
				  "1: test %ecx, %ecx\n je 2f\n add $3, %r8\n add $5, %r9\n"
				  "2: add $7, %r10\n inc %rax\n cmp %rsi, %rax\n jne 1b\n ret\n"));
	entered(r, ENTRIES);
	went(r, 0, 1, ENTRIES);
	went(r, 3, 1, ROUNDS - ENTRIES);
	went(r, 1, 3, ROUNDS * skipped);
	went(r, 1, 2, ROUNDS * (1 - skipped));
	went(r, 2, 3, ROUNDS * (1 - skipped));
	went(r, 3, 4, ENTRIES);
	left(r, 4, ENTRIES);
}

/* The same, with a load of a load that nothing of an older round waits for. */
static void open_shadow(struct rig *r, double skipped)
{
	rig_open(r, FUNCTION("f", "xor %eax, %eax\n"
				  "1: test %ecx, %ecx\n je 2f\n add $3, %r8\n add $5, %r9\n"
				  "2: add $7, %r10\n mov (%rdi,%rax,8), %rdx\n mov (%rdx), %rdx\n"
				  "inc %rax\n cmp %rsi, %rax\n jne 1b\n ret\n"));
	entered(r, ENTRIES);
	went(r, 0, 1, ENTRIES);
	went(r, 3, 1, ROUNDS - ENTRIES);
	went(r, 1, 3, ROUNDS * skipped);
	went(r, 1, 2, ROUNDS * (1 - skipped));
	went(r, 2, 3, ROUNDS * (1 - skipped));
	went(r, 3, 4, ENTRIES);
	left(r, 4, ENTRIES);
}

static void test_mispredict(void **state)
{
	struct rig r;

	(void)state;
	open_branch(&r, 0.5);
	took(&r, 3, 6, ROUNDS / 2);
	took(&r, 5, 3, ROUNDS);
	explain(&r);
	assert_first(&r, 3, CULPRIT_MISPREDICT);
	assert_first(&r, 5, CULPRIT_MISPREDICT);
	/* The branch is to blame. */
	assert_int_equal(r.why->from[stall_by(&r, 3, CULPRIT_MISPREDICT)->first_from], 2);
	rig_close(&r);

	/* Always the same way: it cannot be that. */
	open_branch(&r, 0.0001);
	took(&r, 3, 6, ROUNDS);
	explain(&r);
	assert_acquitted(&r, 3, CULPRIT_MISPREDICT);
	rig_close(&r);

	/* Nothing older is under way behind it: latencies show that the best case hides. */
	open_shadow(&r, 0.5);
	took(&r, 3, 8, ROUNDS / 2);
	took(&r, 7, 2.5, ROUNDS);
	explain(&r);
	assert_guilty(&r, 7, CULPRIT_MISPREDICT);
	assert_int_equal(r.why->from[stall_by(&r, 7, CULPRIT_MISPREDICT)->first_from], 2);
	rig_close(&r);

	open_shadow(&r, 0.0001);
	took(&r, 3, 8, ROUNDS);
	took(&r, 7, 2.5, ROUNDS);
	explain(&r);
	assert_acquitted(&r, 7, CULPRIT_MISPREDICT);
	rig_close(&r);

	/* Not at a branch: only the latency of the addition could show. */
	open_branch(&r, 0.5);
	took(&r, 6, 30, ROUNDS);
	explain(&r);
	assert_acquitted(&r, 6, CULPRIT_MISPREDICT);
	rig_close(&r);
}

/* ---- code ---- */

/* Much code, and long between two executions. */
static void make_large(struct rig *r)
{
	r->machine.hot_lines = 2000;
	r->machine.hot_pages = 500;
	r->machine.cycles = 1e6 * ROUNDS;
}

/* The instruction that begins a unit of code, other than the first. */
static uint32_t first_in(const struct rig *r, uint64_t unit)
{
	const struct flow *f = r->evidence.flow;

	for (uint32_t i = 1; i < f->ninsns; i++)
		if (f->insns[i].address % unit == 0)
			return i;
	fail_msg("no instruction begins %u bytes", (unsigned)unit);
	return 0;
}

static const char lines[] =
	FUNCTION("f", "add %rcx, %rdx\n.p2align 6\n add %rcx, %rdx\n add %rcx, %rdx\n ret\n");

static void test_icache(void **state)
{
	struct rig r;
	uint32_t insn;

	(void)state;
	open_line(&r, lines);
	make_large(&r);
	insn = first_in(&r, 64);
	check(&r, &(struct expected){NULL, insn, 15, CULPRIT_ICACHE, true});
	/* code fits */
	r.machine.hot_lines = 300;
	explain(&r);
	assert_acquitted(&r, insn, CULPRIT_ICACHE);
	/* back soon */
	make_large(&r);
	r.machine.cycles = 100 * ROUNDS;
	explain(&r);
	assert_acquitted(&r, insn, CULPRIT_ICACHE);
	rig_close(&r);

	/* same line */
	open_line(&r, lines);
	make_large(&r);
	check(&r, &(struct expected){NULL, first_in(&r, 64) + 1, 15, CULPRIT_ICACHE, false});
	rig_close(&r);

	/* In a loop, it is there after the first time. */
	open_loop(&r, LOOP("add %rcx, %rdx\n.p2align 6\n add %rcx, %rdx\n"));
	make_large(&r);
	check(&r, &(struct expected){NULL, first_in(&r, 64), 15, CULPRIT_ICACHE, false});
	rig_close(&r);
}

/* Walks that all come by these lines, and by one of many others. */
static void open_walks(struct walk_scene *sc, uint64_t from, uint64_t to)
{
	enum { WALKS = 4000 };
	static struct walk_step steps[WALKS];
	static struct walk list[WALKS];

	for (unsigned i = 0; i < WALKS; i++) {
		steps[i] = (struct walk_step){to, 0, 0x100000 + 64 * i};
		list[i] = (struct walk){from, 1, 20, 1, &steps[i]};
	}
	walk_scene_open(sc, list, WALKS);
}

/* stays: it is in all walks, so never gone; or in none, so it may be. */
static void test_icache_stays(void **state)
{
	static const struct {
		uint64_t from;
		bool guilty;
	} cases[] = {{0, false}, {0x80000, true}};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct walk_scene sc;
		struct rig r;
		uint64_t at;
		uint32_t insn;

		open_line(&r, lines);
		make_large(&r);
		insn = first_in(&r, 64);
		at = r.evidence.flow->insns[insn].address + cases[i].from;
		r.image.kind = IMAGE_ELF;
		r.image.path = WALK_IMAGE;
		open_walks(&sc, at - 64, at);
		assert_int_equal(residence_create(sc.sel, 512, &r.machine.residence, &sc.e), 0);
		check(&r, &(struct expected){NULL, insn, 15, CULPRIT_ICACHE, cases[i].guilty});
		residence_destroy(r.machine.residence);
		rig_close(&r);
		walk_scene_close(&sc);
	}
}

/* An image of which excursions saw one place, so often there and so often gone. */
static void watch(struct rig *r, struct walk_scene *sc, struct stay seen)
{
	struct buf data = {0};

	stays_pack(&seen, 1, &data);
	walk_scene_open_with(sc, &blob_stay, &data);
	buf_deinit(&data);
	r->image.kind = IMAGE_ELF;
	r->image.path = WALK_IMAGE;
	assert_int_equal(stays_create(sc->sel, &r->machine.stays, &sc->e), 0);
}

static void forget_watched(struct rig *r, struct walk_scene *sc)
{
	stays_destroy(r->machine.stays);
	rig_close(r);
	walk_scene_close(sc);
}

static void test_watched(void **state)
{
	struct walk_scene sc;
	struct rig r;

	(void)state;
	for (unsigned gone = 0; gone < 2; gone++) {
		uint64_t missed = gone * 90000, kept = 100000 - missed, at;

		/* stays: data */
		open_loop(&r, LOOP("mov (%rdx), %rdx\n"));
		at = r.evidence.flow->insns[1].address;
		watch(&r, &sc, (struct stay){at, 0, kept, missed});
		check(&r, &(struct expected){NULL, 1, 300, CULPRIT_DCACHE, gone});
		forget_watched(&r, &sc);

		/* stays: code */
		open_line(&r, lines);
		make_large(&r);
		at = r.evidence.flow->insns[first_in(&r, 64)].address;
		watch(&r, &sc, (struct stay){at / 64 * 64, 1, kept, missed});
		check(&r, &(struct expected){NULL, first_in(&r, 64), 15, CULPRIT_ICACHE, gone});
		forget_watched(&r, &sc);
	}
}

static void test_itlb(void **state)
{
	/* The procedure begins a line before the end of a page. */
	static const char pages[] = ".text\n.p2align 12\n.skip 4032, 0x90\n" FUNCTION("f",
		"add %rcx, %rdx\n.p2align 6\n add %rcx, %rdx\n.p2align 6\n"
		"add %rcx, %rdx\n ret\n");
	struct rig r;
	uint32_t insn;

	(void)state;
	open_line(&r, pages);
	make_large(&r);
	r.machine.hot_lines = 300;
	insn = first_in(&r, 4096);
	check(&r, &(struct expected){NULL, insn, 15, CULPRIT_ITLB, true});
	/* with a line: the cache misses too, and takes longer */
	r.machine.hot_lines = 2000;
	explain(&r);
	assert_acquitted(&r, insn, CULPRIT_ITLB);
	assert_guilty(&r, insn, CULPRIT_ICACHE);
	/* pages fit */
	r.machine.hot_lines = 300;
	r.machine.hot_pages = 20;
	explain(&r);
	assert_acquitted(&r, insn, CULPRIT_ITLB);
	rig_close(&r);

	/* same page */
	open_line(&r, pages);
	make_large(&r);
	r.machine.hot_lines = 300;
	for (insn = first_in(&r, 4096) + 1; r.evidence.flow->insns[insn].address % 64; insn++)
		;
	check(&r, &(struct expected){NULL, insn, 15, CULPRIT_ITLB, false});
	rig_close(&r);
}

static void test_frontend(void **state)
{
	(void)state;
	/* A bubble shows where nothing else can be to blame, and explains no more than that. */
	CHECK_LOOPS({LOOP("imul %rcx, %rdx\n nop\n"), 1, 4, CULPRIT_FRONTEND, true},
		{LOOP("imul %rcx, %rdx\n nop\n"), 1, 40, CULPRIT_FRONTEND, false},
		{LOOP("mov (%rdx), %rdx\n"), 1, 30, CULPRIT_FRONTEND, false});
}

/* ---- calls and the machine ---- */

static void test_callee(void **state)
{
	struct rig r;

	(void)state;
	rig_open(&r, FUNCTION("f", "push %rbx\n call *%rdi\n add %rax, %rbx\n add %rax, %rbx\n"
				   "pop %rbx\n ret\n"));
	entered(&r, ROUNDS);
	went(&r, 0, 1, ROUNDS);
	left(&r, 1, ROUNDS);
	took(&r, 1, 5, ROUNDS);
	explain(&r);
	assert_near(r.why->insns[1].cpi, 5, 0.01);
	assert_first(&r, 1, CULPRIT_CALLEE);
	rig_close(&r);

	rig_open(&r, FUNCTION("f", "push %rbx\n call *%rdi\n add %rax, %rbx\n add %rax, %rbx\n"
				   "pop %rbx\n ret\n"));
	entered(&r, ROUNDS);
	went(&r, 0, 1, ROUNDS);
	left(&r, 1, ROUNDS);
	took(&r, 2, 5, ROUNDS);
	explain(&r);
	assert_acquitted(&r, 2, CULPRIT_CALLEE);
	rig_close(&r);
}

/* A load stalls for 30 cycles; misses were sampled, too. */
static void test_events(void **state)
{
	struct rig r;
	uint64_t *misses[1];

	(void)state;
	open_loop(&r, LOOP("mov (%rdx), %rdx\n"));
	misses[0] = xcalloc(r.evidence.flow->ninsns, sizeof *misses[0]);
	misses[0][2] = 1000;
	r.evidence.events = misses;
	r.evidence.nevents = 1;
	r.machine.event[CULPRIT_DCACHE].number = 0;
	r.machine.event[CULPRIT_DCACHE].period = 1000;
	check(&r, &(struct expected){NULL, 1, 30, CULPRIT_DCACHE, true});
	/* One miss in ten thousand executions costs next to nothing. */
	misses[0][2] = 0;
	r.machine.event[CULPRIT_DCACHE].period = 10;
	explain(&r);
	assert_acquitted(&r, 1, CULPRIT_DCACHE);
	free(misses[0]);
	rig_close(&r);
}

static void test_steal(void **state)
{
	struct rig r;

	(void)state;
	open_loop(&r, LOOP("imul %rcx, %rdx\n nop\n"));
	r.machine.steal = 0.5;
	check(&r, &(struct expected){NULL, 1, 30, CULPRIT_STEAL, true});
	r.machine.steal = 0;
	explain(&r);
	assert_acquitted(&r, 1, CULPRIT_STEAL);
	rig_close(&r);
}

/* Every culprit can be acquitted by some rule, and every rule says why. */
static void test_words(void **state)
{
	bool judged[CULPRITS] = {false};
	char seen[256] = {0};

	(void)state;
	for (size_t i = 0; why_rule(i); i++) {
		assert_true(why_rule(i)->name[0] && why_rule(i)->why[0]);
		judged[why_rule(i)->culprit] = true;
	}
	for (unsigned c = 0; c < CULPRITS; c++) {
		assert_true(judged[c]);
		assert_false(seen[(unsigned char)culprit_letter(c)]++);
	}
	for (unsigned c = 0; c < WHY_CAUSES; c++)
		assert_false(seen[(unsigned char)why_cause_letter(c)]++);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_dcache),
		cmocka_unit_test(test_dtlb),
		cmocka_unit_test(test_store_buffer),
		cmocka_unit_test(test_forwarding),
		cmocka_unit_test(test_alias),
		cmocka_unit_test(test_clear),
		cmocka_unit_test(test_divider),
		cmocka_unit_test(test_locked),
		cmocka_unit_test(test_serialising),
		cmocka_unit_test(test_assist),
		cmocka_unit_test(test_known),
		cmocka_unit_test(test_mispredict),
		cmocka_unit_test(test_icache),
		cmocka_unit_test(test_icache_stays),
		cmocka_unit_test(test_watched),
		cmocka_unit_test(test_itlb),
		cmocka_unit_test(test_frontend),
		cmocka_unit_test(test_callee),
		cmocka_unit_test(test_events),
		cmocka_unit_test(test_steal),
		cmocka_unit_test(test_words),
	};
	int r = cmocka_run_group_tests(tests, open_workshop, close_workshop);

	forget_built();
	return r;
}
