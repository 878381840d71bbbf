/* A map that is written by hand, counters that are set by hand: which rows come out. */
#include "paths/read.h"

#include "base/mem.h"
#include "paths/map.h"
#include "rt/rt.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { WORDS = 64, HASH = 32, ENTRIES = 8 };

/*
 * A procedure at 0x1000 with blocks a, b, c, d of 16 bytes: a goes to b or c, both to d, d back to
 * a or returns. c ends in a call that may not come back.
 */
static const struct exact_link links[] = {
	{.from = 4, .to = 0, .kind = EXACT_LINK_ENTRY},
	{.from = 0, .to = 1, .kind = EXACT_LINK_INSIDE},
	{.from = 0, .to = 2, .kind = EXACT_LINK_INSIDE},
	{.from = 1, .to = 3, .kind = EXACT_LINK_INSIDE},
	{.from = 2, .to = 3, .kind = EXACT_LINK_INSIDE},
	{.from = 3, .to = 0, .kind = EXACT_LINK_INSIDE},
	{.from = 3, .to = 4, .kind = EXACT_LINK_RETURN},
};
enum { ENTRY, A_B, A_C, B_D, C_D, BACK, RETURN };

struct rig {
	struct path_function f;
	struct numbering n;
	struct buf map;
	uint64_t words[WORDS];
	struct path_rows rows;
	struct paths_read_summary sum;
};

static void begin_measured(struct rig *r, enum path_how how, unsigned metrics)
{
	static const char *const names[] = {"page-faults", "tsc"};
	struct path_layout layout = {.words = WORDS,
		.stride = 1 + metrics,
		.hash = metrics ? WORDS : HASH,
		.entries = metrics ? 0 : ENTRIES};
	struct paths_map_writer w = {0};
	struct image_id id = {.size = 4};
	struct graph g;

	*r = (struct rig){.f = {.how = (uint8_t)how, .first = how == PATH_HOW_HASH ? 1000 : 3}};
	r->f.graph.start = 0x1000;
	for (uint64_t i = 0; i < 4; i++)
		*vec_add(&r->f.graph.blocks) =
			(struct exact_block){.start = 0x1000 + 16 * i, .size = 16, .last = 2};
	for (size_t i = 0; i < sizeof links / sizeof *links; i++)
		*vec_add(&r->f.graph.links) = links[i];
	path_graph(&r->f.graph, &g);
	numbering_init(&r->n, &g, 4, &(struct number_wish){0});
	graph_deinit(&g);
	for (size_t i = 0; i < r->f.graph.links.n; i++)
		r->f.graph.links.p[i].counted = r->n.cut[i];
	for (uint32_t i = 0; i < r->n.dag.edges; i++)
		*vec_add(&r->f.values) = r->n.value[i];
	if (how == PATH_HOW_HASH)
		*vec_add(&r->f.fixed) = (struct path_fixed){2, 5};
	for (unsigned i = 0; metrics && i < 4; i++)
		*vec_add(&r->f.readings) = (uint8_t)(i % 3);
	r->f.takes = metrics;
	for (unsigned i = 0; i < metrics; i++)
		assert_true(metric_add(&layout.metrics, names[i]));
	paths_map_add(&w, &r->f);
	paths_map_finish(&w, &layout, &id, "/bin/x", &r->map);
}

static void begin(struct rig *r, enum path_how how)
{
	begin_measured(r, how, 0);
}

static void end(struct rig *r)
{
	path_function_deinit(&r->f);
	numbering_deinit(&r->n);
	buf_deinit(&r->map);
	path_rows_deinit(&r->rows);
}

static int read_all(struct rig *r)
{
	return paths_read(
		&(struct paths_source){
			.map = r->map.p, .size = r->map.n, .words = r->words, .n = WORDS},
		&r->rows, &r->sum);
}

/* The number of the path over these links; the first may be the edge behind the given ones. */
static uint64_t number_of(const struct rig *r, const uint32_t *way, size_t n)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += r->n.value[way[i]];
	return sum;
}
#define NUMBER(r, ...)                                \
	number_of(r, (const uint32_t[]){__VA_ARGS__}, \
		sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

static void check_path(const struct path_row *row, const uint64_t *blocks, uint32_t n,
	enum path_start start, enum path_end last, uint64_t count)
{
	assert_true(row->is_path);
	assert_int_equal(row->shape.n, n);
	assert_memory_equal(row->shape.blocks, blocks, n * sizeof *blocks);
	assert_int_equal(row->shape.start, start);
	assert_int_equal(row->shape.end, last);
	assert_int_equal(row->shape.next, last == PATH_NEXT ? 0x1000 : 0);
	assert_int_equal(row->count, count);
}

static void test_array(void **state)
{
	static const uint64_t over_b[] = {0x1000, 0x1010, 0x1030};
	static const uint64_t over_c[] = {0x1000, 0x1020, 0x1030};
	struct rig r;

	(void)state;
	begin(&r, PATH_HOW_ARRAY);
	assert_int_equal(r.n.total, 8);
	assert_true(r.n.cut[BACK]);
	uint32_t again = r.n.begins[BACK];
	r.words[3 + NUMBER(&r, ENTRY, A_B, B_D, BACK)] = 7;
	r.words[3 + NUMBER(&r, again, A_C, C_D, BACK)] = 20;
	r.words[3 + NUMBER(&r, again, A_C, C_D, RETURN)] = 6;
	assert_int_equal(read_all(&r), 0);
	assert_int_equal(r.rows.list.n, 4);
	assert_false(r.rows.list.p[0].is_path);
	assert_int_equal(r.rows.list.p[0].procedure, 0x1000);
	assert_int_equal(r.rows.list.p[0].potential, 8);
	check_path(&r.rows.list.p[1], over_b, 3, PATH_ENTRY, PATH_NEXT, 7);
	check_path(&r.rows.list.p[2], over_c, 3, PATH_AGAIN, PATH_RETURN, 6);
	check_path(&r.rows.list.p[3], over_c, 3, PATH_AGAIN, PATH_NEXT, 20);
	/* 27 jumps back, 26 paths that began there: one did not end. */
	assert_int_equal(r.rows.list.p[0].off, 1);
	assert_int_equal(r.sum.unfinished, 1);
	assert_int_equal(r.sum.paths, 3);
	assert_int_equal(r.sum.executions, 33);
	struct buf packed = {0};
	paths_pack(&(struct metric_names){0}, r.rows.list.p, r.rows.list.n, &packed);
	assert_int_equal(blob_path.check(packed.p, packed.n), 0);
	buf_deinit(&packed);
	end(&r);
}

static void test_table(void **state)
{
	struct rig r;

	(void)state;
	begin(&r, PATH_HOW_HASH);
	r.words[HASH + RT_TABLE_NO_ROOM] = 9;
	r.words[HASH + RT_TABLE_FIRST] = 1000 + 1 + 1; /* path 1 */
	r.words[HASH + RT_TABLE_FIRST + 1] = 4;
	r.words[HASH + RT_TABLE_FIRST + 6] = 1000 + 8 + 1; /* of nobody */
	r.words[HASH + RT_TABLE_FIRST + 7] = 11;
	r.words[HASH + RT_TABLE_FIRST + 8] = 1000 + 7 + 1; /* path 7 */
	r.words[HASH + RT_TABLE_FIRST + 9] = 3;
	r.words[5] = 2; /* path 2 has a counter of its own */
	assert_int_equal(read_all(&r), 0);
	assert_int_equal(r.sum.paths, 3);
	assert_int_equal(r.sum.executions, 9);
	assert_int_equal(r.sum.no_room, 9);
	assert_int_equal(r.rows.list.p[0].how, PATH_HOW_HASH);
	end(&r);
}

/* Two metrics: sums, readings, stretches. B calls somebody who gives a reading back, C one who
 * does not; a caller left one at the entry. */
static void test_measured(void **state)
{
	struct rig r;

	(void)state;
	begin_measured(&r, PATH_HOW_ARRAY, 2);
	uint32_t again = r.n.begins[BACK];
	uint64_t *over_b = r.words + 3 + 3 * NUMBER(&r, ENTRY, A_B, B_D, BACK);
	uint64_t *over_c = r.words + 3 + 3 * NUMBER(&r, again, A_C, C_D, RETURN);
	memcpy(over_b, (uint64_t[]){10, 500, 7}, 24);
	memcpy(over_c, (uint64_t[]){10, 90, 0}, 24);
	assert_int_equal(read_all(&r), 0);
	assert_int_equal(r.rows.list.n, 3);
	assert_memory_equal(r.rows.list.p[1].metrics, ((uint64_t[]){500, 7, 20, 20}), 32);
	assert_memory_equal(r.rows.list.p[2].metrics, ((uint64_t[]){90, 0, 30, 20}), 32);
	assert_int_equal(r.sum.readings, 50);
	assert_int_equal(r.sum.stretches, 40);
	assert_int_equal(r.sum.sums[0], 590);
	assert_int_equal(r.sum.metrics.n, 2);
	end(&r);
}

static void test_nothing_ran(void **state)
{
	struct rig r;

	(void)state;
	begin(&r, PATH_HOW_ARRAY);
	assert_int_equal(read_all(&r), 0);
	assert_int_equal(r.rows.list.n, 0);
	assert_int_equal(r.sum.procedures, 0);
	end(&r);
}

/* Every byte changed, every length: never more than -EBADMSG, and never a row out of order. */
static void test_damaged(void **state)
{
	struct rig r;

	(void)state;
	begin(&r, PATH_HOW_ARRAY);
	for (size_t i = 0; i < WORDS; i++)
		r.words[i] = i;
	for (size_t i = 0; i < r.map.n; i++) {
		for (unsigned bit = 0; bit < 8; bit++) {
			r.map.p[i] ^= (uint8_t)(1u << bit);
			int rc = read_all(&r);
			assert_true(rc == 0 || rc == -EBADMSG);
			path_rows_deinit(&r.rows);
			r.map.p[i] ^= (uint8_t)(1u << bit);
		}
	}
	size_t whole = r.map.n;
	for (r.map.n = 0; r.map.n < whole; r.map.n++) {
		assert_int_equal(read_all(&r), -EBADMSG);
		path_rows_deinit(&r.rows);
	}
	end(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_array),
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_measured),
		cmocka_unit_test(test_nothing_ran),
		cmocka_unit_test(test_damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
