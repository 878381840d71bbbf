#include "store/objects.h"

#include "store/blob_rig.h"
#include "store/object_index.h"

#define KEY 0x1111111111111111

static void make(struct object_set *s)
{
	*s = (struct object_set){0};
	strtab_add(&s->names, "");
	strtab_add(&s->names, "libc.so.6!strdup");
	strtab_add(&s->names, "/bin/walker");
	*vec_add(&s->frames) = (struct object_frame){KEY, 0x1000, 0x1010, 0};
	*vec_add(&s->frames) = (struct object_frame){0, 0x5000, 0x4ff0, 1};
	*vec_add(&s->frames) = (struct object_frame){KEY, 0x2000, 0x2020, 0};
	*vec_add(&s->paths) = (struct object_path){0, 2};
	*vec_add(&s->paths) = (struct object_path){2, 1};
	*vec_add(&s->images) =
		(struct object_image){7, KEY, 0x555500000000, 0x555500000000, 0x555500010000, 2};
	*vec_add(&s->stacks) = (struct object_stack){7, 8, 0x7fff00001000};
	*vec_add(&s->objects) = (struct object){7, 0, 0, 0x602000, 64, 100};
	*vec_add(&s->objects) = (struct object){7, 1, 3, 0x602020, 16, 300};
	*vec_add(&s->objects) = (struct object){7, OBJECT_NONE, 9, 0x700000, 1 << 20, 50};
	*vec_add(&s->objects) = (struct object){8, 1, 0, 0x602000, 32, 10};
}

static void pack(struct buf *out)
{
	struct object_set s;

	make(&s);
	object_set_put(&s, out);
	object_set_deinit(&s);
}

static void packs(void **state)
{
	struct object_set got = {0};
	struct buf b = {0};

	(void)state;
	pack(&b);
	assert_int_equal(object_set_add(&got, b.p, b.n), 0);
	assert_int_equal(object_set_add(&got, b.p, b.n), 0); /* twice: numbers of the second move */
	assert_int_equal(got.objects.n, 8);
	assert_int_equal(got.names.n, 3);
	assert_int_equal(got.objects.p[5].path, 3);
	assert_int_equal(got.objects.p[6].path, OBJECT_NONE);
	assert_int_equal(got.paths.p[3].first, 5);
	assert_int_equal(got.paths.p[2].n, 2);
	assert_int_equal(got.frames.p[4].at, 0x4ff0);
	assert_string_equal(got.names.strings[got.frames.p[4].name], "libc.so.6!strdup");
	assert_string_equal(got.names.strings[got.images.p[1].name], "/bin/walker");
	assert_int_equal(got.images.p[1].end, 0x555500010000);
	assert_int_equal(got.stacks.p[1].end, 0x7fff00001000);
	assert_int_equal(got.objects.p[4].born, 100);
	assert_whole(&blob_objects, &b);
	assert_int_equal(blob_weight(&blob_objects, &b), 4);
	object_set_deinit(&got);
	buf_deinit(&b);
}

static void merges(void **state)
{
	struct buf b = {0}, out = {0};

	(void)state;
	pack(&b);
	blob_merge(&blob_objects, &b, &b, &out);
	assert_int_equal(blob_weight(&blob_objects, &out), 8);
	buf_deinit(&b);
	buf_deinit(&out);
}

static void refused(void **state)
{
	static const struct bad_blob bad[] = {
		{"nothing", "", 0},
		{"more names than bytes", "\x01\x05\x00\x00\x00\x00\x00\x00", 8},
		{"a path with more frames than there are", "\x01\x00\x00\x01\x01\x00\x00\x00", 8},
		{"an object by no path", "\x01\x00\x00\x00\x00\x00\x01\x07\x01\x00\x00\x08\x00",
			13},
		{"something follows", "\x01\x00\x00\x00\x00\x00\x00\x00", 8},
	};

	(void)state;
	assert_refused(&blob_objects, bad, sizeof bad / sizeof *bad);
	assert_int_equal(blob_objects.check("\x01\x00\x00\x00\x00\x00\x00", 7), 0);
}

static void finds(void **state)
{
	struct object_set s;
	struct object_index *x;

	(void)state;
	make(&s);
	x = object_index_create(&s);
	assert_int_equal(object_index_find(x, 7, 200, 0x602000), 0);
	assert_int_equal(
		object_index_find(x, 7, 200, 0x60202f), 0); /* the later is not there yet */
	assert_int_equal(object_index_find(x, 7, 300, 0x60202f), 1);
	assert_int_equal(object_index_find(x, 7, 300, 0x602030), 0);
	assert_int_equal(object_index_find(x, 7, 99, 0x602000), OBJECT_NONE);
	assert_int_equal(object_index_find(x, 7, 300, 0x602040), OBJECT_NONE);
	assert_int_equal(object_index_find(x, 8, 300, 0x60201f), 3);
	assert_int_equal(object_index_find(x, 8, 300, 0x602020), OBJECT_NONE);
	assert_int_equal(object_index_find(x, 7, 300, 0x7fffff), 2);
	assert_int_equal(object_index_find(x, 9, 300, 0x602000), OBJECT_NONE);
	object_index_destroy(x);
	object_set_deinit(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packs),
		cmocka_unit_test(merges),
		cmocka_unit_test(refused),
		cmocka_unit_test(finds),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
