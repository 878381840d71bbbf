#include "analyze/value_report.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "store/edges.h"
#include "values/values_pack.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

/*
 * /opt/v/prog, linked to 0x401000 (file offset 0x1000):
 *
 *   work        401000  mov (%rdi),%rax     200 samples
 *               401003  div %rsi             50
 *               401006  call *%rcx           50
 *               401008  jmp 401000            0
 *               40100a  ret                   0
 *   bare        401100  without code        100
 *   memcpy@plt  401200  jmp *0x0(%rip)        0
 *
 * and 600 samples in /opt/v/libother.so, procedure draw at 0x5000 (no segments).
 */
static const uint8_t work_code[] = {
	0x48, 0x8b, 0x07, 0x48, 0xf7, 0xf6, 0xff, 0xd1, 0xeb, 0xf6, 0xc3};
static const uint8_t stub_code[] = {0xff, 0x25, 0, 0, 0, 0};

struct scene {
	char dir[32], path[64];
	struct store *s;
	int64_t epoch, event, prog, other, mine, yours;
	struct selection *sel;
	struct value_report *r;
	struct err e;
};

static void check(struct scene *sc, int rc)
{
	if (rc)
		fail_msg("%s", sc->e.text);
}

/* ---- writing ---- */

static void add_blob(struct scene *sc, const struct blob_type *type, int64_t image, int64_t process,
	const struct buf *data)
{
	struct store_profile p = {.epoch = sc->epoch,
		.event = sc->event,
		.image = image,
		.process = process,
		.t0 = 1000,
		.t1 = 2000,
		.type = type,
		.data = data->p,
		.size = data->n};

	check(sc, store_profile_add(sc->s, &p, &sc->e));
}

struct came {
	uint64_t offset;
	unsigned kind;
	uint64_t context, value, times;
};

static void add_values(struct scene *sc, int64_t image, int64_t process, size_t keys,
	const struct came *list, size_t n)
{
	struct value_profile *p = value_profile_create(&(struct value_options){.keys = keys});
	struct buf data = {0};

	for (size_t i = 0; i < n; i++)
		value_profile_add(p,
			&(struct value_key){
				list[i].offset, list[i].context, (uint16_t)list[i].kind},
			list[i].value, list[i].times);
	value_profile_pack(p, &data);
	add_blob(sc, &blob_value, image, process, &data);
	buf_deinit(&data);
	value_profile_destroy(p);
}

static void add_edges(struct scene *sc, int64_t image, struct edge *list, size_t n)
{
	struct buf data = {0};

	n = edges_settle(list, n);
	edges_pack(list, n, &data);
	add_blob(sc, &blob_edge, image, sc->mine, &data);
	buf_deinit(&data);
}

static void add_pcs(struct scene *sc, int64_t image, const struct pc_count *list, size_t n)
{
	struct buf data = {0};

	pack_pcs(list, n, &data);
	add_blob(sc, &blob_pc, image, sc->mine, &data);
	buf_deinit(&data);
}

static void add_images(struct scene *sc)
{
	static const struct segment text = {.offset = 0x1000, .size = 0x1000, .vaddr = 0x401000};
	static const struct range work = {0x401000, sizeof work_code}, bare = {0x401100, 0x80},
				  stub = {0x401200, sizeof stub_code}, draw = {0x5000, 0x40};
	const struct store_procedure list[] = {
		{{0x401000, &work, 1, PROCEDURE_SYMBOL, "work"}, work_code, sizeof work_code},
		{{0x401100, &bare, 1, PROCEDURE_EH_FRAME, NULL}, NULL, 0},
		{{0x401200, &stub, 1, PROCEDURE_PLT, "memcpy@plt"}, stub_code, sizeof stub_code},
	};
	const struct store_procedure drawing = {
		{0x5000, &draw, 1, PROCEDURE_SYMBOL, "draw"}, NULL, 0};
	struct store_image prog = {
		.kind = IMAGE_ELF, .path = "/opt/v/prog", .segments = &text, .nsegments = 1};
	struct store_image other = {.kind = IMAGE_ELF, .path = "/opt/v/libother.so"};

	prog.identity.size = other.identity.size = 20;
	memset(prog.identity.bytes, 0x11, 20);
	memset(other.identity.bytes, 0x22, 20);
	check(sc, store_image(sc->s, &prog, &sc->prog, &sc->e));
	check(sc, store_image(sc->s, &other, &sc->other, &sc->e));
	check(sc, store_procedures_add(sc->s, sc->prog, list, COUNT(list), &sc->e));
	check(sc, store_procedures_add(sc->s, sc->other, &drawing, 1, &sc->e));
}

#define SITE(offset) (VALUE_CONTEXT_SITE | (offset))

static uint64_t other_key(void)
{
	return edge_image_key(
		IMAGE_ELF, &(struct image_id){.size = 20, .bytes = {[0 ... 19] = 0x22}}, "");
}

static void add_profiles(struct scene *sc)
{
	static const struct pc_count prog[] = {{0x1000, 200}, {0x1003, 50}, {0x1006, 50},
		{0x1110, 60}, {0x1170, 40}},
				     other[] = {{0x5004, 600}};
	uint64_t key = other_key();
	const struct came mine[] = {
		{0x1000, VALUE_RESULT, 0, 0x7f0000001000, 100},
		{0x1000, VALUE_ADDRESS, 0, 0x401003, 100},
		{0x1000, VALUE_ENTRY0, 0, 0x7f0000002000, 100}, {0x1000, VALUE_ENTRY1, 0, 10, 400},
		{0x1000, VALUE_ENTRY1, 0, 20, 4}, {0x1000, VALUE_ENTRY1, SITE(0x1110), 10, 400},
		{0x1000, VALUE_ENTRY2, 0, 0, 400}, /* rdx is read by div */
		{0x1000, VALUE_ENTRY4, 0, 0, 400}, /* nobody reads r8 */
		{0x1003, VALUE_SOURCE, 0, 10, 500}, {0x1003, VALUE_SOURCE, 0, 20, 5},
		{0x1003, VALUE_RESULT, 0, 3, 300}, {0x1108, VALUE_RESULT, 0, 9, 70},
		{0x1200, VALUE_ENTRY2, 0, 40, 100}, {0x1200, VALUE_ENTRY2, 0, 80, 100},
		{0x1200, VALUE_ENTRY2, SITE(0x1006), 40, 100},
		{0x1200, VALUE_ENTRY2, VALUE_CONTEXT_FAR | 7, 80, 100},
		{0x1200, VALUE_ENTRY3, VALUE_CONTEXT_FAR | VALUE_CONTEXT_KEY(key) | 0x5004, 8, 100},
		{0x1f00, VALUE_RESULT, 0, 1, 11}, /* in no procedure */
	};
	static const struct came yours[] = {
		{0x1003, VALUE_SOURCE, 0, 10, 100}, {0x1108, VALUE_RESULT, 0, 9, 7}};
	struct edge edges[] = {{0x1006, key, 0x5000, 980}, {0x1006, 0, 0x1100, 15},
		{0x1006, 99, 0x777, 5}, {0x1008, 0, 0x1000, 300}, {0x100a, 0, 0x1110, 2},
		{0x1110, 0, 0x1118, 50}};

	add_pcs(sc, sc->prog, prog, COUNT(prog));
	add_pcs(sc, sc->other, other, COUNT(other));
	add_values(sc, sc->prog, sc->mine, 0, mine, COUNT(mine));
	add_values(sc, sc->prog, sc->yours, 1, yours, COUNT(yours)); /* the second is refused */
	add_edges(sc, sc->prog, edges, COUNT(edges));
}

static int set_up(void **state)
{
	struct scene *sc = xcalloc(1, sizeof *sc);
	struct store_host host = {.name = "h", .machine_id = "m", .cpu = "c", .kernel = "k"};
	int64_t id;

	strcpy(sc->dir, "/tmp/values.XXXXXX");
	assert_non_null(mkdtemp(sc->dir));
	snprintf(sc->path, sizeof sc->path, "%s/db", sc->dir);
	check(sc, store_open(sc->path, STORE_WRITE, &sc->s, &sc->e));
	check(sc, store_begin(sc->s, &sc->e));
	check(sc, store_host(sc->s, &host, &id, &sc->e));
	check(sc, store_epoch_start(sc->s, id, 1000, "t", &sc->epoch, &sc->e));
	struct store_event ev = {
		.epoch = sc->epoch, .name = "cpu-clock", .unit = "ns", .period = 1};
	check(sc, store_event(sc->s, &ev, &sc->e));
	sc->event = ev.id;
	struct store_process mine = {.epoch = sc->epoch, .comm = "mine", .cgroup = ""};
	struct store_process yours = {.epoch = sc->epoch, .comm = "yours", .cgroup = ""};
	check(sc, store_process(sc->s, &mine, &sc->mine, &sc->e));
	check(sc, store_process(sc->s, &yours, &sc->yours, &sc->e));
	add_images(sc);
	add_profiles(sc);
	check(sc, store_commit(sc->s, &sc->e));
	store_close(sc->s);
	sc->s = NULL;
	*state = sc;
	return 0;
}

static int tear_down(void **state)
{
	struct scene *sc = *state;

	value_report_destroy(sc->r);
	selection_destroy(sc->sel);
	store_close(sc->s);
	unlink(sc->path);
	assert_int_equal(rmdir(sc->dir), 0);
	free(sc);
	return 0;
}

/* ---- reading ---- */

static int report_of(struct scene *sc, const char *comm, const struct value_report_options *o)
{
	const struct selection_options all = {.filter.comm = comm};
	int rc = store_open(sc->path, STORE_READ, &sc->s, &sc->e);

	if (!rc)
		rc = selection_create(sc->s, &all, &sc->sel, &sc->e);
	return rc ? rc : value_report_create(sc->sel, o, &sc->r, &sc->e);
}

static void open_report(struct scene *sc, const struct value_report_options *o)
{
	check(sc, report_of(sc, NULL, o));
}

static const struct value_procedure *procedure_named(const struct scene *sc, const char *name)
{
	const struct value_procedure **list;
	size_t n = value_report_procedures(sc->r, &list);

	for (size_t i = 0; i < n; i++)
		if (!strcmp(list[i]->name, name))
			return list[i];
	fail_msg("no procedure %s", name);
	return NULL;
}

static const struct value_row *row_at(
	const struct scene *sc, const char *name, uint64_t address, unsigned kind, uint64_t context)
{
	const struct value_procedure *p = procedure_named(sc, name);

	for (size_t i = 0; i < p->n; i++)
		if (p->rows[i]->address == address && p->rows[i]->kind == kind &&
			p->rows[i]->context == context)
			return p->rows[i];
	return NULL;
}

static const struct value_report_options everything;

static void all_lists_are_rows(void **state)
{
	struct scene *sc = *state;
	const struct value_procedure **list;

	open_report(sc, &everything);
	assert_int_equal(value_report_procedures(sc->r, &list), 3);
	/* 9 lists and two indirect transfers; of the direct jump there is no row */
	assert_int_equal(procedure_named(sc, "work")->n, 11);
	assert_null(row_at(sc, "work", 0x401008, VALUE_TARGET, 0));
	assert_int_equal(procedure_named(sc, "prog!0x401100")->n, 1);
	assert_int_equal(procedure_named(sc, "memcpy@plt")->n, 4);
	assert_int_equal(value_report_rows(sc->r), 16);
	assert_int_equal(value_report_time(sc->r), 1000);
	assert_int_equal(value_report_nowhere(sc->r), 11);
	assert_int_equal(value_report_refused(sc->r), 7);
	assert_int_equal(value_report_edges(sc->r), 1352);
	assert_int_equal(value_report_values(sc->r),
		100 + 100 + 100 + 404 + 400 + 400 + 605 + 300 + 70 + 200 + 11);
	assert_string_equal(list[0]->name, "work");
	assert_int_equal(list[0]->time, 300);
	assert_int_equal(list[0]->start, 0x401000);
}

static void values_of_several_profiles_add_up(void **state)
{
	struct scene *sc = *state;
	struct value_share values[HOTLIST_CAPACITY_MAX];
	const struct value_row *row;

	open_report(sc, &everything);
	row = row_at(sc, "work", 0x401003, VALUE_SOURCE, 0);
	assert_int_equal(row->samples, 605);
	assert_int_equal(value_report_read(sc->r, row, values), 2);
	assert_int_equal(values[0].value, 10);
	assert_int_equal(values[0].count, 600);
	assert_float_equal(values[0].share, 600 / 605., 1e-9);
	assert_true(values[0].low < values[0].share && values[0].share < values[0].high);
	assert_int_equal(values[1].count, 5);
	assert_float_equal(row->top.low, values[0].low, 1e-12);
}

static void filters_select(void **state)
{
	struct scene *sc = *state;

	check(sc, report_of(sc, "yours", &everything));
	assert_int_equal(value_report_rows(sc->r), 1);
	assert_int_equal(row_at(sc, "work", 0x401003, VALUE_SOURCE, 0)->samples, 100);
	assert_int_equal(value_report_edges(sc->r), 0);
}

/* The loop is one run of code, whose samples all its instructions share. */
static void time_is_that_of_the_run(void **state)
{
	struct scene *sc = *state;
	const struct value_row *row, *argument;

	open_report(sc, &everything);
	row = row_at(sc, "work", 0x401003, VALUE_SOURCE, 0);
	assert_int_equal(row->time, 300);
	assert_float_equal(row->time_share, 0.3, 1e-9);
	assert_float_equal(row->score, 300 * row->top.low, 1e-9);
	assert_int_equal(row_at(sc, "work", 0x40100a, VALUE_TARGET, 0)->time, 0);
	/* Without code: 32 bytes on either side. */
	row = row_at(sc, "prog!0x401100", 0x401108, VALUE_RESULT, 0);
	assert_int_equal(row->time, 60);
	assert_null(row->roles);
	argument = row_at(sc, "work", 0x401000, VALUE_ENTRY1, 0);
	assert_int_equal(argument->time, 300);
	row = row_at(sc, "work", 0x401000, VALUE_ENTRY1, SITE(0x1110));
	assert_int_equal(row->time, 300 * 400 / 404);
}

static void what_the_code_decides_is_marked(void **state)
{
	struct scene *sc = *state;

	open_report(sc, &everything);
	assert_true(row_at(sc, "work", 0x401000, VALUE_ENTRY1, 0)->telling);
	assert_true(row_at(sc, "work", 0x401000, VALUE_ENTRY2, 0)->telling);
	assert_false(row_at(sc, "work", 0x401000, VALUE_ENTRY4, 0)->telling);
	assert_true(row_at(sc, "work", 0x401006, VALUE_TARGET, 0)->telling);
	assert_false(row_at(sc, "work", 0x40100a, VALUE_TARGET, 0)->telling);
	assert_true(row_at(sc, "memcpy@plt", 0x401200, VALUE_ENTRY2, 0)->telling);
}

static void assert_advice(const struct value_row *row, const char *words)
{
	assert_non_null(row);
	if (!row->advice || !strstr(row->advice, words))
		fail_msg("'%s' is not in '%s'", words, row->advice ? row->advice : "none");
}

static void advice(void **state)
{
	struct scene *sc = *state;

	open_report(sc, &everything);
	assert_advice(row_at(sc, "work", 0x401003, VALUE_SOURCE, 0),
		"division: the divisor %rsi is 0xa in 99.2% (at least 98.0%) of 605 divisions");
	/* Both lists say that 32 bits are enough. */
	assert_advice(row_at(sc, "work", 0x401003, VALUE_SOURCE, 0), "; narrow: ");
	assert_advice(row_at(sc, "work", 0x401000, VALUE_ENTRY1, 0),
		"specialise: argument 2 (%rsi) is 0xa in 99.0%");
	assert_advice(row_at(sc, "work", 0x401006, VALUE_TARGET, 0),
		"devirtualise: goes to draw in libother.so in 98.0%");
	/* A pointer, and its list is too short to be sure of 99%. */
	assert_null(row_at(sc, "work", 0x401000, VALUE_ENTRY0, 0)->advice);
	assert_null(row_at(sc, "work", 0x401000, VALUE_RESULT, 0)->advice);
	/* The size varies, but not at this call site, whose procedure is hot. */
	assert_null(row_at(sc, "memcpy@plt", 0x401200, VALUE_ENTRY2, 0)->advice);
	assert_advice(row_at(sc, "memcpy@plt", 0x401200, VALUE_ENTRY2, SITE(0x1006)),
		"copy: the size is 40 bytes");
	/* Nobody knows whether this one is. */
	assert_null(
		row_at(sc, "memcpy@plt", 0x401200, VALUE_ENTRY2, VALUE_CONTEXT_FAR | 7)->advice);
}

static void words(void **state)
{
	struct scene *sc = *state;
	const struct value_row *row;
	struct value_share values[HOTLIST_CAPACITY_MAX];
	char text[256];

	open_report(sc, &everything);
	row = row_at(sc, "work", 0x401006, VALUE_TARGET, 0);
	assert_int_equal(value_report_read(sc->r, row, values), 3);
	assert_true(value_report_name(sc->r, row, &values[0], text, sizeof text));
	assert_string_equal(text, "draw in libother.so");
	assert_int_equal(values[1].value, 0x401100);
	assert_true(value_report_name(sc->r, row, &values[1], text, sizeof text));
	assert_string_equal(text, "prog!0x401100");
	assert_null(values[2].image); /* an image that is not there */
	assert_int_equal(values[2].value, 0x777);
	assert_false(value_report_name(sc->r, row, &values[2], text, sizeof text));
	assert_true(value_report_text(sc->r, row, ISA_ATT, text, sizeof text));
	assert_string_equal(text, "call   *%rcx");
	value_row_operand(row, text, sizeof text);
	assert_string_equal(text, "target");

	row = row_at(sc, "work", 0x401000, VALUE_ADDRESS, 0);
	assert_true(value_report_name(sc->r, row, &row->top, text, sizeof text));
	assert_string_equal(text, "work+0x3");
	value_row_operand(row, text, sizeof text);
	assert_string_equal(text, "address (%rdi)");

	row = row_at(sc, "work", 0x401000, VALUE_ENTRY1, SITE(0x1110));
	value_report_site(sc->r, row, text, sizeof text);
	assert_string_equal(text, "prog!0x401100+0x10");
	value_row_operand(row, text, sizeof text);
	assert_string_equal(text, "argument 2 %rsi");
	row = row_at(sc, "memcpy@plt", 0x401200, VALUE_ENTRY2, VALUE_CONTEXT_FAR | 7);
	value_report_site(sc->r, row, text, sizeof text);
	assert_string_equal(text, "another image, 0x7");
	row = row_at(sc, "memcpy@plt", 0x401200, VALUE_ENTRY3,
		VALUE_CONTEXT_FAR | VALUE_CONTEXT_KEY(other_key()) | 0x5004);
	value_report_site(sc->r, row, text, sizeof text);
	assert_string_equal(text, "draw+0x4 in libother.so");

	row = row_at(sc, "prog!0x401100", 0x401108, VALUE_RESULT, 0);
	assert_false(value_report_text(sc->r, row, ISA_ATT, text, sizeof text));
	value_row_operand(row, text, sizeof text);
	assert_string_equal(text, "result");
}

static void numbers(void **state)
{
	static const struct roles single = {.float_size = 4}, twice = {.float_size = 8};
	struct value_row row = {.kind = VALUE_RESULT};
	char text[64];

	(void)state;
	value_row_number(&row, UINT64_MAX, text, sizeof text);
	assert_string_equal(text, "0xffffffffffffffff");
	row.kind = VALUE_STRIDE;
	value_row_number(&row, -64ull, text, sizeof text);
	assert_string_equal(text, "-0x40");
	value_row_number(&row, 1ull << 63, text, sizeof text);
	assert_string_equal(text, "-0x8000000000000000");
	row.kind = VALUE_FLOAT;
	row.roles = &twice;
	value_row_number(&row, 0x3ff8000000000000, text, sizeof text);
	assert_string_equal(text, "1.5");
	row.roles = &single;
	value_row_number(&row, 0xbe800000, text, sizeof text);
	assert_string_equal(text, "-0.25");
	row.kind = VALUE_PLUGIN0 + 3;
	value_row_operand(&row, text, sizeof text);
	assert_string_equal(text, "plugin 3");
}

/* ---- questions ---- */

static void assert_answer(struct scene *sc, const char *what, size_t procedures, size_t rows)
{
	const struct value_report_options o = {.what = what};
	const struct value_procedure **list;

	open_report(sc, &o);
	assert_int_equal(value_report_procedures(sc->r, &list), procedures);
	assert_int_equal(value_report_rows(sc->r), rows);
	value_report_destroy(sc->r);
	selection_destroy(sc->sel);
	store_close(sc->s);
	sc->r = NULL;
	sc->sel = NULL;
	sc->s = NULL;
}

static void questions(void **state)
{
	struct scene *sc = *state;

	assert_answer(sc, "work", 1, 11);
	assert_answer(sc, "mem*", 1, 4);
	assert_answer(sc, "or", 1, 11); /* a part of work */
	assert_answer(sc, "prog!0x401100", 1, 1);
	assert_answer(sc, "0x401003", 1, 2); /* one instruction */
	assert_answer(sc, "prog!0x401003", 1, 2);
	assert_answer(sc, "0x401001", 1, 11); /* within one: its procedure */
}

static void no_answer(void **state)
{
	const struct value_report_options o = {.what = "other!0x401003"};
	struct scene *sc = *state;

	assert_int_equal(report_of(sc, NULL, &o), -ENOENT);
	assert_non_null(strstr(sc->e.text, "'other!0x401003'"));
	assert_null(strchr(sc->e.text, '\n'));
}

static bool is_target(void *arg, const struct value_row *row)
{
	return row->kind == *(unsigned *)arg;
}

static void wanted_rows_by_score(void **state)
{
	unsigned kind = VALUE_ENTRY1;
	const struct value_report_options o = {
		.by_score = true, .wanted = is_target, .arg = &kind, .pattern = "w*"};
	struct scene *sc = *state;
	const struct value_procedure *work;

	open_report(sc, &o);
	work = procedure_named(sc, "work");
	assert_int_equal(work->n, 2);
	assert_true(work->rows[0]->score >= work->rows[1]->score);
	assert_true(work->best == work->rows[0]->score);
	assert_int_equal(value_report_left_out(sc->r), 9);
}

static void damage_is_named(void **state)
{
	static const char *const types[] = {"edge", "value"};
	struct scene *sc = *state;

	for (size_t i = 0; i < COUNT(types); i++) {
		char sql[160];
		sqlite3 *db;

		snprintf(sql, sizeof sql,
			"UPDATE profiles SET data = x'040001' WHERE type = "
			"(SELECT id FROM names WHERE text = '%s')",
			types[i]);
		assert_int_equal(sqlite3_open(sc->path, &db), SQLITE_OK);
		assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
		sqlite3_close(db);
		assert_int_equal(report_of(sc, NULL, &everything), -EBADMSG);
		assert_non_null(strstr(sc->e.text, "culprit db check"));
		assert_non_null(strstr(sc->e.text, types[i]));
		selection_destroy(sc->sel);
		store_close(sc->s);
		sc->sel = NULL;
		sc->s = NULL;
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(all_lists_are_rows),
		TEST(values_of_several_profiles_add_up),
		TEST(filters_select),
		TEST(time_is_that_of_the_run),
		TEST(what_the_code_decides_is_marked),
		TEST(advice),
		TEST(words),
		cmocka_unit_test(numbers),
		TEST(questions),
		TEST(no_answer),
		TEST(wanted_rows_by_score),
		TEST(damage_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
