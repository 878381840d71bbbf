/*
 * An x86-64 ELF file whose parts are read when asked for.
 *
 * Everything is read with pread into memory whose size is bounded here: a mapping would end the
 * daemon with SIGBUS when somebody truncates the file, and libelf would load whole sections by the
 * sizes that the file claims. Section headers that are damaged or missing count as none, for the
 * program headers are what the loader goes by.
 */
#ifndef CULPRIT_IMAGE_ELF_FILE_H
#define CULPRIT_IMAGE_ELF_FILE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct image_id;

/* The largest section that is read as a whole; a larger one counts as absent. */
#define ELF_SECTION_MAX ((size_t)64 << 20)

/* Bytes of a file, in memory that goes back to the system at once when they are let go. */
struct bytes {
	uint8_t *p;
	size_t n;
};
void bytes_deinit(struct bytes *b);

struct elf_file {
	int fd; /* the caller's */
	uint64_t size;
	Elf64_Ehdr header;
	Elf64_Phdr *segments;
	size_t nsegments;
	Elf64_Shdr *sections; /* none before elf_file_read_sections */
	size_t nsections;
	struct bytes names;
};

/* Headers and program headers. -ENOEXEC when it is no x86-64 program or library. */
int elf_file_open(struct elf_file *f, int fd, const char *name, struct err *e);
void elf_file_close(struct elf_file *f);

void elf_file_read_sections(struct elf_file *f);
const char *elf_file_section_name(const struct elf_file *f, const Elf64_Shdr *s);
const Elf64_Shdr *elf_file_section(const struct elf_file *f, const char *name); /* or NULL */

/* A file that only holds debug information: its executable sections have no bytes. */
bool elf_file_is_debug(const struct elf_file *f);

/* -EBADMSG when the file does not have these bytes, -EFBIG past ELF_SECTION_MAX. */
int elf_file_read(const struct elf_file *f, uint64_t offset, uint64_t size, struct bytes *out);
int elf_file_read_section(const struct elf_file *f, const Elf64_Shdr *s, struct bytes *out);

/* Where a virtual address lies in the file, and how many bytes of its segment follow. */
bool elf_file_offset(const struct elf_file *f, uint64_t vaddr, uint64_t *offset, uint64_t *left);

/* The build-id, or for want of one a hash of the program headers and the code. */
int elf_file_identify(struct elf_file *f, struct image_id *id);

/* The build-id among notes (the contents of a note section); false when there is none. */
bool notes_build_id(const void *notes, size_t n, size_t align, struct image_id *id);

#endif
