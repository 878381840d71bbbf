#include "store/commands.h"

#include "store/blob_rig.h"

static void assert_reads(const struct buf *b, const struct command *list, size_t n)
{
	struct command_reader r;
	struct command c;

	assert_int_equal(command_reader_init(&r, b->p, b->n), 0);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(command_reader_next(&r, &c), 1);
		assert_memory_equal(&c, &list[i], sizeof c);
	}
	assert_int_equal(command_reader_next(&r, &c), 0);
	assert_int_equal(command_reader_next(&r, &c), 0);
}

static void packs(void **state)
{
	static const struct command list[] = {
		{0, 1}, {1, UINT64_MAX}, {0xfedcba9876543210, 200}, {UINT64_MAX, 7}};
	const size_t n = sizeof list / sizeof *list;
	struct buf b = {0};

	(void)state;
	for (size_t from = 0; from <= n; from++) {
		b.n = 0;
		commands_pack(list + from, n - from, &b);
		assert_reads(&b, list + from, n - from);
		assert_whole(&blob_command, &b);
	}
	buf_deinit(&b);
}

/* Databases hold these bytes: a change would make them unreadable. */
static void bytes_are_fixed(void **state)
{
	static const struct command list[] = {{0x0102030405060708, 3}};
	static const uint8_t want[] = {0x01, 8, 7, 6, 5, 4, 3, 2, 1, 0x02};
	struct buf b = {0};

	(void)state;
	commands_pack(list, 1, &b);
	assert_bytes(&b, want, sizeof want);
	buf_deinit(&b);
}

static void refused(void **state)
{
	static const struct bad_blob bad[] = {
		{"nothing", "", 0},
		{"more than bytes", "\x02\x01\0\0\0\0\0\0\0\x00", 10},
		{"more than memory", NINE_FF "\x01\x00", 11},
		{"something follows", "\x01\x01\0\0\0\0\0\0\0\x00\x00", 11},
		{"something follows none", "\x00\x00", 2},
		{"twice the same", "\x02\x01\0\0\0\0\0\0\0\x00\x01\0\0\0\0\0\0\0\x00", 19},
		{"descends", "\x02\x02\0\0\0\0\0\0\0\x00\x01\0\0\0\0\0\0\0\x00", 19},
		{"runs past the end of numbers", "\x01\x01\0\0\0\0\0\0\0" NINE_FF "\x01", 19},
	};

	(void)state;
	assert_refused(&blob_command, bad, sizeof bad / sizeof *bad);
	/* What they are variations of. */
	assert_int_equal(blob_command.check("\x01\x01\0\0\0\0\0\0\0\x00", 10), 0);
	assert_int_equal(
		blob_command.check("\x02\x01\0\0\0\0\0\0\0\x00\x02\0\0\0\0\0\0\0\x00", 19), 0);
}

static void merges(void **state)
{
	static const struct command some[] = {{1, 4}, {9, UINT64_MAX}};
	static const struct command more[] = {{1, 1}, {5, 8}, {9, 1}, {10, 2}};
	static const struct command both[] = {{1, 5}, {5, 8}, {9, UINT64_MAX}, {10, 2}};
	struct buf a = {0}, b = {0}, out = {0};

	(void)state;
	commands_pack(some, 2, &a);
	commands_pack(more, 4, &b);
	blob_merge(&blob_command, &a, &b, &out);
	assert_reads(&out, both, 4);
	assert_int_equal(blob_weight(&blob_command, &b), 12);
	buf_deinit(&a);
	buf_deinit(&b);
	buf_deinit(&out);
}

static void in_a_database(void **state)
{
	static const struct command list[] = {{9, 1}};
	struct buf b = {0};

	commands_pack(list, 1, &b);
	assert_no_samples_of_their_own(*state, &blob_command, &b, &b);
	buf_deinit(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packs),
		cmocka_unit_test(bytes_are_fixed),
		cmocka_unit_test(refused),
		cmocka_unit_test(merges),
		cmocka_unit_test_setup_teardown(in_a_database, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
