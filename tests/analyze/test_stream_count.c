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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_wins),
		cmocka_unit_test(goes_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
