#include "image/eh_frame.h"

#include <errno.h>

#include "base/mem.h"
#include "image/cfi.h"
#include "image/eh_entry.h"
#include "image/elf_file.h"
#include "image/lsda.h"

/* A function is entered with the CFA at rsp + 8 and nothing saved. */
static bool is_call_frame(const struct cfi_row *row)
{
	if (row->cfa.kind != CFI_REGISTER || row->cfa.value != CFI_RSP || row->cfa_offset != 8)
		return false;
	for (size_t i = 0; i < CFI_REGISTERS; i++) {
		if (i != CFI_RIP && row->registers[i].kind >= CFI_OFFSET)
			return false;
	}
	return true;
}

/* The linker describes .plt by one FDE: entered with 8 bytes pushed, and an expression later. */
static bool is_linkage_table(struct cfi *c)
{
	bool entry = c->row.cfa.kind == CFI_REGISTER && c->row.cfa_offset == 16;

	while (entry && cfi_next(c)) {
		if (c->row.cfa.kind == CFI_VAL_EXPRESSION)
			return true;
	}
	return false;
}

/* A half that is jumped into has the frame of its function. */
static bool is_midframe(
	const struct eh_cie *cie, const struct cfi_row *initial, const struct eh_fde *fde)
{
	struct cfi c;

	if (cie->signal)
		return false;
	cfi_init(&c, cie, initial, fde);
	cfi_next(&c);
	bool midframe = !is_call_frame(&c.row) && !is_linkage_table(&c);
	cfi_deinit(&c);
	return midframe;
}

/* An entry that makes no sense is left out; only a bad length hides the ones behind it. */
static int parse(const void *bytes, size_t n, uint64_t vaddr, bool terminated, struct fdes *out)
{
	struct eh_reader r;
	struct eh_fde fde;
	struct cfi_row initial;
	uint64_t cie = UINT64_MAX;

	eh_reader_init(&r, bytes, n, vaddr, terminated);
	while (eh_reader_next(&r, &fde)) {
		if (r.cie.offset != cie)
			cfi_initial(&r.cie, &initial);
		cie = r.cie.offset;
		*vec_add(&out->list) = (struct fde){.start = fde.start,
			.size = fde.size,
			.lsda = fde.lsda,
			.midframe = is_midframe(&r.cie, &initial, &fde)};
	}
	return r.damaged ? -EBADMSG : 0;
}

int eh_frame_parse(const void *bytes, size_t n, uint64_t vaddr, struct fdes *out)
{
	return parse(bytes, n, vaddr, false, out);
}

int eh_frame_read(const struct elf_file *f, struct fdes *out)
{
	struct eh_section s;
	int r = eh_section_read(f, &s);
	if (r < 0)
		return r;
	r = parse(s.bytes.p, s.bytes.n, s.vaddr, s.terminated, out);
	bytes_deinit(&s.bytes);
	return r;
}

int eh_frame_pads(const void *bytes, size_t n, uint64_t vaddr, uint64_t function, struct pads *out)
{
	struct lsda lsda;
	struct lsda_site site;
	int r = lsda_open(bytes, n, vaddr, function, &lsda);
	if (r < 0)
		return r;
	while (lsda_next(&lsda, &site)) {
		if (site.pad)
			*vec_add(&out->list) = site.pad;
	}
	return lsda.sites.failed ? -EBADMSG : 0;
}
