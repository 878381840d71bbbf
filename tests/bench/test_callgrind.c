#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../bench/callgrind.h"

static int read_text(struct callgrind *c, const char *text, size_t *line)
{
	FILE *in = fmemopen((void *)text, strlen(text), "r");
	int rc;

	callgrind_init(c);
	rc = callgrind_read(c, in, line);
	fclose(in);
	return rc;
}

static void test_counts(void **state)
{
	static const char text[] = "version: 1\n"
				   "positions: instr line\n"
				   "events: Ir\n"
				   "\n"
				   "ob=/bin/a\n"
				   "fl=???\n"
				   "fn=first\n"
				   "0x1000 0 5\n"
				   "0x1004 12 5\n"
				   "jcnd=3/5 0x1000 12\n"
				   "0x1004 12\n"
				   "0x1006 12 2\n"
				   "cob=/lib/b\n"
				   "cfn=second\n"
				   "calls=2 0x1000 0\n"
				   "0x1006 12 900\n"
				   "0x100b 0 2\n"
				   "cfn=third\n"
				   "calls=2 0x2000 0\n"
				   "0x100b 0 700\n"
				   "jump=2 0x1000 0\n"
				   "0x1010 0\n"
				   "\n"
				   "ob=/lib/b\n"
				   "fn=second\n"
				   "0x1000 0 2\n"
				   "ob=/bin/a\n"
				   "0x1000 0 4\n"
				   "totals: 20\n";
	struct callgrind c;
	size_t line;

	(void)state;
	assert_int_equal(read_text(&c, text, &line), 0);
	assert_int_equal(c.objects.n, 2);
	assert_int_equal(callgrind_count(&c, 0, 0x1000), 9);
	assert_int_equal(callgrind_count(&c, 0, 0x1004), 5);
	assert_int_equal(callgrind_count(&c, 0, 0x1006), 2); /* not what the call cost */
	assert_int_equal(callgrind_count(&c, 1, 0x1000), 2);
	assert_int_equal(callgrind_count(&c, 0, 0x9999), 0);
	assert_int_equal(callgrind_went(&c, 0, 0x1004, 0x1000), 3);
	assert_int_equal(callgrind_went(&c, 0, 0x1006, 0x1000), 0); /* into another object */
	assert_int_equal(callgrind_went(&c, 0, 0x100b, 0x2000), 2);
	assert_int_equal(callgrind_went(&c, 0, 0x1010, 0x1000), 2);
	callgrind_deinit(&c);
}

static void test_misses(void **state)
{
	static const char text[] = "events: Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw\n"
				   "ob=/bin/a\n"
				   "0x1000 0 10 8 4 1 2 3 1 1 1\n"
				   "0x1000 0 5 3 1 0 2\n";
	static const uint64_t right[CALLGRIND_EVENTS] = {15, 1, 4, 1, 1, 3, 1};
	struct callgrind_insn key = {.address = 0x1000}, *i;
	struct callgrind c;
	size_t line;

	(void)state;
	assert_int_equal(read_text(&c, text, &line), 0);
	i = hmap_get(&c.insns, &key);
	assert_memory_equal(i->count, right, sizeof right);
	callgrind_deinit(&c);
}

static void test_refuses(void **state)
{
	static const char *const bad[] = {
		"events: Ir\n0x1000 0 5\n0x1004 12\n", /* no cost */
		"events: Ir\n0x1000 0 5\ncalls=(3) 0x1000 0\n",
		"events: Ir\n0x1000 0 5\njcnd=3/5\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct callgrind c;
		size_t line;

		assert_int_equal(read_text(&c, bad[i], &line), -EBADMSG);
		assert_int_equal(line, 3);
		callgrind_deinit(&c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_misses),
		cmocka_unit_test(test_refuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
