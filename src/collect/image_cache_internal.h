/* What the files behind image_cache.h share. */
#ifndef CULPRIT_COLLECT_IMAGE_CACHE_INTERNAL_H
#define CULPRIT_COLLECT_IMAGE_CACHE_INTERNAL_H

#include "base/hmap.h"
#include "base/vec.h"
#include "collect/image_cache.h"
#include "image/jit.h"

#include <sys/types.h>

struct kernel;
struct recorded;

struct identity_entry {
	struct image_id id; /* size 0 is never in */
	uint16_t pad;
	uint32_t number;
};

struct kernel_entry {
	struct image *im;
	uint32_t number;
};

/* One process's perf-PID.map. */
struct jit_entry {
	uint32_t serial;
	pid_t pid;
	uint32_t number; /* 0: it has none */
	uint32_t turn;   /* in which it was last read */
	bool found;      /* source is open */
	struct jit_source source;
};

/* What a number of the file table stands for. */
struct file_slot {
	uint32_t serial, number;
};

struct image_cache {
	VEC(struct cached_image) images;
	VEC(uint32_t) free;
	VEC(struct file_slot) files;
	VEC(uint32_t) held; /* images that hold their file, the oldest first */
	struct hmap identities, kernel_images, jits;
	struct kernel *kernel;
	struct recorded *recorded; /* NULL: of this machine, now */
	bool hidden, refreshed;
	struct image *last_kernel;
	uint32_t last_kernel_number;
	uint32_t turn, flush;
	size_t tables_most;
	struct image *spare; /* opened once more for code only */
	uint32_t spare_number;
};

/* A new image; its identity may be NULL. */
uint32_t images_add(
	struct image_cache *c, enum image_kind kind, const char *path, const struct image_id *id);
void images_remove(struct image_cache *c, uint32_t n);

/* The image as it was just opened becomes the number's; only so many may hold a descriptor. */
void images_attach(struct image_cache *c, uint32_t n, struct image *im, bool holds_file);
void images_drop_tables(struct image_cache *c, uint32_t n);

/* Modules may have come, gone or moved: what was known of their insides is void. */
void images_kernel_changed(struct image_cache *c);
void images_forget_jits(struct image_cache *c, const struct process_table *t);

#endif
