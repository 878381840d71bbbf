#include "edit/wrap.h"

#include "edit/edit_internal.h"
#include "edit/endings.h"
#include "edit/pad.h"
#include "edit/pad_internal.h"
#include "edit/unwind_internal.h"

#include <stdlib.h>

enum { TAILS = 4, RETURN_DEPTH = 8, WRAP_MAX = 4096 };

/* ---- what a callee has to do with its caller's frame ---- */

static bool is_beyond(const struct isa_memory *m, int32_t depth)
{
	return depth < 0 || m->displacement - depth >= 0;
}

/* Whether an instruction may reach arguments on the stack, or take their address. */
static bool looks_up(const struct depths *d, uint32_t insn)
{
	const struct view *v = &d->views[insn];
	struct spot s = d->spots[insn];
	const struct isa_memory *m = &v->memory;
	const struct form *f = &v->form;

	if (s.depth == DEPTH_UNSEEN || !v->touches)
		return false;
	if (m->operands >> REG_RSP & 1 && !moves_by_constant(f) && !sets_anchor(f) &&
		!moves_to_anchor(f) && s.depth <= RETURN_DEPTH)
		return true; /* a copy of rsp from where arguments are next */
	if (!m->present || moves_by_constant(f) || moves_to_anchor(f))
		return false;
	if (m->base == REG_RSP)
		return is_beyond(m, s.depth);
	return m->base == REG_RBP && s.anchor && is_beyond(m, s.anchor);
}

static const struct edit_function *function_at(const struct edit *e, uint64_t start)
{
	size_t i = endings_number(e->list, e->nfunctions, start);

	return i < e->nfunctions ? e->list[i] : NULL;
}

static const char *judge_callee(
	const struct edit *e, const struct edit_function *f, unsigned tails);

/* Who is jumped to finds what its caller's caller passed. */
static const char *judge_end(
	const struct edit *e, const struct flow *flow, uint32_t insn, unsigned tails)
{
	const struct flow_insn *i = &flow->insns[insn];

	if (i->end == FLOW_TAIL_INDIRECT)
		return "its callee goes on to somebody that is not known";
	if (i->end != FLOW_TAIL)
		return NULL;
	return tails ? judge_callee(e, function_at(e, flow_target(i)), tails - 1)
		     : "its callee goes on to too many others";
}

static const char *judge_callee(const struct edit *e, const struct edit_function *f, unsigned tails)
{
	const char *why;
	struct depths d;

	if (!f || !f->flow)
		return "its callee is not known";
	why = depths_find(e, f->flow, &d);
	for (uint32_t i = 0; i < f->flow->ninsns && !why; i++) {
		if (d.spots[i].depth == DEPTH_UNSEEN)
			continue;
		if (looks_up(&d, i))
			why = "its callee may have arguments on the stack";
		else
			why = judge_end(e, f->flow, i, tails);
	}
	depths_deinit(&d);
	return why;
}

const char *wrap_refused(const struct edit *e, const struct edit_function *f, uint32_t insn)
{
	const struct flow_insn *i;
	const struct unwind_frame *frame;

	if (f->refused)
		return f->refused;
	i = &f->flow->insns[insn];
	frame = unwind_find_frame(e->unwind, i->address);
	if (i->kind != INSN_CALL)
		return "who is called is not known";
	if (!frame || frame->fde.lsda)
		return "exceptions may come back to the caller";
	return judge_callee(e, function_at(e, flow_target(i)), TAILS);
}

/* ---- wrapping ---- */

/* Changes are by instruction. */
static bool add_change(struct pad *p, uint32_t insn, uint32_t bytes)
{
	size_t at = 0;

	while (at < p->changes.n && p->changes.p[at].insn < insn)
		at++;
	if (at < p->changes.n && p->changes.p[at].insn == insn) {
		if (p->changes.p[at].kind != PAD_AROUND)
			return false;
		p->changes.p[at].by -= (int32_t)bytes;
		return true;
	}
	vec_add(&p->changes);
	for (size_t i = p->changes.n - 1; i > at; i--)
		p->changes.p[i] = p->changes.p[i - 1];
	p->changes.p[at] = (struct pad_change){insn, PAD_AROUND, -(int32_t)bytes};
	return true;
}

bool edit_wrap_call(struct edit *e, struct edit_function *public, uint32_t insn, uint32_t bytes,
	const char **why)
{
	struct function *f = (struct function *)public;
	bool done;

	f = f->original ? f->original : f;
	*why = wrap_refused(e, &f->public, insn);
	if (!*why && (!bytes || bytes % 16 || bytes > WRAP_MAX))
		*why = "the size is no multiple of 16 up to 4096";
	if (*why)
		return false;
	if (!f->pad)
		f->pad = pad_create_none(f->public.flow);
	done = add_change(f->pad, insn, bytes);
	if (done && f->twin && f->twin->pad)
		done = add_change(f->twin->pad, insn, bytes);
	if (!done)
		*why = "an instruction that would change in two ways";
	return done;
}
