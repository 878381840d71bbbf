#include "edit/elf_out_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>

#include "base/err.h"
#include "base/io.h"
#include "image/image.h"

enum {
	HEADERS_MORE = 16, /* program headers that may be added */
	NOTES_SIZE = 1024, /* room for notes behind the program headers */
	DYNAMIC_MAX = 4096,
};
#define FILE_MAX_SIZE ((uint64_t)1 << 30)
#define REACH         ((uint64_t)3 << 29) /* code reaches 2 GB; the rest is for what is added */

/* ---- files that are left alone ---- */

static bool ends_signed(const struct buf *image)
{
	static const char magic[] = "~Module signature appended~\n";
	size_t n = sizeof magic - 1;

	return image->n >= n && !memcmp(image->p + image->n - n, magic, n);
}

static int check_allowed(const struct elf_out *o, int fd, struct err *e)
{
	static const struct {
		const char *attribute, *words;
	} marks[] = {
		{"security.capability", "it has file capabilities"},
		{"security.ima", "it is signed (IMA)"},
		{"security.evm", "it is signed (EVM)"},
	};

	if (o->mode & (S_ISUID | S_ISGID))
		return err_set(e, -EPERM,
			"%s: it is set-user-ID or set-group-ID: such programs are not edited",
			o->path);
	for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
		if (fgetxattr(fd, marks[i].attribute, NULL, 0) >= 0)
			return err_set(e, -EPERM, "%s: %s, which a copy would lose: not edited",
				o->path, marks[i].words);
	if (ends_signed(&o->image))
		return err_set(e, -EPERM,
			"%s: a signature is appended, which would break: not edited", o->path);
	return 0;
}

static int check_unedited(const struct elf_out *o, struct err *e)
{
	struct edit_note note;
	char text[IMAGE_ID_TEXT];

	if (!edit_note_find(&o->file, &note))
		return 0;
	return err_set(e, -EEXIST, "%s: edited already (%s, of %s): edit the original", o->path,
		note.kind, image_id_text(&note.original, text));
}

/* ---- where things are ---- */

static bool load_is_sound(const struct elf_out *o, const Elf64_Phdr *p)
{
	uint64_t end;

	if (p->p_filesz > p->p_memsz || __builtin_add_overflow(p->p_vaddr, p->p_memsz, &end) ||
		end >= (uint64_t)1 << 47 || (p->p_vaddr - p->p_offset) & (PAGE - 1))
		return false;
	return !p->p_filesz ||
	       (p->p_offset <= o->image.n && p->p_filesz <= o->image.n - p->p_offset);
}

static int place(struct elf_out *o, struct err *e)
{
	uint64_t end = 0, lowest = UINT64_MAX;

	for (size_t i = 0; i < o->file.nsegments; i++) {
		const Elf64_Phdr *p = &o->file.segments[i];
		if (p->p_type != PT_LOAD)
			continue;
		if (!load_is_sound(o, p) || p->p_vaddr < end)
			return err_set(e, -EBADMSG, "%s: damaged: impossible segments", o->path);
		if (lowest == UINT64_MAX) {
			lowest = p->p_vaddr;
			o->base = p->p_vaddr - p->p_offset;
		}
		end = p->p_vaddr + p->p_memsz;
	}
	if (lowest == UINT64_MAX)
		return err_set(e, -ENOEXEC, "%s: it has no segments to load", o->path);
	if (o->base > lowest)
		return err_set(e, -EBADMSG, "%s: damaged: impossible segments", o->path);
	if (o->image.n > end - o->base)
		end = o->base + o->image.n;
	o->data = (end + PAGE - 1) & ~(uint64_t)(PAGE - 1);
	if (o->data - o->base > REACH)
		return err_set(e, -EFBIG, "%s: too large: new code would lie too far from the old",
			o->path);
	return 0;
}

/* ---- the dynamic section ---- */

static uint8_t *bytes_at(const struct elf_out *o, uint64_t vaddr, size_t n)
{
	uint64_t offset, left;

	if (!elf_file_offset(&o->file, vaddr, &offset, &left) || left < n)
		return NULL;
	return o->image.p + offset;
}

/* The entry with this tag, or NULL. Entries end with the first DT_NULL. */
static uint8_t *dynamic_entry(const struct elf_out *o, int64_t tag)
{
	for (size_t i = 0; i < o->file.nsegments; i++) {
		const Elf64_Phdr *p = &o->file.segments[i];
		if (p->p_type != PT_DYNAMIC)
			continue;
		for (uint64_t n = 0; n < p->p_filesz / sizeof(Elf64_Dyn) && n < DYNAMIC_MAX; n++) {
			Elf64_Dyn d;
			uint8_t *at = bytes_at(o, p->p_vaddr + n * sizeof d, sizeof d);
			if (!at)
				return NULL;
			memcpy(&d, at, sizeof d);
			if (d.d_tag == tag)
				return at;
			if (d.d_tag == DT_NULL)
				return NULL;
		}
	}
	return NULL;
}

bool out_dynamic(const struct elf_out *o, int64_t tag, uint64_t *value)
{
	const uint8_t *entry = dynamic_entry(o, tag);

	if (entry)
		memcpy(value, entry + offsetof(Elf64_Dyn, d_un), sizeof *value);
	return entry;
}

bool elf_out_is_fixed(const struct elf_out *o)
{
	return o->file.header.e_type == ET_EXEC;
}

/* A library that can be run (libc) has an interpreter, too; it is still initialised as a library.
 */
static bool is_library(const struct elf_out *o)
{
	uint64_t flags = 0, name;
	bool interpreted = false;

	if (elf_out_is_fixed(o))
		return false;
	if (out_dynamic(o, DT_FLAGS_1, &flags) && flags & DF_1_PIE)
		return false;
	for (size_t i = 0; i < o->file.nsegments; i++)
		interpreted |= o->file.segments[i].p_type == PT_INTERP;
	return !interpreted || out_dynamic(o, DT_SONAME, &name);
}

/* ---- made and unmade ---- */

static int read_all(struct elf_out *o, int fd, struct err *e)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_errno(e, -errno, "%s", o->path);
	if (o->file.size > FILE_MAX_SIZE)
		return err_set(e, -EFBIG, "%s: larger than 1 GB: not edited", o->path);
	o->mode = st.st_mode & 07777;
	buf_reserve(&o->image, o->file.size);
	int r = io_pread_full(fd, o->image.p, o->file.size, 0);
	if (r < 0)
		return err_errno(e, r, "%s: cannot read it", o->path);
	o->image.n = o->file.size;
	return 0;
}

static int take_in(struct elf_out *o, int fd, struct err *e)
{
	int r = elf_file_open(&o->file, fd, o->path, e);

	if (!r)
		r = read_all(o, fd, e);
	if (!r)
		r = check_allowed(o, fd, e);
	if (!r)
		r = check_unedited(o, e);
	if (!r)
		r = place(o, e);
	if (r)
		return r;
	elf_file_read_sections(&o->file);
	r = elf_file_identify(&o->file, &o->note.original);
	if (r < 0)
		return err_errno(e, r, "%s: cannot read it", o->path);
	o->is_library = is_library(o);
	return 0;
}

int elf_out_create(const char *path, int fd, struct elf_out **out, struct err *e)
{
	struct elf_out *o = xcalloc(1, sizeof *o);

	o->path = xstrdup(path);
	o->file.fd = -1;
	strcpy(o->note.kind, "null");
	int r = take_in(o, fd, e);
	if (r) {
		elf_out_destroy(o);
		return r;
	}
	o->file.fd = -1; /* all is read */
	*out = o;
	return 0;
}

void elf_out_destroy(struct elf_out *o)
{
	if (!o)
		return;
	vec_each (s, &o->segments)
		buf_deinit(&s->bytes);
	vec_each (s, &o->sections)
		free(s->name);
	vec_each (s, &o->symbols)
		free(s->name);
	vec_deinit(&o->segments);
	vec_deinit(&o->sections);
	vec_each (r, &o->replaced) {
		free(r->name);
		buf_deinit(&r->bytes);
	}
	vec_deinit(&o->symbols);
	vec_deinit(&o->replaced);
	vec_deinit(&o->slots);
	vec_deinit(&o->moved);
	buf_deinit(&o->image);
	elf_file_close(&o->file);
	free(o->path);
	free(o);
}

const struct elf_file *elf_out_file(const struct elf_out *o)
{
	return &o->file;
}

/* ---- what is added ---- */

uint64_t elf_out_data_at(const struct elf_out *o)
{
	return o->data;
}

uint64_t elf_out_data(struct elf_out *o, uint64_t size)
{
	uint64_t pages = size ? (size + PAGE - 1) & ~(uint64_t)(PAGE - 1) : PAGE;
	struct out_segment *s = vec_add(&o->segments);

	*s = (struct out_segment){.vaddr = o->data, .size = pages, .flags = PF_R | PF_W};
	elf_out_section(
		o, ".culprit.data", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, o->data, pages, 64);
	o->headers = o->data + pages;
	o->headers_size = (o->file.nsegments + HEADERS_MORE) * sizeof(Elf64_Phdr) + NOTES_SIZE;
	return (o->headers + o->headers_size + PAGE - 1) & ~(uint64_t)(PAGE - 1);
}

void elf_out_segment(struct elf_out *o, uint64_t vaddr, uint32_t flags, struct buf *bytes)
{
	if (!bytes->n)
		return;
	*vec_add(&o->segments) = (struct out_segment){
		.vaddr = vaddr, .size = bytes->n, .flags = flags, .bytes = *bytes};
	*bytes = (struct buf){0};
}

void elf_out_zeros(struct elf_out *o, uint64_t vaddr, uint64_t size)
{
	*vec_add(&o->segments) = (struct out_segment){
		.vaddr = vaddr, .size = size, .flags = PF_R | PF_W, .absent = true};
	elf_out_section(o, ".culprit.bss", SHT_NOBITS, SHF_ALLOC | SHF_WRITE, vaddr, size, 64);
}

void elf_out_section(struct elf_out *o, const char *name, uint32_t type, uint64_t flags,
	uint64_t vaddr, uint64_t size, uint64_t align)
{
	*vec_add(&o->sections) = (struct out_section){.name = xstrdup(name),
		.type = type,
		.flags = flags,
		.vaddr = vaddr,
		.size = size,
		.align = align};
}

void elf_out_symbol(struct elf_out *o, const char *name, uint64_t vaddr, uint64_t size)
{
	*vec_add(&o->symbols) =
		(struct out_symbol){.name = xstrdup(name), .vaddr = vaddr, .size = size};
}

void elf_out_replace(struct elf_out *o, const char *name, struct buf *bytes)
{
	*vec_add(&o->replaced) = (struct out_replaced){.name = xstrdup(name),
		.bytes = bytes ? *bytes : (struct buf){0},
		.retired = !bytes};
	if (bytes)
		*bytes = (struct buf){0};
}

void elf_out_unwind(struct elf_out *o, uint64_t vaddr, uint64_t size)
{
	o->unwind = vaddr;
	o->unwind_size = size;
}

void elf_out_describe(struct elf_out *o, const char *kind, const void *more, size_t size)
{
	struct edit_note *n = &o->note;

	snprintf(n->kind, sizeof n->kind, "%s", kind);
	n->size = size < sizeof n->more ? size : sizeof n->more;
	if (n->size)
		memcpy(n->more, more, n->size);
}

/* ---- what is changed ---- */

const struct buf *elf_out_image(const struct elf_out *o)
{
	return &o->image;
}

const uint8_t *elf_out_bytes(const struct elf_out *o, uint64_t vaddr, size_t n)
{
	return bytes_at(o, vaddr, n);
}

void *elf_out_patchable(struct elf_out *o, uint64_t vaddr, size_t n)
{
	return bytes_at(o, vaddr, n);
}

int elf_out_patch(struct elf_out *o, uint64_t vaddr, const void *bytes, size_t n, struct err *e)
{
	uint8_t *at = bytes_at(o, vaddr, n);

	if (!at)
		return err_set(e, -EBADMSG, "%s: damaged: it has no %zu bytes at 0x%lx", o->path, n,
			(unsigned long)vaddr);
	memcpy(at, bytes, n);
	return 0;
}

uint64_t elf_out_first(const struct elf_out *o)
{
	uint64_t init = 0;

	if (!o->is_library)
		return o->file.header.e_entry;
	out_dynamic(o, DT_INIT, &init);
	return init;
}

/* Linkers leave spare entries behind the last one; the last DT_NULL must stay. */
static uint8_t *spare_entry(const struct elf_out *o)
{
	for (size_t i = 0; i < o->file.nsegments; i++) {
		const Elf64_Phdr *p = &o->file.segments[i];
		Elf64_Dyn two[2];
		if (p->p_type != PT_DYNAMIC)
			continue;
		for (uint64_t n = 0; (n + 2) * sizeof *two <= p->p_filesz && n < DYNAMIC_MAX; n++) {
			uint8_t *at = bytes_at(o, p->p_vaddr + n * sizeof *two, sizeof two);
			if (!at)
				return NULL;
			memcpy(two, at, sizeof two);
			if (two[0].d_tag == DT_NULL)
				return two[1].d_tag == DT_NULL ? at : NULL;
		}
	}
	return NULL;
}

int elf_out_start(struct elf_out *o, uint64_t vaddr, struct err *e)
{
	Elf64_Dyn init = {.d_tag = DT_INIT, .d_un.d_ptr = vaddr};

	if (!o->is_library) {
		memcpy(o->image.p + offsetof(Elf64_Ehdr, e_entry), &vaddr, sizeof vaddr);
		return 0;
	}
	uint8_t *entry = dynamic_entry(o, DT_INIT);
	if (!entry)
		entry = spare_entry(o);
	if (!entry)
		return err_set(e, -ENOSPC,
			"%s: its dynamic section has no room for an initialiser: not edited",
			o->path);
	memcpy(entry, &init, sizeof init);
	return 0;
}

uint64_t elf_out_last(const struct elf_out *o)
{
	uint64_t last = 0;

	out_dynamic(o, DT_FINI, &last);
	return last;
}

bool elf_out_finish(struct elf_out *o, uint64_t vaddr)
{
	uint8_t *entry = dynamic_entry(o, DT_FINI);

	if (entry)
		memcpy(entry + offsetof(Elf64_Dyn, d_un), &vaddr, sizeof vaddr);
	return entry;
}
