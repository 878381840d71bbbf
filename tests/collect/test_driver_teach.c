/* What is told to the kernel of the sizes of frames, looked for as it does. */
#include "collect/driver_teach.h"

#include "base/mem.h"
#include "collect/sampler.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

/* The first segment of code need not begin with a page. */
static const struct driver_stack stack = {
	.code = 0x401337, .code_end = 0x500000, .libraries = 0x7f0000000000, .program = 42};

static struct driver_seen *seen;

static int begin(void **state)
{
	(void)state;
	seen = xcalloc(1, sizeof *seen);
	return 0;
}

static int end(void **state)
{
	(void)state;
	free(seen);
	return 0;
}

static uint32_t step_from(uint64_t place, uint64_t what)
{
	uint64_t h = DRIVER_HASH_STEP(stack.program, place, what);
	size_t slot = STEP_SLOT(h) % DRIVER_STEPS;

	for (unsigned i = 0; i < 2; i++, slot ^= 1)
		if (seen->step[slot].mark == DRIVER_MARK(h) && STEP_SURE(seen->step[slot].step))
			return seen->step[slot].step;
	return 0;
}

static uint32_t frame_around(uint64_t address)
{
	uint64_t place = driver_place_in(&stack, address);
	uint32_t step = 0;

	for (unsigned i = 0; i < STEP_SIZES && !step; i++)
		step = step_from(place / (uint64_t)STEP_PIECE((int)i), STEP_PIECES + i);
	return step & STEP_WORDS;
}

/* All that is told of code around is true of the row; little of it is missing, at its ends. */
static void check_row(uint64_t start, uint64_t size, uint64_t at)
{
	struct stack_step step = {.address = at,
		.row = at,
		.start = start,
		.end = start + size,
		.words = 7,
		.what = STEP_EXACT,
		.fixed = true};
	uint64_t found = 0;

	driver_steps_teach(seen, &stack, &step);
	for (uint64_t x = start - 600; x < start + size + 600; x++) {
		uint32_t words = frame_around(x);

		assert_true(!words || (words == 7 && x - start < size));
		found += words != 0;
	}
	assert_true(found + 14 >= (size < 1024 ? size : 1024));
	assert_true(frame_around(at) == 7 ||
		    step_from(driver_place_in(&stack, at), STEP_EXACT) % 65536 == 7);
}

static void test_rows(void **state)
{
	(void)state;
	check_row(0x410003, 700, 0x410100);
	check_row(0x420010, 31, 0x420010);
	check_row(0x430001, 3, 0x430002);
	check_row(0x440000, 100000, 0x448000);
	check_row(0x7effffff1234, 333, 0x7effffff1240);
}

/* What is taught twice in two ways is not believed. */
static void test_differing(void **state)
{
	struct stack_step step = {.address = 0x410101,
		.row = 0x410100,
		.start = 0x410000,
		.end = 0x410200,
		.words = 7,
		.what = STEP_RETURN,
		.fixed = true};

	(void)state;
	driver_steps_teach(seen, &stack, &step);
	assert_int_equal(frame_around(0x410100), 7);
	assert_int_equal(step_from(driver_place_in(&stack, 0x410101), STEP_RETURN), 0);
	step.words = 8;
	driver_steps_teach(seen, &stack, &step);
	assert_int_equal(frame_around(0x410100), 0);
}

static bool is_called(uint64_t address, uint32_t words)
{
	uint64_t h = DRIVER_HASH_CALL(
		stack.program, driver_place_in(&stack, address), WHERE_MAIN, words);

	return seen->called[DRIVER_CALL(h) / 64] >> DRIVER_CALL(h) % 64 & 1;
}

/* Calls at heights, until there are too many of them: then all begins anew. */
static void test_calls(void **state)
{
	struct stack_step call = {.address = 0x410100, .words = 7, .what = STEP_CALLED};

	(void)state;
	driver_steps_teach(seen, &stack, &call);
	assert_true(is_called(0x410100, 7));
	assert_false(is_called(0x410100, 8) && is_called(0x410100, 9));
	assert_false(is_called(0x410105, 7) && is_called(0x410106, 7));
	/* Nothing of it is the size of a frame. */
	assert_int_equal(step_from(driver_place_in(&stack, 0x410100), STEP_RETURN), 0);
	driver_steps_teach(seen, &stack, &call);
	assert_int_equal(seen->ncalled, 1);
	for (uint32_t i = 0; i < DRIVER_CALLS / 4; i++) {
		call.words = 1000 + i;
		driver_steps_teach(seen, &stack, &call);
		assert_true(is_called(0x410100, call.words));
	}
	assert_true(seen->ncalled <= DRIVER_CALLS / 8);
	assert_false(is_called(0x410100, 7));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_rows, begin, end),
		cmocka_unit_test_setup_teardown(test_differing, begin, end),
		cmocka_unit_test_setup_teardown(test_calls, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
