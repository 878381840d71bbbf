/*
 * What an image is made of, for the files of this room that make images.
 */
#ifndef CULPRIT_IMAGE_INTERNAL_H
#define CULPRIT_IMAGE_INTERNAL_H

#include "base/buf.h"
#include "base/vec.h"
#include "image/image.h"
#include "image/procedures.h"

struct image {
	enum image_kind kind;
	char *path;
	struct image_id id;
	VEC(struct segment) segments;
	int fd; /* of an ELF file, -1 once it is released */
	bool has_functions;
	struct procedures procedures;
	struct buf bytes; /* of an image that is in no file (the vDSO) */
	char *root;       /* of a kernel image: where its /proc is; NULL when code cannot be read */
	uint64_t bias;    /* of a kernel image: run-time address minus vaddr */
};

/* An image without segments and functions, which the caller adds. */
struct image *image_create(enum image_kind kind, const char *path);

/* The file again, if it is still the same image; -ENOENT when it is not. The caller closes it. */
int image_reopen(const struct image *im);

/* /proc/kcore: the bytes at a run-time address; -ENOENT when it may not be read or has none there.
 */
int kcore_read(const char *root, uint64_t address, uint64_t size, struct buf *out);

#endif
