#include "edit/elf_out_internal.h"

#include <errno.h>
#include <string.h>

#include "base/cursor.h"
#include "base/err.h"

enum { TAG_RELRSZ = 35, TAG_RELR = 36 }; /* which this libc's elf.h may not know */

struct cursor out_table(
	const struct elf_out *o, int64_t where, int64_t how_long, uint64_t *offset)
{
	uint64_t vaddr = 0, size = 0, left;

	if (!out_dynamic(o, where, &vaddr) || !out_dynamic(o, how_long, &size) ||
		!elf_file_offset(&o->file, vaddr, offset, &left))
		return cursor_over(NULL, 0);
	return cursor_over(o->image.p + *offset, size < left ? size : left);
}

static void add_slot(struct elf_out *o, uint64_t at, uint64_t rela)
{
	*vec_add(&o->slots) = (struct out_slot){.at = at, .rela = rela};
}

static void read_rela(struct elf_out *o)
{
	uint64_t offset = 0;
	struct cursor c = out_table(o, DT_RELA, DT_RELASZ, &offset);

	while (cursor_left(&c) >= sizeof(Elf64_Rela)) {
		uint64_t here = offset + cursor_offset(&c);
		uint64_t at = cursor_u64(&c), info = cursor_u64(&c);
		cursor_skip(&c, 8);
		if (ELF64_R_TYPE(info) == R_X86_64_RELATIVE)
			add_slot(o, at, here);
	}
}

/*
 * Addresses, and after each bitmaps of which of the next 63 words are relocated, too. More words
 * than the file has bytes are none that a linker made.
 */
static void read_relr(struct elf_out *o)
{
	uint64_t offset, at = 0;
	struct cursor c = out_table(o, TAG_RELR, TAG_RELRSZ, &offset);

	while (cursor_left(&c) >= 8 && o->slots.n < o->image.n) {
		uint64_t entry = cursor_u64(&c);
		if (!(entry & 1)) {
			add_slot(o, entry, 0);
			at = entry + 8;
			continue;
		}
		for (int bit = 1; bit < 64; bit++)
			if (entry >> bit & 1)
				add_slot(o, at + 8 * (uint64_t)(bit - 1), 0);
		at += 63 * 8;
	}
}

static int by_place(const void *a, const void *b)
{
	const struct out_slot *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

static const struct out_slot *slot_at(struct elf_out *o, uint64_t at)
{
	struct out_slot key = {.at = at};

	if (!o->slots_read) {
		read_rela(o);
		read_relr(o);
		vec_sort(&o->slots, by_place);
		o->slots_read = true;
	}
	return o->slots.n ? bsearch(&key, o->slots.p, o->slots.n, sizeof key, by_place) : NULL;
}

int elf_out_pointer(struct elf_out *o, uint64_t slot, uint64_t target, struct err *e)
{
	const struct out_slot *s = slot_at(o, slot);

	if (!s && o->file.header.e_type != ET_EXEC)
		return err_set(e, -ENOENT, "%s: nothing relocates the word at 0x%lx", o->path,
			(unsigned long)slot);
	if (s && s->rela)
		memcpy(o->image.p + s->rela + offsetof(Elf64_Rela, r_addend), &target,
			sizeof target);
	return elf_out_patch(o, slot, &target, sizeof target, e);
}
