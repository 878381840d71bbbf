#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "store/thin.h"

/* At most as many as asked for, and the same sum, also where it does not fit into 64 bits. */
static void keeps_the_sum(void **state)
{
	uint64_t w[100];

	(void)state;
	for (size_t most = 1; most < 100; most++) {
		uint64_t sum = 0;
		size_t kept = 0;

		for (size_t i = 0; i < 100; i++)
			w[i] = 1 + i * i % 37;
		for (size_t i = 0; i < 100; i++)
			sum += w[i];
		thin_weights(w, 100, most, most);
		for (size_t i = 0; i < 100; i++) {
			kept += w[i] > 0;
			sum -= w[i];
		}
		assert_int_equal(sum, 0);
		assert_in_range(kept, 1, most);
	}
	for (size_t i = 0; i < 100; i++)
		w[i] = UINT64_MAX;
	thin_weights(w, 100, 7, 1);
	for (size_t i = 0; i < 100; i++)
		assert_true(w[i] == 0 || w[i] == UINT64_MAX);
}

/* Over many seeds each stands for what it stood for before: light and heavy, first and last. */
static void without_bias(void **state)
{
	enum { N = 12, MOST = 5, RUNS = 20000 };
	static const uint64_t before[N] = {1, 7, 1, 30, 2, 2, 2, 11, 1, 1, 90, 3};
	double sum[N] = {0};

	(void)state;
	for (uint64_t run = 0; run < RUNS; run++) {
		uint64_t w[N];

		memcpy(w, before, sizeof w);
		thin_weights(w, N, MOST, thin_seed(1, run));
		for (size_t i = 0; i < N; i++)
			sum[i] += (double)w[i];
	}
	/* A piece is 30.2; the standard error of a mean is at most 15.1 / sqrt(20000) = 0.11. */
	for (size_t i = 0; i < N; i++)
		assert_float_equal(sum[i] / RUNS, (double)before[i], 0.5);
}

static void same_seed_same_choice(void **state)
{
	uint64_t a[50], b[50], c[50];

	(void)state;
	for (size_t i = 0; i < 50; i++)
		a[i] = b[i] = c[i] = 1 + i % 3;
	thin_weights(a, 50, 10, 77);
	thin_weights(b, 50, 10, 77);
	thin_weights(c, 50, 10, 78);
	assert_memory_equal(a, b, sizeof a);
	assert_memory_not_equal(a, c, sizeof a);
	assert_int_not_equal(thin_seed(1, 2), thin_seed(2, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_the_sum),
		cmocka_unit_test(without_bias),
		cmocka_unit_test(same_seed_same_choice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
