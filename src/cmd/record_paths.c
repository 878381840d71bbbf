/* record --paths: how often every acyclic path inside procedures ran. */
#include "base/err.h"
#include "cmd/record_edited.h"
#include "edit/guide.h"
#include "paths/calibrate.h"
#include "paths/read.h"
#include "paths/tool.h"

#include <inttypes.h>
#include <string.h>

struct paths_own {
	struct paths_options options; /* of the file that is edited; the guide is ours */
	struct guide *guide;
	struct paths_read_summary sum;
	size_t images;
	double each, reading; /* ticks that measuring a path takes; that a reading takes */
};

static struct paths_own *own_of(struct edited_run *r)
{
	struct paths_own *own = r->own;

	if (!own) {
		own = r->own = xcalloc(1, sizeof *own);
		own->options.atomic = r->choice->atomic;
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

/* Which metrics there are, in the order of what was read, and in that of the profile. */
static void name_metrics(
	const struct metric_names *measured, struct metric_names *read, struct metric_names *out)
{
	*read = *out = *measured;
	if (!measured->n)
		return;
	strcpy(read->name[read->n++], METRIC_READINGS);
	metric_add(out, METRIC_READINGS);
	if (read->n == METRICS_MOST || metric_find(measured, MEASURE_CLOCK) < 0)
		return;
	strcpy(read->name[read->n++], METRIC_MEASURING);
	metric_add(out, METRIC_MEASURING);
}

/* Stretches of the clock become what measuring has added to them. */
static void settle_metrics(const struct paths_own *own, const struct metric_names *measured,
	struct path_rows *rows, struct metric_names *names)
{
	struct metric_names read;

	name_metrics(measured, &read, names);
	vec_each (row, &rows->list) {
		int at = metric_find(&read, METRIC_MEASURING);

		if (at >= 0)
			row->metrics[at] = (uint64_t)((double)row->metrics[at] * own->each);
		metric_reorder(&read, row->metrics, names, row->metrics);
	}
}

static void add_result(struct edited_run *r, const struct edited_file *f,
	const struct metric_names *measured, struct path_rows *rows)
{
	struct metric_names names;
	struct result *to = vec_add(&r->results.list);

	settle_metrics(own_of(r), measured, rows, &names);

	*to = (struct result){.path = f->original, .event = "paths", .type = &blob_path};
	vec_each (row, &rows->list)
		if (!row->is_path)
			*vec_add(&to->procedures) = row->procedure;
	paths_pack(&names, rows->list.p, rows->list.n, &to->packed);
}

static void add_summary(struct paths_own *own, const struct paths_read_summary *sum)
{
	own->sum.procedures += sum->procedures;
	own->sum.paths += sum->paths;
	own->sum.executions += sum->executions;
	own->sum.unfinished += sum->unfinished;
	own->sum.no_room += sum->no_room;
	for (int i = 0; i < RT_METRICS; i++)
		own->sum.sums[i] += sum->sums[i];
	own->sum.readings += sum->readings;
	own->sum.stretches += sum->stretches;
	own->sum.unmeasured += sum->unmeasured;
	if (sum->metrics.n)
		own->sum.metrics = sum->metrics;
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
	add_summary(own, &sum);
	own->images += rows.list.n > 0;
	if (rows.list.n)
		add_result(r, f, &sum.metrics, &rows);
	path_rows_deinit(&rows);
	return 0;
}

static int read_all(struct edited_run *r, struct err *e)
{
	int rc = 0;

	own_of(r)->each = paths_calibrate();
	own_of(r)->reading = paths_calibrate_reading();
	for (size_t i = 0; i < r->files.n && !rc; i++)
		rc = read_file(r, &r->files.p[i], e);
	return rc;
}

/* The floor: what readings alone cost, when nothing waits for anything else. */
static void say_measuring(const struct paths_own *own)
{
	int clock = metric_find(&own->sum.metrics, MEASURE_CLOCK);
	double stretches = own->each * (double)own->sum.stretches;

	if (clock < 0) {
		cmd_note("metrics were read %" PRIu64 " times", own->sum.readings);
		return;
	}
	cmd_note("the clock was read %" PRIu64 " times, at %.1f ticks each: %.0f million ticks at "
		 "least",
		own->sum.readings, own->reading, own->reading * (double)own->sum.readings / 1e6);
	cmd_note("what a path took includes about %.0f ticks of measuring, each time, and as much "
		 "for each call: %.0f%% of all ticks",
		own->each,
		own->sum.sums[clock] ? 100 * stretches / (double)own->sum.sums[clock] : 0);
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
	if (own->sum.metrics.n)
		say_measuring(own);
	if (own->sum.unmeasured)
		cmd_note("%" PRIu64
			 " procedures have no room for readings: they are counted, and not "
			 "measured",
			own->sum.unmeasured);
	edited_say_shared(r);
}

const struct edited_kind edited_paths = {
	.name = "paths",
	.tool = tool,
	.read = read_all,
	.say = say,
	.release = release,
};
