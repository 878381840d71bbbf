#include "analyze/foresight.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "store/walks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* Branches at these offsets; each goes on behind itself or 0x80 further. */
enum { RANDOM = 0x100, ALTERNATES = 0x200, ALWAYS = 0x300, COPIES = 0x400, SELDOM = 0x500 };

#define WALKS  400
#define ROUNDS 12

struct scene {
	char path[32];
	struct store *s;
	struct selection *sel;
	struct foresight *f;
	struct err e;
};

#define MUST(call)                                  \
	do {                                        \
		if (call)                           \
			fail_msg("%s", sc->e.text); \
	} while (0)

static uint64_t dice;

static bool toss(void)
{
	dice = dice * 6364136223846793005u + 1442695040888963407u;
	return dice >> 62 & 1;
}

static struct walk_step step(uint64_t from, bool taken)
{
	return (struct walk_step){from, 0, from + (taken ? 0x80 : 2)};
}

/* One branch goes by chance, and one as that one did; one alternates, one always goes on. */
static uint32_t make_steps(struct walk_step *steps)
{
	uint32_t n = 0;
	bool turn = toss();

	for (unsigned i = 0; i < ROUNDS; i++) {
		bool chance = toss();

		steps[n++] = step(RANDOM, chance);
		steps[n++] = step(ALWAYS, false);
		steps[n++] = step(COPIES, chance);
		steps[n++] = step(ALTERNATES, turn);
		turn = !turn;
	}
	return n;
}

static void pack_walks(struct buf *out)
{
	static struct walk_step steps[WALKS + 1][4 * ROUNDS];
	static struct walk list[WALKS + 1];

	dice = 1;
	for (unsigned i = 0; i < WALKS; i++)
		list[i] = (struct walk){.start = 0xf0,
			.weight = 1,
			.instructions = 200,
			.nsteps = make_steps(steps[i]),
			.steps = steps[i]};
	steps[WALKS][0] = step(SELDOM, true);
	list[WALKS] = (struct walk){0x4f0, 1, 10, 1, steps[WALKS]};
	walks_pack(list, walks_settle(list, WALKS + 1), out);
}

static void add_walks(struct scene *sc)
{
	struct store_host host = {"h", "m", "c", "k", 1};
	struct store_event event = {.name = "cpu-clock", .unit = "ns", .period = 1e6};
	struct store_image image = {.kind = IMAGE_ELF, .path = "/bin/x"};
	struct store_process process = {.comm = "x", .cgroup = ""};
	struct store_profile p = {.t0 = 1, .t1 = 2, .type = &blob_walk};
	struct buf data = {0};
	int64_t id;

	MUST(store_host(sc->s, &host, &id, &sc->e));
	MUST(store_epoch_start(sc->s, id, 1, "", &p.epoch, &sc->e));
	event.epoch = process.epoch = p.epoch;
	MUST(store_event(sc->s, &event, &sc->e));
	p.event = event.id;
	MUST(store_image(sc->s, &image, &p.image, &sc->e));
	MUST(store_process(sc->s, &process, &p.process, &sc->e));
	pack_walks(&data);
	p.data = data.p;
	p.size = data.n;
	MUST(store_profile_add(sc->s, &p, &sc->e));
	buf_deinit(&data);
}

static int set_up(void **state)
{
	struct scene *sc = xcalloc(1, sizeof *sc);
	struct selection_options o = {0};

	strcpy(sc->path, "/tmp/foresight.XXXXXX");
	close(mkstemp(sc->path));
	unlink(sc->path);
	MUST(store_open(sc->path, STORE_WRITE, &sc->s, &sc->e));
	MUST(store_begin(sc->s, &sc->e));
	add_walks(sc);
	MUST(store_commit(sc->s, &sc->e));
	MUST(selection_create(sc->s, &o, &sc->sel, &sc->e));
	MUST(foresight_create(sc->sel, &sc->f, &sc->e));
	*state = sc;
	return 0;
}

static int tear_down(void **state)
{
	struct scene *sc = *state;

	foresight_destroy(sc->f);
	selection_destroy(sc->sel);
	store_close(sc->s);
	unlink(sc->path);
	free(sc);
	return 0;
}

static double misses(struct scene *sc, uint64_t offset)
{
	struct selected_image *images;
	double share = -1;

	assert_int_equal(selection_images(sc->sel, &images), 1);
	assert_true(foresight_misses(sc->f, &images[0], offset, &share));
	return share;
}

static void test_branches(void **state)
{
	struct scene *sc = *state;
	struct selected_image *images;
	double share;

	assert_true(misses(sc, RANDOM) > 0.4 && misses(sc, RANDOM) < 0.6);
	assert_true(misses(sc, ALWAYS) == 0);
	/* What it follows from is in the history, but for the first steps of a walk. */
	assert_true(misses(sc, COPIES) < 0.01);
	assert_true(misses(sc, ALTERNATES) < 0.06);
	selection_images(sc->sel, &images);
	assert_false(foresight_misses(sc->f, &images[0], SELDOM, &share));
	assert_false(foresight_misses(sc->f, &images[0], 0x600, &share));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_branches, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
