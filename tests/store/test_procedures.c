#include "store/fixture.h"
#include "store/store_internal.h"

static const struct range plain[] = {{0x1000, 0x40}};
static const struct range split[] = {{0x2000, 0x80}, {0x900, 0x10}};
static const struct range wide[] = {{0x3000, 0x1000}};
static const struct range inner[] = {{0x3100, 0x10}};

static const struct store_procedure some[] = {
	{{0x3000, wide, 1, PROCEDURE_GAP, NULL}, NULL, 0},
	{{0x1000, plain, 1, PROCEDURE_SYMBOL, "main"}, "\x55\xc3", 2},
	{{0x2000, split, 2, PROCEDURE_EH_FRAME, "f(int)"}, "\x90\x90\xc3", 3},
	{{0x3100, inner, 1, PROCEDURE_PLT, "puts@plt"}, "", 0},
};

static void reads_back(void **state)
{
	struct fixture *f = *state;
	struct store_procedures list = {0};

	ok(f, store_begin(f->s, &f->e));
	ok(f, store_procedures_add(f->s, f->image, some, 4, &f->e));
	ok(f, store_commit(f->s, &f->e));
	ok(f, store_procedures(f->s, f->image, &list, &f->e));
	assert_int_equal(list.n, 4);
	assert_int_equal(list.p[0].start, 0x1000);
	assert_string_equal(list.p[0].name, "main");
	assert_int_equal(list.p[1].nranges, 2);
	assert_memory_equal(list.p[1].ranges, split, sizeof split);
	assert_int_equal(list.p[1].source, PROCEDURE_EH_FRAME);
	assert_null(list.p[2].name);
	assert_int_equal(list.p[3].source, PROCEDURE_PLT);
	store_procedures_free(&list);
	assert_null(list.p);

	ok(f, store_procedures(f->s, 99, &list, &f->e)); /* an image without any */
	assert_int_equal(list.n, 0);
	assert_null(store_procedure_at(&list, 0x1000));
	store_procedures_free(&list);
	assert_sound(f);
}

static void finds_by_address(void **state)
{
	struct fixture *f = *state;
	struct store_procedures list = {0};
	static const struct {
		uint64_t vaddr, start;
	} expect[] = {
		{0, 0},
		{0x8ff, 0},
		{0x900, 0x2000},
		{0x90f, 0x2000},
		{0x910, 0},
		{0x1000, 0x1000},
		{0x103f, 0x1000},
		{0x1040, 0},
		{0x207f, 0x2000},
		{0x2080, 0},
		{0x30ff, 0x3000},
		{0x3100, 0x3100},
		{0x310f, 0x3100},
		{0x3110, 0x3000}, /* past the inner one, still in the outer */
		{0x3fff, 0x3000},
		{0x4000, 0},
		{UINT64_MAX, 0},
	};

	ok(f, store_begin(f->s, &f->e));
	ok(f, store_procedures_add(f->s, f->image, some, 4, &f->e));
	ok(f, store_commit(f->s, &f->e));
	ok(f, store_procedures(f->s, f->image, &list, &f->e));
	for (size_t i = 0; i < sizeof expect / sizeof *expect; i++) {
		const struct procedure *p = store_procedure_at(&list, expect[i].vaddr);

		assert_int_equal(p ? p->start : 0, expect[i].start);
	}
	store_procedures_free(&list);
}

static void adds_only_what_is_missing(void **state)
{
	struct fixture *f = *state;
	struct store_procedure renamed = some[1], twice[2] = {some[2], some[2]};
	struct store_procedures list = {0};

	renamed.p.name = "other";
	ok(f, store_begin(f->s, &f->e));
	ok(f, store_procedures_add(f->s, f->image, some, 2, &f->e));
	ok(f, store_procedures_add(f->s, f->image, &renamed, 1, &f->e));
	ok(f, store_procedures_add(f->s, f->image, twice, 2, &f->e));
	ok(f, store_procedures_add(f->s, f->image, NULL, 0, &f->e));
	ok(f, store_commit(f->s, &f->e));
	ok(f, store_procedures(f->s, f->image, &list, &f->e));
	assert_int_equal(list.n, 3);
	assert_string_equal(list.p[0].name, "main");
	store_procedures_free(&list);
	assert_sound(f);

	ok(f, store_begin(f->s, &f->e));
	fails(f, store_procedures_add(f->s, 99, some, 4, &f->e), -EINVAL, "image");
	store_rollback(f->s);
}

static void code_comes_later(void **state)
{
	struct fixture *f = *state;
	struct store_procedure bare = some[1], nameless = some[1];
	struct store_procedures list = {0};
	struct buf code = {0};

	bare.code = NULL;
	nameless.p.name = NULL; /* it was there with its name */
	ok(f, store_begin(f->s, &f->e));
	ok(f, store_procedures_add(f->s, f->image, &bare, 1, &f->e));
	fails(f, store_code(f->s, f->image, 0x1000, &code, &f->e), -ENOENT, "0x1000");
	ok(f, store_procedures_add(f->s, f->image, &nameless, 1, &f->e));
	ok(f, store_procedures_add(f->s, f->image, some, 4, &f->e));
	ok(f, store_procedures_add(f->s, f->image, &bare, 1, &f->e));
	ok(f, store_procedures_add(f->s, f->image, some, 4, &f->e));
	ok(f, store_commit(f->s, &f->e));
	ok(f, store_code(f->s, f->image, 0x1000, &code, &f->e));
	assert_int_equal(code.n, 2);
	ok(f, store_procedures(f->s, f->image, &list, &f->e));
	assert_int_equal(list.n, 4);
	assert_string_equal(list.p[0].name, "main");
	store_procedures_free(&list);
	buf_deinit(&code);
	assert_sound(f);
}

static void keeps_code(void **state)
{
	struct fixture *f = *state;
	struct buf code = {0};

	ok(f, store_begin(f->s, &f->e));
	ok(f, store_procedures_add(f->s, f->image, some, 1, &f->e));
	ok(f, store_procedures_add(f->s, f->image, some, 4, &f->e));
	ok(f, store_commit(f->s, &f->e));
	ok(f, store_code(f->s, f->image, 0x2000, &code, &f->e));
	assert_int_equal(code.n, 3);
	assert_memory_equal(code.p, "\x90\x90\xc3", 3);
	ok(f, store_code(f->s, f->image, 0x1000, &code, &f->e)); /* appends */
	assert_int_equal(code.n, 5);
	assert_memory_equal(code.p + 3, "\x55\xc3", 2);
	ok(f, store_code(f->s, f->image, 0x3100, &code, &f->e)); /* kept, but empty */
	assert_int_equal(code.n, 5);
	fails(f, store_code(f->s, f->image, 0x3000, &code, &f->e), -ENOENT, "0x3000");
	fails(f, store_code(f->s, f->image, 0x1001, &code, &f->e), -ENOENT, "0x1001");
	buf_deinit(&code);
}

/* Procedure number i of a large image. */
static struct store_procedure numbered(size_t i, struct range *range, char *name, uint8_t *code)
{
	*range = (struct range){0x10000 + 16 * i, 16};
	snprintf(name, 32, "procedure_%zu", i);
	memset(code, (int)i, 16);
	return (struct store_procedure){
		{range->start, range, 1, PROCEDURE_SYMBOL, name}, code, i % 17};
}

#define MANY 3000

static int add_up(void *arg, const struct store_procedure *p)
{
	uint64_t *sums = arg;
	const uint8_t *code = p->code;

	sums[0]++;
	sums[1] += p->p.start;
	for (size_t i = 0; i < p->code_size; i++)
		sums[2] += code[i];
	return 0;
}

static int stop(void *arg, const struct store_procedure *p)
{
	(void)arg;
	(void)p;
	return -EINTR;
}

static void all_codes_at_once(void **state)
{
	struct fixture *f = *state;
	uint64_t sums[3] = {0};

	ok(f, store_begin(f->s, &f->e));
	ok(f, store_procedures_add(f->s, f->image, some, 2, &f->e));
	ok(f, store_procedures_add(f->s, f->image, some + 2, 2, &f->e));
	ok(f, store_commit(f->s, &f->e));
	ok(f, store_codes(f->s, f->image, add_up, sums, &f->e));
	assert_int_equal(sums[0], 2); /* those that have some */
	assert_int_equal(sums[1], 0x3000);
	assert_int_equal(sums[2], 0x55 + 0xc3 + 0x90 + 0x90 + 0xc3);
	assert_int_equal(store_codes(f->s, f->image, stop, NULL, &f->e), -EINTR);
	ok(f, store_codes(f->s, 99, stop, NULL, &f->e)); /* an image without any */
}

static void many_batches(void **state)
{
	struct fixture *f = *state;
	struct range *ranges = xcalloc(MANY, sizeof *ranges);
	char(*names)[32] = xcalloc(MANY, sizeof *names);
	uint8_t(*codes)[16] = xcalloc(MANY, sizeof *codes);
	struct store_procedure *all = xcalloc(MANY, sizeof *all);
	struct store_procedures list = {0};
	struct buf code = {0};

	for (size_t i = 0; i < MANY; i++)
		all[i] = numbered(i, &ranges[i], names[i], codes[i]);
	ok(f, store_begin(f->s, &f->e));
	ok(f, store_procedures_add(f->s, f->image, all + 200, MANY - 200, &f->e));
	for (size_t i = 0; i < 200; i += 10) {
		struct store_procedure bare[10];

		for (size_t k = 0; k < 10; k++) {
			bare[k] = all[i + k];
			bare[k].code = NULL;
		}
		ok(f, store_procedures_add(f->s, f->image, bare, 10, &f->e));
		ok(f, store_procedures_add(f->s, f->image, all + i, 10, &f->e));
	}
	ok(f, procedures_join(f->s, &f->e));
	ok(f, procedures_join(f->s, &f->e));
	ok(f, store_commit(f->s, &f->e));
	assert_sound(f);

	ok(f, store_procedures(f->s, f->image, &list, &f->e));
	assert_int_equal(list.n, MANY);
	for (size_t i = 0; i < MANY; i += 97) {
		const struct procedure *p = store_procedure_at(&list, 0x10000 + 16 * i + 5);

		assert_string_equal(p->name, names[i]);
		code.n = 0;
		ok(f, store_code(f->s, f->image, p->start, &code, &f->e));
		assert_int_equal(code.n, i % 17);
		assert_memory_equal(code.p, codes[i], code.n);
	}
	store_procedures_free(&list);
	buf_deinit(&code);
	free(all);
	free(codes);
	free(names);
	free(ranges);
}

static void damage_is_refused(void **state)
{
	procedure_rows rows = {0};
	struct arena arena = {0};
	struct store_procedure sorted[] = {some[1], some[2], some[0], some[3]};
	struct buf raw = {0}, longer = {0};

	(void)state;
	procedures_encode(sorted, 4, &raw);
	assert_int_equal(procedures_decode(raw.p, raw.n, &arena, &rows), 0);
	assert_int_equal(rows.n, 4);
	for (size_t n = 0; n < raw.n; n++) {
		/* A copy of its own, so that the sanitizer sees what is read past its end. */
		uint8_t *part = xmemdup(raw.p, n);

		assert_int_equal(procedures_decode(part, n, &arena, &rows), -EBADMSG);
		free(part);
	}
	assert_int_equal(rows.n, 4); /* nothing was added */
	buf_put(&longer, raw.p, raw.n);
	buf_u8(&longer, 0);
	assert_int_equal(procedures_decode(longer.p, longer.n, &arena, &rows), -EBADMSG);
	buf_deinit(&raw);
	buf_deinit(&longer);
	vec_deinit(&rows);
	arena_deinit(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(reads_back, setup, teardown),
		cmocka_unit_test_setup_teardown(finds_by_address, setup, teardown),
		cmocka_unit_test_setup_teardown(adds_only_what_is_missing, setup, teardown),
		cmocka_unit_test_setup_teardown(keeps_code, setup, teardown),
		cmocka_unit_test_setup_teardown(code_comes_later, setup, teardown),
		cmocka_unit_test_setup_teardown(all_codes_at_once, setup, teardown),
		cmocka_unit_test_setup_teardown(many_batches, setup, teardown),
		cmocka_unit_test(damage_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
