/*
 * The extents of functions from .eh_frame, which survives stripping: one frame description entry
 * (FDE) for each function, or for each half of one that the compiler split.
 */
#ifndef CULPRIT_IMAGE_EH_FRAME_H
#define CULPRIT_IMAGE_EH_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

struct elf_file;

struct fde {
	uint64_t start, size;
	uint64_t lsda; /* the address of what its exceptions are handled by, 0: none */
	bool midframe; /* entered with something on the stack beside the return address */
};

struct fdes {
	VEC(struct fde) list; /* in the order of the section: a half stands behind its function */
};

/* Parses a section that is loaded at vaddr. -EBADMSG when it is damaged; out has what is sound. */
int eh_frame_parse(const void *p, size_t n, uint64_t vaddr, struct fdes *out);

/* The same for a file: by its section, or through PT_GNU_EH_FRAME. -ENOENT when it has none. */
int eh_frame_read(const struct elf_file *f, struct fdes *out);

struct pads {
	VEC(uint64_t) list; /* addresses of landing pads */
};

/*
 * Adds the landing pads of a function from its language-specific data (the format that all
 * compilers of C++ and Rust share); -EBADMSG when it is damaged or of another format.
 */
int eh_frame_pads(const void *lsda, size_t n, uint64_t vaddr, uint64_t function, struct pads *out);

#endif
