#include "collect/burst.h"

#include <errno.h>
#include <string.h>

struct inputs {
	const uint64_t *word, *lost;
	uint32_t n, next;
	bool short_of; /* one more was asked for than there are */
};

static int next_input(void *arg, uint64_t address, uint64_t *word)
{
	struct inputs *in = arg;
	uint32_t i = in->next++;

	(void)address;
	*word = 0;
	if (i >= in->n) {
		in->short_of = true;
		return -ENODATA;
	}
	*word = in->word[i];
	return in->lost[i / 64] >> (i & 63) & 1 ? -EFAULT : 0;
}

static void set_state(struct interp *m, const uint64_t *state)
{
	memcpy(m->r, state, sizeof m->r);
	m->ip = state[16];
	m->base[0] = state[17];
	m->base[1] = state[18];
	interp_set_flags(m, state[19]);
	if (state[20])
		interp_put(m, state[20], 4, state[21]);
}

bool burst_replay(const struct shadow_burst *b, const uint64_t *words, struct interp *m,
	burst_step_fn *fn, void *arg)
{
	struct inputs in = {.word = words + SHADOW_STATE,
		.lost = words + SHADOW_STATE + b->inputs,
		.n = b->inputs};

	if (b->words != SHADOW_HEAD + SHADOW_STATE + b->inputs + (b->inputs + 63u) / 64)
		return false;
	interp_begin(m, next_input, &in);
	set_state(m, words);
	m->kernel = b->kernel;
	for (uint32_t i = 0; i < (uint32_t)b->skipped + b->steps; i++) {
		if (interp_step(m) != INTERP_GOES_ON || in.short_of)
			return false;
		if (i >= b->skipped)
			fn(arg, m);
	}
	return m->ip == b->end;
}

static uint32_t words_told(const struct shadow_burst *b)
{
	return 2u * b->edges + b->moved * (uint32_t)SHADOW_MOVED_SIZE +
	       (b->watched ? (uint32_t)SHADOW_READING : 0);
}

static bool is_whole(const struct shadow_burst *b)
{
	return !b->inputs && b->words == SHADOW_HEAD + words_told(b) &&
	       b->watched <= SHADOW_WATCHED;
}

void burst_edges(const struct shadow_burst *b, const uint64_t *words, burst_edge_fn *fn, void *arg)
{
	for (uint32_t i = 0; is_whole(b) && i < b->edges; i++)
		fn(arg, words[2 * i], words[2 * i + 1]);
}

size_t burst_moved(
	const struct shadow_burst *b, const uint64_t *words, const struct shadow_moved **list)
{
	*list = (const struct shadow_moved *)(words + 2 * b->edges);
	return is_whole(b) ? b->moved : 0;
}

const struct shadow_reading *burst_reading(const struct shadow_burst *b, const uint64_t *words)
{
	if (!is_whole(b) || !b->watched)
		return NULL;
	return (const struct shadow_reading *)(words + 2 * b->edges + b->moved * SHADOW_MOVED_SIZE);
}
