#include "analyze/path_list.h"

#include "analyze/path_code.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/vec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum weighing { BY_COUNT, BY_INSTRUCTIONS, BY_METRIC };

/* All profiles of an image as one. */
struct image_paths {
	int64_t image;
	struct buf packed;
};

struct path_list {
	struct selection *sel;
	struct path_codes *codes;
	struct path_list_options options;
	VEC(struct image_paths) images;
	struct metric_names names;
	enum weighing weighing;
	int metric; /* which of the names */
	VEC(struct path_procedure) procedures;
	VEC(struct path_entry) paths;
	VEC(const struct path_entry *) ranked;
	struct path_summary summary;
	struct arena arena; /* names and blocks */
};

/* ---- profiles ---- */

static int take_profile(void *arg, const struct store_profile *p)
{
	struct path_list *l = arg;
	struct image_paths *to = NULL;
	struct buf sum = {0};
	int rc;

	vec_each (i, &l->images)
		if (i->image == p->image)
			to = i;
	if (!to) {
		to = vec_add(&l->images);
		*to = (struct image_paths){.image = p->image};
		buf_put(&to->packed, p->data, p->size);
		return blob_path.check(p->data, p->size);
	}
	rc = blob_path.merge(to->packed.p, to->packed.n, p->data, p->size, &sum);
	if (rc) {
		buf_deinit(&sum);
		return rc;
	}
	buf_deinit(&to->packed);
	to->packed = sum;
	return 0;
}

static int gather(struct path_list *l, struct err *e)
{
	struct store_filter filter = *selection_filter(l->sel);
	int rc;

	filter.type = &blob_path;
	filter.event = NULL;
	rc = store_profiles(selection_store(l->sel), &filter, take_profile, l, e);
	if (rc == -EBADMSG)
		return err_set(e, rc, "paths are damaged: 'culprit db check' says which");
	if (!rc && !l->images.n)
		return err_set(e, -ENOENT,
			"no paths in what was selected; 'culprit record --paths -- COMMAND' counts "
			"them");
	return rc;
}

/* ---- which metric ---- */

static int find_metric(struct path_list *l, struct err *e)
{
	const char *name = l->options.metric;
	struct buf known = {0};
	int rc;

	if (!name)
		name = metric_first(&l->names);
	if (!name)
		name = PATH_BY_INSTRUCTIONS;
	l->metric = metric_find(&l->names, name);
	l->weighing = l->metric >= 0                        ? BY_METRIC
		      : !strcmp(name, PATH_BY_INSTRUCTIONS) ? BY_INSTRUCTIONS
							    : BY_COUNT;
	l->summary.metric = name;
	l->summary.measured = l->metric >= 0;
	if (l->weighing != BY_COUNT || !strcmp(name, PATH_BY_COUNT))
		return 0;
	for (uint32_t i = 0; i < l->names.n; i++)
		buf_printf(&known, "%s, ", l->names.name[i]);
	rc = err_set(e, -EINVAL,
		"no metric '%s' was measured; there are %s" PATH_BY_COUNT
		" and " PATH_BY_INSTRUCTIONS,
		name, buf_cstr(&known));
	buf_deinit(&known);
	return rc;
}

static int read_names(struct path_list *l)
{
	int rc = 0;

	vec_each (i, &l->images) {
		struct metric_names sum;
		struct path_reader r;

		rc = rc ? rc : path_reader_init(&r, i->packed.p, i->packed.n);
		if (rc)
			return rc;
		metric_unite(&l->names, &r.names, &sum);
		l->names = sum;
		path_reader_deinit(&r);
	}
	return 0;
}

/* ---- rows ---- */

static void add_procedure(struct path_list *l, struct selected_image *im, const struct path_row *r)
{
	const struct procedure *p = store_procedure_at(&im->procedures, r->procedure);
	char label[512];

	if (p && p->start != r->procedure)
		p = NULL;
	procedure_label(
		p ? p : &(struct procedure){.start = r->procedure}, im->path, label, sizeof label);
	*vec_add(&l->procedures) = (struct path_procedure){.image = im,
		.procedure = p,
		.name = arena_strdup(&l->arena, label),
		.start = r->procedure,
		.potential = r->potential,
		.cuts = r->cuts,
		.off = r->off,
		.how = r->how,
		.first = l->paths.n};
}

static void add_path(struct path_list *l, const struct path_reader *from, const struct path_row *r)
{
	struct path_procedure *p = &l->procedures.p[l->procedures.n - 1];
	size_t size = r->shape.n * sizeof *r->shape.blocks;
	uint64_t *blocks = arena_alloc(&l->arena, size);
	struct path_entry *to;

	if (!r->count)
		return;
	memcpy(blocks, r->shape.blocks, size);
	to = vec_add(&l->paths);
	*to = (struct path_entry){
		.procedure = (uint32_t)l->procedures.n - 1, .shape = r->shape, .count = r->count};
	to->shape.blocks = blocks;
	metric_reorder(&from->names, r->metrics, &l->names, to->metrics);
	p->n++;
	p->count = metric_sum(p->count, r->count);
}

static int read_image(struct path_list *l, const struct image_paths *from, struct err *e)
{
	struct selected_image *im = selection_image(l->sel, from->image);
	struct path_reader r;
	struct path_row row;
	int rc = im ? selection_load(l->sel, im, e) : -EBADMSG;

	if (rc)
		return rc;
	rc = path_reader_init(&r, from->packed.p, from->packed.n);
	while (!rc && (rc = path_reader_next(&r, &row)) > 0) {
		rc = 0;
		if (row.is_path)
			add_path(l, &r, &row);
		else
			add_procedure(l, im, &row);
	}
	path_reader_deinit(&r);
	return rc;
}

/* ---- weights ---- */

static double weigh(const struct path_list *l, const struct path_entry *p)
{
	switch (l->weighing) {
	case BY_METRIC:
		return (double)p->metrics[l->metric];
	case BY_INSTRUCTIONS:
		return (double)p->count * (double)p->length;
	case BY_COUNT:
		break;
	}
	return (double)p->count;
}

static int compare_weights(const struct path_entry *a, const struct path_entry *b)
{
	if (a->weight != b->weight)
		return a->weight > b->weight ? -1 : 1;
	if (a->count != b->count)
		return a->count > b->count ? -1 : 1;
	if (a->procedure != b->procedure)
		return a->procedure < b->procedure ? -1 : 1;
	return path_shape_compare(&a->shape, &b->shape);
}

static int compare_entries(const void *a, const void *b)
{
	return compare_weights(a, b);
}

static int compare_ranked(const void *a, const void *b)
{
	return compare_weights(
		*(const struct path_entry *const *)a, *(const struct path_entry *const *)b);
}

static void weigh_procedure(struct path_list *l, struct path_procedure *p)
{
	struct path_code *code = NULL;

	if (!p->procedure || path_code_create(l->codes, p->image, p->procedure, &code))
		l->summary.without_code++;
	for (size_t i = p->first; i < p->first + p->n; i++) {
		struct path_entry *path = &l->paths.p[i];

		path->length = code ? path_code_length(code, &path->shape) : 0;
		path->weight = weigh(l, path);
		p->weight += path->weight;
		p->instructions += (double)path->count * (double)path->length;
	}
	path_code_destroy(code);
	if (p->n)
		qsort(l->paths.p + p->first, p->n, sizeof *l->paths.p, compare_entries);
	for (size_t i = 0; i < p->n; i++)
		l->paths.p[p->first + i].rank = (uint32_t)i + 1;
	l->summary.weight += p->weight;
	l->summary.instructions += p->instructions;
	l->summary.potential += (double)p->potential;
}

/* ---- classes ---- */

static enum path_class classify(const struct path_list *l, double weight, double instructions)
{
	const struct path_summary *s = &l->summary;

	if (!(weight > 0) || weight < l->options.hot * s->weight)
		return PATH_COLD;
	if (!s->measured || !(s->instructions > 0))
		return PATH_DENSE;
	return weight * s->instructions > s->weight * instructions ? PATH_DENSE : PATH_SPARSE;
}

static void count_path(struct path_list *l, struct path_entry *p)
{
	double instructions = (double)p->count * (double)p->length;
	struct path_share *to;

	for (int i = 0; i < METRICS_MOST; i++)
		l->summary.metrics[i] = metric_sum(l->summary.metrics[i], p->metrics[i]);
	p->class = classify(l, p->weight, instructions);
	to = &l->summary.of[p->class];
	to->paths++;
	to->weight += p->weight;
	to->instructions += instructions;
	l->summary.hot += p->class != PATH_COLD;
	*vec_add(&l->ranked) = p;
}

static void count_procedure(struct path_list *l, struct path_procedure *p)
{
	struct path_share *to;

	p->class = classify(l, p->weight, p->instructions);
	to = &l->summary.of[p->class];
	to->procedures++;
	to->in_procedures += p->n;
	to->procedures_weight += p->weight;
}

static int fill(struct path_list *l, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < l->images.n && !rc; i++)
		rc = read_image(l, &l->images.p[i], e);
	if (rc)
		return rc == -EBADMSG
			       ? err_set(e, rc, "paths are damaged: 'culprit db check' says which")
			       : rc;
	vec_each (p, &l->procedures)
		weigh_procedure(l, p);
	l->summary.paths = l->paths.n;
	vec_each (p, &l->paths)
		count_path(l, p);
	vec_each (p, &l->procedures)
		count_procedure(l, p);
	vec_sort(&l->ranked, compare_ranked);
	return 0;
}

int path_list_create(struct selection *sel, const struct path_list_options *o,
	struct path_list **out, struct err *e)
{
	struct path_list *l = xcalloc(1, sizeof *l);
	int rc;

	l->sel = sel;
	l->codes = path_codes_create(sel);
	l->options = *o;
	rc = gather(l, e);
	if (!rc && read_names(l))
		rc = err_set(e, -EBADMSG, "paths are damaged: 'culprit db check' says which");
	if (!rc)
		rc = find_metric(l, e);
	if (!rc)
		rc = fill(l, e);
	if (rc) {
		path_list_destroy(l);
		return rc;
	}
	*out = l;
	return 0;
}

void path_list_destroy(struct path_list *l)
{
	if (!l)
		return;
	vec_each (i, &l->images)
		buf_deinit(&i->packed);
	vec_deinit(&l->images);
	vec_deinit(&l->procedures);
	vec_deinit(&l->paths);
	vec_deinit(&l->ranked);
	path_codes_destroy(l->codes);
	arena_deinit(&l->arena);
	free(l);
}

const struct path_summary *path_list_summary(const struct path_list *l)
{
	return &l->summary;
}

const struct metric_names *path_list_metrics(const struct path_list *l)
{
	return &l->names;
}

size_t path_list_procedures(const struct path_list *l, const struct path_procedure **out)
{
	*out = l->procedures.p;
	return l->procedures.n;
}

struct path_codes *path_list_codes(const struct path_list *l)
{
	return l->codes;
}

size_t path_list_all(const struct path_list *l, const struct path_entry **out)
{
	*out = l->paths.p;
	return l->paths.n;
}

size_t path_list_ranked(const struct path_list *l, const struct path_entry *const **out)
{
	*out = l->ranked.p;
	return l->ranked.n;
}
