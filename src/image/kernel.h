/*
 * The running kernel and its modules as images, from /proc/kallsyms, /proc/modules and
 * /sys/kernel/notes.
 *
 * Sample offsets in the kernel are addresses minus _text, so profiles of one kernel build merge
 * over boots in spite of address randomisation; virtual addresses are shown as linked
 * (0xffffffff81000000 + offset). Module offsets count from the module's start.
 */
#ifndef CULPRIT_IMAGE_KERNEL_H
#define CULPRIT_IMAGE_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct image;
struct image_id;
struct kernel;

#define KERNEL_LINK_BASE 0xffffffff81000000ull

/*
 * Reads the symbols. With kptr_restrict (all addresses zero) the kernel is still one image, without
 * names: *hidden is set, and samples keep their raw address as offset. `root` is "" or a directory
 * that stands for / (tests).
 */
int kernel_create(const char *root, struct kernel **out, bool *hidden, struct err *e);
/* Of a copy of /proc/kallsyms, of the kernel with this identity; its code is not here. -ENOENT. */
int kernel_create_copy(
	const char *kallsyms, const struct image_id *id, struct kernel **out, struct err *e);
void kernel_destroy(struct kernel *k);

/* The image and offset of a kernel address; never fails (what nothing covers is in vmlinux). */
struct image *kernel_image_at(struct kernel *k, uint64_t address, uint64_t *offset);

/* The images that there are now, from 0 on: the kernel itself, then modules; NULL after the last.
 */
struct image *kernel_image(struct kernel *k, size_t n);

/* Of the running one: reads kallsyms again when modules were loaded since (-EAGAIN: nothing changed). */
int kernel_refresh(struct kernel *k);

#endif
