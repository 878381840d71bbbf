/* Random programs with frames of known sizes: what the map says is compared with what was run. */
#include "calls/map.h"

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
static size_t make_stack(struct call_frame *out)
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
		out[n - 1 - i] = (struct call_frame){IMAGE, path[i] * 256 + 256, height};
		height += size_of(path[i]);
	}
	return n;
}

/* The path if the caller of the frame at a height was told. */
static uint32_t find_told(const struct call_map *m, const struct call_frame *f, uint64_t caller,
	int64_t height, uint32_t *others)
{
	struct call_told told = {.n = 1, .callers = {{IMAGE, caller, height}}};

	return call_map_find_called(m, STACK_MAIN, f, &told, others);
}

static bool has_told(
	const struct call_map *m, const struct call_frame *f, uint64_t caller, int64_t height)
{
	struct call_told told = {.n = 1, .callers = {{IMAGE, caller, height}}};

	return call_map_has_callers(m, STACK_MAIN, f, &told);
}

static uint32_t learn_and_judge(struct call_map *m, const struct call_frame *f, size_t n)
{
	uint32_t node = call_map_path(m, NULL, f, n);
	struct call_answer a;

	call_map_count(m, call_map_judge(m, STACK_MAIN, &f[0], &(struct call_told){0}, node, &a));
	assert_int_equal(call_map_learn(m, NULL, STACK_MAIN, f, n), node);
	return node;
}

/* Whether the node is this path. */
static bool is_path(const struct call_map *m, uint32_t node, const struct call_frame *f, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (node == CALL_NONE ||
			call_tree_node(call_map_tree(m), node)->at.procedure != f[i].procedure)
			return false;
		node = call_tree_node(call_map_tree(m), node)->parent;
	}
	return node == CALL_NONE;
}

static void learn_some(struct call_map *m, int stacks)
{
	struct call_frame f[DEPTH];

	for (int i = 0; i < stacks; i++) {
		size_t n = make_stack(f);

		assert_true(is_path(m, learn_and_judge(m, f, n), f, n));
	}
}

static void test_finds_what_it_learned(void **s)
{
	struct call_map *m = call_map_create();
	struct call_frame f[DEPTH];
	uint32_t others, unique = 0, right = 0;

	(void)s;
	learn_some(m, 3000);
	for (int i = 0; i < 1000; i++) {
		size_t n = make_stack(f);
		uint32_t node;

		call_map_learn(m, NULL, STACK_MAIN, f, n);
		/* All that lead to it were learned with it, too. */
		for (size_t k = 0; k < n; k++) {
			node = call_map_find(m, STACK_MAIN, &f[k], &others);
			assert_int_not_equal(node, CALL_NONE);
			if (!others)
				assert_true(is_path(m, node, f + k, n - k));
			unique += !others;
			right += is_path(m, node, f + k, n - k);
		}
		/* Other bases are other stacks. */
		assert_int_equal(call_map_find(m, STACK_THREAD, &f[0], &others), CALL_NONE);
	}
	assert_true(unique > 1000 && right >= unique);
	call_map_destroy(m);
}

static void test_ranks(void **s)
{
	/* Two ways to procedure 3 at one height, one of them taken more often. */
	struct call_frame often[] = {{IMAGE, 3, 64}, {IMAGE, 1, 32}, {IMAGE, 9, 8}};
	struct call_frame seldom[] = {{IMAGE, 3, 64}, {IMAGE, 2, 32}, {IMAGE, 9, 8}};
	struct call_map *m = call_map_create();
	uint64_t v[PATH_VERDICTS];
	uint32_t others, a, b;

	(void)s;
	b = learn_and_judge(m, seldom, 3); /* missing */
	a = learn_and_judge(m, often, 3);  /* wrong */
	assert_int_not_equal(a, b);
	learn_and_judge(m, often, 3);     /* ambiguous: the first one is older */
	learn_and_judge(m, often, 3);     /* first */
	learn_and_judge(m, seldom, 3);    /* ambiguous */
	learn_and_judge(m, often + 1, 2); /* precise */
	call_map_verdicts(m, v);
	assert_int_equal(v[PATH_MISSING], 1);
	assert_int_equal(v[PATH_WRONG], 1);
	assert_int_equal(v[PATH_AMBIGUOUS], 2);
	assert_int_equal(v[PATH_FIRST], 1);
	assert_int_equal(v[PATH_PRECISE], 1);
	assert_true(call_map_precision(v) > 0.33 && call_map_precision(v) < 0.34);
	assert_int_equal(call_map_find(m, STACK_MAIN, &often[0], &others), a);
	assert_int_equal(others, 1);
	/* The caller tells them apart, unless it was never seen. */
	assert_int_equal(find_told(m, &often[0], often[1].procedure, often[0].height, &others), a);
	assert_int_equal(others, 0);
	assert_int_equal(find_told(m, &often[0], seldom[1].procedure, often[0].height, &others), b);
	assert_int_equal(others, 0);
	assert_int_equal(find_told(m, &often[0], often[2].procedure, often[0].height, &others), a);
	assert_int_equal(others, 2);
	call_map_destroy(m);
}

/* Each depth of a recursion is another height of one path. */
/* The way to a procedure differs two frames out, below a recursion: nobody's own caller tells. */
static void ask_for_a_frame_further_out(struct call_map *m)
{
	struct call_frame f[] = {{IMAGE, 4, 160}, {IMAGE, 3, 128}, {IMAGE, 3, 96}, {IMAGE, 3, 64},
		{IMAGE, 1, 32}, {IMAGE, 9, 8}};
	int64_t heights[CALL_TOLD];
	uint32_t a, b, others;

	a = call_map_path(m, NULL, f, 6);
	f[4].procedure = 2;
	b = call_map_path(m, NULL, f, 6);
	assert_true(call_map_ask(m, STACK_MAIN, &f[0], heights) >= 1);
	assert_int_equal(heights[0], 64);
	assert_int_equal(find_told(m, &f[0], 1, 64, &others), a);
	assert_int_equal(others, 0);
	assert_int_equal(find_told(m, &f[0], 2, 64, &others), b);
	assert_int_equal(others, 0);
	find_told(m, &f[0], 3, 160, &others);
	assert_int_equal(others, 1);
	assert_int_equal(call_map_ask(m, STACK_MAIN, &f[4], heights), 0);
}

static void test_asks(void **s)
{
	struct call_frame f[] = {{IMAGE, 4, 160}, {IMAGE, 3, 128}, {IMAGE, 3, 96}, {IMAGE, 3, 64},
		{IMAGE, 1, 32}, {IMAGE, 9, 8}};
	struct call_map *m = call_map_create(), *read = call_map_create();
	struct buf packed = {0};

	(void)s;
	call_map_learn(m, NULL, STACK_MAIN, f, 6);
	f[4].procedure = 2;
	call_map_learn(m, NULL, STACK_MAIN, f, 6);
	ask_for_a_frame_further_out(m);
	call_map_pack(m, &packed);
	assert_int_equal(call_map_add(read, packed.p, packed.n), 0);
	ask_for_a_frame_further_out(read);
	buf_deinit(&packed);
	call_map_destroy(m);
	call_map_destroy(read);
}

/* Frames of other sizes on the way: the word that is a return address of one path is none of the
 * other, and says that it is not the one. */
static void test_asks_where_heights_differ(void **s)
{
	struct call_frame a[] = {{IMAGE, 4, 160}, {IMAGE, 3, 128}, {IMAGE, 1, 64}, {IMAGE, 9, 8}};
	struct call_frame b[] = {
		{IMAGE, 4, 160}, {IMAGE, 3, 128}, {IMAGE, 3, 96}, {IMAGE, 2, 48}, {IMAGE, 9, 8}};
	struct call_map *m = call_map_create();
	int64_t heights[CALL_TOLD];
	uint32_t x, y, others;

	(void)s;
	x = call_map_learn(m, NULL, STACK_MAIN, a, 4);
	y = call_map_learn(m, NULL, STACK_MAIN, b, 5);
	assert_int_not_equal(x, y);
	assert_true(call_map_ask(m, STACK_MAIN, &a[0], heights) >= 1);
	assert_true(heights[0] == 64 || heights[0] == 128 || heights[0] == 96 || heights[0] == 48);
	/* At 64 only the first path has a frame, which the last one called. */
	assert_int_equal(find_told(m, &a[0], 77, 64, &others), y);
	assert_int_equal(others, 0);
	assert_false(has_told(m, &a[0], 77, 64));
	assert_int_equal(find_told(m, &a[0], 9, 64, &others), x);
	assert_int_equal(others, 0);
	assert_true(has_told(m, &a[0], 9, 64));
	call_map_destroy(m);
}

/* Three paths that no one word tells apart. */
static void test_asks_for_several(void **s)
{
	struct call_frame f[] = {
		{IMAGE, 4, 160}, {IMAGE, 3, 128}, {IMAGE, 5, 96}, {IMAGE, 6, 64}, {IMAGE, 9, 8}};
	struct call_told told = {.n = 2};
	struct call_map *m = call_map_create();
	uint32_t a, b, c, others;
	int64_t heights[CALL_TOLD];

	(void)s;
	a = call_map_learn(m, NULL, STACK_MAIN, f, 5);
	f[1].procedure = 2;
	b = call_map_learn(m, NULL, STACK_MAIN, f, 5);
	f[3].procedure = 7;
	c = call_map_learn(m, NULL, STACK_MAIN, f, 5);
	assert_true(call_map_ask(m, STACK_MAIN, &f[0], heights) >= 2);
	assert_int_equal(heights[0] + heights[1], 160 + 96);
	for (unsigned i = 0; i < 2; i++)
		told.callers[i] = (struct call_frame){
			IMAGE, heights[i] == 160 ? f[1].procedure : f[3].procedure, heights[i]};
	assert_int_equal(call_map_find_called(m, STACK_MAIN, &f[0], &told, &others), c);
	assert_int_equal(others, 0);
	told.callers[heights[0] == 160 ? 1 : 0].procedure = 6;
	assert_int_equal(call_map_find_called(m, STACK_MAIN, &f[0], &told, &others), b);
	assert_int_equal(others, 0);
	/* What contradicts all is not sure. */
	told.callers[heights[0] == 160 ? 0 : 1].procedure = 8;
	call_map_find_called(m, STACK_MAIN, &f[0], &told, &others);
	assert_true(others > 0);
	assert_int_not_equal(a, b);
	call_map_destroy(m);
}

/* One path is known to procedure 4, but another that calls it elsewhere is known where it would be.
 */
static void test_doubts(void **s)
{
	struct call_frame known[] = {{IMAGE, 4, 160}, {IMAGE, 1, 96}, {IMAGE, 9, 8}};
	struct call_frame other[] = {{IMAGE, 2, 96}, {IMAGE, 9, 8}};
	struct call_frame elsewhere[] = {{IMAGE, 4, 264}, {IMAGE, 2, 200}, {IMAGE, 9, 8}};
	struct call_map *m = call_map_create();
	struct call_told told = {0};
	int64_t heights[CALL_TOLD];

	(void)s;
	call_map_learn(m, NULL, STACK_MAIN, known, 3);
	call_map_learn(m, NULL, STACK_MAIN, other, 2);
	assert_int_equal(call_map_ask(m, STACK_MAIN, &known[0], heights), 0);
	assert_false(call_map_wants_told(m, STACK_MAIN, &known[0], &told));
	call_map_learn(m, NULL, STACK_MAIN, elsewhere, 3);
	assert_int_equal(call_map_ask(m, STACK_MAIN, &known[0], heights), 1);
	assert_int_equal(heights[0], 160);
	/* So who has told nothing is not sure, and who has is. */
	assert_true(call_map_wants_told(m, STACK_MAIN, &known[0], &told));
	told = (struct call_told){.n = 1, .callers = {{IMAGE, 1, 160}}};
	assert_false(call_map_wants_told(m, STACK_MAIN, &known[0], &told));
	told.callers[0].height = 96;
	assert_true(call_map_wants_told(m, STACK_MAIN, &known[0], &told));
	/* Enough stacks refute the doubt, unless one has another path. */
	for (int i = 0; i < 40; i++)
		call_map_learn(m, NULL, STACK_MAIN, known, 3);
	assert_false(call_map_wants_told(m, STACK_MAIN, &known[0], &told));
	known[1].procedure = 2;
	call_map_learn(m, NULL, STACK_MAIN, known, 3);
	assert_true(call_map_wants_told(m, STACK_MAIN, &known[0], &told));
	call_map_destroy(m);
}

/* The nearest callers were told of a frame that was never seen there. */
static void test_near(void **s)
{
	struct call_frame seen[] = {{IMAGE, 1, 96}, {IMAGE, 9, 8}};
	struct call_frame likely[] = {
		{IMAGE, 4, 196}, {IMAGE, 3, 160}, {IMAGE, 2, 96}, {IMAGE, 9, 8}};
	struct call_frame is[] = {{IMAGE, 4, 196}, {IMAGE, 5, 160}, {IMAGE, 1, 96}, {IMAGE, 9, 8}};
	struct call_told told = {.n = 3,
		.near = true,
		.callers = {{IMAGE, 5, 196}, {IMAGE, 1, 160}, {IMAGE, 9, 96}}};
	struct call_map *m = call_map_create();
	struct call_answer a;
	uint32_t node;

	(void)s;
	call_map_learn(m, NULL, STACK_MAIN, seen, 2);
	call_map_learn(m, NULL, STACK_MAIN, likely + 1, 3);
	/* The second caller is known where it is. */
	assert_true(is_path(m, call_map_guess_near(m, STACK_MAIN, &is[0], &told), is, 4));
	call_map_answer(m, STACK_MAIN, &is[0], &told, &a);
	assert_true(is_path(m, a.node, is, 4));
	assert_true(a.ranked);
	assert_int_equal(a.degree, 0);
	/* Also where another path is known, which these are not the callers of. */
	node = call_map_learn(m, NULL, STACK_MAIN, likely, 4);
	call_map_answer(m, STACK_MAIN, &is[0], &told, &a);
	assert_true(is_path(m, a.node, is, 4));
	assert_true(a.ranked);
	assert_int_equal(a.degree, 1);
	told.near = false;
	call_map_answer(m, STACK_MAIN, &is[0], &told, &a);
	assert_int_equal(a.node, node);
	/* Of those that nobody knows, who called the last one was seen to call it elsewhere. */
	told = (struct call_told){
		.n = 1, .near = true, .callers = {{IMAGE, 3, 96 + likely[0].height}}};
	likely[0].height += 96;
	likely[1].height += 96;
	call_map_learn(m, NULL, STACK_MAIN, likely + 1, 3);
	assert_true(is_path(m, call_map_guess_near(m, STACK_MAIN, &likely[0], &told), likely, 4));
	told.callers[0].procedure = 77;
	assert_int_equal(call_map_guess_near(m, STACK_MAIN, &likely[0], &told), CALL_NONE);
	told.n = 0;
	assert_int_equal(call_map_guess_near(m, STACK_MAIN, &likely[0], &told), CALL_NONE);
	call_map_destroy(m);
}

static void test_verdicts_with_a_doubt(void **s)
{
	(void)s;
	assert_int_equal(call_verdict_ranked(PATH_PRECISE), PATH_FIRST);
	assert_int_equal(call_verdict_ranked(PATH_WRONG), PATH_DOUBTED);
	assert_int_equal(call_verdict_ranked(PATH_FIRST), PATH_FIRST);
	assert_int_equal(call_verdict_ranked(PATH_AMBIGUOUS), PATH_AMBIGUOUS);
	assert_int_equal(call_verdict_ranked(PATH_MISSING), PATH_MISSING);
	for (unsigned v = 0; v < PATH_VERDICTS; v++)
		assert_non_null(call_verdict_word((enum call_verdict)v));
}

/* What was seen once goes, with what only it needs; who calls whom is still known. */
static void test_shrink(void **s)
{
	struct call_frame often[] = {{IMAGE, 4, 160}, {IMAGE, 1, 96}, {IMAGE, 9, 8}};
	struct call_frame once[] = {{IMAGE, 5, 288}, {IMAGE, 2, 192}, {IMAGE, 9, 8}};
	struct call_frame third[] = {
		{IMAGE, 5, 320}, {IMAGE, 4, 224}, {IMAGE, 1, 160}, {IMAGE, 9, 8}};
	struct call_map *m = call_map_create();
	uint64_t v[PATH_VERDICTS];
	uint32_t others, node;
	size_t memory;

	(void)s;
	call_map_learn(m, NULL, STACK_MAIN, once, 3);
	for (int i = 0; i < 3; i++) {
		call_map_learn(m, NULL, STACK_MAIN, often, 3);
		call_map_learn(m, NULL, STACK_MAIN, third, 4);
	}
	call_map_count(m, PATH_FIRST);
	call_map_settle(m);
	memory = call_map_memory(m);
	call_map_shrink(m, 2);
	assert_true(call_map_memory(m) <= memory);
	assert_int_equal(call_map_size(m), 3 + 3);
	node = call_map_find(m, STACK_MAIN, &often[0], &others);
	assert_true(is_path(m, node, often, 3));
	assert_true(is_path(m, call_map_find(m, STACK_MAIN, &third[0], &others), third, 4));
	assert_int_equal(call_map_find(m, STACK_MAIN, &once[0], &others), CALL_NONE);
	call_map_verdicts(m, v);
	assert_int_equal(v[PATH_FIRST], 1);
	assert_false(call_map_has_fresh(m));
	/* It learns on, and knows how often it was. */
	assert_int_equal(call_map_learn(m, NULL, STACK_MAIN, often, 3), node);
	call_map_learn(m, NULL, STACK_MAIN, once, 3);
	assert_true(is_path(m, call_map_find(m, STACK_MAIN, &once[0], &others), once, 3));
	call_map_settle(m);
	call_map_shrink(m, 2);
	/* 5 was called by 2, so it may be again. */
	once[0].height += 64;
	once[1].height += 64;
	call_map_learn(m, NULL, STACK_MAIN, once + 1, 2);
	assert_true(is_path(m, call_map_guess(m, STACK_MAIN, &once[0]), once, 3));
	call_map_shrink(m, 1000);
	assert_int_equal(call_map_size(m), 0);
	call_map_destroy(m);
}

static void test_recursion(void **s)
{
	struct call_frame f[202];
	struct call_map *m = call_map_create();
	uint32_t others, node;

	(void)s;
	for (int i = 0; i < 200; i++)
		f[i] = (struct call_frame){IMAGE, i % 2 ? 5 : 6, 32 * (202 - i)};
	f[200] = (struct call_frame){IMAGE, 2, 64};
	f[201] = (struct call_frame){IMAGE, 1, 32};
	node = call_map_learn(m, NULL, STACK_THREAD, f, 202);
	assert_int_equal(call_tree_node(call_map_tree(m), node)->depth, 3);
	for (int i = 0; i < 200; i += 2)
		assert_int_equal(call_map_find(m, STACK_THREAD, &f[i], &others), node);
	assert_int_equal(others, 0);
	call_map_destroy(m);
}

/* A stack whose outer frames were not seen is known if one of those that were is. */
static void test_cut_stacks(void **s)
{
	struct call_frame whole[] = {
		{IMAGE, 4, 4096}, {IMAGE, 3, 64}, {IMAGE, 1, 32}, {IMAGE, 9, 8}};
	struct call_frame cut[] = {{IMAGE, 6, 4200}, {IMAGE, 5, 4100}, {IMAGE, 4, 4096}};
	struct call_map *m = call_map_create(), *other = call_map_create();
	struct call_prefix prefix = {call_map_tree(m), CALL_NONE};
	uint32_t others, node;
	size_t n;

	(void)s;
	assert_int_equal(call_map_join(m, STACK_MAIN, cut, 3, &prefix.node), 0);
	call_map_learn(m, NULL, STACK_MAIN, whole, 4);
	n = call_map_join(m, STACK_MAIN, cut, 3, &prefix.node);
	assert_int_equal(n, 2);
	node = call_map_learn(m, &prefix, STACK_MAIN, cut, n);
	assert_int_equal(call_tree_node(call_map_tree(m), node)->depth, 5);
	assert_int_equal(call_map_find(m, STACK_MAIN, &cut[0], &others), node);
	/* And in a map that does not know who called. */
	node = call_map_learn(other, &prefix, STACK_MAIN, cut, n);
	assert_int_equal(call_tree_node(call_map_tree(other), node)->depth, 5);
	assert_int_equal(call_map_find(other, STACK_MAIN, &whole[0], &others), CALL_NONE);
	call_map_destroy(m);
	call_map_destroy(other);
}

/* Two procedures that call each other were seen to a depth; deeper is as well as known. */
static void test_guesses(void **s)
{
	struct call_frame f[] = {
		{IMAGE, 5, 240}, {IMAGE, 6, 176}, {IMAGE, 5, 128}, {IMAGE, 2, 64}, {IMAGE, 1, 32}};
	struct call_frame deeper = {IMAGE, 5, 240 + 5 * 112}, odd = {IMAGE, 5, 247};
	struct call_frame other = {IMAGE, 6, 176 + 3 * 112}, stranger = {IMAGE, 77, 240};
	struct call_map *m = call_map_create();
	uint32_t others, node;

	(void)s;
	assert_int_equal(call_map_guess(m, STACK_MAIN, &deeper), CALL_NONE);
	node = call_map_learn(m, NULL, STACK_MAIN, f, 5);
	assert_int_equal(call_map_find(m, STACK_MAIN, &deeper, &others), CALL_NONE);
	assert_int_equal(call_map_guess(m, STACK_MAIN, &deeper), node);
	assert_int_equal(call_tree_node(call_map_tree(m), call_map_guess(m, STACK_MAIN, &other))
				 ->at.procedure,
		6);
	assert_int_equal(call_map_guess(m, STACK_MAIN, &odd), CALL_NONE);
	assert_int_equal(call_map_guess(m, STACK_THREAD, &deeper), CALL_NONE);
	assert_int_equal(call_map_guess(m, STACK_MAIN, &stranger), CALL_NONE);
	call_map_destroy(m);
}

/* Who is known to call from there comes before whoever might, and was seen more often elsewhere. */
static void test_guesses_the_nearest(void **s)
{
	struct call_frame often[] = {
		{IMAGE, 5, 160}, {IMAGE, 6, 112}, {IMAGE, 2, 64}, {IMAGE, 1, 32}};
	struct call_frame once[] = {{IMAGE, 5, 128}, {IMAGE, 3, 96}, {IMAGE, 1, 32}};
	struct call_frame there[] = {{IMAGE, 3, 80}, {IMAGE, 1, 32}}, f = {IMAGE, 5, 112};
	struct call_frame far[] = {{IMAGE, 2, 16}, {IMAGE, 1, 8}};
	struct call_map *m = call_map_create();
	const struct call_node *node;

	(void)s;
	for (int i = 0; i < 9; i++) {
		call_map_learn(m, NULL, STACK_MAIN, often, 4);
		call_map_learn(m, NULL, STACK_MAIN, far, 2);
	}
	call_map_learn(m, NULL, STACK_MAIN, once, 3);
	call_map_learn(m, NULL, STACK_MAIN, there, 2);
	node = call_tree_node(call_map_tree(m), call_map_guess(m, STACK_MAIN, &f));
	assert_int_equal(call_tree_node(call_map_tree(m), node->parent)->at.procedure, 3);
	call_map_destroy(m);
}

static void test_packed(void **s)
{
	struct call_map *a = call_map_create(), *b = call_map_create(), *both = call_map_create();
	struct buf pa = {0}, pb = {0}, sum = {0}, again = {0};
	uint64_t va[PATH_VERDICTS], vb[PATH_VERDICTS], v[PATH_VERDICTS];
	size_t half;

	(void)s;
	learn_some(a, 300);
	learn_some(b, 300);
	call_map_pack(a, &pa);
	call_map_pack(b, &pb);
	assert_int_equal(call_map_add(both, pa.p, pa.n), 0);
	assert_int_equal(call_map_size(both), call_map_size(a));
	half = call_map_size(both);
	assert_int_equal(call_map_add(both, pb.p, pb.n), 0);
	assert_true(call_map_size(both) > half);
	call_map_verdicts(a, va);
	call_map_verdicts(b, vb);
	call_map_verdicts(both, v);
	for (int i = 0; i < PATH_VERDICTS; i++)
		assert_int_equal(v[i], va[i] + vb[i]);
	/* The store adds them up without knowing more than their form. */
	call_map_pack(both, &sum);
	assert_int_equal(blob_pathmap.merge(pa.p, pa.n, pb.p, pb.n, &again), 0);
	assert_int_equal(sum.n, again.n);
	assert_memory_equal(sum.p, again.p, sum.n);
	for (size_t i = 0; i < pa.n; i += 1 + pa.n / 50) {
		struct call_map *cut = call_map_create();

		assert_int_not_equal(call_map_add(cut, pa.p, i), 0);
		call_map_destroy(cut);
	}
	buf_deinit(&pa);
	buf_deinit(&pb);
	buf_deinit(&sum);
	buf_deinit(&again);
	call_map_destroy(a);
	call_map_destroy(b);
	call_map_destroy(both);
}

static void learn_only(struct call_map *m, int stacks)
{
	struct call_frame f[DEPTH];

	while (stacks--) {
		size_t n = make_stack(f);

		call_map_learn(m, NULL, STACK_MAIN, f, n);
	}
	call_map_count(m, PATH_WRONG);
}

/* What a map has learned since it was settled is what another learned that saw nothing before. */
static void test_fresh(void **s)
{
	struct call_map *m = call_map_create(), *since = call_map_create();
	struct call_frame taught = {IMAGE, 99999, 4096};
	struct buf fresh = {0}, whole = {0};
	uint64_t before;

	(void)s;
	assert_false(call_map_has_fresh(m));
	learn_some(m, 200);
	assert_true(call_map_has_fresh(m));
	call_map_settle(m);
	assert_false(call_map_has_fresh(m));
	before = state;
	learn_only(m, 300);
	call_map_teach(m, 0, &taught, 7);
	call_map_pack_fresh(m, &fresh);
	state = before;
	learn_only(since, 300);
	call_map_pack(since, &whole);
	assert_int_equal(fresh.n, whole.n);
	assert_memory_equal(fresh.p, whole.p, whole.n);
	buf_deinit(&fresh);
	buf_deinit(&whole);
	call_map_destroy(m);
	call_map_destroy(since);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_finds_what_it_learned),
		cmocka_unit_test(test_ranks),
		cmocka_unit_test(test_asks),
		cmocka_unit_test(test_asks_where_heights_differ),
		cmocka_unit_test(test_asks_for_several),
		cmocka_unit_test(test_doubts),
		cmocka_unit_test(test_near),
		cmocka_unit_test(test_verdicts_with_a_doubt),
		cmocka_unit_test(test_recursion),
		cmocka_unit_test(test_shrink),
		cmocka_unit_test(test_cut_stacks),
		cmocka_unit_test(test_guesses),
		cmocka_unit_test(test_guesses_the_nearest),
		cmocka_unit_test(test_packed),
		cmocka_unit_test(test_fresh),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
