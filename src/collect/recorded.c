#include "collect/recorded.h"

#include "base/io.h"
#include "base/mem.h"
#include "base/vec.h"
#include "collect/file_table.h"
#include "collect/process.h"
#include "image/jit.h"
#include "image/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#define DELETED    " (deleted)"
#define COARSE_NS  20000000ll /* the clock of files */
#define ROUGHLY_NS 10000000000ll

enum { PARTS_MOST = 1 << 16 };

struct recorded {
	uint64_t began;
	int64_t clock_offset;
	bool same_host, same_release;    /* as this machine, as its kernel */
	VEC(struct recorded_part) parts; /* by start */
	VEC(struct image *) made;        /* images of parts, also of those that are gone */
	struct kernel *running, *copy;   /* NULL: not looked at, not there, or hidden */
	bool looked;
};

struct recorded *recorded_create(const struct recorded_options *o)
{
	struct recorded *r = xcalloc(1, sizeof *r);
	struct utsname here;

	r->began = o->began;
	r->clock_offset = o->clock_offset;
	if (uname(&here) == 0) {
		r->same_host = o->host && !strcmp(here.nodename, o->host);
		r->same_release = o->release && !strcmp(here.release, o->release);
	}
	return r;
}

void recorded_destroy(struct recorded *r)
{
	if (!r)
		return;
	vec_each (p, &r->parts)
		free(p->name);
	vec_deinit(&r->parts);
	vec_each (im, &r->made)
		image_destroy(*im);
	vec_deinit(&r->made);
	kernel_destroy(r->running);
	kernel_destroy(r->copy);
	free(r);
}

/* Of a time of the recording, or its beginning. */
static int64_t wall_ns(const struct recorded *r, uint64_t time)
{
	return (int64_t)(time ? time : r->began) + r->clock_offset;
}

static int64_t ns_of(const struct timespec *t)
{
	return (int64_t)t->tv_sec * 1000000000 + t->tv_nsec;
}

bool recorded_here(const struct recorded *r)
{
	int64_t booted = (int64_t)(io_clock_ns(CLOCK_REALTIME) - io_clock_ns(CLOCK_BOOTTIME));

	return r->same_host && r->same_release && wall_ns(r, 0) > booted;
}

/* ---- files ---- */

/*
 * Whether what is there now was there then, for want of a build-id. Where the inode is known, times
 * of writing tell; packages bring files with old ones, but those are other inodes. perf itself
 * links files into its cache, which changes the other time.
 */
static bool is_unchanged(const struct recorded *r, const struct mapped_file *f, int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0 || (f->inode && st.st_ino != f->inode))
		return false;
	return ns_of(f->inode ? &st.st_mtim : &st.st_ctim) < wall_ns(r, f->seen) + COARSE_NS;
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

int recorded_vdso(const struct recorded *r, const struct image_id *id, struct image **out)
{
	struct image *im;

	if (vdso_open(&im, NULL) < 0)
		return -ENOENT;
	if (id->size ? !image_id_equal(image_id(im), id) : !r->same_release) {
		image_destroy(im);
		return -ENOENT;
	}
	*out = im;
	return 0;
}

/*
 * One that was not written since the process began is of another that had its pid. When that was is
 * not known well: the recording begins with a sample, and its times of day are those of its file.
 */
int recorded_jit(const struct recorded *r, const struct process *p, struct jit_source *out)
{
	_cleanup_free_ char *path = xasprintf("/tmp/perf-%d.map", p->pid);
	struct stat st;
	int root;

	if (!r->same_host || stat(path, &st) < 0 ||
		ns_of(&st.st_mtim) + ROUGHLY_NS < wall_ns(r, p->started))
		return -ENOENT;
	root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -errno;
	*out = (struct jit_source){
		.root = root, .pid = p->pid, .user = getuid(), .effective = geteuid()};
	return 0;
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

/*
 * Without build-ids, a kernel of the same name whose parts are still where they were: of this boot.
 * The modules of a copy have none, and are those of their kernel.
 */
static bool is_same(
	const struct recorded *r, struct kernel *k, const struct recorded_part *p, struct image *im)
{
	const struct image_id *id = image_id(im);
	uint64_t offset;

	if (p->id.size && (id->size || k == r->running))
		return image_id_equal(id, &p->id);
	return k == r->copy ||
	       (r->same_release && kernel_image_at(k, p->start, &offset) == im && !offset);
}

static struct image *find_in(
	const struct recorded *r, struct kernel *k, const struct recorded_part *p)
{
	struct image *im;

	for (size_t i = 0; k && (im = kernel_image(k, i)); i++)
		if (image_kind(im) == p->kind && !strcmp(image_path(im), p->name) &&
			is_same(r, k, p, im))
			return im;
	return NULL;
}

/* The symbols that perf keeps of a kernel that it was recorded on. */
static void open_copy(struct recorded *r, const struct image_id *id)
{
	const char *home = getenv("HOME");
	_cleanup_free_ char *path = NULL;
	char hex[IMAGE_ID_TEXT];

	if (!home || !id->size || r->copy)
		return;
	path = xasprintf("%s/.debug/[kernel.kallsyms]/%s/kallsyms", home, image_id_text(id, hex));
	if (kernel_create_copy(path, id, &r->copy, NULL) < 0)
		r->copy = NULL;
}

/* The same build of it. */
static struct image *find_kernel(struct recorded *r, const struct recorded_part *p)
{
	struct image *im;
	bool hidden;

	if (!r->looked) {
		r->looked = true;
		if (kernel_create("", &r->running, &hidden, NULL) == 0 && hidden) {
			kernel_destroy(r->running);
			r->running = NULL;
		}
	}
	im = find_in(r, r->running, p);
	if (!im && p->kind == IMAGE_KERNEL)
		open_copy(r, &p->id);
	return im ? im : find_in(r, r->copy, p);
}

static size_t first_after(const struct recorded *r, uint64_t address)
{
	size_t i = r->parts.n;

	while (i > 0 && r->parts.p[i - 1].start > address)
		i--;
	return i;
}

/* Takes the part's name. */
static void insert(struct recorded *r, const struct recorded_part *part)
{
	size_t at = first_after(r, part->start);

	vec_add(&r->parts);
	memmove(r->parts.p + at + 1, r->parts.p + at, (r->parts.n - 1 - at) * sizeof *r->parts.p);
	r->parts.p[at] = *part;
}

static struct recorded_part *part_from(struct recorded *r, uint64_t start)
{
	size_t at = first_after(r, start);

	return at > 0 && r->parts.p[at - 1].start == start ? &r->parts.p[at - 1] : NULL;
}

void recorded_kernel(struct recorded *r, const char *path, uint64_t start, uint64_t size,
	const struct image_id *id)
{
	bool itself = is_kernel_itself(path);
	struct recorded_part part = {.start = start,
		.size = size,
		.kind = itself ? IMAGE_KERNEL : IMAGE_MODULE,
		.id = *id};

	if (part_from(r, start) || r->parts.n >= PARTS_MOST)
		return; /* told before */
	part.name = itself ? xstrdup("[kernel]") : module_name(path);
	part.im = find_kernel(r, &part);
	insert(r, &part);
}

/* One procedure of that name, at the beginning. */
void recorded_made(struct recorded *r, const char *name, uint64_t start, uint64_t size)
{
	_cleanup_free_ char *map = xasprintf("0 %" PRIx64 " %s\n", size, name);
	struct recorded_part part = {.start = start, .size = size, .kind = IMAGE_JIT};
	size_t bad;

	recorded_gone(r, start);
	if (!size || r->parts.n >= PARTS_MOST ||
		jit_map_parse(name, map, strlen(map), &part.im, &bad, NULL) < 0)
		return;
	*vec_add(&r->made) = part.im;
	part.name = xstrdup(name);
	insert(r, &part);
}

void recorded_gone(struct recorded *r, uint64_t start)
{
	struct recorded_part *p = part_from(r, start);
	size_t after;

	if (!p || p->kind != IMAGE_JIT)
		return;
	free(p->name);
	after = r->parts.n - 1 - (size_t)(p - r->parts.p);
	memmove(p, p + 1, after * sizeof *p);
	r->parts.n--;
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
