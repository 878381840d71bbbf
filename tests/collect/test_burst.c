/* Bursts as the kernel writes them, made here by the same interpreter, whole and damaged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "collect/burst.h"

#define CODE 0x401000ull
#define DATA 0x7ffd12340000ull

enum { WORDS = 256 };

/* A burst on its way to be written. */
struct maker {
	uint8_t code[64];
	uint64_t data[8], missing; /* missing: of data, those that cannot be read */
	struct shadow_burst b;
	uint64_t words[WORDS];
	uint64_t inputs[WORDS], lost[4];
};

static int read_word(void *arg, u64 address, u64 *word)
{
	struct maker *k = arg;
	uint32_t n = k->b.inputs++;
	uint64_t i = (address - DATA) / 8;

	assert_true(n < WORDS / 2);
	*word = 0;
	if (address - CODE < sizeof k->code)
		memcpy(word, k->code + (address - CODE), sizeof *word);
	else if (i < 8 && !(k->missing >> i & 1))
		*word = k->data[i];
	else
		k->lost[n / 64] |= 1ull << (n & 63);
	k->inputs[n] = *word;
	return k->lost[n / 64] >> (n & 63) & 1 ? -EFAULT : 0;
}

/* Whenever inputs were changed. */
static void put_words(struct maker *k)
{
	uint32_t n = k->b.inputs;

	memcpy(k->words + SHADOW_STATE, k->inputs, n * sizeof *k->inputs);
	memcpy(k->words + SHADOW_STATE + n, k->lost, (n + 63) / 64 * sizeof *k->lost);
	k->b.words = SHADOW_HEAD + SHADOW_STATE + n + (n + 63) / 64;
}

static void make(struct maker *k, const uint8_t *code, size_t size, uint16_t skip, uint16_t steps)
{
	static struct interp m;
	uint64_t *first = k->words;

	memset(k->code, 0x90, sizeof k->code);
	memcpy(k->code, code, size);
	for (int i = 0; i < 8; i++)
		k->data[i] = 100 + (uint64_t)i;
	first[INTERP_RCX] = 3;
	first[INTERP_RDI] = DATA;
	first[INTERP_RSP] = DATA + 64;
	first[16] = CODE;
	first[19] = 0x202;
	interp_begin(&m, read_word, k);
	memcpy(m.r, first, sizeof m.r);
	m.ip = CODE;
	m.base[0] = m.base[1] = 0;
	interp_set_flags(&m, first[19]);
	if (first[20])
		interp_put(&m, first[20], 4, first[21]);
	m.kernel = k->b.kernel;
	for (uint32_t i = 0; i < (uint32_t)skip + steps; i++)
		assert_int_equal(interp_step(&m), INTERP_GOES_ON);
	k->b.skipped = skip;
	k->b.steps = steps;
	k->b.end = m.ip;
	k->b.stop = INTERP_DONE;
	put_words(k);
}

struct heard {
	uint32_t steps, unknown;
	uint64_t ip[64], value[64];
};

static void hear(void *arg, const struct interp *m)
{
	struct heard *h = arg;

	assert_true(h->steps < 64);
	h->ip[h->steps] = m->effect.ip;
	h->value[h->steps] = m->effect.value;
	h->unknown += m->effect.has & INTERP_LOADS && !(m->effect.has & INTERP_HAS_VALUE);
	h->steps++;
}

static bool replay(const struct maker *k, struct heard *h)
{
	static struct interp m;

	*h = (struct heard){0};
	return burst_replay(&k->b, k->words, &m, hear, h);
}

/* 1: mov (%rdi),%rax; add $8,%rdi; dec %ecx; jnz 1b; nop... */
static const uint8_t loop[] = {0x48, 0x8b, 0x07, 0x48, 0x83, 0xc7, 0x08, 0xff, 0xc9, 0x75, 0xf5};
enum { LOOP_STEPS = 12 };

static void test_replay(void **state)
{
	(void)state;
	struct maker k = {0};
	struct heard h;

	make(&k, loop, sizeof loop, 0, LOOP_STEPS);
	assert_true(replay(&k, &h));
	assert_int_equal(h.steps, LOOP_STEPS);
	assert_int_equal(h.unknown, 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(h.ip[4 * i], CODE);
		assert_int_equal(h.value[4 * i], 100 + i);
	}
	assert_int_equal(k.b.end, CODE + sizeof loop);
}

/* What the kernel found changed by its own interrupt. */
static void test_stored_first(void **state)
{
	(void)state;
	struct maker k = {.words = {[20] = DATA + 8, [21] = 0x80000001}};
	struct heard h;

	make(&k, loop, sizeof loop, 0, LOOP_STEPS);
	assert_true(replay(&k, &h));
	assert_int_equal(h.value[0], 100);
	assert_int_equal(h.value[4], 0x80000001);
	assert_int_equal(h.value[8], 102);
}

static void test_skipped(void **state)
{
	(void)state;
	struct maker k = {0};
	struct heard h;

	make(&k, loop, sizeof loop, 5, LOOP_STEPS - 5);
	assert_true(replay(&k, &h));
	assert_int_equal(h.steps, LOOP_STEPS - 5);
	assert_int_equal(h.ip[0], CODE + 3);
	assert_int_equal(h.value[3], 102);
}

static void test_unreadable(void **state)
{
	(void)state;
	struct maker k = {.missing = 1 << 1};
	struct heard h;

	make(&k, loop, sizeof loop, 0, LOOP_STEPS);
	assert_true(replay(&k, &h));
	assert_int_equal(h.unknown, 1);
	assert_int_equal(h.value[8], 102);
}

/* cli is no instruction of user mode. */
static void test_kernel(void **state)
{
	(void)state;
	static const uint8_t cli[] = {0xfa};
	struct maker k = {.b.kernel = 1};
	struct heard h;

	make(&k, cli, sizeof cli, 0, 3);
	assert_true(replay(&k, &h));
	k.b.kernel = 0;
	assert_false(replay(&k, &h));
	assert_int_equal(h.steps, 0);
}

/* An instruction that the kernel's run stopped in may have read something. */
static void test_more_inputs(void **state)
{
	(void)state;
	struct maker k = {0};
	struct heard h;

	make(&k, loop, sizeof loop, 0, LOOP_STEPS);
	k.b.inputs++;
	put_words(&k);
	assert_true(replay(&k, &h));
}

static void test_short_of_inputs(void **state)
{
	(void)state;
	struct maker k = {0};
	struct heard h;

	make(&k, loop, sizeof loop, 0, LOOP_STEPS);
	uint16_t all = k.b.inputs;
	for (k.b.inputs = 1; k.b.inputs < all; k.b.inputs++) {
		put_words(&k);
		assert_false(replay(&k, &h));
	}
}

static void test_another_end(void **state)
{
	(void)state;
	struct maker k = {0};
	struct heard h;

	make(&k, loop, sizeof loop, 0, LOOP_STEPS);
	k.b.end++;
	assert_false(replay(&k, &h));
	k.b.end--;
	k.b.steps--;
	assert_false(replay(&k, &h));
	k.b.steps = 60000;
	k.b.skipped = 60000;
	assert_false(replay(&k, &h));
	assert_int_equal(h.steps, 0);
}

static void test_wrong_size(void **state)
{
	(void)state;
	struct maker k = {0};
	struct heard h;

	make(&k, loop, sizeof loop, 0, LOOP_STEPS);
	uint32_t words = k.b.words;
	for (uint32_t i = 0; i < 2 * words; i++) {
		k.b.words = i;
		assert_int_equal(replay(&k, &h), i == words);
		assert_int_equal(h.steps, i == words ? LOOP_STEPS : 0);
	}
}

/* Each bit of each word in turn: it ends, and says no wherever the way is another one. */
static void test_damaged(void **state)
{
	(void)state;
	struct maker k = {0};
	unsigned refused = 0, n;
	struct heard h;

	make(&k, loop, sizeof loop, 0, LOOP_STEPS);
	n = k.b.words - SHADOW_HEAD;
	for (unsigned i = 0; i < n * 64; i++) {
		k.words[i / 64] ^= 1ull << (i % 64);
		refused += !replay(&k, &h);
		k.words[i / 64] ^= 1ull << (i % 64);
	}
	assert_true(refused > 64); /* ip, rcx and the code at least */
	k.words[INTERP_RCX] = 2;
	assert_false(replay(&k, &h));
	k.words[INTERP_RCX] = 3;
	assert_true(replay(&k, &h));
}

/* ---- edges ---- */

struct edge_list {
	uint32_t n;
	uint64_t from[4], to[4];
};

static void add_edge(void *arg, uint64_t from, uint64_t to)
{
	struct edge_list *l = arg;

	assert_true(l->n < 4);
	l->from[l->n] = from;
	l->to[l->n++] = to;
}

static void test_edges(void **state)
{
	(void)state;
	const uint64_t words[] = {0x401009, 0x401000, 0x401009, 0x40100b};
	struct shadow_burst b = {.words = SHADOW_HEAD + 4, .edges = 2, .steps = 9};
	struct edge_list l = {0};

	burst_edges(&b, words, add_edge, &l);
	assert_int_equal(l.n, 2);
	assert_int_equal(l.from[1], 0x401009);
	assert_int_equal(l.to[0], 0x401000);
	assert_int_equal(l.to[1], 0x40100b);
	l.n = 0;
	b.edges = 3; /* more than there is room for */
	burst_edges(&b, words, add_edge, &l);
	b.edges = 2;
	b.inputs = 4; /* words are inputs */
	burst_edges(&b, words, add_edge, &l);
	assert_int_equal(l.n, 0);
}

/* Edges, two words that moved, and what was read of a watched one. */
static void test_words(void **state)
{
	(void)state;
	uint64_t words[2 + 2 * SHADOW_MOVED_SIZE + SHADOW_READING] = {0x401009, 0x401000};
	struct shadow_burst b = {.words = SHADOW_HEAD + sizeof words / 8,
		.edges = 1,
		.moved = 2,
		.watched = 1,
		.steps = 9};
	const struct shadow_moved *moved;
	const struct shadow_reading *reading;
	struct edge_list l = {0};

	words[2 + SHADOW_MOVED_SIZE] = 0x1234;
	words[2 + 2 * SHADOW_MOVED_SIZE] = 777;
	burst_edges(&b, words, add_edge, &l);
	assert_int_equal(l.n, 1);
	assert_int_equal(burst_moved(&b, words, &moved), 2);
	assert_int_equal(moved[1].address, 0x1234);
	reading = burst_reading(&b, words);
	assert_non_null(reading);
	assert_int_equal(reading->ns, 777);
	b.watched = SHADOW_WATCHED + 1;
	assert_null(burst_reading(&b, words));
	b.watched = 0; /* there is more than it tells of */
	assert_null(burst_reading(&b, words));
	assert_int_equal(burst_moved(&b, words, &moved), 0);
	b.words -= SHADOW_READING;
	assert_int_equal(burst_moved(&b, words, &moved), 2);
	assert_null(burst_reading(&b, words));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_replay),
		cmocka_unit_test(test_stored_first),
		cmocka_unit_test(test_skipped),
		cmocka_unit_test(test_unreadable),
		cmocka_unit_test(test_kernel),
		cmocka_unit_test(test_more_inputs),
		cmocka_unit_test(test_short_of_inputs),
		cmocka_unit_test(test_another_end),
		cmocka_unit_test(test_wrong_size),
		cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_edges),
		cmocka_unit_test(test_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
