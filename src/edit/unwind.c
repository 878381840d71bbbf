#include "edit/unwind.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/hmap.h"
#include "base/mem.h"
#include "edit/unwind_internal.h"
#include "image/eh_pointer.h"
#include "image/elf_file.h"
#include "isa/form.h"

/* What entries and tables are written with. */
enum { POINTERS = PE_PCREL | PE_SDATA4 };

/* ---- pointers ---- */

bool unwind_pointer(
	uint8_t encoding, uint64_t raw, uint64_t at, bool fixed, uint8_t *fresh, uint64_t *target)
{
	uint8_t format = encoding & PE_FORMAT, indirect = encoding & PE_INDIRECT;
	bool word = format == PE_ABSPTR || format == PE_UDATA8 || format == PE_SDATA8;

	if ((encoding & PE_BASE) == PE_PCREL) {
		*target = raw ? raw + at : 0;
	} else if (encoding & PE_BASE) {
		return false;
	} else if (fixed) {
		*target = raw;
	} else if (word && !indirect) {
		*target = at;
		indirect = PE_INDIRECT;
	} else {
		return false;
	}
	*fresh = POINTERS | indirect;
	return true;
}

bool unwind_put_relative(struct buf *out, uint64_t address, uint64_t target)
{
	int64_t distance = target ? (int64_t)(target - address) : 0;

	buf_u32(out, (uint32_t)distance);
	return distance == (int32_t)distance;
}

/* ---- reading ---- */

struct cie_number {
	uint64_t offset;
	uint32_t number;
};

/* What a pointer of an entry leads to is in the file. */
static bool is_known(uint8_t encoding, bool fixed)
{
	uint8_t base = encoding & PE_BASE;

	return !(encoding & PE_INDIRECT) && (base == PE_PCREL || (!base && fixed));
}

static int check_cie(const struct eh_cie *c, bool fixed, struct err *e)
{
	uint8_t encoding;
	uint64_t target;

	if (c->foreign || !is_known(c->pointers, fixed) ||
		(c->lsda != PE_OMIT && !is_known(c->lsda, fixed)))
		return err_set(e, -ENOTSUP, ".eh_frame has entries of a kind that is not known");
	if (c->personality != PE_OMIT && !unwind_pointer(c->personality, c->routine, c->routine_at,
						 fixed, &encoding, &target))
		return err_set(e, -ENOTSUP, ".eh_frame has a pointer of a kind that is not known");
	return 0;
}

static int add_cie(struct unwind *u, const struct eh_cie *cie, struct err *e)
{
	int r = check_cie(cie, u->fixed, e);
	if (r < 0)
		return r;
	struct unwind_cie *c = vec_add(&u->cies);
	*c = (struct unwind_cie){.cie = *cie};
	c->understood = cfi_initial(cie, &c->initial) && cie->code_align == 1 &&
			cie->data_align == DATA_ALIGN && cie->return_column == CFI_RIP;
	return 0;
}

static int read_frames(struct unwind *u, struct hmap *numbers, struct err *e)
{
	const struct eh_section *s = &u->section;
	struct eh_reader reader;
	struct eh_fde fde;

	eh_reader_init(&reader, s->bytes.p, s->bytes.n, s->vaddr, s->terminated);
	while (eh_reader_next(&reader, &fde)) {
		bool fresh;
		struct cie_number *c = hmap_put(numbers, &reader.cie.offset, &fresh);
		if (fresh)
			c->number = (uint32_t)u->cies.n;
		int r = fresh ? add_cie(u, &reader.cie, e) : 0;
		if (r < 0)
			return r;
		*vec_add(&u->frames) = (struct unwind_frame){.fde = fde, .cie = c->number};
	}
	if (reader.damaged)
		return err_set(e, -EBADMSG, ".eh_frame is damaged");
	return 0;
}

static int by_start(const void *a, const void *b)
{
	const struct unwind_frame *x = a, *y = b;

	return x->fde.start < y->fde.start ? -1 : x->fde.start > y->fde.start;
}

/* Of two entries for one address either may count: such code stays where it is. */
static void mark_overlaps(struct unwind *u)
{
	for (size_t i = 1; i < u->frames.n; i++) {
		struct unwind_frame *f = &u->frames.p[i];
		if (f[-1].fde.start + f[-1].fde.size > f->fde.start)
			f->refused = f[-1].refused = "two unwind entries for the same code";
	}
}

/* The data of exceptions in a segment, from the first one on. */
static int read_lsdas(struct unwind *u, const struct elf_file *f, const Elf64_Phdr *segment)
{
	uint64_t start = segment->p_vaddr, size = segment->p_filesz, lowest = UINT64_MAX;
	struct unwind_area area = {0};

	vec_each (frame, &u->frames) {
		uint64_t lsda = frame->fde.lsda;
		if (lsda && lsda - start < size && lsda < lowest)
			lowest = lsda;
	}
	if (segment->p_type != PT_LOAD || lowest == UINT64_MAX)
		return 0;
	size -= lowest - start;
	area.vaddr = lowest;
	int r = elf_file_read(f, segment->p_offset + (lowest - start),
		size < ELF_SECTION_MAX ? size : ELF_SECTION_MAX, &area.bytes);
	if (r == 0)
		*vec_add(&u->lsdas) = area;
	return r;
}

static uint16_t machine_registers(uint32_t dwarf)
{
	static const uint8_t machine[16] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
		REG_RBP, REG_RSP, 8, 9, 10, 11, 12, 13, 14, 15};
	uint16_t set = 0;

	for (unsigned i = 0; i < 16; i++)
		set |= (uint16_t)((dwarf >> i & 1) << machine[i]);
	return set;
}

static const char *judge(struct unwind *u, struct unwind_frame *f, struct unwind_rows *rows)
{
	uint32_t registers = 0;

	if (u->cies.p[f->cie].cie.signal)
		return "return of a signal handler";
	if (!unwind_read_rows(u, f, rows) || !unwind_check_rows(rows, &registers))
		return "unwind rules of an unknown kind";
	f->registers = machine_registers(registers);
	return f->fde.lsda ? unwind_check_lsda(u, f) : NULL;
}

static void mark_unknown(struct unwind *u)
{
	struct unwind_rows rows = {0};

	vec_each (f, &u->frames) {
		if (!f->refused)
			f->refused = judge(u, f, &rows);
	}
	vec_deinit(&rows.list);
}

void unwind_destroy(struct unwind *u)
{
	if (!u)
		return;
	bytes_deinit(&u->section.bytes);
	vec_each (a, &u->lsdas)
		bytes_deinit(&a->bytes);
	vec_deinit(&u->lsdas);
	vec_deinit(&u->cies);
	vec_deinit(&u->frames);
	free(u);
}
DEFINE_CLEANUP(struct unwind, unwind_destroy)

int unwind_create(const struct elf_file *f, struct unwind **out, struct err *e)
{
	_cleanup_(unwind_destroyp) struct unwind *u = xcalloc(1, sizeof *u);
	struct hmap numbers;

	u->fixed = f->header.e_type == ET_EXEC;
	int r = eh_section_read(f, &u->section);
	if (r < 0)
		return err_set(
			e, r, r == -ENOENT ? "there is no .eh_frame" : ".eh_frame is damaged");
	hmap_init(&numbers, sizeof(struct cie_number), sizeof(uint64_t));
	r = read_frames(u, &numbers, e);
	hmap_deinit(&numbers);
	if (r < 0)
		return r;
	for (size_t i = 0; i < f->nsegments; i++) {
		if (read_lsdas(u, f, &f->segments[i]) < 0)
			return err_set(e, -EBADMSG, "the data of exceptions is damaged");
	}
	vec_sort(&u->frames, by_start);
	mark_overlaps(u);
	mark_unknown(u);
	*out = u;
	u = NULL;
	return 0;
}

struct unwind_frame *unwind_find_frame(const struct unwind *u, uint64_t address)
{
	size_t low = 0, high = u->frames.n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (u->frames.p[middle].fde.start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return NULL;
	struct unwind_frame *f = &u->frames.p[low - 1];
	return address - f->fde.start < f->fde.size ? f : NULL;
}

const char *unwind_refusal(const struct unwind *u, uint64_t address)
{
	const struct unwind_frame *f = unwind_find_frame(u, address);

	return f ? f->refused : NULL;
}

uint16_t unwind_registers(const struct unwind *u, uint64_t address)
{
	const struct unwind_frame *f = unwind_find_frame(u, address);

	return f ? f->registers : 0;
}

uint16_t unwind_saved(const struct unwind *u, uint64_t address)
{
	const struct unwind_frame *f = unwind_find_frame(u, address);
	struct unwind_rows rows = {0};
	uint32_t saved = 0;

	if (f && unwind_read_rows(u, f, &rows))
		vec_each (row, &rows.list) {
			if (row->pc > address)
				break;
			saved = 0;
			for (unsigned i = 0; i < 16; i++)
				saved |= (row->row.registers[i].kind == CFI_OFFSET) << i;
		}
	vec_deinit(&rows.list);
	return machine_registers(saved);
}

/* ---- pieces ---- */

struct pieces {
	VEC(struct unwind_piece) list;
};

struct edit_span unwind_clip(const struct unwind_piece *p, const struct edit_span *s)
{
	struct edit_span out = *s;
	uint64_t start = s->at > p->start ? s->at : p->start;
	uint64_t end = s->at + s->size < p->end ? s->at + s->size : p->end;

	out.at = start;
	out.size = (uint32_t)(end - start);
	if (s->copied)
		out.old += start - s->at;
	return out;
}

/* New code that begins at `at` within a span, as far as one old frame goes. */
static void add_stretch(struct pieces *p, const struct unwind *u, const struct edit_span *s,
	uint64_t at, uint64_t end, const struct unwind_frame *f, const struct edit_fragment *of)
{
	struct unwind_piece *last = p->list.n ? &p->list.p[p->list.n - 1] : NULL;
	uint32_t frame = (uint32_t)(f - u->frames.p);

	if (last && last->frame == frame && last->twin == of->twin && last->end == at &&
		last->spans + last->nspans >= s) {
		last->nspans = (size_t)(s - last->spans) + 1;
		last->end = end;
		return;
	}
	*vec_add(&p->list) = (struct unwind_piece){.twin = of->twin,
		.gap = of->gap,
		.pad = of->pad,
		.frame = frame,
		.spans = s,
		.nspans = 1,
		.start = at,
		.end = end};
}

/* Cuts a span where frames begin and end; what has no frame has none in the new code. */
static void add_span(struct pieces *p, const struct unwind *u, const struct edit_span *s,
	const struct edit_fragment *of)
{
	uint64_t at = s->at, end = s->at + s->size;

	while (at < end) {
		uint64_t old = s->copied ? s->old + (at - s->at) : s->old, next = end;
		const struct unwind_frame *f = unwind_find_frame(u, old);
		uint64_t left = f ? f->fde.start + f->fde.size - old : 1;
		if (s->copied && left < end - at)
			next = at + left;
		if (f)
			add_stretch(p, u, s, at, next, f, of);
		at = next;
	}
}

static void cut_pieces(
	const struct unwind *u, const struct edit_fragment *fragments, size_t n, struct pieces *out)
{
	for (size_t i = 0; i < n; i++) {
		for (size_t j = 0; j < fragments[i].nspans; j++)
			add_span(out, u, &fragments[i].spans[j], &fragments[i]);
	}
}

/* ---- writing ---- */

struct entry {
	uint64_t start, at; /* of the code, and of its FDE */
};

struct writer {
	struct unwind *u;
	struct buf *out;
	uint64_t base; /* the address of out's byte 0 */
	struct pieces pieces;
	VEC(struct entry) table;
	bool far;
};

static uint64_t here(const struct writer *w)
{
	return w->base + w->out->n;
}

static void align(struct writer *w, size_t n, uint8_t with)
{
	while (here(w) % n)
		buf_u8(w->out, with);
}

static void put_relative(struct writer *w, uint64_t target)
{
	if (!unwind_put_relative(w->out, here(w), target))
		w->far = true;
}

/* Ends an entry: DW_CFA_nop up to the next word, and its length. */
static void end_entry(struct writer *w, size_t start)
{
	align(w, 8, 0);
	uint32_t length = (uint32_t)(w->out->n - start - 4);
	memcpy(w->out->p + start, &length, sizeof length);
}

static void put_cie(struct writer *w, struct unwind_cie *c)
{
	const struct eh_cie *cie = &c->cie;
	bool personality = cie->personality != PE_OMIT, lsda = cie->lsda != PE_OMIT;
	size_t start = w->out->n;
	uint8_t encoding;
	uint64_t target;

	c->at = here(w);
	buf_u32(w->out, 0); /* length, later */
	buf_u32(w->out, 0); /* a CIE */
	buf_u8(w->out, 1);  /* version */
	buf_printf(w->out, "z%s%sR%s", personality ? "P" : "", lsda ? "L" : "",
		cie->signal ? "S" : "");
	buf_u8(w->out, 0);
	buf_uleb(w->out, cie->code_align);
	buf_sleb(w->out, cie->data_align);
	buf_u8(w->out, (uint8_t)cie->return_column);
	buf_uleb(w->out, 1 + (personality ? 5 : 0) + (lsda ? 1 : 0));
	if (personality) {
		unwind_pointer(cie->personality, cie->routine, cie->routine_at, w->u->fixed,
			&encoding, &target);
		buf_u8(w->out, encoding);
		put_relative(w, target);
	}
	if (lsda)
		buf_u8(w->out, POINTERS);
	buf_u8(w->out, POINTERS);
	buf_put(w->out, cie->instructions.at, cursor_left(&cie->instructions));
	end_entry(w, start);
}

/* An FDE up to its instructions; returns where it begins in out. */
static size_t begin_fde(
	struct writer *w, const struct unwind_cie *c, uint64_t code, uint64_t size, uint64_t lsda)
{
	size_t start = w->out->n;

	*vec_add(&w->table) = (struct entry){.start = code, .at = here(w)};
	w->far |= size > UINT32_MAX;
	buf_u32(w->out, 0); /* length, later */
	buf_u32(w->out, (uint32_t)(here(w) - c->at));
	put_relative(w, code);
	buf_u32(w->out, (uint32_t)size);
	if (c->cie.lsda == PE_OMIT) {
		buf_uleb(w->out, 0);
	} else {
		buf_uleb(w->out, 4);
		put_relative(w, lsda);
	}
	return start;
}

/* As it was; its instructions do not depend on where they are. */
static void put_fde(
	struct writer *w, const struct unwind_cie *c, const struct eh_fde *fde, uint64_t code)
{
	size_t start = begin_fde(w, c, code, fde->size, fde->lsda);

	buf_put(w->out, fde->instructions.at, cursor_left(&fde->instructions));
	end_entry(w, start);
}

static void put_new_fde(
	struct writer *w, const struct unwind_piece *p, const struct unwind_rows *rows)
{
	const struct unwind_cie *c = &w->u->cies.p[w->u->frames.p[p->frame].cie];
	size_t start = begin_fde(w, c, p->start, p->end - p->start, p->lsda);

	unwind_put_rows(c, rows, p, w->out);
	end_entry(w, start);
}

static void put_added(struct writer *w)
{
	struct unwind_cie cie = {0};
	struct eh_reader r;
	struct eh_fde fde;

	eh_reader_init(&r, w->u->added.frames, w->u->added.n, w->u->added.vaddr, false);
	while (eh_reader_next(&r, &fde)) {
		if (!cie.at || cie.cie.offset != r.cie.offset) {
			cie.cie = r.cie;
			put_cie(w, &cie);
		}
		put_fde(w, &cie, &fde, fde.start + w->u->added.moved);
	}
}

static void put_lsdas(struct writer *w, edit_moved_fn *moved, void *arg)
{
	vec_each (p, &w->pieces.list) {
		if (!w->u->frames.p[p->frame].fde.lsda)
			continue;
		align(w, 4, 0);
		p->lsda = here(w);
		if (!unwind_put_lsda(w->u, p, moved, arg, p->lsda, w->out))
			w->far = true;
	}
	align(w, 8, 0);
}

static void put_eh_frame(struct writer *w)
{
	struct unwind_rows rows = {0};
	uint32_t frame = UINT32_MAX;

	vec_each (c, &w->u->cies)
		put_cie(w, c);
	vec_each (f, &w->u->frames) /* what the original says about the old code */
		put_fde(w, &w->u->cies.p[f->cie], &f->fde, f->fde.start);
	vec_each (p, &w->pieces.list) {
		if (p->frame != frame)
			unwind_read_rows(w->u, &w->u->frames.p[p->frame], &rows);
		frame = p->frame;
		put_new_fde(w, p, &rows);
	}
	put_added(w);
	vec_deinit(&rows.list);
	buf_u32(w->out, 0);
}

static int by_code(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* LSB, "The .eh_frame_hdr section": what unwinders search. */
static void put_hdr(struct writer *w, uint64_t eh_frame)
{
	uint64_t hdr = here(w);

	buf_u8(w->out, 1); /* version */
	buf_u8(w->out, POINTERS);
	buf_u8(w->out, PE_UDATA4);
	buf_u8(w->out, PE_DATAREL | PE_SDATA4);
	put_relative(w, eh_frame);
	buf_u32(w->out, (uint32_t)w->table.n);
	vec_sort(&w->table, by_code);
	vec_each (t, &w->table) {
		w->far |= !unwind_put_relative(w->out, hdr, t->start);
		w->far |= !unwind_put_relative(w->out, hdr, t->at);
	}
}

void unwind_add(struct unwind *u, const void *frames, size_t n, uint64_t vaddr, uint64_t moved)
{
	u->added.frames = frames;
	u->added.n = n;
	u->added.vaddr = vaddr;
	u->added.moved = moved;
}

int unwind_write(struct unwind *u, const struct edit_fragment *fragments, size_t n,
	edit_moved_fn *moved, void *arg, uint64_t address, struct buf *out,
	struct unwind_layout *where, struct err *e)
{
	struct writer w = {.u = u, .out = out, .base = address - out->n};
	struct unwind_layout layout = {.lsda = address};

	cut_pieces(u, fragments, n, &w.pieces);
	put_lsdas(&w, moved, arg);
	layout.eh_frame = here(&w);
	layout.lsda_size = layout.eh_frame - layout.lsda;
	put_eh_frame(&w);
	layout.eh_frame_size = here(&w) - layout.eh_frame;
	align(&w, 8, 0);
	layout.hdr = here(&w);
	put_hdr(&w, layout.eh_frame);
	layout.hdr_size = here(&w) - layout.hdr;
	vec_deinit(&w.pieces.list);
	vec_deinit(&w.table);
	if (w.far)
		return err_set(e, -ERANGE, "unwind tables would lie more than 2 GB from the code");
	*where = layout;
	return 0;
}
