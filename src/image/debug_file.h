/*
 * The separate debug file of an image on this machine, which has the symbols that stripping
 * removed.
 */
#ifndef CULPRIT_IMAGE_DEBUG_FILE_H
#define CULPRIT_IMAGE_DEBUG_FILE_H

struct elf_file;
struct image_id;

/*
 * By build-id under /usr/lib/debug/.build-id, else by .gnu_debuglink beside the file, in .debug/
 * and under /usr/lib/debug. A file counts only when its build-id is the same, or, for an image that
 * has none, its checksum that of the link. A descriptor, or -ENOENT.
 */
int debug_file_find(const char *path, const struct image_id *id, const struct elf_file *f);

#endif
