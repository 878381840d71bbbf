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

/* What an unwind row says of an instruction of a stack: how far that goes, in its addresses. */
struct said {
	const struct frame_rule *rule;
	uint64_t start, end;
};

static bool row_of(struct contexts *c, const struct context_stack *s, const struct walk_frame *w,
	struct said *out)
{
	uint64_t at = w->pc - !w->exact, offset, vaddr;
	uint32_t image = s->place(s->arg, at, &offset);
	const struct frames *f = image == IMAGE_NUMBER_UNKNOWN ? NULL : contexts_rows(c, image);

	if (!f || !cached_image_address(image_cache_get(c->images, image), offset, &vaddr))
		return false;
	out->rule = frames_around(f, vaddr, &out->start, &out->end);
	if (!out->rule)
		return false;
	out->start += at - vaddr;
	out->end += at - vaddr;
	return true;
}

/* The frame has one size, and the return address is where calls put it. */
static bool is_plain(const struct frame_rule *r)
{
	const struct frame_save *back = r->nsaves ? &r->saves[r->nsaves - 1] : NULL;

	return r->base == FRAME_RSP && !r->signal && !r->root && r->offset > 0 &&
	       r->offset % 8 == 0 && back && back->reg == FRAME_RIP && back->how == FRAME_SAVED &&
	       back->value == -8;
}

static void note(struct contexts *c, const struct walk_frame *f, uint64_t bytes, bool root,
	const struct said *r)
{
	*vec_add(&c->steps) = (struct stack_step){.address = f->pc,
		.row = f->pc - !f->exact,
		.start = r ? r->start : 0,
		.end = r ? r->end : 0,
		.words = (uint32_t)(bytes / 8),
		.what = f->exact ? STEP_EXACT : STEP_RETURN,
		.fixed = f->fixed || root,
		.root = root};
}

/*
 * The first `own` frames are not those of the stack before, which was taught: of its frames only
 * those are counted again that may differ. Of the last one, which need have no address, only that
 * it is.
 */
void contexts_note_steps(struct contexts *c, const struct context_stack *s,
	const struct walk_frame *walked, size_t n, size_t own, bool whole)
{
	uint64_t sp = s->stack->r[STACK_REGISTER];

	for (size_t i = 0; i < n && (!i || !walked[i].exact) && !walked[i].guessed; i++) {
		const struct walk_frame *f = &walked[i];
		uint64_t size = f->cfa ? f->cfa - sp : 0;
		struct said r;
		bool ruled = i < own && f->fixed && row_of(c, s, f, &r) && is_plain(r.rule);

		if (i && i + 1 == n && whole)
			note(c, f, size, true, NULL);
		else if (i + 1 < n && f->cfa > sp && (i || f->fixed) && (i <= own || !f->fixed))
			note(c, f, size, false, ruled ? &r : NULL);
		sp = f->cfa;
	}
}

/* Who called, and how high what was called is, of the first frames. */
void contexts_note_calls(
	struct contexts *c, const struct walk_frame *walked, size_t n, uint64_t base)
{
	for (size_t i = 0; i + 1 < n && walked[i].cfa && !walked[i + 1].exact; i++)
		*vec_add(&c->steps) = (struct stack_step){.address = walked[i + 1].pc,
			.words = (uint32_t)((base - walked[i].cfa) / 8),
			.what = STEP_CALLED};
}

/* Whether unwind rows say the same of the first frames, where they count from rsp. */
bool contexts_trail_fits(struct contexts *c, const struct context_stack *s,
	const struct walk_frame *walked, size_t n)
{
	uint64_t sp = s->stack->r[STACK_REGISTER], offset;

	for (size_t i = 0; i < n; sp = walked[i++].cfa) {
		uint32_t image = s->place(s->arg, walked[i].pc - !walked[i].exact, &offset);
		const struct stretch *at = contexts_stretch(c, image, offset);

		if (walked[i].cfa && at && at->base == BASE_RSP &&
			walked[i].cfa != sp + (uint64_t)at->size)
			return false;
	}
	return true;
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
