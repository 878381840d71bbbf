#include "collect/only.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/near.h"
#include "base/vec.h"
#include "collect/image_cache.h"
#include "collect/process.h"
#include "image/image.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

struct ask {
	const char *name;
	char *image;           /* before the '!', or the whole name */
	char *path;            /* where that leads as a path of ours, NULL: nowhere */
	const char *procedure; /* behind the '!', or the whole name */
	uint64_t address;
	bool is_pair, is_address;
	char *nearest;
	int distance; /* of nearest */
};

/* A range of a procedure, in file virtual addresses, and the names that it has. */
struct named_range {
	uint64_t start, size;
	uint64_t asks; /* a bit each */
};

/* What an image has of it. */
struct verdict {
	struct image_id id;
	uint32_t turn; /* in which it was last known to be of this image; 0: not decided */
	uint64_t all;  /* names of the image itself, a bit each */
	VEC(struct named_range) ranges; /* by start, disjoint */
};

struct only {
	struct ask asks[ONLY_MOST];
	size_t n;
	struct image_cache *images;
	struct process_table *processes;
	VEC(struct verdict) verdicts; /* by the image's number */
	uint32_t turn;
	uint64_t found, seen; /* names, a bit each */
};

/* ---- names ---- */

int only_check(const char *name, struct err *e)
{
	uint64_t address;

	if (!*name)
		return err_set(e, -EINVAL, "--only: a name is missing");
	if (label_address(name, &address))
		return err_set(e, -EINVAL,
			"--only: the address %s needs its image, as in gzip!0x4330", name);
	return 0;
}

static void ask_init(struct ask *a, const char *name)
{
	const char *bang = strchr(name, '!');

	*a = (struct ask){.name = name, .procedure = name, .distance = NEAR_FAR};
	a->is_pair = bang && bang > name && bang[1];
	a->image = a->is_pair ? xstrndup(name, (size_t)(bang - name)) : xstrdup(name);
	if (a->is_pair)
		a->procedure = bang + 1;
	a->is_address = a->is_pair && label_address(a->procedure, &a->address);
	if (strchr(a->image, '/'))
		a->path = realpath(a->image, NULL);
}

static bool fits(const char *pattern, const char *name)
{
	return !strcmp(pattern, name) || !fnmatch(pattern, name, 0);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static bool fits_image(const struct ask *a, const char *path)
{
	return fits(a->image, path) || fits(a->image, base_name(path)) ||
	       (a->path && !strcmp(a->path, path));
}

/* A name with a '!' may also be one as a whole: operators of C++ have them. */
static bool fits_procedure(const struct ask *a, bool image_fits, const char *name)
{
	if (a->is_pair && image_fits && !a->is_address && fits(a->procedure, name))
		return true;
	return fits(a->name, name);
}

/* A beginning counts as near, since files have versions behind their names. */
static void note_name(struct ask *a, const char *wanted, const char *name)
{
	size_t n = strlen(wanted), k = strlen(name);
	int limit = n > 8 ? 3 : n > 3 ? 2 : 1, d = NEAR_FAR;

	if (n > 3 && k > n && !strncmp(wanted, name, n))
		d = limit;
	else if (n <= k + (size_t)limit && k <= n + (size_t)limit)
		d = edit_distance(wanted, name);
	if (d > limit || d >= a->distance)
		return;
	a->distance = d;
	free(a->nearest);
	a->nearest = xstrdup(name);
}

/* ---- looking through images ---- */

struct search {
	struct only *o;
	uint64_t images; /* names whose image fits */
	uint64_t asks;   /* that the procedure at hand fits */
	struct verdict *v;
};

static bool likes(void *arg, const char *name)
{
	struct search *s = arg;

	s->asks = 0;
	for (size_t i = 0; i < s->o->n; i++) {
		struct ask *a = &s->o->asks[i];
		bool image_fits = s->images >> i & 1;

		if (fits_procedure(a, image_fits, name))
			s->asks |= 1ull << i;
		else if (!(s->o->found >> i & 1) && (!a->is_pair || image_fits))
			note_name(a, a->procedure, name);
	}
	return s->asks;
}

static void add_ranges(void *arg, const struct procedure *p)
{
	struct search *s = arg;

	for (uint32_t i = 0; i < p->nranges; i++)
		*vec_add(&s->v->ranges) = (struct named_range){
			.start = p->ranges[i].start, .size = p->ranges[i].size, .asks = s->asks};
	s->o->found |= s->asks;
}

static int compare_ranges(const void *a, const void *b)
{
	const struct named_range *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* The same procedure may have been found by its name and by an address. */
static void settle_ranges(struct verdict *v)
{
	size_t n = 0;

	vec_sort(&v->ranges, compare_ranges);
	for (size_t i = 0; i < v->ranges.n; i++) {
		if (n && v->ranges.p[n - 1].start == v->ranges.p[i].start)
			v->ranges.p[n - 1].asks |= v->ranges.p[i].asks;
		else
			v->ranges.p[n++] = v->ranges.p[i];
	}
	v->ranges.n = n;
}

static void find_addresses(struct search *s, struct image *im)
{
	for (size_t i = 0; i < s->o->n; i++) {
		const struct ask *a = &s->o->asks[i];
		const struct procedure *p = NULL;

		if (a->is_address && s->images >> i & 1)
			p = image_procedure_at(im, a->address);
		s->asks = 1ull << i;
		if (p)
			add_ranges(s, p);
	}
}

/* Which names the image itself has, and which may have something in it. */
static uint64_t match_image(struct only *o, const char *path, uint64_t *inside)
{
	uint64_t all = 0;

	*inside = 0;
	for (size_t i = 0; i < o->n; i++) {
		struct ask *a = &o->asks[i];
		bool image_fits = fits_image(a, path);

		if (image_fits)
			*(a->is_pair ? inside : &all) |= 1ull << i;
		else if (!(o->found >> i & 1) && !a->is_pair)
			note_name(a, a->name, base_name(path));
	}
	return all;
}

static bool has_procedures(const struct cached_image *img)
{
	return img->kind != IMAGE_UNKNOWN && img->kind != IMAGE_ANON;
}

/* Looks through the image; false when its file is out of reach. */
static bool decide(struct only *o, uint32_t image, struct verdict *v)
{
	const struct cached_image *img = image_cache_get(o->images, image);
	struct search s = {.o = o, .v = v};
	struct image *im;

	v->ranges.n = 0;
	v->id = img->id;
	v->all = match_image(o, img->path, &s.images);
	o->found |= v->all;
	if (!has_procedures(img))
		return true;
	im = image_cache_functions(o->images, o->processes, image);
	if (!im)
		return false;
	image_search(im, likes, add_ranges, &s);
	find_addresses(&s, im);
	settle_ranges(v);
	image_cache_ease(o->images);
	return true;
}

/* Whether what is known of a number still holds: it may have been given to another image. */
static bool still_holds(const struct only *o, const struct verdict *v, uint32_t image)
{
	const struct cached_image *img = image_cache_get(o->images, image);

	return v->turn && img->kind != IMAGE_MODULE && img->id.size &&
	       image_id_equal(&v->id, &img->id);
}

static struct verdict *verdict_of(struct only *o, uint32_t image)
{
	struct verdict *v;

	while (o->verdicts.n <= image)
		*vec_add(&o->verdicts) = (struct verdict){0};
	v = &o->verdicts.p[image];
	if (v->turn != o->turn)
		v->turn = still_holds(o, v, image) || decide(o, image, v) ? o->turn : 0;
	return v;
}

/* ---- the list ---- */

struct only *only_create(const char *const *names, size_t n, struct image_cache *images,
	struct process_table *processes)
{
	struct only *o;

	if (!n)
		return NULL;
	o = xcalloc(1, sizeof *o);
	o->n = n < ONLY_MOST ? n : ONLY_MOST;
	o->images = images;
	o->processes = processes;
	o->turn = 1;
	for (size_t i = 0; i < o->n; i++)
		ask_init(&o->asks[i], names[i]);
	return o;
}

void only_destroy(struct only *o)
{
	if (!o)
		return;
	for (size_t i = 0; i < o->n; i++) {
		free(o->asks[i].image);
		free(o->asks[i].path);
		free(o->asks[i].nearest);
	}
	vec_each (v, &o->verdicts)
		vec_deinit(&v->ranges);
	vec_deinit(&o->verdicts);
	free(o);
}

static uint64_t asks_at(const struct verdict *v, uint64_t vaddr)
{
	size_t low = 0, high = v->ranges.n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (v->ranges.p[middle].start <= vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || vaddr - v->ranges.p[low - 1].start >= v->ranges.p[low - 1].size)
		return 0;
	return v->ranges.p[low - 1].asks;
}

/* Code that comes and goes: its names are asked for every time. */
static uint64_t asks_of_jit(struct only *o, uint32_t image, uint64_t address)
{
	struct search s = {.o = o};
	const struct cached_image *img = image_cache_get(o->images, image);
	const struct procedure *p = img->im ? image_procedure_at(img->im, address) : NULL;
	uint64_t all = match_image(o, img->path, &s.images);

	if (p && p->name && likes(&s, p->name))
		all |= s.asks;
	o->found |= all;
	return all;
}

bool only_keeps(struct only *o, uint32_t image, uint64_t offset)
{
	const struct cached_image *img = image_cache_get(o->images, image);
	uint64_t asks, vaddr;

	if (img->kind == IMAGE_JIT) {
		asks = asks_of_jit(o, image, offset);
	} else {
		const struct verdict *v = verdict_of(o, image);

		asks = v->all;
		if (v->ranges.n && cached_image_address(img, offset, &vaddr))
			asks |= asks_at(v, vaddr);
	}
	o->seen |= asks;
	return asks;
}

static bool concerns_image(struct only *o, uint32_t image)
{
	const struct verdict *v = verdict_of(o, image);

	return !v->turn || v->all || v->ranges.n;
}

bool only_concerns_process(struct only *o, const struct process *p)
{
	const struct mapping *m;
	size_t n = process_mappings(p, &m);

	for (size_t i = 0; i < n; i++) {
		uint32_t image = m[i].file == FILE_ANON
					 ? (uint32_t)IMAGE_NUMBER_ANON
					 : image_cache_of_file(o->images, o->processes, m[i].file);

		/* What a program makes itself may be anything. */
		if (image == IMAGE_NUMBER_ANON || concerns_image(o, image))
			return true;
	}
	return n == 0;
}

bool only_concerns_kernel(struct only *o)
{
	uint32_t image;

	for (size_t i = 0; image_cache_kernel_image(o->images, i, &image); i++) {
		if (concerns_image(o, image))
			return true;
	}
	return false;
}

void only_flushed(struct only *o)
{
	if (o)
		o->turn++;
}

void only_result(const struct only *o, size_t n, struct only_result *out)
{
	*out = (struct only_result){.name = o->asks[n].name,
		.found = o->found >> n & 1,
		.seen = o->seen >> n & 1,
		.nearest = o->asks[n].nearest};
}
