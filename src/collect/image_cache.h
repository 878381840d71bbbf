/*
 * The images that samples fall into, each with a number.
 *
 * Images are told apart by identity; one whose file was never opened and whose record brought no
 * build-id is told apart by its mapped file. A file is opened and identified when it is first
 * named, while somebody still has it; its functions are read when a flush first asks for them, and
 * dropped again when they take too much memory: the footprint of what got samples stays. Numbers
 * are good until image_cache_flushed.
 */
#ifndef CULPRIT_COLLECT_IMAGE_CACHE_H
#define CULPRIT_COLLECT_IMAGE_CACHE_H

#include "collect/image_cache_footprint.h"
#include "image/image.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;
struct image_cache;
struct process;
struct process_table;
struct recorded;

/* Numbers that are always there. */
enum {
	IMAGE_NUMBER_UNKNOWN, /* "[unknown]" */
	IMAGE_NUMBER_ANON,    /* "[anon]" */
	IMAGE_NUMBER_KERNEL,  /* the kernel when its symbols are not read */
	IMAGE_NUMBER_VDSO,
	IMAGE_NUMBERS,
};

struct cached_image {
	enum image_kind kind;
	char *path; /* NULL: a free number */
	struct image_id id;
	uint64_t key;             /* what stands for it in profiles (store/edges.h) */
	struct segment *segments; /* none while the file could not be opened */
	size_t nsegments;
	struct footprint footprint;
	int64_t store_id, stored_id; /* in the flush under way; in the last that went well, or 0 */
	/* The cache's own. */
	uint32_t file, file_serial; /* where to find the file again */
	struct image *im;           /* NULL when it is not read */
	bool borrowed;              /* im belongs to the kernel's images */
	bool holds_file;            /* im was not released yet */
	uint32_t asked;             /* turn of the last who wanted its functions; 0: none */
	uint32_t used;              /* flush that last met it */
	uint32_t tried;             /* turn in which opening last failed */
};

/* `root` stands for / where the kernel's symbols are read; "" but in tests. */
struct image_cache *image_cache_create(const char *root, bool kernel);
/* Of a recording: nothing is asked of this machine but what `recorded` finds, which stays the
 * caller's. */
struct image_cache *image_cache_create_recorded(struct recorded *recorded);
void image_cache_destroy(struct image_cache *c);
bool image_cache_kernel_hidden(const struct image_cache *c);

/* The image of a mapped file; opens it at first sight. */
uint32_t image_cache_of_file(struct image_cache *c, const struct process_table *t, uint32_t file);

/* The image and offset of a kernel address. */
uint32_t image_cache_of_kernel(struct image_cache *c, uint64_t address, uint64_t *offset);

/* The number of the kernel's nth image, itself and then its modules; false after the last. */
bool image_cache_kernel_image(struct image_cache *c, size_t n, uint32_t *number);

/* The process made code in memory: finds where its map will be, while the process is there. */
void image_cache_expect_memory(struct image_cache *c, const struct process *p);

/*
 * The image of code that a process has in memory without a file: of its perf-PID.map where that
 * covers pc, else IMAGE_NUMBER_ANON. The map is read again for an unknown address, at most once a
 * turn. Offsets are addresses.
 */
uint32_t image_cache_of_memory(struct image_cache *c, const struct process *p, uint64_t pc);

/* The image, as one that the flush under way has samples of. */
struct cached_image *image_cache_use(struct image_cache *c, uint32_t n);

/* The image, only to be looked at. */
const struct cached_image *image_cache_get(const struct image_cache *c, uint32_t n);

/* The file virtual address of an offset; false where offsets lead to no procedures. */
bool cached_image_address(const struct cached_image *img, uint64_t offset, uint64_t *vaddr);

/* An image as it can be asked for functions, or NULL when its file is out of reach. */
struct image *image_cache_functions(
	struct image_cache *c, const struct process_table *t, uint32_t n);

/* Appends the code of a range. -ENOENT when there is none, -EAGAIN when the file is out of reach.
 */
int image_cache_code(struct image_cache *c, const struct process_table *t, uint32_t n,
	const struct range *r, struct buf *out);

/* Files that could not be opened, though the flush under way has samples of them. */
typedef void image_absent_fn(void *arg, const char *path, const struct image_id *id);
void image_cache_absent(const struct image_cache *c, image_absent_fn *fn, void *arg);

/* Bytes of functions that may be there for longer, for who asks for them between flushes. */
void image_cache_keep_tables(struct image_cache *c, size_t bytes);

/* After each drain. Once between two flushes it looks whether the kernel has new code. */
void image_cache_turn(struct image_cache *c);

/* Between two images of a flush: lets go of function tables beyond their bound. */
void image_cache_ease(struct image_cache *c);
/* Before and after what a flush writes; keeps memory within bounds. */
void image_cache_flush_begin(struct image_cache *c);
void image_cache_flushed(struct image_cache *c, const struct process_table *t);

size_t image_cache_memory(const struct image_cache *c);

#endif
