#include "edit/unwind.h"

#include <elfutils/libdw.h>
#include <errno.h>
#include <fcntl.h>

#include "base/err.h"
#include "edit/unwind_rig.h"
#include "image/eh_pointer.h"
#include "image/elf_file.h"
#include "image/image.h"
#include "image/lsda.h"
#include "image/workshop.h"
#include "isa/decode.h"
#include "isa/form.h"

enum { FAR = 0x20000000, TABLES = 0x30000000 };

/* ---- the file whose code is moved ---- */

struct scene {
	struct elf_file file;
	struct eh_section section;
	struct unwind *unwind;
	struct move move;
};

static struct scene *looked_at; /* where cut_insns finds the code */

static bool open_scene(struct scene *s, const char *path)
{
	struct err e;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	*s = (struct scene){.file.fd = -1};
	if (fd < 0)
		return false;
	assert_int_equal(elf_file_open(&s->file, fd, path, &e), 0);
	elf_file_read_sections(&s->file);
	assert_int_equal(eh_section_read(&s->file, &s->section), 0);
	const struct eh_section *x = &s->section;
	s->move.old = book_read(x->bytes.p, x->bytes.n, x->vaddr, x->terminated);
	assert_true(s->move.old.pages.n > 0);
	if (unwind_create(&s->file, &s->unwind, &e))
		fail_msg("%s: %s", path, e.text);
	looked_at = s;
	return true;
}

/* Fragments are given in another order than that of their addresses. */
static void write_scene(struct scene *s, cut_fn *cut)
{
	struct move *m = &s->move;
	VEC(struct edit_fragment) back = {0};
	struct err e;

	move_all(m, s->unwind, FAR, cut);
	for (size_t i = m->fragments.n; i > 0; i--)
		*vec_add(&back) = m->fragments.p[i - 1];
	assert_int_equal(unwind_write(s->unwind, back.p, back.n, move_address, m, TABLES, &m->out,
				 &m->where, &e),
		0);
	vec_deinit(&back);
	m->fresh = book_read(m->out.p + (m->where.eh_frame - TABLES), m->where.eh_frame_size,
		m->where.eh_frame, true);
}

static void close_scene(struct scene *s)
{
	move_deinit(&s->move);
	unwind_destroy(s->unwind);
	bytes_deinit(&s->section.bytes);
	close(s->file.fd);
	elf_file_close(&s->file);
}

/* Every instruction a span of its own, and before every third code that pushed 16 bytes. */
static size_t cut_insns(uint64_t start, uint64_t size, uint64_t at, struct edit_span **out)
{
	_cleanup_(bytes_deinit) struct bytes code = {0};
	VEC(struct edit_span) spans = {0};
	uint64_t offset, left;

	assert_true(elf_file_offset(&looked_at->file, start, &offset, &left));
	assert_int_equal(elf_file_read(&looked_at->file, offset, size, &code), 0);
	for (uint64_t i = 0, n = 1; i < size; n++) {
		struct insn insn;
		int r = isa_decode(code.p + i, size - i, start + i, &insn);
		uint64_t length = r == 0 ? insn.length : 1;
		if (n % 3 == 0) {
			*vec_add(&spans) = (struct edit_span){
				.at = at, .old = start + i, .size = 5, .pushed = 16};
			at += 5;
		}
		*vec_add(&spans) = (struct edit_span){
			.at = at, .old = start + i, .size = (uint32_t)length, .copied = n % 2};
		at += length;
		i += length;
	}
	*out = spans.p;
	return spans.n;
}

/* ---- rows ---- */

static const char *const files[] = {
	"/usr/lib/x86_64-linux-gnu/libc.so.6",
	"/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
};

static void check_rows(const char *path, cut_fn *cut)
{
	struct scene s;

	if (open_scene(&s, path)) {
		write_scene(&s, cut);
		assert_int_equal(move_disagreement(&s.move), 0);
		/* Nearly nothing is refused, and old entries stay. */
		assert_true(s.move.fragments.n * 100 > s.move.old.pages.n * 99);
		assert_int_equal(s.move.fresh.pages.n, s.move.fragments.n + s.move.old.pages.n);
		close_scene(&s);
	}
}

static void test_rows_whole(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof files / sizeof *files; i++)
		check_rows(files[i], cut_whole);
}

static void test_rows_insns(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof files / sizeof *files; i++)
		check_rows(files[i], cut_insns);
}

/* ---- rows as elfutils sees them ---- */

/* A file that holds nothing but the tables. */
static void wrap(const struct move *m, struct buf *out)
{
	Elf64_Ehdr h = {.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof h,
		.e_ehsize = sizeof h,
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 2};
	memcpy(h.e_ident, ELFMAG, SELFMAG);
	h.e_ident[EI_CLASS] = ELFCLASS64;
	h.e_ident[EI_DATA] = ELFDATA2LSB;
	h.e_ident[EI_VERSION] = EV_CURRENT;
	uint64_t offset = sizeof h + 2 * sizeof(Elf64_Phdr);
	Elf64_Phdr segments[] = {
		{.p_type = PT_LOAD,
			.p_flags = PF_R,
			.p_offset = offset,
			.p_vaddr = TABLES,
			.p_filesz = m->out.n,
			.p_memsz = m->out.n},
		{.p_type = PT_GNU_EH_FRAME,
			.p_offset = offset + (m->where.hdr - TABLES),
			.p_vaddr = m->where.hdr,
			.p_filesz = m->where.hdr_size,
			.p_memsz = m->where.hdr_size},
	};
	buf_put(out, &h, sizeof h);
	buf_put(out, segments, sizeof segments);
	buf_put(out, m->out.p, m->out.n);
}

static bool ops_agree(const Dwarf_Op *a, size_t na, const Dwarf_Op *b, size_t nb)
{
	bool same = na == nb;

	for (size_t i = 0; same && i < na; i++)
		same = a[i].atom == b[i].atom && a[i].number == b[i].number &&
		       a[i].number2 == b[i].number2;
	return same;
}

static bool frames_agree(Dwarf_Frame *a, Dwarf_Frame *b)
{
	Dwarf_Op *x, *y, mx[3], my[3];
	size_t nx, ny;

	if (dwarf_frame_cfa(a, &x, &nx) || dwarf_frame_cfa(b, &y, &ny) || !ops_agree(x, nx, y, ny))
		return false;
	for (int reg = 0; reg <= CFI_RIP; reg++) {
		int rx = dwarf_frame_register(a, reg, mx, &x, &nx);
		int ry = dwarf_frame_register(b, reg, my, &y, &ny);
		bool none = (x == NULL) == (y == NULL);
		if (rx || ry || !none || !ops_agree(x, nx, y, ny))
			return false;
	}
	return true;
}

/* At the first address of every row. */
static void compare_frames(const struct move *m, Dwarf_CFI *old, Dwarf_CFI *fresh)
{
	struct book_rows rows = {0};

	vec_each (f, &m->fragments) {
		for (uint64_t at = f->start, next; at < f->start + f->size; at = next) {
			Dwarf_Frame *a = NULL, *b = NULL;
			assert_non_null(book_row(&m->fresh, &rows, at, &next));
			assert_int_equal(
				dwarf_cfi_addrframe(old, f->old_start + (at - f->start), &a), 0);
			if (dwarf_cfi_addrframe(fresh, at, &b))
				fail_msg("%s", dwarf_errmsg(-1));
			assert_true(frames_agree(a, b));
			free(a);
			free(b);
		}
	}
	vec_deinit(&rows.list);
}

static void test_rows_elfutils(void **state)
{
	(void)state;
	struct scene s;
	struct buf b = {0};

	elf_version(EV_CURRENT);
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		if (!open_scene(&s, files[i]))
			continue;
		write_scene(&s, cut_whole);
		b.n = 0;
		wrap(&s.move, &b);
		Elf *x = elf_begin(s.file.fd, ELF_C_READ, NULL);
		Elf *y = elf_memory((char *)b.p, b.n);
		Dwarf_CFI *old = dwarf_getcfi_elf(x), *fresh = dwarf_getcfi_elf(y);
		assert_non_null(old);
		assert_non_null(fresh);
		compare_frames(&s.move, old, fresh);
		dwarf_cfi_end(old);
		dwarf_cfi_end(fresh);
		elf_end(x);
		elf_end(y);
		close_scene(&s);
	}
	buf_deinit(&b);
}

/* ---- expressions ---- */

/* CFA = rsp + 56 by an expression, rbx at rsp + 8, and the CFA by r10 later. */
static const char expressions[] = ".globl f\n.type f, @function\nf: .cfi_startproc\n"
				  "sub $48, %rsp\n"
				  ".cfi_escape 0x0f, 2, 0x77, 56\n"
				  ".cfi_escape 0x10, 3, 2, 0x77, 8\n"
				  "nop\nnop\nnop\nnop\nnop\nnop\n"
				  ".cfi_def_cfa 10, 0\n"
				  "nop\nnop\nnop\n.cfi_endproc\n.size f, .-f\n";

/* What rsp is added to grows with what was pushed, here into a second byte. */
static void check_shift(const struct move *m, const struct edit_span *s, size_t *found)
{
	struct book_rows rows = {0};
	uint64_t until;
	const struct cfi_row *row = book_row(&m->fresh, &rows, s->at, &until);

	assert_non_null(row);
	if (row->cfa.kind == CFI_VAL_EXPRESSION && s->pushed) {
		assert_int_equal(row->cfa.size, 3);
		assert_memory_equal(row->cfa.expression, "\x77\xc8\x00", 3);
		assert_int_equal(row->registers[3].size, 2);
		assert_memory_equal(row->registers[3].expression, "\x77\x18", 2);
		++*found;
	}
	vec_deinit(&rows.list);
}

static void test_expressions(void **state)
{
	(void)state;
	struct scene s;
	size_t found = 0;

	write_text("f.s", expressions);
	shell("gcc -shared -nostdlib -o f.so f.s");
	assert_true(open_scene(&s, in_workshop("f.so")));
	write_scene(&s, cut_insns);
	assert_int_equal(s.move.fragments.n, 1);
	assert_int_equal(move_disagreement(&s.move), 0);
	for (size_t i = 0; i < s.move.fragments.p[0].nspans; i++)
		check_shift(&s.move, &s.move.fragments.p[0].spans[i], &found);
	assert_int_equal(found, 2);
	assert_int_equal(unwind_registers(s.unwind, s.move.fragments.p[0].old_start),
		1 << REG_RSP | 1 << 10);
	close_scene(&s);
}

/* ---- exceptions ---- */

struct table {
	struct lsda lsda;
	uint64_t vaddr;
};

static bool open_table(
	const void *p, size_t n, uint64_t base, const struct page *f, struct table *t)
{
	uint64_t into = f->fde.lsda - base;

	if (!f->fde.lsda)
		return false;
	t->vaddr = f->fde.lsda;
	assert_true(into < n);
	assert_int_equal(
		lsda_open((const uint8_t *)p + into, n - into, t->vaddr, f->fde.start, &t->lsda),
		0);
	return true;
}

/* As a personality routine looks it up. */
static bool find_site(const struct table *t, uint64_t pc, struct lsda_site *out)
{
	struct lsda l = t->lsda;

	while (lsda_next(&l, out)) {
		if (pc < out->start)
			return false;
		if (pc - out->start < out->size)
			return true;
	}
	return false;
}

/* What actions do, in words: filters, and what their types are. */
static void describe_type(const struct table *t, uint64_t type, struct buf *out)
{
	const struct lsda *l = &t->lsda;
	struct cursor c = l->bytes;
	bool wide = (l->types & PE_FORMAT) == PE_ABSPTR;
	size_t offset = l->types_end - type * (wide ? 8 : 4);

	cursor_seek(&c, offset);
	uint64_t raw = eh_format_read(&c, l->types);
	bool relative = raw && (l->types & PE_BASE) == PE_PCREL;
	assert_false(c.failed);
	buf_printf(out, " %s%jx", l->types & PE_INDIRECT ? "*" : "",
		(uintmax_t)(raw + (relative ? t->vaddr + offset : 0)));
}

static void describe(const struct table *t, uint64_t action, struct buf *out)
{
	struct cursor c = t->lsda.bytes;
	uint64_t type;

	for (uint64_t at = action - 1; action;) {
		cursor_seek(&c, t->lsda.actions + at);
		int64_t filter = cursor_sleb(&c);
		uint64_t place = cursor_offset(&c) - t->lsda.actions;
		int64_t distance = cursor_sleb(&c);
		assert_false(c.failed);
		buf_printf(out, " %jd", (intmax_t)filter);
		if (filter > 0)
			describe_type(t, (uint64_t)filter, out);
		if (filter < 0) {
			cursor_seek(&c, t->lsda.types_end + (uint64_t)(-1 - filter));
			while ((type = cursor_uleb(&c)))
				describe_type(t, type, out);
		}
		if (!distance)
			return;
		at = place + (uint64_t)distance;
	}
}

static void compare_site(const struct move *m, const struct table *old, const struct table *fresh,
	uint64_t pc, uint64_t at)
{
	struct lsda_site x, y;
	bool a = find_site(old, pc, &x), b = find_site(fresh, at, &y);

	assert_int_equal(a, b);
	if (!a)
		return;
	assert_int_equal(x.pad ? move_address((void *)m, x.pad, false) : 0, y.pad);
	assert_int_equal(!x.action, !y.action);
	struct buf s = {0}, t = {0};
	describe(old, x.action, &s);
	describe(fresh, y.action, &t);
	assert_string_equal(buf_cstr(&s), buf_cstr(&t));
	buf_deinit(&s);
	buf_deinit(&t);
}

/* Sites ascend, do not overlap, and pads lie behind where they are counted from. */
static void check_sites(const struct table *t, uint64_t end)
{
	struct lsda l = t->lsda;
	struct lsda_site s;
	uint64_t last = l.function;

	while (lsda_next(&l, &s)) {
		assert_true(s.start >= last);
		last = s.start + s.size;
		assert_true(!s.pad || s.pad > l.pads);
	}
	assert_false(l.sites.failed);
	assert_true(last <= end);
}

/* At both ends of each span, whose code is one instruction. */
static size_t compare_exceptions(struct scene *s)
{
	const struct move *m = &s->move;
	_cleanup_(bytes_deinit) struct bytes all = {0};
	uint64_t lowest = UINT64_MAX, offset, left;
	size_t found = 0;

	vec_each (p, &m->old.pages) {
		if (p->fde.lsda && p->fde.lsda < lowest)
			lowest = p->fde.lsda;
	}
	assert_true(elf_file_offset(&s->file, lowest, &offset, &left));
	assert_int_equal(elf_file_read(&s->file, offset, left, &all), 0);
	vec_each (f, &m->fragments) {
		struct table old, fresh;
		const struct page *p = book_find(&m->old, f->old_start);
		if (!open_table(all.p, all.n, lowest, p, &old))
			continue;
		p = book_find(&m->fresh, f->start);
		assert_true(open_table(m->out.p, m->out.n, TABLES, p, &fresh));
		check_sites(&fresh, f->start + f->size);
		for (size_t i = 0; i < f->nspans && f->nspans < 300; i++) {
			const struct edit_span *x = &f->spans[i];
			compare_site(m, &old, &fresh, x->old, x->at);
			compare_site(m, &old, &fresh, x->old, x->at + x->size - 1);
		}
		found++;
	}
	return found;
}

static const char throws[] =
	"#include <stdexcept>\n"
	"struct a { int x; ~a(); };\n"
	"int g(int);\n"
	"int f(int i) { a one; try { a two; return g(i) + one.x; }\n"
	"  catch (std::logic_error &) { return 1; } catch (int) { return g(2); }\n"
	"  catch (...) { a three; g(4); throw; } }\n"
	"int h(int i) noexcept { return g(i) + 1; }\n"
	"int k(int i) { try { return f(i); } catch (const char *) { return h(i); } }\n"
	"#if __cplusplus < 201700L\n"
	"int s(int i) throw(int, std::logic_error) { return g(i) + 2; }\n"
	"#endif\n"
	"a::~a() { if (x) g(x); }\n"
	"int g(int i) { if (i == 3) throw 3; if (i > 3) throw std::logic_error(\"\"); return i; }\n"
	"int main(int n, char **) { return k(n); }\n";

static void check_exceptions(const char *path, size_t at_least)
{
	struct scene s;

	if (!open_scene(&s, path))
		return;
	write_scene(&s, cut_insns);
	assert_int_equal(move_disagreement(&s.move), 0);
	assert_true(compare_exceptions(&s) >= at_least);
	close_scene(&s);
}

/* Tables as they are in PIE, in files at fixed addresses, and with relocated words. */
static void test_exceptions(void **state)
{
	(void)state;
	static const char *const options[] = {"-std=c++14 -O2 -pie -fPIE",
		"-std=c++14 -O2 -no-pie -fno-pie", "-std=c++17 -O0 -no-pie -fno-pie -mcmodel=large",
		"-std=c++14 -O2 -static"};

	for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
		write_text("throws.cc", throws);
		shell("g++ -w %s -o throws throws.cc", options[i]);
		check_exceptions(in_workshop("throws"), 3);
	}
}

/*
 * What compilers hardly ever write: sites side by side that differ in their actions alone, pads
 * that lie before their function, and types in words that the loader fills in.
 */
static const char by_hand[] =
	".globl pads, g\n.type pads, @function\n.type g, @function\n"
	".Lpads: pads: .cfi_startproc\nnop\nnop\nnop\nret\n.cfi_endproc\n.size pads, .-pads\n"
	"g: .cfi_startproc\n.cfi_lsda 0x1b, .Llsda\n"
	"nop\nnop\nnop\nnop\nnop\nret\n.cfi_endproc\n.size g, .-g\n"
	".section .gcc_except_table, \"aw\"\n"
	".Llsda: .byte 0x1b\n.long .Lpads - .\n"
	".byte 0x00\n.uleb128 .Ltypes - .Lhere\n.Lhere: .byte 0x01\n"
	".uleb128 .Lend - .Lsites\n.Lsites:\n"
	".uleb128 0, 2, 1, 1\n.uleb128 2, 2, 1, 3\n.uleb128 4, 1, 2, 0\n.Lend:\n"
	".sleb128 1, 0\n.sleb128 2, 0\n"
	".quad g\n.quad pads\n.Ltypes:\n"
	".data\n.quad 0\n";

static void test_by_hand(void **state)
{
	(void)state;
	struct scene s;
	struct lsda_site site;
	struct table t;

	write_text("g.s", by_hand);
	shell("gcc -shared -nostdlib -o g.so g.s");
	assert_true(open_scene(&s, in_workshop("g.so")));
	write_scene(&s, cut_whole);
	const struct move *m = &s.move;
	assert_int_equal(m->fragments.n, 2);
	uint64_t old = m->fragments.p[1].old_start, at = m->fragments.p[1].start;
	assert_true(open_table(m->out.p, m->out.n, TABLES, book_find(&m->fresh, at), &t));
	check_sites(&t, at + m->fragments.p[1].size);
	for (uint64_t i = 0; i < 6; i++) {
		static const uint64_t action[] = {1, 1, 3, 3, 0};
		assert_int_equal(find_site(&t, at + i, &site), i < 5);
		assert_int_equal(site.action, i < 5 ? action[i] : 0);
		assert_int_equal(site.pad, m->fragments.p[0].start + (i < 4 ? 1 : 2));
	}
	/* Through the old table's words: of the second type, which stands first. */
	struct buf words = {0}, expected = {0};
	describe(&t, 3, &words);
	uint64_t types =
		book_find(&m->old, old)->fde.lsda + 9 + 12 + 4; /* header, sites, actions */
	buf_printf(&expected, " 2 *%jx", (uintmax_t)types);
	assert_string_equal(buf_cstr(&words), buf_cstr(&expected));
	buf_deinit(&words);
	buf_deinit(&expected);
	close_scene(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows_whole),
		cmocka_unit_test(test_rows_insns),
		cmocka_unit_test(test_rows_elfutils),
		cmocka_unit_test(test_expressions),
		cmocka_unit_test(test_exceptions),
		cmocka_unit_test(test_by_hand),
	};
	return cmocka_run_group_tests(tests, open_workshop, close_workshop);
}
