#include "edit/debug.h"

#include "edit/debug_internal.h"
#include "edit/edit_internal.h"
#include "edit/elf_out.h"

#include <dwarf.h>
#include <string.h>

static const char *const names[DEBUG_SECTIONS] = {
	[DEBUG_INFO] = ".debug_info",
	[DEBUG_ABBREV] = ".debug_abbrev",
	[DEBUG_LINE] = ".debug_line",
	[DEBUG_ARANGES] = ".debug_aranges",
	[DEBUG_RANGES] = ".debug_ranges",
	[DEBUG_RNGLISTS] = ".debug_rnglists",
	[DEBUG_LOC] = ".debug_loc",
	[DEBUG_LOCLISTS] = ".debug_loclists",
	[DEBUG_ADDR] = ".debug_addr",
};

/* ---- numbers ---- */

static void put(struct debug *d, enum debug_section s, uint64_t offset, uint64_t v, size_t n)
{
	struct buf *b = debug_buf(d, s);

	if (offset > b->n || n > b->n - offset || (n < 8 && v >> (8 * n)))
		d->strange = true;
	else
		memcpy(b->p + offset, &v, n);
}

void debug_put_u32(struct debug *d, enum debug_section s, uint64_t offset, uint64_t v)
{
	put(d, s, offset, v, 4);
}

void debug_put_u64(struct debug *d, enum debug_section s, uint64_t offset, uint64_t v)
{
	put(d, s, offset, v, 8);
}

struct debug_list *debug_known(
	struct debug *d, enum debug_section s, uint64_t old_offset, bool *fresh)
{
	uint64_t key = (uint64_t)s << 56 | (old_offset & UINT64_MAX >> 8);

	return hmap_put(&d->known, &key, fresh);
}

/* ---- sections ---- */

static void take_section(struct debug *d, Elf_Scn *section, const char *name)
{
	GElf_Shdr header;
	Elf_Data *data;

	for (size_t i = 0; i < DEBUG_SECTIONS; i++) {
		if (strcmp(names[i], name))
			continue;
		if (gelf_getshdr(section, &header) && header.sh_flags & SHF_COMPRESSED)
			elf_compress(section, 0, 0);
		data = elf_getdata(section, NULL);
		if (!data || !data->d_size)
			return;
		d->sections[i].old = cursor_over(data->d_buf, data->d_size);
		buf_put(&d->sections[i].bytes, data->d_buf, data->d_size);
		d->there[i] = true;
	}
}

static void take_sections(struct debug *d, Elf *elf)
{
	Elf_Scn *section = NULL;
	size_t strings;

	if (elf_getshdrstrndx(elf, &strings))
		return;
	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr header;
		const char *name;

		if (!gelf_getshdr(section, &header) || header.sh_type == SHT_NOBITS)
			continue;
		name = elf_strptr(elf, strings, header.sh_name);
		if (name)
			take_section(d, section, name);
	}
}

/* ---- which unit an address is in ---- */

static void put_aranges(struct debug *d, const struct debug_unit *u)
{
	struct buf *b = debug_buf(d, DEBUG_ARANGES);
	size_t at = b->n;

	if (!u->ranges.n)
		return;
	buf_u32(b, 0);
	buf_u8(b, 2);
	buf_u8(b, 0);
	buf_u32(b, (uint32_t)u->offset);
	buf_u8(b, 8);
	buf_u8(b, 0);
	buf_u32(b, 0); /* pairs are aligned by their own size, from the start of the set */
	vec_each (r, &u->ranges) {
		buf_u64(b, r->start);
		buf_u64(b, r->size);
	}
	buf_u64(b, 0);
	buf_u64(b, 0);
	debug_put_u32(d, DEBUG_ARANGES, at, b->n - at - 4);
}

/* ---- units ---- */

static void write_units(struct debug *d)
{
	Dwarf_Off at = 0, next, abbrev;
	uint8_t address_size, offset_size;
	Dwarf_Half version;
	size_t header;

	debug_buf(d, DEBUG_ARANGES)->n = 0;
	debug_lists_begin(d);
	while (!d->strange && !dwarf_next_unit(d->dwarf, at, &next, &header, &version, &abbrev,
				      &address_size, &offset_size, NULL, NULL)) {
		struct debug_unit u = {.offset = at, .version = version, .abbrev = abbrev};

		if (address_size != 8 || offset_size != 4 || version < 2 || version > 5 ||
			!dwarf_offdie(d->dwarf, at + header, &u.die)) {
			d->strange = true;
			return;
		}
		debug_unit_write(d, &u);
		put_aranges(d, &u);
		vec_deinit(&u.ranges);
		at = next;
	}
	debug_lists_finish(d);
}

static void replace_sections(struct debug *d, struct elf_out *out)
{
	for (size_t i = 0; i < DEBUG_SECTIONS; i++)
		if (d->there[i] || debug_buf(d, i)->n)
			elf_out_replace(out, names[i], debug_buf(d, i));
	elf_out_replace(out, ".gdb_index", NULL); /* it has addresses, too */
}

static void rewrite(struct debug *d, struct elf_out *out)
{
	hmap_init(&d->known, sizeof(struct debug_list), sizeof(uint64_t));
	write_units(d);
	if (!d->strange)
		replace_sections(d, out);
	hmap_deinit(&d->known);
}

static bool open_debug(struct debug *d, Elf *elf)
{
	take_sections(d, elf);
	if (d->there[DEBUG_INFO] && d->there[DEBUG_ABBREV] && d->there[DEBUG_LINE])
		d->dwarf = dwarf_begin_elf(elf, DWARF_C_READ, NULL);
	return d->dwarf;
}

#define SPLIT "is split (-gsplit-dwarf)"

const char *debug_write(struct edit *e, const struct edit_fragment *fragments, size_t n)
{
	const struct buf *image = elf_out_image(e->out);
	struct debug_map map;
	struct debug d = {.map = &map};
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = elf_memory((char *)image->p, image->n);
	if (elf && open_debug(&d, elf)) {
		debug_map_init(&map, e, fragments, n);
		rewrite(&d, e->out);
		debug_map_deinit(&map);
		dwarf_end(d.dwarf);
	}
	for (size_t i = 0; i < DEBUG_SECTIONS; i++)
		buf_deinit(debug_buf(&d, i));
	elf_end(elf);
	return d.split ? SPLIT : d.strange ? "is not understood" : NULL;
}

const char *debug_judge(const struct edit *e)
{
	const struct buf *image = elf_out_image(e->out);
	Dwarf_CU *unit = NULL;
	Dwarf_Die die, split;
	bool found = false;
	uint8_t type;

	elf_version(EV_CURRENT);
	Elf *elf = elf_memory((char *)image->p, image->n);
	Dwarf *dwarf = elf ? dwarf_begin_elf(elf, DWARF_C_READ, NULL) : NULL;
	while (!found && dwarf && !dwarf_get_units(dwarf, unit, &unit, NULL, &type, &die, &split))
		found = dwarf_hasattr(&die, DW_AT_dwo_name) ||
			dwarf_hasattr(&die, DW_AT_GNU_dwo_name);
	dwarf_end(dwarf);
	elf_end(elf);
	return found ? SPLIT : NULL;
}
