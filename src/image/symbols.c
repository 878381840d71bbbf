#include "image/symbols.h"

#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "base/io.h"
#include "base/mem.h"

enum {
	SYMBOLS_STEP = 2048,       /* read at once */
	SYMBOLS_MAX = 4 << 20,     /* of one table */
	GNU_HASH_STEPS = 16 << 20, /* of the chains, in bytes */
	COMPARE_MAX = 256,         /* of two names: many may share a long one */
};

void symbols_deinit(struct symbols *s)
{
	vec_each (b, &s->strings)
		bytes_deinit(b);
	vec_deinit(&s->strings);
	vec_deinit(&s->list);
}

const char *symbol_name(const struct bytes *strings, uint64_t offset, uint16_t *size)
{
	*size = 0;
	if (offset >= strings->n)
		return "";
	const char *name = (const char *)strings->p + offset;
	size_t left = strings->n - offset;
	size_t n = strnlen(name, left < SYMBOL_NAME_MAX ? left : SYMBOL_NAME_MAX);
	const char *version = memchr(name, '@', n);
	*size = (uint16_t)(version ? (size_t)(version - name) : n);
	return name;
}

/* ---- reading ---- */

/* By the address: tools that remove sections leave the section numbers of .dynsym behind. */
static bool in_executable(const struct elf_file *f, uint64_t vaddr)
{
	for (size_t i = 0; i < f->nsegments; i++) {
		const Elf64_Phdr *p = &f->segments[i];
		if (p->p_type == PT_LOAD && p->p_flags & PF_X && vaddr - p->p_vaddr < p->p_memsz)
			return true;
	}
	return false;
}

/* Labels that compilers and assemblers make for themselves name nothing. */
static bool is_label_name(const char *name, size_t n)
{
	return *name != '$' && (n < 2 || strncmp(name, ".L", 2));
}

static void add_symbol(struct symbols *s, const struct elf_file *f, const Elf64_Sym *sym,
	const struct bytes *strings)
{
	int type = ELF64_ST_TYPE(sym->st_info), bind = ELF64_ST_BIND(sym->st_info);
	bool function = type == STT_FUNC || type == STT_GNU_IFUNC;
	if ((!function && type != STT_NOTYPE) || sym->st_shndx == SHN_UNDEF ||
		(sym->st_shndx >= SHN_LORESERVE && sym->st_shndx != SHN_XINDEX) ||
		sym->st_size > UINT64_MAX - sym->st_value || !in_executable(f, sym->st_value))
		return;
	uint16_t name_size;
	const char *name = symbol_name(strings, sym->st_name, &name_size);
	if (!name_size || (!function && !is_label_name(name, name_size)))
		return;
	*vec_add(&s->list) = (struct symbol){
		.start = sym->st_value,
		.size = sym->st_size,
		.name = name,
		.name_size = name_size,
		.rank = bind == STB_LOCAL  ? 2
			: bind == STB_WEAK ? 1
					   : 0,
		.function = function,
	};
}

/* Takes the strings over. */
static void read_table(struct symbols *s, const struct elf_file *f, uint64_t offset, uint64_t n,
	struct bytes *strings)
{
	_cleanup_free_ Elf64_Sym *step = xcalloc(SYMBOLS_STEP, sizeof *step);
	if (n > SYMBOLS_MAX)
		n = SYMBOLS_MAX;
	*vec_add(&s->strings) = *strings;
	for (uint64_t i = 0; i < n; i += SYMBOLS_STEP) {
		size_t some = n - i < SYMBOLS_STEP ? n - i : SYMBOLS_STEP;
		if (io_pread_full(f->fd, step, some * sizeof *step, offset + i * sizeof *step) < 0)
			return;
		for (size_t k = 0; k < some; k++)
			add_symbol(s, f, &step[k], strings);
	}
}

void symbols_read_section(struct symbols *s, const struct elf_file *f, const Elf64_Shdr *table)
{
	struct bytes strings;
	if (table->sh_type == SHT_NOBITS || table->sh_link >= f->nsections ||
		table->sh_offset > f->size || table->sh_size > f->size - table->sh_offset ||
		elf_file_read_section(f, &f->sections[table->sh_link], &strings) < 0)
		return;
	read_table(s, f, table->sh_offset, table->sh_size / sizeof(Elf64_Sym), &strings);
}

/* ---- without section headers ---- */

struct dynamic {
	uint64_t symbols, strings, strings_size, hash, gnu_hash;
};

static bool read_dynamic(const struct elf_file *f, struct dynamic *d)
{
	*d = (struct dynamic){0};
	for (size_t i = 0; i < f->nsegments; i++) {
		const Elf64_Phdr *p = &f->segments[i];
		_cleanup_(bytes_deinit) struct bytes b = {0};
		if (p->p_type != PT_DYNAMIC || p->p_filesz > 1 << 16 ||
			elf_file_read(f, p->p_offset, p->p_filesz, &b) < 0)
			continue;
		struct cursor c = cursor_over(b.p, b.n);
		while (cursor_left(&c) >= sizeof(Elf64_Dyn)) {
			uint64_t tag = cursor_u64(&c), value = cursor_u64(&c);
			switch (tag) {
			case DT_SYMTAB:
				d->symbols = value;
				break;
			case DT_STRTAB:
				d->strings = value;
				break;
			case DT_STRSZ:
				d->strings_size = value;
				break;
			case DT_HASH:
				d->hash = value;
				break;
			case DT_GNU_HASH:
				d->gnu_hash = value;
				break;
			}
		}
	}
	return d->symbols && d->strings;
}

static struct cursor read_at(
	const struct elf_file *f, uint64_t vaddr, uint64_t most, struct bytes *b)
{
	uint64_t offset, left;
	if (elf_file_offset(f, vaddr, &offset, &left))
		elf_file_read(f, offset, left < most ? left : most, b);
	return cursor_over(b->p, b->n);
}

/* The GNU hash table does not say how many symbols there are: the last chain ends with the last. */
static uint64_t count_gnu_hash(const struct elf_file *f, uint64_t vaddr)
{
	_cleanup_(bytes_deinit) struct bytes b = {0};
	struct cursor c = read_at(f, vaddr, GNU_HASH_STEPS, &b);
	uint32_t buckets = cursor_u32(&c), first = cursor_u32(&c), words = cursor_u32(&c), last = 0;
	cursor_skip(&c, 4 + (size_t)words * 8);
	for (uint32_t i = 0; i < buckets && !c.failed; i++) {
		uint32_t symbol = cursor_u32(&c);
		last = symbol > last ? symbol : last;
	}
	if (c.failed || last < first)
		return first;
	cursor_skip(&c, (size_t)(last - first) * 4);
	while (!c.failed && !(cursor_u32(&c) & 1))
		last++;
	return (uint64_t)last + 1;
}

static uint64_t count_dynamic(const struct elf_file *f, const struct dynamic *d)
{
	if (d->gnu_hash)
		return count_gnu_hash(f, d->gnu_hash);
	_cleanup_(bytes_deinit) struct bytes b = {0};
	struct cursor c = read_at(f, d->hash, 8, &b);
	cursor_u32(&c);
	return cursor_u32(&c); /* nchain */
}

static void read_dynamic_symbols(struct symbols *s, const struct elf_file *f)
{
	struct dynamic d;
	uint64_t offset, left, strings_offset, strings_left;
	if (!read_dynamic(f, &d) || !elf_file_offset(f, d.symbols, &offset, &left) ||
		!elf_file_offset(f, d.strings, &strings_offset, &strings_left))
		return;
	uint64_t n = count_dynamic(f, &d);
	struct bytes strings;
	if (elf_file_read(f, strings_offset,
		    d.strings_size < strings_left ? d.strings_size : strings_left, &strings) < 0)
		return;
	if (n > left / sizeof(Elf64_Sym))
		n = left / sizeof(Elf64_Sym);
	read_table(s, f, offset, n, &strings);
}

void symbols_read_file(struct symbols *s, const struct elf_file *f)
{
	static const uint32_t types[] = {SHT_SYMTAB, SHT_DYNSYM};
	for (size_t t = 0; t < 2; t++) {
		size_t i = 1;
		while (i < f->nsections && f->sections[i].sh_type != types[t])
			i++;
		if (i < f->nsections)
			symbols_read_section(s, f, &f->sections[i]);
	}
	if (!f->nsections)
		read_dynamic_symbols(s, f);
}

/* ---- choosing ---- */

static size_t underscores(const char *name, size_t n)
{
	size_t k = 0;
	while (k < n && k < COMPARE_MAX && name[k] == '_')
		k++;
	return k;
}

int symbol_name_compare(int rank_a, const char *a, size_t na, int rank_b, const char *b, size_t nb)
{
	if (rank_a != rank_b)
		return rank_a - rank_b;
	size_t under_a = underscores(a, na), under_b = underscores(b, nb);
	if (under_a != under_b)
		return under_a < under_b ? -1 : 1;
	if (na != nb)
		return na < nb ? -1 : 1;
	return memcmp(a, b, na < COMPARE_MAX ? na : COMPARE_MAX);
}

static int compare_symbols(const void *x, const void *y)
{
	const struct symbol *a = x, *b = y;
	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	if (a->function != b->function)
		return a->function ? -1 : 1;
	int c = symbol_name_compare(a->rank, a->name, a->name_size, b->rank, b->name, b->name_size);
	return c ? c : a->name < b->name ? -1 : a->name > b->name;
}

void symbols_choose(struct symbols *s)
{
	vec_sort(&s->list, compare_symbols);
	size_t n = 0;
	for (size_t i = 0; i < s->list.n; i++) {
		struct symbol *sym = &s->list.p[i], *last = n ? &s->list.p[n - 1] : NULL;
		if (last && last->start == sym->start)
			last->size = sym->size > last->size ? sym->size : last->size;
		else
			s->list.p[n++] = *sym;
	}
	s->list.n = n;
}
