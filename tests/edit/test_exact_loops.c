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
	"int main(int argc, char **argv) { return (int)(calls(argc) + nested(\"some words\", "
	"argc)); }\n";

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
	edit_destroy(e);
	exact_destroy(x);
	buf_deinit(&map);
	shell("./edited; echo $? > got; cmp got expected");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_loops)};
	return cmocka_run_group_tests(tests, open_workshop, close_workshop);
}
