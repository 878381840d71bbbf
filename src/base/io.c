#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"

enum { STEP = 1 << 16 };

static ssize_t read_some(int fd, void *p, size_t n)
{
	ssize_t got;
	do
		got = read(fd, p, n);
	while (got < 0 && errno == EINTR);
	return got < 0 ? -errno : got;
}

static int write_all(int fd, const char *p, size_t n)
{
	while (n) {
		ssize_t put = write(fd, p, n);
		if (put < 0 && errno != EINTR)
			return -errno;
		if (put > 0) {
			p += put;
			n -= (size_t)put;
		}
	}
	return 0;
}

/* Reads to the end, and one byte past the limit to see whether there is more. */
static int read_to_end(int fd, size_t limit, struct buf *out)
{
	size_t most;
	if (__builtin_add_overflow(out->n, limit, &most))
		most = SIZE_MAX - 1;
	while (true) {
		size_t step = most - out->n < STEP ? most - out->n + 1 : STEP;
		buf_reserve(out, step);
		ssize_t got = read_some(fd, out->p + out->n, step);
		if (got <= 0)
			return (int)got;
		out->n += (size_t)got;
		if (out->n > most)
			return -EFBIG;
	}
}

int io_read_file(int dirfd, const char *path, size_t limit, struct buf *out)
{
	_cleanup_close_ int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	size_t before = out->n;
	int r = read_to_end(fd, limit, out);
	if (r < 0)
		out->n = before;
	return r;
}

int io_read_line(int dirfd, const char *path, char *line, size_t size)
{
	_cleanup_close_ int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;

	_cleanup_free_ char *text = xmalloc(size);
	size_t n = 0;
	while (n < size - 1 && !memchr(text, '\n', n)) {
		ssize_t got = read_some(fd, text + n, size - 1 - n);
		if (got < 0)
			return (int)got;
		if (!got)
			break;
		n += (size_t)got;
	}
	text[n] = 0;
	text[strcspn(text, "\n")] = 0;
	strcpy(line, text);
	return 0;
}

int io_read_long(const char *path, long *value)
{
	char line[64], *end;
	int r = io_read_line(AT_FDCWD, path, line, sizeof line);
	if (r < 0)
		return r;
	errno = 0;
	long v = strtol(line, &end, 10);
	if (errno)
		return -errno;
	if (end == line || end[strspn(end, " \t\r")])
		return -EBADMSG;
	*value = v;
	return 0;
}

static int write_new_file(const char *path, const char *text)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	int r = write_all(fd, text, strlen(text));
	if (!r && fsync(fd) < 0)
		r = -errno;
	return r;
}

int io_write_file(const char *path, const char *text)
{
	_cleanup_free_ char *fresh = xasprintf("%s.%d.new", path, (int)gettid());
	int r = write_new_file(fresh, text);
	if (r == -EEXIST) { /* left behind by a thread of the same number that was killed */
		unlink(fresh);
		r = write_new_file(fresh, text);
	}
	if (!r && rename(fresh, path) < 0)
		r = -errno;
	if (r && r != -EEXIST)
		unlink(fresh);
	return r;
}

int io_pread_full(int fd, void *p, size_t n, uint64_t offset)
{
	unsigned char *to = p;
	while (n) {
		ssize_t got = pread(fd, to, n, (off_t)offset);
		if (got < 0 && errno != EINTR)
			return -errno;
		if (!got)
			return -EBADMSG;
		if (got > 0) {
			to += got;
			n -= (size_t)got;
			offset += (uint64_t)got;
		}
	}
	return 0;
}

int io_pwrite_full(int fd, const void *p, size_t n, uint64_t offset)
{
	const unsigned char *from = p;
	while (n) {
		ssize_t put = pwrite(fd, from, n, (off_t)offset);
		if (put < 0 && errno != EINTR)
			return -errno;
		if (put > 0) {
			from += put;
			n -= (size_t)put;
			offset += (uint64_t)put;
		}
	}
	return 0;
}

uint64_t io_clock_ns(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}
