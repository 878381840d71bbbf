/* Images that are no files: the kernel, and what processes make at run time. */
#include "base/mem.h"
#include "collect/image_cache_internal.h"
#include "collect/process.h"
#include "collect/recorded.h"
#include "image/kernel.h"

#include <stdlib.h>

enum { JITS_MOST = 256 }; /* processes whose root is held open for their perf map */

/* ---- the kernel ---- */

static uint32_t kernel_number(struct image_cache *c, struct image *im)
{
	struct kernel_entry key = {.im = im}, *entry;
	bool fresh;

	entry = hmap_put(&c->kernel_images, &key, &fresh);
	if (fresh) {
		entry->number = images_add(c, image_kind(im), image_path(im), image_id(im));
		images_attach(c, entry->number, im, false);
		c->images.p[entry->number].borrowed = true;
	}
	return entry->number;
}

static uint32_t of_recorded_kernel(struct image_cache *c, uint64_t address, uint64_t *offset)
{
	struct recorded_part *p = recorded_kernel_at(c->recorded, address, offset);

	if (!p) {
		*offset = address;
		return IMAGE_NUMBER_KERNEL;
	}
	if (!p->number)
		p->number =
			p->im ? kernel_number(c, p->im) : images_add(c, p->kind, p->name, &p->id);
	return p->number;
}

uint32_t image_cache_of_kernel(struct image_cache *c, uint64_t address, uint64_t *offset)
{
	struct image *im;

	if (c->recorded)
		return of_recorded_kernel(c, address, offset);
	if (!c->kernel) {
		*offset = address;
		return IMAGE_NUMBER_KERNEL;
	}
	im = kernel_image_at(c->kernel, address, offset);
	if (im != c->last_kernel) {
		c->last_kernel_number = kernel_number(c, im);
		c->last_kernel = im;
	}
	return c->last_kernel_number;
}

bool image_cache_kernel_image(struct image_cache *c, size_t n, uint32_t *number)
{
	struct image *im = c->kernel ? kernel_image(c->kernel, n) : NULL;

	*number = im ? kernel_number(c, im) : (uint32_t)IMAGE_NUMBER_KERNEL;
	return im || (!c->kernel && n == 0);
}

bool image_cache_kernel_hidden(const struct image_cache *c)
{
	return c->hidden;
}

void images_kernel_changed(struct image_cache *c)
{
	vec_each (img, &c->images) {
		const struct segment *segments;
		size_t n;

		if (!img->borrowed || img->kind != IMAGE_MODULE)
			continue;
		footprint_deinit(&img->footprint);
		n = image_segments(img->im, &segments);
		free(img->segments);
		img->segments = n ? xmemdup(segments, n * sizeof *segments) : NULL;
		img->nsegments = n;
	}
}

/* ---- code without a file ---- */

static bool jit_covers(const struct image_cache *c, const struct jit_entry *e, uint64_t pc)
{
	struct image *im = e->number ? c->images.p[e->number].im : NULL;

	return im && image_procedure_at(im, pc);
}

static struct jit_entry *jit_of(struct image_cache *c, const struct process *p)
{
	struct jit_entry *e = hmap_put(&c->jits, &p->serial, NULL);

	e->pid = p->pid;
	if (!e->found && c->jits.n <= JITS_MOST)
		e->found = (c->recorded ? recorded_jit(c->recorded, p, &e->source)
					: jit_source_open(p->pid, &e->source)) == 0;
	return e;
}

static void read_jit_map(struct image_cache *c, struct jit_entry *e)
{
	struct image *im;

	e->turn = c->turn;
	if (!e->found || jit_source_read(&e->source, &im, NULL) < 0)
		return;
	if (e->number)
		images_drop_tables(c, e->number);
	else
		e->number = images_add(c, IMAGE_JIT, image_path(im), NULL);
	images_attach(c, e->number, im, false);
}

void image_cache_expect_memory(struct image_cache *c, const struct process *p)
{
	if (p->pid > 0)
		jit_of(c, p);
}

uint32_t image_cache_of_memory(struct image_cache *c, const struct process *p, uint64_t pc)
{
	struct jit_entry *e;

	if (p->pid <= 0)
		return IMAGE_NUMBER_ANON;
	e = jit_of(c, p);
	if (jit_covers(c, e, pc))
		return e->number;
	if (e->turn == c->turn)
		return IMAGE_NUMBER_ANON;
	read_jit_map(c, e);
	return jit_covers(c, e, pc) ? e->number : (uint32_t)IMAGE_NUMBER_ANON;
}

void images_forget_jits(struct image_cache *c, const struct process_table *t)
{
	VEC(uint32_t) dead = {0};

	for (struct jit_entry *e = NULL; (e = hmap_next(&c->jits, e));) {
		if (!process_ended(t, e->pid, e->serial))
			continue;
		*vec_add(&dead) = e->serial;
		if (e->found)
			jit_source_close(&e->source);
		if (e->number)
			images_remove(c, e->number);
	}
	vec_each (serial, &dead)
		hmap_delete(&c->jits, serial);
	vec_deinit(&dead);
}
