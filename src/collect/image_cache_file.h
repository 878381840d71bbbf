/*
 * The bytes behind a mapping: finds the file that a process mapped and proves that it is the one.
 */
#ifndef CULPRIT_COLLECT_IMAGE_CACHE_FILE_H
#define CULPRIT_COLLECT_IMAGE_CACHE_FILE_H

#include <stdint.h>

struct image;
struct image_id;
struct process_table;

/*
 * Opens the image behind a mapped file. The file must have the identity `id`; without one (size 0)
 * it must have the inode that was mapped. Files are named by processes of other users: only plain
 * files of the process's own root are opened, and nothing that could block.
 *
 * -ENOENT: nothing that can be reached is that file.
 */
int image_file_open(const struct process_table *t, uint32_t file, const struct image_id *id,
	struct image **out);

#endif
