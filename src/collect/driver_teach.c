#include "collect/driver_teach.h"

#include "collect/sampler.h"

#include <stdbool.h>
#include <string.h>

#define ROW_AT_ONCE 2048               /* bytes of code that are taught, at most */
#define CALLS_MOST  (DRIVER_CALLS / 8) /* then the bits say too little, and all are seen again */

/* The entry for a hash, or for whom it is to be from now on. */
static struct driver_step *step_of(struct driver_seen *seen, uint64_t hash)
{
	uint32_t mark = DRIVER_MARK(hash);
	size_t slot = STEP_SLOT(hash) % DRIVER_STEPS, other = slot ^ 1;
	struct driver_step *s = seen->step;

	if (s[slot].mark == mark || s[other].mark == mark)
		return &s[s[slot].mark == mark ? slot : other];
	if (s[slot].mark)
		slot = s[other].mark ? slot ^ (mark >> 31) : other;
	__atomic_store_n(&s[slot].step, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&s[slot].mark, mark, __ATOMIC_RELEASE);
	return &s[slot];
}

static uint64_t piece_hash(const struct driver_stack *s, uint64_t place, int size)
{
	return DRIVER_HASH_STEP(
		s->program, place / (uint64_t)STEP_PIECE(size), STEP_PIECES + (uint64_t)size);
}

/* Whether a piece of code around tells the same, as the kernel looks for it. */
static bool is_told(const struct driver_seen *seen, const struct driver_stack *s, uint64_t place,
	uint32_t words)
{
	for (int i = 0; i < STEP_SIZES; i++) {
		uint64_t h = piece_hash(s, place, i);
		size_t slot = STEP_SLOT(h) % DRIVER_STEPS;
		const struct driver_step *pair = &seen->step[slot & ~1ul];

		for (unsigned k = 0; k < 2; k++)
			if (pair[k].mark == DRIVER_MARK(h) && STEP_SURE(pair[k].step) &&
				(pair[k].step & STEP_WORDS) == words)
				return true;
	}
	return false;
}

static void teach(struct driver_seen *seen, uint64_t hash, const struct stack_step *l)
{
	struct driver_step *step = step_of(seen, hash);
	uint32_t before = step->step, times = before >> STEP_SEEN_SHIFT & STEP_SEEN;
	uint32_t fresh = l->words | (l->root ? STEP_ROOT : 0);

	if (before && (before & (STEP_WORDS | STEP_ROOT)) != fresh)
		fresh = before | STEP_VARIES;
	else
		fresh |= (l->fixed || times >= STEP_ENOUGH ? STEP_ENOUGH : times + 1)
				 << STEP_SEEN_SHIFT |
			 (before & STEP_VARIES);
	__atomic_store_n(&step->step, fresh, __ATOMIC_RELAXED);
}

/* The largest piece of code that begins at a place and ends by another; -1: none. */
static int piece_at(uint64_t at, uint64_t end)
{
	int size = STEP_SIZES;

	while (size-- > 0)
		if (at % STEP_PIECE(size) == 0 && at + STEP_PIECE(size) <= end)
			break;
	return size;
}

/* All the code that an unwind row speaks of, by pieces that lie in it, not too far away. */
static void teach_row(struct driver_seen *seen, const struct driver_stack *s, uint64_t place,
	const struct stack_step *l)
{
	uint64_t low = place - place % ROW_AT_ONCE, shift = place - l->row;
	uint64_t before = place - (l->start + shift), behind = l->end + shift - low;
	uint64_t x = before > place - low ? low : place - before;
	uint64_t end = behind > ROW_AT_ONCE ? low + ROW_AT_ONCE : low + behind;
	int size;

	for (x += (0 - x) % STEP_PIECE(0); (size = piece_at(x, end)) >= 0; x += STEP_PIECE(size))
		teach(seen, piece_hash(s, x, size), l);
}

static void note_call(
	struct driver_seen *seen, const struct driver_stack *s, const struct stack_step *l)
{
	uint64_t kind = s->context.where >> WHERE_KIND_SHIFT & WHERE_KIND;
	uint64_t bit = DRIVER_CALL(
		DRIVER_HASH_CALL(s->program, driver_place_in(s, l->address), kind, l->words));

	if (seen->called[bit / 64] >> bit % 64 & 1)
		return;
	if (++seen->ncalled > CALLS_MOST) {
		memset(seen->called, 0, sizeof seen->called);
		seen->ncalled = 1;
	}
	__atomic_store_n(&seen->called[bit / 64], seen->called[bit / 64] | 1ull << bit % 64,
		__ATOMIC_RELAXED);
}

void driver_steps_teach(
	struct driver_seen *seen, const struct driver_stack *s, const struct stack_step *l)
{
	uint64_t place = driver_place_in(s, l->row);

	if (l->what == STEP_CALLED) {
		note_call(seen, s, l);
		return;
	}
	if (l->words > STEP_WORDS)
		return;
	/* What is known already need not be in two places. */
	if (l->end && !is_told(seen, s, place, l->words))
		teach_row(seen, s, place, l);
	if (!l->fixed || l->root || !is_told(seen, s, place, l->words))
		teach(seen, DRIVER_HASH_STEP(s->program, driver_place_in(s, l->address), l->what),
			l);
}
