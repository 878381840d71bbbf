#include "edit/elf_out_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/hmap.h"
#include "base/io.h"

enum { BUILD_ID_SIZE = 20 };

/* ---- identity ---- */

/* Follows from everything that is new: two edits that differ have different ones. */
static void fresh_id(const struct elf_out *o, size_t size, uint8_t *id)
{
	uint64_t sum[3] = {hash_bytes(o->image.p, o->image.n), 0, 0};

	vec_each (s, &o->segments) {
		sum[1] = s->vaddr;
		sum[2] = hash_bytes(s->bytes.p, s->bytes.n);
		sum[0] = hash_bytes(sum, sizeof sum);
	}
	for (size_t at = 0; at < size; at += 8) {
		sum[1] = at;
		sum[2] = hash_bytes(o->note.more, o->note.size);
		uint64_t word = hash_bytes(sum, sizeof sum);
		memcpy(id + at, &word, size - at < 8 ? size - at : 8);
	}
}

static void put_build_id_head(struct buf *out, uint32_t size)
{
	buf_u32(out, 4);
	buf_u32(out, size);
	buf_u32(out, NT_GNU_BUILD_ID);
	buf_put(out, "GNU", 4);
}

/* In a part of the file, puts `fresh` where a note has `id`. */
static void replace_id(struct elf_out *o, uint64_t offset, uint64_t size, const struct image_id *id,
	const uint8_t *fresh)
{
	struct buf old = {0};

	if (offset > o->image.n || size > o->image.n - offset)
		return;
	put_build_id_head(&old, id->size);
	buf_put(&old, id->bytes, id->size);
	uint8_t *at = memmem(o->image.p + offset, size, old.p, old.n);
	if (at)
		memcpy(at + old.n - id->size, fresh, id->size);
	buf_deinit(&old);
}

/* A build-id is replaced where it is; a file without one gets one. */
static void give_identity(struct elf_out *o, struct buf *notes)
{
	const struct image_id *id = &o->note.original;
	uint8_t fresh[sizeof id->bytes];

	if (id->is_hash) {
		fresh_id(o, BUILD_ID_SIZE, fresh);
		put_build_id_head(notes, BUILD_ID_SIZE);
		buf_put(notes, fresh, BUILD_ID_SIZE);
		return;
	}
	fresh_id(o, id->size, fresh);
	for (size_t i = 0; i < o->file.nsegments; i++) {
		const Elf64_Phdr *p = &o->file.segments[i];
		if (p->p_type == PT_NOTE)
			replace_id(o, p->p_offset, p->p_filesz, id, fresh);
	}
	for (size_t i = 0; i < o->file.nsections; i++) {
		const Elf64_Shdr *s = &o->file.sections[i];
		if (s->sh_type == SHT_NOTE)
			replace_id(o, s->sh_offset, s->sh_size, id, fresh);
	}
}

/* ---- program headers ---- */

struct headers {
	VEC(Elf64_Phdr) all;
	struct buf notes;
	uint64_t notes_at;
};

static Elf64_Phdr header_of(const struct elf_out *o, uint32_t type, uint32_t flags, uint64_t vaddr,
	uint64_t size, uint64_t align)
{
	return (Elf64_Phdr){.p_type = type,
		.p_flags = flags,
		.p_offset = out_offset(o, vaddr),
		.p_vaddr = vaddr,
		.p_paddr = vaddr,
		.p_filesz = size,
		.p_memsz = size,
		.p_align = align};
}

static void put_loads(const struct elf_out *o, struct headers *h, uint64_t size)
{
	vec_each (s, &o->segments) {
		Elf64_Phdr *p = vec_add(&h->all);
		*p = header_of(o, PT_LOAD, s->flags, s->vaddr, s->size, PAGE);
		if (s->absent) {
			p->p_offset = out_offset(o, o->data); /* any page of the file */
			p->p_filesz = 0;
		}
		if (s == o->segments.p) /* the data: the headers are next */
			*vec_add(&h->all) = header_of(o, PT_LOAD, PF_R, o->headers, size, PAGE);
	}
}

static size_t count_headers(const struct elf_out *o)
{
	size_t n = o->file.nsegments + o->segments.n + 2; /* also the headers' own, and the note */
	bool unwinds = !o->unwind;

	for (size_t i = 0; i < o->file.nsegments; i++)
		unwinds |= o->file.segments[i].p_type == PT_GNU_EH_FRAME;
	return n + !unwinds;
}

/* Old ones keep their order, since the loader's rules about it were met; new ones follow theirs. */
static void make_headers(const struct elf_out *o, struct headers *h)
{
	size_t n = count_headers(o), last = 0, table = n * sizeof(Elf64_Phdr);
	bool unwinds = !o->unwind;

	for (size_t i = 0; i < o->file.nsegments; i++)
		if (o->file.segments[i].p_type == PT_LOAD)
			last = i;
	h->notes_at = o->headers + table;
	for (size_t i = 0; i < o->file.nsegments; i++) {
		Elf64_Phdr p = o->file.segments[i];
		if (p.p_type == PT_PHDR)
			p = header_of(o, PT_PHDR, p.p_flags, o->headers, table, 8);
		if (p.p_type == PT_GNU_EH_FRAME && o->unwind) {
			p = header_of(o, p.p_type, PF_R, o->unwind, o->unwind_size, 4);
			unwinds = true;
		}
		*vec_add(&h->all) = p;
		if (i == last)
			put_loads(o, h, table + h->notes.n);
	}
	*vec_add(&h->all) = header_of(o, PT_NOTE, PF_R, h->notes_at, h->notes.n, 4);
	if (!unwinds)
		*vec_add(&h->all) =
			header_of(o, PT_GNU_EH_FRAME, PF_R, o->unwind, o->unwind_size, 4);
}

static void make_notes(struct elf_out *o, struct headers *h)
{
	size_t own;

	give_identity(o, &h->notes);
	own = h->notes.n;
	edit_note_put(&h->notes, &o->note);
	make_headers(o, h);
	if (own)
		elf_out_section(o, ".note.gnu.build-id", SHT_NOTE, SHF_ALLOC, h->notes_at, own, 4);
	elf_out_section(
		o, ".note.culprit", SHT_NOTE, SHF_ALLOC, h->notes_at + own, h->notes.n - own, 4);
}

/* ---- the file ---- */

uint64_t elf_out_end(const struct elf_out *o)
{
	uint64_t end = o->headers + o->headers_size;

	vec_each (s, &o->segments)
		if (!s->absent && s->vaddr + s->size > end)
			end = s->vaddr + s->size;
	return end;
}

static uint64_t end_of_segments(const struct elf_out *o)
{
	return (out_offset(o, elf_out_end(o)) + 7) & ~(uint64_t)7;
}

static int write_parts(struct elf_out *o, int fd)
{
	struct headers h = {0};
	struct buf tables = {0};
	Elf64_Ehdr header;
	uint64_t end = end_of_segments(o);

	make_notes(o, &h);
	memcpy(&header, o->image.p, sizeof header);
	header.e_phoff = out_offset(o, o->headers);
	header.e_phnum = (uint16_t)h.all.n;
	out_sections(o, &header, end, &tables);
	memcpy(o->image.p, &header, sizeof header);

	int r = io_pwrite_full(fd, o->image.p, o->image.n, 0);
	vec_each (s, &o->segments)
		if (!r)
			r = io_pwrite_full(fd, s->bytes.p, s->bytes.n, out_offset(o, s->vaddr));
	if (!r)
		r = io_pwrite_full(fd, h.all.p, h.all.n * sizeof *h.all.p, header.e_phoff);
	if (!r)
		r = io_pwrite_full(fd, h.notes.p, h.notes.n, out_offset(o, h.notes_at));
	if (!r)
		r = io_pwrite_full(fd, tables.p, tables.n, end);
	if (!r && ftruncate(fd, (off_t)(end + tables.n)) < 0)
		r = -errno;
	vec_deinit(&h.all);
	buf_deinit(&h.notes);
	buf_deinit(&tables);
	return r;
}

static int write_new(struct elf_out *o, int fd)
{
	int r = write_parts(o, fd);

	if (!r && fchmod(fd, o->mode) < 0)
		r = -errno;
	if (close(fd) < 0 && !r)
		r = -errno;
	return r;
}

int elf_out_write(struct elf_out *o, const char *path, struct err *e)
{
	_cleanup_free_ char *fresh = xasprintf("%s.XXXXXX", path);

	if (!o->headers)
		elf_out_data(o, 0);
	int fd = mkostemp(fresh, O_CLOEXEC);
	if (fd < 0)
		return err_errno(e, -errno, "%s: cannot make it", path);
	int r = write_new(o, fd);
	if (!r && rename(fresh, path) < 0)
		r = -errno;
	if (r < 0) {
		unlink(fresh);
		return err_errno(e, r, "%s: cannot write it", path);
	}
	return 0;
}
