#include "store/fixture.h"

static int same_as(void *arg, const struct store_image *im)
{
	const struct store_image *want = arg;

	assert_int_equal(im->kind, want->kind);
	assert_string_equal(im->path, want->path);
	assert_int_equal(im->identity.size, want->identity.size);
	assert_int_equal(im->identity.is_hash, want->identity.is_hash);
	assert_memory_equal(im->identity.bytes, want->identity.bytes, want->identity.size);
	assert_int_equal(im->nsegments, want->nsegments);
	if (want->nsegments)
		assert_memory_equal(
			im->segments, want->segments, want->nsegments * sizeof *want->segments);
	return 0;
}

static void gives_back_what_was_put(void **state)
{
	struct fixture *f = *state;
	struct store_image plain = sample_image("/usr/bin/gzip", 7);
	struct store_image hashed = {.kind = IMAGE_ELF,
		.identity = {.size = 32, .is_hash = true, .bytes = {1, 2, 3}},
		.path = "/tmp/x"};
	struct store_image kernel = {.kind = IMAGE_KERNEL,
		.path = "[kernel]",
		.segments = plain.segments,
		.nsegments = 1};
	int64_t a, b;

	ok(f, store_begin(f->s, &f->e));
	ok(f, store_image(f->s, &hashed, &a, &f->e));
	ok(f, store_image(f->s, &kernel, &b, &f->e));
	ok(f, store_commit(f->s, &f->e));
	ok(f, store_image_get(f->s, f->image, same_as, &plain, &f->e));
	ok(f, store_image_get(f->s, a, same_as, &hashed, &f->e));
	ok(f, store_image_get(f->s, b, same_as, &kernel, &f->e));
	fails(f, store_image_get(f->s, 99, same_as, &plain, &f->e), -ENOENT, "image 99");
}

static int count_image(void *arg, const struct store_image *im)
{
	(void)im;
	++*(int *)arg;
	return 0;
}

static void finds_by_identity_or_path(void **state)
{
	struct fixture *f = *state;
	struct store_image moved = sample_image("/opt/gzip", 7),
			   other = sample_image("/usr/bin/gzip", 8);
	struct store_image bare = sample_image("/usr/bin/gzip", 0),
			   bare2 = sample_image("/bin/x", 0);
	int64_t a, b;
	int n = 0;

	ok(f, store_begin(f->s, &f->e));
	ok(f, store_image(f->s, &moved, &a, &f->e));
	assert_int_equal(a, f->image); /* the same file under another name */
	ok(f, store_image(f->s, &other, &a, &f->e));
	assert_int_not_equal(a, f->image); /* another build in the same place */
	ok(f, store_image(f->s, &bare, &a, &f->e));
	assert_int_not_equal(a, f->image);
	ok(f, store_image(f->s, &bare, &b, &f->e));
	assert_int_equal(a, b);
	bare.kind = IMAGE_JIT;
	ok(f, store_image(f->s, &bare, &b, &f->e));
	assert_int_not_equal(a, b);
	ok(f, store_image(f->s, &bare2, &b, &f->e));
	ok(f, store_commit(f->s, &f->e));
	ok(f, store_images(f->s, count_image, &n, &f->e));
	assert_int_equal(n, 5);
	assert_sound(f);
}

static void segments_come_later(void **state)
{
	struct fixture *f = *state;
	struct store_image full = sample_image("/usr/bin/late", 9), bare = full;
	int64_t a, b;

	bare.nsegments = 0;
	ok(f, store_begin(f->s, &f->e));
	ok(f, store_image(f->s, &bare, &a, &f->e));
	ok(f, store_image(f->s, &full, &b, &f->e));
	assert_int_equal(a, b);
	ok(f, store_image(f->s, &bare, &b, &f->e));
	ok(f, store_commit(f->s, &f->e));
	ok(f, store_image_get(f->s, a, same_as, &full, &f->e));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(gives_back_what_was_put, setup, teardown),
		cmocka_unit_test_setup_teardown(finds_by_identity_or_path, setup, teardown),
		cmocka_unit_test_setup_teardown(segments_come_later, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
