#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "collect/progress.h"

enum { US = 1000 };

static const struct progress_thread thread = {.id = SHADOW_PROCESS(12, 3), .who = 4};
static const struct progress_place here = {.offset = 0x100, .image = 7};
static const struct progress_place other = {.offset = 0x200, .image = 7};

struct rig {
	struct progress p;
	uint64_t ns, leap; /* what the thread's own clock is ahead */
};

static int set_up(void **state)
{
	static struct rig rig;

	progress_init(&rig.p);
	rig.ns = 1;
	rig.leap = 0;
	*state = &rig;
	return 0;
}

static int tear_down(void **state)
{
	progress_deinit(&((struct rig *)*state)->p);
	return 0;
}

static void move_by(struct rig *r, uint64_t address, int64_t change, unsigned times,
	const struct progress_place *by)
{
	const struct shadow_moved m = {
		.address = address, .change = change, .times = times, .size = 4};

	progress_moved(&r->p, &thread, &m, by);
}

static unsigned watched(struct rig *r)
{
	struct shadow_watch w = {0};

	return progress_orders(&r->p, thread.id, &w) ? w.n : 99;
}

/* A word that three bursts have moved by 2 each time. */
static void watch(struct rig *r, uint64_t address)
{
	for (int i = 0; i < 3; i++)
		move_by(r, address, 4, 2, &here);
}

/* Reads a word after so many us of the thread. */
static void read_after(struct rig *r, uint64_t us, uint64_t address, uint32_t value)
{
	struct shadow_reading reading = {.ns = (r->ns += us * US) + r->leap};

	reading.word[0][0] = address;
	reading.word[0][1] = address & 4 ? (uint64_t)value << 32 : value;
	progress_read(&r->p, &thread, &reading, 1, r->ns);
}

/* One that is read for the first time. */
static void watch_from(struct rig *r, uint64_t address, uint32_t value)
{
	watch(r, address);
	read_after(r, 10, address, value);
}

/* So many bursts that see two turns each, of a word that makes 100 from one to the next. */
static void go_on(struct rig *r, uint64_t address, uint32_t *value, unsigned bursts)
{
	for (; bursts; bursts--) {
		move_by(r, address, 4, 2, &here);
		read_after(r, 10, address, *value += 200);
	}
}

static const struct progress_pace *only_pace(struct rig *r)
{
	progress_settle(&r->p);
	return r->p.paces.n == 1 && r->p.paces.p->turns ? r->p.paces.p : NULL;
}

static void test_watches_what_counts(void **state)
{
	struct rig *r = *state;

	assert_int_equal(watched(r), 99);
	move_by(r, 64, 4, 2, &here);
	move_by(r, 64, 2, 1, &here);
	assert_int_equal(watched(r), 99);
	move_by(r, 64, 6, 3, &here);
	assert_int_equal(watched(r), 1);
	assert_int_equal(watched(r), 99); /* no news */
}

static void test_leaves_what_does_not(void **state)
{
	struct rig *r = *state;

	for (int i = 1; i < 9; i++)
		move_by(r, 64, i, 1, &here); /* by different steps */
	for (int i = 1; i < 9; i++)
		move_by(r, 128, 1, 2, &here); /* forth and back */
	assert_int_equal(watched(r), 99);
	watch(r, 192);
	assert_int_equal(watched(r), 1);
	move_by(r, 192, 3, 1, &here);
	assert_int_equal(watched(r), 0);
}

/* What was seen before it is watched is what it holds then; what was not read since is not counted.
 */
static void test_counts_turns(void **state)
{
	struct rig *r = *state;
	const struct progress_pace *t;
	uint32_t value = 1000;

	watch_from(r, 68, value);
	go_on(r, 68, &value, 20);
	read_after(r, 200, 68, value); /* stands still, and moves on */
	go_on(r, 68, &value, 40);
	move_by(r, 68, 4, 2, &here); /* was not read since */
	t = only_pace(r);
	assert_non_null(t);
	assert_int_equal(t->turns, 500 + 6000);
	assert_int_equal(t->counted, 6 + 120);
	assert_int_equal(t->seen, 6 + 120 + 2);
	assert_int_equal(t->who, 4);
	assert_int_equal(t->by.offset, here.offset);
}

/* Other recordings may have counted it: then what was seen here is missing there. */
static void test_tells_what_might_count(void **state)
{
	struct rig *r = *state;

	move_by(r, 64, 4, 2, &here);
	move_by(r, 64, 4, 2, &here);
	move_by(r, 128, 4, 2, &other); /* once */
	move_by(r, 192, 4, 2, &other);
	move_by(r, 192, 2, 2, &other); /* by another step */
	progress_settle(&r->p);
	assert_int_equal(r->p.paces.n, 1);
	assert_int_equal(r->p.paces.p->by.offset, here.offset);
	assert_int_equal(r->p.paces.p->turns, 0);
	assert_int_equal(r->p.paces.p->counted, 0);
	assert_int_equal(r->p.paces.p->seen, 4);
}

/* What it holds is no number of turns where bursts have seen far fewer, or far more. */
static void test_begins_anywhere(void **state)
{
	static const uint32_t begun[] = {0, 100, 2 * 3100, 1000000};
	struct rig *r = *state;

	for (size_t i = 0; i < sizeof begun / sizeof *begun; i++) {
		uint32_t value = begun[i];

		progress_deinit(&r->p);
		progress_init(&r->p);
		watch_from(r, 64, value);
		go_on(r, 64, &value, 60);
		assert_int_equal(only_pace(r)->turns, 6000);
		assert_int_equal(only_pace(r)->counted, 120);
		assert_int_equal(only_pace(r)->seen, 6 + 120);
	}
}

/* Nor is it believed where it would be most of what is known. */
static void test_begins_with_less(void **state)
{
	struct rig *r = *state;
	uint32_t value = 300;

	watch_from(r, 64, value);
	go_on(r, 64, &value, 1);
	assert_int_equal(only_pace(r)->turns, 100);
	go_on(r, 64, &value, 1);
	assert_int_equal(only_pace(r)->turns, 200 + 150);
}

/* What was counted before a flush is not what a word begins with after it. */
static void test_begins_once(void **state)
{
	struct rig *r = *state;
	uint32_t value = 600;

	watch_from(r, 64, value);
	go_on(r, 64, &value, 60);
	assert_int_equal(only_pace(r)->turns, 6300);
	progress_clear(&r->p);
	watch_from(r, 72, value = 600);
	go_on(r, 72, &value, 60);
	assert_int_equal(only_pace(r)->turns, 6000);
}

/* Memory that is another thing by now was not reset, and what was before still counts. */
static void test_end_is_no_reset(void **state)
{
	struct rig *r = *state;
	uint32_t value = 0;

	watch_from(r, 64, value);
	for (unsigned i = 0; i < 10; i++) {
		go_on(r, 64, &value, 11);
		move_by(r, 64, 4, 2, &here);
		read_after(r, 10, 64, value = 100);
	}
	go_on(r, 64, &value, 1);
	for (unsigned i = 0; i < 30; i++)
		read_after(r, 10, 64, value = (uint32_t)-1000000 + i * 7777);
	/* Always reset at 1150: 50 turns after each, once 50 before. */
	assert_int_equal(only_pace(r)->turns, 100 * 111 + 10 * 50 + 50);
}

/* In another thread the instruction is seen as well, with words that nobody watches. */
static void test_tells_what_was_not_counted(void **state)
{
	struct rig *r = *state;
	const struct progress_thread second = {.id = SHADOW_PROCESS(13, 3), .who = 5};
	const struct shadow_moved m = {.address = 8, .change = 1, .times = 1, .size = 4};
	const struct progress_pace *t;
	uint32_t value = 0;

	progress_moved(&r->p, &second, &m, &here);
	progress_moved(&r->p, &second, &m, &other);
	assert_null(only_pace(r));
	watch_from(r, 64, value);
	go_on(r, 64, &value, 1);
	progress_settle(&r->p);
	assert_int_equal(r->p.paces.n, 2);
	assert_int_equal(progress_find(&r->p, 7, 5, &t), 1);
	assert_int_equal(t->by.offset, here.offset);
	assert_int_equal(t->turns, 0);
	assert_int_equal(t->counted, 0);
	assert_int_equal(t->seen, 1);
}

/* After a flush the same thread is somebody else's number, and all begins anew. */
static void test_numbers_change(void **state)
{
	struct rig *r = *state;
	const struct progress_thread renamed = {.id = thread.id, .who = 7};
	struct shadow_reading reading = {0};
	uint32_t value = 1000;

	watch_from(r, 68, value);
	go_on(r, 68, &value, 60);
	assert_int_equal(only_pace(r)->who, 4);
	progress_clear(&r->p);
	assert_null(only_pace(r));
	go_on(r, 68, &value, 60);
	reading.word[0][0] = 68;
	reading.word[0][1] = (uint64_t)value << 32;
	reading.ns = r->ns += 10 * US;
	progress_read(&r->p, &renamed, &reading, 1, r->ns);
	assert_non_null(only_pace(r));
	assert_int_equal(only_pace(r)->who, 7);
	assert_int_equal(only_pace(r)->turns, 6000);
}

/* So many bursts, 100 turns from one to the next, of a word that is reset by whoever reads `top`.
 */
static void go_round(
	struct rig *r, uint64_t address, uint32_t *value, uint32_t top, unsigned bursts)
{
	for (; bursts; bursts--) {
		move_by(r, address, 4, 2, &here);
		*value += 200;
		if (*value >= top)
			*value -= top;
		read_after(r, 10, address, *value);
	}
}

/* Where it is always reset at the same value, no turn is lost. */
static void test_adds_up_rounds(void **state)
{
	struct rig *r = *state;
	uint32_t value = 0;

	watch_from(r, 64, value);
	go_round(r, 64, &value, 3010, 300);
	assert_in_range(only_pace(r)->turns, 30000 - 20 * 10, 30000);
	assert_int_equal(only_pace(r)->counted, 600);
	assert_int_equal(only_pace(r)->seen, 6 + 600);
}

/* The same where that is often, as long as it cannot be twice between two reads. */
static void test_adds_up_many_rounds(void **state)
{
	struct rig *r = *state;
	uint32_t value = 0;

	watch_from(r, 64, value);
	go_round(r, 64, &value, 702, 300);
	assert_in_range(only_pace(r)->turns, 30000 - 90 * 2, 30000);
	value = 0;
	watch_from(r, 72, value);
	go_round(r, 72, &value, 302, 300);
	assert_in_range(only_pace(r)->turns, 30000 - 90 * 2, 30000); /* nothing is added */
}

/* Else there were as many turns before as after, in the mean. */
static void test_doubles_what_came_after(void **state)
{
	struct rig *r = *state;
	uint32_t value = 0;

	watch_from(r, 64, value);
	for (unsigned i = 0; i < 10; i++) {
		go_on(r, 64, &value, 11 + i);
		move_by(r, 64, 4, 2, &here);
		read_after(r, 10, 64, value = 100 - 20 * (i % 5));
	}
	go_on(r, 64, &value, 1);
	assert_int_equal(
		only_pace(r)->turns, 100 * (110 + 45 + 1) + 2 * 2 * (50 + 40 + 30 + 20 + 10));
	assert_int_equal(only_pace(r)->counted, 2 * (110 + 45 + 1 + 10));
}

/* Some are reset to -1. */
static void test_resets_below_nought(void **state)
{
	struct rig *r = *state;
	uint32_t value = 0;

	watch_from(r, 64, value);
	go_on(r, 64, &value, 60);
	move_by(r, 64, 4, 2, &here);
	read_after(r, 10, 64, value = (uint32_t)-2);
	go_on(r, 64, &value, 60);
	assert_int_equal(only_pace(r)->turns, 12000);
	assert_int_equal(only_pace(r)->counted, 2 * 121);
}

/* What goes back to anywhere is not reset, and left out with what was seen of it; so is what is no
 * number of steps, or goes too far. */
static void test_leaves_out_leaps(void **state)
{
	struct rig *r = *state;
	uint32_t value = 1000;

	watch_from(r, 64, value);
	go_on(r, 64, &value, 60);
	move_by(r, 64, 4, 2, &here);
	read_after(r, 10, 64, 6006);
	read_after(r, 10, 64, 6007);
	move_by(r, 64, 4, 2, &here);
	read_after(r, 10, 64, 2);
	read_after(r, 1, 64, value = 1000007); /* too far for the time */
	go_on(r, 64, &value, 60);
	assert_int_equal(only_pace(r)->turns, 500 + 12000); /* it began with 500 */
	assert_int_equal(only_pace(r)->counted, 6 + 240);
	assert_int_equal(only_pace(r)->seen, 250);
}

/* What is reset again and again may be so twice between two reads. */
static void test_mistrusts_many_resets(void **state)
{
	struct rig *r = *state;
	uint32_t value = 0;

	watch(r, 64);
	for (unsigned i = 0; i < 4; i++) {
		read_after(r, 10, 64, value = 0);
		go_on(r, 64, &value, 20);
	}
	assert_non_null(only_pace(r));
	for (unsigned i = 0; i < 40; i++) {
		read_after(r, 10, 64, value = 0);
		go_on(r, 64, &value, 2);
	}
	assert_null(only_pace(r));
}

/* Over the end of 32 bits. */
static void test_goes_round(void **state)
{
	struct rig *r = *state;
	uint32_t value = UINT32_MAX - 1001;

	watch_from(r, 64, value);
	go_on(r, 64, &value, 60);
	assert_int_equal(only_pace(r)->turns, 6000);
}

/* What became something else still tells what it counted before. */
static void test_retires(void **state)
{
	struct rig *r = *state;
	uint32_t value = 0;

	watch(r, 64);
	assert_int_equal(watched(r), 1);
	read_after(r, 10, 64, value);
	go_on(r, 64, &value, 60);
	for (uint32_t i = 0; i < 50; i++)
		read_after(r, 10, 64, i % 2 * 77777);
	assert_int_equal(watched(r), 0);
	assert_int_equal(only_pace(r)->turns, 6000);
	progress_clear(&r->p);
	assert_null(only_pace(r));
}

/* A word that two instructions move is neither's. */
static void test_wants_one_writer(void **state)
{
	struct rig *r = *state;
	uint32_t value = 0;

	watch_from(r, 64, value);
	go_on(r, 64, &value, 60);
	assert_non_null(only_pace(r));
	move_by(r, 64, 2, 1, &other);
	assert_null(only_pace(r));
}

/* An instruction that moves other words as well has more turns; one that mostly does is not worth
 * it. */
static void test_counts_other_words(void **state)
{
	struct rig *r = *state;
	const struct progress_pace *first;
	uint32_t value = 0;

	for (uint64_t i = 0; i < 30; i++)
		move_by(r, 64 + i % 6 * 8, 2, 1, &other);
	assert_int_equal(watched(r), 99);
	watch(r, 256);
	assert_int_equal(watched(r), 1);
	read_after(r, 10, 256, value);
	for (uint64_t i = 0; i < 60; i++) {
		go_on(r, 256, &value, 1);
		move_by(r, 1024 + i * 8, 2, 1, &here);
	}
	progress_settle(&r->p);
	assert_int_equal(progress_find(&r->p, 7, 4, &first), 1);
	assert_int_equal(first->turns, 6000);
	assert_int_equal(first->counted, 120);
	assert_int_equal(first->seen, 6 + 120 + 60);
	assert_int_equal(progress_find(&r->p, 7, 5, &first), 0);
	assert_int_equal(progress_find(&r->p, 8, 4, &first), 0);
}

/* Bursts see what will happen. Where it has not, something else moves the word back. */
static void test_mistrusts_what_goes_back(void **state)
{
	struct rig *r = *state;
	uint32_t value = 0;

	watch_from(r, 64, value);
	go_on(r, 64, &value, 60);
	assert_non_null(only_pace(r));
	for (int i = 0; i < 8; i++) {
		move_by(r, 64, 4, 2, &here);
		read_after(r, 10, 64, value += 2);
	}
	assert_null(only_pace(r));
}

/* On another CPU the thread's clock is another one: then everybody's tells what can be. */
static void test_clocks_leap(void **state)
{
	struct rig *r = *state;
	uint32_t value = 0;

	watch_from(r, 64, value);
	go_on(r, 64, &value, 60);
	r->leap = 1000 * US;
	read_after(r, 10, 64, value += 200);
	r->leap = 0;
	read_after(r, 10, 64, value += 200);
	go_on(r, 64, &value, 1);
	assert_int_equal(only_pace(r)->turns, 6300);
}

static void test_is_bounded(void **state)
{
	struct rig *r = *state;
	size_t full;

	for (uint32_t pid = 0; pid < 400; pid++)
		for (uint64_t i = 0; i < 600; i++) {
			const struct progress_thread t = {.id = SHADOW_PROCESS(pid, 1)};
			const struct progress_place by = {.offset = i, .image = 7};
			const struct shadow_moved m = {
				.address = i % 200 * 8, .change = 1, .times = 1, .size = 8};

			progress_moved(&r->p, &t, &m, &by);
		}
	full = progress_memory(&r->p);
	assert_true(full < 32 << 20);
	progress_clear(&r->p);
	progress_clear(&r->p); /* nobody was seen since */
	assert_int_equal(r->p.followed.n, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_watches_what_counts),
		TEST(test_leaves_what_does_not),
		TEST(test_counts_turns),
		TEST(test_tells_what_might_count),
		TEST(test_begins_anywhere),
		TEST(test_begins_with_less),
		TEST(test_begins_once),
		TEST(test_end_is_no_reset),
		TEST(test_tells_what_was_not_counted),
		TEST(test_numbers_change),
		TEST(test_adds_up_rounds),
		TEST(test_adds_up_many_rounds),
		TEST(test_doubles_what_came_after),
		TEST(test_resets_below_nought),
		TEST(test_leaves_out_leaps),
		TEST(test_mistrusts_many_resets),
		TEST(test_goes_round),
		TEST(test_retires),
		TEST(test_wants_one_writer),
		TEST(test_counts_other_words),
		TEST(test_mistrusts_what_goes_back),
		TEST(test_clocks_leap),
		TEST(test_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
