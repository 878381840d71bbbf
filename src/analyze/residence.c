#include "analyze/residence.h"

#include "base/err.h"
#include "base/hmap.h"
#include "base/mem.h"
#include "store/edges.h"
#include "store/walks.h"

#include <math.h>
#include <stdlib.h>

#define LINES_AHEAD 8 /* that code without a branch goes on for; beyond, it jumped */
#define WALKS_LEAST 64
#define HALVINGS    60

struct line {
	uint64_t image; /* its key */
	uint64_t number;
	uint64_t last; /* the walk that it was seen in, from 1 */
	double walks;  /* that it was seen in */
	double visits; /* times that control came from another line */
};

struct residence {
	struct hmap lines;
	uint64_t key; /* of the image whose walks are read */
	uint64_t walks;
	double instructions;
	double stay; /* instructions that a line stays for when it is not used; INFINITY: for good
		      */
};

/* Where a walk is while it is read. */
struct visit {
	struct residence *to;
	double weight;
	uint64_t image, line; /* the last one; image 0: none yet */
};

static void visit_line(struct visit *v, uint64_t image, uint64_t number)
{
	struct line key = {.image = image, .number = number}, *line;

	if (v->image == image && v->line == number)
		return;
	v->image = image;
	v->line = number;
	line = hmap_put(&v->to->lines, &key, NULL);
	line->visits += v->weight;
	if (line->last == v->to->walks)
		return;
	line->last = v->to->walks;
	line->walks += v->weight;
}

/* From where control came to the next branch. */
static void visit_way(struct visit *v, uint64_t image, uint64_t from, uint64_t to)
{
	uint64_t first = from / RESIDENCE_LINE, last = to / RESIDENCE_LINE;

	visit_line(v, image, first);
	if (last > first && last < first + LINES_AHEAD)
		for (uint64_t i = first + 1; i < last; i++)
			visit_line(v, image, i);
	visit_line(v, image, last);
}

static void add_walk(struct residence *r, const struct walk *walk)
{
	struct visit v = {.to = r, .weight = (double)walk->weight};
	uint64_t image = r->key, at = walk->start;

	r->walks++;
	r->instructions += v.weight * walk->instructions;
	for (uint32_t i = 0; i < walk->nsteps; i++) {
		const struct walk_step *s = &walk->steps[i];

		visit_way(&v, image, at, s->from);
		if (s->target)
			image = s->target;
		at = s->to;
	}
	visit_line(&v, image, at / RESIDENCE_LINE);
}

static int read_walks(void *arg, const struct store_profile *p)
{
	struct residence *r = arg;
	struct walk_reader *reader = xmalloc(sizeof *reader);
	struct walk walk;
	int rc = walk_reader_init(reader, p->data, p->size);

	while (!rc && (rc = walk_reader_next(reader, &walk)) > 0) {
		/* One that was cut does not say how long it was. */
		if (walk.instructions)
			add_walk(r, &walk);
		rc = 0;
	}
	free(reader);
	return rc;
}

/* Lines that come within so many instructions. */
static double lines_within(const struct residence *r, double stay)
{
	double sum = 0;

	for (const struct line *l = NULL; (l = hmap_next(&r->lines, l));)
		sum += 1 - exp(-l->walks / r->instructions * stay);
	return sum;
}

static double find_stay(const struct residence *r, uint32_t capacity)
{
	double low = 1, high = 1e15;

	if (r->lines.n <= capacity)
		return INFINITY;
	for (int i = 0; i < HALVINGS; i++) {
		double middle = sqrt(low * high);

		if (lines_within(r, middle) < capacity)
			low = middle;
		else
			high = middle;
	}
	return high;
}

int residence_create(
	struct selection *sel, uint32_t capacity, struct residence **out, struct err *e)
{
	struct residence *r = xcalloc(1, sizeof *r);
	struct selected_image *images;
	size_t n = selection_images(sel, &images);
	int rc = 0;

	hmap_init(&r->lines, sizeof(struct line), offsetof(struct line, last));
	for (size_t i = 0; i < n && !rc; i++) {
		r->key = edge_image_key(images[i].kind, &images[i].identity, images[i].path);
		rc = selection_blobs_of(sel, &images[i], &blob_walk, read_walks, r, e);
	}
	if (rc) {
		residence_destroy(r);
		return rc;
	}
	r->stay = find_stay(r, capacity);
	*out = r;
	return 0;
}

void residence_destroy(struct residence *r)
{
	if (!r)
		return;
	hmap_deinit(&r->lines);
	free(r);
}

bool residence_misses(
	const struct residence *r, const struct selected_image *im, uint64_t offset, double *share)
{
	struct line key = {.number = offset / RESIDENCE_LINE};
	const struct line *line;

	key.image = edge_image_key(im->kind, &im->identity, im->path);
	line = hmap_get(&r->lines, &key);
	if (!line || r->walks < WALKS_LEAST)
		return false;
	*share = exp(-line->walks / r->instructions * r->stay) * line->walks / line->visits;
	return true;
}
