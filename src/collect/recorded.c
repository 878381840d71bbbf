#include "collect/recorded.h"

#include "base/mem.h"
#include "base/vec.h"
#include "collect/file_table.h"
#include "image/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#define DELETED   " (deleted)"
#define COARSE_NS 20000000ll /* the clock of files */

struct recorded {
	uint64_t began;
	int64_t clock_offset;
	VEC(struct recorded_part) parts; /* by start */
	struct kernel *kernel;           /* the running one; NULL: not looked at, or hidden */
	bool looked;
	bool same_release; /* of the running kernel */
};

struct recorded *recorded_create(uint64_t began, int64_t clock_offset, const char *release)
{
	struct recorded *r = xcalloc(1, sizeof *r);
	struct utsname running;

	r->same_release = release && uname(&running) == 0 && !strcmp(running.release, release);
	r->began = began;
	r->clock_offset = clock_offset;
	return r;
}

void recorded_destroy(struct recorded *r)
{
	if (!r)
		return;
	vec_each (p, &r->parts)
		free(p->name);
	vec_deinit(&r->parts);
	kernel_destroy(r->kernel);
	free(r);
}

/* ---- files ---- */

/*
 * Whether what is there now was there then, for want of a build-id. Where the inode is known, times
 * of writing tell; packages bring files with old ones, but those are other inodes. perf itself
 * links files into its cache, which changes the other time.
 */
static bool is_unchanged(const struct recorded *r, const struct mapped_file *f, int fd)
{
	int64_t mapped = (int64_t)(f->seen ? f->seen : r->began) + r->clock_offset;
	const struct timespec *changed;
	struct stat st;

	if (fstat(fd, &st) < 0 || (f->inode && st.st_ino != f->inode))
		return false;
	changed = f->inode ? &st.st_mtim : &st.st_ctim;
	return (int64_t)changed->tv_sec * 1000000000 + changed->tv_nsec < mapped + COARSE_NS;
}

/* Takes the path to look at; `name` is what the image is called. */
static int try_path(const struct recorded *r, char *path, const char *name,
	const struct mapped_file *f, const struct image_id *id, struct image **out)
{
	_cleanup_free_ char *own = path;
	_cleanup_close_ int fd = open(own, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct image *im;

	if (fd < 0 || (!id->size && !is_unchanged(r, f, fd)) || image_open(name, fd, &im, NULL) < 0)
		return -ENOENT;
	if (id->size && !image_id_equal(image_id(im), id)) {
		image_destroy(im);
		return -ENOENT;
	}
	*out = im;
	return 0;
}

/* Where perf and debuginfod keep copies by build-id. */
static int try_caches(const struct recorded *r, const char *name, const struct mapped_file *f,
	const struct image_id *id, struct image **out)
{
	const char *home = getenv("HOME");
	char hex[IMAGE_ID_TEXT];

	if (id->size < 2 || id->is_hash || !home)
		return -ENOENT;
	image_id_text(id, hex);
	if (try_path(r, xasprintf("%s/.debug/.build-id/%.2s/%s/elf", home, hex, hex + 2), name, f,
		    id, out) == 0)
		return 0;
	return try_path(r, xasprintf("%s/.cache/debuginfod_client/%s/executable", home, hex), name,
		f, id, out);
}

int recorded_open(const struct recorded *r, const struct mapped_file *f, const struct image_id *id,
	struct image **out)
{
	size_t n = strlen(f->path), suffix = strlen(DELETED);
	bool deleted = n > suffix && !strcmp(f->path + n - suffix, DELETED);
	_cleanup_free_ char *name = xstrndup(f->path, deleted ? n - suffix : n);

	if (f->kind != MAPPED_FILE)
		return -ENOENT;
	if (try_path(r, xstrdup(name), name, f, id, out) == 0)
		return 0;
	return try_caches(r, name, f, id, out);
}

/* ---- the kernel ---- */

/* "[ext4]" of "/lib/modules/6.1.0/kernel/fs/ext4/ext4.ko.xz". */
static char *module_name(const char *path)
{
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
	char *name;

	if (*path == '[')
		return xasprintf("%.*s]", (int)strcspn(path, "]"), path);
	name = xasprintf("[%.*s]", (int)strcspn(base, "."), base);
	for (char *c = name; *c; c++)
		if (*c == '-')
			*c = '_';
	return name;
}

static bool is_kernel_itself(const char *path)
{
	return !strncmp(path, "[kernel.", 8) || !strncmp(path, "[guest.kernel.", 14);
}

/* Without build-ids, a kernel of the same name whose parts are still where they were: of this boot.
 */
static bool is_same(const struct recorded *r, const struct recorded_part *p, struct image *im)
{
	uint64_t offset;

	if (p->id.size)
		return image_id_equal(image_id(im), &p->id);
	return r->same_release && kernel_image_at(r->kernel, p->start, &offset) == im && !offset;
}

/* The same build of it, in the running kernel. */
static struct image *find_running(struct recorded *r, const struct recorded_part *p)
{
	bool hidden;
	struct image *im;

	if (!r->looked) {
		r->looked = true;
		if (kernel_create("", &r->kernel, &hidden, NULL) == 0 && hidden) {
			kernel_destroy(r->kernel);
			r->kernel = NULL;
		}
	}
	for (size_t i = 0; r->kernel && (im = kernel_image(r->kernel, i)); i++)
		if (image_kind(im) == p->kind && !strcmp(image_path(im), p->name) &&
			is_same(r, p, im))
			return im;
	return NULL;
}

static size_t first_after(const struct recorded *r, uint64_t address)
{
	size_t i = r->parts.n;

	while (i > 0 && r->parts.p[i - 1].start > address)
		i--;
	return i;
}

void recorded_kernel(struct recorded *r, const char *path, uint64_t start, uint64_t size,
	const struct image_id *id)
{
	bool itself = is_kernel_itself(path);
	struct recorded_part part = {.start = start,
		.size = size,
		.kind = itself ? IMAGE_KERNEL : IMAGE_MODULE,
		.id = *id};
	size_t at = first_after(r, start);

	if (at > 0 && r->parts.p[at - 1].start == start)
		return; /* told before: each CPU's buffer may begin with it */
	part.name = itself ? xstrdup("[kernel]") : module_name(path);
	part.im = find_running(r, &part);
	vec_add(&r->parts);
	memmove(r->parts.p + at + 1, r->parts.p + at, (r->parts.n - 1 - at) * sizeof *r->parts.p);
	r->parts.p[at] = part;
}

struct recorded_part *recorded_kernel_at(struct recorded *r, uint64_t address, uint64_t *offset)
{
	/* The kernel's own part may be said to reach over its modules. */
	for (size_t i = first_after(r, address); i > 0; i--) {
		struct recorded_part *p = &r->parts.p[i - 1];

		if (address - p->start < p->size) {
			*offset = address - p->start;
			return p;
		}
	}
	return NULL;
}
