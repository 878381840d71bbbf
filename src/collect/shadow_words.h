/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a burst tells of words in memory: those that it would move a little, and what those that user
 * space has it watch hold now (collect/progress.h). Included by shadow.bpf.c only, behind its state
 * and its buffer.
 */
#ifndef CULPRIT_COLLECT_SHADOW_WORDS_H
#define CULPRIT_COLLECT_SHADOW_WORDS_H

/*
 * Bytes around the stack pointer: nothing there counts for long. Bursts hardly get farther, and
 * what malloc gives a thread may lie next to its stack.
 */
#define STACK_NEAR 0x10000
#define MOVED_MOST 65536

static __always_inline s64 change_of(const struct interp_word *w, u64 before)
{
	if (w->stored == 0x0f)
		return (s32)((u32)w->data - (u32)before);
	if (w->stored == 0xf0)
		return (s32)((u32)(w->data >> 32) - (u32)(before >> 32));
	return (s64)(w->data - before);
}

/* What is told of words. */
struct telling {
	struct state *s;
	struct shadow_cpu *c;
	u64 at; /* in the buffer */
	u32 first, moved;
};

/* Memory still is as it was before the burst. */
static long tell_moved(u32 index, struct telling *t)
{
	struct state *s = t->s;
	const struct interp_word *w = &s->m.word[(index + t->first) % INTERP_WORDS];
	u64 at = t->at, place;
	s64 change;

	if (w->epoch != s->m.epoch || w->unknown ||
		(w->stored != 0xff && w->stored != 0x0f && w->stored != 0xf0) ||
		w->address - s->m.r[INTERP_RSP] + STACK_NEAR < 2 * STACK_NEAR)
		return 0;
	place = place_of(&s->m, w->address);
	if (!place)
		return 0;
	change = change_of(w, peek(place + (w->address & 4095)));
	if (!change || change > MOVED_MOST || change < -MOVED_MOST)
		return 0;
	t->c->buffer[at % SHADOW_WORDS] = w->address + (w->stored == 0xf0 ? 4 : 0);
	t->c->buffer[(at + 1) % SHADOW_WORDS] = w->by;
	t->c->buffer[(at + 2) % SHADOW_WORDS] = (u64)change;
	t->c->buffer[(at + 3) % SHADOW_WORDS] = w->times | (w->stored == 0xff ? 8ull : 4ull) << 32;
	t->at = at + SHADOW_MOVED_SIZE;
	return ++t->moved >= SHADOW_MOVED;
}

static long copy_reading(u32 i, struct telling *t)
{
	const u64 *from = (const u64 *)&t->s->reading;

	if (i >= SHADOW_READING)
		return 1;
	t->c->buffer[(t->at + i) % SHADOW_WORDS] = from[i];
	return 0;
}

/* Writes what there is to tell of words behind the edges of a burst. */
__attribute__((noinline)) int tell_words(struct state *s, u64 at)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct telling t = {.s = s, .c = bpf_map_lookup_elem(&cpus, &cpu), .at = at};

	if (!s || !t.c)
		return 0;
	t.first = (u32)t.c->ns;
	if (s->m.stored && !s->m.kernel)
		bpf_loop(INTERP_WORDS, tell_moved, &t, 0);
	if (s->watched)
		bpf_loop(SHADOW_READING, copy_reading, &t, 0);
	s->moved = t.moved;
	return 0;
}

#endif
