#include "analyze/value_code.h"
#include "base/err.h"
#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/*
 * A procedure of two ranges; the second, at a lower address, is its fragment.
 *
 *   2000  mov    (%rsi),%rax        reads rsi
 *   2003  xor    %edx,%edx          rdx is written first
 *   2005  mov    %rax,0x8(%rdi)     a loop begins
 *   2009  mov    $0x64,%ecx
 *   200e  test   %rdx,%rdx
 *   2011  jne    2005               and ends
 *   2013  call   2018               goes on
 *   2018  jmp    1000               back to the fragment, which is no loop
 *   201d  (bad)
 *   201e  ret
 *
 *   1000  mov    %r9,0x10(%rdi)
 *   1004  jmp    201e
 *
 * And one whose stack is protected:
 *
 *   4000  mov    %fs:0x28,%rax
 *   4009  mov    %rax,0x8(%rsp)
 *   400e  xor    %eax,%eax
 *   4010  mov    0x8(%rsp),%rdx
 *   4015  sub    %fs:0x28,%rdx
 *   401e  ret
 */
static const uint8_t code[] = {0x48, 0x8b, 0x06, 0x31, 0xd2, 0x48, 0x89, 0x47, 0x08, 0xb9, 0x64, 0,
	0, 0, 0x48, 0x85, 0xd2, 0x75, 0xf2, 0xe8, 0, 0, 0, 0, 0xe9, 0xe3, 0xef, 0xff, 0xff, 0x06,
	0xc3, /* the fragment */ 0x4c, 0x89, 0x4f, 0x10, 0xe9, 0x15, 0x10, 0, 0};
enum { MAIN = 31, FRAGMENT = 9 };

static const uint8_t guarded[] = {0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0, 0x48, 0x89, 0x44,
	0x24, 0x08, 0x31, 0xc0, 0x48, 0x8b, 0x54, 0x24, 0x08, 0x64, 0x48, 0x2b, 0x14, 0x25, 0x28, 0,
	0, 0, 0xc3};

struct scene {
	char dir[32], path[64];
	struct store *s;
	struct selection *sel;
	struct selected_image *image;
	struct value_file file;
	struct err e;
};

static void check(struct scene *sc, int rc)
{
	if (rc)
		fail_msg("%s", sc->e.text);
}

static void fill(struct scene *sc)
{
	static const struct range ranges[] = {{0x2000, MAIN}, {0x1000, FRAGMENT}},
				  bare = {0x3000, 0x10}, whole = {0x4000, sizeof guarded};
	const struct store_procedure list[] = {
		{{0x2000, ranges, 2, PROCEDURE_SYMBOL, "work"}, code, sizeof code},
		{{0x3000, &bare, 1, PROCEDURE_EH_FRAME, NULL}, NULL, 0},
		{{0x4000, &whole, 1, PROCEDURE_SYMBOL, "guarded"}, guarded, sizeof guarded},
	};
	const struct store_image im = {.kind = IMAGE_ELF, .path = "/opt/v/code"};
	int64_t id;

	_Static_assert(sizeof code == MAIN + FRAGMENT, "the two ranges");
	check(sc, store_image(sc->s, &im, &id, &sc->e));
	check(sc, store_procedures_add(sc->s, id, list, 3, &sc->e));
}

static int set_up(void **state)
{
	struct scene *sc = xcalloc(1, sizeof *sc);

	strcpy(sc->dir, "/tmp/code.XXXXXX");
	assert_non_null(mkdtemp(sc->dir));
	snprintf(sc->path, sizeof sc->path, "%s/db", sc->dir);
	check(sc, store_open(sc->path, STORE_WRITE, &sc->s, &sc->e));
	check(sc, store_begin(sc->s, &sc->e));
	fill(sc);
	check(sc, store_commit(sc->s, &sc->e));
	check(sc, selection_create(sc->s, &(struct selection_options){0}, &sc->sel, &sc->e));
	assert_int_equal(selection_images(sc->sel, &sc->image), 1);
	check(sc, selection_load(sc->sel, sc->image, &sc->e));
	*state = sc;
	return 0;
}

static int tear_down(void **state)
{
	struct scene *sc = *state;

	value_file_deinit(&sc->file);
	selection_destroy(sc->sel);
	store_close(sc->s);
	unlink(sc->path);
	assert_int_equal(rmdir(sc->dir), 0);
	free(sc);
	return 0;
}

static struct value_code *code_of(struct scene *sc, uint32_t procedure)
{
	struct value_code *c;

	check(sc, value_code_create(sc->sel, sc->image, procedure, &sc->file, &c, &sc->e));
	return c;
}

static void assert_run(const struct value_code *c, uint64_t address, uint64_t first, uint64_t end)
{
	const struct code_insn *i = value_code_at(c, address);
	uint64_t got_first, got_end;

	assert_non_null(i);
	value_code_run(c, i, &got_first, &got_end);
	assert_int_equal(got_first, first);
	assert_int_equal(got_end, end);
}

static void runs(void **state)
{
	struct value_code *c = code_of(*state, 0);

	assert_run(c, 0x2000, 0x2000, 0x2005); /* up to a branch target */
	assert_run(c, 0x2003, 0x2000, 0x2005);
	assert_run(c, 0x2009, 0x2005, 0x2013); /* up to a branch */
	assert_run(c, 0x2013, 0x2013, 0x201d); /* calls do not end it */
	assert_run(c, 0x201e, 0x201e, 0x201f);
	assert_run(c, 0x1000, 0x1000, 0x1009);
	assert_null(value_code_at(c, 0x2001));
	assert_null(value_code_at(c, 0x201d));
	value_code_destroy(c);
}

/* Bursts were seen at all addresses below. */
static bool is_below(const void *arg, uint64_t address)
{
	return address < *(const uint64_t *)arg;
}

static void assert_group(const struct value_code *c, uint64_t address, uint64_t below,
	uint64_t first, uint64_t end, unsigned run, unsigned all)
{
	struct code_group g;

	value_code_group(c, value_code_at(c, address), is_below, &below, &g);
	assert_int_equal(g.first, first);
	assert_int_equal(g.end, end);
	assert_int_equal(g.run, run);
	assert_int_equal(g.all, all);
}

static void groups(void **state)
{
	struct value_code *c = code_of(*state, 0);

	assert_group(c, 0x2003, 0x3000, 0x2000, 0x2018, 2, 7); /* both sides, up to a call */
	assert_group(c, 0x2009, 0x3000, 0x2000, 0x2018, 4, 7);
	assert_group(c, 0x2013, 0x3000, 0x2000, 0x201d, 2, 8); /* and no more than eight */
	assert_group(c, 0x2003, 0x200e, 0x2000, 0x200e, 2, 4); /* what was seen less stays out */
	assert_group(c, 0x2003, 0x200f, 0x2000, 0x2013, 2, 6); /* a branch was seen as well */
	assert_group(c, 0x201e, 0x3000, 0x201e, 0x201f, 1, 1); /* nobody falls into it */
	assert_group(c, 0x1000, 0x3000, 0x1000, 0x1009, 2, 2); /* another range is elsewhere */
	value_code_destroy(c);
}

static void loops(void **state)
{
	static const uint64_t inside[] = {0x2005, 0x2009, 0x200e, 0x2011};
	static const uint64_t outside[] = {0x1000, 0x1004, 0x2000, 0x2003, 0x2013, 0x2018, 0x201e};
	struct value_code *c = code_of(*state, 0);

	for (size_t i = 0; i < 4; i++)
		assert_true(value_code_at(c, inside[i])->in_loop);
	for (size_t i = 0; i < 7; i++)
		assert_false(value_code_at(c, outside[i])->in_loop);
	assert_int_equal(value_code_at(c, 0x200e)->loop, 4);
	assert_int_equal(value_code_at(c, 0x2009)->loop, 0);
	assert_int_equal(value_code_at(c, 0x2013)->loop, 0); /* before a jump to the fragment */
	value_code_destroy(c);
}

static void guards(void **state)
{
	static const uint64_t all[] = {0x4000, 0x4009, 0x4010, 0x4015};
	struct value_code *c = code_of(*state, 2);

	for (size_t i = 0; i < 4; i++)
		assert_true(value_code_at(c, all[i])->guards);
	assert_false(value_code_at(c, 0x400e)->guards);
	assert_false(value_code_at(c, 0x401e)->guards);
	value_code_destroy(c);
	c = code_of(*state, 0);
	assert_false(value_code_at(c, 0x2000)->guards);
	value_code_destroy(c);
}

static void what_it_does(void **state)
{
	struct value_code *c = code_of(*state, 0);
	struct roles store, other;

	assert_int_equal(value_code_arguments(c), 1 << 0 | 1 << 1); /* rdi, rsi; not r9, rdx, rcx */
	assert_true(value_code_holds(c, 0x64));
	assert_false(value_code_holds(c, 0x65));
	assert_int_equal(isa_roles("\x48\x8b\x47\x08", 4, 0, &store), 0);
	assert_int_equal(isa_roles("\x48\x8b\x47\x18", 4, 0, &other), 0);
	assert_true(value_code_stores(c, store.place));
	assert_false(value_code_stores(c, other.place));
	value_code_destroy(c);
}

static void texts(void **state)
{
	struct scene *sc = *state;
	struct value_code *c = code_of(sc, 0);
	char text[128];

	value_code_text(c, value_code_at(c, 0x2011), ISA_ATT, text, sizeof text);
	assert_string_equal(text, "jne    2005 <work+0x5>");
	value_code_text(c, value_code_at(c, 0x2000), ISA_INTEL, text, sizeof text);
	assert_non_null(strstr(text, "rax,"));
	assert_true(value_code_name(sc->image, &sc->file, 0x3000, text, sizeof text));
	assert_string_equal(text, "code!0x3000");
	assert_false(value_code_name(sc->image, NULL, 0x5000, text, sizeof text));
	value_code_destroy(c);
}

/* The file is not there, so there is nothing but the procedure. */
static void no_code(void **state)
{
	struct value_code *c = code_of(*state, 1);

	assert_null(value_code_at(c, 0x3000));
	assert_int_equal(value_code_arguments(c), 0);
	assert_false(value_code_stores(c, 1));
	assert_false(value_code_holds(c, 1));
	value_code_destroy(c);
	value_code_destroy(NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(runs),
		TEST(groups),
		TEST(loops),
		TEST(guards),
		TEST(what_it_does),
		TEST(texts),
		TEST(no_code),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
