#include <stdlib.h>

#include "base/mem.h"
#include "edit/edit_internal.h"
#include "flow/callgraph.h"
#include "flow/program.h"

static bool is_settled(const struct flow *f)
{
	for (uint32_t i = 0; i < f->njumps; i++)
		if (f->jumps[i].state == FLOW_JUMP_UNRESOLVED ||
			f->jumps[i].state == FLOW_JUMP_UNPROVED)
			return false;
	return true;
}

/* Behind a call that never comes back stands code of another path. */
static void find_noreturn(struct edit *e)
{
	const struct procedure *all;
	size_t n = image_procedures(e->image, &all);
	_cleanup_free_ struct flow **flows = xcalloc(n, sizeof *flows);
	struct callgraph *c;

	for (size_t i = 0, next = 0; i < n && next < e->nfunctions; i++)
		if (e->functions[next].public.procedure == &all[i])
			flows[i] = e->functions[next++].public.flow;
	callgraph_create(e->program, flows, &c);
	callgraph_destroy(c);
}

static int by_address(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void find_data(struct edit *e)
{
	VEC(uint64_t) list = {0};
	size_t n = 0;

	for (size_t i = 0; i < e->nfunctions; i++) {
		const struct flow *f = e->functions[i].public.flow;
		for (uint32_t k = 0; f && k < f->ninsns; k++)
			if (f->insns[k].flags & FLOW_INSN_MEMORY)
				*vec_add(&list) = flow_target(&f->insns[k]);
	}
	vec_sort(&list, by_address);
	for (size_t i = 0; i < list.n; i++)
		if (!n || list.p[n - 1] != list.p[i])
			list.p[n++] = list.p[i];
	program_note_data(e->program, list.p, n);
	vec_deinit(&list);
}

void settle_flows(struct edit *e)
{
	VEC(struct function *) unsettled = {0};

	for (size_t i = 0; i < e->nfunctions; i++)
		if (e->functions[i].public.flow && !is_settled(e->functions[i].public.flow))
			*vec_add(&unsettled) = &e->functions[i];
	if (unsettled.n) {
		find_noreturn(e);
		find_data(e);
	}
	vec_each (f, &unsettled)
		edit_make_flow(e, *f);
	vec_deinit(&unsettled);
}
