/*
 * Counters in registers: in which loops they are. That they count right is for the end-to-end tests
 * (record_exact.bats), which compare all blocks of a program with another tool's.
 */
#include "edit/edit_rig.h"

#include "base/err.h"
#include "edit/exact.h"
#include "edit/exact_map.h"

static const char program[] =
	"#define FUNCTION __attribute__((noinline, noclone))\n"
	"FUNCTION long tight(long a, long b) {\n"
	"	long s = 0; for (long i = 0; i < a; i++) s = s * 3 ^ (i + b); return s; }\n"
	"FUNCTION long calls(long a) { long s = 0; while (a-- > 0) s += tight(a, s); return s; }\n"
	"FUNCTION long nested(const char *p, long n) {\n"
	"	long s = 0; for (long i = 0; i < n; i++) for (const char *q = p; *q != i; q++) s "
	"^= "
	"*q;\n"
	"	return s; }\n"
	"FUNCTION long walks(const long *p, const long *end) {\n"
	"	long s = 1; for (; p < end; p++) s = s * 3 ^ *p; return s; }\n"
	"long words[9];\n"
	"int main(int argc, char **argv) { return (int)(calls(argc) + nested(\"some words\", "
	"argc) + walks(words, words + 9) + walks(words, words + 4)); }\n";

static int64_t word_in(const char *path, uint64_t number)
{
	FILE *f = fopen(path, "r");
	int64_t word = 0;

	assert_non_null(f);
	assert_int_equal(fseek(f, (long)number * 8, SEEK_SET), 0);
	assert_int_equal(fread(&word, sizeof word, 1, f), 1);
	fclose(f);
	return word;
}

/* How many counters of a function are kept in registers. */
static unsigned held_in(const struct buf *map, uint64_t start)
{
	struct exact_map_reader r;
	struct exact_function f = {0};
	unsigned n = 0;

	assert_int_equal(exact_map_open(&r, map->p, map->n), 0);
	while (exact_map_next(&r) > 0) {
		if (r.start != start)
			continue;
		assert_int_equal(exact_map_read(&r, &f), 0);
		vec_each (l, &f.links) {
			assert_true(l->counted || !l->held);
			n += l->held;
		}
	}
	exact_function_deinit(&f);
	return n;
}

/* What a loop's own register gains, and what that says when the program has run. */
static void assert_turns(const struct buf *map, uint64_t start, int32_t step, int64_t turns)
{
	struct exact_map_reader r;
	struct exact_function f = {0};
	const char *counts = in_workshop("counts");
	bool found = false;

	assert_int_equal(exact_map_open(&r, map->p, map->n), 0);
	while (exact_map_next(&r) > 0) {
		uint64_t counter = r.first;
		if (r.start != start)
			continue;
		assert_int_equal(exact_map_read(&r, &f), 0);
		vec_each (l, &f.links) {
			found |= l->step == step && word_in(counts, counter) == step * turns;
			counter += l->counted;
		}
	}
	assert_true(found);
	exact_function_deinit(&f);
}

static void test_loops(void **state)
{
	const struct edit_options options = {.strict = true};
	const struct exact_options exact = {.counts = in_workshop("counts")};
	struct err err = {0};
	struct exact *x;
	struct edit *e;
	struct buf map = {0};

	(void)state;
	write_text("main.c", program);
	shell("gcc -O2 -w -o code main.c; ./code; echo $? > expected");
	if (edit_open(in_workshop("code"), &options, &e, &err) ||
		exact_create(e, &exact, &x, &map, &err) ||
		edit_write(e, in_workshop("edited"), &err))
		fail_msg("%s", err.text);
	assert_true(held_in(&map, find_function(e, "tight")->procedure->start) > 0);
	assert_true(held_in(&map, find_function(e, "nested")->procedure->start) > 0);
	assert_int_equal(held_in(&map, find_function(e, "calls")->procedure->start), 0);
	shell("./edited; echo $? > got; cmp got expected");
	assert_turns(&map, find_function(e, "walks")->procedure->start, 8, 13);
	edit_destroy(e);
	exact_destroy(x);
	buf_deinit(&map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_loops)};
	return cmocka_run_group_tests(tests, open_workshop, close_workshop);
}
