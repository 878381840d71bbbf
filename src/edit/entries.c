#include <elf.h>

#include "base/err.h"
#include "edit/edit_internal.h"
#include "edit/elf_out.h"
#include "flow/program.h"
#include "image/data.h"
#include "isa/decode.h"

/*
 * What the program sees as the address of a function: the new one, where everything that names it
 * is known, so that calls by pointer need no jump. Two pointers to one function stay equal: all of
 * them change, or none.
 */

enum { ALIGNED = 16 }; /* programs keep bits of their own in pointers */

static struct function *function_at(const struct edit *e, uint64_t address)
{
	const struct home *h = edit_home(e, address);
	struct function *f = h ? h->function : NULL;

	return f && f->public.procedure->start == address ? f : NULL;
}

static void keep(const struct edit *e, uint64_t address)
{
	struct function *f = function_at(e, address);

	if (f)
		f->kept = true;
}

/* ---- what is not understood ---- */

/* Code that stays is not known as well as that which moves: what it may name stays as it is. */
static void keep_named(const struct edit *e, const struct procedure *p)
{
	for (uint32_t r = 0; r < p->nranges; r++) {
		uint64_t at = p->ranges[r].start, end = at + p->ranges[r].size;
		const uint8_t *code = edit_code(e, at, p->ranges[r].size);
		struct insn insn;
		for (; code && at < end; at += insn.length, code += insn.length) {
			if (isa_decode(code, end - at, at, &insn) < 0)
				insn.length = 1;
			else if (insn.relative)
				keep(e, insn.memory);
		}
	}
}

static void keep_all_named(const struct edit *e)
{
	const struct procedure *all;
	size_t n = image_procedures(e->image, &all);

	for (size_t i = 0; i < n; i++) {
		const struct function *f = function_at(e, all[i].start);
		if (f ? f->public.refused != NULL : all[i].source == PROCEDURE_GAP)
			keep_named(e, &all[i]);
	}
}

static void keep_strange(void *arg, Elf64_Sym *symbol)
{
	unsigned type = ELF64_ST_TYPE(symbol->st_info);

	if (symbol->st_shndx != SHN_UNDEF &&
		(symbol->st_shndx >= SHN_LORESERVE || (type != STT_FUNC && type != STT_NOTYPE)))
		keep(arg, symbol->st_value);
}

static void keep_offset(void *arg, Elf64_Sym *symbol)
{
	keep(arg, symbol->st_value);
}

/* Pointers among the instructions were not copied as such. */
static void keep_in_code(const struct edit *e)
{
	const struct code_slot *slots;
	size_t n = image_data_code_slots(program_data(e->program), &slots);

	for (size_t i = 0; i < n; i++)
		if (edit_home(e, slots[i].slot))
			keep(e, slots[i].target);
}

static void keep_all(struct edit *e)
{
	for (size_t i = 0; i < e->nfunctions; i++)
		e->functions[i].kept = true;
}

/* ---- what can be new ---- */

static uint64_t new_entry(const struct function *f)
{
	return body_entered(f, flow_block_at(f->public.flow, f->public.flow->entry));
}

/* What lies before it and is not known may be data, and this its end. */
static bool follows_unknown(const struct edit *e, const struct function *f)
{
	const struct home *h = edit_home(e, f->public.procedure->start - 1);

	return h && !h->function;
}

void entries_choose(struct edit *e)
{
	const struct image_data *data = program_data(e->program);

	if (!data || image_data_is_fixed(data) ||
		!elf_out_dynamic_symbols(e->out, keep_strange, e)) {
		keep_all(e);
		return;
	}
	elf_out_offset_symbols(e->out, keep_offset, e);
	keep_all_named(e);
	keep_in_code(e);
	for (size_t i = 0; i < e->nfunctions; i++) {
		struct function *f = &e->functions[i];
		f->kept |= !f->body || follows_unknown(e, f) ||
			   (new_entry(f) - f->public.procedure->start) % ALIGNED;
	}
}

uint64_t entries_address(const struct edit *e, uint64_t old)
{
	const struct function *f = function_at(e, old);

	return f && !f->kept ? new_entry(f) : old;
}

/* ---- writing ---- */

static void move_symbol(void *arg, Elf64_Sym *symbol)
{
	const struct edit *e = arg;
	const struct function *f =
		symbol->st_shndx == SHN_UNDEF ? NULL : function_at(e, symbol->st_value);

	if (!f || f->kept)
		return;
	symbol->st_value = new_entry(f);
	symbol->st_size = f->body->pieces[0].size;
}

static int move_pointers(struct edit *e, struct err *err)
{
	const struct code_slot *slots;
	size_t n = image_data_code_slots(program_data(e->program), &slots);
	int r = 0;

	for (size_t i = 0; i < n && !r; i++) {
		uint64_t to = entries_address(e, slots[i].target);
		if (to != slots[i].target)
			r = elf_out_pointer(e->out, slots[i].slot, to, err);
	}
	return r;
}

/* Also old code says the new addresses, whether or not it was copied. */
static int move_named(struct edit *e, const struct flow *flow, struct err *err)
{
	int r = 0;

	for (uint32_t n = 0; flow && n < flow->ninsns && !r; n++) {
		const struct flow_insn *i = &flow->insns[n];
		if (!(i->flags & FLOW_INSN_MEMORY) || !edit_is_lea(e, i))
			continue;
		uint64_t to = entries_address(e, flow_target(i)), next = i->address + i->length;
		int32_t relative = (int32_t)(to - next);
		if (to != flow_target(i))
			r = elf_out_patch(e->out, next - flow_behind(i) - sizeof relative,
				&relative, sizeof relative, err);
	}
	return r;
}

int entries_write(struct edit *e, struct err *err)
{
	int r = program_data(e->program) ? move_pointers(e, err) : 0;

	for (size_t i = 0; i < e->nfunctions && !r; i++)
		r = move_named(e, e->functions[i].public.flow, err);
	elf_out_dynamic_symbols(e->out, move_symbol, e);
	return r;
}
