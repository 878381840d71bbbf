/* Bursts as they went, from the interpreter's words to profiles of walks. */
#include "collect/attribute_rig.h"

#include "collect/shadow.h"
#include "store/edges.h"
#include "store/walks.h"

#define OTHER_AT 0x8000000ull /* where the other program is mapped, from its beginning */

static struct image_id other_id;

static bool find_other(void)
{
	_cleanup_close_ int fd = open("/bin/sh", O_RDONLY | O_CLOEXEC);

	return fd >= 0 && image_identify(fd, &other_id, NULL) == 0;
}

static void tell_both(pid_t pid)
{
	struct record r = record_map(12, pid, OTHER_AT, 0x100000, 0, "/bin/sh");

	r.mmap.build_id = other_id;
	tell_program(10, pid, "one");
	tell(r);
}

static void tell_burst(pid_t pid, uint64_t start, uint16_t steps, const uint64_t *words, size_t n)
{
	const struct shadow_burst b = {.words = (u32)(SHADOW_HEAD + n),
		.pid = (u32)pid,
		.tid = (u32)pid,
		.time = 20 * US,
		.start = start,
		.steps = steps,
		.edges = (u16)(n / 2)};

	assert_true(attribution_burst(a, &b, words));
}

/* ---- reading back ---- */

struct walks_read {
	struct walk list[16];
	struct walk_step steps[16][8];
	size_t n, rows;
};

static int read_walks(void *arg, const struct store_profile *p)
{
	static struct walk_reader r;
	struct walks_read *out = arg;
	struct walk w;

	out->rows++;
	assert_int_equal(p->event, events[0]);
	assert_int_equal(walk_reader_init(&r, p->data, p->size), 0);
	while (walk_reader_next(&r, &w) == 1) {
		assert_true(out->n < 16 && w.nsteps <= 8);
		memcpy(out->steps[out->n], w.steps, w.nsteps * sizeof *w.steps);
		w.steps = out->steps[out->n];
		out->list[out->n++] = w;
	}
	return 0;
}

static struct walks_read *walks(void)
{
	const struct store_filter f = {.type = &blob_walk};
	static struct walks_read out;

	out.n = out.rows = 0;
	assert_int_equal(store_profiles(store, &f, read_walks, &out, NULL), 0);
	return &out;
}

static void assert_step(const struct walk_step *s, uint64_t from, uint64_t target, uint64_t to)
{
	assert_int_equal(s->from, from);
	assert_int_equal(s->target, target);
	assert_int_equal(s->to, to);
}

/* ---- tests ---- */

static void test_inside(void **state)
{
	const uint64_t words[] = {pc_of(&find_self) + 8, pc_of(&open_store), pc_of(&open_store) + 4,
		pc_of(&find_self) + 2};
	struct walks_read *read;
	struct err e = {0};

	(void)state;
	tell_program(10, PID(1), "one");
	tell_burst(PID(1), pc_of(&find_self), 33, words, 4);
	tell_burst(PID(1), pc_of(&find_self), 33, words, 4);
	tell_burst(PID(1), pc_of(&find_self), 20, words, 0);
	tell_burst(PID(1), 0x123, 9, words, 4);
	/* A flush that fails forgets nothing. */
	assert_int_equal(try_flush(1000, &e), 0);
	store_rollback(store);
	flush(1000);
	read = walks();
	assert_int_equal(read->rows, 1);
	assert_int_equal(read->n, 2);
	assert_int_equal(read->list[0].instructions, 20);
	assert_int_equal(read->list[0].nsteps, 0);
	assert_int_equal(read->list[0].weight, 1);
	assert_int_equal(read->list[1].start, offset_of(&find_self));
	assert_int_equal(read->list[1].instructions, 33);
	assert_int_equal(read->list[1].weight, 2);
	assert_int_equal(read->list[1].nsteps, 2);
	assert_step(&read->list[1].steps[0], offset_of(&find_self) + 8, 0, offset_of(&open_store));
	assert_step(
		&read->list[1].steps[1], offset_of(&open_store) + 4, 0, offset_of(&find_self) + 2);
	/* And nothing twice. */
	flush(2000);
	assert_int_equal(walks()->n, 2);
}

/* There and back: the image is named where it changes. */
static void test_into_another_image(void **state)
{
	const uint64_t words[] = {pc_of(&find_self), OTHER_AT + 0x500, OTHER_AT + 0x510,
		OTHER_AT + 0x520, OTHER_AT + 0x530, pc_of(&open_store)};
	const struct walk_step *steps;
	struct walks_read *read;

	(void)state;
	if (!find_other())
		skip();
	tell_both(PID(1));
	tell_burst(PID(1), pc_of(&find_self), 40, words, 6);
	tell_burst(PID(1), OTHER_AT + 0x510, 40, words + 2, 2);
	flush(1000);
	read = walks();
	assert_int_equal(read->rows, 2);
	assert_int_equal(read->n, 2);
	steps = read->list[read->list[0].nsteps == 1].steps;
	assert_step(&steps[0], offset_of(&find_self),
		edge_image_key(IMAGE_ELF, &other_id, "/bin/sh"), 0x500);
	assert_step(&steps[1], 0x510, 0, 0x520);
	assert_step(&steps[2], 0x530, edge_image_key(IMAGE_ELF, &self_id, self_path),
		offset_of(&open_store));
}

/* What cannot be placed, or goes on elsewhere than it was, ends the walk before it. */
static void test_cut(void **state)
{
	const uint64_t lost[] = {pc_of(&find_self) + 8, pc_of(&find_self), pc_of(&find_self) + 8,
		0x123, 0x150, pc_of(&find_self)};
	const uint64_t elsewhere[] = {
		pc_of(&open_store) + 8, pc_of(&open_store), OTHER_AT + 0x10, OTHER_AT + 0x20};
	struct walks_read *read;

	(void)state;
	if (!find_other())
		skip();
	tell_both(PID(1));
	tell_burst(PID(1), pc_of(&find_self), 40, lost, 6);
	tell_burst(PID(1), pc_of(&open_store), 40, elsewhere, 4);
	tell_burst(PID(1), pc_of(&find_self), 40, lost + 2, 2); /* of which nothing is left */
	flush(1000);
	read = walks();
	assert_int_equal(read->n, 2);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(read->list[i].nsteps, 1);
		assert_int_equal(read->list[i].instructions, 0);
		assert_int_equal(read->list[i].weight, 1);
		assert_int_equal(read->list[i].steps[0].from, read->list[i].start + 8);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_inside, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_into_another_image, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_cut, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, set_up_all, tear_down_all);
}
