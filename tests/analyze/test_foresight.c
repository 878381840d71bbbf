#include "analyze/foresight.h"
#include "analyze/walk_scene.h"

/* Branches at these offsets; each goes on behind itself or 0x80 further. */
enum {
	RANDOM = 0x100,
	ALTERNATES = 0x200,
	ALWAYS = 0x300,
	COPIES = 0x400,
	SELDOM = 0x500,
	KINDS = 0x600,
	ABSENT = 0x700,
};

#define WALKS  400
#define SHORT  1200 /* walks */
#define ROUNDS 12

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

/* One branch goes by chance, and two as that one did; one alternates, one always goes on. */
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
		steps[n++] = step(KINDS, chance);
		turn = !turn;
	}
	return n;
}

static void open_scene(struct walk_scene *sc)
{
	static struct walk_step steps[WALKS + 1][5 * ROUNDS], few[SHORT][3];
	static struct walk list[WALKS + 1 + SHORT];

	dice = 1;
	for (unsigned i = 0; i < WALKS; i++)
		list[i] = (struct walk){.start = 0xf0,
			.weight = 1,
			.instructions = 200,
			.nsteps = make_steps(steps[i]),
			.steps = steps[i]};
	steps[WALKS][0] = step(SELDOM, true);
	list[WALKS] = (struct walk){0x4f0, 1, 10, 1, steps[WALKS]};
	for (unsigned i = 0; i < SHORT; i++) {
		few[i][0] = few[i][1] = step(ALWAYS, false);
		few[i][2] = step(KINDS, toss());
		list[WALKS + 1 + i] = (struct walk){0x1000 + i, 1, 20, 3, few[i]};
	}
	walk_scene_open(sc, list, WALKS + 1 + SHORT);
}

static double misses(const struct foresight *f, const struct walk_scene *sc, uint64_t offset)
{
	double share = -1;

	assert_true(foresight_misses(f, sc->image, offset, &share));
	return share;
}

static void test_branches(void **state)
{
	struct walk_scene sc;
	struct foresight *f;
	double share;

	(void)state;
	open_scene(&sc);
	if (foresight_create(sc.sel, &f, &sc.e))
		fail_msg("%s", sc.e.text);
	assert_true(misses(f, &sc, RANDOM) > 0.4 && misses(f, &sc, RANDOM) < 0.6);
	assert_true(misses(f, &sc, ALWAYS) == 0);
	/* What it follows from is in the history; the first steps of a walk, which have none, do
	   not count. */
	assert_true(misses(f, &sc, COPIES) == 0);
	assert_true(misses(f, &sc, ALTERNATES) == 0);
	/* Foreseen where the history is long, by chance where nobody has seen a long one: of six
	   times five and one. */
	assert_true(misses(f, &sc, KINDS) > 0.06 && misses(f, &sc, KINDS) < 0.11);
	assert_false(foresight_misses(f, sc.image, SELDOM, &share));
	assert_false(foresight_misses(f, sc.image, ABSENT, &share));
	foresight_destroy(f);
	walk_scene_close(&sc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_branches),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
