#include "image/data_symbols.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "image/elf_file.h"

static void read_table(struct data_symbols *s, const struct elf_file *f, const Elf64_Shdr *table)
{
	struct bytes symbols = {0}, strings = {0};

	if (table->sh_link >= f->nsections || elf_file_read_section(f, table, &symbols) ||
		elf_file_read_section(f, &f->sections[table->sh_link], &strings)) {
		bytes_deinit(&symbols);
		return;
	}
	for (size_t at = 0; at + sizeof(Elf64_Sym) <= symbols.n; at += sizeof(Elf64_Sym)) {
		Elf64_Sym x;

		memcpy(&x, symbols.p + at, sizeof x);
		if (ELF64_ST_TYPE(x.st_info) != STT_OBJECT || !x.st_size || !x.st_value ||
			x.st_name >= strings.n ||
			!memchr(strings.p + x.st_name, 0, strings.n - x.st_name))
			continue;
		*vec_add(&s->list) = (struct data_symbol){x.st_value, x.st_size,
			strtab_add(&s->names, (const char *)strings.p + x.st_name)};
	}
	bytes_deinit(&symbols);
	bytes_deinit(&strings);
}

static int by_start(const void *a, const void *b)
{
	const struct data_symbol *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->size < y->size ? -1 : x->size > y->size;
}

void data_symbols_read(struct data_symbols *s, const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	const Elf64_Shdr *table;
	struct elf_file f;

	*s = (struct data_symbols){0};
	if (fd < 0 || elf_file_open(&f, fd, path, NULL))
		return;
	elf_file_read_sections(&f);
	table = elf_file_section(&f, ".symtab");
	if (!table)
		table = elf_file_section(&f, ".dynsym");
	if (table)
		read_table(s, &f, table);
	elf_file_close(&f);
	vec_sort(&s->list, by_start);
}

void data_symbols_deinit(struct data_symbols *s)
{
	vec_deinit(&s->list);
	strtab_deinit(&s->names);
}

const struct data_symbol *data_symbols_at(const struct data_symbols *s, uint64_t vaddr)
{
	size_t from = 0, to = s->list.n;

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (s->list.p[middle].start <= vaddr)
			from = middle + 1;
		else
			to = middle;
	}
	return from && vaddr - s->list.p[from - 1].start < s->list.p[from - 1].size
		       ? &s->list.p[from - 1]
		       : NULL;
}
