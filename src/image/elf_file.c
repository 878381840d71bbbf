#include "image/elf_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/cursor.h"
#include "base/err.h"
#include "base/io.h"
#include "base/mem.h"
#include "image/image.h"

enum {
	SEGMENTS_MAX = 512,
	NOTES_MAX = 1 << 16,
	SECTION_NAMES_MAX = 1 << 20,
	HASH_CHUNK = 1 << 16,
	HASH_MAX = 256 << 20, /* of code; more does not tell programs apart better */
};

void bytes_deinit(struct bytes *b)
{
	if (b->p)
		munmap(b->p, b->n);
	*b = (struct bytes){0};
}

/* ---- headers ---- */

static int check_header(const Elf64_Ehdr *h, const char *name, struct err *e)
{
	if (memcmp(h->e_ident, ELFMAG, SELFMAG))
		return err_set(e, -ENOEXEC, "%s: not an ELF file", name);
	if (h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_ident[EI_DATA] != ELFDATA2LSB ||
		h->e_machine != EM_X86_64)
		return err_set(e, -ENOEXEC, "%s: an ELF file, but not for x86-64", name);
	if (h->e_type != ET_EXEC && h->e_type != ET_DYN)
		return err_set(e, -ENOEXEC, "%s: neither a program nor a shared library", name);
	return 0;
}

static int read_segments(struct elf_file *f, const char *name, struct err *e)
{
	const Elf64_Ehdr *h = &f->header;
	size_t n = h->e_phnum;
	if (!n)
		return 0;
	if (n > SEGMENTS_MAX || h->e_phentsize != sizeof(Elf64_Phdr))
		return err_set(e, -EBADMSG, "%s: damaged: impossible program headers", name);
	if (h->e_phoff > f->size || n * sizeof(Elf64_Phdr) > f->size - h->e_phoff)
		return err_set(
			e, -EBADMSG, "%s: damaged: the file ends before its program headers", name);

	f->segments = xcalloc(n, sizeof *f->segments);
	int r = io_pread_full(f->fd, f->segments, n * sizeof *f->segments, h->e_phoff);
	if (r < 0)
		return err_errno(e, r, "%s: cannot read its program headers", name);
	f->nsegments = n;
	return 0;
}

int elf_file_open(struct elf_file *f, int fd, const char *name, struct err *e)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return err_errno(e, -errno, "%s", name);
	if (!S_ISREG(st.st_mode))
		return err_set(e, -ENOEXEC, "%s: not a plain file", name);

	struct elf_file file = {.fd = fd, .size = (uint64_t)st.st_size};
	size_t got = file.size < sizeof file.header ? file.size : sizeof file.header;
	int r = io_pread_full(fd, &file.header, got, 0);
	if (r < 0)
		return err_errno(e, r, "%s: cannot read it", name);
	if (got < sizeof file.header && !memcmp(file.header.e_ident, ELFMAG, SELFMAG))
		return err_set(e, -EBADMSG, "%s: damaged: the file ends in its ELF header", name);
	r = check_header(&file.header, name, e);
	if (!r)
		r = read_segments(&file, name, e);
	if (r < 0) {
		elf_file_close(&file);
		return r;
	}
	*f = file;
	return 0;
}

void elf_file_close(struct elf_file *f)
{
	free(f->segments);
	free(f->sections);
	bytes_deinit(&f->names);
	*f = (struct elf_file){.fd = -1};
}

void elf_file_read_sections(struct elf_file *f)
{
	const Elf64_Ehdr *h = &f->header;
	size_t n = h->e_shnum;
	if (f->sections || !n || h->e_shentsize != sizeof(Elf64_Shdr) || h->e_shoff > f->size ||
		n * sizeof(Elf64_Shdr) > f->size - h->e_shoff || h->e_shstrndx >= n)
		return;

	_cleanup_free_ Elf64_Shdr *sections = xcalloc(n, sizeof *sections);
	if (io_pread_full(f->fd, sections, n * sizeof *sections, h->e_shoff) < 0)
		return;
	const Elf64_Shdr *names = &sections[h->e_shstrndx];
	if (names->sh_size > SECTION_NAMES_MAX || elf_file_read_section(f, names, &f->names) < 0)
		return;
	f->sections = sections;
	f->nsections = n;
	sections = NULL;
}

const char *elf_file_section_name(const struct elf_file *f, const Elf64_Shdr *s)
{
	struct cursor c = cursor_over(f->names.p, f->names.n);
	cursor_seek(&c, s->sh_name);
	return cursor_str(&c);
}

const Elf64_Shdr *elf_file_section(const struct elf_file *f, const char *name)
{
	for (size_t i = 1; i < f->nsections; i++) {
		if (!strcmp(elf_file_section_name(f, &f->sections[i]), name))
			return &f->sections[i];
	}
	return NULL;
}

bool elf_file_is_debug(const struct elf_file *f)
{
	bool code = false;
	for (size_t i = 1; i < f->nsections; i++) {
		const Elf64_Shdr *s = &f->sections[i];
		if (!(s->sh_flags & SHF_EXECINSTR) || !s->sh_size)
			continue;
		if (s->sh_type != SHT_NOBITS)
			return false;
		code = true;
	}
	return code;
}

/* ---- contents ---- */

int elf_file_read(const struct elf_file *f, uint64_t offset, uint64_t size, struct bytes *out)
{
	if (offset > f->size || size > f->size - offset)
		return -EBADMSG;
	if (size > ELF_SECTION_MAX)
		return -EFBIG;
	struct bytes b = {0};
	if (size) {
		void *p = mmap(
			NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p == MAP_FAILED)
			return -errno;
		b = (struct bytes){.p = p, .n = size};
		int r = io_pread_full(f->fd, b.p, size, offset);
		if (r < 0) {
			bytes_deinit(&b);
			return r;
		}
	}
	*out = b;
	return 0;
}

int elf_file_read_section(const struct elf_file *f, const Elf64_Shdr *s, struct bytes *out)
{
	if (s->sh_type == SHT_NOBITS || s->sh_flags & SHF_COMPRESSED)
		return -ENOENT;
	return elf_file_read(f, s->sh_offset, s->sh_size, out);
}

bool elf_file_offset(const struct elf_file *f, uint64_t vaddr, uint64_t *offset, uint64_t *left)
{
	for (size_t i = 0; i < f->nsegments; i++) {
		const Elf64_Phdr *p = &f->segments[i];
		if (p->p_type != PT_LOAD || vaddr < p->p_vaddr || vaddr - p->p_vaddr >= p->p_filesz)
			continue;
		*offset = p->p_offset + (vaddr - p->p_vaddr);
		*left = p->p_filesz - (vaddr - p->p_vaddr);
		return true;
	}
	return false;
}

/* ---- identity ---- */

bool notes_build_id(const void *notes, size_t n, size_t align, struct image_id *id)
{
	struct cursor c = cursor_over(notes, n);
	while (cursor_left(&c) >= sizeof(Elf64_Nhdr)) {
		size_t name_size = cursor_u32(&c), size = cursor_u32(&c);
		uint32_t type = cursor_u32(&c);
		const void *name = cursor_bytes(&c, name_size);
		cursor_skip(&c, -cursor_offset(&c) & (align - 1));
		const void *desc = cursor_bytes(&c, size);
		if (c.failed)
			return false;
		if (type == NT_GNU_BUILD_ID && name_size == 4 && !memcmp(name, "GNU", 4) && size &&
			size <= sizeof id->bytes) {
			*id = (struct image_id){.size = (uint8_t)size};
			memcpy(id->bytes, desc, size);
			return true;
		}
		cursor_skip(&c, -cursor_offset(&c) & (align - 1));
	}
	return false;
}

static bool build_id_in(const struct elf_file *f, uint64_t offset, uint64_t size, uint64_t align,
	struct image_id *id)
{
	_cleanup_(bytes_deinit) struct bytes notes = {0};
	if (size > NOTES_MAX || elf_file_read(f, offset, size, &notes) < 0)
		return false;
	return notes_build_id(notes.p, notes.n, align == 8 ? 8 : 4, id);
}

static bool find_build_id(struct elf_file *f, struct image_id *id)
{
	for (size_t i = 0; i < f->nsegments; i++) {
		const Elf64_Phdr *p = &f->segments[i];
		if (p->p_type == PT_NOTE &&
			build_id_in(f, p->p_offset, p->p_filesz, p->p_align, id))
			return true;
	}
	elf_file_read_sections(f);
	const Elf64_Shdr *s = elf_file_section(f, ".note.gnu.build-id");
	return s && s->sh_type == SHT_NOTE &&
	       build_id_in(f, s->sh_offset, s->sh_size, s->sh_addralign, id);
}

struct digest {
	uint64_t lanes[2];
	uint64_t left; /* bytes of code still to be taken */
};

static uint64_t fold(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;
	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Two lanes of folded multiplication, 128 bits in all; pieces but the last are multiples of 16. */
static void digest_add(struct digest *d, const void *data, size_t n)
{
	const uint64_t k1 = 0x9e3779b97f4a7c15, k2 = 0xc2b2ae3d27d4eb4f, k3 = 0x165667b19e3779f9;
	const uint8_t *p = data;
	for (size_t at = 0; at < n; at += 16) {
		uint64_t w[2] = {0};
		memcpy(w, p + at, n - at < 16 ? n - at : 16);
		d->lanes[0] = fold(d->lanes[0] ^ w[0] ^ k1, w[1] ^ k2) + w[1];
		d->lanes[1] = fold(d->lanes[1] ^ w[1] ^ k3, w[0] ^ k1) + w[0];
	}
	d->lanes[0] ^= n;
}

/* A segment that reaches past the end of the file counts as far as it goes. */
static int digest_segment(const struct elf_file *f, const Elf64_Phdr *p, struct digest *d)
{
	uint64_t at = p->p_offset, end = f->size;
	uint64_t size = p->p_filesz < d->left ? p->p_filesz : d->left;
	if (at < end && size < end - at)
		end = at + size;
	_cleanup_free_ uint8_t *chunk = xmalloc(HASH_CHUNK);
	while (at < end) {
		size_t n = end - at < HASH_CHUNK ? end - at : HASH_CHUNK;
		int r = io_pread_full(f->fd, chunk, n, at);
		if (r < 0)
			return r;
		digest_add(d, chunk, n);
		d->left -= n;
		at += n;
	}
	return 0;
}

int elf_file_identify(struct elf_file *f, struct image_id *id)
{
	if (find_build_id(f, id))
		return 0;
	struct digest d = {.left = HASH_MAX};
	digest_add(&d, f->segments, f->nsegments * sizeof *f->segments);
	for (size_t i = 0; i < f->nsegments; i++) {
		const Elf64_Phdr *p = &f->segments[i];
		int r = 0;
		if (p->p_type == PT_LOAD && p->p_flags & PF_X)
			r = digest_segment(f, p, &d);
		if (r < 0)
			return r;
	}
	*id = (struct image_id){.size = sizeof d.lanes, .is_hash = true};
	memcpy(id->bytes, d.lanes, sizeof d.lanes);
	return 0;
}
