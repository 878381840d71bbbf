#include "analyze/burst_stacks.h"

static struct burst_active *top_of(const struct burst_stacks *s)
{
	return s->active.n ? &s->active.p[s->active.n - 1] : NULL;
}

static bool is_of(const struct burst_stacks *s, uint32_t frame, const struct trace_site *site)
{
	const struct burst_frame *f = &s->frames.p[frame];

	return f->image == site->image && f->procedure == site->procedure;
}

/* Called by who is on top, if anybody is. */
static void push(struct burst_stacks *s, const struct trace_site *site)
{
	const struct burst_active *top = top_of(s);
	bool told = top && top->calls && (!top->target || top->target == site->procedure);

	*vec_add(&s->frames) = (struct burst_frame){.image = site->image,
		.procedure = site->procedure,
		.caller = top ? top->frame : BURST_NO_FRAME,
		.gap = top && !told};
	*vec_add(&s->active) = (struct burst_active){.frame = (uint32_t)s->frames.n - 1};
}

/*
 * Something happens in a procedure: it is on top, or somebody unwound to it, or it was entered
 * where nothing is recorded (by a call of who is on top, or once nobody is left that was seen).
 */
static void settle(struct burst_stacks *s, const struct trace_site *site)
{
	size_t n = s->active.n;

	while (n && !is_of(s, s->active.p[n - 1].frame, site))
		n--;
	if (n)
		s->active.n = n;
	else if (top_of(s) && !top_of(s)->calls)
		s->active.n = 0;
	if (!n)
		push(s, site);
}

static void take(struct burst_stacks *s, const struct trace_site *site, uint64_t address)
{
	struct burst_active *top;

	if (site->kind == TRACE_ENTER)
		push(s, site);
	else
		settle(s, site);
	top = top_of(s);
	*vec_add(&s->of) = top->frame;
	top->calls = site->kind == TRACE_CALL;
	top->target = address;
	s->calls |= top->calls || site->kind == TRACE_ENTER || site->kind == TRACE_LEAVE;
	if (site->kind == TRACE_LEAVE)
		s->active.n--;
}

void burst_stacks_read(
	struct burst_stacks *s, const struct trace_site *sites, const struct trace_burst *b)
{
	s->frames.n = s->of.n = s->active.n = 0;
	s->calls = false;
	for (size_t i = 0; i < b->n; i++)
		take(s, &sites[b->references[i].site], b->references[i].address);
	s->mark.n = 0;
	for (size_t i = 0; i < s->frames.n; i++)
		*vec_add(&s->mark) = false;
}

void burst_stacks_deinit(struct burst_stacks *s)
{
	vec_deinit(&s->frames);
	vec_deinit(&s->of);
	vec_deinit(&s->active);
	vec_deinit(&s->mark);
}

uint32_t burst_stacks_common(struct burst_stacks *s, uint32_t a, uint32_t b)
{
	uint32_t found = b;

	for (uint32_t f = a; f != BURST_NO_FRAME; f = s->frames.p[f].caller)
		s->mark.p[f] = true;
	while (found != BURST_NO_FRAME && !s->mark.p[found])
		found = s->frames.p[found].caller;
	for (uint32_t f = a; f != BURST_NO_FRAME; f = s->frames.p[f].caller)
		s->mark.p[f] = false;
	return found;
}
