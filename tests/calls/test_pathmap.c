/* Random programs with frames of known sizes: what the map says is compared with what was run. */
#include "calls/pathmap.h"

#include "base/buf.h"
#include "store/contexts.h"

#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { IMAGE = 100, PROCEDURES = 40, DEPTH = 12, FIRST = 16 };

static uint64_t state = 1;

static uint32_t draw(uint32_t n)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 33) % n;
}

static const int64_t sizes[PROCEDURES] = {16, 16, 32, 48, 16, 64, 96, 32, 16, 128, 240, 48};

static int64_t size_of(uint32_t procedure)
{
	return sizes[procedure] ? sizes[procedure] : 16 * (1 + (procedure * 7) % 5);
}

/* A stack, innermost first; who calls whom is a graph without cycles. */
static size_t make_stack(struct path_frame *out)
{
	uint32_t path[DEPTH], n = 0, at = 0;
	int64_t height = FIRST;

	while (n < DEPTH && at < PROCEDURES) {
		path[n++] = at;
		at += 1 + draw(4);
		if (n > 2 && !draw(5))
			break;
	}
	for (uint32_t i = 0; i < n; i++) {
		out[n - 1 - i] = (struct path_frame){IMAGE, path[i] * 256 + 256, height};
		height += size_of(path[i]);
	}
	return n;
}

/* Whether the node is this path. */
static bool is_path(const struct path_map *m, uint32_t node, const struct path_frame *f, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (node == CALL_NONE ||
			call_tree_node(path_map_tree(m), node)->at.procedure != f[i].procedure)
			return false;
		node = call_tree_node(path_map_tree(m), node)->parent;
	}
	return node == CALL_NONE;
}

static void learn_some(struct path_map *m, int stacks)
{
	struct path_frame f[DEPTH];

	for (int i = 0; i < stacks; i++) {
		size_t n = make_stack(f);

		assert_true(is_path(m, path_map_learn(m, STACK_MAIN, f, n, true), f, n));
	}
}

static void test_finds_what_it_learned(void **s)
{
	struct path_map *m = path_map_create();
	struct path_frame f[DEPTH];
	uint32_t others, unique = 0, right = 0;

	(void)s;
	learn_some(m, 3000);
	for (int i = 0; i < 1000; i++) {
		size_t n = make_stack(f);
		uint32_t node;

		path_map_learn(m, STACK_MAIN, f, n, false);
		/* All that lead to it were learned with it, too. */
		for (size_t k = 0; k < n; k++) {
			node = path_map_find(m, STACK_MAIN, &f[k], &others);
			assert_int_not_equal(node, CALL_NONE);
			if (!others)
				assert_true(is_path(m, node, f + k, n - k));
			unique += !others;
			right += is_path(m, node, f + k, n - k);
		}
		/* Other bases are other stacks. */
		assert_int_equal(path_map_find(m, STACK_THREAD, &f[0], &others), CALL_NONE);
	}
	assert_true(unique > 1000 && right >= unique);
	path_map_destroy(m);
}

static void test_ranks(void **s)
{
	/* Two ways to procedure 3 at one height, one of them taken more often. */
	struct path_frame often[] = {{IMAGE, 3, 64}, {IMAGE, 1, 32}, {IMAGE, 9, 8}};
	struct path_frame seldom[] = {{IMAGE, 3, 64}, {IMAGE, 2, 32}, {IMAGE, 9, 8}};
	struct path_map *m = path_map_create();
	uint64_t v[PATH_VERDICTS];
	uint32_t others, a, b;

	(void)s;
	b = path_map_learn(m, STACK_MAIN, seldom, 3, true); /* missing */
	a = path_map_learn(m, STACK_MAIN, often, 3, true);  /* wrong */
	assert_int_not_equal(a, b);
	path_map_learn(m, STACK_MAIN, often, 3, true);     /* ambiguous: the first one is older */
	path_map_learn(m, STACK_MAIN, often, 3, true);     /* first */
	path_map_learn(m, STACK_MAIN, seldom, 3, true);    /* ambiguous */
	path_map_learn(m, STACK_MAIN, often + 1, 2, true); /* precise */
	path_map_verdicts(m, v);
	assert_int_equal(v[PATH_MISSING], 1);
	assert_int_equal(v[PATH_WRONG], 1);
	assert_int_equal(v[PATH_AMBIGUOUS], 2);
	assert_int_equal(v[PATH_FIRST], 1);
	assert_int_equal(v[PATH_PRECISE], 1);
	assert_true(path_map_precision(v) > 0.33 && path_map_precision(v) < 0.34);
	assert_int_equal(path_map_find(m, STACK_MAIN, &often[0], &others), a);
	assert_int_equal(others, 1);
	path_map_destroy(m);
}

/* Each depth of a recursion is another height of one path. */
static void test_recursion(void **s)
{
	struct path_frame f[202];
	struct path_map *m = path_map_create();
	uint32_t others, node;

	(void)s;
	for (int i = 0; i < 200; i++)
		f[i] = (struct path_frame){IMAGE, i % 2 ? 5 : 6, 32 * (202 - i)};
	f[200] = (struct path_frame){IMAGE, 2, 64};
	f[201] = (struct path_frame){IMAGE, 1, 32};
	node = path_map_learn(m, STACK_THREAD, f, 202, false);
	assert_int_equal(call_tree_node(path_map_tree(m), node)->depth, 3);
	for (int i = 0; i < 200; i += 2)
		assert_int_equal(path_map_find(m, STACK_THREAD, &f[i], &others), node);
	assert_int_equal(others, 0);
	path_map_destroy(m);
}

static void test_packed(void **s)
{
	struct path_map *a = path_map_create(), *b = path_map_create(), *both = path_map_create();
	struct buf pa = {0}, pb = {0}, sum = {0}, again = {0};
	uint64_t va[PATH_VERDICTS], vb[PATH_VERDICTS], v[PATH_VERDICTS];
	size_t half;

	(void)s;
	learn_some(a, 300);
	learn_some(b, 300);
	path_map_pack(a, &pa);
	path_map_pack(b, &pb);
	assert_int_equal(path_map_add(both, pa.p, pa.n), 0);
	assert_int_equal(path_map_size(both), path_map_size(a));
	half = path_map_size(both);
	assert_int_equal(path_map_add(both, pb.p, pb.n), 0);
	assert_true(path_map_size(both) > half);
	path_map_verdicts(a, va);
	path_map_verdicts(b, vb);
	path_map_verdicts(both, v);
	for (int i = 0; i < PATH_VERDICTS; i++)
		assert_int_equal(v[i], va[i] + vb[i]);
	/* The store adds them up without knowing more than their form. */
	path_map_pack(both, &sum);
	assert_int_equal(blob_pathmap.merge(pa.p, pa.n, pb.p, pb.n, &again), 0);
	assert_int_equal(sum.n, again.n);
	assert_memory_equal(sum.p, again.p, sum.n);
	for (size_t i = 0; i < pa.n; i += 1 + pa.n / 50) {
		struct path_map *cut = path_map_create();

		assert_int_not_equal(path_map_add(cut, pa.p, i), 0);
		path_map_destroy(cut);
	}
	buf_deinit(&pa);
	buf_deinit(&pb);
	buf_deinit(&sum);
	buf_deinit(&again);
	path_map_destroy(a);
	path_map_destroy(b);
	path_map_destroy(both);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_finds_what_it_learned),
		cmocka_unit_test(test_ranks),
		cmocka_unit_test(test_recursion),
		cmocka_unit_test(test_packed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
