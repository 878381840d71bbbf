#include "analyze/repair.h"
#include "analyze/sequitur.h"
#include "base/mem.h"
#include "base/vec.h"
#include "isa/dice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define CUT GRAMMAR_CUT

typedef VEC(uint32_t) number_list;

static void take_symbol(void *arg, uint32_t symbol)
{
	number_list *out = arg;

	*vec_add(out) = symbol;
}

struct pair {
	uint32_t first, second;
	uint32_t rule;
};

static int by_symbols(const void *a, const void *b)
{
	return memcmp(a, b, offsetof(struct pair, rule));
}

static void assert_uses(const struct grammar *g)
{
	uint32_t *uses = xcalloc(grammar_rules(g), sizeof *uses);

	for (uint32_t r = 0; r < grammar_rules(g); r++) {
		uint32_t n = 0;

		grammar_each_symbol(x, g, r)
		{
			if (*x & GRAMMAR_RULE)
				uses[*x & ~GRAMMAR_RULE]++;
			n++;
		}
		assert_true(!r || n != 1);
	}
	for (uint32_t r = 1; r < grammar_rules(g); r++)
		assert_int_not_equal(uses[r], 1);
	free(uses);
}

/* None twice, unless the two overlap: Sequitur's first property. */
static void assert_pairs(const struct grammar *g)
{
	VEC(struct pair) pairs = {0};

	for (uint32_t r = 0; r < grammar_rules(g); r++) {
		uint32_t last = CUT;

		grammar_each_symbol(x, g, r)
		{
			if (*x != CUT && last != CUT)
				*vec_add(&pairs) = (struct pair){last, *x, r};
			last = *x;
		}
	}
	vec_sort(&pairs, by_symbols);
	for (size_t i = 1; i < pairs.n; i++) {
		const struct pair *a = &pairs.p[i - 1], *b = &pairs.p[i];

		if (by_symbols(a, b))
			continue;
		assert_int_equal(a->first, a->second);
		assert_int_equal(a->rule, b->rule);
	}
	vec_deinit(&pairs);
}

static void assert_expands(const struct grammar *g, const uint32_t *list, size_t n)
{
	number_list out = {0};

	grammar_each(g, NULL, take_symbol, &out);
	assert_int_equal(out.n, n);
	assert_true(!n || !memcmp(out.p, list, n * sizeof *list));
	vec_deinit(&out);
}

/* Cut where a pair comes less than three times, and nowhere else; of lists of letters. */
static void assert_joints(const struct grammar *g, const uint32_t *list, size_t n)
{
	static unsigned times[128][128];
	bool *joints = grammar_joints(g, 3);
	number_list want = {0}, got = {0};

	memset(times, 0, sizeof times);
	for (size_t i = 1; i < n; i++)
		if ((list[i - 1] | list[i]) < 128)
			times[list[i - 1]][list[i]]++;
	for (size_t i = 0; i < n; i++) {
		bool joined = i && (list[i - 1] | list[i]) < 128;

		if (i && !(joined && times[list[i - 1]][list[i]] >= 3))
			*vec_add(&want) = CUT;
		*vec_add(&want) = list[i];
	}
	grammar_each(g, joints, take_symbol, &got);
	assert_int_equal(got.n, want.n);
	assert_true(!n || !memcmp(got.p, want.p, got.n * sizeof *got.p));
	free(joints);
	vec_deinit(&want);
	vec_deinit(&got);
}

static void online(const uint32_t *list, size_t n, struct grammar *out)
{
	struct sequitur *s = sequitur_create();

	for (size_t i = 0; i < n; i++)
		if (list[i] == CUT)
			sequitur_cut(s);
		else
			sequitur_add(s, list[i]);
	sequitur_grammar(s, out);
	assert_int_equal(out->symbols.n, sequitur_symbols(s));
	sequitur_destroy(s);
}

static void assert_sequence(const uint32_t *list, size_t n)
{
	uint32_t *own = xmalloc((n + 1) * sizeof *own);
	struct grammar g = {0};

	online(list, n, &g);
	assert_expands(&g, list, n);
	assert_joints(&g, list, n);
	assert_uses(&g);
	assert_pairs(&g);
	grammar_deinit(&g);
	if (n)
		memcpy(own, list, n * sizeof *own);
	repair_grammar(own, n, &g);
	assert_expands(&g, list, n);
	assert_joints(&g, list, n);
	assert_uses(&g);
	grammar_deinit(&g);
	free(own);
}

static void of_text(const char *text)
{
	number_list list = {0};

	for (; *text; text++)
		*vec_add(&list) = *text == '|' ? CUT : (uint32_t)*text;
	assert_sequence(list.p, list.n);
	vec_deinit(&list);
}

static void test_texts(void **state)
{
	(void)state;
	of_text("");
	of_text("a");
	of_text("aa");
	of_text("aaa");
	of_text("aaaa");
	of_text("aaaaaaaaaaaaaaaaaaaaaaa");
	of_text("abcdbc");
	of_text("abcdbcabcdbc");
	of_text("abcdbcabcdbcabcdbcabcdbcabcd");
	of_text("fgfgfgfg");
	of_text("ffffgggg");
	of_text("ab|ab|ab|ab");
	of_text("|||");
}

static void test_random(void **state)
{
	struct dice dice = {.state = dice_option("SEED", 1)};

	(void)state;
	for (unsigned round = 0; round < 3000; round++) {
		uint32_t list[400];
		unsigned letters = 1 + (unsigned)dice_below(&dice, 6);
		size_t n = dice_below(&dice, 400);

		for (size_t i = 0; i < n; i++)
			list[i] =
				dice_below(&dice, 40) ? (uint32_t)dice_below(&dice, letters) : CUT;
		/* Much of it again. */
		for (size_t i = n / 2; i + 30 < n; i += 30)
			memmove(list + i, list + dice_below(&dice, i), 20 * sizeof *list);
		assert_sequence(list, n);
	}
}

/* Two traces that counts of events do not tell apart (section 1 of Hirzel and Chilimbi). */
static size_t symbols_of(const char *text)
{
	struct sequitur *s = sequitur_create();
	size_t n;

	for (; *text; text++)
		sequitur_add(s, (uint32_t)*text);
	n = sequitur_symbols(s);
	sequitur_destroy(s);
	return n;
}

static void test_memory_by_grammar(void **state)
{
	char text[1 << 14];

	(void)state;
	memset(text, 'a', sizeof text);
	text[sizeof text - 1] = 0;
	assert_true(symbols_of(text) < 100);
	assert_int_equal(symbols_of("abcdbc"), 6); /* S: a A d A; A: b c */
	assert_int_equal(symbols_of("fgfgfgfg"), 6);
}

/* Of a long text that comes twice: rules are nested, and not as deep as they are long. */
static void test_long(void **state)
{
	struct dice dice = {.state = 7};
	size_t n = 200000;
	uint32_t *list = xmalloc(2 * n * sizeof *list);

	(void)state;
	for (size_t i = 0; i < n; i++)
		list[i] = list[n + i] = (uint32_t)dice_below(&dice, 1000000);
	assert_sequence(list, 2 * n);
	free(list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_memory_by_grammar),
		cmocka_unit_test(test_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
