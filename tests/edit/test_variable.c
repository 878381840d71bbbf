/*
 * Variables of functions: each activation gets a number that a variable has to keep until the
 * function is left, through calls, exceptions and frames of all shapes; and loops count in them.
 */
#include "edit/edit_rig.h"

#include "base/err.h"
#include "edit/snippet.h"
#include "edit/variable.h"
#include "flow/loops.h"

static const char program[] =
	"#include <alloca.h>\n#include <csetjmp>\n#include <cstdio>\n#include <cstring>\n"
	"extern \"C\" {\n#define FUNCTION __attribute__((noinline, noclone))\n"
	"FUNCTION long leaf(long a, long b) {\n"
	"	long s = 0; for (long i = 0; i < a; i++) s = s * 3 ^ (i + b); return s; }\n"
	"FUNCTION long busy(const long *p, long n) {\n"
	"	long a = 1, b = 2, c = 3, d = 4, e = 5, f = 6, g = 7, h = 8, i = 9, j = 10, k = "
	"11;\n"
	"	for (; n--; p++) { a += *p * b; b ^= c + d; c += d * e; d -= e ^ f; e += f * g;\n"
	"		f ^= g + h; g += h * i; h -= i ^ j; i += j * k; j ^= k + a; k += a * b; }\n"
	"	return a ^ b ^ c ^ d ^ e ^ f ^ g ^ h ^ i ^ j ^ k; }\n"
	"FUNCTION long red(long a) {\n"
	"	volatile long t = a, u = t * 3, v = t - u; return t + u * v; }\n"
	"FUNCTION long calls(long n) { return n < 2 ? n : calls(n - 1) + calls(n - 2) + leaf(n, "
	"1); "
	"}\n"
	"FUNCTION long bare(long a) { return leaf(a, 5) + 1; }\n"
	"FUNCTION long tail(long a) { return a & 1 ? calls(3) * 2 : leaf(a + 1, 2); }\n"
	"FUNCTION long early(long a) {\n"
	"	if (a < 3) return a; long t[4] = {a, red(a), 3, 4}; return t[a & 3] + early(a / "
	"2); }\n"
	"FUNCTION long grows(long n, long x) {\n"
	"	long s = 0; for (long k = 1; k < 4; k++) { char *p = (char *)alloca(n * k);\n"
	"		memset(p, (int)x, n); s += leaf(p[n - 1], k); } return s; }\n"
	"FUNCTION long aligned(long n) {\n"
	"	__attribute__((aligned(64))) long t[8]; for (int i = 0; i < 8; i++) t[i] = red(n * "
	"i);\n"
	"	return t[n & 7] + ((long)t & 63); }\n"
	"FUNCTION void throws(long a) { if (a & 1) throw a * 3; }\n"
	"FUNCTION long catches(long a) {\n"
	"	struct guard { long *p; ~guard() { *p += 100; } }; long t = 0;\n"
	"	for (long i = 0; i < a; i++) { guard g = {&t};\n"
	"		try { throws(i); if (i > 2) catches(i - 2); } catch (long x) { t += x; } "
	"}\n"
	"	return t; }\n"
	"static jmp_buf back;\n"
	"FUNCTION void jumps(long a) { if (a) longjmp(back, (int)a); }\n"
	"FUNCTION long twice(long a) {\n"
	"	volatile long t = a; int r = setjmp(back); if (r < 3) jumps(r + 1); return t * r; "
	"}\n"
	"}\n"
	"int main() {\n"
	"	long t[6] = {1, 7, 3, 9, 4, 4};\n"
	"	printf(\"%ld %ld %ld %ld\\n\", leaf(9, 3), busy(t, 6), red(7), calls(12));\n"
	"	printf(\"%ld %ld %ld %ld\\n\", bare(4), tail(3) + tail(4), early(99), grows(50, "
	"3));\n"
	"	printf(\"%ld %ld %ld\\n\", aligned(13), catches(6), twice(6));\n"
	"	return 0; }\n";

static const char *const asked[] = {"leaf", "busy", "red", "calls", "bare", "tail", "early",
	"grows", "aligned", "catches", "twice", "throws", "jumps", "main"};
enum { ASKED = sizeof asked / sizeof *asked };

enum { ENTER, STEP, WRONG_STEP, LEAVE, SNIPPETS };
#define CRASH "t0 = 0; [t0] = 1"
static const char *const texts[] = {
	"[a0] += 1; t0 = [a0 + 16]; t0 += 1; [a0 + 16] = t0; v0 = t0; v1 = t0; [a0 + 8] += t0",
	"v0 += 7; v1 += 7; [a0 + 8] += 7",
	"v0 += 7; v1 += 7; [a0 + 8] += 6",
	"if v0 != v1 goto bad; [a0 + 8] -= v0; [a0] -= 1; if [a0] != 0 goto fine; "
	"if [a0 + 8] == 0 goto fine; bad: " CRASH "; fine:",
};

static struct edit *open_code(void)
{
	const struct edit_options options = {.strict = true};
	struct err err = {0};
	struct edit *e;

	if (edit_open(in_workshop("code"), &options, &e, &err))
		fail_msg("%s", err.text);
	return e;
}

static void write_edited(struct edit *e)
{
	struct err err = {0};

	if (edit_write(e, in_workshop("edited"), &err))
		fail_msg("%s", err.text);
	edit_destroy(e);
}

static struct snippet *make(const char *text)
{
	struct snippet *s;
	struct err err = {0};

	if (snippet_create(text, &s, &err))
		fail_msg("%s", err.text);
	return s;
}

/* ---- numbers of activations ---- */

static void number(struct edit *e, struct edit_function *f, struct snippet **s, bool wrong)
{
	const uint64_t at = edit_data(e, 24, 8);

	edit_at_entry(e, f, s[ENTER], &at);
	for (uint32_t i = 0; i < f->flow->graph.edges; i++) {
		uint8_t kind = f->flow->edge_kind[i];
		if (!edit_edge_carries(f, i) || edit_edge_group(f, i) != i)
			continue;
		if (kind == FLOW_EDGE_RETURN || kind == FLOW_EDGE_TAIL)
			edit_on_edge(e, f, i, s[LEAVE], &at);
		else if (kind != FLOW_EDGE_STOP && kind != FLOW_EDGE_ENTRY)
			edit_on_edge(e, f, i, s[wrong ? WRONG_STEP : STEP], &at);
	}
}

static void check_numbers(bool wrong)
{
	struct edit *e = open_code();
	struct snippet *s[SNIPPETS];
	const char *why;

	for (int i = 0; i < SNIPPETS; i++)
		s[i] = make(texts[i]);
	for (int i = 0; i < ASKED; i++) {
		struct edit_function *f = find_function(e, asked[i]);
		if (!edit_variable(e, f, 0, NULL, &why) || !edit_variable(e, f, 1, NULL, &why))
			fail_msg("%s: %s", asked[i], why);
		number(e, f, s, wrong);
	}
	write_edited(e);
	for (int i = 0; i < SNIPPETS; i++)
		snippet_destroy(s[i]);
	if (wrong)
		shell("! ./edited > got 2>&1");
	else
		shell("./edited > got && cmp got expected");
}

/* ---- loops ---- */

struct loop_snippets {
	struct snippet *begin, *turn, *end, *check;
};

/* In v0 from where the loop is entered to where it is left, and in memory beside it. */
static bool count_loop(struct edit *e, struct edit_function *f, const struct loops *loops,
	uint32_t loop, const struct loop_snippets *s)
{
	const struct graph *g = &f->flow->graph;
	const uint64_t at = edit_data(e, 16, 8);
	bool *blocks = calloc(f->flow->nblocks, sizeof *blocks);
	const char *why;

	for (uint32_t k = 0; k < f->flow->nblocks; k++)
		blocks[k] = loops_contain(loops, loop, k);
	bool had = edit_variable(e, f, 0, blocks, &why);
	for (uint32_t i = 0; had && i < g->edges; i++) {
		bool from = loops_contain(loops, loop, g->edge[i].from);
		bool to = loops_contain(loops, loop, g->edge[i].to);
		if (!edit_edge_carries(f, i) || (!from && !to))
			continue;
		edit_on_edge(e, f, i, !from ? s->begin : to ? s->turn : s->end, &at);
		if (from && !to)
			edit_on_edge(e, f, i, s->check, &at);
	}
	free(blocks);
	return had;
}

static unsigned count_loops(struct edit *e, struct edit_function *f, const struct loop_snippets *s)
{
	struct loops loops;
	unsigned n = 0;

	loops_init(&loops, &f->flow->graph, f->flow->entry_node);
	for (uint32_t i = 0; i < loops.n; i++)
		if (loops.loop[i].depth == 1)
			n += count_loop(e, f, &loops, i, s);
	loops_deinit(&loops);
	return n;
}

static void check_loops(void)
{
	struct edit *e = open_code();
	struct loop_snippets s = {make("v0 = 0"), make("v0 += 1; [a0] += 1"),
		make("[a0 + 8] += v0"),
		make("t0 = [a0]; if t0 == [a0 + 8] goto fine; " CRASH "; fine:")};
	unsigned n = 0;

	for (int i = 0; i < ASKED; i++)
		if (strcmp(asked[i], "catches")) /* counts while it counts */
			n += count_loops(e, find_function(e, asked[i]), &s);
	assert_true(n >= 3);
	write_edited(e);
	snippet_destroy(s.begin);
	snippet_destroy(s.turn);
	snippet_destroy(s.end);
	snippet_destroy(s.check);
	shell("./edited > got && cmp got expected");
}

/* ---- tests ---- */

static void check(const char *compiler)
{
	write_text("main.cc", program);
	shell("%s -w -o code main.cc && ./code > expected", compiler);
	check_numbers(false);
	check_numbers(true);
	check_loops();
}

static void test_gcc(void **state)
{
	(void)state;
	check("g++ -O2");
	check("g++ -O1 -fno-omit-frame-pointer -no-pie");
	check("g++ -O3 -march=x86-64-v3");
	check("g++ -O0");
}

static void test_clang(void **state)
{
	(void)state;
	check("clang++ -O2");
	check("clang++ -O0");
}

/* Nothing else is touched when there is a register, and in loops there often is. */
static void test_kinds(void **state)
{
	(void)state;
	write_text("main.cc", program);
	shell("g++ -O2 -w -o code main.cc");
	struct edit *e = open_code();
	const char *why;
	struct function *leaf = (struct function *)find_function(e, "leaf");
	struct function *calls = (struct function *)find_function(e, "calls");
	assert_true(edit_variable(e, &leaf->public, 0, NULL, &why));
	assert_int_not_equal(leaf->variables.p[0].reg, REG_NONE);
	assert_null(leaf->pad);
	assert_true(edit_variable(e, &calls->public, 0, NULL, &why));
	assert_int_equal(calls->variables.p[0].reg, REG_NONE);
	assert_non_null(calls->pad);
	assert_false(edit_pad_frame(e, &calls->public, 16, &why));
	edit_destroy(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gcc),
		cmocka_unit_test(test_clang),
		cmocka_unit_test(test_kinds),
	};
	return cmocka_run_group_tests(tests, open_workshop, close_workshop);
}
