/* The units of .debug_info: addresses and offsets in them are patched where they stand. */
#include "edit/debug_internal.h"

#include "base/mem.h"

#include <dwarf.h>
#include <string.h>

#define DEPTH_MOST 512
#define FILLER     0x3ffe /* an attribute that nobody knows */

/* ---- numbers in place ---- */

static uint64_t read_bytes(const uint8_t *p, size_t n)
{
	uint64_t v = 0;

	memcpy(&v, p, n);
	return v;
}

static size_t width_of(unsigned form)
{
	switch (form) {
	case DW_FORM_data1:
	case DW_FORM_addrx1:
		return 1;
	case DW_FORM_data2:
	case DW_FORM_addrx2:
		return 2;
	case DW_FORM_addrx3:
		return 3;
	case DW_FORM_data4:
	case DW_FORM_sec_offset:
	case DW_FORM_addrx4:
		return 4;
	case DW_FORM_data8:
	case DW_FORM_addr:
		return 8;
	}
	return 0;
}

/* An attribute of an entry, by where its value is in the section. */
struct place {
	unsigned code, form; /* code 0: it has none */
	uint64_t offset;
	Dwarf_Attribute attribute;
};

/* What is said of code by one entry. */
struct entry {
	struct debug *d;
	struct debug_unit *u;
	Dwarf_Die *die;
	const struct debug_piece *in; /* the piece of the function around it */
	struct place low, high, ranges, lines, frame_base, views;
};

static void patch(struct debug *d, const struct place *p, uint64_t v)
{
	size_t n = width_of(p->form);
	struct buf *b = debug_buf(d, DEBUG_INFO);

	if (!n || p->offset > b->n || n > b->n - p->offset || (n < 8 && v >> (8 * n)))
		d->strange = true;
	else
		memcpy(b->p + p->offset, &v, n);
}

/* Which number in .debug_addr an address is; false: it stands there itself. */
static bool index_of(const struct place *p, uint64_t *out)
{
	const uint8_t *at = p->attribute.valp;

	switch (p->form) {
	case DW_FORM_addrx:
	case DW_FORM_GNU_addr_index: {
		struct cursor c = cursor_over(at, 10);

		*out = cursor_uleb(&c);
		return true;
	}
	case DW_FORM_addrx1:
	case DW_FORM_addrx2:
	case DW_FORM_addrx3:
	case DW_FORM_addrx4:
		*out = read_bytes(at, width_of(p->form));
		return true;
	}
	return false;
}

static void patch_address(struct entry *e, const struct place *p, uint64_t v)
{
	uint64_t index;

	if (p->form == DW_FORM_addr)
		patch(e->d, p, v);
	else if (index_of(p, &index) && e->u->addr_base && index < UINT32_MAX)
		debug_put_u64(e->d, DEBUG_ADDR, e->u->addr_base + 8 * index, v);
	else
		e->d->strange = true;
}

/* ---- where code is ---- */

static bool address_of(const struct place *p, uint64_t *out)
{
	Dwarf_Attribute a = p->attribute;
	Dwarf_Addr v;

	if (!p->code || dwarf_formaddr(&a, &v))
		return false;
	*out = v;
	return true;
}

/* Where the entry's code ended; the form says whether by address or by size. */
static bool end_of(const struct entry *e, uint64_t low, uint64_t *out)
{
	Dwarf_Attribute a = e->high.attribute;
	Dwarf_Word size;

	if (address_of(&e->high, out))
		return true;
	if (!e->high.code || dwarf_formudata(&a, &size))
		return false;
	*out = low + size;
	return true;
}

static void patch_bounds(struct entry *e, uint64_t low, uint64_t end)
{
	const struct debug_map *m = e->d->map;
	uint64_t start = debug_map_start(m, low), stop = debug_map_end(m, end), unused;

	if (low >= end || stop < start)
		stop = start;
	patch_address(e, &e->low, start);
	if (address_of(&e->high, &unused))
		patch_address(e, &e->high, stop);
	else
		patch(e->d, &e->high, stop - start);
}

static void list_ranges(struct entry *e, bool twins, range_list *out)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t at = 0;

	while ((at = dwarf_ranges(e->die, at, &base, &start, &end)) > 0)
		debug_map_range(e->d->map, start, end, twins, out);
	e->d->strange |= at < 0;
}

/* By an offset, or by a number in a table of offsets that are relative to it. */
static void patch_list(struct entry *e, const struct place *p, unsigned base_attribute,
	enum debug_section section, uint64_t offset)
{
	Dwarf_Attribute a;
	Dwarf_Word base;
	struct cursor c = cursor_over(p->attribute.valp, 10);

	if (p->form != DW_FORM_rnglistx && p->form != DW_FORM_loclistx)
		patch(e->d, p, offset);
	else if (!dwarf_formudata(dwarf_attr(&e->u->die, base_attribute, &a), &base))
		debug_put_u32(e->d, section, base + 4 * cursor_uleb(&c), offset - base);
	else
		e->d->strange = true;
}

static void patch_ranges(struct entry *e)
{
	range_list list = {0};

	list_ranges(e, false, &list);
	patch_list(e, &e->ranges, DW_AT_rnglists_base, DEBUG_RNGLISTS,
		debug_ranges_write(e->d, e->u, &list));
	vec_deinit(&list);
}

/* ---- where variables are ---- */

static bool is_location(unsigned code)
{
	switch (code) {
	case DW_AT_location:
	case DW_AT_frame_base:
	case DW_AT_return_addr:
	case DW_AT_static_link:
	case DW_AT_use_location:
	case DW_AT_string_length:
	case DW_AT_data_location:
	case DW_AT_call_value:
	case DW_AT_GNU_call_site_value:
		return true;
	}
	return false;
}

static bool is_list(const struct debug_unit *u, unsigned form)
{
	return form == DW_FORM_sec_offset || form == DW_FORM_loclistx ||
	       (u->version < 4 && (form == DW_FORM_data4 || form == DW_FORM_data8));
}

static void patch_locations(struct entry *e, const struct place *p)
{
	bool views = p->code == DW_AT_location && e->views.code;
	const struct debug_list *list;
	struct cursor c = cursor_over(p->attribute.valp, 10);
	uint64_t offset =
		p->form == DW_FORM_loclistx ? 0 : read_bytes(p->attribute.valp, width_of(p->form));

	if (p->form == DW_FORM_loclistx) {
		struct cursor table = e->d->sections[DEBUG_LOCLISTS].old;
		Dwarf_Attribute a;
		Dwarf_Word base = 0;

		if (dwarf_formudata(dwarf_attr(&e->u->die, DW_AT_loclists_base, &a), &base))
			e->d->strange = true;
		cursor_seek(&table, base + 4 * cursor_uleb(&c));
		offset = base + cursor_u32(&table);
		e->d->strange |= table.failed;
	}
	list = debug_locations_write(e->d, e->u, offset, views);
	patch_list(e, p, DW_AT_loclists_base, DEBUG_LOCLISTS, list->offset);
	if (views)
		patch(e->d, &e->views, list->views);
}

/* What cannot be said in as many bytes is said to be nowhere: an empty piece of any size. */
static void put_within(struct debug *d, uint64_t offset, size_t n, const struct buf *fresh)
{
	struct buf *b = debug_buf(d, DEBUG_INFO);

	if (fresh->n == n) {
		memcpy(b->p + offset, fresh->p, n);
	} else if (n >= 2) {
		b->p[offset] = DW_OP_piece;
		memset(b->p + offset + 1, 0x80, n - 1);
		b->p[offset + 1] |= 1;
		b->p[offset + n - 1] &= 0x7f;
	}
}

/* A local of a function whose frame became larger. */
static void patch_expression(struct entry *e, const struct place *p)
{
	Dwarf_Attribute a = p->attribute;
	Dwarf_Block block;
	struct buf fresh = {0};

	if (!e->in || !e->in->fragment->pad || dwarf_formblock(&a, &block))
		return;
	debug_put_expression(e->d, e->in, block.data, block.length, &fresh);
	if (fresh.n != block.length || memcmp(fresh.p, block.data, fresh.n))
		put_within(e->d, p->offset + (uint64_t)(block.data - p->attribute.valp),
			block.length, &fresh);
	buf_deinit(&fresh);
}

/* ---- one entry ---- */

/* Where a call comes back to is the end of the call, whatever was added behind it. */
static void patch_point(struct entry *e, const struct place *p, bool returns)
{
	uint64_t v;

	if (!address_of(p, &v))
		return; /* relative to the entry's start, which is right unless code was added */
	patch_address(e, p,
		returns ? debug_map_start(e->d->map, v - 1) + 1 : debug_map_start(e->d->map, v));
}

static struct place place_of(const struct entry *e, Dwarf_Attribute *a)
{
	return (struct place){.code = dwarf_whatattr(a),
		.form = dwarf_whatform(a),
		.offset = dwarf_dieoffset(e->die) +
			  (uint64_t)(a->valp - (const unsigned char *)e->die->addr),
		.attribute = *a};
}

static int take_attribute(Dwarf_Attribute *a, void *arg)
{
	struct entry *e = arg;
	struct place p = place_of(e, a);

	switch (p.code) {
	case DW_AT_low_pc:
		e->low = p;
		break;
	case DW_AT_high_pc:
		e->high = p;
		break;
	case DW_AT_ranges:
		e->ranges = p;
		break;
	case DW_AT_stmt_list:
		e->lines = p;
		break;
	case DW_AT_entry_pc:
	case DW_AT_call_pc:
		patch_point(e, &p, false);
		break;
	case DW_AT_call_return_pc:
		patch_point(e, &p, true);
		break;
	case DW_AT_dwo_name:
	case DW_AT_GNU_dwo_name:
		e->d->strange = e->d->split = true; /* those files are not ours to change */
		break;
	case DW_AT_frame_base:
		e->frame_base = p;
		break;
	case DW_AT_GNU_locviews:
		e->views = p;
		break;
	}
	return DWARF_CB_OK;
}

static int take_location(Dwarf_Attribute *a, void *arg)
{
	struct entry *e = arg;
	struct place p = place_of(e, a);

	if (!is_location(p.code))
		return DWARF_CB_OK;
	if (is_list(e->u, p.form))
		patch_locations(e, &p);
	else if (p.code == DW_AT_location)
		patch_expression(e, &p);
	return DWARF_CB_OK;
}

static bool is_by_cfa(const struct place *frame_base)
{
	Dwarf_Attribute a = frame_base->attribute;
	Dwarf_Block block;

	return frame_base->code && !dwarf_formblock(&a, &block) && block.length == 1 &&
	       *block.data == DW_OP_call_frame_cfa;
}

static void patch_entry(struct entry *e)
{
	int tag = dwarf_tag(e->die);
	Dwarf_Addr base, start, stop;
	uint64_t low, end;

	if (tag == DW_TAG_subprogram) {
		e->in = NULL;
		e->d->by_cfa = is_by_cfa(&e->frame_base);
	}
	if (address_of(&e->low, &low)) {
		if (tag == DW_TAG_subprogram)
			e->in = debug_map_piece(e->d->map, low);
		if (end_of(e, low, &end))
			patch_bounds(e, low, end);
		else
			patch_point(e, &e->low, tag == DW_TAG_GNU_call_site);
	}
	if (e->ranges.code) {
		if (tag == DW_TAG_subprogram && dwarf_ranges(e->die, 0, &base, &start, &stop) > 0)
			e->in = debug_map_piece(e->d->map, start);
		patch_ranges(e);
	}
	dwarf_getattrs(e->die, take_location, e, 0);
}

static void patch_children(struct debug *d, struct debug_unit *u, Dwarf_Die *parent,
	const struct debug_piece *in, unsigned depth)
{
	Dwarf_Die die;

	if (depth > DEPTH_MOST || dwarf_child(parent, &die))
		return;
	do {
		struct entry e = {.d = d, .u = u, .die = &die, .in = in};

		dwarf_getattrs(&die, take_attribute, &e, 0);
		patch_entry(&e);
		patch_children(d, u, &die, e.in, depth + 1);
	} while (!d->strange && !dwarf_siblingof(&die, &die));
}

/* ---- the unit's own entry ---- */

/*
 * A unit that was one range may now be several. Its declaration gets ranges for its end: in a copy
 * of its abbreviations, which names as many bytes as before.
 */
static bool replace_high(struct cursor *c, uint64_t code, unsigned form, struct buf *out)
{
	bool found = false;

	for (;;) {
		uint64_t number = cursor_uleb(c);
		bool here = number == code && !found;

		buf_uleb(out, number);
		if (!number || c->failed)
			return found && !c->failed;
		buf_uleb(out, cursor_uleb(c)); /* tag */
		buf_u8(out, cursor_u8(c));     /* children */
		for (uint64_t attribute = 1, shape = 1; attribute | shape && !c->failed;) {
			attribute = cursor_uleb(c);
			shape = cursor_uleb(c);
			if (here && attribute == DW_AT_high_pc && shape == form) {
				buf_uleb(out, DW_AT_ranges);
				buf_uleb(out, DW_FORM_sec_offset);
				attribute = width_of(form) == 8 ? FILLER : 0;
				shape = DW_FORM_data4;
				found = true;
				if (!attribute) {
					attribute = 1; /* go on */
					continue;
				}
			}
			buf_uleb(out, attribute);
			buf_uleb(out, shape);
			if (shape == DW_FORM_implicit_const)
				buf_sleb(out, cursor_sleb(c));
		}
	}
}

static bool give_ranges(struct entry *e)
{
	struct debug *d = e->d;
	struct cursor c = d->sections[DEBUG_ABBREV].old;
	struct cursor entry = cursor_over(e->die->addr, 10);
	struct buf fresh = {0};
	struct place offset = e->high;
	bool done = false;

	if (e->high.form != DW_FORM_data8 && e->high.form != DW_FORM_data4 &&
		e->high.form != DW_FORM_addr)
		return false;
	cursor_seek(&c, e->u->abbrev);
	if (replace_high(&c, cursor_uleb(&entry), e->high.form, &fresh)) {
		debug_put_u32(d, DEBUG_INFO, e->u->offset + (e->u->version >= 5 ? 8 : 6),
			debug_buf(d, DEBUG_ABBREV)->n);
		buf_put(debug_buf(d, DEBUG_ABBREV), fresh.p, fresh.n);
		patch(d, &e->high, 0);
		offset.form = DW_FORM_sec_offset;
		patch(d, &offset, debug_ranges_write(d, e->u, &e->u->ranges));
		patch_address(e, &e->low, 0);
		done = true;
	}
	buf_deinit(&fresh);
	return done;
}

/* The unit's code; its base for lists is what it was, for they are read as they were. */
static void patch_unit_bounds(struct entry *e)
{
	uint64_t low, end;

	if (address_of(&e->low, &low)) {
		e->u->base = low;
		if (!e->ranges.code && end_of(e, low, &end)) {
			debug_map_range(e->d->map, low, end, true, &e->u->ranges);
			if (!give_ranges(e))
				patch_bounds(e, low, end);
			return;
		}
	}
	if (e->ranges.code) {
		list_ranges(e, true, &e->u->ranges);
		patch_list(e, &e->ranges, DW_AT_rnglists_base, DEBUG_RNGLISTS,
			debug_ranges_write(e->d, e->u, &e->u->ranges));
	}
}

static void patch_lines(struct entry *e)
{
	Dwarf_Attribute a = e->lines.attribute;
	Dwarf_Word old;
	uint64_t offset;

	if (!e->lines.code || dwarf_formudata(&a, &old))
		return;
	offset = debug_lines_write(e->d, e->u, old);
	if (offset == UINT64_MAX)
		e->d->strange = true;
	else
		patch(e->d, &e->lines, offset);
}

void debug_unit_write(struct debug *d, struct debug_unit *u)
{
	struct entry e = {.d = d, .u = u, .die = &u->die};
	Dwarf_Attribute a;
	Dwarf_Word base = 0;

	if (dwarf_formudata(dwarf_attr(&u->die, DW_AT_addr_base, &a), &base) &&
		dwarf_formudata(dwarf_attr(&u->die, DW_AT_GNU_addr_base, &a), &base))
		base = 0;
	u->addr_base = base;
	dwarf_getattrs(&u->die, take_attribute, &e, 0);
	if (d->strange)
		return;
	patch_unit_bounds(&e);
	patch_lines(&e);
	patch_children(d, u, &u->die, NULL, 0);
}
