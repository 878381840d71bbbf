#include <string.h>

#include "base/cursor.h"
#include "edit/elf_out_internal.h"

static void show_symbol(
	struct elf_out *o, uint8_t *at, uint64_t vaddr, elf_out_symbol_fn *show, void *arg)
{
	Elf64_Sym symbol, before;

	memcpy(&symbol, at, sizeof symbol);
	before = symbol;
	show(arg, &symbol);
	memcpy(at, &symbol, sizeof symbol);
	if (symbol.st_value != before.st_value)
		*vec_add(&o->moved) = vaddr;
}

bool elf_out_dynamic_symbols(struct elf_out *o, elf_out_symbol_fn *show, void *arg)
{
	bool known = false;

	for (size_t i = 0; i < o->file.nsections; i++) {
		const Elf64_Shdr *s = &o->file.sections[i];
		if (s->sh_type != SHT_DYNSYM)
			continue;
		known = true;
		for (uint64_t n = 0; n < s->sh_size / sizeof(Elf64_Sym); n++) {
			uint64_t vaddr = s->sh_addr + n * sizeof(Elf64_Sym);
			uint8_t *at = elf_out_patchable(o, vaddr, sizeof(Elf64_Sym));
			if (!at)
				return false;
			show_symbol(o, at, vaddr, show, arg);
		}
	}
	return known;
}

static void show_offset(struct elf_out *o, uint64_t info, elf_out_symbol_fn *show, void *arg)
{
	uint64_t table, vaddr;

	if (!ELF64_R_SYM(info) || !out_dynamic(o, DT_SYMTAB, &table))
		return;
	vaddr = table + ELF64_R_SYM(info) * sizeof(Elf64_Sym);
	uint8_t *at = elf_out_patchable(o, vaddr, sizeof(Elf64_Sym));
	if (at)
		show_symbol(o, at, vaddr, show, arg);
}

void elf_out_offset_symbols(struct elf_out *o, elf_out_symbol_fn *show, void *arg)
{
	uint64_t offset;
	struct cursor c = out_table(o, DT_RELA, DT_RELASZ, &offset);

	while (cursor_left(&c) >= sizeof(Elf64_Rela)) {
		cursor_skip(&c, 8);
		uint64_t info = cursor_u64(&c), addend = cursor_u64(&c);
		if (addend)
			show_offset(o, info, show, arg);
	}
}
