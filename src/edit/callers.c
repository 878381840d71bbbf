#include "edit/callers.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "edit/edit_internal.h"
#include "edit/elf_out.h"
#include "edit/endings.h"
#include "flow/program.h"
#include "image/data.h"
#include "image/elf_file.h"
#include "isa/decode.h"

static void note(const struct edit *e, uint64_t address, bool *marks)
{
	size_t number = endings_number(e->list, e->nfunctions, address);

	if (number < e->nfunctions)
		marks[number] = true;
}

struct exporting {
	const struct edit *edit;
	bool *outside;
};

static void note_exported(void *arg, Elf64_Sym *symbol)
{
	const struct exporting *x = arg;

	if (symbol->st_shndx != SHN_UNDEF)
		note(x->edit, symbol->st_value, x->outside);
}

static bool is_moved(const struct edit_function *f)
{
	return f->chosen && !f->refused;
}

/* Those that a function calls or jumps to directly. */
static void note_called(const struct edit *e, const struct edit_function *f, bool *marks)
{
	for (uint32_t n = 0; n < f->flow->ninsns; n++) {
		const struct flow_insn *i = &f->flow->insns[n];
		if (!(i->flags & FLOW_INSN_MEMORY) &&
			(i->kind == INSN_CALL || i->kind == INSN_JUMP || i->kind == INSN_BRANCH))
			note(e, flow_target(i), marks);
	}
}

bool *callers_outside(struct edit *e)
{
	bool *outside = xcalloc(e->nfunctions + 1, sizeof *outside);
	bool *inside = xcalloc(e->nfunctions + 1, sizeof *inside);
	const struct image_data *data = program_data(e->program);
	bool known = data && elf_out_dynamic_symbols(
				     e->out, note_exported, &(struct exporting){e, outside});

	for (size_t i = 0; i < e->nfunctions; i++) {
		if (e->list[i]->flow)
			note_called(e, e->list[i], is_moved(e->list[i]) ? inside : outside);
		else
			known = false;
	}
	for (size_t i = 0; i < e->nfunctions; i++)
		outside[i] |= !known || !inside[i] || e->functions[i].referred ||
			      image_data_has_code_slot(data, e->list[i]->procedure->start);
	free(inside);
	return outside;
}
