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

#define CUT UINT32_MAX

typedef VEC(uint32_t) number_list;

static void expand(const struct sequitur *s, uint32_t rule, number_list *out)
{
	struct sequitur_symbol x;
	uint32_t at = 0;

	while (sequitur_next(s, rule, &at, &x)) {
		if (x.kind == SEQUITUR_RULE)
			expand(s, x.number, out);
		else
			*vec_add(out) = x.kind == SEQUITUR_CUT ? CUT : x.number;
	}
}

struct pair {
	uint64_t first, second;
	uint32_t rule, at;
};

static int by_symbols(const void *a, const void *b)
{
	return memcmp(a, b, offsetof(struct pair, rule));
}

static uint64_t code_of(const struct sequitur_symbol *x)
{
	return (uint64_t)x->kind << 32 | x->number;
}

/* No pair twice, unless the two overlap; every rule used twice at least. */
static void assert_grammar(const struct sequitur *s)
{
	VEC(struct pair) pairs = {0};
	uint32_t *uses = xcalloc(sequitur_rules(s), sizeof *uses);

	for (uint32_t r = 0; r < sequitur_rules(s); r++) {
		struct sequitur_symbol x, last = {0};
		uint32_t at = 0, n = 0;

		while (sequitur_next(s, r, &at, &x)) {
			if (x.kind == SEQUITUR_RULE)
				uses[x.number]++;
			if (n++ && x.kind != SEQUITUR_CUT && last.kind != SEQUITUR_CUT)
				*vec_add(&pairs) = (struct pair){code_of(&last), code_of(&x), r, n};
			last = x;
		}
		assert_true(!r || n != 1);
	}
	for (uint32_t r = 1; r < sequitur_rules(s); r++)
		assert_int_not_equal(uses[r], 1);
	vec_sort(&pairs, by_symbols);
	for (size_t i = 1; i < pairs.n; i++) {
		const struct pair *a = &pairs.p[i - 1], *b = &pairs.p[i];

		if (by_symbols(a, b))
			continue;
		assert_int_equal(a->first, a->second);
		assert_int_equal(a->rule, b->rule);
	}
	vec_deinit(&pairs);
	free(uses);
}

static void assert_sequence(const uint32_t *list, size_t n)
{
	struct sequitur *s = sequitur_create();
	number_list out = {0};

	for (size_t i = 0; i < n; i++)
		if (list[i] == CUT)
			sequitur_cut(s);
		else
			sequitur_add(s, list[i]);
	expand(s, 0, &out);
	assert_int_equal(out.n, n);
	assert_true(!n || !memcmp(out.p, list, n * sizeof *list));
	assert_grammar(s);
	vec_deinit(&out);
	sequitur_destroy(s);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_memory_by_grammar),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
