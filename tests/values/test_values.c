#include "values/exact.h"
#include "values/values.h"

#include <stdlib.h>

static void names_kinds(void **state)
{
	(void)state;
	for (unsigned i = 0; i < VALUE_KINDS; i++)
		assert_non_null(value_kind_name(i));
	assert_string_equal(value_kind_name(VALUE_RESULT), "result");
	assert_string_equal(value_kind_name(VALUE_ENTRY5), "entry 5");
	assert_string_equal(value_kind_name(VALUE_PLUGIN0), "plugin");
	assert_string_equal(value_kind_name(UINT16_MAX), "plugin");
	assert_null(value_kind_name(VALUE_KINDS));
	assert_null(value_kind_name(VALUE_PLUGIN0 - 1));
	assert_null(value_kind_name(UINT16_MAX + 1));
}

/* Keys that differ in one part only, often. */
static struct value_key some_key(struct stream *s)
{
	return (struct value_key){
		.offset = 0x1000 + stream_below(s, 40) * 4,
		.kind = (uint16_t)(stream_below(s, 3) * 33),
		.context = stream_below(s, 3) << 40,
	};
}

enum { KEYS = 40 * 3 * 3, ADDS = 40000 };

static size_t key_number(const struct value_key *key)
{
	return (key->offset - 0x1000) / 4 * 9 + key->kind / 33 * 3 + (key->context >> 40);
}

/* Each key's list is what the same values make of a list alone. */
static void against_lists(void **state)
{
	struct hotlist_pool *pool = hotlist_pool_create(HOTLIST_SPACE_SAVING, HOTLIST_CAPACITY, 0);
	struct hotlist *alone = calloc(KEYS, sizeof *alone);
	struct value_profile *p = value_profile_create(NULL);
	struct stream s = {.random = 1};
	size_t keys = 0;

	(void)state;
	for (s.i = 0; s.i < ADDS; s.i++) {
		struct value_key key = some_key(&s);
		struct hotlist *h = &alone[key_number(&key)];
		uint64_t value = stream_below(&s, 50) * stream_below(&s, 50);

		keys += !h->total;
		value_profile_add(p, &key, value, 1 + s.i % 3);
		hotlist_add(pool, h, value, 1 + s.i % 3);
		assert_int_equal(value_profile_keys(p), keys);
	}
	for (s.i = 0; s.i < 2000; s.i++) {
		struct hot_value got[HOTLIST_CAPACITY_MAX], want[HOTLIST_CAPACITY_MAX];
		struct value_key key = some_key(&s);
		const struct hotlist *h = value_profile_find(p, &key);
		size_t n = hotlist_read(pool, &alone[key_number(&key)], want);

		assert_non_null(h);
		assert_int_equal(value_profile_read(p, h, got), n);
		assert_memory_equal(got, want, n * sizeof *got);
		assert_int_equal(
			value_profile_absent(p, h), hotlist_absent(pool, &alone[key_number(&key)]));
	}
	assert_int_equal(keys, KEYS);
	assert_int_equal(value_profile_refused(p), 0);
	value_profile_destroy(p);
	hotlist_pool_destroy(pool);
	free(alone);
}

static void finds_nothing(void **state)
{
	struct value_profile *p = value_profile_create(NULL);
	struct value_key key = {.offset = 5};

	(void)state;
	assert_null(value_profile_find(p, &key));
	value_profile_add(p, &key, 1, 0);
	assert_int_equal(value_profile_keys(p), 0);
	value_profile_add(p, &key, 1, 1);
	assert_non_null(value_profile_find(p, &key));
	assert_null(value_profile_find(p, &(struct value_key){.offset = 6}));
	assert_null(value_profile_find(p, &(struct value_key){.offset = 5, .kind = 1}));
	assert_null(value_profile_find(p, &(struct value_key){.offset = 5, .context = 1}));
	value_profile_destroy(p);
	value_profile_destroy(NULL);
}

/* Past the limit, what has a key is still counted and the rest is refused, all of it. */
static void refuses_past_the_limit(void **state)
{
	struct value_profile *p = value_profile_create(&(struct value_options){.keys = 100});

	(void)state;
	for (int round = 0; round < 3; round++) {
		for (uint64_t i = 0; i < 150; i++)
			value_profile_add(p, &(struct value_key){.offset = i}, 1, 2);
		assert_int_equal(value_profile_keys(p), 100);
		assert_int_equal(value_profile_refused(p), 100u * (round + 1));
	}
	for (uint64_t i = 0; i < 150; i++) {
		const struct hotlist *h = value_profile_find(p, &(struct value_key){.offset = i});

		assert_true(i < 100 ? h->total == 6 : !h);
	}
	value_profile_clear(p);
	assert_int_equal(value_profile_refused(p), 0);
	value_profile_destroy(p);
}

struct seen {
	struct value_key last;
	size_t n, stop;
	uint64_t total;
};

static int see(void *arg, const struct value_key *key, const struct hotlist *h)
{
	struct seen *seen = arg;
	const struct value_key *last = &seen->last;

	assert_true(!seen->n || key->offset > last->offset ||
		    (key->offset == last->offset &&
			    (key->kind > last->kind ||
				    (key->kind == last->kind && key->context > last->context))));
	seen->last = *key;
	seen->total += h->total;
	return ++seen->n == seen->stop ? 42 : 0;
}

static void each_in_order(void **state)
{
	struct value_profile *p = value_profile_create(NULL);
	struct stream s = {.random = 7};
	struct seen all = {0}, some = {.stop = 9}, none = {0};

	(void)state;
	assert_int_equal(value_profile_each(p, see, &none), 0);
	assert_int_equal(none.n, 0);
	for (; s.i < 5000; s.i++) {
		struct value_key key = some_key(&s);

		key.offset = key.offset % 3 ? key.offset : UINT64_MAX - key.offset;
		value_profile_add(p, &key, s.i, 1);
	}
	assert_int_equal(value_profile_each(p, see, &all), 0);
	assert_int_equal(all.n, value_profile_keys(p));
	assert_int_equal(all.total, 5000);
	assert_int_equal(value_profile_each(p, see, &some), 42);
	assert_int_equal(some.n, 9);
	value_profile_destroy(p);
}

static void fill(struct value_profile *p, uint64_t keys)
{
	struct stream s = {.random = 3};

	for (; s.i < keys * 30; s.i++)
		value_profile_add(p, &(struct value_key){.offset = s.i % keys},
			stream_below(&s, 1 + s.i % keys % 40), 1);
}

/* From one flush to the next nothing is allocated, until a profile needs far less. */
static void memory_stays(void **state)
{
	struct value_profile *p = value_profile_create(NULL);
	size_t bytes;

	(void)state;
	fill(p, 20000);
	bytes = value_profile_bytes(p);
	assert_true(bytes > 20000 * 64 && bytes < 20000 * 700);
	for (int round = 0; round < 3; round++) {
		value_profile_clear(p);
		assert_int_equal(value_profile_keys(p), 0);
		assert_null(value_profile_find(p, &(struct value_key){.offset = 1}));
		fill(p, 20000);
		assert_int_equal(value_profile_keys(p), 20000);
		assert_int_equal(value_profile_bytes(p), bytes);
	}
	value_profile_clear(p);
	fill(p, 10);
	value_profile_clear(p);
	assert_true(value_profile_bytes(p) < bytes / 20);
	fill(p, 10);
	assert_int_equal(value_profile_keys(p), 10);
	value_profile_destroy(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_kinds),
		cmocka_unit_test(against_lists),
		cmocka_unit_test(finds_nothing),
		cmocka_unit_test(refuses_past_the_limit),
		cmocka_unit_test(each_in_order),
		cmocka_unit_test(memory_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
