#include "analyze/residence.h"
#include "analyze/walk_scene.h"

enum { LINES = 300, WALKS = 3000, LENGTH = 20 };

#define LINE(n) ((uint64_t)(n)*RESIDENCE_LINE)
#define HOT     LINE(1) /* in every walk, once */
#define TURN    LINE(2) /* in every tenth, and then in a loop with the next line */
#define COLD(n) LINE(10 + (n) % LINES)

/* Every walk comes by one of many lines, one after the other. */
static void open_scene(struct walk_scene *sc)
{
	static struct walk_step steps[WALKS][10];
	static struct walk list[WALKS];

	for (unsigned i = 0; i < WALKS; i++) {
		unsigned n = 0;

		steps[i][n++] = (struct walk_step){HOT + 4, 0, COLD(i)};
		if (i % 10 == 0) {
			steps[i][n++] = (struct walk_step){COLD(i) + 4, 0, TURN};
			for (unsigned k = 0; k < 8; k++)
				steps[i][n++] = (struct walk_step){
					TURN + (k % 2 ? 68 : 4), 0, TURN + (k % 2 ? 0 : 64)};
		}
		list[i] = (struct walk){.start = HOT,
			.weight = 2,
			.instructions = LENGTH,
			.nsteps = n,
			.steps = steps[i]};
	}
	walk_scene_open(sc, list, WALKS);
}

static struct residence *create(struct walk_scene *sc, uint32_t capacity)
{
	struct residence *r;

	if (residence_create(sc->sel, capacity, &r, &sc->e))
		fail_msg("%s", sc->e.text);
	return r;
}

static double misses(const struct residence *r, const struct walk_scene *sc, uint64_t offset)
{
	double share = -1;

	assert_true(residence_misses(r, sc->image, offset, &share));
	return share;
}

/* What runs all the time stays, what comes back after all others is gone. */
static void test_lines(void **state)
{
	struct walk_scene sc;
	struct residence *r;
	double share;

	(void)state;
	open_scene(&sc);
	r = create(&sc, 16);
	assert_true(misses(r, &sc, HOT) < 0.001);
	assert_true(misses(r, &sc, COLD(7) + 63) > 0.9);
	assert_true(misses(r, &sc, COLD(7)) > misses(r, &sc, TURN));
	/* The line behind it in the loop comes four times in a walk, and may be gone at the first.
	 */
	assert_true(misses(r, &sc, TURN + 64) < 0.26);
	assert_false(residence_misses(r, sc.image, LINE(5), &share));
	residence_destroy(r);

	/* Half of them fit. */
	r = create(&sc, 150);
	assert_true(misses(r, &sc, COLD(7)) > 0.4 && misses(r, &sc, COLD(7)) < 0.6);
	residence_destroy(r);

	r = create(&sc, 512);
	assert_true(misses(r, &sc, COLD(7)) == 0);
	residence_destroy(r);
	walk_scene_close(&sc);
}

/* A few walks show a few lines, and not that all code fits. */
static void test_few(void **state)
{
	struct walk_step step = {HOT + 4, 0, COLD(1)};
	struct walk walk = {HOT, 1, LENGTH, 1, &step};
	struct walk_scene sc;
	struct residence *r;
	double share;

	(void)state;
	walk_scene_open(&sc, &walk, 1);
	r = create(&sc, 512);
	assert_false(residence_misses(r, sc.image, HOT, &share));
	residence_destroy(r);
	walk_scene_close(&sc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_few),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
