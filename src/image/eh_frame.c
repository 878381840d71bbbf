#include "image/eh_frame.h"

#include <errno.h>
#include <string.h>

#include "base/cursor.h"
#include "base/mem.h"
#include "image/elf_file.h"

/* Pointer encodings (LSB, "DWARF Exception Header Encoding"): a format, a base, and indirection. */
enum {
	PE_ABSPTR = 0x00,
	PE_ULEB128 = 0x01,
	PE_UDATA2 = 0x02,
	PE_UDATA4 = 0x03,
	PE_UDATA8 = 0x04,
	PE_SLEB128 = 0x09,
	PE_SDATA2 = 0x0a,
	PE_SDATA4 = 0x0b,
	PE_SDATA8 = 0x0c,
	PE_FORMAT = 0x0f,
	PE_PCREL = 0x10,
	PE_DATAREL = 0x30,
	PE_BASE = 0x70,
	PE_INDIRECT = 0x80,
	PE_OMIT = 0xff,
};

enum { REG_RSP = 7, REG_RIP = 16 };

/* Any FDE may make its CIE be read again, so a CIE must not be as long as the section. */
enum { CIE_MAX = 256 };

/* The state in which a function is entered, as far as it tells halves from functions. */
struct entry_state {
	uint64_t cfa_register, cfa_offset;
	bool expression, saved;
};

/* What a common information entry (CIE) says about its FDEs. */
struct cie {
	uint64_t offset; /* of its length field */
	uint8_t pointers;
	uint8_t lsda;   /* encoding, PE_OMIT: FDEs have none */
	bool augmented; /* FDEs have augmentation data, too */
	bool signal;
	struct entry_state state; /* what its instructions set up */
};

struct parser {
	struct cursor section;
	uint64_t vaddr;
	struct cie cie; /* the last one; offset UINT64_MAX while there is none */
};

/* ---- pointers ---- */

static uint64_t read_format(struct cursor *c, uint8_t encoding)
{
	switch (encoding & PE_FORMAT) {
	case PE_ULEB128:
		return cursor_uleb(c);
	case PE_UDATA2:
		return cursor_u16(c);
	case PE_UDATA4:
		return cursor_u32(c);
	case PE_SLEB128:
		return (uint64_t)cursor_sleb(c);
	case PE_SDATA2:
		return (uint64_t)(int16_t)cursor_u16(c);
	case PE_SDATA4:
		return (uint64_t)(int32_t)cursor_u32(c);
	case PE_ABSPTR:
	case PE_UDATA8:
	case PE_SDATA8:
		return cursor_u64(c);
	}
	c->failed = true;
	return 0;
}

/* vaddr is that of the cursor's position, data the base of PE_DATAREL. */
static uint64_t read_pointer(struct cursor *c, uint8_t encoding, uint64_t vaddr, uint64_t data)
{
	uint64_t value = read_format(c, encoding);
	if (encoding & PE_INDIRECT)
		c->failed = true; /* its value is known at run time only */
	switch (encoding & PE_BASE) {
	case PE_ABSPTR:
		return value;
	case PE_PCREL:
		return value + vaddr;
	case PE_DATAREL:
		return value + data;
	}
	c->failed = true;
	return 0;
}

/* ---- call frame instructions ---- */

static void skip_block(struct cursor *c)
{
	cursor_skip(c, cursor_uleb(c));
}

static void save(struct entry_state *s, uint64_t reg)
{
	if (reg != REG_RIP)
		s->saved = true;
}

/* One of the instructions that have their operands behind them; false when it is none. */
static bool run_extended(struct cursor *c, uint8_t op, struct entry_state *s)
{
	switch (op) {
	case 0x00: /* nop */
	case 0x0a: /* remember_state */
	case 0x0b: /* restore_state */
		return true;
	case 0x05: /* offset_extended */
	case 0x11: /* offset_extended_sf */
	case 0x14: /* val_offset */
	case 0x15: /* val_offset_sf */
	case 0x2f: /* GNU_negative_offset_extended */
		save(s, cursor_uleb(c));
		cursor_uleb(c);
		return true;
	case 0x09: /* register */
		cursor_uleb(c);
		cursor_uleb(c);
		return true;
	case 0x06: /* restore_extended */
	case 0x07: /* undefined */
	case 0x08: /* same_value */
	case 0x2e: /* GNU_args_size */
		cursor_uleb(c);
		return true;
	case 0x0c: /* def_cfa */
		s->cfa_register = cursor_uleb(c);
		s->cfa_offset = cursor_uleb(c);
		s->expression = false;
		return true;
	case 0x0d: /* def_cfa_register */
		s->cfa_register = cursor_uleb(c);
		return true;
	case 0x0e: /* def_cfa_offset */
		s->cfa_offset = cursor_uleb(c);
		return true;
	case 0x0f: /* def_cfa_expression */
		s->expression = true;
		skip_block(c);
		return true;
	case 0x10: /* expression */
	case 0x16: /* val_expression */
		save(s, cursor_uleb(c));
		skip_block(c);
		return true;
	}
	return false; /* set_loc, or something of another machine */
}

/* An advance to the next row, which ends the first one; false when it is something else. */
static bool run_advance(struct cursor *c, uint8_t op)
{
	if (op >= 0x02 && op <= 0x04) /* advance_loc1, 2, 4 */
		cursor_skip(c, (size_t)1 << (op - 0x02));
	return op >> 6 == 1 || (op >= 0x02 && op <= 0x04);
}

/* Runs the first row, or all rows as if they were one. */
static void run(struct cursor c, bool all, struct entry_state *s)
{
	bool on = true;
	while (on && cursor_left(&c)) {
		uint8_t op = cursor_u8(&c);
		if (run_advance(&c, op)) {
			on = all;
		} else if (op >> 6 == 2) { /* offset */
			save(s, op & 0x3f);
			cursor_uleb(&c);
		} else if (op >> 6 == 0) {
			on = run_extended(&c, op, s);
		}
	}
}

/* The linker describes .plt by one FDE: entered with 8 bytes pushed, and an expression later. */
static bool is_linkage_table(const struct entry_state *entry, struct cursor instructions)
{
	struct entry_state s = {0};
	if (entry->expression || entry->saved || entry->cfa_offset != 16)
		return false;
	run(instructions, true, &s);
	return s.expression;
}

/*
 * A function is entered with the CFA at rsp + 8 and nothing saved. A half that is jumped into has
 * the frame of its function.
 */
static bool is_midframe(const struct cie *cie, struct cursor instructions)
{
	struct entry_state s = cie->state;
	run(instructions, false, &s);
	return !cie->signal && !is_linkage_table(&s, instructions) &&
	       (s.expression || s.cfa_register != REG_RSP || s.cfa_offset != 8 || s.saved);
}

/* ---- entries ---- */

/* The letters of the augmentation say what its data holds; an unknown one ends what is known. */
static void read_augmentation(const char *letters, struct cursor *data, struct cie *cie)
{
	for (const char *l = letters + 1; *l; l++) {
		if (*l == 'R') {
			cie->pointers = cursor_u8(data);
		} else if (*l == 'L') {
			cie->lsda = cursor_u8(data);
		} else if (*l == 'P') {
			uint8_t encoding = cursor_u8(data);
			if (encoding != PE_OMIT)
				read_format(data, encoding);
		} else if (*l == 'S') {
			cie->signal = true;
		} else {
			return;
		}
	}
}

static bool read_cie(struct cursor entry, uint64_t offset, struct cie *cie)
{
	struct cie fresh = {.offset = offset, .pointers = PE_ABSPTR, .lsda = PE_OMIT};
	if (cursor_left(&entry) > CIE_MAX)
		return false;
	uint8_t version = cursor_u8(&entry);
	const char *letters = cursor_str(&entry);
	if (version != 1 && version != 3)
		return false;
	if (!strcmp(letters, "eh"))
		cursor_u64(&entry);
	cursor_uleb(&entry); /* code alignment */
	cursor_sleb(&entry); /* data alignment */
	if (version == 1)
		cursor_u8(&entry); /* column of the return address */
	else
		cursor_uleb(&entry);
	if (*letters == 'z') {
		struct cursor data = cursor_slice(&entry, cursor_uleb(&entry));
		fresh.augmented = true;
		read_augmentation(letters, &data, &fresh);
		if (data.failed)
			return false;
	}
	if (entry.failed)
		return false;
	run(entry, false, &fresh.state);
	*cie = fresh;
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

static bool find_cie(struct parser *p, uint64_t offset)
{
	if (p->cie.offset == offset)
		return true;
	struct cursor at = p->section, body;
	cursor_seek(&at, offset);
	return next_entry(&at, &body) && cursor_u32(&body) == 0 && read_cie(body, offset, &p->cie);
}

/* The pointer in an FDE's augmentation; one that is 0 before its base is added is none. */
static uint64_t read_lsda(const struct parser *p, const struct cie *cie, struct cursor data)
{
	struct cursor again = data;
	uint64_t vaddr = p->vaddr + (uint64_t)(data.at - p->section.start);

	if (cie->lsda == PE_OMIT || !read_format(&again, cie->lsda))
		return 0;
	uint64_t lsda = read_pointer(&data, cie->lsda, vaddr, 0);
	return data.failed ? 0 : lsda;
}

/* back is the distance from the field that holds it to the CIE. */
static bool read_fde(
	struct parser *p, struct cursor body, uint64_t field, uint32_t back, struct fdes *out)
{
	if (back > field || !find_cie(p, field - back))
		return false;
	const struct cie *cie = &p->cie;
	uint64_t vaddr = p->vaddr + (uint64_t)(body.at - p->section.start);
	struct fde fde = {.start = read_pointer(&body, cie->pointers, vaddr, 0)};
	fde.size = read_format(&body, cie->pointers);
	if (cie->augmented) {
		struct cursor data = cursor_slice(&body, cursor_uleb(&body));
		fde.lsda = read_lsda(p, cie, data);
	}
	if (body.failed)
		return false;
	fde.midframe = is_midframe(cie, body);
	if (fde.size && fde.start + fde.size > fde.start)
		*vec_add(&out->list) = fde;
	return true;
}

/* An entry that makes no sense is left out; only a bad length hides the ones behind it. */
static int parse(const void *bytes, size_t n, uint64_t vaddr, bool terminated, struct fdes *out)
{
	struct parser p = {
		.section = cursor_over(bytes, n), .vaddr = vaddr, .cie.offset = UINT64_MAX};
	struct cursor at = p.section, body;
	bool damaged = false;

	while (next_entry(&at, &body)) {
		if (!cursor_left(&body) && terminated)
			return damaged ? -EBADMSG : 0;
		if (!cursor_left(&body))
			continue; /* a terminator; crt files may leave one between others */
		uint64_t field = (uint64_t)(body.at - p.section.start);
		uint32_t back = cursor_u32(&body);
		if (body.failed || (back && !read_fde(&p, body, field, back, out)))
			damaged = true;
	}
	return at.failed || damaged ? -EBADMSG : 0;
}

int eh_frame_parse(const void *bytes, size_t n, uint64_t vaddr, struct fdes *out)
{
	return parse(bytes, n, vaddr, false, out);
}

/* ---- landing pads ---- */

/*
 *   u8        encoding of LPStart, which follows unless omitted (then it is the function's start)
 *   u8        encoding of types; unless omitted the offset of their table follows (uleb)
 *   u8        encoding of call sites
 *   uleb      bytes of call sites: start, length, landing pad (0: none), action (uleb) each
 */
int eh_frame_pads(const void *lsda, size_t n, uint64_t vaddr, uint64_t function, struct pads *out)
{
	struct cursor c = cursor_over(lsda, n);
	uint64_t base = function;
	uint8_t encoding = cursor_u8(&c);

	if (encoding != PE_OMIT)
		base = read_pointer(&c, encoding, vaddr + cursor_offset(&c), 0);
	if (cursor_u8(&c) != PE_OMIT)
		cursor_uleb(&c);
	encoding = cursor_u8(&c);
	struct cursor sites = cursor_slice(&c, cursor_uleb(&c));
	if (c.failed)
		return -EBADMSG;
	while (cursor_left(&sites)) {
		read_format(&sites, encoding);
		read_format(&sites, encoding);
		uint64_t pad = read_format(&sites, encoding);
		cursor_uleb(&sites);
		if (sites.failed)
			return -EBADMSG;
		if (pad)
			*vec_add(&out->list) = base + pad;
	}
	return 0;
}

/* ---- in a file ---- */

/* The table's header points to the section, whose end is that of the segment, or a terminator. */
static int read_by_header(const struct elf_file *f, const Elf64_Phdr *header, struct fdes *out)
{
	_cleanup_(bytes_deinit) struct bytes h = {0}, section = {0};
	if (elf_file_read(f, header->p_offset, header->p_filesz < 64 ? header->p_filesz : 64, &h) <
		0)
		return -EBADMSG;
	struct cursor c = cursor_over(h.p, h.n);
	uint8_t version = cursor_u8(&c), encoding = cursor_u8(&c);
	cursor_skip(&c, 2);
	uint64_t vaddr = read_pointer(&c, encoding, header->p_vaddr + 4, header->p_vaddr);
	uint64_t offset, left;
	if (c.failed || version != 1 || !elf_file_offset(f, vaddr, &offset, &left))
		return -EBADMSG;
	if (offset > f->size)
		return -EBADMSG;
	left = left < f->size - offset ? left : f->size - offset;
	int r = elf_file_read(f, offset, left < ELF_SECTION_MAX ? left : ELF_SECTION_MAX, &section);
	if (r < 0)
		return r;
	return parse(section.p, section.n, vaddr, true, out);
}

int eh_frame_read(const struct elf_file *f, struct fdes *out)
{
	const Elf64_Shdr *s = elf_file_section(f, ".eh_frame");
	if (s && s->sh_type != SHT_NOBITS) {
		_cleanup_(bytes_deinit) struct bytes section = {0};
		int r = elf_file_read_section(f, s, &section);
		return r < 0 ? r : eh_frame_parse(section.p, section.n, s->sh_addr, out);
	}
	for (size_t i = 0; i < f->nsegments; i++) {
		if (f->segments[i].p_type == PT_GNU_EH_FRAME)
			return read_by_header(f, &f->segments[i], out);
	}
	return -ENOENT;
}
