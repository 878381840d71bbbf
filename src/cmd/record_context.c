/* record --context: how often every procedure was called, by calling context. */
#include "base/err.h"
#include "calls/tree.h"
#include "cmd/record_edited.h"
#include "context/arena.h"
#include "context/context.h"
#include "paths/calibrate.h"
#include "store/contexts.h"

#include <inttypes.h>

struct context_own {
	struct context_options options;
	struct context_summary sum;
	uint32_t contexts;
	uint64_t entries, ticks;
};

static struct context_own *own_of(struct edited_run *r)
{
	struct context_own *own = r->own;

	if (!own) {
		own = r->own = xcalloc(1, sizeof *own);
		own->options.atomic = r->choice->atomic;
		own->options.timed = r->choice->metrics.n;
	}
	return own;
}

static int tool(struct edited_run *r, const char *path, struct edit_tool *out, struct err *e)
{
	(void)path;
	(void)e;
	context_tool(&own_of(r)->options, out);
	return 0;
}

static int prepare(struct edited_run *r, const char *path, struct err *e)
{
	(void)r;
	return context_arena_create(path, e);
}

/* ---- what came out ---- */

/* The procedures of an image that are in the tree: others need not be named. */
static void keep_procedures(const struct call_tree *tree, const struct context_map *map,
	uint64_t key, struct result *to)
{
	bool *called = xcalloc(map->procedures.n + 1, sizeof *called);

	for (uint32_t i = 0; i < call_tree_size(tree); i++) {
		const struct call_place *at = &call_tree_node(tree, i)->at;
		size_t number =
			at->image == key ? context_map_find(map, at->procedure) : map->procedures.n;

		called[number] = true;
	}
	for (size_t i = 0; i < map->procedures.n; i++)
		if (called[i])
			*vec_add(&to->procedures) = map->procedures.p[i].start;
	free(called);
}

static void add_results(
	struct edited_run *r, struct call_tree *tree, const struct context_map *maps)
{
	for (size_t i = 0; i < r->files.n; i++) {
		struct result *to = vec_add(&r->results.list);

		*to = (struct result){.path = r->files.p[i].original};
		if (!i) {
			to->event = "context";
			to->type = &blob_context;
			call_tree_pack(tree, &to->packed);
		}
		keep_procedures(tree, &maps[i], context_map_key(&maps[i]), to);
	}
}

static int read_tree(struct edited_run *r, struct context_map *maps, struct err *e)
{
	struct context_own *own = own_of(r);
	struct metric_names names = {0};
	struct call_tree *tree;
	int rc;

	if (own->options.timed)
		metric_add(&names, "tsc");
	tree = call_tree_create(&names);
	rc = context_arena_load(r->files.p[0].counts, maps, r->files.n, tree, &own->sum, e);

	own->contexts = call_tree_size(tree);
	for (uint32_t i = 0; i < own->contexts; i++) {
		own->entries += call_tree_node(tree, i)->count;
		own->ticks += call_tree_node(tree, i)->metrics[0];
	}
	if (!rc)
		add_results(r, tree, maps);
	call_tree_destroy(tree);
	return rc;
}

static int read_all(struct edited_run *r, struct err *e)
{
	struct context_map *maps = xcalloc(r->files.n + 1, sizeof *maps);
	int rc = 0;

	for (size_t i = 0; i < r->files.n && !rc; i++) {
		const struct edited_file *f = &r->files.p[i];

		rc = context_map_read(&maps[i], f->edit.map.p, f->edit.map.n);
		if (rc)
			err_set(e, rc, "%s: the map of its contexts is damaged", f->edit.image);
	}
	if (!rc)
		rc = read_tree(r, maps, e);
	for (size_t i = 0; i < r->files.n; i++)
		context_map_deinit(&maps[i]);
	free(maps);
	return rc;
}

/* Two readings for a call, or three: about what a path takes in which nothing happens. */
static void say_measuring(const struct context_own *own)
{
	double each = paths_calibrate();

	cmd_note("what was measured includes about %.0f ticks of measuring for each entry: %.0f%% "
		 "of all",
		each, own->ticks ? 100 * each * (double)own->entries / (double)own->ticks : 0);
}

static void say(struct edited_run *r, const char *database)
{
	const struct context_own *own = own_of(r);

	cmd_note("contexts: %" PRIu32 ", entered %" PRIu64 " times, in %" PRIu64 " KB -> %s",
		own->contexts, own->entries, own->sum.bytes >> 10, database);
	if (own->options.timed)
		say_measuring(own);
	if (own->sum.lost)
		cmd_note("%" PRIu64 " entries found no room for another context: they are not "
			 "counted",
			own->sum.lost);
	if (own->sum.shared && !r->choice->atomic)
		cmd_note("children of fork counted in the same contexts as their parent, perhaps "
			 "at the same time: --atomic makes it exact");
}

const struct edited_kind edited_context = {
	.name = "context",
	.one_file = true,
	.tool = tool,
	.prepare = prepare,
	.read = read_all,
	.say = say,
};
