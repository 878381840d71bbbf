#include "image/data.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "base/mem.h"
#include "base/vec.h"
#include "image/eh_frame.h"
#include "image/elf_file.h"
#include "image/image_internal.h"

enum { DYNAMIC_MAX = 4096 };
#define SEGMENT_MAX ((uint64_t)512 << 20)

struct area {
	uint64_t vaddr;
	struct bytes bytes;
};

struct image_data {
	bool fixed;
	VEC(struct area) areas;      /* by vaddr */
	VEC(uint64_t) unknown;       /* words that other images fill in, by vaddr */
	VEC(struct code_slot) slots; /* by target, then slot */
	struct pads pads;            /* by address */
};

/* What PT_DYNAMIC says about relocations. */
struct dynamic {
	uint64_t rela, rela_size, relr, relr_size, plt, plt_size;
};

/* ---- areas ---- */

/* Segments of 100 MB exist; what is read at once is bounded. */
static int add_area(struct image_data *d, const struct elf_file *f, uint64_t vaddr, uint64_t size)
{
	uint64_t offset, left;

	if (!size || size > SEGMENT_MAX || !elf_file_offset(f, vaddr, &offset, &left))
		return 0;
	if (size > left)
		size = left;
	for (uint64_t done = 0, n; done < size; done += n) {
		struct area area = {.vaddr = vaddr + done};
		n = size - done < ELF_SECTION_MAX ? size - done : ELF_SECTION_MAX;
		int r = elf_file_read(f, offset + done, n, &area.bytes);
		if (r < 0)
			return r;
		*vec_add(&d->areas) = area;
	}
	return 0;
}

static int by_vaddr(const void *a, const void *b)
{
	const struct area *x = a, *y = b;

	return x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
}

static int read_areas(struct image_data *d, const struct elf_file *f)
{
	for (size_t i = 0; i < f->nsegments; i++) {
		const Elf64_Phdr *p = &f->segments[i];
		bool constant = p->p_type == PT_LOAD && !(p->p_flags & PF_W);
		int r = 0;
		if (constant || p->p_type == PT_GNU_RELRO)
			r = add_area(d, f, p->p_vaddr, p->p_filesz);
		if (r < 0)
			return r;
	}
	vec_sort(&d->areas, by_vaddr);
	return 0;
}

static struct area *area_at(const struct image_data *d, uint64_t vaddr, size_t n)
{
	vec_each (a, &d->areas) {
		uint64_t into = vaddr - a->vaddr;
		if (vaddr >= a->vaddr && into < a->bytes.n && n <= a->bytes.n - into)
			return a;
	}
	return NULL;
}

/* ---- relocations ---- */

static void note(struct dynamic *dyn, uint64_t tag, uint64_t value)
{
	switch (tag) {
	case DT_RELA:
		dyn->rela = value;
		return;
	case DT_RELASZ:
		dyn->rela_size = value;
		return;
	case 36: /* DT_RELR, which this libc's elf.h may not know */
		dyn->relr = value;
		return;
	case 35: /* DT_RELRSZ */
		dyn->relr_size = value;
		return;
	case DT_JMPREL:
		dyn->plt = value;
		return;
	case DT_PLTRELSZ:
		dyn->plt_size = value;
		return;
	}
}

static void read_dynamic(const struct elf_file *f, struct dynamic *dyn)
{
	for (size_t i = 0; i < f->nsegments; i++) {
		const Elf64_Phdr *p = &f->segments[i];
		_cleanup_(bytes_deinit) struct bytes bytes = {0};
		if (p->p_type != PT_DYNAMIC || elf_file_read(f, p->p_offset, p->p_filesz, &bytes))
			continue;
		struct cursor c = cursor_over(bytes.p, bytes.n);
		for (int n = 0; n < DYNAMIC_MAX && cursor_left(&c) >= 16; n++) {
			uint64_t tag = cursor_u64(&c);
			note(dyn, tag, cursor_u64(&c));
		}
	}
}

static bool is_code(const struct elf_file *f, uint64_t vaddr)
{
	for (size_t i = 0; i < f->nsegments; i++) {
		const Elf64_Phdr *p = &f->segments[i];
		if (p->p_type == PT_LOAD && p->p_flags & PF_X && vaddr - p->p_vaddr < p->p_memsz)
			return true;
	}
	return false;
}

static void relocate(struct image_data *d, const struct elf_file *f, uint64_t at, uint64_t value)
{
	struct area *a = area_at(d, at, 8);

	if (a)
		memcpy(a->bytes.p + (at - a->vaddr), &value, 8);
	if (is_code(f, value))
		*vec_add(&d->slots) = (struct code_slot){value, at};
}

static void read_relocations(
	const struct elf_file *f, uint64_t vaddr, uint64_t size, struct bytes *out)
{
	uint64_t offset, left;

	if (size && elf_file_offset(f, vaddr, &offset, &left))
		elf_file_read(f, offset, size < left ? size : left, out);
}

static void apply_rela(
	struct image_data *d, const struct elf_file *f, uint64_t vaddr, uint64_t size)
{
	_cleanup_(bytes_deinit) struct bytes bytes = {0};

	read_relocations(f, vaddr, size, &bytes);
	struct cursor c = cursor_over(bytes.p, bytes.n);
	while (cursor_left(&c) >= sizeof(Elf64_Rela)) {
		uint64_t at = cursor_u64(&c), info = cursor_u64(&c), addend = cursor_u64(&c);
		if (ELF64_R_TYPE(info) == R_X86_64_RELATIVE)
			relocate(d, f, at, addend);
		else if (ELF64_R_TYPE(info) != R_X86_64_NONE)
			*vec_add(&d->unknown) = at;
	}
}

static void apply_word(struct image_data *d, const struct elf_file *f, uint64_t at)
{
	uint64_t offset, left, value;
	_cleanup_(bytes_deinit) struct bytes word = {0};
	const struct area *a = area_at(d, at, 8);

	if (a) {
		memcpy(&value, a->bytes.p + (at - a->vaddr), 8);
		relocate(d, f, at, value);
	} else if (elf_file_offset(f, at, &offset, &left) && left >= 8 &&
		   elf_file_read(f, offset, 8, &word) == 0) {
		memcpy(&value, word.p, 8);
		relocate(d, f, at, value);
	}
}

/* Addresses, and after each bitmaps of which of the next 63 words are relocated, too. */
static void apply_relr(
	struct image_data *d, const struct elf_file *f, uint64_t vaddr, uint64_t size)
{
	_cleanup_(bytes_deinit) struct bytes bytes = {0};
	uint64_t at = 0;

	read_relocations(f, vaddr, size, &bytes);
	struct cursor c = cursor_over(bytes.p, bytes.n);
	while (cursor_left(&c) >= 8) {
		uint64_t entry = cursor_u64(&c);
		if (!(entry & 1)) {
			apply_word(d, f, entry);
			at = entry + 8;
			continue;
		}
		for (int bit = 1; bit < 64; bit++)
			if (entry >> bit & 1)
				apply_word(d, f, at + 8 * (uint64_t)(bit - 1));
		at += 63 * 8;
	}
}

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static size_t sort_unique(uint64_t *list, size_t n)
{
	size_t kept = 0;

	if (n)
		qsort(list, n, sizeof *list, by_value);
	for (size_t i = 0; i < n; i++)
		if (!kept || list[i] != list[kept - 1])
			list[kept++] = list[i];
	return kept;
}

static void apply_relocations(struct image_data *d, const struct elf_file *f)
{
	struct dynamic dyn = {0};

	read_dynamic(f, &dyn);
	apply_rela(d, f, dyn.rela, dyn.rela_size);
	apply_relr(d, f, dyn.relr, dyn.relr_size);
	apply_rela(d, f, dyn.plt, dyn.plt_size);
	vec_sort(&d->unknown, by_value);
}

/* ---- pointers to code ---- */

static int by_target(const void *a, const void *b)
{
	const struct code_slot *x = a, *y = b;

	if (x->target != y->target)
		return x->target < y->target ? -1 : 1;
	return x->slot < y->slot ? -1 : x->slot > y->slot;
}

static void scan_words(struct image_data *d, const struct elf_file *f, const Elf64_Phdr *p)
{
	_cleanup_(bytes_deinit) struct bytes bytes = {0};
	uint64_t skip = -p->p_vaddr & 7;

	if (elf_file_read(f, p->p_offset, p->p_filesz, &bytes))
		return;
	for (uint64_t at = skip; at + 8 <= bytes.n; at += 8) {
		uint64_t value;
		memcpy(&value, bytes.p + at, 8);
		if (value >> 48 == 0 && is_code(f, value))
			*vec_add(&d->slots) = (struct code_slot){value, p->p_vaddr + at};
	}
}

/* Files at a fixed address have no relocations that would tell what a pointer is. */
static void find_slots(struct image_data *d, const struct elf_file *f)
{
	for (size_t i = 0; i < f->nsegments; i++) {
		const Elf64_Phdr *p = &f->segments[i];
		if (d->fixed && p->p_type == PT_LOAD && !(p->p_flags & PF_X))
			scan_words(d, f, p);
	}
	vec_sort(&d->slots, by_target);
}

/* ---- exceptions ---- */

/* Damaged entries add the pads before the damage. */
static void read_pads(struct image_data *d, struct elf_file *f)
{
	struct fdes fdes = {0};

	elf_file_read_sections(f);
	eh_frame_read(f, &fdes);
	vec_each (fde, &fdes.list) {
		const struct area *a = fde->lsda ? area_at(d, fde->lsda, 1) : NULL;
		if (!a)
			continue;
		uint64_t into = fde->lsda - a->vaddr;
		eh_frame_pads(
			a->bytes.p + into, a->bytes.n - into, fde->lsda, fde->start, &d->pads);
	}
	vec_deinit(&fdes.list);
	d->pads.list.n = sort_unique(d->pads.list.p, d->pads.list.n);
}

/* ---- life ---- */

void image_data_destroy(struct image_data *d)
{
	if (!d)
		return;
	vec_each (a, &d->areas)
		bytes_deinit(&a->bytes);
	vec_deinit(&d->areas);
	vec_deinit(&d->unknown);
	vec_deinit(&d->slots);
	vec_deinit(&d->pads.list);
	free(d);
}
DEFINE_CLEANUP(struct image_data, image_data_destroy)

int image_data_open(struct image *im, struct image_data **out)
{
	_cleanup_(image_data_destroyp) struct image_data *d = xcalloc(1, sizeof *d);
	_cleanup_close_ int again = im->fd < 0 ? image_reopen(im) : -1;
	int fd = im->fd < 0 ? again : im->fd;
	struct elf_file f;

	if (im->kind != IMAGE_ELF || fd < 0)
		return -ENOENT;
	int r = elf_file_open(&f, fd, im->path, NULL);
	if (r < 0)
		return r;
	d->fixed = f.header.e_type == ET_EXEC;
	r = read_areas(d, &f);
	if (!r) {
		apply_relocations(d, &f);
		find_slots(d, &f);
		read_pads(d, &f);
	}
	elf_file_close(&f);
	if (r < 0)
		return r;
	*out = d;
	d = NULL;
	return 0;
}

/* ---- questions ---- */

/* Whether a word that others fill in lies among the bytes. */
static bool is_unknown(const struct image_data *d, uint64_t vaddr, size_t n)
{
	size_t low = 0, high = d->unknown.n;

	while (low < high) {
		size_t middle = (low + high) / 2;
		if (d->unknown.p[middle] + 8 <= vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	return low < d->unknown.n && d->unknown.p[low] < vaddr + n;
}

int image_data_read(const struct image_data *d, uint64_t vaddr, void *out, size_t n)
{
	const struct area *a = area_at(d, vaddr, n);

	if (!a || is_unknown(d, vaddr, n))
		return -ENOENT;
	memcpy(out, a->bytes.p + (vaddr - a->vaddr), n);
	return 0;
}

size_t image_data_code_slots(const struct image_data *d, const struct code_slot **out)
{
	*out = d->slots.p;
	return d->slots.n;
}

bool image_data_has_code_slot(const struct image_data *d, uint64_t target)
{
	size_t low = 0, high = d->slots.n;

	while (low < high) {
		size_t middle = (low + high) / 2;
		if (d->slots.p[middle].target < target)
			low = middle + 1;
		else
			high = middle;
	}
	return low < d->slots.n && d->slots.p[low].target == target;
}

size_t image_data_landing_pads(const struct image_data *d, const uint64_t **out)
{
	*out = d->pads.list.p;
	return d->pads.list.n;
}

bool image_data_is_fixed(const struct image_data *d)
{
	return d->fixed;
}
