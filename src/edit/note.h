/*
 * The note by which an edited file is recognised: which file it was made of, and what for.
 */
#ifndef CULPRIT_EDIT_NOTE_H
#define CULPRIT_EDIT_NOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "image/image.h"

struct buf;
struct elf_file;

#define EDIT_KIND_MAX 16
#define EDIT_MORE_MAX 256

struct edit_note {
	struct image_id original;
	char kind[EDIT_KIND_MAX];    /* "null", "exact", ... */
	uint8_t more[EDIT_MORE_MAX]; /* the kind's own, such as where the counters are */
	size_t size;
};

/* Appends it as an ELF note, aligned to 4. */
void edit_note_put(struct buf *out, const struct edit_note *note);
/* The first such note of a file; false when it has none. */
bool edit_note_find(const struct elf_file *f, struct edit_note *out);

#endif
