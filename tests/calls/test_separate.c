/* Searches for changes, against all that could be done in small programs. */
#include "calls/separate.h"

#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { FUNCTIONS = 6, MOST = 64, SIZES = 11, STEP = 16, CASES = 60, LARGE = 600 };

static uint64_t state = 1;

static uint32_t draw(uint32_t n)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 33) % n;
}

/* ---- what changes do, computed in the simplest way ---- */

struct sizes {
	uint32_t pad[2 * FUNCTIONS];         /* of functions, then of their copies */
	uint32_t wrap[FUNCTIONS][FUNCTIONS]; /* by caller and callee */
	bool to_copy[FUNCTIONS][FUNCTIONS];  /* the same */
};

struct placed {
	uint32_t function; /* copies from FUNCTIONS on */
	int64_t height;
};

static void place_all(const struct separate_input *in, const struct sizes *z, struct placed *out)
{
	for (uint32_t i = 0; i < in->n; i++) {
		const struct separate_context *c = &in->contexts[i], *up;

		out[i] = (struct placed){c->function, c->height};
		if (c->caller == SEPARATE_NONE)
			continue;
		up = &in->contexts[c->caller];
		out[i].height += out[c->caller].height - up->height +
				 z->pad[out[c->caller].function] +
				 z->wrap[up->function][c->function];
		out[i].function += z->to_copy[up->function][c->function] ? FUNCTIONS : 0;
	}
}

static struct separate_state judge(const struct separate_input *in, const struct sizes *z)
{
	struct placed *p = calloc(in->n, sizeof *p);
	struct separate_state s = {0};
	double all = 0;
	uint32_t n = 0;

	place_all(in, z, p);
	for (uint32_t i = 0; i < in->n; i++) {
		const struct separate_context *c = in->contexts;
		bool alone = true;

		for (uint32_t k = 0; k < in->n; k++)
			alone = alone && (c[k].path == c[i].path || c[k].stack != c[i].stack ||
						 p[k].function != p[i].function ||
						 p[k].height != p[i].height);
		all += c[i].weight;
		s.samples += alone ? c[i].weight : 0;
		n += alone;
		s.deepest = p[i].height > s.deepest ? p[i].height : s.deepest;
		s.mean += c[i].weight * (double)(p[i].height - c[i].height);
	}
	free(p);
	s.samples /= all;
	s.mean /= all;
	s.paths = (double)n / in->n;
	return s;
}

static void read_changes(const struct separate_result *r, struct sizes *z)
{
	*z = (struct sizes){0};
	vec_each (c, &r->changes) {
		if (c->method == SEPARATE_PAD)
			z->pad[c->function] = c->bytes;
		else if (c->method == SEPARATE_WRAP)
			z->wrap[c->caller][c->function] = c->bytes;
		else if (c->caller == SEPARATE_NONE)
			z->pad[FUNCTIONS + c->function] = c->bytes;
		else
			z->to_copy[c->caller][c->function] = true;
	}
}

static void assert_near(double a, double b)
{
	if (a - b > 1e-9 || b - a > 1e-9)
		fail_msg("%.12f is not %.12f", a, b);
}

/* What is claimed is what the changes do. */
static void check(const struct separate_input *in, const struct separate_result *r)
{
	struct sizes z = {0};
	struct separate_state is = judge(in, &z);
	const struct separate_state *said = &r->after[SEPARATE_METHODS - 1];

	assert_near(r->before.samples, is.samples);
	assert_near(r->before.paths, is.paths);
	read_changes(r, &z);
	is = judge(in, &z);
	assert_near(said->samples, is.samples);
	assert_near(said->paths, is.paths);
	assert_near(said->mean, is.mean);
	assert_int_equal(said->deepest, is.deepest);
}

/* ---- programs ---- */

struct program {
	struct separate_context contexts[LARGE];
	bool pads[FUNCTIONS];
	struct separate_call calls[FUNCTIONS * FUNCTIONS];
	struct separate_input in;
};

/* A tree of calls, frames of few sizes; recursion included. Each context is a path of its own. */
static void make_program(struct program *p, uint32_t n, bool calls)
{
	int64_t size[FUNCTIONS];

	*p = (struct program){.in = {.contexts = p->contexts,
				      .n = n,
				      .pads = p->pads,
				      .functions = FUNCTIONS,
				      .calls = p->calls}};
	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		size[i] = STEP * (1 + draw(2));
		p->pads[i] = i < 3;
	}
	for (uint32_t i = 0; i < n; i++) {
		struct separate_context *c = &p->contexts[i];

		*c = (struct separate_context){.path = i,
			.function = i ? draw(FUNCTIONS) : 0,
			.caller = i ? draw(i) : SEPARATE_NONE,
			.height = 64,
			.weight = 1 + draw(100)};
		if (i)
			c->height = p->contexts[c->caller].height +
				    size[p->contexts[c->caller].function];
	}
	for (uint32_t i = 0; calls && i < FUNCTIONS * FUNCTIONS; i++)
		if (draw(2))
			p->calls[p->in.ncalls++] =
				(struct separate_call){i / FUNCTIONS, i % FUNCTIONS, draw(2), true};
}

static double score(const struct separate_state *s)
{
	return s->samples + s->paths;
}

static double best_of_all(const struct program *p)
{
	struct sizes z = {0};
	double best = 0;

	for (uint32_t i = 0; i < SIZES * SIZES * SIZES; i++) {
		struct separate_state s;

		z.pad[0] = STEP * (i % SIZES);
		z.pad[1] = STEP * (i / SIZES % SIZES);
		z.pad[2] = STEP * (i / SIZES / SIZES);
		s = judge(&p->in, &z);
		best = score(&s) > best ? score(&s) : best;
	}
	return best;
}

static void test_best(void **unused)
{
	double lost = 0;
	struct program p;

	(void)unused;
	for (unsigned i = 0; i < CASES; i++) {
		struct separate_result greedy;
		double best, found;

		make_program(&p, 8 + draw(12), false);
		separate_search(&p.in, &(struct separate_options){.budget = 50000}, &greedy);
		check(&p.in, &greedy);
		best = best_of_all(&p);
		found = score(&greedy.after[SEPARATE_PAD]);
		assert_true(found >= score(&greedy.before));
		lost += best - found;
		separate_result_deinit(&greedy);
	}
	assert_true(lost / CASES < 0.02); /* of 2 */
}

/* With all kinds of changes, and many contexts; a stack that may not grow much. */
static void test_large(void **unused)
{
	double better = 0;
	struct program p;

	(void)unused;
	for (unsigned i = 0; i < 8; i++) {
		struct separate_options o = {
			.growth = i & 1 ? 1.13 : 0, .budget = 500000, .seed = i};
		struct separate_result greedy, chance;

		make_program(&p, LARGE, true);
		separate_search(&p.in, &o, &greedy);
		check(&p.in, &greedy);
		o.random = true;
		separate_search(&p.in, &o, &chance);
		check(&p.in, &chance);
		for (int k = 1; k < SEPARATE_METHODS; k++)
			assert_true(score(&greedy.after[k]) >= score(&greedy.after[k - 1]) - 1e-9);
		assert_true(chance.after[0].paths >= chance.before.paths);
		better += score(&greedy.after[0]) - score(&chance.after[0]);
		if (o.growth > 0) {
			assert_true((double)greedy.after[2].deepest <
				    1.13 * (double)greedy.before.deepest);
			assert_true((double)chance.after[2].deepest <
				    1.13 * (double)greedy.before.deepest);
		}
		separate_result_deinit(&greedy);
		separate_result_deinit(&chance);
	}
	assert_true(better > 0);
}

/* The paper's Figure 4: the same functions in another order, which no frame size tells. */
static void test_order(void **unused)
{
	const struct separate_context contexts[] = {
		{0, 0, SEPARATE_NONE, 0, 16, 1}, /* main */
		{1, 1, 0, 0, 32, 1},             /* A */
		{2, 2, 1, 0, 48, 1},             /* A B */
		{3, 3, 2, 0, 64, 5},             /* A B D */
		{4, 2, 0, 0, 32, 1},             /* B */
		{5, 1, 4, 0, 48, 1},             /* B A */
		{6, 3, 5, 0, 64, 5},             /* B A D */
	};
	const bool pads[FUNCTIONS] = {true, true, true, true};
	struct separate_call calls[] = {{1, 2, true, false}};
	struct separate_input in = {contexts, 7, pads, 4, calls, 1};
	struct separate_result r;

	(void)unused;
	separate_search(&in, &(struct separate_options){0}, &r);
	check(&in, &r);
	assert_near(r.before.paths, 5.0 / 7);
	assert_near(r.after[SEPARATE_PAD].paths, 5.0 / 7);
	assert_near(r.after[SEPARATE_WRAP].paths, 1);
	assert_int_equal(r.changes.n, 1);
	assert_int_equal(r.shared[3], SHARED_BEFORE);
	assert_int_equal(r.shared[1], 0);
	assert_int_equal(r.extra[3], r.changes.p[0].bytes);
	separate_result_deinit(&r);

	calls[0] = (struct separate_call){1, 2, false, true};
	separate_search(&in, &(struct separate_options){0}, &r);
	check(&in, &r);
	assert_near(r.after[SEPARATE_CLONE].paths, 1);
	separate_result_deinit(&r);
}

/* Contexts of one path at one place are no confusion, nor are those of other stacks. */
static void test_same(void **unused)
{
	const struct separate_context contexts[] = {
		{0, 0, SEPARATE_NONE, 0, 16, 1},
		{1, 1, 0, 0, 32, 1},
		{1, 1, 0, 0, 32, 1},
		{2, 1, SEPARATE_NONE, 1, 32, 1},
	};
	const bool pads[FUNCTIONS] = {true, true};
	struct separate_input in = {contexts, 4, pads, 2, NULL, 0};
	struct separate_result r;

	(void)unused;
	separate_search(&in, &(struct separate_options){0}, &r);
	check(&in, &r);
	assert_near(r.before.samples, 1);
	assert_int_equal(r.changes.n, 0);
	separate_result_deinit(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_best),
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
