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

static void write_scene(struct scene *s, cut_fn *cut)
{
	struct move *m = &s->move;
	struct err e;

	move_all(m, s->unwind, FAR, cut);
	assert_int_equal(unwind_write(s->unwind, m->fragments.p, m->fragments.n, move_address, m,
				 TABLES, &m->out, &m->where, &e),
		0);
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
	assert_int_equal(x.pad ? move_address((void *)m, x.pad) : 0, y.pad);
	assert_int_equal(!x.action, !y.action);
	struct buf s = {0}, t = {0};
	describe(old, x.action, &s);
	describe(fresh, y.action, &t);
	assert_string_equal(buf_cstr(&s), buf_cstr(&t));
	buf_deinit(&s);
	buf_deinit(&t);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows_whole),
		cmocka_unit_test(test_rows_insns),
		cmocka_unit_test(test_rows_elfutils),
		cmocka_unit_test(test_exceptions),
	};
	return cmocka_run_group_tests(tests, open_workshop, close_workshop);
}
