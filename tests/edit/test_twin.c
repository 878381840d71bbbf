/*
 * Functions that exist twice: control goes from one copy to the other where snippets say so and
 * nowhere else, through tables and exceptions; calls that go elsewhere.
 */
#include "edit/edit_rig.h"

#include "base/err.h"
#include "edit/edit.h"
#include "edit/snippet.h"
#include "image/image.h"

static const char program[] =
	"#include <cstdio>\n"
	"extern \"C\" {\n"
	"long counters[64];\n"
	"__attribute__((noinline)) void thrower(int n) { if (n % 3 == 0) throw n; }\n"
	"__attribute__((noinline)) int pick(unsigned i, int sum) {\n"
	"	switch (i) {\n"
	"	case 0: return sum + 3;\n"
	"	case 1: return sum ^ 5;\n"
	"	case 2: return sum - 7 * i;\n"
	"	case 3: return sum * 9;\n"
	"	case 4: thrower(i); return sum | i;\n"
	"	case 5: return -sum;\n"
	"	case 6: return sum << 1;\n"
	"	}\n"
	"	return sum % 1000; }\n"
	"__attribute__((noinline)) int work(int n) {\n"
	"	int sum = 0;\n"
	"	for (int i = 0; i < n; i++) {\n"
	"		sum = pick(i & 7, sum);\n"
	"		try { thrower(i); } catch (int x) { sum += x; }\n"
	"	}\n"
	"	return sum; }\n"
	"__attribute__((noinline)) int one(int n) { return n * 3 + counters[60]; }\n"
	"__attribute__((noinline)) int two(int n) { return n * 5 + counters[60]; }\n"
	"__attribute__((noinline)) int caller(int n) { return one(n) + 1; }\n"
	/* Its frame is what it pushes. */
	"__attribute__((noinline)) int pushes(int a, int b) {\n"
	"	int sum = one(a);\n"
	"	if (b & 1) sum ^= one(b);\n"
	"	return one(sum) * a - b + sum; }\n"
	"}\n"
	"int main() {\n"
	"	int sum = work(16) + work(5) + pushes(3, 4) + pushes(6, 7);\n"
	"	printf(\"%d\\n%d\\n\", sum, caller(10));\n"
	"	for (int i = 0; i < 16; i++) printf(\"%ld\\n\", counters[i]);\n"
	"	return 0; }\n";

static struct edit *editing;
static struct snippet *count, *leave, *leave_often, *leave_apart;

static void begin(const char *compiler)
{
	const struct edit_options options = {.strict = true};
	struct err err = {0};

	write_text("main.cc", program);
	shell("%s -w -o code main.cc", compiler);
	if (edit_open(in_workshop("code"), &options, &editing, &err))
		fail_msg("%s", err.text);
	assert_int_equal(snippet_create("[a0] += 1", &count, &err), 0);
	assert_int_equal(snippet_create("goto a0", &leave, &err), 0);
	assert_int_equal(
		snippet_create("[a0] += 1; t0 = [a0]; if t0 < a1 goto stay; [a0] = 0; goto a2; "
			       "stay:",
			&leave_often, &err),
		0);
	assert_int_equal(snippet_create("[a0] += 1; t0 = [a0]; if t0 >= a1 goto over; apart; over: "
					"[a0] = 0; goto a2",
				 &leave_apart, &err),
		0);
}

static const uint64_t *counter(unsigned i)
{
	static uint64_t at;
	unsigned long long address = 0;

	shell("nm code | awk '$3 == \"counters\" {print $1}' > address");
	FILE *f = fopen(in_workshop("address"), "r");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%llx", &address), 1);
	fclose(f);
	at = address + 8 * i;
	return &at;
}

static struct edit_function *duplicate(const char *name)
{
	const char *why = "";
	struct edit_function *twin = edit_duplicate(editing, find_function(editing, name), &why);

	if (!twin)
		fail_msg("%s: %s", name, why);
	return twin;
}

static void count_edges(struct edit_function *f, uint8_t kind, unsigned i)
{
	for (uint32_t e = 0; e < f->flow->graph.edges; e++)
		if (f->flow->edge_kind[e] == kind && edit_edge_carries(f, e) &&
			edit_edge_group(f, e) == e)
			edit_on_edge(editing, f, e, count, counter(i));
}

static void run(const char *result, const long *counts, size_t n)
{
	struct err err = {0};

	if (edit_write(editing, in_workshop("edited"), &err))
		fail_msg("%s", err.text);
	edit_destroy(editing);
	snippet_destroy(count);
	snippet_destroy(leave);
	snippet_destroy(leave_often);
	snippet_destroy(leave_apart);
	shell("./code > said && head -1 said > expected && echo %s >> expected", result);
	shell("./edited > got && head -2 got | cmp - expected && tail -n +3 got > counts");
	FILE *f = fopen(in_workshop("counts"), "r");
	long value;
	assert_non_null(f);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(fscanf(f, "%ld", &value), 1);
		if (value != counts[i])
			fail_msg("counter %zu is %ld, not %ld", i, value, counts[i]);
	}
	fclose(f);
}

/* All of a call happens in the second copy, tables and landing pads included. */
static void stays_there(const char *compiler)
{
	begin(compiler);
	struct edit_function *twin = duplicate("work"), *pick = duplicate("pick");
	const char *why = NULL;
	assert_null(edit_duplicate(editing, find_function(editing, "work"), &why));
	assert_non_null(why);
	edit_at_entry(
		editing, find_function(editing, "work"), leave, (const uint64_t[]){EDIT_OTHER});
	edit_at_entry(
		editing, find_function(editing, "pick"), leave, (const uint64_t[]){EDIT_OTHER});
	count_edges(pick, FLOW_EDGE_TABLE, 0);
	count_edges(twin, FLOW_EDGE_UNSEEN, 1);
	count_edges(twin, FLOW_EDGE_RETURN, 2);
	count_edges(find_function(editing, "pick"), FLOW_EDGE_TABLE, 3);
	count_edges(find_function(editing, "work"), FLOW_EDGE_UNSEEN, 4);
	count_edges(find_function(editing, "work"), FLOW_EDGE_RETURN, 5);
	run("31", (const long[]){19, 8, 2, 0, 0, 0}, 6);
}

static void test_stays_there(void **state)
{
	(void)state;
	stays_there("g++ -O2");
	stays_there("g++ -O2 -no-pie -fno-pie");
	stays_there("clang++ -O1");
}

static void enlarge(const char *name)
{
	const char *why = "";

	if (!edit_pad_frame(editing, find_function(editing, name), 32, &why))
		fail_msg("%s: %s", name, why);
}

/* Back and forth, on every edge and before every instruction; the snippets do not run twice. */
static void switches(bool larger, bool apart)
{
	begin("g++ -O2 -fno-ipa-ra");
	uint64_t slot = edit_data(editing, 8, 8);
	struct edit_function *copies[] = {find_function(editing, "work"), duplicate("work"),
		find_function(editing, "pick"), duplicate("pick"), find_function(editing, "pushes"),
		duplicate("pushes")};
	if (larger) {
		enlarge("work");
		enlarge("pick");
		enlarge("pushes");
	}
	for (unsigned c = 0; c < sizeof copies / sizeof *copies; c++) {
		struct edit_function *f = copies[c];
		count_edges(f, FLOW_EDGE_TABLE, 0);
		for (uint32_t i = 0; i < f->flow->ninsns; i++)
			edit_before(editing, f, i, apart ? leave_apart : leave_often,
				(const uint64_t[]){slot, 2 + i % 3, EDIT_OTHER});
		for (uint32_t i = 0; i < f->flow->graph.edges; i++)
			if (edit_edge_carries(f, i) && edit_edge_group(f, i) == i)
				edit_on_edge(editing, f, i, leave, (const uint64_t[]){EDIT_OTHER});
		count_edges(f, FLOW_EDGE_UNSEEN, 1);
	}
	/* What comes behind a jump to the other copy is not reached. */
	run("31", (const long[]){19, 0}, 2);
}

static void test_switches(void **state)
{
	(void)state;
	switches(false, false);
	switches(false, true);
}

/* Frames are made larger in both copies, in the middle of which control goes over. */
static void test_switches_in_larger_frames(void **state)
{
	(void)state;
	switches(true, false);
	switches(true, true);
}

static uint32_t call_in(const struct edit_function *f)
{
	for (uint32_t i = 0; i < f->flow->ninsns; i++)
		if (f->flow->insns[i].kind == INSN_CALL)
			return i;
	fail_msg("no call");
	return 0;
}

static void test_redirect(void **state)
{
	(void)state;
	begin("g++ -O1");
	struct edit_function *two = duplicate("two"), *caller = find_function(editing, "caller");
	edit_at_entry(editing, two, count, counter(0));
	edit_at_entry(editing, find_function(editing, "two"), count, counter(1));
	edit_redirect_call(editing, caller, call_in(caller), two);
	run("51", (const long[]){1, 0}, 2);
}

/* lea 100(%rdi), %eax; ret; and what runs first: jmp to the program's own start */
static const uint8_t blob[] = {0x90, 0x90, 0x8d, 0x47, 0x64, 0xc3, 0xe9, 0, 0, 0, 0};

static void fill(void *arg, uint8_t *copy, uint64_t address, uint64_t then)
{
	int32_t far = (int32_t)(then - (address + sizeof blob));

	(void)arg;
	memcpy(copy + sizeof blob - 4, &far, sizeof far);
}

static void test_redirect_to_runtime(void **state)
{
	(void)state;
	begin("g++ -O1");
	struct edit_function *caller = find_function(editing, "caller");
	edit_runtime(editing, blob, sizeof blob, 6, fill, NULL);
	edit_redirect_to_runtime(editing, caller, call_in(caller), 2);
	run("111", NULL, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stays_there),
		cmocka_unit_test(test_switches),
		cmocka_unit_test(test_switches_in_larger_frames),
		cmocka_unit_test(test_redirect),
		cmocka_unit_test(test_redirect_to_runtime),
	};
	return cmocka_run_group_tests(tests, open_workshop, close_workshop);
}
