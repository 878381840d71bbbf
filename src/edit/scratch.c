#include <stdlib.h>

#include "base/mem.h"
#include "edit/edit_internal.h"
#include "edit/elf_out.h"
#include "edit/unwind.h"
#include "flow/lives.h"

/* All procedures of the image are looked at, for what some do to others matters. */
static void find_lives(struct edit *e)
{
	const struct procedure *all;
	size_t n = image_procedures(e->image, &all), next = 0;
	struct lives_procedure *list = xcalloc(n + 1, sizeof *list);

	for (size_t i = 0; i < n; i++) {
		list[i].procedure = &all[i];
		if (next == e->nfunctions || e->functions[next].public.procedure != &all[i])
			continue;
		e->functions[next].procedure = i;
		list[i].flow = e->functions[next++].public.flow;
	}
	lives_create(e->program, list, n, &e->lives);
	free(list);
}

const struct liveness *edit_liveness(struct edit *e, struct edit_function *f)
{
	const struct function *function = (const struct function *)f;

	if (!e->lives)
		find_lives(e);
	if (function->original)
		function = function->original;
	return lives_of(e->lives, function->procedure);
}

/*
 * While code that was added runs, frames can still be found: the registers that it takes stay, and
 * what an epilogue has popped, which unwind tables go on to speak of, is not overwritten.
 */
static struct snippet_place place(
	const struct edit *e, const struct liveness *l, uint64_t at, uint32_t live)
{
	unsigned red_zone = liveness_red_zone(l);

	return (struct snippet_place){.kept = unwind_registers(e->unwind, at),
		.live = live,
		.fixed = elf_out_is_fixed(e->out),
		.red_zone = (uint8_t)(red_zone > SCRATCH_POPPED ? red_zone : SCRATCH_POPPED)};
}

struct snippet_place scratch_before(struct edit *e, struct function *f, uint32_t insn)
{
	const struct liveness *l = edit_liveness(e, &f->public);

	return place(e, l, f->public.flow->insns[insn].address, liveness_before(l, insn));
}

struct snippet_place scratch_into(struct edit *e, struct function *f, uint32_t block)
{
	const struct liveness *l = edit_liveness(e, &f->public);

	return place(e, l, f->public.flow->blocks[block].start, liveness_in(l, block));
}
