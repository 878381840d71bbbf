#include "analyze/timeline.h"

#include "base/err.h"
#include "base/hmap.h"
#include "base/mem.h"
#include "base/vec.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the samples of one stretch of time belong to. */
struct piece_key {
	int64_t t0, t1, image;
	uint32_t procedure, pad; /* CODE_NOWHERE: none, or images are asked for */
};

struct piece {
	struct piece_key key;
	uint64_t samples;
};

struct part_key {
	int64_t image;
	uint32_t procedure, pad;
};

struct part {
	struct part_key key;
	uint64_t samples;
	size_t rank;
};

struct timeline {
	struct selection *sel;
	struct timeline_options options;
	struct hmap pieces; /* struct piece */
	struct err *e;
	int64_t from, to;
	VEC(struct timeline_part) parts;
	double *weights; /* by slice and part */
	struct arena names;
};

/* ---- what there is ---- */

static void add(struct timeline *t, const struct piece_key *key, uint64_t samples)
{
	struct piece *p = hmap_put(&t->pieces, key, NULL);

	p->samples += samples;
}

static int take_total(void *arg, const struct store_total *row, int64_t t0, int64_t t1)
{
	struct timeline *t = arg;

	if (!selection_event(t->sel, row->event))
		add(t, &(struct piece_key){t0, t1, row->image, CODE_NOWHERE, 0}, row->samples);
	return 0;
}

static int take_profile(void *arg, const struct store_profile *p)
{
	struct timeline *t = arg;
	struct selected_image *im = selection_image(t->sel, p->image);
	struct piece_key key = {.t0 = p->t0, .t1 = p->t1, .image = p->image};
	struct pc_reader pcs;
	struct pc_count pc;
	struct code_walk walk;
	uint64_t vaddr;
	int rc;

	if (!im || selection_event(t->sel, p->event))
		return 0;
	rc = selection_load(t->sel, im, t->e);
	if (rc)
		return rc;
	rc = pc_reader_init(&pcs, p->data, p->size);
	walk = code_walk_start(&im->map, im->segments, im->nsegments);
	while (!rc && (rc = pc_reader_next(&pcs, &pc)) > 0) {
		key.procedure = code_walk_to(&walk, pc.offset, &vaddr);
		add(t, &key, pc.count);
		rc = 0;
	}
	return rc < 0 ? err_set(t->e, rc,
				"a profile of %s is damaged; 'culprit db check' tells more",
				im->path)
		      : 0;
}

static int gather(struct timeline *t)
{
	struct store_filter filter = *selection_filter(t->sel);
	struct store *store = selection_store(t->sel);

	if (t->options.of == TIMELINE_IMAGES)
		return store_totals(store, &filter, take_total, t, t->e);
	filter.type = &blob_pc;
	return store_profiles(store, &filter, take_profile, t, t->e);
}

/* ---- which stand apart ---- */

static struct part_key part_of(const struct piece *p)
{
	return (struct part_key){p->key.image, p->key.procedure, 0};
}

static int compare_parts(const void *a, const void *b)
{
	const struct part *x = *(struct part *const *)a, *y = *(struct part *const *)b;

	if (x->samples != y->samples)
		return x->samples > y->samples ? -1 : 1;
	if (x->key.image != y->key.image)
		return x->key.image < y->key.image ? -1 : 1;
	return x->key.procedure < y->key.procedure ? -1 : x->key.procedure > y->key.procedure;
}

static const char *label(struct timeline *t, const struct selected_image *im, uint32_t procedure)
{
	char text[512];

	if (t->options.of == TIMELINE_IMAGES || im->kind == IMAGE_UNKNOWN)
		return selected_image_name(im);
	if (procedure != CODE_NOWHERE)
		return arena_strdup(&t->names,
			procedure_label(&im->procedures.p[procedure], im->path, text, sizeof text));
	snprintf(text, sizeof text, "%s (no procedure)", selected_image_name(im));
	return arena_strdup(&t->names, text);
}

static void add_part(struct timeline *t, const struct part *p)
{
	struct timeline_part *to = vec_add(&t->parts);
	const struct selected_image *im = selection_image(t->sel, p->key.image);

	*to = (struct timeline_part){.image = im, .samples = p->samples};
	to->name = im ? label(t, im, p->key.procedure) : "(unknown)";
	if (im && p->key.procedure != CODE_NOWHERE)
		to->start = im->procedures.p[p->key.procedure].start;
}

/* Numbers the parts by weight; what is behind those that stand apart has one number. */
static void rank(struct timeline *t, struct hmap *parts)
{
	_cleanup_free_ struct part **list = xcalloc(parts->n + 1, sizeof *list);
	size_t n = 0, apart = t->options.parts;
	uint64_t rest = 0;

	for (struct part *p = NULL; (p = hmap_next(parts, p));)
		list[n++] = p;
	qsort(list, n, sizeof *list, compare_parts);
	for (size_t i = 0; i < n; i++) {
		list[i]->rank = i < apart ? i : apart;
		if (i < apart)
			add_part(t, list[i]);
		else
			rest += list[i]->samples;
	}
	if (rest)
		*vec_add(&t->parts) = (struct timeline_part){.samples = rest};
}

/* ---- over time ---- */

static void spread(struct timeline *t, const struct piece *p, size_t part)
{
	double slice = (double)(t->to - t->from) / (double)t->options.slices;
	double from = (double)(p->key.t0 - t->from) / slice,
	       to = (double)(p->key.t1 - t->from) / slice;
	size_t last = t->options.slices - 1;

	for (size_t i = (size_t)from < last ? (size_t)from : last; i <= last && (double)i <= to;
		i++) {
		double begin = from > (double)i ? from : (double)i;
		double end = to < (double)i + 1 || i == last ? to : (double)i + 1;
		double share = to > from ? (end - begin) / (to - from) : 1;

		t->weights[i * t->parts.n + part] += share * (double)p->samples;
		if (to <= from)
			return;
	}
}

static void bound(struct timeline *t)
{
	t->from = INT64_MAX;
	t->to = INT64_MIN;
	for (struct piece *p = NULL; (p = hmap_next(&t->pieces, p));) {
		t->from = p->key.t0 < t->from ? p->key.t0 : t->from;
		t->to = p->key.t1 > t->to ? p->key.t1 : t->to;
	}
	if (t->to <= t->from)
		t->to = t->from + 1;
}

static void arrange(struct timeline *t)
{
	struct hmap parts;

	hmap_init(&parts, sizeof(struct part), sizeof(struct part_key));
	for (struct piece *p = NULL; (p = hmap_next(&t->pieces, p));) {
		struct part_key key = part_of(p);
		struct part *to = hmap_put(&parts, &key, NULL);

		to->samples += p->samples;
	}
	rank(t, &parts);
	bound(t);
	t->weights = xcalloc(t->options.slices * t->parts.n, sizeof *t->weights);
	for (struct piece *p = NULL; (p = hmap_next(&t->pieces, p));) {
		struct part_key key = part_of(p);
		const struct part *of = hmap_get(&parts, &key);

		spread(t, p, of->rank);
	}
	hmap_deinit(&parts);
}

int timeline_create(struct selection *sel, const struct timeline_options *o, struct timeline **out,
	struct err *e)
{
	struct timeline *t = xcalloc(1, sizeof *t);
	int rc;

	*t = (struct timeline){.sel = sel, .options = *o, .e = e};
	hmap_init(&t->pieces, sizeof(struct piece), sizeof(struct piece_key));
	rc = gather(t);
	if (!rc && t->pieces.n)
		arrange(t);
	hmap_deinit(&t->pieces);
	if (rc) {
		timeline_destroy(t);
		return rc;
	}
	*out = t;
	return 0;
}

void timeline_destroy(struct timeline *t)
{
	if (!t)
		return;
	vec_deinit(&t->parts);
	free(t->weights);
	arena_deinit(&t->names);
	free(t);
}

size_t timeline_parts(const struct timeline *t, const struct timeline_part **out)
{
	*out = t->parts.p;
	return t->parts.n;
}

size_t timeline_slices(const struct timeline *t)
{
	return t->parts.n ? t->options.slices : 0;
}

int64_t timeline_time(const struct timeline *t, size_t slice)
{
	return t->from +
	       (int64_t)((double)(t->to - t->from) * (double)slice / (double)t->options.slices);
}

double timeline_weight(const struct timeline *t, size_t slice, size_t part)
{
	return t->weights[slice * t->parts.n + part];
}
