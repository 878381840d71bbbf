#include "analyze/grammar.h"
#include "analyze/stream_cut.h"
#include "base/vec.h"
#include "isa/dice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SHORTEST = 10, LONGEST = 40, SITES = 64 };

/* Instruction and address of reference n, as numbers are given out. */
static struct stream_numbers *numbers_of(uint32_t n, uint32_t sites)
{
	struct stream_numbers *numbers = stream_numbers_create();
	struct trace_site list[SITES];

	for (uint32_t i = 0; i < SITES; i++)
		list[i] = (struct trace_site){1, 0x1000, 0x1000 + 4 * i, TRACE_LOAD, 8, NULL};
	for (uint32_t i = 0; i < n; i++) {
		struct trace_reference r = {i % sites, 0x10000 + 8 * i};

		assert_int_equal(stream_number(numbers, list, 0,
					 &(struct trace_burst){.references = &r, .n = 1}, 0),
			i);
	}
	return numbers;
}

struct pieces {
	VEC(uint32_t) text;  /* of all */
	VEC(uint32_t) first; /* by piece: its first reference, and its length */
	VEC(uint32_t) length;
};

static void take(void *arg, const uint32_t *text, uint32_t n)
{
	struct pieces *p = arg;

	assert_in_range(n, SHORTEST, LONGEST);
	for (uint32_t i = 0; i < n; i++)
		*vec_add(&p->text) = text[i];
	*vec_add(&p->first) = text[0];
	*vec_add(&p->length) = n;
}

static void cut(
	const struct stream_numbers *numbers, const uint32_t *list, uint32_t n, struct pieces *out)
{
	struct stream_cut *c = stream_cut_create(numbers, SHORTEST, LONGEST, take, out);

	*out = (struct pieces){0};
	for (uint32_t i = 0; i < n; i++)
		stream_cut_add(c, list[i]);
	stream_cut_add(c, GRAMMAR_CUT);
	stream_cut_destroy(c);
}

static void pieces_deinit(struct pieces *p)
{
	vec_deinit(&p->text);
	vec_deinit(&p->first);
	vec_deinit(&p->length);
}

/* Wherever one begins: once around, from the same reference on; but for the ends. */
static void assert_round(uint32_t round, uint32_t sites)
{
	struct stream_numbers *numbers = numbers_of(round, sites);
	uint32_t list[1000], first = UINT32_MAX;

	for (uint32_t begin = 0; begin < round; begin++) {
		struct pieces p;

		for (uint32_t i = 0; i < 1000; i++)
			list[i] = (begin + i) % round;
		cut(numbers, list, 1000, &p);
		for (uint32_t i = 2; i + 2 < p.first.n; i++) {
			first = first == UINT32_MAX ? p.first.p[i] : first;
			assert_int_equal(p.length.p[i], round);
			assert_int_equal(p.first.p[i], first);
		}
		assert_in_range(p.first.n, 1000 / round - 1, 1000 / round + 3);
		pieces_deinit(&p);
	}
	stream_numbers_destroy(numbers);
}

static void rounds(void **state)
{
	(void)state;
	assert_round(13, SITES);
	assert_round(37, SITES);
	assert_round(30, 3); /* one loop over ten objects */
}

/* The same stretch is cut in the same way behind whatever comes before; and nothing of it is lost.
 */
static void anywhere(void **state)
{
	struct dice dice = {.state = 1};
	struct stream_numbers *numbers = numbers_of(3000, SITES);
	uint32_t list[2000];
	struct pieces whole, part;

	(void)state;
	for (uint32_t i = 0; i < 2000; i++)
		list[i] = (uint32_t)dice_below(&dice, 3000);
	cut(numbers, list, 2000, &whole);
	assert_int_equal(whole.text.n, 2000);
	for (uint32_t from = 1; from < 300; from++) {
		uint32_t same = 0;

		cut(numbers, list + from, 1000, &part);
		assert_int_equal(part.text.n, 1000);
		for (uint32_t i = 0; i < part.first.n; i++)
			for (uint32_t k = 0; k < whole.first.n; k++)
				same += part.first.p[i] == whole.first.p[k] &&
					part.length.p[i] == whole.length.p[k];
		assert_true(same + 8 >= part.first.n);
		pieces_deinit(&part);
	}
	pieces_deinit(&whole);
	stream_numbers_destroy(numbers);
}

static void too_short(void **state)
{
	struct stream_numbers *numbers = numbers_of(20, SITES);
	const uint32_t list[] = {
		1, 2, 3, 4, 5, 6, 7, 8, 9, GRAMMAR_CUT, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
	struct pieces p;

	(void)state;
	cut(numbers, list, sizeof list / sizeof *list, &p);
	assert_int_equal(p.first.n, 1);
	assert_int_equal(p.length.p[0], 10);
	pieces_deinit(&p);
	stream_numbers_destroy(numbers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rounds),
		cmocka_unit_test(anywhere),
		cmocka_unit_test(too_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
