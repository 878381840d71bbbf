#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hmap.h"

struct count {
	uint64_t pc;
	uint32_t image, pad;
	uint64_t n;
};

enum { KEYS = 512 };

static uint32_t next_random(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*seed >> 33);
}

/* Thousands of random puts and deletes, beside an array that cannot be wrong. */
static void test_against_model(void **state)
{
	(void)state;
	struct hmap m;
	uint64_t model[KEYS] = {0}, seed = 1;
	size_t present = 0;
	hmap_init(&m, sizeof(struct count), offsetof(struct count, n));

	for (int step = 0; step < 50000; step++) {
		uint32_t k = next_random(&seed) % KEYS;
		struct count key = {.pc = 0x400000 + k * 4, .image = k / 100};
		if (next_random(&seed) % 3) {
			bool fresh;
			struct count *c = hmap_put(&m, &key, &fresh);
			assert_int_equal(fresh, model[k] == 0);
			assert_int_equal(c->n, model[k]);
			assert_int_equal(c->pc, key.pc);
			present += fresh;
			model[k] = c->n = (uint64_t)step + 1;
		} else {
			assert_int_equal(hmap_delete(&m, &key), model[k] != 0);
			present -= model[k] != 0;
			model[k] = 0;
		}
		assert_int_equal(m.n, present);
	}
	for (uint32_t k = 0; k < KEYS; k++) {
		struct count key = {.pc = 0x400000 + k * 4, .image = k / 100};
		struct count *c = hmap_get(&m, &key);
		assert_int_equal(c ? c->n : 0, model[k]);
	}
	hmap_deinit(&m);
}

static void test_iteration_sees_each_once(void **state)
{
	(void)state;
	struct hmap m;
	unsigned char seen[1000] = {0};
	hmap_init(&m, 8, 8);
	assert_null(hmap_next(&m, NULL));
	for (uint64_t k = 0; k < 1000; k++)
		hmap_put(&m, &k, NULL);
	for (uint64_t *r = NULL; (r = hmap_next(&m, r));)
		seen[*r]++;
	for (int i = 0; i < 1000; i++)
		assert_int_equal(seen[i], 1);
	hmap_deinit(&m);
}

static void test_empty(void **state)
{
	(void)state;
	struct hmap m;
	uint64_t key = 7;
	hmap_init(&m, 16, 8);
	assert_null(hmap_get(&m, &key));
	assert_false(hmap_delete(&m, &key));
	hmap_clear(&m);
	hmap_deinit(&m);
	hmap_deinit(&m);
}

/* What a record held before must not show in a fresh one. */
static void test_clear(void **state)
{
	(void)state;
	struct hmap m;
	hmap_init(&m, sizeof(struct count), offsetof(struct count, n));
	for (uint64_t round = 0; round < 3; round++) {
		for (uint64_t k = 0; k < 100; k++) {
			struct count key = {.pc = k}, *c = hmap_put(&m, &key, NULL);
			assert_int_equal(c->n, 0);
			c->n = ~0ull;
		}
		hmap_clear(&m);
		assert_int_equal(m.n, 0);
		assert_null(hmap_next(&m, NULL));
	}
	assert_true(m.slots > 0);
	hmap_deinit(&m);
}

static void test_clear_gives_back(void **state)
{
	(void)state;
	struct hmap m;
	hmap_init(&m, 8, 8);
	for (uint64_t k = 0; k < 100000; k++)
		hmap_put(&m, &k, NULL);
	size_t slots = m.slots;
	hmap_clear(&m);
	assert_int_equal(m.slots, slots);
	uint64_t one = 1;
	hmap_put(&m, &one, NULL);
	hmap_clear(&m);
	assert_true(m.slots < slots);
	assert_non_null(hmap_put(&m, &one, NULL));
	hmap_deinit(&m);
}

static int by_hash(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

/* Every length reads all its bytes and the length itself. */
static void test_hash_reads_everything(void **state)
{
	(void)state;
	unsigned char bytes[65] = {0};
	uint64_t hashes[65 * 8 + 66];
	size_t count = 0;
	for (size_t n = 0; n <= 65; n++)
		hashes[count++] = hash_bytes(bytes, n);
	for (size_t n = 1; n <= 65; n++) {
		uint64_t zero = hash_bytes(bytes, n);
		for (size_t bit = 0; bit < n * 8; bit++) {
			bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
			assert_int_not_equal(hash_bytes(bytes, n), zero);
			if (n == 65)
				hashes[count++] = hash_bytes(bytes, n);
			bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
		}
	}
	qsort(hashes, count, sizeof *hashes, by_hash);
	for (size_t i = 1; i < count; i++)
		assert_int_not_equal(hashes[i], hashes[i - 1]);
}

/* Addresses in steps: each of 4096 slots gets about 16 of 65536, none many times that. */
static void test_hash_spreads(void **state)
{
	(void)state;
	static const size_t sizes[] = {8, 12, 16, 24, 32};
	for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
		for (unsigned shift = 0; shift < 44; shift += 4) {
			unsigned low[4096] = {0}, high[4096] = {0};
			for (uint64_t i = 0; i < 65536; i++) {
				uint64_t key[4] = {i << shift, 5, 5, 5};
				uint64_t h = hash_bytes(key, sizes[s]);
				low[h & 4095]++;
				high[h >> 52]++;
			}
			for (int i = 0; i < 4096; i++) {
				assert_in_range(low[i], 1, 48);
				assert_in_range(high[i], 1, 48);
			}
		}
	}
}

static void test_strtab(void **state)
{
	(void)state;
	struct strtab t = {0};
	char name[32];
	for (int round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < 5000; i++) {
			snprintf(name, sizeof name, "name%u", i);
			assert_int_equal(strtab_add(&t, name), i);
		}
	}
	assert_int_equal(t.n, 5000);
	assert_string_equal(t.strings[4999], "name4999");
	assert_int_equal(strtab_add(&t, ""), 5000);
	assert_int_equal(strtab_add(&t, ""), 5000);
	strtab_deinit(&t);
	assert_int_equal(t.n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_against_model),
		cmocka_unit_test(test_iteration_sees_each_once),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_clear),
		cmocka_unit_test(test_clear_gives_back),
		cmocka_unit_test(test_hash_reads_everything),
		cmocka_unit_test(test_hash_spreads),
		cmocka_unit_test(test_strtab),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
