/* Advice about data, from touches that are made up. */
#include "analyze/advice_fields.h"
#include "analyze/advice_prefetch.h"
#include "analyze/advice_together.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const struct type number = {.name = "long", .size = 8, .align = 8};
static const struct type filler = {.name = "char", .size = 112, .align = 1};
static const struct type_member members[] = {
	{"next", 0, 8, &number}, {"pad", 8, 112, &filler}, {"value", 120, 8, &number}};
static const struct type node = {
	.name = "node", .kind = TYPE_STRUCT, .size = 128, .align = 8, .members = members, .n = 3};

static const struct trace_site site = {1, 0x1000, 0x1010, TRACE_LOAD, 8, NULL};

static struct touch touch(uint64_t number_, uint32_t group, uint64_t instance, uint64_t offset)
{
	return (struct touch){.site = &site,
		.address = instance + offset,
		.number = number_,
		.thing = {.kind = THING_HEAP, .group = group, .object = 0},
		.type = &node,
		.instance = instance,
		.offset = offset};
}

/* Two members that are far apart and always touched together belong in one line. */
static void fields_move(void **state)
{
	struct fields *f = fields_create();
	const struct field_advice *a;

	(void)state;
	for (uint64_t i = 0; i < 1000; i++) {
		struct touch first = touch(2 * i, 0, 0x100000 + i * 128, 0);
		struct touch second = touch(2 * i + 1, 0, 0x100000 + i * 128, 120);

		fields_take(f, &first);
		fields_take(f, &second);
	}
	assert_int_equal(fields_settle(f, &a), 1);
	assert_int_equal(a->references, 2000);
	assert_int_equal(a->visits, 1000);
	assert_int_equal(a->lines, 2000);
	assert_int_equal(a->ordered, 1000);
	assert_int_equal(a->hot, 16);
	assert_int_equal(a->fields[0].proposed, 0);
	assert_int_equal(a->fields[2].proposed, 8);
	assert_int_equal(a->fields[1].proposed, 16);
	assert_int_equal(a->affinity[0 * 3 + 2], 1000);
	assert_int_equal(a->affinity[0 * 3 + 1], 0);
	fields_destroy(f);
}

/* What is never touched together gains nothing by another order; far apart are two visits. */
static void fields_stay(void **state)
{
	struct fields *f = fields_create();
	const struct field_advice *a;

	(void)state;
	for (uint64_t i = 0; i < 100; i++) {
		struct touch first = touch(200 * i, 0, 0x100000, 0);
		struct touch second = touch(200 * i + 100, 0, 0x100000, 120);

		fields_take(f, &first);
		fields_take(f, &second);
	}
	fields_settle(f, &a);
	assert_int_equal(a->visits, 200);
	assert_int_equal(a->lines, 200);
	assert_int_equal(a->ordered, 200);
	assert_int_equal(a->fields[2].proposed, 120);
	fields_destroy(f);
}

/* Nodes and their keys, each with its own; nodes in an order that is not that of their places. */
static void pairs_are_found(void **state)
{
	struct pairs *p = pairs_create();
	const struct pair_advice *a;
	uint64_t n = 0;
	size_t count;
	bool walk = false, both = false;

	(void)state;
	for (int round = 0; round < 3; round++)
		for (uint64_t i = 0; i < 100; i++) {
			uint64_t k = i * 37 % 100;
			struct touch x = touch(n++, 0, 0x100000 + k * 256, 0);
			struct touch y = touch(n++, 1, 0x900000 + k * 512, 0);

			pairs_take(p, &x);
			pairs_take(p, &y);
		}
	count = pairs_settle(p, &a);
	for (size_t i = 0; i < count; i++) {
		walk |= a[i].from == 0 && a[i].to == 0 && pair_is_advised(&a[i]);
		both |= a[i].from == 0 && a[i].to == 1 && pair_is_advised(&a[i]) &&
			a[i].steps == 300 && a[i].known == 200 && a[i].same == 200 &&
			a[i].near == 0;
	}
	assert_true(walk && both);
	pairs_destroy(p);
}

/* A row of neighbours is in order already, and what goes elsewhere each time cannot be. */
static void pairs_are_refused(void **state)
{
	struct pairs *p = pairs_create();
	const struct pair_advice *a;
	uint64_t random = 1;
	size_t count;

	(void)state;
	for (uint64_t n = 0; n < 2000; n++) {
		struct touch x = touch(n, 0, 0x100000 + n % 500 * 64, 0);

		pairs_take(p, &x);
	}
	for (uint64_t n = 3000; n < 6000; n++) {
		random = random * 6364136223846793005 + 1442695040888963407;
		struct touch y = touch(n, 1, 0x900000 + (random >> 54) * 512, 0);

		pairs_take(p, &y);
	}
	count = pairs_settle(p, &a);
	assert_true(count >= 2);
	for (size_t i = 0; i < count; i++)
		assert_false(pair_is_advised(&a[i]));
	pairs_destroy(p);
}

static enum prefetch_verdict verdict_of(uint64_t n, uint64_t step, bool random)
{
	struct reaches *r = reaches_create();
	const struct reach_advice *a;
	enum prefetch_verdict verdict;
	uint64_t x = 1;

	for (uint64_t i = 0; i < n; i++) {
		struct touch t = touch(i, 0, 0x100000 + i * step, 0);

		x = x * 6364136223846793005 + 1442695040888963407;
		if (random)
			t.address = 0x100000 + (x >> 40) * 64;
		reaches_take(r, &t);
	}
	assert_int_equal(reaches_settle(r, NULL, &a), 1);
	assert_int_equal(a->references, n);
	if (!random)
		assert_int_equal(a->stride, step);
	verdict = a->verdict;
	reaches_destroy(r);
	return verdict;
}

static void prefetch_or_not(void **state)
{
	(void)state;
	assert_int_equal(verdict_of(5000, 0, false), PREFETCH_FITS);
	assert_int_equal(verdict_of(200, 64, false), PREFETCH_FITS);
	assert_int_equal(verdict_of(5000, 64, false), PREFETCH_HARDWARE);
	assert_int_equal(verdict_of(5000, 8192, false), PREFETCH_PAGES);
	assert_int_equal(verdict_of(5000, 0, true), PREFETCH_COMPUTED);
	assert_string_equal(prefetch_name(PREFETCH_LATE), "don't");
	assert_string_equal(prefetch_name(PREFETCH_PAGES), "prefetch");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields_move),
		cmocka_unit_test(fields_stay),
		cmocka_unit_test(pairs_are_found),
		cmocka_unit_test(pairs_are_refused),
		cmocka_unit_test(prefetch_or_not),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
