#include "image/lines_internal.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/io.h"
#include "base/mem.h"
#include "image/image.h"

enum { SOURCE_MAX = 32 << 20, UNITS_MAX = 1 << 24 };

/* ---- opening ---- */

/* libdwfl looks under /usr/lib/debug by build-id and link, and asks debuginfod if that is set. */
static const Dwfl_Callbacks callbacks = {
	.find_elf = dwfl_build_id_find_elf,
	.find_debuginfo = dwfl_standard_find_debuginfo,
	.section_address = dwfl_offline_section_address,
};

void lines_destroy(struct lines *l)
{
	if (!l)
		return;
	if (l->dwfl)
		dwfl_end(l->dwfl);
	vec_each (s, &l->sources) {
		buf_deinit(&s->text);
		vec_deinit(&s->lines);
	}
	vec_deinit(&l->sources);
	vec_deinit(&l->function.ranges);
	vec_deinit(&l->units);
	strtab_deinit(&l->files);
	free(l);
}
DEFINE_CLEANUP(struct lines, lines_destroy)

/* Opens the file and makes sure that it is a sound ELF file, and the wanted one. */
static int open_file(const char *path, const struct image_id *id, struct err *e)
{
	struct image *im;
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return err_errno(e, -errno, "%s", path);
	int r = image_open(path, fd, &im, e);
	if (r < 0)
		return r;
	bool same = !id || !id->size || image_id_equal(id, image_id(im));
	image_destroy(im);
	if (!same)
		return err_set(
			e, -ESTALE, "%s: replaced since it was profiled; profile it again", path);
	int taken = fd;
	fd = -1;
	return taken;
}

static int report(struct lines *l, const char *path, int fd)
{
	l->dwfl = dwfl_begin(&callbacks);
	if (!l->dwfl) {
		close(fd);
		return -ENOMEM;
	}
	dwfl_report_begin(l->dwfl);
	l->module =
		dwfl_report_elf(l->dwfl, path, path, fd, 0, true); /* takes fd when it succeeds */
	if (!l->module)
		close(fd);
	dwfl_report_end(l->dwfl, NULL, NULL);
	GElf_Addr dwarf_bias;
	if (!l->module || !dwfl_module_getelf(l->module, &l->bias) ||
		!dwfl_module_getdwarf(l->module, &dwarf_bias))
		return -ENOENT;
	return 0;
}

int lines_open(const char *path, const struct image_id *id, struct lines **out, struct err *e)
{
	int fd = open_file(path, id, e);
	if (fd < 0)
		return fd;
	_cleanup_(lines_destroyp) struct lines *l = xcalloc(1, sizeof *l);
	int r = report(l, path, fd);
	if (r < 0)
		return err_set(e, r,
			"%s: no line information; install its debug symbols or set DEBUGINFOD_URLS",
			path);
	*out = l;
	l = NULL;
	return 0;
}

/* ---- lines ---- */

/* Texts are numbered. */
const char *lines_file(struct lines *l, const char *dir, const char *file)
{
	_cleanup_free_ char *full =
		dir && *file != '/' ? xasprintf("%s/%s", dir, file) : xstrdup(file);
	uint32_t number = strtab_add(&l->files, full);
	return l->files.strings[number];
}

static int compare_units(const void *a, const void *b)
{
	const struct unit_range *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static void read_units(struct lines *l, Dwarf *dwarf)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die die;

	l->units_read = true;
	while (!dwarf_get_units(dwarf, cu, &cu, NULL, NULL, &die, NULL)) {
		Dwarf_Addr base, start, end;

		for (ptrdiff_t at = 0; (at = dwarf_ranges(&die, at, &base, &start, &end)) > 0;)
			if (l->units.n < UNITS_MAX)
				*vec_add(&l->units) =
					(struct unit_range){start, end, dwarf_dieoffset(&die)};
	}
	vec_sort(&l->units, compare_units);
}

/* Without .debug_aranges, which clang does not write, elfutils before 0.190 finds no unit. */
static bool unit_by_range(struct lines *l, uint64_t vaddr, Dwarf_Die *unit, uint64_t *pc)
{
	Dwarf_Addr bias;
	Dwarf *dwarf = dwfl_module_getdwarf(l->module, &bias);
	size_t low = 0, high;

	if (!dwarf)
		return false;
	if (!l->units_read)
		read_units(l, dwarf);
	*pc = vaddr + l->bias - bias;
	high = l->units.n;
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (l->units.p[mid].start <= *pc)
			low = mid + 1;
		else
			high = mid;
	}
	return low && *pc < l->units.p[low - 1].end &&
	       dwarf_offdie(dwarf, l->units.p[low - 1].unit, unit);
}

bool lines_unit(struct lines *l, uint64_t vaddr, Dwarf_Die *unit, uint64_t *pc)
{
	Dwarf_Addr bias;
	Dwarf_Die *found = dwfl_module_addrdie(l->module, vaddr + l->bias, &bias);

	if (!found)
		return unit_by_range(l, vaddr, unit, pc);
	*unit = *found;
	*pc = vaddr + l->bias - bias;
	return true;
}

int lines_at(struct lines *l, uint64_t vaddr, struct line *out)
{
	int number = 0;
	Dwarf_Attribute at;
	Dwarf_Die unit;
	uint64_t pc;
	Dwarf_Line *line = lines_unit(l, vaddr, &unit, &pc) ? dwarf_getsrc_die(&unit, pc) : NULL;
	const char *file = line ? dwarf_linesrc(line, NULL, NULL) : NULL;

	if (!file || dwarf_lineno(line, &number) || number <= 0)
		return -ENOENT;
	*out = (struct line){
		.file = lines_file(
			l, dwarf_formstring(dwarf_attr(&unit, DW_AT_comp_dir, &at)), file),
		.line = number};
	dwarf_linediscriminator(line, &out->discriminator);
	return 0;
}

/* ---- source ---- */

static int read_plain_file(const char *path, struct buf *out)
{
	struct stat st;
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > SOURCE_MAX)
		return -EINVAL;
	buf_reserve(out, (size_t)st.st_size + 1);
	int r = io_pread_full(fd, out->p, (size_t)st.st_size, 0);
	if (!r)
		out->n = (size_t)st.st_size;
	return r;
}

static void read_source(struct source *s, const char *file)
{
	s->read = true;
	if (read_plain_file(file, &s->text) < 0)
		return;
	buf_u8(&s->text, '\n');
	for (size_t at = 0; at < s->text.n;) {
		*vec_add(&s->lines) = (uint32_t)at;
		uint8_t *end = memchr(s->text.p + at, '\n', s->text.n - at);
		*end = 0;
		at = (size_t)(end + 1 - s->text.p);
	}
}

const char *lines_source(struct lines *l, const char *file, int line)
{
	uint32_t number = strtab_add(&l->files, file);
	while (l->sources.n <= number)
		*vec_add(&l->sources) = (struct source){0};
	struct source *s = &l->sources.p[number];
	if (!s->read)
		read_source(s, file);
	if (line < 1 || (size_t)line > s->lines.n)
		return "";
	return (const char *)s->text.p + s->lines.p[line - 1];
}
