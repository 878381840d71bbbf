/*
 * Loops that count for themselves: which ones do. That bursts come as often from them is for the
 * end-to-end tests (bursts.bats).
 */
#include "edit/edit_rig.h"

#include "base/err.h"
#include "burst/burst_internal.h"
#include "burst/checks.h"

static const char program[] =
	"#define FUNCTION __attribute__((noinline, noclone))\n"
	"FUNCTION long tight(const long *p, const long *end) {\n"
	"	long s = 1; for (; p < end; p++) s = s * 3 ^ *p; return s; }\n"
	"FUNCTION long calls(const long *p, long n) {\n"
	"	long s = 0; while (n-- > 0) s += tight(p, p + n); return s; }\n"
	"FUNCTION long seldom(const long *p, const long *end) {\n"
	"	long s = 1; for (; p < end; p++) {\n"
	"		s ^= *p; if (__builtin_expect(*p == 12345, 0)) s += tight(p, end); }\n"
	"	return s; }\n"
	"FUNCTION long nested(const char *p, long n) {\n"
	"	long s = 0;\n"
	"	for (long i = 0; i < n; i++) for (const char *q = p; *q != i; q++) s ^= *q;\n"
	"	return s; }\n"
	"long words[9];\n"
	"int main(int argc, char **argv) {\n"
	"	return (int)(calls(words, argc) + nested(\"some words\", argc) +\n"
	"		seldom(words, words + 9)); }\n";

/* How many of a function's checks on the ways back of loops count in a variable, of how many. */
static void count(struct edit *e, const char *name, unsigned *held, unsigned *all)
{
	struct burst b = {.edit = e};
	struct edit_function *f = find_function(e, name);
	struct checks_loops loops;
	struct held h;

	*held = *all = 0;
	checks_loops_init(&loops, e, f, 0);
	held_init(&h, &b, f, &loops);
	for (uint32_t i = 0; i < f->flow->graph.edges; i++) {
		*all += loops.back[i];
		*held += loops.back[i] && held_on_edge(&h, f, i);
	}
	for (uint32_t k = 0; k < f->flow->nblocks; k++)
		assert_true(h.variable[k] < HELD_END);
	held_deinit(&h);
	checks_loops_deinit(&loops);
}

static void assert_held(struct edit *e, const char *name, bool wanted)
{
	unsigned held, all;

	count(e, name, &held, &all);
	assert_true(all > 0);
	assert_int_equal(held, wanted ? all : 0);
}

static void test_which(void **state)
{
	const struct edit_options options = {0};
	struct err err = {0};
	struct edit *e;

	(void)state;
	write_text("main.c", program);
	shell("gcc -O2 -w -o code main.c");
	if (edit_open(in_workshop("code"), &options, &e, &err))
		fail_msg("%s", err.text);
	assert_held(e, "tight", true);
	assert_held(e, "nested", true);
	assert_held(e, "seldom", true); /* over the call, in the frame */
	assert_held(e, "calls", false); /* what is called takes longer than the counter */
	edit_destroy(e);
}

static void test_snippets(void **state)
{
	struct held_snippets s[HELD_END] = {0};
	struct err err = {0};

	(void)state;
	if (held_snippets_create(s, &err))
		fail_msg("%s", err.text);
	held_snippets_destroy(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_which), cmocka_unit_test(test_snippets)};
	return cmocka_run_group_tests(tests, open_workshop, close_workshop);
}
