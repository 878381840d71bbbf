#include "store/fixture.h"

#include <sqlite3.h>

static void text_of(void *arg, const char *text)
{
	buf_printf(arg, "%s\n", text);
}

/* Closes the store, changes the file by hand, and expects a fault that holds `words`. */
static void assert_found(struct fixture *f, const char *sql, const char *words)
{
	struct buf faults = {0};
	sqlite3 *db;

	store_close(f->s);
	f->s = NULL;
	assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
	if (sqlite3_exec(db, sql, NULL, NULL, NULL)) {
		print_error("%s: %s\n", sql, sqlite3_errmsg(db));
		fail();
	}
	sqlite3_close(db);
	ok(f, store_open(f->path, STORE_READ, &f->s, &f->e));
	ok(f, store_check(f->s, text_of, &faults, &f->e));
	if (!strstr(buf_cstr(&faults), words))
		print_error("after '%s' no '%s' in: %s\n", sql, words, buf_cstr(&faults));
	assert_non_null(strstr(buf_cstr(&faults), words));
	buf_deinit(&faults);
}

static void fill(struct fixture *f)
{
	static const struct range range = {0x10, 4};
	static const struct store_procedure one = {
		{0x10, &range, 1, PROCEDURE_SYMBOL, "f"}, "abcd", 4};

	ok(f, store_begin(f->s, &f->e));
	ok(f, store_procedures_add(f->s, f->image, &one, 1, &f->e));
	add_flush(f, 0, 40);
	add_flush(f, 1, 40);
	ok(f, store_commit(f->s, &f->e));
	assert_sound(f);
}

static void finds(void **state)
{
	static const struct {
		const char *sql, *words;
	} faults[] = {
		{"UPDATE profiles SET samples = samples + 1 WHERE id = 1", "profile 1: has"},
		{"UPDATE profiles SET data = x'00'", "is no pc profile"},
		{"UPDATE profiles SET data = x'03ff'", "profile 2: does not unpack"},
		{"UPDATE profiles SET image = 77", "refers to nothing in images"},
		{"UPDATE profiles SET type = 77 WHERE id = 2", "refers to nothing in names"},
		{"DELETE FROM profiles WHERE id = 2", "in the accounting"},
		{"UPDATE accounts SET unknown = unknown + 1", "in the accounting"},
		{"UPDATE totals SET data = x'0404' WHERE id = 1", "totals 1: do not unpack"},
		{"UPDATE images SET id = 5; UPDATE procedures SET image = 5; "
		 "UPDATE profiles SET image = 5",
			"totals 1: image 1 is not there"},
		{"INSERT INTO epochs SELECT 9, host, started, 0, '' FROM epochs; "
		 "UPDATE stretches SET epoch = 9",
			"different epochs"},
		{"UPDATE images SET kind = 99", "image 1"},
		{"UPDATE images SET segments = x'05'", "image 1"},
		{"UPDATE images SET identity = x'07'", "image 1"},
		{"INSERT INTO images SELECT 2, kind, identity, path, segments FROM images",
			"image 2: is there twice"},
		{"UPDATE procedures SET n = 3", "procedures 1: are 1, not 3"},
		{"UPDATE procedures SET data = x'0405'", "procedures 1: do not unpack"},
		{"UPDATE code SET data = x'0405'", "procedures 1: their code is damaged"},
		{"DELETE FROM code", "procedures 1: their code is damaged"},
		{"UPDATE stretches SET t1 = t0 - 1", "stretch 1: ends before it starts"},
		{"UPDATE epochs SET ended = 5", "epoch 1: ends before it starts"},
		{"DELETE FROM stretches WHERE id = 2", "refers to nothing in stretches"},
	};

	for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
		fill(*state);
		assert_found(*state, faults[i].sql, faults[i].words);
		teardown(state);
		setup(state);
	}
}

static void stops_listing(void **state)
{
	struct fixture *f = *state;
	int n;

	fill(f);
	ok(f, store_begin(f->s, &f->e));
	for (uint64_t i = 2; i < 300; i++)
		add_flush(f, i, 4);
	ok(f, store_commit(f->s, &f->e));
	assert_found(f, "UPDATE profiles SET data = x'00'", "more faults");
	n = count_faults(f);
	assert_int_equal(n, 100);
}

static void knows_sizes(void **state)
{
	struct fixture *f = *state;
	struct store_size before, after;

	fill(f);
	ok(f, store_size(f->s, &before, &f->e));
	ok(f, store_begin(f->s, &f->e));
	for (uint64_t i = 2; i < 100; i++)
		add_flush(f, i, 500);
	ok(f, store_commit(f->s, &f->e));
	ok(f, store_size(f->s, &after, &f->e));
	assert_true(after.profiles > before.profiles + 98 * 50);
	assert_true(after.totals > before.totals);
	assert_int_equal(after.code, before.code);
	assert_int_equal(after.images, before.images);
	assert_true(before.file > 0 && before.code > 0 && before.procedures > 0);
	store_close(f->s);
	f->s = NULL;
	ok(f, store_open(f->path, STORE_READ, &f->s, &f->e));
	ok(f, store_size(f->s, &after, &f->e));
	/* The parts are the file, but for the pages that only say where others are. */
	assert_true(after.profiles + after.totals + after.procedures + after.code + after.images +
			    after.other <=
		    after.file);
	assert_true(after.profiles + after.totals + after.procedures + after.code + after.images +
			    after.other + 8192 >=
		    after.file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(finds, setup, teardown),
		cmocka_unit_test_setup_teardown(stops_listing, setup, teardown),
		cmocka_unit_test_setup_teardown(knows_sizes, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
