#include "calls/tree.h"

#include "base/buf.h"
#include "store/contexts.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define EXE 1
#define LIB 2

static uint32_t node(
	struct call_tree *t, uint32_t parent, uint64_t image, uint64_t procedure, uint64_t site)
{
	return call_tree_child(t, parent,
		&(struct call_place){.image = image, .procedure = procedure, .site = site});
}

static void count(struct call_tree *t, uint32_t n, uint64_t times, uint64_t metric)
{
	call_tree_node(t, n)->count += times;
	call_tree_node(t, n)->metrics[0] += metric;
}

/* main calls f from two places, g from the library; f calls itself. */
static struct call_tree *example(void)
{
	struct metric_names tsc = {1, {"tsc"}};
	struct call_tree *t = call_tree_create(&tsc);
	uint32_t top = node(t, CALL_NONE, EXE, 0x100, 0), late = node(t, top, EXE, 0x200, 0x120);
	uint32_t early = node(t, top, EXE, 0x200, 0x110), g = node(t, late, LIB, 0x100, 0x210);
	uint32_t again = call_tree_child(
		t, early, &(struct call_place){EXE, 0x200, 0x210, .recursive = true});

	count(t, top, 1, 10);
	count(t, late, 2, 20);
	count(t, early, 3, 30);
	count(t, g, 4, 40);
	count(t, again, 5, 0);
	return t;
}

static void nodes_are_found_again(void **state)
{
	struct call_tree *t = example();

	(void)state;
	assert_int_equal(call_tree_size(t), 5);
	assert_int_equal(node(t, CALL_NONE, EXE, 0x100, 0), 0);
	assert_int_equal(node(t, 0, EXE, 0x200, 0x120), 1);
	assert_int_equal(node(t, 0, EXE, 0x200, 0x130), 5);
	assert_int_equal(node(t, 2, EXE, 0x200, 0x210), 6); /* not the recursive one */
	assert_int_equal(call_tree_node(t, 6)->depth, 2);
	call_tree_destroy(t);
}

static void goes_in_order(void **state)
{
	static const uint32_t want[] = {0, 2, 4, 1, 3};
	struct call_tree *t = example();
	uint32_t at, n = 0;

	(void)state;
	call_tree_settle(t);
	for (at = call_tree_root(t); at != CALL_NONE; at = call_tree_after(t, at))
		assert_int_equal(at, want[n++]);
	assert_int_equal(n, 5);
	call_tree_destroy(t);
}

/* Packed and read again it is the same; twice, twice as much. */
static void adds_profiles(void **state)
{
	static const uint64_t blocks[] = {0x200, 0x210};
	struct path_shape shape = {.n = 2, .blocks = blocks};
	struct call_tree *t = example(), *sum = call_tree_create(NULL);
	struct buf once = {0}, twice = {0}, merged = {0};

	(void)state;
	call_tree_add_path(t, 2, &shape, 2, NULL);
	call_tree_add_path(t, 2, &shape, 1, (uint64_t[METRICS_MOST]){7});
	call_tree_pack(t, &once);
	assert_int_equal(call_tree_add(sum, once.p, once.n), 0);
	call_tree_settle(sum);
	assert_int_equal(call_tree_size(sum), 5);
	assert_int_equal(call_tree_node(sum, 1)->npaths, 1);
	assert_int_equal(call_tree_path(sum, call_tree_node(sum, 1)->path)->count, 3);
	assert_int_equal(call_tree_path(sum, call_tree_node(sum, 1)->path)->metrics[0], 7);
	assert_int_equal(call_tree_add(sum, once.p, once.n), 0);
	call_tree_pack(sum, &twice);
	assert_int_equal(blob_context.merge(once.p, once.n, once.p, once.n, &merged), 0);
	assert_int_equal(merged.n, twice.n);
	assert_memory_equal(merged.p, twice.p, merged.n);
	buf_deinit(&once);
	buf_deinit(&twice);
	buf_deinit(&merged);
	call_tree_destroy(t);
	call_tree_destroy(sum);
}

/* A tree that is made without looking for nodes is packed as the one that it is made of. */
static void appended_nodes_are_packed(void **state)
{
	struct call_tree *t = example(), *copy = call_tree_create(call_tree_metrics(t));
	struct buf packed = {0}, same = {0};

	(void)state;
	for (uint32_t i = 0; i < call_tree_size(t); i++) {
		const struct call_node *n = call_tree_node(t, i);

		assert_int_equal(call_tree_append(copy, n->parent, &n->at), i);
		count(copy, i, n->count, n->metrics[0]);
		assert_int_equal(call_tree_node(copy, i)->depth, n->depth);
	}
	assert_int_equal(call_tree_find(copy, CALL_NONE, &call_tree_node(t, 0)->at), CALL_NONE);
	call_tree_pack(t, &packed);
	call_tree_pack(copy, &same);
	assert_int_equal(same.n, packed.n);
	assert_memory_equal(same.p, packed.p, packed.n);
	buf_deinit(&packed);
	buf_deinit(&same);
	call_tree_destroy(t);
	call_tree_destroy(copy);
}

static void damage_is_refused(void **state)
{
	struct call_tree *t = call_tree_create(NULL);

	(void)state;
	assert_int_equal(call_tree_add(t, "\x00\x00\x01\x08", 4), -EBADMSG);
	assert_int_equal(call_tree_add(t, "\x00\x00\x01\x08\x00\x10\x01\x00", 8), -EBADMSG);
	call_tree_destroy(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nodes_are_found_again),
		cmocka_unit_test(goes_in_order),
		cmocka_unit_test(adds_profiles),
		cmocka_unit_test(appended_nodes_are_packed),
		cmocka_unit_test(damage_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
