#include "calls/sites.h"

#include "base/buf.h"
#include "base/hmap.h"
#include "base/mem.h"
#include "image/frames.h"
#include "isa/decode.h"

#include <stdlib.h>
#include <string.h>

enum { INSTRUCTION_MOST = 15 };

struct site_image {
	uint64_t key;
	char *path;
	struct image_id id;
	bool asked;
	struct image *im; /* NULL: not asked for, or not to be had */
	struct frames *frames;
};

struct known_site {
	struct call_link link;
	struct call_site site;
	bool found;
};

struct known_target {
	uint64_t image, target;
	uint64_t foreign;
};

struct call_sites {
	struct hmap images;  /* struct site_image */
	struct hmap known;   /* struct known_site */
	struct hmap targets; /* struct known_target */
};

struct call_sites *call_sites_create(void)
{
	struct call_sites *s = xcalloc(1, sizeof *s);

	hmap_init(&s->images, sizeof(struct site_image), sizeof(uint64_t));
	hmap_init(&s->targets, sizeof(struct known_target), 2 * sizeof(uint64_t));
	hmap_init(&s->known, sizeof(struct known_site), sizeof(struct call_link));
	return s;
}

void call_sites_destroy(struct call_sites *s)
{
	if (!s)
		return;
	for (struct site_image *im = NULL; (im = hmap_next(&s->images, im));) {
		frames_destroy(im->frames);
		image_destroy(im->im);
		free(im->path);
	}
	hmap_deinit(&s->images);
	hmap_deinit(&s->known);
	hmap_deinit(&s->targets);
	free(s);
}

void call_sites_add(struct call_sites *s, uint64_t key, const char *path, const struct image_id *id)
{
	bool fresh;
	struct site_image *im = hmap_put(&s->images, &key, &fresh);

	if (!fresh)
		return;
	im->path = xstrdup(path);
	im->id = *id;
}

static struct site_image *open_image(struct call_sites *s, uint64_t key)
{
	struct site_image *im = hmap_get(&s->images, &key);

	if (im && !im->asked) {
		im->asked = true;
		if (image_open_path(im->path, &im->im, NULL) < 0)
			im->im = NULL;
		else if (!image_id_equal(image_id(im->im), &im->id) ||
			 frames_open(im->im, &im->frames) < 0) {
			image_destroy(im->im);
			im->im = NULL;
			im->frames = NULL;
		}
	}
	return im && im->im ? im : NULL;
}

static bool read_instruction(struct image *im, uint64_t at, struct insn *out)
{
	struct buf code = {0};
	size_t n = INSTRUCTION_MOST;
	bool read = false;

	/* At the end of the code there may be less. */
	for (; n && !read; n--)
		read = image_code(im, &(struct range){at, n}, &code) == 0;
	read = read && isa_decode(code.p, code.n, at, out) == 0;
	buf_deinit(&code);
	return read;
}

struct searched {
	const char *name;
	size_t n;
	bool found;
};

static bool likes_name(void *arg, const char *name)
{
	const struct searched *s = arg;

	return strlen(name) == s->n && !strncmp(name, s->name, s->n);
}

static void find_name(void *arg, const struct procedure *p)
{
	struct searched *s = arg;

	s->found |= p->source != PROCEDURE_PLT;
}

/*
 * A call through a stub leads to a library, unless the image has a procedure of that name. What is
 * called back from there is shown below the same call. Procedures of other images are believed.
 */
static bool is_foreign(struct image *im, uint64_t target)
{
	const struct procedure *stub = image_procedure_at(im, target);
	struct searched s = {0};

	if (!stub || stub->source != PROCEDURE_PLT || !stub->name)
		return false;
	s.name = stub->name;
	s.n = strcspn(stub->name, "@");
	image_search(im, likes_name, find_name, &s);
	return !s.found;
}

static bool leads_elsewhere(struct call_sites *s, const struct site_image *im, const struct insn *i,
	const struct call_link *link)
{
	uint64_t key[] = {im->key, i->target};
	struct known_target *k;
	bool fresh;

	if (!i->target || link->callee_image != link->image)
		return false;
	k = hmap_put(&s->targets, key, &fresh);
	if (fresh)
		k->foreign = is_foreign(im->im, i->target);
	return k->foreign;
}

static bool look_at_site(struct call_sites *s, const struct call_link *link, struct call_site *out)
{
	struct site_image *im = open_image(s, link->image);
	const struct frame_rule *r;
	struct insn i;

	if (!im || !read_instruction(im->im, link->site, &i) || leads_elsewhere(s, im, &i, link))
		return false;
	out->jump = i.kind != INSN_CALL && i.kind != INSN_CALL_INDIRECT;
	out->rise = 0;
	if (out->jump)
		return i.kind == INSN_JUMP || i.kind == INSN_JUMP_INDIRECT || i.kind == INSN_BRANCH;
	r = frames_at(im->frames, link->site);
	if (r && r->base == FRAME_RSP && r->offset > 0)
		out->rise = (uint32_t)r->offset;
	return r;
}

bool call_sites_find(struct call_sites *s, const struct call_link *link, struct call_site *out)
{
	bool fresh;
	struct known_site *k = hmap_put(&s->known, link, &fresh);

	if (fresh)
		k->found = look_at_site(s, link, &k->site);
	*out = k->site;
	return k->found;
}
