/*
 * How far return addresses are apart (collect/driver.h): stacks that were walked teach it to the
 * kernel, which then finds those of stacks like them by itself.
 */
#include "collect/contexts_internal.h"
#include "collect/driver.h"
#include "collect/image_cache.h"
#include "image/frames.h"

#include <string.h>

/* rsp, as machine code numbers it. */
enum { STACK_REGISTER = 4 };

/* Whether all code around has frames of this size: where procedures begin and end, they differ. */
static bool is_even(struct contexts *c, const struct context_stack *s, uint64_t pc, uint64_t size)
{
	uint64_t offset, vaddr, start, end;
	uint32_t image = s->place(s->arg, pc, &offset);
	const struct frames *f = image == IMAGE_NUMBER_UNKNOWN ? NULL : contexts_rows(c, image);
	const struct frame_rule *r;

	if (!f || !cached_image_address(image_cache_get(c->images, image), offset, &vaddr))
		return false;
	r = frames_around(f, vaddr, &start, &end);
	vaddr -= pc % STEP_GRAIN;
	return r && r->base == FRAME_RSP && (uint64_t)(int64_t)r->offset == size &&
	       start <= vaddr && vaddr + STEP_GRAIN <= end;
}

static void note(struct contexts *c, const struct walk_frame *f, uint64_t bytes, bool root)
{
	*vec_add(&c->steps) = (struct stack_step){.address = f->pc,
		.words = (uint32_t)(bytes / 8),
		.what = STEP_RETURN,
		.fixed = f->fixed || root,
		.root = root};
}

/* Of the last one, which need have no address, only that it is. */
void contexts_note_steps(struct contexts *c, const struct context_stack *s,
	const struct walk_frame *walked, size_t n, bool whole)
{
	uint64_t size = walked[0].cfa - s->stack->r[STACK_REGISTER];

	if (walked[0].fixed)
		*vec_add(&c->steps) = (struct stack_step){.address = walked[0].pc,
			.words = (uint32_t)(size / 8 - 1),
			.what = is_even(c, s, walked[0].pc, size) ? STEP_FIRST : STEP_EXACT,
			.fixed = true};
	for (size_t i = 1; i < n && !walked[i].exact && !walked[i].guessed; i++) {
		if (i + 1 < n && walked[i].cfa > walked[i - 1].cfa)
			note(c, &walked[i], walked[i].cfa - walked[i - 1].cfa, false);
		else if (whole && i + 1 == n)
			note(c, &walked[i], walked[i].cfa ? walked[i].cfa - walked[i - 1].cfa : 0,
				true);
	}
}

size_t contexts_steps(const struct contexts *c, const struct stack_step **out)
{
	*out = c->steps.p;
	return c->steps.n;
}

size_t contexts_trail(const struct context_stack *s, struct walk_frame *out)
{
	uint64_t sp = s->stack->r[STACK_REGISTER], pc = s->stack->rip, word;
	size_t n = s->stack->size / sizeof word;

	n = n < CONTEXTS_FRAMES ? n : CONTEXTS_FRAMES;
	for (size_t i = 0; i < n; i++) {
		memcpy(&word, s->bytes + i * sizeof word, sizeof word);
		out[i] = (struct walk_frame){
			.pc = pc, .cfa = sp + 8 * (word >> CALLER_SHIFT) + 8, .exact = !i};
		pc = CALLER_ADDRESS(word);
	}
	if (n > 1 && out[n - 1].cfa == out[n - 2].cfa)
		out[n - 1].cfa = 0;
	return n;
}
