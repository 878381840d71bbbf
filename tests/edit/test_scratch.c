/*
 * What is said to be dead is dead: programs run as before when all of that is overwritten at every
 * instruction.
 */
#include "image/workshop.h"

#include "base/err.h"
#include "edit/edit.h"
#include "edit/snippet.h"
#include "isa/dice.h"

/* Returns in how many functions. */
static size_t clobber_all(const char *path, const char *edited)
{
	const struct edit_options options = {.strict = true};
	struct edit_function **functions;
	struct dice dice = {.state = dice_option("SEED", 1)};
	struct snippet *s = NULL;
	struct edit *e;
	struct err err = {0};
	size_t moved = 0;

	if (edit_open(path, &options, &e, &err))
		fail_msg("%s", err.text);
	assert_int_equal(snippet_create("clobber a0", &s, &err), 0);
	size_t n = edit_functions(e, &functions);
	for (size_t i = 0; i < n; i++) {
		struct edit_function *f = functions[i];
		if (f->refused)
			continue;
		moved++;
		for (uint32_t k = 0; k < f->flow->ninsns; k++)
			edit_before(e, f, k, s, (const uint64_t[]){dice_roll(&dice)});
		for (uint32_t k = 0; k < f->flow->graph.edges; k++)
			if (edit_edge_carries(f, k) && edit_edge_group(f, k) == k)
				edit_on_edge(e, f, k, s, (const uint64_t[]){dice_roll(&dice)});
	}
	if (edit_write(e, edited, &err))
		fail_msg("%s", err.text);
	edit_destroy(e);
	snippet_destroy(s);
	return moved;
}

static void test_gzip(void **state)
{
	(void)state;
	assert_true(clobber_all("/usr/bin/gzip", in_workshop("gzip")) > 100);
	shell("head -c 300000 /usr/bin/bash > data && gzip -9c data > expected");
	shell("./gzip -9c data > got && cmp got expected && ./gzip -dc got | cmp - data");
}

/* Static functions that gcc knows the registers of, with callers that keep values in the others. */
static const char known[] =
	"#include <stdio.h>\n"
	"#define N __attribute__((noinline, noclone)) static\n"
	"N long a(long x) { return x * 3 + 1; }\n"
	"N long b(long x, long y) { return x > y ? a(x) - y : a(y) + x; }\n"
	"N long c(long *p, long n) { long s = 0; for (long i = 0; i < n; i++) s += b(p[i], i);\n"
	"	return s; }\n"
	"N long d(long p, long q, long r, long s, long t) {\n"
	"	return a(p) + a(q) * r + b(s, t) - a(r) * t + b(q, s) % (p | 1); }\n"
	"N long e(long n) { return n < 2 ? a(n) : e(n - 1) + e(n - 2) * a(n) + b(n, 3); }\n"
	"int main(int n, char **v) { long p[100]; (void)v;\n"
	"	for (int i = 0; i < 100; i++) p[i] = d(i, i * n, i - 7, i ^ 5, e(i % 9));\n"
	"	printf(\"%ld %ld\\n\", c(p, 100), e(20)); return 0; }\n";

static void test_known_callees(void **state)
{
	static const char *const ways[] = {"gcc -O2", "gcc -O3 -march=haswell", "gcc -Os -static",
		"clang -O2", "gcc -O1 -fno-pie -no-pie", "gcc -O0"};

	(void)state;
	write_text("known.c", known);
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		shell("%s -w -o known known.c && ./known > expected", ways[i]);
		clobber_all(in_workshop("known"), in_workshop("edited"));
		shell("./edited | cmp - expected");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gzip),
		cmocka_unit_test(test_known_callees),
	};
	return cmocka_run_group_tests(tests, open_workshop, close_workshop);
}
