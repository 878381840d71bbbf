#include "image/eh_index.h"

#include <errno.h>

#include "image/eh_entry.h"
#include "image/eh_pointer.h"

enum { TABLE_ENTRY = 8 }; /* two numbers of 4 bytes */

/* ---- the linker's table ---- */

/* Behind the header's pointers; false when it has another form than all linkers give it. */
static bool read_count(struct cursor *c, uint64_t vaddr, uint64_t *count)
{
	uint8_t version = cursor_u8(c), pointer = cursor_u8(c);
	uint8_t counted = cursor_u8(c), table = cursor_u8(c);

	eh_format_read(c, pointer);
	*count = eh_pointer_read(c, counted, vaddr + cursor_offset(c), vaddr);
	return !c->failed && version == 1 && table == (PE_DATAREL | PE_SDATA4) &&
	       *count <= cursor_left(c) / TABLE_ENTRY;
}

/* Entries must be in order, and in the section. */
static bool read_places(struct cursor *c, uint64_t vaddr, uint64_t count,
	const struct eh_section *s, struct eh_index *out)
{
	uint64_t last = 0;

	vec_reserve(&out->list, count);
	for (uint64_t i = 0; i < count; i++) {
		uint64_t start = vaddr + (uint64_t)(int32_t)cursor_u32(c);
		uint64_t fde = vaddr + (uint64_t)(int32_t)cursor_u32(c) - s->vaddr;

		if (!i)
			out->low = last = start;
		if (start < last || start - out->low > UINT32_MAX || fde >= s->bytes.n)
			return false;
		last = start;
		*vec_add(&out->list) =
			(struct eh_place){(uint32_t)(start - out->low), (uint32_t)fde};
	}
	return count;
}

int eh_index_read(const struct elf_file *f, const struct eh_section *s, struct eh_index *out)
{
	struct eh_index index = {0};
	const Elf64_Phdr *header = NULL;
	struct bytes bytes;
	struct cursor c;
	uint64_t count;

	for (size_t i = 0; i < f->nsegments && !header; i++)
		if (f->segments[i].p_type == PT_GNU_EH_FRAME)
			header = &f->segments[i];
	if (!header || elf_file_read(f, header->p_offset, header->p_filesz, &bytes) < 0)
		return -ENOENT;
	c = cursor_over(bytes.p, bytes.n);
	bool usable = read_count(&c, header->p_vaddr, &count) &&
		      read_places(&c, header->p_vaddr, count, s, &index);
	bytes_deinit(&bytes);
	if (!usable) {
		eh_index_deinit(&index);
		return -ENOENT;
	}
	*out = index;
	return 0;
}

/* ---- without one ---- */

struct found {
	uint64_t start;
	uint32_t fde;
};

static int by_start(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

void eh_index_scan(struct eh_reader *r, struct eh_index *out)
{
	VEC(struct found) found = {0};
	struct eh_fde fde;

	while (eh_reader_next(r, &fde))
		*vec_add(&found) = (struct found){fde.start, (uint32_t)fde.offset};
	vec_sort(&found, by_start);
	*out = (struct eh_index){.low = found.n ? found.p[0].start : 0};
	vec_each (at, &found) {
		if (at->start - out->low > UINT32_MAX)
			break;
		*vec_add(&out->list) = (struct eh_place){(uint32_t)(at->start - out->low), at->fde};
	}
	vec_deinit(&found);
}

void eh_index_deinit(struct eh_index *x)
{
	vec_deinit(&x->list);
}

size_t eh_index_find(const struct eh_index *x, uint64_t vaddr)
{
	size_t low = 0, high = x->list.n;
	uint64_t at = vaddr - x->low;

	if (vaddr < x->low)
		return EH_INDEX_NONE;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (x->list.p[middle].at <= at)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? low - 1 : EH_INDEX_NONE;
}
