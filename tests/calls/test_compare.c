/* Path maps against the truth: every category once, known by hand. */
#include "calls/compare.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define IMAGE 77

/* A leaf called by `caller`, which main called. */
static void learn(struct call_map *m, uint64_t leaf, int64_t height, uint64_t caller, int times)
{
	struct call_frame f[] = {{IMAGE, leaf, height}, {IMAGE, caller, 32}, {IMAGE, 9, 8}};

	while (times--)
		call_map_learn(m, NULL, STACK_MAIN, f, 3);
}

struct told {
	unsigned n[PATH_VERDICTS];
	uint64_t weight;
	bool named;
};

static void take_wrong(
	void *arg, enum call_verdict verdict, uint32_t node, uint32_t named, uint64_t weight)
{
	struct told *t = arg;

	(void)node;
	t->n[verdict]++;
	t->weight += weight;
	t->named |= named != CALL_NONE;
}

static struct call_score compare(
	struct call_map *m, struct call_map *truth, enum call_key key, struct told *told)
{
	struct call_comparison c = {
		.map = m, .truth = truth, .key = key, .wrong = take_wrong, .arg = told};
	struct call_score sum = {0}, by_site = {0};

	memset(told, 0, sizeof *told);
	call_map_compare(&c, &sum, &by_site);
	return sum;
}

static void test_categories(void **s)
{
	struct call_map *m = call_map_create(), *truth = call_map_create();
	struct call_score sum;
	struct told told;

	(void)s;
	learn(m, 1, 64, 5, 1);
	learn(m, 2, 64, 5, 3);
	learn(m, 2, 64, 6, 1);
	learn(m, 3, 64, 5, 1);
	learn(truth, 1, 64, 5, 10); /* precise */
	learn(truth, 2, 64, 5, 20); /* the likelier of two */
	learn(truth, 2, 64, 6, 30); /* the other */
	learn(truth, 3, 64, 6, 40); /* only another is known */
	learn(truth, 4, 64, 5, 50); /* none is */
	sum = compare(m, truth, CALL_BY_HEIGHT, &told);
	assert_int_equal(sum.verdicts[PATH_PRECISE].paths, 1);
	assert_int_equal(sum.verdicts[PATH_PRECISE].weight, 10);
	assert_int_equal(sum.verdicts[PATH_FIRST].weight, 20);
	assert_int_equal(sum.verdicts[PATH_AMBIGUOUS].weight, 30);
	assert_int_equal(sum.verdicts[PATH_WRONG].weight, 40);
	assert_int_equal(sum.verdicts[PATH_MISSING].weight, 50);
	assert_int_equal(sum.degrees[0].paths, 1);
	assert_int_equal(sum.degrees[1].paths, 2);
	assert_int_equal(sum.degrees[1].weight, 50);
	assert_int_equal(told.n[PATH_AMBIGUOUS] + told.n[PATH_WRONG] + told.n[PATH_MISSING], 3);
	assert_int_equal(told.weight, 120);
	assert_true(told.named);
	/* Its caller tells each of the two. */
	sum = compare(m, truth, CALL_BY_CALLER, &told);
	assert_int_equal(sum.verdicts[PATH_PRECISE].weight, 60);
	assert_int_equal(sum.verdicts[PATH_AMBIGUOUS].paths, 0);
	assert_int_equal(sum.verdicts[PATH_WRONG].weight, 40);
	call_map_destroy(m);
	call_map_destroy(truth);
}

static void add_site(struct call_site_paths *s, const struct call_map *m, uint32_t node,
	uint64_t leaf, uint64_t hash, uint64_t count)
{
	struct call_frame f = {IMAGE, leaf, 64};

	*vec_add(&s->list) = (struct call_site_path){
		.number = call_map_number(m, STACK_MAIN, &f, node), .hash = hash, .count = count};
}

/* One path, of which the map knows two ways to call it; and one that is not the map's. */
static void test_sites(void **s)
{
	struct call_map *m = call_map_create(), *truth = call_map_create();
	struct call_site_paths known = {0}, all = {0};
	struct call_comparison c = {.map = m, .truth = truth, .sites = &known, .true_sites = &all};
	struct call_frame leaf = {IMAGE, 1, 64}, other = {IMAGE, 3, 64};
	struct call_score sum = {0}, by_site = {0};
	uint32_t others;

	(void)s;
	learn(m, 1, 64, 5, 1);
	learn(m, 3, 64, 5, 1);
	learn(truth, 1, 64, 5, 1);
	learn(truth, 3, 64, 6, 1);
	add_site(&known, m, call_map_find(m, STACK_MAIN, &leaf, &others), 1, 100, 2);
	add_site(&known, m, call_map_find(m, STACK_MAIN, &leaf, &others), 1, 200, 7);
	add_site(&all, truth, call_map_find(truth, STACK_MAIN, &leaf, &others), 1, 100, 10);
	add_site(&all, truth, call_map_find(truth, STACK_MAIN, &leaf, &others), 1, 200, 20);
	add_site(&all, truth, call_map_find(truth, STACK_MAIN, &leaf, &others), 1, 300, 40);
	add_site(&all, truth, call_map_find(truth, STACK_MAIN, &other, &others), 3, 100, 80);
	call_map_compare(&c, &sum, &by_site);
	assert_int_equal(sum.verdicts[PATH_PRECISE].paths, 1);
	assert_int_equal(by_site.verdicts[PATH_AMBIGUOUS].weight, 10);
	assert_int_equal(by_site.verdicts[PATH_FIRST].weight, 20);
	assert_int_equal(by_site.verdicts[PATH_WRONG].weight, 40 + 80);
	assert_int_equal(by_site.verdicts[PATH_PRECISE].paths, 0);
	known.list.n = 1; /* the other way to call it is the only one */
	known.list.p[0].hash = 300;
	by_site = (struct call_score){0};
	call_map_compare(&c, &sum, &by_site);
	assert_int_equal(by_site.verdicts[PATH_PRECISE].weight, 40);
	vec_deinit(&known.list);
	vec_deinit(&all.list);
	call_map_destroy(m);
	call_map_destroy(truth);
}

/* What a map was learned from it names, but for paths that share a place. */
static void test_itself(void **s)
{
	struct call_map *m = call_map_create();
	struct call_score sum;
	struct told told;
	uint64_t all = 0;

	(void)s;
	for (uint64_t i = 1; i <= 40; i++)
		learn(m, i % 7 + 1, 64 + 16 * (int64_t)(i % 3), 100 + i % 5, (int)i);
	sum = compare(m, m, CALL_BY_HEIGHT, &told);
	for (unsigned d = 0; d < CALL_DEGREES; d++)
		all += sum.degrees[d].weight;
	assert_int_equal(all, 820);
	assert_int_equal(sum.verdicts[PATH_WRONG].paths + sum.verdicts[PATH_MISSING].paths, 0);
	assert_true(sum.verdicts[PATH_AMBIGUOUS].paths > 0);
	sum = compare(m, m, CALL_BY_CALLER, &told);
	assert_int_equal(sum.verdicts[PATH_PRECISE].weight, 820);
	call_map_destroy(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_categories),
		cmocka_unit_test(test_sites),
		cmocka_unit_test(test_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
