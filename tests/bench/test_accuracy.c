#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../bench/accuracy.h"

/* A loop at 0x1010 inside one procedure; another procedure of two blocks; one without estimate. */
static const char exact_text[] = "image aa /bin/a\n"
				 "procedure 0x1000 exact\n"
				 "block 0x1000 16 10 exact\n"
				 "block 0x1010 16 990 exact\n"
				 "edge 0x100e 0x1010 10 exact\n"
				 "edge 0x101e 0x1010 980 exact\n"
				 "procedure 0x2000 exact\n"
				 "block 0x2000 10 100 exact\n"
				 "block 0x200a 10 50 exact\n"
				 "edge 0x2008 0x200a 50 exact\n"
				 "procedure 0x3000 exact\n"
				 "block 0x3000 5 1 exact\n"
				 "image - /bin/b\n"
				 "procedure 0x1000 exact\n"
				 "block 0x1000 5 0 exact\n";

/* The first one's scale is unknown and a tenth of the right one, the second's is known. */
static const char estimated_text[] = "image aa /elsewhere/a\n"
				     "procedure 0x1000 relative\n"
				     "block 0x1000 16 1.2 low\n"
				     "block 0x1010 16 98.8 high\n"
				     "edge 0x101e 0x1010 97.6 high\n"
				     "procedure 0x2000 known\n"
				     "block 0x2000 10 98 high\n"
				     "block 0x200a 10 58 high\n"
				     "edge 0x2008 0x200a 58 medium\n"
				     "image - /bin/b\n"
				     "procedure 0x1000 relative\n"
				     "block 0x1000 5 0 low\n";

struct rig {
	struct strtab images;
	struct counts exact, estimate;
};

static void read_text(struct rig *r, const char *text, struct counts *c)
{
	FILE *in = fmemopen((void *)text, strlen(text), "r");
	size_t line;

	assert_int_equal(counts_read(c, &r->images, in, &line), 0);
	fclose(in);
}

static void rig_deinit(struct rig *r)
{
	counts_deinit(&r->exact);
	counts_deinit(&r->estimate);
	strtab_deinit(&r->images);
}

static bool is_near(double a, double b)
{
	return fabs(a - b) < 1e-9;
}

static void test_measures(void **state)
{
	struct rig r = {0};
	struct comparison c;
	struct accuracy a;

	(void)state;
	read_text(&r, exact_text, &r.exact);
	read_text(&r, estimated_text, &r.estimate);
	comparison_init(&c, &r.exact, &r.estimate, 1);
	c.blocks[0].samples = 10; /* 20% off */
	c.blocks[1].samples = 50; /* right but for the scale */
	c.blocks[2].samples = 20; /* 2% and, relative, 5.8% off */
	c.blocks[3].samples = 10; /* 16% and, relative, 11.5% off */
	c.blocks[4].samples = 10; /* no estimate */
	comparison_measure(&c, &a);
	assert_true(is_near(a.samples, 100));
	assert_true(is_near(a.estimated, 0.9));
	assert_true(is_near(a.relative[0], 0.5));
	assert_true(is_near(a.relative[1], 0.7));
	assert_true(is_near(a.relative[2], 0.8));
	assert_true(is_near(a.claimed, 0.3));
	assert_true(is_near(a.absolute[0], 20. / 30));
	assert_true(is_near(a.absolute[1], 20. / 30));
	assert_true(is_near(a.absolute[2], 20. / 30));
	assert_true(is_near(a.high, 0.8));
	assert_true(is_near(a.high_within, 70. / 80));
	assert_true(is_near(a.relative_edges, 980. / 1040)); /* one missing, one too far off */
	assert_true(is_near(a.absolute_edges, 0));
	assert_true(is_near(a.absolute_overlap, 98. / 156 + 50. / 150));
	comparison_deinit(&c);
	rig_deinit(&r);
}

/* What runs three times as often in the estimated run is not off by three. */
static void test_repeats(void **state)
{
	struct rig r = {0};
	struct comparison c;

	(void)state;
	read_text(&r, "image aa a\nprocedure 0x10 exact\nblock 0x10 4 7 exact\n", &r.exact);
	read_text(&r, "image aa a\nprocedure 0x10 known\nblock 0x10 4 21 low\n", &r.estimate);
	comparison_init(&c, &r.exact, &r.estimate, 3);
	assert_true(is_near(c.blocks[0].absolute, 1));
	assert_true(is_near(c.blocks[0].relative, 1));
	comparison_deinit(&c);
	comparison_init(&c, &r.exact, &r.estimate, 1);
	assert_true(is_near(c.blocks[0].absolute, 3));
	comparison_deinit(&c);
	rig_deinit(&r);
}

static void test_nothing(void **state)
{
	struct rig r = {0};
	struct comparison c;
	struct accuracy a;

	(void)state;
	comparison_init(&c, &r.exact, &r.estimate, 1);
	comparison_measure(&c, &a);
	assert_true(isnan(a.relative[1]));
	assert_true(isnan(a.absolute_edges));
	comparison_deinit(&c);
	rig_deinit(&r);
}

static void test_refuses(void **state)
{
	static const char *const bad[] = {"image aa a\nblock 0x10 4 1 exact\n",
		"image aa a\nedge 0x10 0x10 4 exact\n", "image aa a\nhello\n"};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct rig r = {0};
		FILE *in = fmemopen((void *)bad[i], strlen(bad[i]), "r");
		size_t line;

		assert_int_equal(counts_read(&r.exact, &r.images, in, &line), -EBADMSG);
		assert_int_equal(line, 2);
		fclose(in);
		rig_deinit(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_measures),
		cmocka_unit_test(test_repeats),
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_refuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
