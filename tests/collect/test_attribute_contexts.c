/*
 * Call paths of samples that tell the height of the stack, by stacks that were told before: which
 * ones are sure, and what samples are asked to tell. All frames are of procedures that have just
 * been called, so each is one word.
 */
#include "collect/attribute_rig.h"

#include "collect/cgroup.h"
#include "collect/driver.h"
#include "collect/image_cache.h"
#include "collect/process.h"

/* Differently made, or the compiler makes one of them. */
static volatile int touched;
__attribute__((noinline)) static void leaf(void)
{
	touched = 1;
}
__attribute__((noinline)) static void left(void)
{
	touched += 2;
}
__attribute__((noinline)) static void right(void)
{
	touched ^= 3;
}
__attribute__((noinline)) static void middle(void)
{
	touched *= 4;
}
__attribute__((noinline)) static void first(void)
{
	touched -= 5;
}

typedef void procedure(void);
#define BASE 0x7ff000000000ull
#define MOST 8

static void create_with(enum contexts_how how)
{
	const struct attribution_options o = {.nevents = 2, .contexts = how};

	attribution_destroy(a);
	assert_int_equal(attribution_create(&o, &a, NULL), 0);
	tell_program(1, PID(1), "program");
}

/* A stack of so many frames, innermost first, as the kernel has followed it. */
struct stack {
	struct driver_stack s;
	uint64_t words[MOST];
};

static struct stack stack_of(procedure *const *frames, size_t n)
{
	struct stack k = {.s = {.time = 10 * US,
				  .base = BASE,
				  .rip = pc_of(frames[0]),
				  .pid = (uint32_t)PID(1),
				  .tid = (uint32_t)PID(1),
				  .trail = 1,
				  .learn = 1,
				  .size = (uint32_t)(n * sizeof(uint64_t))}};

	k.s.pc = k.s.rip;
	k.s.r[4] = BASE - 8 * n;
	k.s.context.where = n | (uint64_t)WHERE_MAIN << WHERE_KIND_SHIFT;
	for (size_t i = 1; i < n; i++)
		k.words[i - 1] = (pc_of(frames[i]) + 1) | (uint64_t)(i - 1) << CALLER_SHIFT;
	k.words[n - 1] = (uint64_t)(n - 1) << CALLER_SHIFT;
	return k;
}

/* Returns what samples like it are asked to tell. */
static uint64_t learn(procedure *const *frames, size_t n)
{
	struct stack k = stack_of(frames, n);

	return attribution_stack(a, &k.s, (const uint8_t *)k.words);
}

static void tell_at(procedure *p, size_t depth, uint64_t flags, procedure *caller)
{
	uint64_t ask;

	attribution_sample(a,
		&(struct sample){.pc = pc_of(p),
			.time = 20 * US,
			.pid = PID(1),
			.tid = PID(1),
			.count = 1,
			.where = depth | flags,
			.caller = {caller ? (pc_of(caller) + 1) | 1ull << CALLER_SHIFT : 0}},
		&ask);
}

static struct contexts_statistics settled(void)
{
	struct contexts_statistics st;

	flush(1000);
	assert_true(attribution_contexts(a, &st));
	return st;
}

static procedure *const by_left[] = {leaf, left, first};
static procedure *const elsewhere[] = {leaf, right, middle, first};
static procedure *const rival[] = {right, first};

static void test_unique(void **state)
{
	struct contexts_statistics st;

	(void)state;
	create_with(CONTEXTS_INFERRED);
	assert_int_equal(learn(by_left, 3), 0);
	tell_at(leaf, 3, 0, NULL);
	st = settled();
	assert_int_equal(st.walked, 1);
	assert_int_equal(st.unique, 1);
	assert_int_equal(st.ranked + st.unknown, 0);
}

/* Its context was new, and its stack was not taken: that another one's leads here is no proof. */
static void test_held(void **state)
{
	struct contexts_statistics st;

	(void)state;
	create_with(CONTEXTS_INFERRED);
	learn(by_left, 3);
	tell_at(leaf, 3, WHERE_HELD, NULL);
	tell_at(leaf, 3, 0, NULL);
	st = settled();
	assert_int_equal(st.unique, 1);
	assert_int_equal(st.ranked, 1);
	assert_int_equal(st.unknown, 0);
}

/* Who else calls the leaf is known where it would have to be: the first one already is asked. */
static void test_asks_at_once(void **state)
{
	(void)state;
	create_with(CONTEXTS_INFERRED);
	learn(elsewhere, 4);
	learn(rival, 2);
	assert_int_equal(learn(by_left, 3), 1);
}

static void test_doubts(void **state)
{
	struct contexts_statistics st;

	(void)state;
	create_with(CONTEXTS_INFERRED);
	learn(elsewhere, 4);
	learn(rival, 2);
	learn(by_left, 3);
	tell_at(leaf, 3, 0, NULL);
	st = settled();
	assert_int_equal(st.ranked, 1);
	assert_int_equal(st.unique, 0);
	/* Who has told its caller is sure. */
	tell_at(leaf, 3, 0, left);
	st = settled();
	assert_int_equal(st.ranked, 1);
	assert_int_equal(st.unique, 1);
}

/* A stack that is only looked at. */
static void judge(procedure *const *frames, size_t n, bool held)
{
	struct stack k = stack_of(frames, n);

	k.s.learn = 0;
	k.s.judge = 1;
	k.s.context.where |= held ? WHERE_HELD : 0;
	attribution_stack(a, &k.s, (const uint8_t *)k.words);
}

static void test_verdicts(void **state)
{
	static procedure *const other[] = {leaf, middle, first};
	static procedure *const nowhere[] = {middle, left, right, first};
	struct contexts_statistics st;

	(void)state;
	create_with(CONTEXTS_JUDGED);
	learn(by_left, 3);
	judge(by_left, 3, false);
	judge(other, 3, false);
	judge(by_left, 3, true);
	judge(other, 3, true);
	judge(nowhere, 4, true);
	st = settled();
	assert_int_equal(st.verdicts[PATH_PRECISE], 1);
	assert_int_equal(st.verdicts[PATH_WRONG], 1);
	assert_int_equal(st.verdicts[PATH_FIRST], 1);
	assert_int_equal(st.verdicts[PATH_DOUBTED], 1);
	assert_int_equal(st.verdicts[PATH_MISSING], 1);
	assert_int_equal(st.verdicts[PATH_AMBIGUOUS], 0);
}

/* New, not taken, but its callers are told: known by where the second one is. */
static void test_near(void **state)
{
	static procedure *const other[] = {leaf, middle, right, first};
	struct contexts_statistics st;
	struct stack k;

	(void)state;
	create_with(CONTEXTS_JUDGED);
	learn(rival, 2);
	learn(by_left, 3);
	k = stack_of(other, 4);
	k.s.learn = 0;
	k.s.judge = 1;
	k.s.context.where |= WHERE_HELD | WHERE_NEAR;
	for (unsigned i = 0; i < 3; i++)
		k.s.context.caller[i] = k.words[i] + (1ull << CALLER_SHIFT);
	attribution_stack(a, &k.s, (const uint8_t *)k.words);
	st = settled();
	assert_int_equal(st.verdicts[PATH_FIRST], 1);
}

/* Where there is no room for all paths, those stay that are taken again and again. */
static void test_most_seen_stay(void **state)
{
	struct contexts_statistics st;

	(void)state;
	create_with(CONTEXTS_INFERRED);
	for (unsigned i = 0; i < 40000; i++) {
		struct stack k = stack_of(elsewhere, 4);

		k.s.base += 16 + 8 * (uint64_t)i;
		attribution_stack(a, &k.s, (const uint8_t *)k.words);
		if (i % 1000 == 0)
			learn(by_left, 3);
	}
	st = settled();
	assert_true(st.bytes < 64 << 20);
	assert_int_equal(st.heights, 3);
	tell_at(leaf, 3, 0, left);
	st = settled();
	assert_int_equal(st.unique, 1);
	assert_int_equal(st.unknown, 0);
}

static uint32_t place_nothing(void *arg, uint64_t pc, uint64_t *offset)
{
	(void)arg, (void)offset;
	assert_true((int64_t)pc >= 0);
	return IMAGE_NUMBER_UNKNOWN;
}

/* What looks like a frame pointer leads to any words: those of the kernel are not looked up. */
static void test_no_caller_in_the_kernel(void **state)
{
	const uint64_t words[] = {BASE, 0xffffffff81000000};
	struct cgroups *cgroups = cgroups_create("");
	struct process_table *processes = process_table_create(cgroups, false);
	struct image_cache *images = image_cache_create("", false);
	struct contexts *c = contexts_create(images, processes, CONTEXTS_INFERRED);
	struct stack k = stack_of(by_left, 2);
	struct contexts_statistics st;

	(void)state;
	k.s.base += 1 << 16;
	k.s.trail = 0;
	k.s.size = sizeof words;
	k.s.r[4] = k.s.r[5] = BASE - sizeof words;
	contexts_stack(
		c, &(struct context_stack){
			   .stack = &k.s, .bytes = (const uint8_t *)words, .place = place_nothing});
	contexts_statistics(c, &st);
	assert_int_equal(st.ends[WALK_STRANGE], 1);
	contexts_destroy(c);
	image_cache_destroy(images);
	process_table_destroy(processes);
	cgroups_destroy(cgroups);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_unique, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_held, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_asks_at_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_doubts, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_verdicts, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_near, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_most_seen_stay, set_up, tear_down),
		cmocka_unit_test(test_no_caller_in_the_kernel),
	};
	return cmocka_run_group_tests(tests, set_up_all, tear_down_all);
}
