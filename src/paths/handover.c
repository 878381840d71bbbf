#include "paths/handover.h"

#include "base/mem.h"
#include "edit/callers.h"
#include "edit/endings.h"
#include "edit/runtime.h"
#include "isa/decode.h"

#include <stdlib.h>

struct finding {
	struct handover *out;
	struct choosing *c;
	const bool *measured;
	VEC(struct follow) follows;
};

/* One gives only if the other does. */
struct follow {
	uint32_t one, other;
};

size_t handover_callee(const struct exact_scene *s, const struct flow_insn *i)
{
	if (i->flags & FLOW_INSN_MEMORY ||
		(i->kind != INSN_CALL && i->kind != INSN_JUMP && i->kind != INSN_BRANCH))
		return s->n;
	return endings_number(s->functions, s->n, flow_target(i));
}

bool handover_is_apart(const struct exact_function *f, uint32_t block)
{
	vec_each (l, &f->links)
		if (l->kind == EXACT_LINK_AWAY && l->from == block)
			return true;
	return false;
}

/* ---- entries ---- */

/* Whether a reading is left where the block goes to another procedure. */
static bool leaves_reading(const struct finding *f, uint32_t block)
{
	const struct exact_function *graph = &f->c->model.graph;

	if (f->c->function->flow->blocks[block].end == FLOW_CALLS &&
		!handover_is_apart(graph, block))
		return true;
	for (size_t i = 0; i < graph->links.n; i++) {
		const struct exact_link *l = &graph->links.p[i];

		if (l->from == block && f->c->places.p[i].how != EXACT_NOWHERE &&
			(l->kind == EXACT_LINK_TAIL || l->kind == EXACT_LINK_AWAY ||
				l->kind == EXACT_LINK_STOP))
			return true;
	}
	return false;
}

static void look_at_calls(struct finding *f, bool measured)
{
	const struct flow *flow = f->c->function->flow;
	const struct exact_scene *s = &f->c->scene;

	for (uint32_t k = 0; k < flow->nblocks; k++) {
		const struct flow_block *b = &flow->blocks[k];

		for (uint32_t i = b->first; i < b->first + b->count; i++) {
			size_t callee = handover_callee(s, &flow->insns[i]);
			bool last = i == b->first + b->count - 1;

			if (callee < s->n && !(measured && last && leaves_reading(f, k)))
				f->out->takes[callee] = false;
		}
	}
}

/* ---- exits ---- */

static bool link_gives(struct finding *f, uint32_t number, size_t link)
{
	const struct exact_link *l = &f->c->model.graph.links.p[link];
	const struct flow *flow = f->c->function->flow;
	size_t callee = f->c->scene.n;

	if (l->kind == EXACT_LINK_RETURN)
		return f->c->places.p[link].how != EXACT_NOWHERE;
	if (l->kind != EXACT_LINK_TAIL)
		return l->kind != EXACT_LINK_LEAVE;
	if (l->from < flow->nblocks) {
		const struct flow_block *b = &flow->blocks[l->from];

		callee = handover_callee(&f->c->scene, &flow->insns[b->first + b->count - 1]);
	}
	if (callee == f->c->scene.n)
		return false;
	*vec_add(&f->follows) = (struct follow){number, (uint32_t)callee};
	return true;
}

static void look_at_exits(struct finding *f, uint32_t number)
{
	bool *gives = &f->out->gives[number];

	*gives = true;
	for (size_t i = 0; i < f->c->model.graph.links.n && *gives; i++)
		if (f->c->model.graph.links.p[i].to == exact_outside(&f->c->model.graph))
			*gives = link_gives(f, number, i);
}

static void follow(struct finding *f)
{
	bool changed = true;

	while (changed) {
		changed = false;
		vec_each (x, &f->follows) {
			if (!f->out->gives[x->one] || f->out->gives[x->other])
				continue;
			f->out->gives[x->one] = false;
			changed = true;
		}
	}
}

void handover_find(struct handover *h, struct choosing *c, const bool *measured)
{
	struct finding f = {.out = h, .c = c, .measured = measured};
	_cleanup_free_ bool *outside = NULL;
	size_t n = c->scene.n;
	const char *why;

	h->takes = xcalloc(n + 1, sizeof *h->takes);
	h->gives = xcalloc(n + 1, sizeof *h->gives);
	if (!runtime_has_thread_words(c->scene.edit, &why))
		return;
	outside = callers_outside(c->scene.edit);
	for (size_t i = 0; i < n; i++)
		h->takes[i] = measured[i] && !outside[i];
	for (size_t i = 0; i < n; i++) {
		struct edit_function *function = c->scene.functions[i];

		if (!function->chosen || function->refused)
			continue;
		choose_model(c, function);
		look_at_calls(&f, measured[i]);
		if (measured[i])
			look_at_exits(&f, (uint32_t)i);
	}
	follow(&f);
	vec_deinit(&f.follows);
}

void handover_deinit(struct handover *h)
{
	free(h->takes);
	free(h->gives);
}
