#include "image/functions.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/mem.h"
#include "image/debug_file.h"
#include "image/eh_frame.h"
#include "image/elf_file.h"
#include "image/fragments.h"
#include "image/part.h"
#include "image/plt.h"
#include "image/procedures.h"
#include "image/symbols.h"

enum {
	ENTRY_SLACK = 16, /* an unnamed FDE may begin a little before its symbol, as __restore_rt */
	ALIGNMENT = 16,   /* of functions */
	PADDING_MAX = 4096, /* between functions; a larger gap is code */
	OWNERS_MAX = 8,     /* a fragment of a fragment of a ... */
};

struct joiner {
	const struct elf_file *f;
	struct procedures *out;
	struct symbols symbols;
	struct parts fdes, parts;
	VEC(struct range) plt;
	size_t next;      /* the first symbol that is not joined yet */
	bool open, label; /* the last part from a symbol: it has no end; it is a label */
	struct arena names;
};

/* ---- where code is ---- */

static int compare_ranges(const void *x, const void *y)
{
	const struct range *a = x, *b = y;
	return a->start < b->start ? -1 : a->start > b->start;
}

/* The executable sections within a segment, or all of it when there are none. */
static void add_segment_areas(const struct elf_file *f, const Elf64_Phdr *p, struct procedures *out)
{
	uint64_t size = p->p_filesz ? p->p_filesz : p->p_memsz;
	VEC(struct range) areas = {0};
	for (size_t i = 1; i < f->nsections; i++) {
		const Elf64_Shdr *s = &f->sections[i];
		if (!(s->sh_flags & SHF_EXECINSTR) || s->sh_addr - p->p_vaddr >= size)
			continue;
		uint64_t left = size - (s->sh_addr - p->p_vaddr);
		*vec_add(&areas) = (struct range){
			.start = s->sh_addr, .size = s->sh_size < left ? s->sh_size : left};
	}
	vec_sort(&areas, compare_ranges);
	vec_each (a, &areas)
		procedures_add_area(out, a->start, a->size);
	if (!areas.n)
		procedures_add_area(out, p->p_vaddr, size);
	vec_deinit(&areas);
}

static int compare_segments(const void *x, const void *y)
{
	const Elf64_Phdr *a = *(Elf64_Phdr *const *)x, *b = *(Elf64_Phdr *const *)y;
	return a->p_vaddr < b->p_vaddr ? -1 : a->p_vaddr > b->p_vaddr;
}

static void add_areas(const struct elf_file *f, struct procedures *out)
{
	VEC(const Elf64_Phdr *) segments = {0};
	for (size_t i = 0; i < f->nsegments; i++) {
		if (f->segments[i].p_type == PT_LOAD && f->segments[i].p_flags & PF_X)
			*vec_add(&segments) = &f->segments[i];
	}
	vec_sort(&segments, compare_segments);
	vec_each (s, &segments)
		add_segment_areas(f, *s, out);
	vec_deinit(&segments);
}

/* How far the code goes on from vaddr; 0 when it is not in an area. */
static uint64_t code_left(const struct procedures *out, uint64_t vaddr)
{
	size_t low = 0, high = out->areas.n;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct range *a = &out->areas.p[middle];
		if (vaddr < a->start)
			high = middle;
		else if (vaddr - a->start >= a->size)
			low = middle + 1;
		else
			return a->size - (vaddr - a->start);
	}
	return 0;
}

/* ---- joining extents and names ---- */

static void read_fdes(struct joiner *j)
{
	struct fdes fdes = {0};
	eh_frame_read(j->f, &fdes); /* what is sound of a damaged one counts */
	vec_reserve(&j->fdes.list, fdes.list.n);
	for (size_t i = 0; i < fdes.list.n; i++) {
		const struct fde *fde = &fdes.list.p[i];
		uint64_t left = code_left(j->out, fde->start);
		if (left)
			*vec_add(&j->fdes.list) = (struct part){
				.start = fde->start,
				.size = fde->size < left ? fde->size : left,
				.order = (uint32_t)i,
				.owner = PART_NONE,
				.source = PROCEDURE_EH_FRAME,
				.midframe = fde->midframe,
			};
	}
	vec_deinit(&fdes.list);
	parts_settle(&j->fdes);
}

static void add_part(struct joiner *j, const struct part *p)
{
	*vec_add(&j->parts.list) = *p;
}

static void set_name(struct part *p, const struct symbol *s)
{
	p->name = s->name;
	p->name_size = s->name_size;
	p->source = PROCEDURE_SYMBOL;
}

/*
 * Whether a symbol inside the part of another symbol begins a function: labels within a function do
 * not, nor do second entries, which end where the function ends.
 */
static bool starts_part(const struct joiner *j, const struct symbol *s, const struct part *last)
{
	if (j->open)
		return s->function || s->rank < 2 || j->label;
	return s->function && s->start + s->size > last->start + last->size;
}

/* A symbol that no FDE covers; it ends where it says, or where the next thing begins. */
static void join_bare(struct joiner *j, const struct symbol *s, uint64_t limit)
{
	uint64_t left = code_left(j->out, s->start);
	if (!left)
		return;
	left = limit - s->start < left ? limit - s->start : left;
	struct part *last = j->parts.list.n ? &j->parts.list.p[j->parts.list.n - 1] : NULL;
	if (last && s->start < last->start + last->size) {
		if (!starts_part(j, s, last))
			return;
		last->size = s->start - last->start;
	}
	j->open = !s->size;
	j->label = !s->function;
	struct part p = {
		.start = s->start,
		.size = s->size && s->size < left ? s->size : left,
		.order = PART_NONE,
		.owner = PART_NONE,
	};
	set_name(&p, s);
	add_part(j, &p);
}

/* Gives an FDE its name, and splits it where it covers several functions of their own. */
static void join_fde(struct joiner *j, const struct part *fde)
{
	struct part p = *fde;
	uint64_t end = fde->start + fde->size, named_end = 0;
	for (; j->next < j->symbols.list.n; j->next++) {
		const struct symbol *s = &j->symbols.list.p[j->next];
		if (s->start >= end)
			break;
		bool sized = s->function && s->size;
		if (s->start != p.start && !sized)
			continue;
		bool first = s->start == p.start || (!p.name && s->start - p.start < ENTRY_SLACK);
		if (!first && s->start < named_end)
			continue;
		if (!first) {
			p.size = s->start - p.start;
			add_part(j, &p);
			p = (struct part){.start = s->start,
				.size = end - s->start,
				.order = PART_NONE,
				.owner = PART_NONE};
		}
		set_name(&p, s);
		named_end = s->start + s->size;
	}
	add_part(j, &p);
}

static void join_symbols(struct joiner *j)
{
	struct symbols *symbols = &j->symbols;
	vec_each (fde, &j->fdes.list) {
		for (; j->next < symbols->list.n && symbols->list.p[j->next].start < fde->start;
			j->next++)
			join_bare(j, &symbols->list.p[j->next], fde->start);
		join_fde(j, fde);
	}
	for (; j->next < symbols->list.n; j->next++)
		join_bare(j, &symbols->list.p[j->next], UINT64_MAX);
}

/* Where linkage tables are, by start. */
static void find_plt(struct joiner *j)
{
	for (size_t i = 1; i < j->f->nsections; i++) {
		const Elf64_Shdr *s = &j->f->sections[i];
		if (s->sh_flags & SHF_EXECINSTR && plt_is_section(elf_file_section_name(j->f, s)))
			*vec_add(&j->plt) = (struct range){.start = s->sh_addr, .size = s->sh_size};
	}
	vec_sort(&j->plt, compare_ranges);
}

/* A linkage table has one FDE for all its stubs, if any: stubs take the place of what lies there.
 */
static void replace_plt(struct joiner *j)
{
	struct part *parts = j->parts.list.p;
	size_t n = 0, table = 0;
	find_plt(j);
	for (size_t i = 0; i < j->parts.list.n; i++) {
		uint64_t start = parts[i].start;
		while (table < j->plt.n && j->plt.p[table].start + j->plt.p[table].size <= start)
			table++;
		if (table == j->plt.n || start < j->plt.p[table].start)
			parts[n++] = parts[i];
	}
	j->parts.list.n = n;
	plt_read(j->f, &j->symbols, &j->names, &j->parts);
	parts = j->parts.list.p;
	for (size_t i = n; i < j->parts.list.n; i++) {
		if (code_left(j->out, parts[i].start) >= parts[i].size)
			parts[n++] = parts[i];
	}
	j->parts.list.n = n;
	parts_settle(&j->parts);
}

/* ---- the table ---- */

static bool is_padding_byte(uint8_t b)
{
	return memchr("\x00\x90\xcc\x66\x2e\x0f\x1f\x40\x44\x80\x84", b, 11) != NULL;
}

/* Zeros, int3 and the many forms of nop, by the bytes that they are made of. */
static bool is_padding(const struct elf_file *f, uint64_t start, uint64_t size)
{
	uint8_t code[PADDING_MAX];
	uint64_t offset, left;
	if (size < ALIGNMENT && (start + size) % ALIGNMENT == 0)
		return true;
	if (size > sizeof code || !elf_file_offset(f, start, &offset, &left) || left < size ||
		io_pread_full(f->fd, code, size, offset) < 0)
		return false;
	for (size_t i = 0; i < size; i++) {
		if (!is_padding_byte(code[i]))
			return false;
	}
	return true;
}

static uint32_t owner_of(const struct parts *ps, uint32_t part)
{
	for (int i = 0; i < OWNERS_MAX; i++) {
		uint32_t owner = ps->list.p[part].owner;
		if (owner == PART_NONE)
			return part;
		part = owner;
	}
	return PART_NONE;
}

static void add_gap(struct joiner *j, uint64_t start, uint64_t end)
{
	if (start < end && !is_padding(j->f, start, end - start))
		procedures_add(j->out, start, end - start, PROCEDURE_GAP, NULL, 0);
}

/* Rows and the gaps between them, area by area; rows[] gets the row of each part. */
static void add_rows(struct joiner *j, uint32_t *rows)
{
	const struct part *parts = j->parts.list.p;
	size_t i = 0, n = j->parts.list.n;
	for (size_t a = 0; a < j->out->areas.n; a++) {
		uint64_t at = j->out->areas.p[a].start, end = at + j->out->areas.p[a].size;
		for (; i < n && parts[i].start < end; i++) {
			add_gap(j, at, parts[i].start);
			rows[i] = (uint32_t)j->out->rows.n;
			if (owner_of(&j->parts, (uint32_t)i) == i)
				procedures_add(j->out, parts[i].start, parts[i].size,
					parts[i].source, parts[i].name, parts[i].name_size);
			at = parts[i].start + parts[i].size;
		}
		add_gap(j, at, end);
	}
}

static void add_table(struct joiner *j)
{
	_cleanup_free_ uint32_t *rows = xcalloc(j->parts.list.n, sizeof *rows);
	for (uint32_t i = 0; i < j->parts.list.n; i++) { /* circles are functions of their own */
		if (owner_of(&j->parts, i) == PART_NONE)
			j->parts.list.p[i].owner = PART_NONE;
	}
	add_rows(j, rows);
	for (uint32_t i = 0; i < j->parts.list.n; i++) {
		uint32_t owner = owner_of(&j->parts, i);
		const struct part *p = &j->parts.list.p[i];
		if (owner != i)
			procedures_add_fragment(j->out, rows[owner], p->start, p->size);
	}
	procedures_finish(j->out);
}

static void read_symbols(struct joiner *j, const char *path, const struct image_id *id)
{
	symbols_read_file(&j->symbols, j->f);
	_cleanup_close_ int fd = debug_file_find(path, id, j->f);
	struct elf_file debug;
	if (fd < 0 || elf_file_open(&debug, fd, path, NULL) < 0)
		return;
	elf_file_read_sections(&debug);
	symbols_read_file(&j->symbols, &debug);
	elf_file_close(&debug);
}

void functions_read(const char *path, const struct image_id *id, const struct elf_file *f,
	struct procedures *out)
{
	struct joiner j = {.f = f, .out = out};
	add_areas(f, out);
	read_symbols(&j, path, id);
	struct cold_names *cold = cold_names_create(&j.symbols);
	symbols_choose(&j.symbols);
	read_fdes(&j);
	join_symbols(&j);
	vec_deinit(&j.fdes.list);
	replace_plt(&j);
	fragments_join_names(&j.parts, cold);
	fragments_join_jumps(&j.parts, f);
	add_table(&j);

	cold_names_destroy(cold);
	symbols_deinit(&j.symbols);
	vec_deinit(&j.parts.list);
	vec_deinit(&j.plt);
	arena_deinit(&j.names);
}
