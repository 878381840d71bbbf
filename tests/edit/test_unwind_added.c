/*
 * Unwinding out of code that was added: a snippet before every instruction and on every edge of a
 * program that steps through itself and looks for its main frame (steps.c).
 */
#include "base/err.h"
#include "edit/edit.h"
#include "edit/snippet.h"
#include "image/workshop.h"

/* What saves nothing, what needs flags, and what borrows registers that are in use. */
static const char *const snippets[] = {
	"[a0] += 1",
	"atomic [a0] += 1",
	"t0 = [a0]; t1 = [a1]; t2 = [a2]; t0 += t1; t0 += t2; [a0] = t0",
};

static void add_everywhere(struct edit *e, const struct snippet *s)
{
	uint64_t data = edit_data(e, 64, 8), arguments[] = {data, data + 8, data + 16};
	struct edit_function **f;
	size_t n = edit_functions(e, &f);

	for (size_t i = 0; i < n; i++) {
		if (f[i]->refused)
			continue;
		edit_at_entry(e, f[i], s, arguments);
		for (uint32_t k = 0; k < f[i]->flow->ninsns; k++)
			edit_before(e, f[i], k, s, arguments);
		for (uint32_t k = 0; k < f[i]->flow->graph.edges; k++) {
			if (edit_edge_carries(f[i], k) && edit_edge_group(f[i], k) == k)
				edit_on_edge(e, f[i], k, s, arguments);
		}
	}
}

static void edit_steps(const char *text)
{
	struct edit_options options = {.strict = true};
	struct snippet *s;
	struct edit *e;
	struct err err;

	assert_int_equal(snippet_create(text, &s, &err), 0);
	if (edit_open(in_workshop("steps"), &options, &e, &err))
		fail_msg("%s", err.text);
	add_everywhere(e, s);
	if (edit_write(e, in_workshop("edited"), &err))
		fail_msg("%s", err.text);
	edit_destroy(e);
	snippet_destroy(s);
}

static void check(const char *options)
{
	char source[4096];

	assert_non_null(realpath("tests/e2e/programs/edit/steps.c", source));
	shell("gcc -w %s -o steps %s && ./steps 1 >before 2>/dev/null", options, source);
	for (size_t i = 0; i < sizeof snippets / sizeof *snippets; i++) {
		edit_steps(snippets[i]);
		shell("./edited 1 >after 2>/dev/null");
		shell("cmp before after && grep -q '^lost 0 of many' after");
	}
}

static void test_frame_pointer(void **state)
{
	(void)state;
	check("-O0");
}

static void test_stack_pointer(void **state)
{
	(void)state;
	check("-O2");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frame_pointer),
		cmocka_unit_test(test_stack_pointer),
	};
	return cmocka_run_group_tests(tests, open_workshop, close_workshop);
}
