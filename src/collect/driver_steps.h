/*
 * The part of the sampler (driver.bpf.c, which includes it) that finds the return addresses of a
 * stack by what stacks before have taught: how far the next one is from each of them (driver.h). It
 * knows nothing of images, and of their unwind rows only what it was told; it gives up at the first
 * address that is not known, and then the stack is copied.
 */
#ifndef CULPRIT_COLLECT_DRIVER_STEPS_H
#define CULPRIT_COLLECT_DRIVER_STEPS_H

/* From one return address to the next. */
struct trail {
	const struct driver_seen *seen;
	u64 *to; /* of DRIVER_TRAIL + 1 */
	u64 program, code, code_size, libraries;
	u64 sp, words; /* of the stack */
	u64 at;        /* the return address, in words above the stack pointer */
	u32 n;
	u32 whole;
};

static __always_inline u64 place_on(const struct trail *t, u64 address)
{
	return address - t->code < t->code_size ? address - t->code : address - t->libraries;
}

/* 0: nobody knows. */
static __always_inline u32 step_from(const struct trail *t, u64 place, u64 what)
{
	u64 h = DRIVER_HASH_STEP(t->program, place, what);
	u32 slot = STEP_SLOT(h) % DRIVER_STEPS, mark = DRIVER_MARK(h), step = 0;

	if (t->seen->step[slot].mark == mark)
		step = t->seen->step[slot].step;
	else if (t->seen->step[slot ^ 1].mark == mark)
		step = t->seen->step[slot ^ 1].step;
	return STEP_SURE(step) ? step : 0;
}

/* The words of the frame of an instruction, by the code around it. */
static __always_inline u32 frame_around(const struct trail *t, u64 place)
{
	u32 step = 0;

	for (int i = STEP_SIZES - 1; i >= 0 && !step; i--)
		step = step_from(t, place / STEP_PIECE(i), STEP_PIECES + i);
	return step;
}

/* To the next return address. */
static __always_inline u32 step_after(const struct trail *t, u64 address)
{
	u32 step = step_from(t, place_on(t, address), STEP_RETURN);

	return step ? step : frame_around(t, place_on(t, address - 1));
}

static long take_step(u32 i, void *arg)
{
	struct trail *t = arg;
	u64 address = 0;
	u32 step;

	if (i >= DRIVER_TRAIL || t->at >= t->words || t->at > STEP_WORDS)
		return 1;
	if (bpf_probe_read_user(&address, sizeof address, (const void *)(t->sp + 8 * t->at)))
		return 1;
	address = CALLER_ADDRESS(address);
	t->to[i] = address | t->at << CALLER_SHIFT;
	step = step_after(t, address);
	t->at += step & STEP_WORDS;
	t->n = i + 1;
	t->whole = !!(step & STEP_ROOT);
	return !step || t->whole;
}

/* From the sample to the first of them. */
static __always_inline bool begin_trail(struct trail *t, u64 pc)
{
	u64 place = place_on(t, pc);
	u32 step = frame_around(t, place);

	if (!step)
		step = step_from(t, place, STEP_EXACT);
	t->at = (step & STEP_WORDS) - 1;
	return step;
}

/* Whether the list is whole: from the sample to the root of its thread. */
static __always_inline bool follow_trail(struct trail *t, const struct place *p)
{
	if (!begin_trail(t, p->pc))
		return false;
	bpf_loop(DRIVER_TRAIL, take_step, t, 0);
	return t->whole && t->n <= DRIVER_TRAIL && t->at <= STEP_WORDS;
}

/* The first few, which are read where there is nothing left for more. Returns how many. */
static __attribute__((noinline)) int follow_some(struct trail *t, u64 pc, u64 *callers)
{
	int n = 0;

	if (!begin_trail(t, pc))
		return 0;
	for (; n < DRIVER_CALLERS; n++) {
		u64 address = 0;
		u32 step;

		if (t->at >= t->words || t->at >= STEP_WORDS ||
			bpf_probe_read_user(
				&address, sizeof address, (const void *)(t->sp + 8 * t->at)))
			break;
		address = CALLER_ADDRESS(address);
		callers[n] = address | (t->at + 1) << CALLER_SHIFT;
		step = step_after(t, address);
		if (!step || step & STEP_ROOT)
			return n + 1;
		t->at += step & STEP_WORDS;
	}
	return n;
}

#endif
