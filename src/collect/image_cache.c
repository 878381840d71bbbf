#include "collect/image_cache.h"

#include "base/buf.h"
#include "base/mem.h"
#include "collect/image_cache_file.h"
#include "collect/image_cache_internal.h"
#include "collect/process.h"
#include "collect/recorded.h"
#include "image/kernel.h"
#include "store/edges.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	HELD_MOST = 32,        /* files kept open until somebody asks for their functions */
	TABLES_MOST = 3 << 20, /* bytes of function tables, unless somebody wants more */
	IMAGES_MANY = 512, /* above this, images without samples for IDLE_FLUSHES are forgotten */
	IDLE_FLUSHES = 30,
};

/* ---- images ---- */

/* Only the bytes that count, because keys are compared whole. */
static struct identity_entry identity_key(const struct image_id *id)
{
	struct identity_entry key;

	memset(&key, 0, sizeof key);
	key.id.size = id->size;
	key.id.is_hash = id->is_hash;
	memcpy(key.id.bytes, id->bytes, id->size);
	return key;
}

static void set_key(struct cached_image *img)
{
	img->key = edge_image_key(img->kind, &img->id, img->path);
}

uint32_t images_add(
	struct image_cache *c, enum image_kind kind, const char *path, const struct image_id *id)
{
	uint32_t n;

	if (c->free.n) {
		n = c->free.p[--c->free.n];
	} else {
		n = (uint32_t)c->images.n;
		vec_add(&c->images);
	}
	c->images.p[n] =
		(struct cached_image){.kind = kind, .path = xstrdup(path), .used = c->flush};
	if (id && id->size) {
		struct identity_entry key = identity_key(id), *entry;
		bool fresh;

		c->images.p[n].id = *id;
		entry = hmap_put(&c->identities, &key, &fresh);
		if (fresh)
			entry->number = n;
	}
	set_key(&c->images.p[n]);
	return n;
}

static void close_spare(struct image_cache *c)
{
	image_destroy(c->spare);
	c->spare = NULL;
}

static void unhold(struct image_cache *c, uint32_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < c->held.n; i++) {
		if (c->held.p[i] != n)
			c->held.p[kept++] = c->held.p[i];
	}
	c->held.n = kept;
	c->images.p[n].holds_file = false;
}

void images_drop_tables(struct image_cache *c, uint32_t n)
{
	struct cached_image *img = &c->images.p[n];

	if (img->holds_file)
		unhold(c, n);
	if (!img->borrowed)
		image_destroy(img->im);
	img->im = NULL;
	img->asked = 0;
}

/* Lets go of a file. Its functions stay if they were read: whoever asked will ask again. */
static void let_go(struct image_cache *c, uint32_t n)
{
	if (!c->images.p[n].asked) {
		images_drop_tables(c, n);
		return;
	}
	image_release(c->images.p[n].im);
	unhold(c, n);
}

void images_attach(struct image_cache *c, uint32_t n, struct image *im, bool holds_file)
{
	struct cached_image *img = &c->images.p[n];
	const struct segment *segments;
	size_t count = image_segments(im, &segments);

	img->im = im;
	if (!img->nsegments && count) {
		img->segments = xmemdup(segments, count * sizeof *segments);
		img->nsegments = count;
	}
	if (!img->id.size) {
		img->id = *image_id(im);
		set_key(img);
	}
	if (!holds_file)
		return;
	if (c->held.n == HELD_MOST)
		let_go(c, c->held.p[0]);
	*vec_add(&c->held) = n;
	c->images.p[n].holds_file = true;
}

void images_remove(struct image_cache *c, uint32_t n)
{
	struct cached_image *img = &c->images.p[n];
	struct identity_entry key = identity_key(&img->id), *entry = hmap_get(&c->identities, &key);

	if (entry && entry->number == n)
		hmap_delete(&c->identities, &key);
	vec_each (slot, &c->files) {
		if (slot->number == n)
			*slot = (struct file_slot){0};
	}
	images_drop_tables(c, n);
	footprint_deinit(&img->footprint);
	free(img->path);
	free(img->segments);
	*img = (struct cached_image){0};
	*vec_add(&c->free) = n;
}

/* ---- files ---- */

/* Where it can be found again: the number of a file may be given to another one. */
static void remember_file(
	struct image_cache *c, uint32_t n, const struct process_table *t, uint32_t file)
{
	c->images.p[n].file = file;
	c->images.p[n].file_serial = mapped_file(t, file)->serial;
}

static int open_file(const struct image_cache *c, const struct process_table *t, uint32_t file,
	const struct image_id *id, struct image **out)
{
	return c->recorded ? recorded_open(c->recorded, mapped_file(t, file), id, out)
			   : image_file_open(t, file, id, out);
}

/* A file that can be opened is what it says it is; one that cannot is what its record says. */
static uint32_t resolve_file(struct image_cache *c, const struct process_table *t, uint32_t file)
{
	const struct mapped_file *f = mapped_file(t, file);
	struct identity_entry key = identity_key(&f->build_id);
	const struct identity_entry *known =
		f->build_id.size ? hmap_get(&c->identities, &key) : NULL;
	struct image *im = NULL;
	uint32_t n;

	if (known && c->images.p[known->number].nsegments) {
		remember_file(c, known->number, t, file);
		return known->number;
	}
	if (open_file(c, t, file, &f->build_id, &im) < 0) {
		n = known ? known->number : images_add(c, IMAGE_ELF, f->path, &f->build_id);
		c->images.p[n].tried = c->turn;
		remember_file(c, n, t, file);
		return n;
	}
	key = identity_key(image_id(im));
	known = key.id.size ? hmap_get(&c->identities, &key) : NULL;
	n = known ? known->number : images_add(c, IMAGE_ELF, image_path(im), &key.id);
	remember_file(c, n, t, file);
	if (c->images.p[n].im)
		image_destroy(im);
	else
		images_attach(c, n, im, true);
	return n;
}

/* All processes of a machine share it. */
static uint32_t resolve_vdso(struct image_cache *c, const struct mapped_file *f)
{
	struct cached_image *img = &c->images.p[IMAGE_NUMBER_VDSO];
	struct image *im;

	if (c->recorded && !img->im && recorded_vdso(c->recorded, &f->build_id, &im) == 0)
		images_attach(c, IMAGE_NUMBER_VDSO, im, false);
	return IMAGE_NUMBER_VDSO;
}

uint32_t image_cache_of_file(struct image_cache *c, const struct process_table *t, uint32_t file)
{
	const struct mapped_file *f = mapped_file(t, file);
	uint32_t n;

	if (file < c->files.n && c->files.p[file].serial == f->serial)
		return c->files.p[file].number;
	n = f->kind == MAPPED_VDSO   ? resolve_vdso(c, f)
	    : f->kind == MAPPED_ANON ? (uint32_t)IMAGE_NUMBER_ANON
				     : resolve_file(c, t, file);
	while (c->files.n <= file)
		*vec_add(&c->files) = (struct file_slot){0};
	c->files.p[file] = (struct file_slot){.serial = f->serial, .number = n};
	return n;
}

/* Opens the image's file again, which must be the same one. */
static struct image *reopen(struct image_cache *c, const struct process_table *t, uint32_t n)
{
	struct cached_image *img = &c->images.p[n];
	struct image *im;

	if (img->kind != IMAGE_ELF || img->tried == c->turn ||
		mapped_file(t, img->file)->serial != img->file_serial)
		return NULL;
	if (open_file(c, t, img->file, &img->id, &im) < 0) {
		img->tried = c->turn;
		return NULL;
	}
	return im;
}

struct image *image_cache_functions(
	struct image_cache *c, const struct process_table *t, uint32_t n)
{
	struct cached_image *img = &c->images.p[n];

	if (!img->im && img->kind == IMAGE_ELF) {
		struct image *im = reopen(c, t, n);

		if (im)
			images_attach(c, n, im, true);
	}
	if (img->im)
		img->asked = c->turn;
	return img->im;
}

int image_cache_code(struct image_cache *c, const struct process_table *t, uint32_t n,
	const struct range *r, struct buf *out)
{
	struct cached_image *img = &c->images.p[n];
	struct image *im = img->im;

	if (img->kind == IMAGE_ELF && !img->holds_file) {
		if (!c->spare || c->spare_number != n) {
			close_spare(c);
			c->spare = reopen(c, t, n);
			c->spare_number = n;
		}
		im = c->spare;
	}
	return im ? image_code(im, r, out) : -EAGAIN;
}

void image_cache_absent(const struct image_cache *c, image_absent_fn *fn, void *arg)
{
	for (uint32_t n = IMAGE_NUMBERS; n < c->images.n; n++) {
		const struct cached_image *img = &c->images.p[n];

		if (img->path && img->kind != IMAGE_JIT && !img->nsegments && img->used == c->flush)
			fn(arg, img->path, &img->id);
	}
}

/* ---- the cache ---- */

static struct image_cache *create(void)
{
	struct image_cache *c = xcalloc(1, sizeof *c);

	hmap_init(&c->identities, sizeof(struct identity_entry),
		offsetof(struct identity_entry, number));
	hmap_init(&c->kernel_images, sizeof(struct kernel_entry), sizeof(struct image *));
	hmap_init(&c->jits, sizeof(struct jit_entry), sizeof(uint32_t));
	c->turn = c->flush = 1;
	c->tables_most = TABLES_MOST;
	images_add(c, IMAGE_UNKNOWN, "[unknown]", NULL);
	images_add(c, IMAGE_ANON, "[anon]", NULL);
	images_add(c, IMAGE_KERNEL, "[kernel]", NULL);
	return c;
}

struct image_cache *image_cache_create(const char *root, bool kernel)
{
	struct image_cache *c = create();
	struct image *vdso;

	if (vdso_open(&vdso, NULL) == 0) {
		images_add(c, IMAGE_VDSO, "[vdso]", image_id(vdso));
		images_attach(c, IMAGE_NUMBER_VDSO, vdso, false);
	} else {
		images_add(c, IMAGE_VDSO, "[vdso]", NULL);
	}
	if (kernel && kernel_create(root, &c->kernel, &c->hidden, NULL) < 0)
		c->hidden = true;
	return c;
}

struct image_cache *image_cache_create_recorded(struct recorded *recorded)
{
	struct image_cache *c = create();

	c->recorded = recorded;
	images_add(c, IMAGE_VDSO, "[vdso]", NULL);
	return c;
}

void image_cache_destroy(struct image_cache *c)
{
	if (!c)
		return;
	close_spare(c);
	vec_each (img, &c->images) {
		if (!img->borrowed)
			image_destroy(img->im);
		footprint_deinit(&img->footprint);
		free(img->path);
		free(img->segments);
	}
	vec_deinit(&c->images);
	vec_deinit(&c->free);
	vec_deinit(&c->files);
	vec_deinit(&c->held);
	hmap_deinit(&c->identities);
	hmap_deinit(&c->kernel_images);
	for (struct jit_entry *e = NULL; (e = hmap_next(&c->jits, e));) {
		if (e->found)
			jit_source_close(&e->source);
	}
	hmap_deinit(&c->jits);
	kernel_destroy(c->kernel);
	free(c);
}

struct cached_image *image_cache_use(struct image_cache *c, uint32_t n)
{
	c->images.p[n].used = c->flush;
	return &c->images.p[n];
}

const struct cached_image *image_cache_get(const struct image_cache *c, uint32_t n)
{
	return &c->images.p[n];
}

bool cached_image_address(const struct cached_image *img, uint64_t offset, uint64_t *vaddr)
{
	switch (img->kind) {
	case IMAGE_UNKNOWN:
	case IMAGE_ANON:
		return false;
	case IMAGE_JIT:
		*vaddr = offset;
		return true;
	default:
		return segments_vaddr(img->segments, img->nsegments, offset, vaddr);
	}
}

void image_cache_flush_begin(struct image_cache *c)
{
	vec_each (img, &c->images)
		footprint_begin(&img->footprint);
}

/* Lets go of files, and of the tables used least lately while there are too many bytes of them. */
static void trim_tables(struct image_cache *c)
{
	size_t bytes = 0;

	for (uint32_t n = 0; n < c->images.n; n++) {
		struct cached_image *img = &c->images.p[n];

		if (!img->im || img->borrowed || n == IMAGE_NUMBER_VDSO)
			continue;
		if (img->holds_file && img->asked)
			let_go(c, n);
		bytes += image_memory(img->im);
	}
	while (bytes > c->tables_most) {
		uint32_t oldest = 0;

		for (uint32_t n = IMAGE_NUMBERS; n < c->images.n; n++) {
			const struct cached_image *img = &c->images.p[n];

			if (img->im && !img->borrowed && !img->holds_file &&
				(!oldest || img->asked < c->images.p[oldest].asked))
				oldest = n;
		}
		if (!oldest)
			break;
		bytes -= image_memory(c->images.p[oldest].im);
		images_drop_tables(c, oldest);
	}
}

void image_cache_turn(struct image_cache *c)
{
	c->turn++;
	trim_tables(c);
	if (!c->kernel || c->refreshed)
		return;
	c->refreshed = true;
	if (kernel_refresh(c->kernel) == 0)
		images_kernel_changed(c);
}

void image_cache_keep_tables(struct image_cache *c, size_t bytes)
{
	c->tables_most = bytes;
}

void image_cache_ease(struct image_cache *c)
{
	trim_tables(c);
}

static void trim_images(struct image_cache *c)
{
	if (c->images.n - c->free.n <= IMAGES_MANY)
		return;
	for (uint32_t n = IMAGE_NUMBERS; n < c->images.n; n++) {
		const struct cached_image *img = &c->images.p[n];

		if (img->path && !img->borrowed && img->kind == IMAGE_ELF &&
			img->used + IDLE_FLUSHES < c->flush)
			images_remove(c, n);
	}
}

void image_cache_flushed(struct image_cache *c, const struct process_table *t)
{
	close_spare(c);
	vec_each (img, &c->images) {
		footprint_flushed(&img->footprint);
		if (img->im)
			image_forget(img->im); /* the footprint has copies */
		if (img->used == c->flush)
			img->stored_id = img->store_id;
	}
	images_forget_jits(c, t);
	trim_tables(c);
	trim_images(c);
	c->refreshed = false;
	c->flush++;
}

size_t image_cache_memory(const struct image_cache *c)
{
	size_t bytes = sizeof *c + c->images.space * sizeof *c->images.p +
		       c->files.space * sizeof *c->files.p;

	vec_each (img, &c->images) {
		bytes +=
			footprint_memory(&img->footprint) + img->nsegments * sizeof(struct segment);
		bytes += img->im ? image_memory(img->im) : 0;
	}
	return bytes;
}
