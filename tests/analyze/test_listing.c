#include "analyze/listing.h"
#include "analyze/pcpool.h"
#include "base/err.h"
#include "base/mem.h"
#include "fixtures/fixture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void pool_sums_up(void **state)
{
	struct pc_pool p = {0};

	(void)state;
	for (int i = 0; i < 20000; i++)
		pc_pool_add(&p, (uint64_t)(i % 10), (uint32_t)(i % 2), 1);
	assert_true(p.list.n < 10000); /* it does not keep what it can sum up */
	pc_pool_settle(&p);
	assert_int_equal(p.list.n, 10);
	for (size_t i = 0; i < p.list.n; i++) {
		assert_int_equal(p.list.p[i].vaddr, i);
		assert_int_equal(p.list.p[i].event, i % 2);
		assert_int_equal(p.list.p[i].count, 2000);
	}
	pc_pool_deinit(&p);
}

struct scene {
	char dir[32], path[64];
	struct store *s;
	struct selection *sel;
	struct selected_image *demo;
	struct listing *l;
	struct err e;
};

static int set_up(void **state)
{
	static const int64_t first[] = {1};
	struct selection_options o = {.filter = {.epochs = first, .nepochs = 1}};
	struct scene *sc = xcalloc(1, sizeof *sc);
	struct selected_image *images;
	size_t n;

	strcpy(sc->dir, "/tmp/listing.XXXXXX");
	assert_non_null(mkdtemp(sc->dir));
	snprintf(sc->path, sizeof sc->path, "%s/db", sc->dir);
	if (fixture_small(sc->path, &sc->e) || store_open(sc->path, STORE_READ, &sc->s, &sc->e) ||
		selection_create(sc->s, &o, &sc->sel, &sc->e))
		fail_msg("%s", sc->e.text);
	n = selection_images(sc->sel, &images);
	for (size_t i = 0; i < n; i++)
		if (!strcmp(selected_image_name(&images[i]), "demo"))
			sc->demo = &images[i];
	assert_non_null(sc->demo);
	assert_int_equal(selection_load(sc->sel, sc->demo, &sc->e), 0);
	*state = sc;
	return 0;
}

static int tear_down(void **state)
{
	struct scene *sc = *state;

	listing_destroy(sc->l);
	selection_destroy(sc->sel);
	store_close(sc->s);
	unlink(sc->path);
	assert_int_equal(rmdir(sc->dir), 0);
	free(sc);
	return 0;
}

struct seen {
	struct listing_line lines[256];
	char text[256][64];
	uint64_t samples[256][2];
	size_t n;
};

static int see(void *arg, const struct listing_line *line)
{
	struct seen *s = arg;

	assert_true(s->n < 256);
	s->lines[s->n] = *line;
	snprintf(s->text[s->n], sizeof s->text[0], "%s", line->text ? line->text : "(none)");
	memcpy(s->samples[s->n], line->samples, sizeof s->samples[0]);
	s->n++;
	return 0;
}

static void one_instruction_also_from_its_middle(void **state)
{
	struct scene *sc = *state;
	struct listing_line line;

	assert_int_equal(listing_create(sc->sel, sc->demo, 0, &sc->l, &sc->e), 0);
	assert_int_equal(listing_at(sc->l, 0x401004, ISA_INTEL, &line), 0);
	assert_string_equal(line.text, "add    rax,0x1");
	assert_int_equal(line.samples[0], 500);
	assert_int_equal(line.range, 0);
	assert_int_equal(listing_at(sc->l, 0x401005, ISA_INTEL, &line), 0);
	assert_string_not_equal(line.text, "add    rax,0x1");
	assert_int_equal(listing_at(sc->l, 0x402000, ISA_ATT, &line), 0);
	assert_string_equal(line.text, "nop");
	assert_int_equal(line.range, 1);
	assert_int_equal(listing_at(sc->l, 0x400fff, ISA_ATT, &line), -ENOENT);
	assert_int_equal(listing_at(sc->l, 0x409000, ISA_ATT, &line), -ENOENT);
}

static void lists_code_that_was_kept(void **state)
{
	struct scene *sc = *state;
	struct seen seen = {0};
	uint64_t sum = 0;

	assert_int_equal(listing_create(sc->sel, sc->demo, 0, &sc->l, &sc->e), 0);
	assert_null(listing_no_code(sc->l));
	assert_non_null(listing_no_lines(sc->l));
	assert_int_equal(listing_total(sc->l, 0), 600);
	assert_int_equal(listing_total(sc->l, 1), 10);
	assert_int_equal(listing_hottest(sc->l, 0), 500);
	assert_int_equal(listing_each(sc->l, ISA_ATT, see, &seen), 0);
	assert_int_equal(seen.lines[0].address, 0x401000);
	assert_string_equal(seen.text[0], "push   %rbp");
	assert_int_equal(seen.samples[0][0], 50);
	assert_int_equal(seen.lines[2].address, 0x401004);
	assert_int_equal(seen.samples[2][0], 500);
	assert_int_equal(seen.samples[2][1], 10);
	assert_non_null(strstr(seen.text[4], "<hot+0x4>"));
	for (size_t i = 0; i < seen.n; i++)
		sum += seen.samples[i][0];
	assert_int_equal(sum, 600);
}

static void fragments_come_after_the_main_range(void **state)
{
	struct scene *sc = *state;
	struct seen seen = {0};

	assert_int_equal(listing_create(sc->sel, sc->demo, 0, &sc->l, &sc->e), 0);
	assert_int_equal(listing_each(sc->l, ISA_INTEL, see, &seen), 0);
	assert_string_equal(seen.text[0], "push   rbp");
	assert_int_equal(seen.lines[0].range, 0);
	assert_int_equal(seen.lines[seen.n - 1].range, 1);
	assert_int_equal(seen.lines[seen.n - 16].address, 0x402000);
	assert_int_equal(seen.samples[seen.n - 16][0], 50);
}

static void without_code_only_addresses(void **state)
{
	struct scene *sc = *state;
	struct seen seen = {0};

	assert_int_equal(listing_create(sc->sel, sc->demo, 1, &sc->l, &sc->e), 0);
	assert_non_null(listing_no_code(sc->l));
	assert_int_equal(listing_each(sc->l, ISA_ATT, see, &seen), 0);
	assert_int_equal(seen.n, 2);
	assert_int_equal(seen.lines[0].address, 0x401100);
	assert_int_equal(seen.samples[0][0], 50);
	assert_int_equal(seen.lines[1].address, 0x401104);
	assert_int_equal(seen.samples[1][0], 150);
	assert_string_equal(seen.text[0], "(none)");
}

static int stop(void *arg, const struct listing_line *line)
{
	(void)line;
	return ++*(int *)arg == 2 ? 7 : 0;
}

static void a_caller_can_stop(void **state)
{
	struct scene *sc = *state;
	int n = 0;

	assert_int_equal(listing_create(sc->sel, sc->demo, 0, &sc->l, &sc->e), 0);
	assert_int_equal(listing_each(sc->l, ISA_ATT, stop, &n), 7);
	assert_int_equal(n, 2);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pool_sums_up),
		TEST(one_instruction_also_from_its_middle),
		TEST(lists_code_that_was_kept),
		TEST(fragments_come_after_the_main_range),
		TEST(without_code_only_addresses),
		TEST(a_caller_can_stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
