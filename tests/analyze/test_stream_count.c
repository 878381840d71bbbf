#include "analyze/grammar.h"
#include "analyze/stream_count.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Texts of letters, the first is number 1; a '|' in the sequence cuts it. Repeats it so often. */
static void assert_counts(
	const char *const *texts, const char *sequence, unsigned times, const uint64_t *want)
{
	struct stream_trie *trie = stream_trie_create();
	struct stream_count *c;
	const uint64_t *got;
	uint32_t n = 0;

	for (; texts[n]; n++) {
		uint32_t text[8], length = (uint32_t)strlen(texts[n]);

		for (uint32_t i = 0; i < length; i++)
			text[i] = (uint32_t)texts[n][i];
		assert_int_equal(stream_trie_add(trie, text, length, n + 1), n + 1);
		assert_int_equal(stream_trie_add(trie, text, length, 99), n + 1);
	}
	c = stream_count_create(trie, n, 8);
	while (times--)
		for (const char *p = sequence; *p; p++)
			stream_count_add(c, *p == '|' ? GRAMMAR_CUT : (uint32_t)*p);
	got = stream_count_end(c);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(got[i + 1], want[i]);
	stream_count_destroy(c);
	stream_trie_destroy(trie);
}

/* What several could have has the first, whatever stands before it. */
static void first_wins(void **state)
{
	const char *const texts[] = {"bcd", "xab", "abcd", "d", NULL};

	(void)state;
	assert_counts(texts, "xabcdd", 1, (uint64_t[]){1, 0, 0, 1});
	assert_counts(texts, "xab|cdd", 1, (uint64_t[]){0, 1, 0, 2});
	assert_counts(texts, "abcdxab", 1, (uint64_t[]){1, 1, 0, 0});
}

/* Of a sequence that is longer than what is looked at in one go, nothing is lost or found twice. */
static void goes_on(void **state)
{
	const char *const texts[] = {"abcdefg", "ab", NULL};

	(void)state;
	assert_counts(texts, "abcdefg", 30000, (uint64_t[]){30000, 0});
	assert_counts(texts, "cdefgab", 30000, (uint64_t[]){29999, 1});
}

static void add_found(void *arg, uint32_t text, uint64_t at, uint32_t length)
{
	uint64_t *sums = arg;

	sums[0]++;
	sums[1] += at * text;
	assert_int_equal(length, 3);
}

/* Places count from the last cut, also of what is longer than what is looked at in one go. */
static void tells(void **state)
{
	struct stream_trie *trie = stream_trie_create();
	struct stream_count *c;
	uint64_t sums[2] = {0}, want = 0;

	(void)state;
	stream_trie_add(trie, (const uint32_t[]){'b', 'c', 'd'}, 3, 1);
	stream_trie_add(trie, (const uint32_t[]){'x', 'y', 'z'}, 3, 2);
	c = stream_count_create(trie, 2, 8);
	stream_count_tell(c, add_found, sums);
	for (const char *p = "abcd|bcdxyz|xbcd|"; *p; p++)
		stream_count_add(c, *p == '|' ? GRAMMAR_CUT : (uint32_t)*p);
	assert_int_equal(sums[0], 4);
	assert_int_equal(sums[1], 1 + 0 + 2 * 3 + 1);
	memset(sums, 0, sizeof sums);
	for (uint64_t i = 0; i < 50000; i++) {
		for (const char *p = "abcd"; *p; p++)
			stream_count_add(c, (uint32_t)*p);
		want += 4 * i + 1;
	}
	stream_count_end(c);
	assert_int_equal(sums[0], 50000);
	assert_int_equal(sums[1], want);
	stream_count_destroy(c);
	stream_trie_destroy(trie);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_wins),
		cmocka_unit_test(goes_on),
		cmocka_unit_test(tells),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
