/* record --paths: how often every acyclic path inside procedures ran. */
#include "base/err.h"
#include "cmd/measuring.h"
#include "cmd/record_edited.h"
#include "edit/guide.h"
#include "paths/read.h"
#include "paths/tool.h"

#include <inttypes.h>

struct paths_own {
	struct paths_options options; /* of the file that is edited; the guide is ours */
	struct guide *guide;
	struct paths_read_summary sum;
	size_t images;
	struct measuring measuring;
};

static struct paths_own *own_of(struct edited_run *r)
{
	struct paths_own *own = r->own;

	if (!own) {
		own = r->own = xcalloc(1, sizeof *own);
		own->options.atomic = r->choice->atomic;
		own->options.per_thread = r->choice->per_thread;
		own->options.full = r->choice->full;
		own->options.measures = r->measures;
	}
	return own;
}

static int tool(struct edited_run *r, const char *path, struct edit_tool *out, struct err *e)
{
	struct paths_own *own = own_of(r);
	int rc = edited_find_guide(r, path, &own->guide, e);

	own->options.guide = own->guide;
	if (!rc)
		paths_tool(&own->options, out);
	return rc;
}

static void release(struct edited_run *r)
{
	guide_destroy(own_of(r)->guide);
}

static void add_result(struct edited_run *r, const struct edited_file *f,
	const struct metric_names *measured, struct path_rows *rows)
{
	struct metric_names names;
	struct result *to = vec_add(&r->results.list);

	measuring_settle(&own_of(r)->measuring, measured, rows, &names);
	*to = (struct result){.path = f->original, .event = "paths", .type = &blob_path};
	vec_each (row, &rows->list)
		if (!row->is_path)
			*vec_add(&to->procedures) = row->procedure;
	paths_pack(&names, rows->list.p, rows->list.n, &to->packed);
}

static int read_file(struct edited_run *r, const struct edited_file *f, struct err *e)
{
	struct paths_own *own = own_of(r);
	struct paths_read_summary sum;
	struct path_rows rows = {0};
	struct counts counts;
	int rc = edited_map_counts(r, f, &counts, e);

	if (rc)
		return rc;
	rc = paths_read(&(struct paths_source){.map = f->edit.map.p,
				.size = f->edit.map.n,
				.words = counts.p,
				.n = counts.bytes / sizeof *counts.p,
				.shared = edited_is_shared(r)},
		&rows, &sum);
	counts_unmap(&counts);
	if (rc) {
		path_rows_deinit(&rows);
		return err_set(e, rc, "%s: the map of its counters is damaged", f->edit.image);
	}
	paths_summary_add(&own->sum, &sum);
	own->images += rows.list.n > 0;
	if (rows.list.n)
		add_result(r, f, &sum.metrics, &rows);
	path_rows_deinit(&rows);
	return 0;
}

static int read_all(struct edited_run *r, struct err *e)
{
	int rc = 0;

	measuring_calibrate(&own_of(r)->measuring);
	for (size_t i = 0; i < r->files.n && !rc; i++)
		rc = read_file(r, &r->files.p[i], e);
	return rc;
}

static void say(struct edited_run *r, const char *database)
{
	const struct paths_own *own = own_of(r);

	cmd_note("paths: %" PRIu64 " ran, %" PRIu64 " times, in %" PRIu32
		 " procedures of %zu files -> %s",
		own->sum.paths, own->sum.executions, own->sum.procedures, own->images, database);
	if (own->sum.unfinished)
		cmd_note("%" PRIu64 " paths were begun and not ended (exceptions, longjmp, the end "
			 "of the process): they are not counted",
			own->sum.unfinished);
	if (own->sum.no_room)
		cmd_note("%" PRIu64 " executions found no room in the table of paths: they are "
			 "not counted",
			own->sum.no_room);
	measuring_say(&own->measuring, &own->sum);
	edited_say_shared(r);
}

const struct edited_kind edited_paths = {
	.name = "paths",
	.tool = tool,
	.read = read_all,
	.say = say,
	.release = release,
};
