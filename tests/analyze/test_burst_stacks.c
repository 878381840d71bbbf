/* Bursts that are written by hand: who called whom in them. */
#include "analyze/burst_stacks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/*
 * A burst in letters, two an event: what happens, and in whose procedure. '>' is entered, '<' left,
 * '.' touches memory, '*' calls through a pointer; a small letter calls the procedure of that
 * letter.
 */
static void read_text(struct burst_stacks *s, const char *text)
{
	struct trace_site sites[64];
	struct trace_reference events[64];
	size_t n = strlen(text) / 2;

	for (size_t i = 0; i < n; i++) {
		char what = text[2 * i], who = text[2 * i + 1];
		bool calls = what >= 'a' && what <= 'z';

		sites[i] = (struct trace_site){.image = 1,
			.procedure = (uint64_t)who,
			.kind = what == '>'            ? TRACE_ENTER
				: what == '<'          ? TRACE_LEAVE
				: calls || what == '*' ? TRACE_CALL
						       : TRACE_LOAD};
		events[i] = (struct trace_reference){
			(uint32_t)i, calls ? (uint64_t)(what - 'a' + 'A') : 0};
	}
	burst_stacks_read(s, sites, &(struct trace_burst){.references = events, .n = n});
	assert_int_equal(s->of.n, n);
}

/* The callers of an event, outermost first, '-' before those behind a gap. */
static void assert_path(struct burst_stacks *s, size_t event, const char *want)
{
	char got[64];
	size_t at = sizeof got - 1;

	got[at] = 0;
	for (uint32_t f = s->of.p[event]; f != BURST_NO_FRAME; f = s->frames.p[f].caller) {
		got[--at] = (char)s->frames.p[f].procedure;
		if (s->frames.p[f].gap)
			got[--at] = '-';
	}
	assert_string_equal(got + at, want);
}

static void calls(void **state)
{
	struct burst_stacks s = {0};

	(void)state;
	read_text(&s, ".M"
		      "fM"
		      ">F"
		      "gF"
		      ">G"
		      ".G"
		      "<G"
		      ".F"
		      "<F"
		      ".M"
		      "*M"
		      ">G"
		      ".G");
	assert_true(s.calls);
	assert_path(&s, 0, "M");
	assert_path(&s, 5, "MFG");
	assert_path(&s, 7, "MF");
	assert_path(&s, 9, "M");
	assert_path(&s, 12, "MG");
	/* F and G in F; F and G in M; none with what is elsewhere. */
	assert_int_equal(burst_stacks_common(&s, s.of.p[5], s.of.p[7]), s.of.p[7]);
	assert_int_equal(burst_stacks_common(&s, s.of.p[5], s.of.p[12]), s.of.p[0]);
	assert_int_equal(burst_stacks_common(&s, s.of.p[0], s.of.p[5]), s.of.p[0]);
	read_text(&s, ".M"
		      ".M");
	assert_false(s.calls);
	assert_path(&s, 1, "M");
	burst_stacks_deinit(&s);
}

/* Each activation is a frame of its own. */
static void recursion(void **state)
{
	struct burst_stacks s = {0};

	(void)state;
	read_text(&s, ">F"
		      "fF"
		      ">F"
		      "fF"
		      ">F"
		      ".F"
		      "<F"
		      ".F"
		      "<F"
		      "<F"
		      ">F"
		      ".F");
	assert_path(&s, 5, "FFF");
	assert_path(&s, 7, "FF");
	assert_path(&s, 11, "F");
	assert_int_equal(burst_stacks_common(&s, s.of.p[0], s.of.p[11]), BURST_NO_FRAME);
	burst_stacks_deinit(&s);
}

/* Whoever is not recorded may lie between. */
static void gaps(void **state)
{
	struct burst_stacks s = {0};

	(void)state;
	/* M calls the library, which calls F. */
	read_text(&s, "xM"
		      ">F"
		      ".F"
		      "<F"
		      ".M");
	assert_path(&s, 2, "M-F");
	assert_path(&s, 4, "M");
	/* M calls F, whose entry is not recorded; or somebody who calls G. */
	read_text(&s, "fM"
		      ".F"
		      "fM"
		      ".G"
		      ".M");
	assert_path(&s, 1, "MF");
	assert_path(&s, 3, "M-G");
	assert_path(&s, 4, "M");
	burst_stacks_deinit(&s);
}

/* What was there before the burst is not known when it is returned to, nor who calls behind. */
static void below(void **state)
{
	struct burst_stacks s = {0};

	(void)state;
	read_text(&s, ".G"
		      "<G"
		      ".M"
		      "fM"
		      ">F"
		      ".F"
		      "<F"
		      "<M"
		      ">H"
		      ".H");
	assert_path(&s, 0, "G");
	assert_path(&s, 2, "M");
	assert_path(&s, 5, "MF");
	assert_path(&s, 9, "H");
	burst_stacks_deinit(&s);
}

/* An exception goes from G to M; a jump from F, which called nobody, to somebody unknown. */
static void unwinding(void **state)
{
	struct burst_stacks s = {0};

	(void)state;
	read_text(&s, "fM"
		      ">F"
		      "gF"
		      ">G"
		      "xG"
		      ".M"
		      "fM"
		      ">F"
		      ".F"
		      ".Z"
		      ".Z");
	assert_path(&s, 4, "MFG");
	assert_path(&s, 5, "M");
	assert_path(&s, 8, "MF");
	assert_path(&s, 10, "Z");
	burst_stacks_deinit(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls),
		cmocka_unit_test(recursion),
		cmocka_unit_test(gaps),
		cmocka_unit_test(below),
		cmocka_unit_test(unwinding),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
