#include "edit/elf_out_internal.h"

#include <stdio.h>
#include <string.h>

enum { SECTIONS_MAX = SHN_LORESERVE - 1 };

/* The tables as they will be. */
struct tables {
	struct elf_out *o;
	uint64_t at; /* file offset of out */
	struct buf *out;
	VEC(Elf64_Shdr) sections;
	size_t nold;
	struct buf names;
	size_t names_index;
};

static const uint8_t *section_bytes(const struct elf_out *o, const Elf64_Shdr *s)
{
	if (s->sh_type == SHT_NOBITS || s->sh_offset > o->image.n ||
		s->sh_size > o->image.n - s->sh_offset)
		return NULL;
	return o->image.p + s->sh_offset;
}

static uint32_t add_string(struct buf *strings, const char *s)
{
	uint32_t at = (uint32_t)strings->n;

	buf_str(strings, s);
	return at;
}

/* Appends bytes and says so in the section header. */
static void append(struct tables *t, Elf64_Shdr *s, const struct buf *bytes)
{
	static const uint8_t zeros[8];

	buf_put(t->out, zeros, -(t->at + t->out->n) & 7);
	s->sh_offset = t->at + t->out->n;
	s->sh_size = bytes->n;
	buf_put(t->out, bytes->p, bytes->n);
}

/* ---- sections ---- */

static void take_old(struct tables *t)
{
	const struct elf_file *f = &t->o->file;

	for (size_t i = 0; i < f->nsections; i++)
		*vec_add(&t->sections) = f->sections[i];
	buf_put(&t->names, f->names.p, f->names.n);
	t->names_index = f->header.e_shstrndx;
	if (!f->nsections)
		*vec_add(&t->sections) = (Elf64_Shdr){0};
	if (!t->names.n || t->names.p[t->names.n - 1])
		buf_u8(&t->names, 0);
	t->nold = t->sections.n;
}

static void rename_old(struct tables *t, const char *name)
{
	char fresh[256];

	for (size_t i = 1; i < t->o->file.nsections; i++) {
		if (strcmp(elf_file_section_name(&t->o->file, &t->o->file.sections[i]), name))
			continue;
		snprintf(fresh, sizeof fresh, "%s.old", name);
		t->sections.p[i].sh_name = add_string(&t->names, fresh);
	}
}

static void add_new(struct tables *t)
{
	vec_each (s, &t->o->sections) {
		rename_old(t, s->name);
		*vec_add(&t->sections) = (Elf64_Shdr){.sh_name = add_string(&t->names, s->name),
			.sh_type = s->type,
			.sh_flags = s->flags,
			.sh_addr = s->vaddr,
			.sh_offset = out_offset(t->o, s->vaddr),
			.sh_size = s->size,
			.sh_addralign = s->align};
	}
}

static size_t find_section(const struct tables *t, const char *name)
{
	for (size_t i = 1; i < t->o->file.nsections; i++)
		if (!strcmp(elf_file_section_name(&t->o->file, &t->o->file.sections[i]), name))
			return i;
	return 0;
}

static void replace_one(struct tables *t, const struct out_replaced *r)
{
	size_t i = find_section(t, r->name);
	Elf64_Shdr *s = i ? &t->sections.p[i] : NULL;

	if (s && s->sh_flags & SHF_ALLOC)
		return;
	if (!s) {
		s = vec_add(&t->sections);
		*s = (Elf64_Shdr){.sh_name = add_string(&t->names, r->name),
			.sh_type = SHT_PROGBITS,
			.sh_addralign = 1};
	}
	s->sh_flags &= ~(uint64_t)SHF_COMPRESSED;
	append(t, s, &r->bytes);
}

static void replace(struct tables *t)
{
	vec_each (r, &t->o->replaced) {
		if (r->retired)
			rename_old(t, r->name);
		else
			replace_one(t, r);
	}
}

/* ---- symbols ---- */

static uint16_t section_of(const struct tables *t, uint64_t vaddr)
{
	size_t i = 0;

	vec_each (s, &t->o->sections) {
		if (vaddr - s->vaddr < s->size)
			return (uint16_t)(t->nold + i);
		i++;
	}
	return SHN_ABS;
}

/* Global ones, for gdb looks for main among those, and prefers the one that lies higher. */
static void put_symbols(struct tables *t, struct buf *symbols, struct buf *strings)
{
	uint16_t in = SHN_ABS;
	uint64_t last = 0, end = 0;

	vec_each (s, &t->o->symbols) {
		if (s->vaddr < last || s->vaddr >= end) {
			in = section_of(t, s->vaddr);
			last = in == SHN_ABS ? 0 : t->o->sections.p[in - t->nold].vaddr;
			end = in == SHN_ABS ? 0 : last + t->o->sections.p[in - t->nold].size;
		}
		Elf64_Sym sym = {.st_name = add_string(strings, s->name),
			.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
			.st_shndx = in,
			.st_value = s->vaddr,
			.st_size = s->size};
		buf_put(symbols, &sym, sizeof sym);
	}
}

/* Dynamic symbols that speak of new code say which section that is. */
static void place_moved(const struct tables *t)
{
	vec_each (vaddr, &t->o->moved) {
		uint8_t *at = elf_out_patchable(t->o, *vaddr, sizeof(Elf64_Sym));
		Elf64_Sym symbol;
		memcpy(&symbol, at, sizeof symbol);
		uint16_t in = section_of(t, symbol.st_value);
		if (in != SHN_ABS) /* which would mean that it is not relocated */
			symbol.st_shndx = in;
		memcpy(at, &symbol, sizeof symbol);
	}
}

static size_t find_symtab(const struct tables *t)
{
	for (size_t i = 1; i < t->nold; i++)
		if (t->sections.p[i].sh_type == SHT_SYMTAB)
			return i;
	return 0;
}

static bool symtab_is_sound(const struct tables *t, const Elf64_Shdr *s)
{
	return s->sh_entsize == sizeof(Elf64_Sym) && s->sh_size % sizeof(Elf64_Sym) == 0 &&
	       s->sh_info <= s->sh_size / sizeof(Elf64_Sym) && section_bytes(t->o, s) &&
	       s->sh_link && s->sh_link < t->nold && !(s->sh_flags & SHF_ALLOC) &&
	       !(t->sections.p[s->sh_link].sh_flags & SHF_ALLOC) &&
	       section_bytes(t->o, &t->sections.p[s->sh_link]);
}

static void extend_symtab(struct tables *t, size_t index)
{
	Elf64_Shdr *s = &t->sections.p[index];
	if (!symtab_is_sound(t, s))
		return;
	Elf64_Shdr *names = &t->sections.p[s->sh_link];
	const uint8_t *old = section_bytes(t->o, s);
	bool shared = s->sh_link == t->names_index;
	struct buf symbols = {0}, strings = {0};

	if (!shared)
		buf_put(&strings, section_bytes(t->o, names), names->sh_size);
	buf_put(&symbols, old, s->sh_size);
	put_symbols(t, &symbols, shared ? &t->names : &strings);
	append(t, s, &symbols);
	if (!shared)
		append(t, names, &strings);
	buf_deinit(&symbols);
	buf_deinit(&strings);
}

static void make_symtab(struct tables *t)
{
	struct buf symbols = {0}, strings = {0};
	Elf64_Shdr *s;

	buf_put(&symbols, &(Elf64_Sym){0}, sizeof(Elf64_Sym));
	buf_u8(&strings, 0);
	put_symbols(t, &symbols, &strings);
	s = vec_add(&t->sections);
	*s = (Elf64_Shdr){.sh_name = add_string(&t->names, ".symtab"),
		.sh_type = SHT_SYMTAB,
		.sh_link = (uint32_t)t->sections.n,
		.sh_info = 1,
		.sh_addralign = 8,
		.sh_entsize = sizeof(Elf64_Sym)};
	append(t, s, &symbols);
	s = vec_add(&t->sections);
	*s = (Elf64_Shdr){.sh_name = add_string(&t->names, ".strtab"),
		.sh_type = SHT_STRTAB,
		.sh_addralign = 1};
	append(t, s, &strings);
	buf_deinit(&symbols);
	buf_deinit(&strings);
}

static void add_symbols(struct tables *t)
{
	size_t index = find_symtab(t);

	if (!t->o->symbols.n)
		return;
	if (index)
		extend_symtab(t, index);
	else
		make_symtab(t);
}

/* ---- all together ---- */

static void put_names(struct tables *t)
{
	if (!t->o->file.nsections) {
		t->names_index = t->sections.n;
		*vec_add(&t->sections) = (Elf64_Shdr){.sh_name = add_string(&t->names, ".shstrtab"),
			.sh_type = SHT_STRTAB,
			.sh_addralign = 1};
	}
	append(t, &t->sections.p[t->names_index], &t->names);
}

void out_sections(struct elf_out *o, Elf64_Ehdr *header, uint64_t at, struct buf *out)
{
	struct tables t = {.o = o, .at = at, .out = out};
	Elf64_Shdr all = {0};

	if (o->file.nsections + o->sections.n + o->replaced.n + 3 > SECTIONS_MAX)
		return;
	take_old(&t);
	add_new(&t);
	place_moved(&t);
	replace(&t);
	add_symbols(&t);
	put_names(&t);
	struct buf headers = {0};
	buf_put(&headers, t.sections.p, t.sections.n * sizeof *t.sections.p);
	append(&t, &all, &headers);
	header->e_shoff = all.sh_offset;
	header->e_shnum = (uint16_t)t.sections.n;
	header->e_shstrndx = (uint16_t)t.names_index;
	header->e_shentsize = sizeof(Elf64_Shdr);
	buf_deinit(&headers);
	buf_deinit(&t.names);
	vec_deinit(&t.sections);
}
