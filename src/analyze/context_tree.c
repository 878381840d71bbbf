#include "analyze/context_tree.h"

#include "analyze/call_name.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/hmap.h"
#include "base/mem.h"
#include "base/vec.h"
#include "store/contexts.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALLERS_DEEP 64 /* levels of callers that are looked at */

struct procedure_key {
	uint64_t image, start;
};

struct procedure_record {
	struct procedure_key key;
	uint64_t number;
};

struct context_tree {
	struct selection *sel;
	struct context_tree_options options;
	struct call_tree *calls;
	VEC(struct context_node) nodes;
	VEC(struct context_procedure) procedures;
	struct hmap index; /* struct procedure_record */
	struct arena arena;
	const char *metric;
	int which; /* of the tree's metrics; -1: calls */
	double total;
	uint64_t bytes;
	int sampled; /* the event's number in the selection; -1: calls were counted */
	uint64_t verdicts[PATH_VERDICTS];
};

/* ---- profiles ---- */

/* The number of the event that a profile was sampled by, -1: it was counted. */
static int sampled_by(const struct context_tree *t, const struct store_profile *p)
{
	const struct selected_event *list;
	int event = selection_event(t->sel, p->event);

	selection_events(t->sel, &list);
	return event >= 0 && strcmp(list[event].name, CONTEXT_EVENT_COUNTED) ? event : -1;
}

struct choice {
	struct context_tree *t;
	bool counted;
	int sampled; /* the first event */
};

static int look_at_profile(void *arg, const struct store_profile *p)
{
	struct choice *c = arg;
	int event = sampled_by(c->t, p);

	if (event < 0)
		c->counted |= !c->t->options.events || selection_event(c->t->sel, p->event) >= 0;
	else if (c->sampled < 0 || event < c->sampled)
		c->sampled = event;
	return 0;
}

static int take_profile(void *arg, const struct store_profile *p)
{
	struct context_tree *t = arg;

	if (sampled_by(t, p) != t->sampled)
		return 0;
	t->bytes += p->size;
	return call_tree_add(t->calls, p->data, p->size);
}

static int take_verdicts(void *arg, const struct store_profile *p)
{
	struct context_tree *t = arg;
	struct call_map *m = call_map_create();
	uint64_t verdicts[PATH_VERDICTS];
	int rc = call_map_add(m, p->data, p->size);

	if (!rc) {
		call_map_verdicts(m, verdicts);
		for (unsigned i = 0; i < PATH_VERDICTS; i++)
			t->verdicts[i] += verdicts[i];
	}
	call_map_destroy(m);
	return rc;
}

/* A tree goes through many images: which of them are wanted is asked later. */
static struct store_filter filter_of(const struct context_tree *t, const struct blob_type *type)
{
	struct store_filter filter = *selection_filter(t->sel);

	filter.type = type;
	filter.event = filter.image = NULL;
	return filter;
}

static int there_are_none(struct err *e)
{
	return err_set(e, -ENOENT,
		"no calling contexts in what was selected; 'culprit record -g -- COMMAND' "
		"samples them, 'culprit record --context -- COMMAND' counts them");
}

/* Samples of several events are not added up, nor are samples and calls. */
static int choose(struct context_tree *t, struct err *e)
{
	struct store_filter filter = filter_of(t, &blob_context);
	struct choice choice = {.t = t, .sampled = -1};
	int rc = store_profiles(selection_store(t->sel), &filter, look_at_profile, &choice, e);

	t->sampled = choice.counted ? -1 : choice.sampled;
	return !rc && !choice.counted && choice.sampled < 0 ? there_are_none(e) : rc;
}

static int put_damage_into_words(int rc, struct err *e)
{
	return rc == -EBADMSG
		       ? err_set(e, rc, "contexts are damaged: 'culprit db check' says which")
		       : rc;
}

static int gather(struct context_tree *t, struct err *e)
{
	struct store_filter filter = filter_of(t, &blob_context);
	int rc = choose(t, e);

	if (!rc)
		rc = store_profiles(selection_store(t->sel), &filter, take_profile, t, e);
	filter.type = &blob_pathmap;
	if (!rc && t->sampled >= 0)
		rc = store_profiles(selection_store(t->sel), &filter, take_verdicts, t, e);
	if (!rc && !call_tree_size(t->calls))
		return there_are_none(e);
	return put_damage_into_words(rc, e);
}

static int find_metric(struct context_tree *t, struct err *e)
{
	const struct metric_names *names = call_tree_metrics(t->calls);
	const char *plain = t->sampled < 0 ? CONTEXT_BY_CALLS : CONTEXT_BY_SAMPLES;
	const char *name = t->options.metric;
	struct buf known = {0};
	int rc;

	if (!name)
		name = t->sampled < 0 ? metric_first(names) : plain;
	if (!name)
		name = plain;
	t->which = metric_find(names, name);
	t->metric = arena_strdup(&t->arena, name);
	if (t->which >= 0 || !strcmp(name, plain))
		return 0;
	for (uint32_t i = 0; i < names->n; i++)
		buf_printf(&known, ", %s", names->name[i]);
	rc = err_set(e, -EINVAL, "no metric '%s' was measured; there are %s%s", name, plain,
		buf_cstr(&known));
	buf_deinit(&known);
	return rc;
}

/* ---- procedures ---- */

static uint32_t procedure_of(struct context_tree *t, const struct call_place *at)
{
	struct procedure_key key = {at->image, at->procedure};
	bool fresh;
	struct procedure_record *r = hmap_put(&t->index, &key, &fresh);

	if (fresh) {
		char label[512];

		call_name(t->sel, at, label, sizeof label);
		r->number = t->procedures.n;
		*vec_add(&t->procedures) =
			(struct context_procedure){.name = arena_strdup(&t->arena, label),
				.image = call_name_image(t->sel, at->image),
				.start = at->procedure};
	}
	return (uint32_t)r->number;
}

/* ---- the tree ---- */

/* Contexts that differ in call sites only become one. */
static struct call_tree *without_sites(const struct call_tree *from)
{
	struct call_tree *to = call_tree_create(call_tree_metrics(from));
	uint32_t n = call_tree_size(from);
	_cleanup_free_ uint32_t *became = xcalloc(n + 1, sizeof *became);

	for (uint32_t i = 0; i < n; i++) {
		const struct call_node *node = call_tree_node(from, i);
		struct call_place at = node->at;
		struct call_node *sum;

		at.site = at.site == CONTEXT_SITE_JUMPED ? at.site : 0;
		became[i] = call_tree_child(
			to, node->parent == CALL_NONE ? CALL_NONE : became[node->parent], &at);
		sum = call_tree_node(to, became[i]);
		sum->count = metric_sum(sum->count, node->count);
		for (uint32_t k = 0; k < METRICS_MOST; k++)
			sum->metrics[k] = metric_sum(sum->metrics[k], node->metrics[k]);
		for (uint32_t k = 0; k < node->npaths; k++) {
			const struct call_path *p = call_tree_path(from, node->path + k);

			call_tree_add_path(to, became[i], &p->shape, p->count, p->metrics);
		}
	}
	return to;
}

static bool is_wanted(const struct context_tree *t, const struct context_procedure *p)
{
	const char *image = selection_filter(t->sel)->image, *name = t->options.procedure;

	if (name && strcmp(name, p->name) && fnmatch(name, p->name, 0))
		return false;
	return !image || (p->image && (!fnmatch(image, p->image->path, 0) ||
					      !fnmatch(image, selected_image_name(p->image), 0)));
}

static struct context_node make_node(struct context_tree *t, uint32_t number)
{
	const struct call_node *from = call_tree_node(t->calls, number);
	struct context_node to = {.parent = from->parent,
		.depth = from->depth,
		.procedure = procedure_of(t, &from->at),
		.source = number,
		.recursive = from->at.recursive,
		.jumped = from->at.site == CONTEXT_SITE_JUMPED,
		.site = from->at.site == CONTEXT_SITE_JUMPED ? 0 : from->at.site,
		.count = from->count};
	double weight;

	weight = (double)(t->which < 0 ? from->count : from->metrics[t->which]);
	t->total += weight;
	if (is_wanted(t, &t->procedures.p[to.procedure]))
		to.own = weight;
	return to;
}

/* For sorting: nodes by parent, heaviest first. */
static int compare_siblings(const void *a, const void *b, void *arg)
{
	const struct context_node *nodes = arg;
	const struct context_node *x = &nodes[*(const uint32_t *)a];
	const struct context_node *y = &nodes[*(const uint32_t *)b];

	if (x->parent != y->parent)
		return x->parent < y->parent ? -1 : 1;
	if (x->all != y->all)
		return x->all > y->all ? -1 : 1;
	if (x->count != y->count)
		return x->count > y->count ? -1 : 1;
	return x->source < y->source ? -1 : x->source > y->source;
}

/* Puts nodes, whose numbers are those of their sources, into preorder. */
static void order_nodes(struct context_tree *t)
{
	uint32_t n = (uint32_t)t->nodes.n, placed = 0;
	struct context_node *from = t->nodes.p, *to = xcalloc(n + 1, sizeof *to);
	_cleanup_free_ uint32_t *order = xcalloc(n + 1, sizeof *order);
	_cleanup_free_ uint32_t *next = xcalloc(n + 1, sizeof *next);
	_cleanup_free_ uint32_t *child = xcalloc(n + 1, sizeof *child);
	uint32_t root = CONTEXT_NONE, at;

	for (uint32_t i = 0; i < n; i++) {
		order[i] = i;
		child[i] = CONTEXT_NONE;
	}
	qsort_r(order, n, sizeof *order, compare_siblings, from);
	for (uint32_t i = n; i--;) {
		uint32_t *first = from[order[i]].parent == CONTEXT_NONE
					  ? &root
					  : &child[from[order[i]].parent];

		next[order[i]] = *first;
		*first = order[i];
	}
	/* `end` of the old node is where its new one is, until that is known by the children. */
	for (at = root; at != CONTEXT_NONE;) {
		to[placed] = from[at];
		if (from[at].parent != CONTEXT_NONE)
			to[placed].parent = from[from[at].parent].end;
		from[at].end = placed++;
		if (child[at] != CONTEXT_NONE) {
			at = child[at];
			continue;
		}
		for (; at != CONTEXT_NONE; at = from[at].parent) {
			to[from[at].end].end = placed;
			if (next[at] != CONTEXT_NONE)
				break;
		}
		at = at == CONTEXT_NONE ? at : next[at];
	}
	free(from);
	t->nodes.p = to;
	t->nodes.n = t->nodes.space = n;
}

static void sum_up(struct context_tree *t)
{
	for (size_t i = t->nodes.n; i--;) {
		struct context_node *n = &t->nodes.p[i];

		n->all += n->own;
		if (n->parent != CONTEXT_NONE)
			t->nodes.p[n->parent].all += n->all;
		t->procedures.p[n->procedure].own += n->own;
		t->procedures.p[n->procedure].count += n->count;
		t->procedures.p[n->procedure].records += !n->recursive;
	}
}

static void build(struct context_tree *t)
{
	uint32_t n;

	if (!t->options.sites) {
		struct call_tree *merged;

		call_tree_settle(t->calls);
		merged = without_sites(t->calls);
		call_tree_destroy(t->calls);
		t->calls = merged;
	}
	call_tree_settle(t->calls);
	n = call_tree_size(t->calls);
	for (uint32_t i = 0; i < n; i++)
		*vec_add(&t->nodes) = make_node(t, i);
	sum_up(t);
	order_nodes(t);
}

static struct context_tree *make_tree(
	struct selection *sel, const struct context_tree_options *o, struct call_tree *calls)
{
	struct context_tree *t = xcalloc(1, sizeof *t);

	t->sel = sel;
	t->options = *o;
	t->calls = calls;
	t->sampled = -1;
	hmap_init(&t->index, sizeof(struct procedure_record),
		offsetof(struct procedure_record, number));
	return t;
}

int context_tree_create(struct selection *sel, const struct context_tree_options *o,
	struct context_tree **out, struct err *e)
{
	struct context_tree *t = make_tree(sel, o, call_tree_create(NULL));
	int rc = gather(t, e);

	if (!rc)
		rc = find_metric(t, e);
	if (rc) {
		context_tree_destroy(t);
		return rc;
	}
	build(t);
	*out = t;
	return 0;
}

struct grouping {
	const struct context_tree *model;
	struct context_tree **trees;
	context_group_fn *group;
	void *arg;
};

static int take_into_group(void *arg, const struct store_profile *p)
{
	struct grouping *g = arg;
	struct context_tree **t = &g->trees[g->group(g->arg, p->process)];

	if (!*t) {
		*t = make_tree(g->model->sel, &g->model->options, call_tree_create(NULL));
		(*t)->sampled = g->model->sampled;
	}
	return take_profile(*t, p);
}

/* Trees without a context in them are none. */
static int finish_groups(struct context_tree **trees, size_t n, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < n && !rc; i++) {
		if (!trees[i])
			continue;
		if (!call_tree_size(trees[i]->calls)) {
			context_tree_destroy(trees[i]);
			trees[i] = NULL;
		} else if (!(rc = find_metric(trees[i], e))) {
			build(trees[i]);
		}
	}
	return rc;
}

int context_tree_groups(struct selection *sel, const struct context_tree_options *o,
	context_group_fn *group, void *arg, struct context_tree **out, size_t n, struct err *e)
{
	struct context_tree *model = make_tree(sel, o, call_tree_create(NULL));
	struct store_filter filter = filter_of(model, &blob_context);
	struct grouping g = {model, out, group, arg};
	int rc = choose(model, e);

	if (!rc)
		rc = store_profiles(selection_store(sel), &filter, take_into_group, &g, e);
	rc = put_damage_into_words(rc, e);
	if (!rc)
		rc = finish_groups(out, n, e);
	context_tree_destroy(model);
	for (size_t i = 0; i < n && rc; i++) {
		context_tree_destroy(out[i]);
		out[i] = NULL;
	}
	return rc;
}

const char *context_tree_sampled(const struct context_tree *t)
{
	const struct selected_event *list;

	selection_events(t->sel, &list);
	return t->sampled < 0 ? NULL : list[t->sampled].name;
}

enum context_known context_tree_known(const struct context_tree *t, const struct context_node *n)
{
	const struct call_node *node = call_tree_node(t->calls, n->source);
	const struct metric_names *names = call_tree_metrics(t->calls);
	int ranked = metric_find(names, CONTEXT_METRIC_RANKED);
	int unknown = metric_find(names, CONTEXT_METRIC_UNKNOWN);
	int walked = metric_find(names, CONTEXT_METRIC_WALKED);

	if (t->sampled < 0 || ranked < 0 || unknown < 0)
		return CONTEXT_EXACT;
	if (node->metrics[unknown])
		return CONTEXT_UNKNOWN;
	if (walked >= 0 && 2 * node->metrics[walked] > node->count)
		return CONTEXT_WALKED;
	return 2 * node->metrics[ranked] > node->count ? CONTEXT_RANKED : CONTEXT_UNIQUE;
}

const char *context_known_word(enum context_known k)
{
	static const char *const words[] = {"exact", "unique", "ranked", "walked", "unknown"};

	return words[k];
}

void context_tree_verdicts(const struct context_tree *t, uint64_t out[PATH_VERDICTS])
{
	memcpy(out, t->verdicts, sizeof t->verdicts);
}

void context_tree_destroy(struct context_tree *t)
{
	if (!t)
		return;
	call_tree_destroy(t->calls);
	vec_deinit(&t->nodes);
	vec_deinit(&t->procedures);
	hmap_deinit(&t->index);
	arena_deinit(&t->arena);
	free(t);
}

/* ---- who called ---- */

static uint32_t caller_node(struct context_tree *to, uint32_t parent, const struct context_tree *t,
	const struct context_node *n)
{
	const struct call_place *from = &call_tree_node(t->calls, n->source)->at;
	uint32_t number = call_tree_child(to->calls, parent,
		&(struct call_place){.image = from->image, .procedure = from->procedure});

	if (number == to->nodes.n)
		*vec_add(&to->nodes) = (struct context_node){.parent = parent,
			.depth = parent == CALL_NONE ? 0 : to->nodes.p[parent].depth + 1,
			.procedure = procedure_of(to, from),
			.source = number};
	return number;
}

/* One context, from its end to the root: everybody on the way is to blame for all of it. */
static void add_callers(
	struct context_tree *to, const struct context_tree *t, const struct context_node *n)
{
	double own = n->own;
	uint64_t count = n->count;
	uint32_t at = caller_node(to, CALL_NONE, t, n);

	to->nodes.p[at].own += own;
	for (uint32_t deep = 0;; deep++) {
		to->nodes.p[at].all += own;
		to->nodes.p[at].count += count;
		if (n->parent == CONTEXT_NONE || deep == CALLERS_DEEP)
			break;
		n = &t->nodes.p[n->parent];
		at = caller_node(to, at, t, n);
	}
}

struct context_tree *context_tree_callers(const struct context_tree *t, double least)
{
	struct context_tree *to = make_tree(t->sel, &t->options, call_tree_create(NULL));

	to->metric = t->metric;
	to->which = t->which;
	to->total = t->total;
	vec_each (n, &t->nodes)
		if (n->own > 0 && t->procedures.p[n->procedure].own >= least)
			add_callers(to, t, n);
	call_tree_settle(to->calls);
	order_nodes(to);
	return to;
}

/* ---- what there is ---- */

const char *context_tree_metric(const struct context_tree *t)
{
	return t->metric;
}

double context_tree_total(const struct context_tree *t)
{
	return t->total;
}

size_t context_tree_nodes(const struct context_tree *t, const struct context_node **out)
{
	*out = t->nodes.p;
	return t->nodes.n;
}

size_t context_tree_procedures(const struct context_tree *t, const struct context_procedure **out)
{
	*out = t->procedures.p;
	return t->procedures.n;
}

const struct call_tree *context_tree_calls(const struct context_tree *t)
{
	return t->calls;
}

uint64_t context_tree_bytes(const struct context_tree *t)
{
	return t->bytes;
}
