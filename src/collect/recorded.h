/*
 * The images of a recording that was made at another time, and maybe on another machine: which
 * files of this machine they are, and where the kernel and its modules were.
 *
 * A file is taken only if it is the one that was mapped: by build-id, from where it was or from the
 * caches that perf and debuginfod keep; without a build-id, from where it was if it has not changed
 * since. The kernel's symbols are those of the running one if it is the same build. Everything else
 * is known by name only.
 */
#ifndef CULPRIT_COLLECT_RECORDED_H
#define CULPRIT_COLLECT_RECORDED_H

#include "image/image.h"

#include <stddef.h>
#include <stdint.h>

struct mapped_file;
struct recorded;

/*
 * What times of records (ns) are at least, how far they are behind CLOCK_REALTIME, and the release
 * of the kernel (NULL: nobody says).
 */
struct recorded *recorded_create(uint64_t began, int64_t clock_offset, const char *release);
void recorded_destroy(struct recorded *r); /* takes NULL */

/* Opens the mapped file, which has this identity unless that is empty; -ENOENT: it is not here. */
int recorded_open(const struct recorded *r, const struct mapped_file *f, const struct image_id *id,
	struct image **out);

/* The kernel itself or a module of it, as image/kernel.h names them. */
struct recorded_part {
	uint64_t start, size;
	char *name;
	enum image_kind kind;
	struct image_id id;
	struct image *im; /* NULL: it is not here */
	uint32_t number;  /* the image cache's */
};

/* It was there, as perf writes it: "[kernel.kallsyms]_text", "[ext4]", "/lib/modules/.../ext4.ko".
 */
void recorded_kernel(struct recorded *r, const char *path, uint64_t start, uint64_t size,
	const struct image_id *id);
/* Who had the address, and the offset in it; NULL: nobody. Good until the next recorded_kernel. */
struct recorded_part *recorded_kernel_at(struct recorded *r, uint64_t address, uint64_t *offset);

#endif
