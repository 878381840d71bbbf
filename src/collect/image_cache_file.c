#include "collect/image_cache_file.h"

#include "base/io.h"
#include "base/mem.h"
#include "collect/process.h"
#include "image/image.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#define DELETED " (deleted)"

#define COARSE_NS 20000000ull

struct search {
	const struct process_table *t;
	uint32_t number;
	const struct mapped_file *file;
	const struct image_id *id;
	char *path; /* without " (deleted)" */
	struct image *found;
};

/* Opens what an O_PATH descriptor stands for, if it is a plain file: a device could do anything. */
static int open_plain(int place, struct stat *st)
{
	char path[64];
	int fd;

	if (fstat(place, st) < 0)
		return -errno;
	if (!S_ISREG(st->st_mode))
		return -EACCES;
	snprintf(path, sizeof path, "/proc/self/fd/%d", place);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static bool same_generation(const struct search *s, int fd)
{
	int generation = 0;

	return s->file->generation && ioctl(fd, FS_IOC_GETVERSION, &generation) == 0 &&
	       (uint32_t)generation == s->file->generation;
}

/*
 * Whether a file found by name is the mapped one, for want of a build-id. It must not have changed
 * since it was mapped; the clock of its times is coarse. File systems give inode numbers again, but
 * with another generation: where that cannot be asked for, the file must be clearly older than its
 * mapping, else programs may be run as soon as they are made.
 */
static bool same_inode(const struct search *s, const struct stat *st, int fd)
{
	uint64_t mapped =
		io_clock_ns(CLOCK_REALTIME) - (io_clock_ns(CLOCK_MONOTONIC) - s->file->seen);
	uint64_t changed =
		(uint64_t)st->st_ctim.tv_sec * 1000000000 + (uint64_t)st->st_ctim.tv_nsec;

	if (st->st_ino != s->file->inode || major(st->st_dev) != s->file->major ||
		minor(st->st_dev) != s->file->minor)
		return false;
	return changed + COARSE_NS < mapped ||
	       (changed < mapped + COARSE_NS && same_generation(s, fd));
}

/*
 * Takes the file if it is the one. What came from the mapping itself only has to have the inode's
 * number: union file systems show its device in two ways.
 */
static bool try_place(struct search *s, int place, bool from_mapping)
{
	struct stat st;
	struct image *im;
	_cleanup_close_ int fd = open_plain(place, &st);

	if (fd < 0)
		return false;
	if (!s->id->size && !same_inode(s, &st, fd) &&
		!(from_mapping && st.st_ino == s->file->inode))
		return false;
	if (image_open(s->path, fd, &im, NULL) < 0)
		return false;
	if (s->id->size && !image_id_equal(image_id(im), s->id)) {
		image_destroy(im);
		return false;
	}
	s->found = im;
	return true;
}

/* In the root of the process, so that links in the path lead nowhere else. */
static bool try_below(struct search *s, const char *root)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	_cleanup_close_ int directory = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	_cleanup_close_ int place = -1;

	if (directory < 0)
		return false;
	place = (int)syscall(SYS_openat2, directory, s->path, &how, sizeof how);
	return place >= 0 && try_place(s, place, false);
}

/* A link of /proc that leads to the mapped file itself, also when it was deleted or replaced. */
static bool try_link(struct search *s, const char *link)
{
	size_t n = strlen(s->path);
	char *target = xmalloc(PATH_MAX);
	ssize_t length = readlink(link, target, PATH_MAX - 1);
	bool named = false;
	_cleanup_close_ int place = -1;

	if (length >= 0) {
		target[length] = '\0';
		named = !strncmp(target, s->path, n) &&
			(!target[n] || !strcmp(target + n, DELETED));
	}
	free(target);
	if (!named)
		return false;
	place = open(link, O_PATH | O_CLOEXEC);
	return place >= 0 && try_place(s, place, true);
}

static bool try_opener_root(struct search *s, pid_t pid)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/root", pid);
	return try_below(s, path);
}

static bool try_opener_links(struct search *s, pid_t pid)
{
	char path[96];
	struct mapping m;

	if (!process_maps_file(s->t, pid, s->number, &m))
		return false;
	snprintf(path, sizeof path, "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, pid, m.start,
		m.start + m.size);
	if (try_link(s, path))
		return true;
	snprintf(path, sizeof path, "/proc/%d/exe", pid);
	return try_link(s, path);
}

static bool each_opener(struct search *s, bool (*try_one)(struct search *s, pid_t pid))
{
	for (size_t i = 0; i < MAPPED_OPENERS; i++) {
		if (s->file->openers[i] > 0 && try_one(s, s->file->openers[i]))
			return true;
	}
	return false;
}

int image_file_open(
	const struct process_table *t, uint32_t file, const struct image_id *id, struct image **out)
{
	const struct mapped_file *f = mapped_file(t, file);
	size_t n = strlen(f->path), suffix = strlen(DELETED);
	bool deleted = n > suffix && !strcmp(f->path + n - suffix, DELETED);
	_cleanup_free_ char *path = xstrndup(f->path, deleted ? n - suffix : n);
	struct search s = {.t = t, .number = file, .file = f, .id = id, .path = path};

	if (f->kind != MAPPED_FILE || (!id->size && !f->inode))
		return -ENOENT;
	if (each_opener(&s, try_opener_root) || try_below(&s, "/") ||
		each_opener(&s, try_opener_links)) {
		*out = s.found;
		return 0;
	}
	return -ENOENT;
}
