/*
 * An ELF file with segments added: what the file had stays at its addresses, and is patched in
 * place.
 *
 *     elf_out_create(path, fd, &o, &err);
 *     data = elf_out_data_at(o);            // new data, RW, comes first; it may grow until
 *     text = elf_out_data(o, size);         // its size is settled: then all else comes behind
 *     elf_out_segment(o, text, PF_R | PF_X, &code);
 *     elf_out_patch(...);
 *     elf_out_write(o, "/tmp/edited", &err);
 *
 * The program headers move behind the data, where there is room for more. New segments lie in the
 * file as far from its start as in memory from the lowest address: kernels before 5.18 and static
 * programs find the program headers that way. Data stands first and ends with a page, because
 * strip and objcopy put program headers right behind what precedes them in the file: so they find
 * nothing to shift.
 */
#ifndef CULPRIT_EDIT_ELF_OUT_H
#define CULPRIT_EDIT_ELF_OUT_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct edit_note;
struct elf_file;
struct elf_out;
struct err;

/*
 * Reads the whole file; fd stays the caller's and is not needed afterwards. -EPERM for what must
 * not be edited (set-user-ID, capabilities, signed), -EEXIST for what is edited already, -ENOEXEC,
 * -EBADMSG, -EFBIG.
 */
int elf_out_create(const char *path, int fd, struct elf_out **out, struct err *e);
void elf_out_destroy(struct elf_out *o);
const struct elf_file *elf_out_file(const struct elf_out *o); /* its headers, as they were */

uint64_t elf_out_data_at(const struct elf_out *o);
/* Once, with the size of the data: returns the page where further segments may begin. */
uint64_t elf_out_data(struct elf_out *o, uint64_t size);

bool elf_out_is_fixed(const struct elf_out *o); /* it runs at the addresses that it says */

/* The whole file as it was, but for what was patched. */
const struct buf *elf_out_image(const struct elf_out *o);

/* What the file has at an address; NULL when it has not so many bytes there. */
const uint8_t *elf_out_bytes(const struct elf_out *o, uint64_t vaddr, size_t n);
int elf_out_patch(struct elf_out *o, uint64_t vaddr, const void *bytes, size_t n, struct err *e);
void *elf_out_patchable(struct elf_out *o, uint64_t vaddr, size_t n); /* or NULL */

/*
 * Makes an absolute word of the file point elsewhere: the word and the relative relocation on it.
 * -ENOENT when the file is loaded anywhere and nothing relocates the word.
 */
int elf_out_pointer(struct elf_out *o, uint64_t slot, uint64_t target, struct err *e);

/*
 * Shows all dynamic symbols, which may be changed. False when no section says how many there are.
 */
typedef void elf_out_symbol_fn(void *arg, Elf64_Sym *symbol);
bool elf_out_dynamic_symbols(struct elf_out *o, elf_out_symbol_fn *show, void *arg);

/* The same of those that a relocation asks for at a distance from what they say. */
void elf_out_offset_symbols(struct elf_out *o, elf_out_symbol_fn *show, void *arg);

/* A new segment, by ascending addresses on pages of their own; takes the bytes away. */
void elf_out_segment(struct elf_out *o, uint64_t vaddr, uint32_t flags, struct buf *bytes);

/* The address behind all segments that the file has. */
uint64_t elf_out_end(const struct elf_out *o);

/* The last segment: memory that is zero at first and takes no room in the file. */
void elf_out_zeros(struct elf_out *o, uint64_t vaddr, uint64_t size);

/*
 * A section header over a part of a new segment. The old section of that name, if there is one, is
 * called NAME.old from now on.
 */
void elf_out_section(struct elf_out *o, const char *name, uint32_t type, uint64_t flags,
	uint64_t vaddr, uint64_t size, uint64_t align);

/*
 * What a section shall hold that is not loaded; it is made when the file has none. Takes the bytes
 * away. NULL: the section, if there is one, is called NAME.old from now on.
 */
void elf_out_replace(struct elf_out *o, const char *name, struct buf *bytes);

/* A function for .symtab, which is made when the file has none. */
void elf_out_symbol(struct elf_out *o, const char *name, uint64_t vaddr, uint64_t size);

/* What runs first (0: nothing does): the entry of a program, the initialiser of a library. */
uint64_t elf_out_first(const struct elf_out *o);
int elf_out_start(struct elf_out *o, uint64_t vaddr, struct err *e); /* run this first */

/* What the dynamic linker runs last of the file (0: nothing). */
uint64_t elf_out_last(const struct elf_out *o);
bool elf_out_finish(struct elf_out *o, uint64_t vaddr); /* run this instead; false: no room */

/* The table of unwinding (.eh_frame_hdr) that the loader's lists shall name. */
void elf_out_unwind(struct elf_out *o, uint64_t vaddr, uint64_t size);

/* What edit_note_find shall find (edit/note.h); without, the kind is "null". Copied. */
void elf_out_describe(struct elf_out *o, const char *kind, const void *more, size_t size);

/*
 * Once, at the end. The file appears under its name when it is complete, with the permissions of
 * the original and a build-id of its own; on failure nothing is left.
 */
int elf_out_write(struct elf_out *o, const char *path, struct err *e);

#endif
