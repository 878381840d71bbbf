#include "image/image.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/io.h"
#include "base/mem.h"
#include "image/elf_file.h"
#include "image/functions.h"
#include "image/image_internal.h"

#define HASH_PREFIX "hash:"

enum {
	CODE_MAX = 64 << 20, /* bytes of one range */
	TRIM_ROWS = 4096, /* what reading a larger image leaves in the heap is worth giving back */
};

/* ---- identity ---- */

const char *image_id_text(const struct image_id *id, char text[static IMAGE_ID_TEXT])
{
	char *at = text;
	if (id->is_hash && id->size)
		at = stpcpy(at, HASH_PREFIX);
	for (size_t i = 0; i < id->size && i < sizeof id->bytes; i++)
		at += sprintf(at, "%02x", id->bytes[i]);
	*at = 0;
	return text;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool image_id_parse(const char *text, struct image_id *id)
{
	struct image_id parsed = {0};
	if (!strncmp(text, HASH_PREFIX, strlen(HASH_PREFIX))) {
		parsed.is_hash = true;
		text += strlen(HASH_PREFIX);
	}
	size_t digits = strlen(text);
	if (digits % 2 || digits > 2 * sizeof parsed.bytes || (parsed.is_hash && !digits))
		return false;
	for (size_t i = 0; i < digits; i += 2) {
		int high = hex_digit(text[i]), low = hex_digit(text[i + 1]);
		if (high < 0 || low < 0)
			return false;
		parsed.bytes[parsed.size++] = (uint8_t)(high << 4 | low);
	}
	*id = parsed;
	return true;
}

bool image_id_equal(const struct image_id *a, const struct image_id *b)
{
	return a->size == b->size && a->is_hash == b->is_hash &&
	       !memcmp(a->bytes, b->bytes, a->size);
}

int image_identify(int fd, struct image_id *id, struct err *e)
{
	char name[32];
	snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
	struct elf_file f;
	int r = elf_file_open(&f, fd, name, e);
	if (r < 0)
		return r;
	r = elf_file_identify(&f, id);
	elf_file_close(&f);
	return r < 0 ? err_errno(e, r, "%s: cannot read it", name) : 0;
}

/* ---- segments ---- */

bool segments_vaddr(const struct segment *s, size_t n, uint64_t offset, uint64_t *vaddr)
{
	for (size_t i = 0; i < n; i++) {
		if (offset < s[i].offset || offset - s[i].offset >= s[i].size)
			continue;
		*vaddr = s[i].vaddr + (offset - s[i].offset);
		return true;
	}
	return false;
}

static int read_segments(struct image *im, const struct elf_file *f, struct err *e)
{
	bool debug = elf_file_is_debug(f);
	for (size_t i = 0; i < f->nsegments; i++) {
		const Elf64_Phdr *p = &f->segments[i];
		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X))
			continue;
		if (p->p_memsz > UINT64_MAX - p->p_vaddr || p->p_filesz > p->p_memsz)
			return err_set(e, -EBADMSG,
				"%s: damaged: an impossible executable segment at 0x%llx", im->path,
				(unsigned long long)p->p_vaddr);
		if (!debug && (p->p_offset > f->size || p->p_filesz > f->size - p->p_offset))
			return err_set(e, -EBADMSG,
				"%s: damaged: the file ends in its executable segment at 0x%llx",
				im->path, (unsigned long long)p->p_vaddr);
		*vec_add(&im->segments) = (struct segment){
			.offset = p->p_offset, .size = p->p_filesz, .vaddr = p->p_vaddr};
	}
	return 0;
}

/* ---- life ---- */

struct image *image_create(enum image_kind kind, const char *path)
{
	struct image *im = xcalloc(1, sizeof *im);
	im->kind = kind;
	im->path = xstrdup(path);
	im->fd = -1;
	return im;
}

void image_destroy(struct image *im)
{
	if (!im)
		return;
	closep(&im->fd);
	vec_deinit(&im->segments);
	procedures_deinit(&im->procedures);
	buf_deinit(&im->bytes);
	free(im->root);
	free(im->path);
	free(im);
}
DEFINE_CLEANUP(struct image, image_destroy)

int image_open(const char *path, int fd, struct image **out, struct err *e)
{
	_cleanup_(image_destroyp) struct image *im = image_create(IMAGE_ELF, path);
	struct elf_file f;
	int r = elf_file_open(&f, fd, path, e);
	if (r < 0)
		return r;
	elf_file_read_sections(&f);
	r = read_segments(im, &f, e);
	if (!r && (r = elf_file_identify(&f, &im->id)) < 0)
		err_errno(e, r, "%s: cannot read it", path);
	elf_file_close(&f);
	if (r < 0)
		return r;
	im->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (im->fd < 0)
		return err_errno(e, -errno, "%s: cannot keep it open", path);
	*out = im;
	im = NULL;
	return 0;
}

int image_open_path(const char *path, struct image **out, struct err *e)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return err_errno(e, -errno, "%s", path);
	return image_open(path, fd, out, e);
}

/* A file that changed since it was opened counts as it is now, or not at all. */
static void need_functions(struct image *im)
{
	struct elf_file f;
	if (im->has_functions)
		return;
	im->has_functions = true;
	if (im->fd >= 0 && elf_file_open(&f, im->fd, im->path, NULL) == 0) {
		elf_file_read_sections(&f);
		functions_read(im->path, &im->id, &f, &im->procedures);
		elf_file_close(&f);
	} else {
		procedures_finish(&im->procedures);
	}
}

void image_release(struct image *im)
{
	need_functions(im);
	closep(&im->fd);
	im->fd = -1;
	if (im->procedures.rows.n > TRIM_ROWS)
		malloc_trim(0);
}

/* ---- questions ---- */

enum image_kind image_kind(const struct image *im)
{
	return im->kind;
}

const char *image_path(const struct image *im)
{
	return im->path;
}

const struct image_id *image_id(const struct image *im)
{
	return &im->id;
}

size_t image_segments(const struct image *im, const struct segment **out)
{
	*out = im->segments.p;
	return im->segments.n;
}

const struct procedure *image_procedure_at(struct image *im, uint64_t vaddr)
{
	need_functions(im);
	return procedures_at(&im->procedures, vaddr);
}

bool image_procedure_start(struct image *im, uint64_t vaddr, uint64_t *start)
{
	need_functions(im);
	return procedures_start(&im->procedures, vaddr, start);
}

size_t image_procedures(struct image *im, const struct procedure **out)
{
	need_functions(im);
	return procedures_all(&im->procedures, out);
}

void image_search(struct image *im, image_likes_fn *likes, image_found_fn *found, void *arg)
{
	need_functions(im);
	procedures_search(&im->procedures, likes, found, arg);
}

void image_forget(struct image *im)
{
	procedures_forget(&im->procedures);
}

size_t image_memory(const struct image *im)
{
	return sizeof *im + strlen(im->path) + 1 + im->segments.space * sizeof *im->segments.p +
	       im->bytes.space + procedures_memory(&im->procedures);
}

const char *procedure_label(
	const struct procedure *p, const char *image_path, char *text, size_t size)
{
	const char *slash = strrchr(image_path, '/');
	if (p->name)
		snprintf(text, size, "%s", p->name);
	else
		snprintf(text, size, "%s!0x%llx", slash ? slash + 1 : image_path,
			(unsigned long long)p->start);
	return text;
}

bool label_address(const char *text, uint64_t *out)
{
	char *end;

	if (text[0] != '0' || (text[1] != 'x' && text[1] != 'X') ||
		!isxdigit((unsigned char)text[2]))
		return false;
	errno = 0;
	*out = strtoull(text, &end, 16);
	return !*end && !errno;
}

/* ---- code ---- */

int image_reopen(const struct image *im)
{
	struct image_id id;
	int fd = open(im->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -ENOENT;
	if (image_identify(fd, &id, NULL) == 0 && image_id_equal(&id, &im->id))
		return fd;
	close(fd);
	return -ENOENT;
}

bool image_hold(struct image *im)
{
	if (im->fd >= 0 || im->bytes.n || im->kind != IMAGE_ELF)
		return false;
	im->fd = image_reopen(im);
	return im->fd >= 0;
}

static int read_file_code(const struct image *im, uint64_t offset, uint64_t size, struct buf *out)
{
	if (im->bytes.n) {
		if (offset > im->bytes.n || size > im->bytes.n - offset)
			return -EBADMSG;
		buf_put(out, im->bytes.p + offset, size);
		return 0;
	}
	_cleanup_close_ int again = im->fd < 0 ? image_reopen(im) : -1;
	int fd = im->fd < 0 ? again : im->fd;
	if (fd < 0)
		return fd;
	struct stat st;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (offset > (uint64_t)st.st_size || size > (uint64_t)st.st_size - offset)
		return -EBADMSG;
	buf_reserve(out, size);
	int r = io_pread_full(fd, out->p + out->n, size, offset);
	if (!r)
		out->n += size;
	return r;
}

int image_code(struct image *im, const struct range *r, struct buf *out)
{
	if (!r->size)
		return 0;
	if (r->size > CODE_MAX)
		return -EFBIG;
	if (im->kind == IMAGE_KERNEL || im->kind == IMAGE_MODULE)
		return im->root ? kcore_read(im->root, r->start + im->bias, r->size, out) : -ENOENT;
	if (im->kind != IMAGE_ELF && im->kind != IMAGE_VDSO)
		return -ENOENT;
	vec_each (s, &im->segments) {
		uint64_t into = r->start - s->vaddr;
		if (r->start >= s->vaddr && into < s->size && r->size <= s->size - into)
			return read_file_code(im, s->offset + into, r->size, out);
	}
	return -ENOENT;
}
