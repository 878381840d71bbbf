/* record --context: how often every procedure was called, by calling context; with --paths also
 * which paths it took there. */
#include "base/err.h"
#include "calls/tree.h"
#include "cmd/measuring.h"
#include "cmd/record_edited.h"
#include "context/context.h"
#include "context/path_read.h"
#include "edit/guide.h"
#include "paths/calibrate.h"
#include "store/contexts.h"

#include <inttypes.h>

struct context_own {
	struct context_options options; /* of the file that is edited; the guide is ours */
	struct guide *guide;
	struct context_summary sum;
	struct paths_read_summary paths;
	struct measuring measuring; /* of paths */
	uint32_t contexts;
	uint64_t entries, ticks;
	bool clock; /* is measured */
};

static struct context_own *own_of(struct edited_run *r)
{
	struct context_own *own = r->own;

	if (!own) {
		own = r->own = xcalloc(1, sizeof *own);
		own->options.atomic = r->choice->atomic;
		own->options.measures = r->measures;
		own->options.paths = r->choice->paths;
		own->options.full = r->choice->full;
	}
	return own;
}

static int tool(struct edited_run *r, const char *path, struct edit_tool *out, struct err *e)
{
	struct context_own *own = own_of(r);
	int rc = edited_find_guide(r, path, &own->guide, e);

	own->options.guide = own->guide;
	if (!rc)
		context_tool(&own->options, out);
	return rc;
}

static void release(struct edited_run *r)
{
	guide_destroy(own_of(r)->guide);
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

static void add_tree(
	struct edited_run *r, struct call_tree *tree, const struct path_words_map *maps)
{
	for (size_t i = 0; i < r->files.n; i++) {
		struct result *to = vec_add(&r->results.list);

		*to = (struct result){.path = r->files.p[i].original};
		if (!i) {
			to->event = CONTEXT_EVENT_COUNTED;
			to->type = &blob_context;
			call_tree_pack(tree, &to->packed);
		}
		keep_procedures(tree, &maps[i].context, context_map_key(&maps[i].context), to);
	}
}

/* What `paths` shows: those of all contexts together. */
static int add_paths(struct edited_run *r, const struct path_read *read, size_t file, struct err *e)
{
	struct context_own *own = own_of(r);
	struct paths_read_summary sum;
	struct metric_names names;
	struct path_rows rows = {0};
	struct result *to;
	int rc = paths_read(&(struct paths_source){.map = read->maps[file].paths,
				    .size = read->maps[file].size,
				    .words = read->sums[file].p,
				    .n = read->sums[file].n,
				    .hashed = read->keys[file].p,
				    .nhashed = read->keys[file].n,
				    .shared = own->sum.shared && !r->choice->atomic},
		&rows, &sum);

	if (!rc && rows.list.n) {
		to = vec_add(&r->results.list);
		*to = (struct result){
			.path = r->files.p[file].original, .event = "paths", .type = &blob_path};
		measuring_settle(&own->measuring, &sum.metrics, &rows, &names);
		paths_pack(&names, rows.list.p, rows.list.n, &to->packed);
		paths_summary_add(&own->paths, &sum);
	}
	path_rows_deinit(&rows);
	return rc ? err_set(e, rc, "%s: the map of its paths is damaged",
			    r->files.p[file].edit.image)
		  : 0;
}

static int add_results(
	struct edited_run *r, struct call_tree *tree, struct path_read *read, struct err *e)
{
	struct context_own *own = own_of(r);
	int rc = path_read_add(read, tree);

	if (rc)
		return err_set(
			e, rc, "%s: the map of its paths is damaged", r->files.p[0].edit.image);
	add_tree(r, tree, read->maps);
	if (own->options.paths)
		measuring_calibrate(&own->measuring);
	for (size_t i = 0; i < r->files.n && own->options.paths && !rc; i++)
		rc = add_paths(r, read, i, e);
	return rc;
}

static int read_tree(struct edited_run *r, const struct path_words_map *maps, struct err *e)
{
	struct context_own *own = own_of(r);
	struct path_read read = {.maps = maps, .nmaps = r->files.n};
	struct context_sink sink = path_read_sink(&read);
	struct context_map *contexts = xcalloc(r->files.n + 1, sizeof *contexts);
	struct call_tree *tree = call_tree_create(&maps[0].context.metrics);
	int rc, clock = metric_find(&maps[0].context.metrics, MEASURE_CLOCK);

	own->clock = clock >= 0;
	for (size_t i = 0; i < r->files.n; i++)
		contexts[i] = maps[i].context;
	rc = context_arena_load(
		r->files.p[0].counts, contexts, r->files.n, tree, &sink, &own->sum, e);
	own->contexts = call_tree_size(tree);
	for (uint32_t i = 0; i < own->contexts; i++) {
		own->entries += call_tree_node(tree, i)->count;
		own->ticks += own->clock ? call_tree_node(tree, i)->metrics[clock] : 0;
	}
	if (!rc)
		rc = add_results(r, tree, &read, e);
	call_tree_destroy(tree);
	path_read_deinit(&read);
	free(contexts);
	return rc;
}

static int read_all(struct edited_run *r, struct err *e)
{
	struct path_words_map *maps = xcalloc(r->files.n + 1, sizeof *maps);
	int rc = 0;

	for (size_t i = 0; i < r->files.n && !rc; i++) {
		const struct edited_file *f = &r->files.p[i];

		rc = path_words_read(&maps[i], f->edit.map.p, f->edit.map.n);
		if (rc)
			err_set(e, rc, "%s: the map of its contexts is damaged", f->edit.image);
	}
	if (!rc)
		rc = read_tree(r, maps, e);
	for (size_t i = 0; i < r->files.n; i++)
		context_map_deinit(&maps[i].context);
	free(maps);
	return rc;
}

/* Two readings for a call, or three: about what a path takes in which nothing happens. */
static void say_measuring(const struct context_own *own)
{
	double each = paths_calibrate(), reading = paths_calibrate_reading();

	cmd_note("the clock was read %" PRIu64 " times at least (at calls, at returns), at %.1f "
		 "ticks each: %.0f million ticks",
		2 * own->entries, reading, reading * 2 * (double)own->entries / 1e6);
	cmd_note("what was measured includes about %.0f ticks of measuring for each entry: %.0f%% "
		 "of all",
		each, own->ticks ? 100 * each * (double)own->entries / (double)own->ticks : 0);
}

static void say_paths(const struct context_own *own)
{
	cmd_note("paths: %" PRIu64 " ran, %" PRIu64 " times", own->paths.paths,
		own->paths.executions);
	if (own->paths.unfinished)
		cmd_note("%" PRIu64 " paths were begun and not ended (exceptions, longjmp, the end "
			 "of the process): they are not counted",
			own->paths.unfinished);
	measuring_say(&own->measuring, &own->paths);
}

static void say(struct edited_run *r, const char *database)
{
	const struct context_own *own = own_of(r);

	cmd_note("contexts: %" PRIu32 ", entered %" PRIu64 " times, in %" PRIu64 " KB -> %s",
		own->contexts, own->entries, own->sum.bytes >> 10, database);
	if (own->options.paths)
		say_paths(own);
	else if (own->clock)
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
	.release = release,
};
