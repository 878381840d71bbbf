/*
 * Larger frames: programs do what they did, exceptions find their way, and the stack is as much
 * deeper as was asked for.
 */
#include "image/workshop.h"

#include "base/err.h"
#include "edit/edit.h"
#include "image/image.h"

enum { PAD = 48 };

/* Each function asks how deep the stack is where it calls. */
static const char program[] =
	"#include <alloca.h>\n#include <csetjmp>\n#include <cstdarg>\n#include <cstdio>\n"
	"#include <cstring>\n"
	"static char *high, *low;\n"
	"extern \"C\" {\n"
	"__attribute__((noinline, noipa)) void probe(void *p) {\n"
	"	char here; low = p ? &here : &here; __asm__ volatile(\"\" : : \"r\"(p) : "
	"\"memory\"); }\n"
	"__attribute__((noinline)) long few(long a) { probe(0); return a + 1; }\n"
	"__attribute__((noinline)) long many(long a, long b, long c, long d, long e, long f,\n"
	"		long g, long h) {\n"
	"	long t[6] = {a, b, c, d, e, f}; probe(t);\n"
	"	return t[a & 3] * g - h + b * c + d * e * f; }\n"
	"__attribute__((noinline)) long passes(long a, long b) {\n"
	"	probe(0); return many(a, b, a + 1, b + 1, a + 2, b + 2, a * b, a - b); }\n"
	"__attribute__((noinline)) long varying(int n, ...) {\n"
	"	va_list l; long sum = 0; va_start(l, n);\n"
	"	for (int i = 0; i < n; i++) sum = sum * 3 + va_arg(l, long);\n"
	"	if (n & 1) sum += (long)va_arg(l, double);\n"
	"	va_end(l); probe(0); return sum; }\n"
	"__attribute__((noinline)) long grows(long n, long x) {\n"
	"	char *p = (char *)alloca(n); memset(p, (int)x, n); probe(p);\n"
	"	long sum = x; for (long i = 0; i < n; i++) sum += p[i]; return sum; }\n"
	"__attribute__((noinline)) long aligned(long n) {\n"
	"	__attribute__((aligned(64))) long t[8]; probe(t);\n"
	"	for (int i = 0; i < 8; i++) t[i] = n * i;\n"
	"	probe(t); return t[n & 7] + ((long)t & 63); }\n"
	"struct large { long v[9]; };\n"
	"__attribute__((noinline)) long by_value(struct large s, long i) {\n"
	"	probe(&s); s.v[1] += i; return s.v[2] * i + s.v[8] + s.v[1]; }\n"
	"__attribute__((noinline)) long early(long a) {\n"
	"	if (a < 3) return a; long t[4] = {a, 2, 3, 4}; probe(t); return t[a & 3] + early(a "
	"/ 2); }\n"
	"__attribute__((noinline)) long leaf(long a) {\n"
	"	volatile long t[8]; for (int i = 0; i < 8; i++) t[i] = a * i; return t[a & 7]; }\n"
	"__attribute__((noinline)) long saves(long a) {\n"
	"	long b = leaf(a), c = leaf(b), d = leaf(c + 1), e = leaf(d), f = leaf(e + 2);\n"
	"	probe(0); return a + b * 2 + c * 3 + d * 5 + e * 7 + f * 11 + leaf(a + b + c); }\n"
	"__attribute__((noinline)) void throws(long a, long b, long c, long d, long e, long f, "
	"long g) {\n"
	"	long t[3] = {a, b, g}; probe(t); if (a + g > 5) throw t[2] + f + c + d + e; }\n"
	"__attribute__((noinline)) long catches(long a) {\n"
	"	long t[5] = {a, a + 1, a + 2, a + 3, a + 4};\n"
	"	struct guard { long *p; ~guard() { *p += 100; } } g = {&t[2]};\n"
	"	try { probe(t); throws(a, 1, 2, 3, 4, 5, t[1]); } catch (long x) { return x + t[a "
	"& 3]; }\n"
	"	return t[4]; }\n"
	"static jmp_buf back;\n"
	"__attribute__((noinline)) void jumps(long a) { probe(0); if (a) longjmp(back, (int)a); }\n"
	"__attribute__((noinline)) long returns_twice(long a) {\n"
	"	volatile long t = a; int r = setjmp(back); if (!r) jumps(a); probe(0); return t * "
	"r; }\n"
	"}\n"
	"static struct large big(long a) { struct large s;\n"
	"	for (int i = 0; i < 9; i++) s.v[i] = a * i; return s; }\n"
	"#define ASK(name, call) do { long r = call; \\\n"
	"	printf(\"%s %ld\\n\", name, r); fprintf(stderr, \"%ld\\n\", (long)(high - low)); } "
	"while (0)\n"
	"int main() {\n"
	"	char here; high = &here;\n"
	"	ASK(\"few\", few(3)); ASK(\"many\", many(1, 2, 3, 4, 5, 6, 7, 8));\n"
	"	ASK(\"varying\", varying(9, 1L, 2L, 3L, 4L, 5L, 6L, 7L, 8L, 9L, 7.5));\n"
	"	ASK(\"grows\", grows(1000, 3)); ASK(\"aligned\", aligned(13));\n"
	"	printf(\"%ld\\n\", by_value(big(4), 5)); ASK(\"saves\", saves(9));\n"
	"	ASK(\"catches\", catches(4) * 0 + catches(1));\n"
	"	ASK(\"returns_twice\", returns_twice(6));\n"
	"	printf(\"%ld %ld %ld\\n\", early(100), passes(5, 6), catches(3));\n"
	"	return 0; }\n";

/* What is asked, in its order; aligned frames take the gap into their alignment. */
static const char *const asked[] = {
	"few", "many", "varying", "grows", "aligned", "saves", "catches", "returns_twice"};
enum { ASKED = sizeof asked / sizeof *asked };

/* Pads one function, or all (NULL); how many. */
static unsigned pad(struct edit *e, const char *only)
{
	struct edit_function **list;
	size_t n = edit_functions(e, &list);
	unsigned done = 0;

	for (size_t i = 0; i < n; i++) {
		const char *name = list[i]->procedure->name, *why;
		if (list[i]->refused || (only && (!name || strcmp(name, only))))
			continue;
		bool padded = edit_pad_frame(e, list[i], PAD, &why);
		if (only && !padded)
			fail_msg("%s: %s", only, why);
		done += padded;
	}
	return done;
}

static void edit(const char *only)
{
	const struct edit_options options = {.strict = true};
	struct err err = {0};
	struct edit *e;

	if (edit_open(in_workshop("code"), &options, &e, &err))
		fail_msg("%s", err.text);
	assert_true(pad(e, only) > 0);
	if (edit_write(e, in_workshop("edited"), &err))
		fail_msg("%s", err.text);
	edit_destroy(e);
	shell("./edited > got 2> deep && cmp got expected");
}

static void read_depths(const char *file, long *depths)
{
	FILE *f = fopen(in_workshop(file), "r");

	assert_non_null(f);
	for (int i = 0; i < ASKED; i++)
		assert_int_equal(fscanf(f, "%ld", &depths[i]), 1);
	fclose(f);
}

static void check(const char *compiler, bool one_by_one)
{
	long before[ASKED], after[ASKED];

	write_text("main.cc", program);
	shell("%s -w -o code main.cc && ./code > expected 2> depths", compiler);
	read_depths("depths", before);
	for (int i = 0; one_by_one && i < ASKED; i++) {
		edit(asked[i]);
		read_depths("deep", after);
		for (int k = 0; k < ASKED; k++) {
			long more = k == i ? PAD : 0;
			bool loose = !strcmp(asked[k], "aligned");
			if (after[k] - before[k] != more && !loose)
				fail_msg("%s: %s is %ld deeper, when %s was padded", compiler,
					asked[k], after[k] - before[k], asked[i]);
		}
	}
	edit(NULL);
}

static void test_gcc(void **state)
{
	(void)state;
	check("g++ -O2", true);
	check("g++ -O1 -fno-omit-frame-pointer -no-pie", false);
	check("g++ -O3 -fno-shrink-wrap", false);
}

static void test_clang(void **state)
{
	(void)state;
	check("clang++ -O2", true);
	check("clang++ -O0", false);
}

static void test_unoptimised(void **state)
{
	(void)state;
	check("g++ -O0", true);
}

/* Its argument lies where a loop over the rows of its table would end. */
static void test_beyond(void **state)
{
	struct edit_function **list;
	struct err err = {0};
	struct edit *e;
	const char *why = NULL;
	size_t n;

	(void)state;
	write_text("main.cc", program);
	shell("g++ -O1 -w -o code main.cc");
	assert_int_equal(edit_open(in_workshop("code"), &(struct edit_options){0}, &e, &err), 0);
	n = edit_functions(e, &list);
	for (size_t i = 0; i < n; i++)
		if (list[i]->procedure->name && !strcmp(list[i]->procedure->name, "by_value"))
			assert_false(edit_pad_frame(e, list[i], PAD, &why));
	assert_non_null(why);
	edit_destroy(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gcc),
		cmocka_unit_test(test_clang),
		cmocka_unit_test(test_unoptimised),
		cmocka_unit_test(test_beyond),
	};
	return cmocka_run_group_tests(tests, open_workshop, close_workshop);
}
