#include "analyze/path_check.h"

#include "analyze/call_name.h"
#include "analyze/path_maps.h"
#include "base/buf.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

static uint64_t total(const struct call_score *s, bool weighted)
{
	uint64_t sum = 0;

	for (unsigned v = 0; v < PATH_CATEGORIES; v++)
		sum += weighted ? s->verdicts[v].weight : s->verdicts[v].paths;
	return sum;
}

double call_score_right(const struct call_score *s, bool weighted)
{
	uint64_t all = total(s, weighted), right = 0;

	for (unsigned v = PATH_PRECISE; v <= PATH_FIRST; v++)
		right += weighted ? s->verdicts[v].weight : s->verdicts[v].paths;
	return all ? (double)right / (double)all : 0;
}

static void add_score(struct call_score *to, const struct call_score *more)
{
	for (unsigned v = 0; v < PATH_CATEGORIES; v++) {
		to->verdicts[v].paths += more->verdicts[v].paths;
		to->verdicts[v].weight += more->verdicts[v].weight;
	}
	for (unsigned d = 0; d < CALL_DEGREES; d++) {
		to->degrees[d].paths += more->degrees[d].paths;
		to->degrees[d].weight += more->degrees[d].weight;
	}
}

/* The check of a program that is under way. */
struct checking {
	struct selection *sel, *truth;
	const struct call_tree *map, *paths;
	struct path_check *out;
};

/* Paths that were counted begin with what only the other database has. */
static void put_path(struct checking *c, const struct call_tree *t, uint32_t node, struct buf *out)
{
	const struct call_node *n = call_tree_node(t, node);
	char label[512];

	if (n->parent != CALL_NONE) {
		put_path(c, t, n->parent, out);
		buf_printf(out, " > ");
	}
	buf_printf(out, "%s",
		call_name(call_name_image(c->truth, n->at.image) ? c->truth : c->sel, &n->at, label,
			sizeof label));
}

static char *name_path(struct checking *c, const struct call_tree *t, uint32_t node)
{
	struct buf text = {0};
	char *name;

	put_path(c, t, node, &text);
	name = xstrdup(buf_cstr(&text));
	buf_deinit(&text);
	return name;
}

static void take_wrong(
	void *arg, enum call_verdict verdict, uint32_t node, uint32_t named, uint64_t weight)
{
	struct checking *c = arg;

	*vec_add(&c->out->wrong) = (struct checked_path){.verdict = verdict,
		.path = name_path(c, c->paths, node),
		.named = named == CALL_NONE ? NULL : name_path(c, c->map, named),
		.weight = weight};
}

/* A program that the maps know nothing of has an empty one. */
static void check_program(
	struct checking *c, const struct path_maps *maps, const struct path_map *truth)
{
	struct path_map *own = path_maps_find(maps, truth->program);
	struct call_map *none = own ? NULL : call_map_create(), *map = own ? own->map : none;
	struct checked_program p = {.image = truth->image};

	c->map = call_map_tree(map);
	c->paths = call_map_tree(truth->map);
	for (unsigned k = 0; k < CALL_KEYS; k++) {
		struct call_comparison comparison = {.map = map,
			.truth = truth->map,
			.counted = c->out->counted,
			.key = (enum call_key)k,
			.sites = own ? &own->sites : NULL,
			.true_sites = &truth->sites,
			.wrong = k == CALL_BY_CALLER ? take_wrong : NULL,
			.arg = c};

		call_map_compare(&comparison, &p.score[k], &p.by_site[k]);
		add_score(&c->out->all[k], &p.score[k]);
		add_score(&c->out->by_site[k], &p.by_site[k]);
	}
	call_map_destroy(none);
	*vec_add(&c->out->programs) = p;
}

static int by_weight(const void *a, const void *b)
{
	const struct checked_program *x = a, *y = b;
	uint64_t wx = total(&x->score[0], true), wy = total(&y->score[0], true);

	if (wx != wy)
		return wx > wy ? -1 : 1;
	return x->image->id < y->image->id ? -1 : x->image->id > y->image->id;
}

static int by_path_weight(const void *a, const void *b)
{
	const struct checked_path *x = a, *y = b;

	if (x->weight != y->weight)
		return x->weight > y->weight ? -1 : 1;
	return strcmp(x->path, y->path);
}

int path_check(
	struct selection *sel, struct selection *truth, struct path_check *out, struct err *e)
{
	struct checking c = {.sel = sel, .truth = truth, .out = out};
	struct path_maps maps = {0}, true_maps = {0};
	int rc = path_maps_load(sel, &maps, e);

	*out = (struct path_check){0};
	if (!rc)
		rc = path_maps_train(sel, &maps, e);
	if (!rc)
		rc = path_maps_count(truth, &maps, &true_maps, e);
	out->counted = true_maps.counted;
	out->training = true_maps.training;
	if (!rc && !out->counted)
		rc = path_maps_load(truth, &true_maps, e);
	for (size_t i = 0; !rc && i < true_maps.list.n; i++)
		check_program(&c, &maps, &true_maps.list.p[i]);
	vec_sort(&out->programs, by_weight);
	vec_sort(&out->wrong, by_path_weight);
	path_maps_deinit(&maps);
	path_maps_deinit(&true_maps);
	return rc;
}

void path_check_deinit(struct path_check *c)
{
	vec_each (p, &c->wrong) {
		free(p->path);
		free(p->named);
	}
	vec_deinit(&c->wrong);
	vec_deinit(&c->programs);
}
