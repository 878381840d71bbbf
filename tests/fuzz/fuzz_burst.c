/*
 * Any bytes as a burst of the interpreter in the interrupt: running it again ends, stays inside its
 * words, and shows no more steps than the burst claims; what is captured of them has kinds and
 * places. The first byte tells how much of the burst's head is made to fit its words.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "collect/burst.h"
#include "values/capture.h"

enum { WORDS_MOST = 600, STEPS_MOST = 4000 };
enum { FITS_INPUTS = 1, FITS_EDGES = 2, FITS_STEPS = 4 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct heard {
	struct capture capture;
	uint64_t steps, edges;
};

static void take_value(void *arg, uint64_t pc, enum value_kind kind, uint64_t site, uint64_t value)
{
	(void)arg, (void)pc, (void)site, (void)value;
	if (!value_kind_name(kind) || (site && kind < VALUE_ENTRY0))
		abort();
}

static void take_step(void *arg, const struct interp *m)
{
	struct heard *h = arg;

	h->steps++;
	capture_step(&h->capture, m, take_value, h);
}

static void take_edge(void *arg, uint64_t from, uint64_t to)
{
	struct heard *h = arg;

	(void)from, (void)to;
	h->edges++;
}

/* As many inputs as make the words that there are. */
static uint16_t inputs_of(size_t words)
{
	uint16_t n = 0;

	while (SHADOW_STATE + n + 1u + (n + 64u) / 64 <= words)
		n++;
	return n;
}

static void fit(struct shadow_burst *b, uint8_t how, size_t n)
{
	b->words = (u32)(SHADOW_HEAD + n);
	if (how & FITS_EDGES) {
		b->inputs = 0;
		b->moved %= 4;
		b->watched = n > 40 ? b->watched % (SHADOW_WATCHED + 2) : 0;
		b->edges = (u16)(n > 80 ? 2 : n / 2);
		b->words = SHADOW_HEAD + 2u * b->edges +
			   (n > 80 ? b->moved * (u32)SHADOW_MOVED_SIZE : 0) +
			   (b->watched ? (u32)SHADOW_READING : 0);
		if (b->words > SHADOW_HEAD + n)
			b->words = (u32)(SHADOW_HEAD + n);
	} else if (how & FITS_INPUTS && n > SHADOW_STATE + 1) {
		b->inputs = inputs_of(n);
		b->words = SHADOW_HEAD + SHADOW_STATE + b->inputs + (b->inputs + 63u) / 64;
	}
	if (how & FITS_STEPS)
		b->steps = b->skipped = 40;
	b->steps %= STEPS_MOST;
	b->skipped %= STEPS_MOST;
}

/* All that a burst tells of words can be read. */
static void look_at_words(const struct shadow_burst *b, const uint64_t *words)
{
	const struct shadow_moved *moved;
	size_t n = burst_moved(b, words, &moved);
	const struct shadow_reading *r = burst_reading(b, words);
	volatile uint64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += moved[i].address + moved[i].times;
	for (size_t i = 0; r && i < b->watched; i++)
		sum += r->word[i][1];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct interp m;
	struct shadow_burst b;
	struct heard h = {0};
	uint64_t *words;
	size_t n;

	if (size < 1 + sizeof b)
		return 0;
	memcpy(&b, data + 1, sizeof b);
	n = (size - 1 - sizeof b) / 8;
	if (n > WORDS_MOST)
		return 0;
	fit(&b, data[0], n);
	words = malloc(n * 8 + 1); /* of exactly this size, so that reading beyond is found */
	if (!words)
		return 0;
	memcpy(words, data + 1 + sizeof b, n * 8);
	capture_begin(&h.capture, n > INTERP_RCX ? words[INTERP_RCX] : 0);
	burst_replay(&b, words, &m, take_step, &h);
	burst_edges(&b, words, take_edge, &h);
	look_at_words(&b, words);
	if (h.steps > b.steps || h.edges > b.edges)
		abort();
	free(words);
	return 0;
}
