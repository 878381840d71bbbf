/*
 * The constant data of an ELF image: what the program can read and never writes once it runs. That
 * is its segments without write permission, and what the loader makes read-only after relocation
 * (RELRO), here with its relative relocations done. Words that depend on other images are absent.
 *
 * Everything is read at the start, so the file may go away; memory is about the size of the file.
 */
#ifndef CULPRIT_IMAGE_DATA_H
#define CULPRIT_IMAGE_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct image;
struct image_data;

/* -ENOENT when the file is gone or is no ELF file; -EBADMSG when it is damaged. */
int image_data_open(struct image *im, struct image_data **out);
void image_data_destroy(struct image_data *d);

/* 0, or -ENOENT where some of the bytes are not constant. */
int image_data_read(const struct image_data *d, uint64_t vaddr, void *out, size_t n);

/* A word of data that holds the address of code. */
struct code_slot {
	uint64_t target, slot;
};

/*
 * All of them by target, then slot: words with a relative relocation, and where the image is linked
 * to a fixed address, every aligned word that could be one.
 */
size_t image_data_code_slots(const struct image_data *d, const struct code_slot **out);
bool image_data_has_code_slot(const struct image_data *d, uint64_t target);

/* Landing pads of exceptions: where unwinding enters functions; ascending, each once. */
size_t image_data_landing_pads(const struct image_data *d, const uint64_t **out);

/* Linked to a fixed address: addresses may stand in the code as they are. */
bool image_data_is_fixed(const struct image_data *d);

#endif
