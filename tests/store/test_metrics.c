#include "store/metrics.h"

#include "base/buf.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct metric_names names(const char *a, const char *b)
{
	struct metric_names m = {0};

	assert_true(metric_add(&m, a));
	assert_true(metric_add(&m, b));
	return m;
}

static void stand_in_order(void **state)
{
	struct metric_names m = names("tsc", "misses");

	(void)state;
	assert_int_equal(m.n, 2);
	assert_int_equal(metric_find(&m, "misses"), 0);
	assert_int_equal(metric_find(&m, "tsc"), 1);
	assert_int_equal(metric_find(&m, "ts"), -1);
	assert_true(metric_add(&m, "tsc")); /* is there */
	assert_int_equal(m.n, 2);
	assert_false(metric_add(&m, ""));
	assert_false(metric_add(&m, "a name that is longer than thirty-one characters"));
	assert_true(metric_add(&m, "a") && metric_add(&m, "b"));
	assert_false(metric_add(&m, "c"));
}

static void unite_and_move(void **state)
{
	struct metric_names a = names("tsc", "misses"), b = names("branches", "tsc"), all, most;
	uint64_t values[METRICS_MOST] = {7, 9}, out[METRICS_MOST];

	(void)state;
	metric_unite(&a, &b, &all);
	assert_int_equal(all.n, 3);
	assert_string_equal(all.name[0], "branches");
	metric_reorder(&a, values, &all, out);
	assert_int_equal(out[0], 0);
	assert_int_equal(out[1], 7);
	assert_int_equal(out[2], 9);
	metric_reorder(&a, values, &all, values); /* in place */
	assert_memory_equal(values, out, sizeof out);
	b = names("x", "y");
	metric_unite(&all, &b, &most);
	assert_int_equal(most.n, METRICS_MOST);
	assert_int_equal(metric_find(&most, "y"), -1);
	assert_int_equal(metric_sum(UINT64_MAX, 2), UINT64_MAX);
}

static void read_back(void **state)
{
	struct metric_names m = names("tsc", "misses"), got;
	struct buf b = {0};
	struct cursor c;

	(void)state;
	metric_names_put(&m, &b);
	c = cursor_over(b.p, b.n);
	assert_int_equal(metric_names_read(&got, &c), 0);
	assert_memory_equal(&got, &m, sizeof m);
	for (size_t cut = 0; cut < b.n; cut++) {
		c = cursor_over(b.p, cut);
		assert_int_equal(metric_names_read(&got, &c), -EBADMSG);
	}
	c = cursor_over("\x02tsc\0misses", 12); /* out of order */
	assert_int_equal(metric_names_read(&got, &c), -EBADMSG);
	buf_deinit(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stand_in_order),
		cmocka_unit_test(unite_and_move),
		cmocka_unit_test(read_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
