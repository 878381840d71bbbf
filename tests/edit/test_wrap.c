/*
 * Wrapped calls, and second copies with frames of their own: the program says what it said, only
 * from deeper down, and stacks can be walked and exceptions thrown through all of it.
 */
#include "edit/edit_rig.h"

#include "base/err.h"
#include "edit/edit.h"
#include "edit/wrap.h"
#include "isa/decode.h"

enum { BYTES = 48 };

static const char program[] =
	"#include <cstdio>\n"
	"#include <cstdlib>\n"
	"#include <unwind.h>\n"
	"extern \"C\" {\n"
	"volatile int depth; char *high; long deep[8];\n"
	"static _Unwind_Reason_Code count(struct _Unwind_Context *, void *n) {\n"
	"	++*(int *)n; return _URC_NO_REASON; }\n"
	"__attribute__((noinline)) long leaf(int i) {\n"
	"	char here; int n = 0; _Unwind_Backtrace(count, &n);\n"
	"	deep[i] = high - &here; if (i == 7) throw n; return n; }\n"
	"__attribute__((noinline)) long plain(int i) { return leaf(i) * 3 + depth; }\n"
	"__attribute__((noinline)) long many(long a, long b, long c, long d, long e, long f, long "
	"g, "
	"long h)\n"
	"	{ return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + leaf(0) * h; }\n"
	"__attribute__((noinline)) long tail(int i) { depth++; return plain(i); }\n"
	"__attribute__((noinline)) long tail_many(long a, long b, long c, long d, long e, long f, "
	"long g, long h) { return many(b, a, d, c, f, e, g, h); }\n"
	"__attribute__((noinline)) long bare(int i) { return plain(i) + 1; }\n"
	"__attribute__((noinline)) long first(int i) {\n"
	"	long sum = plain(i) + tail(i + 1);\n"
	"	return sum + many(1, 2, 3, 4, 5, 6, 7, i) + tail_many(1, 2, 3, 4, 5, 6, 7, i); }\n"
	"__attribute__((noinline)) long second(int i) { long x = plain(i); return x ^ bare(i); }\n"
	"__attribute__((noinline)) long catches(int i) {\n"
	"	try { return plain(i); } catch (int x) { return x + 100; } }\n"
	"}\n"
	"int main() {\n"
	"	char here; high = &here;\n"
	"	printf(\"%ld\\n%ld\\n\", first(1), second(3));\n"
	"	printf(\"%ld\\n%ld\\n\", catches(7), catches(4));\n"
	"	for (int i = 1; i < 8; i++) fprintf(stderr, \"%ld\\n\", deep[i]);\n"
	"	return 0; }\n";

static struct edit *editing;

static void begin(const char *compiler)
{
	const struct edit_options options = {.strict = true};
	struct err err = {0};

	write_text("main.cc", program);
	shell("%s -w -o code main.cc && ./code > expected 2> depths", compiler);
	if (edit_open(in_workshop("code"), &options, &editing, &err))
		fail_msg("%s", err.text);
}

/* The call of one function in another. */
static uint32_t find_call(const struct edit_function *f, const char *to)
{
	uint64_t start = find_function(editing, to)->procedure->start;

	for (uint32_t i = 0; i < f->flow->ninsns; i++)
		if (f->flow->insns[i].kind == INSN_CALL && flow_target(&f->flow->insns[i]) == start)
			return i;
	fail_msg("no call of %s", to);
	return 0;
}

static void wrap(const char *from, const char *to)
{
	struct edit_function *f = find_function(editing, from);
	const char *why = "";

	if (!edit_wrap_call(editing, f, find_call(f, to), BYTES, &why))
		fail_msg("%s to %s: %s", from, to, why);
}

static void refuses(const char *from, const char *to)
{
	struct edit_function *f = find_function(editing, from);
	const char *why = NULL;

	assert_false(edit_wrap_call(editing, f, find_call(f, to), BYTES, &why));
	assert_non_null(why);
}

/* How much deeper than before: the last call of leaf with 1, 2, ... */
static void run(const long *more, size_t n)
{
	struct err err = {0};
	long a, b;

	if (edit_write(editing, in_workshop("edited"), &err))
		fail_msg("%s", err.text);
	edit_destroy(editing);
	shell("./edited > got 2> deep && cmp got expected");
	FILE *f = fopen(in_workshop("depths"), "r"), *g = fopen(in_workshop("deep"), "r");
	assert_true(f && g);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(fscanf(f, "%ld", &a), 1);
		assert_int_equal(fscanf(g, "%ld", &b), 1);
		if (b - a != more[i])
			fail_msg("leaf(%zu) is %ld deeper, not %ld", i + 1, b - a, more[i]);
	}
	fclose(f);
	fclose(g);
}

static void check_wrapped(const char *compiler)
{
	begin(compiler);
	wrap("first", "plain");
	wrap("first", "tail");
	wrap("bare", "plain");
	refuses("first", "many");
	refuses("first", "tail_many");
	refuses("catches", "plain");
	run((const long[]){BYTES, BYTES, BYTES, 0}, 4);
}

static void test_wrapped(void **state)
{
	(void)state;
	check_wrapped("g++ -O2 -fno-inline -fno-ipa-cp -fno-ipa-sra");
	check_wrapped("clang++ -O1 -fno-omit-frame-pointer");
}

/* Frames, and calls in them; what is wrapped in a bare function is wrapped twice as much. */
static void test_padded(void **state)
{
	const char *why;

	(void)state;
	begin("g++ -O2 -fno-inline -fno-ipa-cp -fno-ipa-sra");
	assert_true(edit_pad_frame(editing, find_function(editing, "second"), 32, &why));
	assert_true(edit_pad_frame(editing, find_function(editing, "plain"), 16, &why));
	wrap("second", "plain");
	run((const long[]){16, 16, 32 + 16, 16}, 4);
}

/* One caller goes to a second copy, which has a larger frame than the first. */
static void test_copy(void **state)
{
	const char *why = "";

	(void)state;
	begin("g++ -O2 -fno-inline -fno-ipa-cp -fno-ipa-sra");
	struct edit_function *plain = find_function(editing, "plain");
	struct edit_function *catches = find_function(editing, "catches");
	assert_true(edit_pad_frame(editing, plain, 16, &why));
	struct edit_function *copy = edit_duplicate(editing, plain, &why);
	assert_non_null(copy);
	if (!edit_pad_copy(editing, copy, 64, &why))
		fail_msg("%s", why);
	edit_redirect_call(editing, catches, find_call(catches, "plain"), copy);
	wrap("plain", "leaf");
	run((const long[]){16 + BYTES, 16 + BYTES, 16 + BYTES, 64 + BYTES, 0, 0, 64 + BYTES}, 7);
}

/* A second copy with the old frame of a function that has a larger one. */
static void test_old_frame(void **state)
{
	const char *why = "";

	(void)state;
	begin("g++ -O2 -fno-inline -fno-ipa-cp -fno-ipa-sra");
	struct edit_function *plain = find_function(editing, "plain");
	struct edit_function *bare = find_function(editing, "bare");
	assert_true(edit_pad_frame(editing, plain, 16, &why));
	assert_false(edit_pad_copy(editing, plain, 16, &why));
	struct edit_function *copy = edit_duplicate(editing, plain, &why);
	assert_true(copy && edit_pad_copy(editing, copy, 0, &why));
	edit_redirect_call(editing, bare, find_call(bare, "plain"), copy);
	run((const long[]){16, 16, 0, 16}, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wrapped),
		cmocka_unit_test(test_padded),
		cmocka_unit_test(test_copy),
		cmocka_unit_test(test_old_frame),
	};
	return cmocka_run_group_tests(tests, open_workshop, close_workshop);
}
