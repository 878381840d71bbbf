/* Stacks of a random program that recurs: unfolded, every step is one of its frames' sizes. */
#include "calls/unfold.h"

#include "base/buf.h"

#include <stdlib.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { IMAGE = 100, PROCEDURES = 12, DEPTH = 20, FIRST = 64, STACKS = 400 };

static uint64_t state = 1;

static uint32_t draw(uint32_t n)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 33) % n;
}

/* Powers of two: a sum of a few tells which ones they are. */
static int64_t size_of(uint64_t procedure)
{
	return 16ll << procedure / 256;
}

/* Innermost first; from 0 anybody, who may call themselves, lower and higher ones. */
static size_t make_stack(struct call_frame *out)
{
	size_t n = 1 + draw(DEPTH);
	int64_t height = FIRST;

	for (size_t i = 0; i < n; i++) {
		uint64_t procedure = i ? 256 * draw(PROCEDURES) + 1 : 1;

		out[n - 1 - i] = (struct call_frame){IMAGE, procedure, height};
		height += size_of(procedure);
	}
	return n;
}

static uint64_t procedure_of(const struct call_map *m, const struct unfolded_context *c)
{
	return call_tree_node(call_map_tree(m), c->path)->at.procedure;
}

/* Whether there is a context of the stack's frame, called as in the stack. */
static bool has_step(const struct call_map *m, const struct unfolded_context *list, size_t n,
	const struct call_frame *f)
{
	for (size_t i = 0; i < n; i++) {
		const struct unfolded_context *c = &list[i];

		if (c->height == f[0].height && procedure_of(m, c) == f[0].procedure &&
			c->caller != CALL_NONE && list[c->caller].height == f[1].height &&
			procedure_of(m, &list[c->caller]) == f[1].procedure)
			return true;
	}
	return false;
}

static void check_steps(const struct call_map *m, const struct unfolded_context *list, size_t n)
{
	uint64_t sampled = 0;

	for (size_t i = 0; i < n; i++) {
		const struct unfolded_context *c = &list[i];

		sampled += c->sampled;
		if (c->height == FIRST) {
			assert_int_equal(c->caller, CALL_NONE);
			continue;
		}
		assert_true(c->caller < i);
		assert_int_equal(c->height,
			list[c->caller].height + size_of(procedure_of(m, &list[c->caller])));
	}
	assert_int_equal(sampled, STACKS);
}

static void test_steps(void **unused)
{
	struct call_map *m = call_map_create(), *stored = call_map_create();
	struct call_frame f[DEPTH];
	struct unfolded_context *list;
	struct buf packed = {0};
	size_t n = 0;

	(void)unused;
	for (unsigned i = 0; i < STACKS; i++)
		call_map_learn(m, NULL, STACK_MAIN, f, n = make_stack(f));
	size_t contexts = call_map_unfold(m, &list);
	assert_true(contexts > STACKS);
	check_steps(m, list, contexts);
	assert_true(n < 2 || has_step(m, list, contexts, f));
	free(list);

	call_map_pack(m, &packed);
	assert_int_equal(call_map_add(stored, packed.p, packed.n), 0);
	assert_int_equal(call_map_unfold(stored, &list), contexts);
	check_steps(stored, list, contexts);
	free(list);
	buf_deinit(&packed);
	call_map_destroy(m);
	call_map_destroy(stored);
}

/* A stack that is joined to a known path does not say how far from its caller it is. */
static void test_joined(void **unused)
{
	struct call_map *m = call_map_create();
	const struct call_frame whole[] = {{IMAGE, 1, 96}, {IMAGE, 2, 64}};
	const struct call_frame cut[] = {{IMAGE, 4, 176}, {IMAGE, 3, 144}};
	struct call_prefix prefix = {call_map_tree(m), CALL_NONE};
	struct unfolded_context *list;

	(void)unused;
	prefix.node = call_map_learn(m, NULL, STACK_MAIN, whole, 2);
	call_map_learn(m, &prefix, STACK_MAIN, cut, 2);
	assert_int_equal(call_map_unfold(m, &list), 4);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(list[i].caller, i ? i - 1 : CALL_NONE);
	free(list);
	call_map_destroy(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_steps),
		cmocka_unit_test(test_joined),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
