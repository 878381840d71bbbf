/*
 * The images of a recording that was made at another time, and maybe on another machine: which
 * files of this machine they are, and where the kernel and its modules were.
 *
 * A file is taken only if it is the one that was mapped: by build-id, from where it was or from the
 * caches that perf and debuginfod keep; without a build-id, from where it was if it has not changed
 * since. The kernel's symbols are those of the running one if it is the same build, else those that
 * perf has put aside. Everything else is known by name only.
 */
#ifndef CULPRIT_COLLECT_RECORDED_H
#define CULPRIT_COLLECT_RECORDED_H

#include "image/image.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct jit_source;
struct mapped_file;
struct process;
struct recorded;

struct recorded_options {
	uint64_t began;             /* what times of records (ns) are at least */
	int64_t clock_offset;       /* what CLOCK_REALTIME has more */
	const char *host, *release; /* of the machine and its kernel; NULL: nobody says */
};
struct recorded *recorded_create(const struct recorded_options *o);
void recorded_destroy(struct recorded *r); /* takes NULL */

/* Whether that was on this machine, with the kernel that runs, since it runs. */
bool recorded_here(const struct recorded *r);

/* Opens the mapped file, which has this identity unless that is empty; -ENOENT: it is not here. */
int recorded_open(const struct recorded *r, const struct mapped_file *f, const struct image_id *id,
	struct image **out);

/* The vDSO, if it is that of the running kernel. */
int recorded_vdso(const struct recorded *r, const struct image_id *id, struct image **out);

/* The map of code that the process made, if it is still here and was written since. */
int recorded_jit(const struct recorded *r, const struct process *p, struct jit_source *out);

/* The kernel itself, a module of it, or code that it made. */
struct recorded_part {
	uint64_t start, size;
	char *name; /* of the first two, as image/kernel.h has it */
	enum image_kind kind;
	struct image_id id;
	struct image *im; /* NULL: it is not here */
	uint32_t number;  /* the image cache's */
};

/* It was there, as perf writes it: "[kernel.kallsyms]_text", "[ext4]", "/lib/modules/.../ext4.ko".
 */
void recorded_kernel(struct recorded *r, const char *path, uint64_t start, uint64_t size,
	const struct image_id *id);
/* The kernel made code, with a name that is its own on every machine, or let go of it. */
void recorded_made(struct recorded *r, const char *name, uint64_t start, uint64_t size);
void recorded_gone(struct recorded *r, uint64_t start);
/* Who had the address, and the offset in it; NULL: nobody. Good until one of the above. */
struct recorded_part *recorded_kernel_at(struct recorded *r, uint64_t address, uint64_t *offset);

#endif
