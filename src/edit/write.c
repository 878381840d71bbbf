#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "edit/debug.h"
#include "edit/edit_internal.h"
#include "edit/elf_out.h"
#include "edit/unwind.h"

enum { PAGE = 4096, NAME_MAX_SIZE = 4096 };

static uint64_t entered(void *arg, uint64_t old, bool twin)
{
	uint64_t at = edit_resolve(arg, old, twin);

	return at == old ? 0 : at;
}

/* Spans moved in memory while they were gathered; only now they are told by pointer. */
static struct edit_fragment *list_fragments(const struct edit *e)
{
	struct edit_fragment *list = xcalloc(e->fragments.n, sizeof *list);

	for (size_t i = 0; i < e->fragments.n; i++) {
		const struct fragment *f = &e->fragments.p[i];
		size_t end = i + 1 < e->fragments.n ? f[1].first_span : e->spans.n;
		list[i] = (struct edit_fragment){.twin = f->twin,
			.gap = f->gap,
			.pad = f->pad,
			.start = f->start,
			.size = f->size,
			.old_start = f->old,
			.spans = e->spans.p + f->first_span,
			.nspans = end - f->first_span};
	}
	return list;
}

/* Copies of jump tables, and behind them what unwinding needs. */
static int write_read_only(struct edit *e, uint64_t address, struct err *err)
{
	_cleanup_free_ struct edit_fragment *list = list_fragments(e);
	_cleanup_(buf_deinit) struct buf bytes = {0};
	struct unwind_layout w = {0};
	int r = twin_write_tables(e, &bytes, err);

	if (r < 0)
		return r;
	r = unwind_write(
		e->unwind, list, e->fragments.n, entered, e, address + bytes.n, &bytes, &w, err);
	if (r < 0)
		return r;
	if (e->options.debug)
		e->debug_left = debug_write(e, list, e->fragments.n);
	uint64_t tables = e->tables_size;
	elf_out_segment(e->out, address, PF_R, &bytes);
	if (tables)
		elf_out_section(
			e->out, ".rodata.edited", SHT_PROGBITS, SHF_ALLOC, address, tables, 8);
	if (w.lsda_size)
		elf_out_section(e->out, ".gcc_except_table", SHT_PROGBITS, SHF_ALLOC, w.lsda,
			w.lsda_size, 4);
	elf_out_section(
		e->out, ".eh_frame", SHT_PROGBITS, SHF_ALLOC, w.eh_frame, w.eh_frame_size, 8);
	elf_out_section(e->out, ".eh_frame_hdr", SHT_PROGBITS, SHF_ALLOC, w.hdr, w.hdr_size, 4);
	elf_out_unwind(e->out, w.hdr, w.hdr_size);
	return 0;
}

/* Those who look at the new code see the names of the old. */
static void name_function(struct edit *e, const struct function *f)
{
	char label[NAME_MAX_SIZE], name[NAME_MAX_SIZE + 16];
	const char *base =
		procedure_label(f->public.procedure, image_path(e->image), label, sizeof label);

	for (uint32_t n = 0; n < f->body->npieces; n++) {
		const struct piece *p = &f->body->pieces[n];
		snprintf(name, sizeof name, "%s%s%s", base, f->original ? ".twin" : "",
			n ? ".cold" : "");
		elf_out_symbol(e->out, name, p->at, p->size);
	}
}

static int place_runtime(struct edit *e, struct buf *text, struct err *err)
{
	if (!e->runtime.n)
		return 0;
	if (e->fill)
		e->fill(e->fill_arg, e->runtime.p, e->text, elf_out_first(e->out));
	buf_put(text, e->runtime.p, e->runtime.n);
	if (e->frames.n)
		unwind_add(e->unwind, e->frames.p, e->frames.n, e->frames_at, e->text);
	return elf_out_start(e->out, e->text + e->runtime_entry, err);
}

static int place_data(struct edit *e, struct err *err)
{
	if (elf_out_end(e->out) > e->data)
		return err_set(err, -EFBIG, "%s: more new code than there is room for",
			image_path(e->image));
	elf_out_zeros(e->out, e->data, (e->data_size + PAGE - 1) & ~(uint64_t)(PAGE - 1));
	return 0;
}

const char *edit_debug_left(const struct edit *e)
{
	return e->fragments.n || !e->options.debug ? e->debug_left : debug_judge(e);
}

int edit_write(struct edit *e, const char *path, struct err *err)
{
	_cleanup_(buf_deinit) struct buf text = {0};
	int r;

	e->text = elf_out_data(e->out, 0);
	if ((r = place_runtime(e, &text, err)) < 0 || (r = emit_all(e, &text, err)) < 0 ||
		(r = entries_write(e, err)) < 0 || (r = patch_write(e, err)) < 0)
		return r;
	uint64_t size = text.n, end = (e->text + size + PAGE - 1) & ~(uint64_t)(PAGE - 1);
	if (size) {
		elf_out_segment(e->out, e->text, PF_R | PF_X, &text);
		elf_out_section(e->out, ".text.edited", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR,
			e->text, size, 64);
	}
	if (e->fragments.n && (r = write_read_only(e, end, err)) < 0)
		return r;
	if (e->data_size && (r = place_data(e, err)) < 0)
		return r;
	for (size_t i = 0; i < twin_copies(e); i++)
		if (twin_copy(e, i)->body)
			name_function(e, twin_copy(e, i));
	return elf_out_write(e->out, path, err);
}
