#include "calls/gather.h"

#include "base/err.h"
#include "base/hmap.h"
#include "base/mem.h"
#include "calls/training.h"
#include "calls/unfold.h"
#include "store/contexts.h"
#include "store/edges.h"
#include "store/store.h"

#include <errno.h>
#include <stdlib.h>

struct program {
	int64_t image; /* the store's number */
	struct call_map *map;
	struct call_tree *samples, *counted;
};

/* Compared as bytes. */
struct function_record {
	struct gathered_function key;
	uint32_t number, pad;
};

struct gatherer {
	struct gathered *out;
	VEC(struct program) programs;
	VEC(uint64_t) kernels; /* keys of images of the kernel */
	struct hmap functions;
	uint32_t paths; /* numbers given */
	struct call_sites *sites;
};

/* ---- reading ---- */

static struct program *program_of(struct gatherer *g, int64_t image)
{
	struct program *p;

	vec_each (known, &g->programs)
		if (known->image == image)
			return known;
	p = vec_add(&g->programs);
	*p = (struct program){
		image, call_map_create(), call_tree_create(NULL), call_tree_create(NULL)};
	return p;
}

static int take_map(void *arg, const struct store_profile *p)
{
	return call_map_add(program_of(arg, p->image)->map, p->data, p->size);
}

/* Contexts that were counted have no such metric. */
static int take_contexts(void *arg, const struct store_profile *p)
{
	struct program *to = program_of(arg, p->image);
	struct call_tree *t = call_tree_create(NULL);
	int r = call_tree_add(t, p->data, p->size);
	bool sampled = metric_find(call_tree_metrics(t), CONTEXT_METRIC_RANKED) >= 0;

	if (!r)
		r = call_tree_add(sampled ? to->samples : to->counted, p->data, p->size);
	call_tree_destroy(t);
	return r;
}

static int take_image(void *arg, const struct store_image *im)
{
	struct gatherer *g = arg;

	uint64_t key = edge_image_key(im->kind, &im->identity, im->path);

	if (im->kind == IMAGE_KERNEL || im->kind == IMAGE_MODULE)
		*vec_add(&g->kernels) = key;
	if (im->kind == IMAGE_ELF)
		call_sites_add(g->sites, key, im->path, &im->identity);
	return 0;
}

static int read_all(struct gatherer *g, struct store *s, struct err *e)
{
	struct store_filter maps = {.type = &blob_pathmap}, samples = {.type = &blob_context};
	int r = store_images(s, take_image, g, e);

	if (!r)
		r = store_profiles(s, &maps, take_map, g, e);
	if (!r)
		r = store_profiles(s, &samples, take_contexts, g, e);
	return r == -EBADMSG ? err_set(e, r, "contexts are damaged: 'culprit db check' says which")
			     : r;
}

/* What was counted has paths that nobody sampled. */
static void train(struct gatherer *g, struct program *p)
{
	struct call_trainer *t = call_trainer_create(p->counted, g->sites);

	p->counted = NULL;
	call_trainer_recall(t, p->map, p->map);
	call_trainer_destroy(t);
}

/* ---- weights ---- */

static bool is_kernel(const struct gatherer *g, uint64_t key)
{
	vec_each (k, &g->kernels)
		if (*k == key)
			return true;
	return false;
}

/* The samples of each path, by node of the map; those in the kernel are of the path there. Maps
 * know nothing of who jumped. */
static double *path_samples(struct gatherer *g, const struct program *p)
{
	struct call_tree *paths = call_map_tree(p->map);
	uint32_t n = call_tree_size(p->samples), known = call_tree_size(paths);
	uint32_t *node = xcalloc(n + 1, sizeof *node);
	double *out = xcalloc(known + 1, sizeof *out);

	for (uint32_t i = 0; i < n; i++) {
		const struct call_node *c = call_tree_node(p->samples, i);
		uint32_t parent = c->parent == CALL_NONE ? CALL_NONE : node[c->parent];

		node[i] = is_kernel(g, c->at.image) || c->at.site == CONTEXT_SITE_JUMPED
				  ? parent
				  : call_tree_child(paths, parent, &c->at);
		if (node[i] < known)
			out[node[i]] += (double)c->count;
	}
	free(node);
	return out;
}

/* Of all contexts at one place; compared as bytes. */
struct place_sum {
	uint64_t function, stack;
	int64_t height;
	double weight, sampled;
};

static struct place_sum place_key(const struct separate_context *c)
{
	return (struct place_sum){.function = c->function, .stack = c->stack, .height = c->height};
}

/* A path's samples by its heights, into the weights of its contexts: as stacks were sampled there;
 * where none were, as they were seen or counted. */
static void share_out(const double *of_path, uint32_t paths,
	const struct unfolded_context *contexts, size_t n, struct separate_context *out)
{
	double *sampled = xcalloc(paths + 1, sizeof *sampled);
	double *seen = xcalloc(paths + 1, sizeof *seen);

	for (size_t i = 0; i < n; i++) {
		sampled[contexts[i].path] += (double)contexts[i].sampled;
		seen[contexts[i].path] += (double)contexts[i].seen;
	}
	for (size_t i = 0; i < n; i++) {
		uint32_t path = contexts[i].path;
		double part = (double)(sampled[path] > 0 ? contexts[i].sampled : contexts[i].seen);
		double all = sampled[path] > 0 ? sampled[path] : seen[path];

		out[i].weight = all > 0 ? of_path[path] * part / all : 0;
	}
	free(sampled);
	free(seen);
}

static void weigh(struct gatherer *g, const struct program *p,
	const struct unfolded_context *contexts, size_t n, struct separate_context *out)
{
	uint32_t paths = call_tree_size(call_map_tree(p->map));
	double *of_path = path_samples(g, p);
	struct hmap places;

	hmap_init(&places, sizeof(struct place_sum), offsetof(struct place_sum, weight));
	share_out(of_path, paths, contexts, n, out);
	for (size_t i = 0; i < n; i++) {
		struct place_sum key = place_key(&out[i]), *s;

		s = hmap_put(&places, &key, NULL);
		s->weight += out[i].weight;
		s->sampled += (double)contexts[i].sampled;
	}
	for (size_t i = 0; i < n; i++) {
		struct place_sum key = place_key(&out[i]), *s = hmap_get(&places, &key);

		if (s->sampled > 0)
			out[i].weight = s->weight * (double)contexts[i].sampled / s->sampled;
	}
	hmap_deinit(&places);
	free(of_path);
}

/* ---- contexts ---- */

static uint32_t function_of(struct gatherer *g, const struct call_place *at)
{
	struct gathered_function key = {at->image, at->procedure};
	bool fresh;
	struct function_record *r = hmap_put(&g->functions, &key, &fresh);

	if (fresh) {
		r->number = (uint32_t)g->out->functions.n;
		*vec_add(&g->out->functions) = key;
	}
	return r->number;
}

static bool has_image(const struct program *p, uint64_t image)
{
	const struct call_tree *t = call_map_tree(p->map);

	for (uint32_t i = 0; i < call_tree_size(t); i++)
		if (call_tree_node(t, i)->at.image == image)
			return true;
	return false;
}

static void add_program(struct gatherer *g, uint32_t number)
{
	const struct program *p = &g->programs.p[number];
	const struct call_tree *t = call_map_tree(p->map);
	struct unfolded_context *contexts;
	size_t n = call_map_unfold(p->map, &contexts), first = g->out->contexts.n;

	for (size_t i = 0; i < n; i++) {
		const struct unfolded_context *c = &contexts[i];
		uint32_t caller =
			c->caller == CALL_NONE ? SEPARATE_NONE : (uint32_t)first + c->caller;
		struct separate_context fresh = {.path = g->paths + c->path,
			.function = function_of(g, &call_tree_node(t, c->path)->at),
			.caller = caller,
			.stack = number * STACK_KINDS + c->kind,
			.height = c->height};

		*vec_add(&g->out->contexts) = fresh;
	}
	g->paths += call_tree_size(t);
	if (n)
		weigh(g, p, contexts, n, g->out->contexts.p + first);
	free(contexts);
}

int gather_contexts(struct store *s, uint64_t image, struct gathered *out, struct err *e)
{
	struct gatherer g = {.out = out};
	int r;

	*out = (struct gathered){0};
	hmap_init(&g.functions, sizeof(struct function_record), sizeof(struct gathered_function));
	g.sites = call_sites_create();
	r = read_all(&g, s, e);
	for (uint32_t i = 0; !r && i < g.programs.n; i++)
		if (has_image(&g.programs.p[i], image)) {
			train(&g, &g.programs.p[i]);
			add_program(&g, i);
		}
	if (!r && !out->contexts.n)
		r = err_set(e, -ENOENT,
			"no call paths of this file are known; 'culprit record -g -- COMMAND' "
			"learns them");
	vec_each (p, &g.programs) {
		call_map_destroy(p->map);
		call_tree_destroy(p->samples);
		call_tree_destroy(p->counted);
	}
	vec_deinit(&g.programs);
	vec_deinit(&g.kernels);
	hmap_deinit(&g.functions);
	call_sites_destroy(g.sites);
	if (r)
		gathered_deinit(out);
	return r;
}

void gathered_deinit(struct gathered *g)
{
	vec_deinit(&g->contexts);
	vec_deinit(&g->functions);
}
