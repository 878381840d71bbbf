/*
 * culprit stats: how much procedures vary over runs (dcpistats, Figure 3 of the DCPI paper).
 */
#include "analyze/stats.h"

#include "base/err.h"
#include "base/json.h"
#include "base/table.h"
#include "base/term.h"
#include "cmd/runs.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <string.h>

struct stats_verb {
	struct report report;
	bool by_epoch, normalise;
	struct run_set set;
	struct stats stats;
};

/* Samples of small procedures vary by chance: a reader gets those with this share, a script all. */
static const double TEXT_SHARE = 0.005;

/* ---- JSON ---- */

static void put_row(struct json *j, const struct stats_row *r)
{
	json_open(j, '{');
	json_kstr(j, "procedure", r->row->name);
	json_kstr(j, "image", r->row->image);
	json_kshare(j, "range", r->range);
	json_kdouble(j, "sum", r->sum);
	json_kshare(j, "share", r->share);
	json_kuint(j, "n", r->n);
	json_kdouble(j, "mean", r->mean);
	json_kdouble(j, "stddev", r->stddev);
	json_kdouble(j, "min", r->min);
	json_kdouble(j, "max", r->max);
	json_kbool(j, "varies", r->varies);
	run_place_keys(j, r->row);

	json_close(j);
}

static void put_runs(struct json *j, const struct run *runs, size_t n)
{
	json_key(j, "sets");
	json_open(j, '[');
	for (size_t i = 0; i < n; i++)
		json_double(j, runs[i].samples);
	json_close(j);
	json_key(j, "names");
	json_open(j, '[');
	for (size_t i = 0; i < n; i++)
		json_str(j, runs[i].name);
	json_close(j);
}

/* The rows that are shown: those with the share, as many as were asked for. */
static bool is_shown(const struct stats_verb *v, const struct stats_row *r, size_t shown)
{
	return r->share >= v->report.min_share && shown < v->report.rows;
}

static void print_json(const struct stats_verb *v)
{
	const struct run *runs;
	size_t n = runs_list(v->set.runs, &runs), shown = 0;
	struct json j;

	json_init(&j, stdout);
	json_open(&j, '{');
	json_kstr(&j, "event", runs_event(v->set.runs));
	put_runs(&j, runs, n);
	json_key(&j, "rows");
	json_open(&j, '[');
	for (size_t i = 0; i < v->stats.n; i++)
		if (is_shown(v, &v->stats.rows[i], shown)) {
			put_row(&j, &v->stats.rows[i]);
			shown++;
		}
	json_close(&j);
	json_close(&j);
}

/* ---- text ---- */

static void print_heading(const struct stats_verb *v)
{
	const struct run *runs;
	size_t n = runs_list(v->set.runs, &runs);
	struct table *t = table_create("<><");
	double sum = 0;

	printf("Number of samples of type %s:\n", runs_event(v->set.runs));
	for (size_t i = 0; i < n; i++) {
		table_cell(t, "set %zu", i + 1);
		table_cell(t, "%.0f", runs[i].samples);
		table_cell(t, "%s", runs[i].name);
		table_row(t);
		sum += runs[i].samples;
	}
	table_cell(t, "TOTAL");
	table_cell(t, "%.0f", sum);
	table_row(t);
	table_print(t, stdout, term_width());
	table_destroy(t);
	printf("Statistics calculated using the sample counts for each procedure from %zu "
	       "different sample sets%s\n\n",
		n, v->normalise ? ", scaled to the same total" : "");
}

static void add_row(struct table *t, const struct stats_row *r)
{
	enum { COLUMNS = 80 }; /* in front of the names */

	table_cell(t, "%.2f%%", 100 * r->range);
	table_cell(t, "%.2f", r->sum);
	table_cell(t, "%.2f%%", 100 * r->share);
	table_cell(t, "%zu", r->n);
	table_cell(t, "%.2f", r->mean);
	table_cell(t, "%.2f", r->stddev);
	table_cell(t, r->varies ? "*" : "");
	table_cell(t, "%.2f", r->min);
	table_cell(t, "%.2f", r->max);
	run_name_cells(t, r->row, COLUMNS);
	table_row(t);
}

static void print_rest(const struct stats_verb *v, size_t shown, double share, bool any_varies)
{
	size_t n = v->stats.n - shown;

	printf("%s", term_dim());
	if (any_varies)
		printf("* varies more than sampling explains\n");
	if (n)
		printf("%zu row%s with %.2f%% of all samples not shown (-n, --min-share)\n", n,
			n == 1 ? "" : "s", 100 * (1 - share));
	printf("%s", term_reset());
}

static void print_text(const struct stats_verb *v)
{
	static const char *const heading[] = {"range%", "sum", "sum%", "N", "mean", "std-dev", "",
		"min", "max", "procedure", "image"};
	struct table *t = table_create(">>>>>><>><<");
	size_t shown = 0;
	double share = 0;
	bool any_varies = false;

	print_heading(v);
	for (size_t i = 0; i < sizeof heading / sizeof *heading; i++)
		table_cell(t, "%s", heading[i]);
	table_row(t);
	table_header(t);
	for (size_t i = 0; i < v->stats.n; i++) {
		const struct stats_row *r = &v->stats.rows[i];

		if (!is_shown(v, r, shown))
			continue;
		add_row(t, r);
		shown++;
		share += r->share;
		any_varies |= r->varies;
	}
	if (shown)
		table_print(t, stdout, term_width());
	table_destroy(t);
	print_rest(v, shown, share, any_varies);
}

/* ---- options ---- */

enum { STATS_BY_EPOCH = REPORT_LAST, STATS_NORMALISE };

static int stats_option(void *arg, int c, const char *value)
{
	struct stats_verb *v = arg;

	(void)value;
	switch (c) {
	case STATS_BY_EPOCH:
		v->by_epoch = true;
		return 0;
	case STATS_NORMALISE:
		v->normalise = true;
		return 0;
	}
	return 1;
}

static int parse(struct stats_verb *v, int argc, char **argv)
{
	static const struct option options[] = {REPORT_LONG, REPORT_ROWS_LONG,
		REPORT_MIN_SHARE_LONG, {"by-epoch", no_argument, NULL, STATS_BY_EPOCH},
		{"normalise", no_argument, NULL, STATS_NORMALISE},
		{"normalize", no_argument, NULL, STATS_NORMALISE}, {0}};
	static const struct report_verb verb = {"stats", ":n:" REPORT_SHORT, options, stats_option};

	return report_parse(&v->report, &verb, v, argc, argv);
}

/* ---- the whole ---- */

static int load(struct stats_verb *v, char **words, int n, struct err *e)
{
	int rc = run_set_init(&v->set, &v->report, e);

	/* One database makes sets only by its epochs. */
	if (n + !!v->report.input <= 1)
		v->by_epoch = true;
	if (!rc && (v->report.input || !n))
		rc = run_set_add(&v->set, v->report.input ? v->report.input : "", v->by_epoch, e);
	for (int i = 0; i < n && !rc; i++)
		rc = run_set_add(&v->set, words[i], v->by_epoch, e);
	if (!rc && v->set.n < 2)
		rc = err_set(e, -EINVAL,
			"one run has no variation: name several databases, or one with several "
			"epochs");
	return rc ? rc : runs_match(v->set.runs, v->report.procedure, e);
}

static int report(struct stats_verb *v, int argc, char **argv, struct err *e)
{
	int rc = load(v, argv + optind, argc - optind, e);

	if (rc)
		return rc;
	stats_init(&v->stats, v->set.runs, v->normalise);
	if (!v->report.has_min_share && !v->report.json && !v->report.rows)
		v->report.min_share = TEXT_SHARE;
	if (!v->report.rows)
		v->report.rows = UINT64_MAX;
	report_pager(&v->report);
	if (v->report.json)
		print_json(v);
	else if (v->stats.n)
		print_text(v);
	else
		printf("no samples\n");
	return 0;
}

int cmd_stats(int argc, char **argv)
{
	struct stats_verb v = {0};
	struct err e = {0};
	int code = parse(&v, argc, argv);

	if (code < 0)
		code = cmd_help_text("stats");
	else if (!code && report(&v, argc, argv, &e))
		code = cmd_fail(&e);
	stats_deinit(&v.stats);
	run_set_deinit(&v.set);
	report_deinit(&v.report);
	return code;
}
