#include "analyze/fingerprint.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* push %rbp; mov %rsp,%rbp; mov $5,%eax; add 8(%rdi),%rax; cmp $100,%rax; jb -10; call; pop; ret */
static const uint8_t plain[] = {0x55, 0x48, 0x89, 0xe5, 0xb8, 5, 0, 0, 0, 0x48, 0x03, 0x47, 8, 0x48,
	0x83, 0xf8, 100, 0x72, 0xf6, 0xe8, 1, 2, 0, 0, 0x5d, 0xc3};
/* The same with other registers, constants, offsets and targets, and nops. */
static const uint8_t moved[] = {0x53, 0x48, 0x89, 0xe3, 0x0f, 0x1f, 0x00, 0xbb, 9, 0, 0, 0, 0x48,
	0x03, 0x5e, 16, 0x48, 0x83, 0xfb, 33, 0x72, 0xe0, 0xe8, 7, 7, 0, 0, 0x5b, 0xc3, 0x90};
/* sub for add. */
static const uint8_t changed[] = {0x55, 0x48, 0x89, 0xe5, 0xb8, 5, 0, 0, 0, 0x48, 0x2b, 0x47, 8,
	0x48, 0x83, 0xf8, 100, 0x72, 0xf6, 0xe8, 1, 2, 0, 0, 0x5d, 0xc3};

static double likeness(const void *a, size_t na, const void *b, size_t nb)
{
	struct fingerprint x, y;

	fingerprint_make(a, na, &x);
	fingerprint_make(b, nb, &y);
	assert_true(fingerprint_likeness(&x, &y) == fingerprint_likeness(&y, &x));
	return fingerprint_likeness(&x, &y);
}

static void addresses_and_registers_do_not_count(void **state)
{
	struct fingerprint f;

	(void)state;
	fingerprint_make(plain, sizeof plain, &f);
	assert_int_equal(f.insns, 9);
	assert_int_equal(f.n, 7);
	assert_true(likeness(plain, sizeof plain, moved, sizeof moved) == 1);
}

static void operations_count(void **state)
{
	(void)state;
	/* Three of seven runs differ: four are in both, ten in either. */
	assert_true(likeness(plain, sizeof plain, changed, sizeof changed) == 0.4);
}

static void odd_code_has_a_fingerprint(void **state)
{
	static const uint8_t bad[] = {0x06, 0x06, 0x06, 0x06}, cut[] = {0x48, 0x03};
	struct fingerprint none, f;

	(void)state;
	fingerprint_make("", 0, &none);
	assert_int_equal(none.insns, 0);
	assert_true(fingerprint_likeness(&none, &none) == 0);
	fingerprint_make(bad, sizeof bad, &f);
	assert_int_equal(f.insns, 4);
	fingerprint_make(cut, sizeof cut, &f);
	assert_true(f.insns > 0);
	fingerprint_make("\xc3", 1, &f);
	assert_int_equal(f.insns, 1);
	assert_true(fingerprint_likeness(&f, &f) == 1);
}

/* Instructions of one byte whose order makes the runs. */
static void fill(uint8_t *code, size_t n, uint32_t seed)
{
	static const uint8_t some[] = {0x50, 0x58, 0xf8, 0xf9, 0xf5, 0x98, 0x99, 0xc9, 0xfc, 0xfd,
		0x9c, 0x9d, 0xa4, 0xa5, 0xaa, 0xab, 0xac, 0xad, 0xae, 0xaf, 0xd7, 0xf4};

	for (size_t i = 0; i < n; i++) {
		seed = seed * 1664525 + 1013904223;
		code[i] = some[(seed >> 16) % sizeof some];
	}
}

static void large_code_is_compared_by_a_sample(void **state)
{
	static uint8_t a[4000], b[4000];
	double half;

	(void)state;
	fill(a, sizeof a, 1);
	memcpy(b, a, sizeof a);
	assert_true(likeness(a, sizeof a, b, sizeof b) == 1);
	/* Two thirds of each are the same: about half of the union. */
	fill(b, sizeof b / 3, 2);
	half = likeness(a, sizeof a, b, sizeof b);
	assert_true(half > 0.35 && half < 0.75);
	fill(b, sizeof b, 3);
	assert_true(likeness(a, sizeof a, b, sizeof b) < 0.4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_and_registers_do_not_count),
		cmocka_unit_test(operations_count),
		cmocka_unit_test(odd_code_has_a_fingerprint),
		cmocka_unit_test(large_code_is_compared_by_a_sample),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
