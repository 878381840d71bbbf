#include "image/eh_entry.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "image/eh_pointer.h"

/* Any FDE may make its CIE be read again, so a CIE must not be as long as the section. */
enum { CIE_MAX = 256 };

static uint64_t address(const struct eh_reader *r, const struct cursor *c)
{
	return r->vaddr + (uint64_t)(c->at - r->section.start);
}

static void read_personality(const struct eh_reader *r, struct cursor *data, struct eh_cie *cie)
{
	cie->personality = cursor_u8(data);
	if (cie->personality == PE_OMIT)
		return;
	cie->routine_at = address(r, data);
	cie->routine = eh_format_read(data, cie->personality);
}

/* The letters of the augmentation say what its data holds; an unknown one ends what is known. */
static void read_augmentation(
	const struct eh_reader *r, const char *letters, struct cursor *data, struct eh_cie *cie)
{
	for (const char *l = letters + 1; *l && !cie->foreign; l++) {
		if (*l == 'R')
			cie->pointers = cursor_u8(data);
		else if (*l == 'L')
			cie->lsda = cursor_u8(data);
		else if (*l == 'P')
			read_personality(r, data, cie);
		else if (*l == 'S')
			cie->signal = true;
		else
			cie->foreign = true;
	}
}

static bool read_cie(struct eh_reader *r, struct cursor entry, uint64_t offset)
{
	struct eh_cie cie = {.offset = offset, .lsda = PE_OMIT, .personality = PE_OMIT};
	if (cursor_left(&entry) > CIE_MAX)
		return false;
	uint8_t version = cursor_u8(&entry);
	const char *letters = cursor_str(&entry);
	if (version != 1 && version != 3)
		return false;
	if (!strcmp(letters, "eh"))
		cursor_u64(&entry);
	cie.code_align = cursor_uleb(&entry);
	cie.data_align = cursor_sleb(&entry);
	cie.return_column = version == 1 ? cursor_u8(&entry) : cursor_uleb(&entry);
	cie.augmented = *letters == 'z';
	cie.foreign = *letters && !cie.augmented;
	if (cie.augmented) {
		struct cursor data = cursor_slice(&entry, cursor_uleb(&entry));
		read_augmentation(r, letters, &data, &cie);
		entry.failed |= data.failed;
	}
	if (entry.failed)
		return false;
	cie.instructions = entry;
	r->cie = cie;
	return true;
}

/* The next entry: its body behind the length, false at the end. Length 0 is an empty body. */
static bool next_entry(struct cursor *section, struct cursor *body)
{
	if (cursor_left(section) < 4)
		return false;
	uint64_t length = cursor_u32(section);
	if (length == UINT32_MAX)
		length = cursor_u64(section);
	*body = cursor_slice(section, length);
	return !section->failed;
}

static bool find_cie(struct eh_reader *r, uint64_t offset)
{
	if (r->cie.offset == offset)
		return true;
	struct cursor at = r->section, body;
	cursor_seek(&at, offset);
	return next_entry(&at, &body) && cursor_u32(&body) == 0 && read_cie(r, body, offset);
}

/* The pointer in an FDE's augmentation; one that is 0 before its base is added is none. */
static uint64_t read_lsda(const struct eh_reader *r, struct cursor data)
{
	struct cursor again = data;

	if (r->cie.lsda == PE_OMIT || !eh_format_read(&again, r->cie.lsda))
		return 0;
	uint64_t vaddr = address(r, &data);
	uint64_t lsda = eh_pointer_read(&data, r->cie.lsda, vaddr, 0);
	return data.failed ? 0 : lsda;
}

/* back is the distance from the field that holds it to the CIE. */
static bool read_fde(
	struct eh_reader *r, struct cursor body, uint64_t field, uint32_t back, struct eh_fde *out)
{
	if (back > field || !find_cie(r, field - back))
		return false;
	uint64_t vaddr = address(r, &body);
	struct eh_fde fde = {.start = eh_pointer_read(&body, r->cie.pointers, vaddr, 0)};
	fde.size = eh_format_read(&body, r->cie.pointers);
	if (r->cie.augmented)
		fde.lsda = read_lsda(r, cursor_slice(&body, cursor_uleb(&body)));
	if (body.failed)
		return false;
	fde.instructions = body;
	*out = fde;
	return true;
}

void eh_reader_init(struct eh_reader *r, const void *p, size_t n, uint64_t vaddr, bool terminated)
{
	struct cursor section = cursor_over(p, n);

	*r = (struct eh_reader){.section = section,
		.at = section,
		.vaddr = vaddr,
		.terminated = terminated,
		.cie.offset = UINT64_MAX};
}

/* An FDE that describes some code. A CIE is read when an FDE asks for it. */
static bool read_entry(struct eh_reader *r, struct cursor body, struct eh_fde *out)
{
	uint64_t field = (uint64_t)(body.at - r->section.start);
	uint32_t back = cursor_u32(&body);

	if (!body.failed && !back)
		return false;
	if (body.failed || !read_fde(r, body, field, back, out)) {
		r->damaged = true;
		return false;
	}
	return out->size && out->start + out->size > out->start;
}

bool eh_reader_next(struct eh_reader *r, struct eh_fde *out)
{
	struct cursor body;
	uint64_t offset = cursor_offset(&r->at);

	for (; next_entry(&r->at, &body); offset = cursor_offset(&r->at)) {
		if (!cursor_left(&body) && r->terminated)
			return false;
		if (!cursor_left(&body) || !read_entry(r, body, out))
			continue;
		out->offset = offset;
		return true;
	}
	r->damaged |= r->at.failed;
	return false;
}

bool eh_reader_at(struct eh_reader *r, uint64_t offset, struct eh_fde *out)
{
	struct cursor at = r->section, body;

	cursor_seek(&at, offset);
	if (!next_entry(&at, &body) || !cursor_left(&body) || !read_entry(r, body, out))
		return false;
	out->offset = offset;
	return true;
}

/* The table's header points to the section, whose end is that of the segment, or a terminator. */
static int read_by_header(
	const struct elf_file *f, const Elf64_Phdr *header, struct eh_section *out)
{
	_cleanup_(bytes_deinit) struct bytes h = {0};
	if (elf_file_read(f, header->p_offset, header->p_filesz < 64 ? header->p_filesz : 64, &h) <
		0)
		return -EBADMSG;
	struct cursor c = cursor_over(h.p, h.n);
	uint8_t version = cursor_u8(&c), encoding = cursor_u8(&c);
	cursor_skip(&c, 2);
	uint64_t vaddr = eh_pointer_read(&c, encoding, header->p_vaddr + 4, header->p_vaddr);
	uint64_t offset, left;
	if (c.failed || version != 1 || !elf_file_offset(f, vaddr, &offset, &left))
		return -EBADMSG;
	if (offset > f->size)
		return -EBADMSG;
	left = left < f->size - offset ? left : f->size - offset;
	struct eh_section section = {.vaddr = vaddr, .terminated = true};
	int r = elf_file_read(
		f, offset, left < ELF_SECTION_MAX ? left : ELF_SECTION_MAX, &section.bytes);
	if (r < 0)
		return r;
	*out = section;
	return 0;
}

int eh_section_read(const struct elf_file *f, struct eh_section *out)
{
	const Elf64_Shdr *s = elf_file_section(f, ".eh_frame");
	if (s && s->sh_type != SHT_NOBITS) {
		struct eh_section section = {.vaddr = s->sh_addr};
		int r = elf_file_read_section(f, s, &section.bytes);
		if (!r)
			*out = section;
		return r;
	}
	for (size_t i = 0; i < f->nsegments; i++) {
		if (f->segments[i].p_type == PT_GNU_EH_FRAME)
			return read_by_header(f, &f->segments[i], out);
	}
	return -ENOENT;
}
