/*
 * culprit top: where the time went (dcpiprof, Figure 1 of the DCPI paper).
 */
#include "base/err.h"
#include "cmd/top_live.h"
#include "cmd/top_view.h"

#include <getopt.h>
#include <string.h>

/* The views, and their columns behind the counts. */
static const struct top_by views[] = {
	{"procedure", TALLY_PROCEDURE, {"procedure", "image"}},
	{"image", TALLY_IMAGE, {"image"}},
	{"process", TALLY_PROCESS, {"pid", "process"}},
	{"thread", TALLY_THREAD, {"tid", "thread", "process"}},
	{"comm", TALLY_COMM, {"process name"}},
	{"line", TALLY_LINE, {"line", "image"}},
	{"cgroup", TALLY_CGROUP, {"cgroup"}},
	{"cpu", TALLY_CPU, {"cpu"}},
};

const struct top_by *top_views(size_t *n)
{
	*n = sizeof views / sizeof *views;
	return views;
}

/* ---- options ---- */

enum { TOP_BY = REPORT_LAST, TOP_SORT, TOP_CHILDREN, TOP_SLICES, TOP_OF, TOP_LIVE };

static int set_view(struct top *t, const char *name)
{
	t->over_time = !strcmp(name, "time");
	if (t->over_time)
		return 0;
	for (size_t i = 0; i < sizeof views / sizeof *views; i++)
		if (!strcmp(views[i].name, name)) {
			t->view = &views[i];
			return 0;
		}
	return cmd_usage("top",
		"--by takes procedure, image, process, thread, comm, line, cgroup, cpu or time, "
		"not '%s'",
		name);
}

static int top_option(void *arg, int c, const char *value)
{
	struct top *t = arg;

	switch (c) {
	case TOP_BY:
		return set_view(t, value);
	case TOP_SORT:
		t->sort = value;
		return 0;
	case TOP_CHILDREN:
		t->children = true;
		return 0;
	case TOP_LIVE:
		t->live = true;
		return 0;
	case TOP_SLICES:
		if (parse_uint(value, 1, TOP_SLICES_MOST, &t->slices))
			return cmd_usage("top", "--slices takes a number from 1 to %d, not '%s'",
				TOP_SLICES_MOST, value);
		return 0;
	case TOP_OF:
		t->of = value;
		if (strcmp(value, "image") && strcmp(value, "procedure"))
			return cmd_usage("top", "--of takes image or procedure, not '%s'", value);
		return 0;
	}
	return 1;
}

static int parse(struct top *t, int argc, char **argv)
{
	static const struct option options[] = {REPORT_LONG, REPORT_ROWS_LONG,
		REPORT_MIN_SHARE_LONG, {"by", required_argument, NULL, TOP_BY},
		{"sort", required_argument, NULL, TOP_SORT},
		{"children", no_argument, NULL, TOP_CHILDREN},
		{"live", no_argument, NULL, TOP_LIVE},
		{"slices", required_argument, NULL, TOP_SLICES},
		{"of", required_argument, NULL, TOP_OF}, {0}};
	static const struct report_verb verb = {"top", ":n:" REPORT_SHORT, options, top_option};
	int rc = report_parse(&t->report, &verb, t, argc, argv);

	if (!rc)
		rc = report_no_operand("top", argc, argv);
	if (!rc && t->report.procedure && t->view->by != TALLY_PROCEDURE &&
		t->view->by != TALLY_LINE)
		return cmd_usage("top", "--proc goes with --by procedure and --by line only");
	if (!rc && (t->slices || t->of) && !t->over_time)
		return cmd_usage("top", "--slices and --of go with --by time only");
	if (!rc && t->over_time && (t->children || t->report.procedure))
		return cmd_usage("top", "--by time goes without --children and --proc");
	if (!rc && t->children && t->view->by != TALLY_PROCEDURE)
		return cmd_usage("top", "--children goes with --by procedure only");
	if (!rc && t->live && (t->children || t->over_time || t->report.json))
		return cmd_usage("top", "--live goes without --children, --by time and --json");
	return rc;
}

/* ---- the whole ---- */

static int report(struct top *t, struct err *e)
{
	int rc = report_select(&t->report, t->sort, e);

	if (rc)
		return rc;
	if (!t->report.rows)
		t->report.rows =
			t->report.json || t->report.min_share > 0 ? UINT64_MAX : TOP_TEXT_ROWS;
	if (t->over_time)
		return top_time(&t->report, t->slices, t->of, e);
	if (t->children)
		return top_children(&t->report, e);
	rc = tally_create(t->report.sel, t->view->by, t->report.procedure, &t->tally, e);
	if (rc)
		return rc;
	report_pager(&t->report);
	if (t->report.json) {
		top_print_json(t);
	} else {
		top_print_text(t, stdout);
		report_epochs_note(&t->report);
	}
	return 0;
}

int cmd_top(int argc, char **argv)
{
	struct top t = {.view = &views[0]};
	struct err e = {0};
	int code = parse(&t, argc, argv);

	if (code < 0)
		code = cmd_help_text("top");
	else if (!code && (t.live ? top_live(&t, &e) : report(&t, &e)))
		code = cmd_fail(&e);
	tally_destroy(t.tally);
	report_deinit(&t.report);
	return code;
}
