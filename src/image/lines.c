#include "image/lines_internal.h"

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

enum { SOURCE_MAX = 32 << 20 };

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

int lines_at(struct lines *l, uint64_t vaddr, struct line *out)
{
	Dwfl_Line *line = dwfl_module_getsrc(l->module, vaddr + l->bias);
	int number = 0;
	const char *file = line ? dwfl_lineinfo(line, NULL, &number, NULL, NULL, NULL) : NULL;
	if (!file || number <= 0)
		return -ENOENT;
	*out = (struct line){.file = lines_file(l, dwfl_line_comp_dir(line), file), .line = number};
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
