/*
 * The files that processes map, as the side-band and /proc name them, each with a number. Equal
 * names, identities and inodes have one number; numbers of forgotten files are given again, with
 * another serial.
 */
#ifndef CULPRIT_COLLECT_FILE_TABLE_H
#define CULPRIT_COLLECT_FILE_TABLE_H

#include "base/hmap.h"
#include "base/vec.h"
#include "image/image.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum mapped_kind {
	MAPPED_FILE,
	MAPPED_ANON, /* memory without a file, or with one that only stands for memory */
	MAPPED_VDSO,
};

#define MAPPED_OPENERS 4

struct mapped_file {
	char *path; /* in the eyes of the process that mapped it */
	struct image_id build_id;
	uint64_t inode, generation; /* with major and minor: 0 where the kernel gave a build-id */
	uint32_t major, minor;
	uint64_t seen; /* CLOCK_MONOTONIC ns of the first sight */
	enum mapped_kind kind;
	uint32_t serial; /* different for every file there ever was; 0: a free number */
	pid_t openers[MAPPED_OPENERS]; /* who mapped it, the latest first: /proc/PID/root leads to
					  it */
	bool marked;
};

/* What the kernel's name of a mapping stands for. */
enum mapped_kind mapped_kind_of(const char *path, const struct image_id *build_id);

/* The number of all memory without a file. */
#define FILE_ANON 0u

struct file_table {
	VEC(struct mapped_file) files;
	VEC(uint32_t) free; /* numbers */
	struct hmap index;
	uint32_t recent[256];
	uint32_t serial;
	size_t bytes; /* of paths */
};

void file_table_init(struct file_table *t);
void file_table_deinit(struct file_table *t);

/*
 * The number of a file (the fields up to `seen` describe it); `pid` becomes an opener.
 * *fresh says whether it is new. Past a sane number of files all others are memory.
 */
uint32_t file_table_add(
	struct file_table *t, const struct mapped_file *key, pid_t pid, bool *fresh);

static inline const struct mapped_file *file_table_get(const struct file_table *t, uint32_t n)
{
	return &t->files.p[n];
}

/* Forgets what was not marked since the last sweep. */
void file_table_mark(struct file_table *t, uint32_t n);
void file_table_sweep(struct file_table *t);

size_t file_table_count(const struct file_table *t);
size_t file_table_memory(const struct file_table *t);

#endif
