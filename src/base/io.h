/*
 * Files and clocks.
 */
#ifndef CULPRIT_BASE_IO_H
#define CULPRIT_BASE_IO_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

struct buf;

/* Appends a whole file (also of /proc, whose size is unknown); -EFBIG past limit. */
int io_read_file(int dirfd, const char *path, size_t limit, struct buf *out);
/* The first line without its newline, cut to fit. */
int io_read_line(int dirfd, const char *path, char *line, size_t size);
int io_read_long(const char *path, long *value);
int io_write_file(const char *path, const char *text);         /* replaces it atomically */
int io_pread_full(int fd, void *p, size_t n, uint64_t offset); /* -EBADMSG when the file ends */
int io_pwrite_full(int fd, const void *p, size_t n, uint64_t offset);

uint64_t io_clock_ns(clockid_t clock);

#endif
