#include "calls/compare.h"

#include "base/mem.h"
#include "calls/unfold.h"

static struct call_frame frame_of(const struct call_tree *t, const struct unfolded_context *c)
{
	const struct call_place *at = &call_tree_node(t, c->path)->at;

	return (struct call_frame){at->image, at->procedure, c->height};
}

static void add_path(struct call_score *sum, enum call_verdict v, uint32_t degree, uint64_t weight)
{
	sum->verdicts[v].paths++;
	sum->verdicts[v].weight += weight;
	if (v == PATH_WRONG || v == PATH_MISSING || !degree)
		return;
	if (degree > CALL_DEGREES)
		degree = CALL_DEGREES;
	sum->degrees[degree - 1].paths++;
	sum->degrees[degree - 1].weight += weight;
}

/* Who called the frames that the map asks for. */
static void ask(const struct call_comparison *c, const struct unfolded_context *all,
	const struct unfolded_context *one, const struct call_frame *frame, struct call_told *told)
{
	const struct call_tree *from = call_map_tree(c->truth);
	int64_t heights[CALL_TOLD];

	told->n = (uint32_t)call_map_ask(c->map, one->kind, frame, heights);
	for (size_t i = 0; i < told->n; i++) {
		const struct unfolded_context *at = one;

		while (at->height > heights[i] && at->caller != CALL_NONE)
			at = &all[at->caller];
		/* Elsewhere the word is no return address. */
		told->callers[i] = (struct call_frame){0};
		if (at->height == heights[i] && at->caller != CALL_NONE)
			told->callers[i] = frame_of(from, &all[at->caller]);
		told->callers[i].height = heights[i];
	}
}

/* What the sites say that the map knows for a path that it has named right. */
static enum call_verdict judge_sites(
	const struct call_site_path *known, size_t n, uint64_t hash, enum call_verdict path)
{
	size_t most = 0;
	bool among = false;

	for (size_t i = 0; i < n; i++) {
		most = known[i].count > known[most].count ? i : most;
		among |= known[i].hash == hash;
	}
	if (!among)
		return n ? PATH_WRONG : PATH_MISSING;
	if (known[most].hash != hash)
		return PATH_AMBIGUOUS;
	return n == 1 ? path : PATH_FIRST;
}

/* The same of all sites that a context of the truth was called by. */
static void compare_sites(const struct call_comparison *c, const struct unfolded_context *one,
	enum call_verdict v, const struct call_answer *answer, struct call_score *sum)
{
	struct call_frame frame = frame_of(call_map_tree(c->truth), one);
	const struct call_site_path *known = NULL, *all;
	size_t nknown = 0, n;

	if (!c->sites || !c->true_sites)
		return;
	n = call_site_paths_at(
		c->true_sites, call_map_number(c->truth, one->kind, &frame, one->path), &all);
	if (v <= PATH_FIRST)
		nknown = call_site_paths_at(
			c->sites, call_map_number(c->map, one->kind, &frame, answer->node), &known);
	for (size_t i = 0; i < n; i++)
		add_path(sum, v <= PATH_FIRST ? judge_sites(known, nknown, all[i].hash, v) : v,
			(uint32_t)nknown * answer->degree, all[i].count);
}

/* The path of a context of the truth, in the map that is judged. */
static void compare_one(const struct call_comparison *c, const struct unfolded_context *all,
	const struct unfolded_context *one, uint64_t weight, struct call_score *sum,
	struct call_score *by_site)
{
	const struct call_tree *from = call_map_tree(c->truth);
	uint32_t node = call_tree_copy_path(call_map_tree(c->map), from, one->path);
	struct call_frame frame = frame_of(from, one);
	struct call_told told = {.n = 0};
	struct call_answer answer;
	enum call_verdict v;

	if (c->key == CALL_BY_CALLER)
		ask(c, all, one, &frame, &told);
	v = call_map_judge(c->map, one->kind, &frame, &told, node, &answer);
	add_path(sum, v, answer.degree, weight);
	compare_sites(c, one, v, &answer, by_site);
	if (c->wrong && v > PATH_FIRST)
		c->wrong(c->arg, v, one->path, answer.node, weight);
}

void call_map_compare(
	const struct call_comparison *c, struct call_score *sum, struct call_score *by_site)
{
	_cleanup_free_ struct unfolded_context *all = NULL;
	size_t n = call_map_unfold(c->truth, &all);

	for (size_t i = 0; i < n; i++) {
		uint64_t weight = c->counted ? all[i].seen : all[i].sampled;

		if (weight)
			compare_one(c, all, &all[i], weight, sum, by_site);
	}
}
