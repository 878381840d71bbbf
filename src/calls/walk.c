#include "calls/walk.h"

#include "calls/expression.h"

#include <string.h>

/* What a call leaves as it was (System V ABI): rbx, rbp, r12 to r15; rsp follows from the CFA. */
#define CALLEE_SAVED (1u << FRAME_RBX | 1u << FRAME_RBP | 0xfu << 12)

/* Words above the stack pointer that may be a return address, in code without rows. */
#define SEARCHED 16

/* Frames in a row of code that was made at run time. */
#define MADE_FRAMES 64

struct walker {
	const struct walk_start *start;
	uint64_t base; /* of the copy */
	walk_find_fn *find;
	void *arg;
	uint64_t registers[FRAME_REGISTERS];
	uint32_t known;
	bool cut;             /* something behind the end of the copy was wanted */
	bool bare;            /* the last frame's code is in a file that describes other code */
	size_t last, differs; /* of the frames found before: the next one, one that is gone */
};

static bool read_word(void *arg, uint64_t at, uint64_t *value)
{
	struct walker *w = arg;
	uint64_t offset = at - w->base;

	if (offset > w->start->size || w->start->size - offset < sizeof *value) {
		w->cut |= at >= w->base + w->start->size;
		return false;
	}
	memcpy(value, w->start->stack + offset, sizeof *value);
	return true;
}

static bool evaluate(struct walker *w, const struct frames *f, int32_t place, uint16_t size,
	const uint64_t *first, uint64_t *out)
{
	struct expression_scene scene = {w->registers, w->known, read_word, w};

	return expression_evaluate(frames_expression(f, (uint32_t)place), size, &scene, first, out);
}

static bool find_cfa(
	struct walker *w, const struct frames *f, const struct frame_rule *r, uint64_t *cfa)
{
	if (r->base == FRAME_BY_EXPRESSION)
		return evaluate(w, f, r->offset, r->size, NULL, cfa);
	*cfa = w->registers[r->base] + (uint64_t)(int64_t)r->offset;
	return w->known >> r->base & 1;
}

static bool restore(struct walker *w, const struct frames *f, const struct frame_save *s,
	uint64_t cfa, uint64_t *out)
{
	uint64_t by = cfa + (uint64_t)(int64_t)s->value;

	switch ((enum frame_how)s->how) {
	case FRAME_SAVED:
		return read_word(w, by, out);
	case FRAME_IS:
		*out = by;
		return true;
	case FRAME_MOVED:
		*out = w->registers[s->value];
		return w->known >> s->value & 1;
	case FRAME_SAVED_EXPRESSION:
		return evaluate(w, f, s->value, s->size, &cfa, &by) && read_word(w, by, out);
	case FRAME_IS_EXPRESSION:
		return evaluate(w, f, s->value, s->size, &cfa, out);
	case FRAME_LOST:
		break;
	}
	return false;
}

/* To the caller. Values that cannot be found are lost; without a return address it is the end. */
static bool apply(
	struct walker *w, const struct frames *f, const struct frame_rule *r, uint64_t cfa)
{
	uint64_t next[FRAME_REGISTERS];
	uint32_t known = w->known & CALLEE_SAVED;

	memcpy(next, w->registers, sizeof next);
	next[FRAME_RSP] = cfa;
	known |= 1u << FRAME_RSP;
	for (unsigned i = 0; i < r->nsaves; i++) {
		const struct frame_save *s = &r->saves[i];

		known &= ~(1u << s->reg);
		if (restore(w, f, s, cfa, &next[s->reg]))
			known |= 1u << s->reg;
	}
	memcpy(w->registers, next, sizeof next);
	w->known = known;
	return known >> FRAME_RIP & 1;
}

/* Whether frame pointers lead to a caller that is described. */
static bool is_chain(struct walker *w, uint64_t rbp)
{
	uint64_t saved, back, bias;

	for (unsigned i = 0; i < MADE_FRAMES && rbp % 8 == 0; rbp = saved, i++) {
		if (!read_word(w, rbp, &saved) || !read_word(w, rbp + 8, &back) || saved <= rbp)
			break;
		if (w->find(w->arg, back - 1, &bias))
			return true;
	}
	w->cut = false; /* it need not be one, wherever it leads */
	return false;
}

/*
 * Code that nobody describes was often made at run time by who keeps frame pointers. Believed only
 * if these lead to code that is described. In a file, it is what compilers put before and behind
 * programs (crtstuff.c): it has a frame pointer, but who called it need not.
 */
static bool guess(struct walker *w, bool in_file, uint64_t *cfa)
{
	uint64_t rbp = w->registers[FRAME_RBP], saved, back, bias;

	if (!(w->known >> FRAME_RBP & 1) || rbp % 8 || rbp < w->registers[FRAME_RSP])
		return false;
	if (!read_word(w, rbp, &saved) || !read_word(w, rbp + 8, &back))
		return false;
	if (in_file ? !w->find(w->arg, back - 1, &bias) : !is_chain(w, rbp))
		return false;
	w->registers[FRAME_RBP] = saved;
	w->registers[FRAME_RIP] = back;
	w->registers[FRAME_RSP] = *cfa = rbp + 16;
	w->known = 1u << FRAME_RBP | 1u << FRAME_RIP | 1u << FRAME_RSP;
	return true;
}

/*
 * One frame further; WALK_ENDS: there is one. No call is in front of where a function begins: who
 * is to return there was not called, but made (by makecontext).
 */
static enum walk_end climb(struct walker *w, struct walk_frame *frame, bool *interrupted)
{
	uint64_t bias, at = frame->pc - !frame->exact, below = w->registers[FRAME_RSP];
	const struct frames *f = w->find(w->arg, at, &bias);
	const struct frame_rule *r = f ? frames_at(f, at - bias) : NULL;
	uint64_t cfa;

	*interrupted = r && r->signal;
	w->cut = false;
	if (!r && f && !frame->exact && frames_at(f, frame->pc - bias)) {
		frame->exact = true;
		return WALK_ROOT;
	}
	w->bare = f && !r;
	if (!r) {
		frame->guessed = guess(w, f, &frame->cfa);
		return frame->guessed ? WALK_ENDS : w->cut ? WALK_CUT : WALK_STRANGE;
	}
	if (!find_cfa(w, f, r, &cfa))
		return w->cut ? WALK_CUT : WALK_BROKEN;
	frame->cfa = cfa;
	frame->fixed = r->base == FRAME_RSP;
	if (r->root)
		return WALK_ROOT;
	/* Handlers may have a stack of their own; all other frames are above those they called. */
	if (cfa % 8 || (!r->signal && cfa <= below))
		return WALK_BROKEN;
	if (!apply(w, f, r, cfa))
		return w->cut ? WALK_CUT : WALK_BROKEN;
	return w->registers[FRAME_RIP] ? WALK_ENDS : WALK_ROOT;
}

/*
 * How many frames, up to the root, are those that were found before: all return addresses are where
 * they were, and so far from each other by the rows of their code alone.
 */
static size_t found_before(struct walker *w)
{
	const struct walk_frame *last = w->start->last;
	size_t n = w->start->nlast, i;
	uint64_t back;

	while (w->last < n && (!w->last || last[w->last - 1].cfa < w->registers[FRAME_RSP]))
		w->last++;
	if (w->last >= n || w->last < w->differs ||
		last[w->last - 1].cfa != w->registers[FRAME_RSP] ||
		last[w->last].pc != w->registers[FRAME_RIP] || last[w->last].exact)
		return 0;
	for (i = w->last; i + 1 < n; i++)
		if (!last[i].fixed || last[i + 1].exact ||
			!read_word(w, last[i].cfa - sizeof back, &back) || back != last[i + 1].pc)
			break;
	w->differs = i + 1;
	return i + 1 < n ? 0 : n - w->last;
}

/* From where the walker stands; `n` frames are there. */
static enum walk_end walk_on(
	struct walker *w, struct walk_frame *out, size_t space, size_t *n, bool interrupted)
{
	for (; *n < space; ++*n) {
		enum walk_end end;
		size_t before = interrupted ? 0 : found_before(w);

		if (before && before <= space - *n) {
			memcpy(out + *n, w->start->last + w->last, before * sizeof *out);
			*n += before;
			return WALK_ROOT;
		}
		out[*n] = (struct walk_frame){.pc = w->registers[FRAME_RIP], .exact = interrupted};
		end = climb(w, &out[*n], &interrupted);
		if (end != WALK_ENDS) {
			++*n;
			return end;
		}
	}
	return WALK_DEEP;
}

/*
 * Some code was written by hand, and nobody says how its frames are found. It calls nobody and
 * pushes a few words at most: the first word above that leads on to the root is where it returns.
 */
static enum walk_end search(struct walker *w, struct walk_frame *out, size_t space, size_t *n)
{
	const struct walker before = *w;

	for (unsigned i = 0; i < SEARCHED; i++) {
		uint64_t at = before.registers[FRAME_RSP] + 8 * i, back, bias;

		if (!read_word(w, at, &back))
			break;
		if (!w->find(w->arg, back - 1, &bias))
			continue;
		*w = before;
		w->registers[FRAME_RIP] = back;
		w->registers[FRAME_RSP] = at + 8;
		*n = 1;
		if (walk_on(w, out, space, n, false) == WALK_ROOT) {
			out[0].cfa = at + 8;
			out[0].guessed = true;
			return WALK_ROOT;
		}
	}
	*n = 1;
	out[0].cfa = 0;
	return WALK_STRANGE;
}

enum walk_end walk_stack(const struct walk_start *start, walk_find_fn *find, void *arg,
	struct walk_frame *out, size_t space, size_t *n)
{
	struct walker w = {.start = start,
		.base = start->registers[FRAME_RSP],
		.find = find,
		.arg = arg,
		.known = start->known};
	enum walk_end end;

	memcpy(w.registers, start->registers, sizeof w.registers);
	*n = 0;
	end = walk_on(&w, out, space, n, true);
	if (end != WALK_STRANGE || *n != 1 || !w.bare)
		return end;
	memcpy(w.registers, start->registers, sizeof w.registers);
	w.known = start->known;
	return search(&w, out, space, n);
}

bool walk_cfa(const struct frames *f, const struct frame_rule *r,
	const uint64_t registers[FRAME_REGISTERS], uint32_t known, uint64_t *cfa)
{
	static const struct walk_start nothing;
	struct walker w = {.start = &nothing, .known = known};

	memcpy(w.registers, registers, sizeof w.registers);
	return find_cfa(&w, f, r, cfa);
}

const char *walk_end_words(enum walk_end end)
{
	static const char *const words[] = {[WALK_ROOT] = "the root of the thread",
		[WALK_CUT] = "the end of the copied stack",
		[WALK_STRANGE] = "code without unwind rows",
		[WALK_BROKEN] = "rows that do not fit the stack",
		[WALK_DEEP] = "more frames than are kept",
		[WALK_ENDS] = ""};

	return words[end];
}
