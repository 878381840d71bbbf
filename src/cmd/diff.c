/*
 * culprit diff: what changed between runs, and how sure that is.
 */
#include "analyze/diff.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/table.h"
#include "base/term.h"
#include "cmd/runs.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { BEFORE, AFTER };

struct diff_verb {
	struct report report;
	bool share;
	bool brief;       /* nobody said which rows */
	double fail_over; /* a fraction; below 0: not given */
	name_list words[2];
	bool told;   /* --before or --after was given: */
	int telling; /* which of them the words behind it belong to */
	struct run_set set;
	size_t nbefore;
	struct diff diff;
};

/* Without -n and --min-share a reader gets what is significant or has this share, a script all. */
static const double TEXT_SHARE = 0.01;
/* Procedures that are smaller do not make --fail-over fail. */
static const double FAIL_SHARE = 0.01;

static bool is_shown(const struct diff_verb *v, const struct diff_row *r, size_t shown)
{
	if (v->brief)
		return r->significant || r->share >= TEXT_SHARE;
	return r->share >= v->report.min_share && shown < v->report.rows;
}

static bool fails(const struct diff_verb *v, const struct diff_row *r)
{
	double least = v->report.has_min_share ? v->report.min_share : FAIL_SHARE;

	return v->fail_over >= 0 && diff_is_slower(r, v->fail_over, least);
}

static const char *unit(const struct diff_verb *v)
{
	return v->share ? "share" : runs_clock(v->set.runs) ? "seconds" : "events";
}

/* ---- JSON ---- */

static void put_change(struct json *j, const struct diff_row *r)
{
	json_kdouble(j, "before", r->before);
	json_kdouble(j, "after", r->after);
	json_kdouble(j, "change", r->change.change);
	json_kdouble(j, "low", r->change.low);
	json_kdouble(j, "high", r->change.high);
	json_kbool(j, "significant", r->significant);
	json_kdouble(j, "relative", diff_relative(r));
	json_kdouble(j, "p", r->change.p);
}

static void put_row(struct json *j, const struct diff_verb *v, const struct diff_row *r)
{
	static const char *const matches[] = {
		[MATCH_START] = "start", [MATCH_NAME] = "name", [MATCH_CODE] = "code"};

	json_open(j, '{');
	json_kstr(j, "procedure", r->row->name);
	json_kstr(j, "image", r->row->image);
	put_change(j, r);
	json_kdouble(j, "adjusted_p", r->adjusted_p);
	json_kshare(j, "share", r->share);
	run_place_keys(j, r->row);
	json_kstr(j, "matched", matches[r->row->match]);

	json_kbool(j, "ambiguous", r->row->ambiguous);
	json_kbool(j, "failed", fails(v, r));
	json_close(j);
}

static void put_runs(struct json *j, const char *key, const struct run *runs, size_t n)
{
	json_key(j, key);
	json_open(j, '[');
	for (size_t i = 0; i < n; i++) {
		json_open(j, '{');
		json_kstr(j, "name", runs[i].name);
		json_kdouble(j, "samples", runs[i].samples);
		json_kdouble(j, "period", runs[i].period);
		json_close(j);
	}
	json_close(j);
}

static void print_json(const struct diff_verb *v)
{
	const struct run *runs;
	size_t n = runs_list(v->set.runs, &runs), shown = 0;
	struct json j;

	json_init(&j, stdout);
	json_open(&j, '{');
	json_kstr(&j, "event", runs_event(v->set.runs));
	json_kstr(&j, "unit", unit(v));
	json_key(&j, "runs");
	json_open(&j, '{');
	put_runs(&j, "before", runs, v->nbefore);
	put_runs(&j, "after", runs + v->nbefore, n - v->nbefore);
	json_close(&j);
	json_key(&j, "total");
	json_open(&j, '{');
	put_change(&j, &v->diff.total);
	json_kbool(&j, "failed", fails(v, &v->diff.total));
	json_close(&j);
	json_key(&j, "rows");
	json_open(&j, '[');
	for (size_t i = 0; i < v->diff.n; i++)
		if (is_shown(v, &v->diff.rows[i], shown)) {
			put_row(&j, v, &v->diff.rows[i]);
			shown++;
		}
	json_close(&j);
	json_close(&j);
}

/* ---- text ---- */

/* How amounts are written: times in seconds, or in milliseconds when all of it is short. */
struct amounts {
	const char *what;
	double scale;
	int decimals;
};

static struct amounts choose_amounts(const struct diff_verb *v)
{
	double most = fmax(v->diff.total.before, v->diff.total.after);

	if (v->share)
		return (struct amounts){"% of all samples", 100, 2};
	if (!runs_clock(v->set.runs))
		return (struct amounts){"events", 1, 0};
	if (most < 1)
		return (struct amounts){"ms", 1000, 2};
	return (struct amounts){"seconds", 1, 3};
}

/* "+3.1%". */
static const char *percent(double part, double of, char text[static 32])
{
	double v = 100 * part / of;

	snprintf(text, 32, fabs(v) < 1000 ? "%+.1f%%" : "%+.0f%%", v);
	return text;
}

/*
 * What was not there before has no relative change. Nothing gets faster by more than all of it, but
 * there may have been more of it than was seen.
 */
static void relative_cells(struct table *t, const struct diff_row *r, const struct amounts *a)
{
	char one[32], two[32];

	if (r->before > 0) {
		table_cell(
			t, "%s", r->after > 0 ? percent(r->change.change, r->before, one) : "gone");
		table_cell(t, "%s to %s", percent(fmax(r->change.low, -r->before), r->before, one),
			percent(r->change.high, r->before, two));
		return;
	}
	table_cell(t, r->after > 0 ? "new" : "");
	table_cell(t, "%+.*f to %+.*f", a->decimals, a->scale * r->change.low, a->decimals,
		a->scale * r->change.high);
}

static void change_cells(struct table *t, const struct diff_row *r, const struct amounts *a)
{
	table_cell(t, "%.*f", a->decimals, a->scale * r->before);
	table_cell(t, "%.*f", a->decimals, a->scale * r->after);
	table_cell(t, "%+.*f", a->decimals, a->scale * r->change.change);
	relative_cells(t, r, a);
	table_cell(t, r->significant ? "*" : "");
}

static void add_row(struct table *t, const struct diff_row *r, const struct amounts *a)
{
	enum { COLUMNS = 66 }; /* in front of the names */

	change_cells(t, r, a);
	run_name_cells(t, r->row, COLUMNS);
	table_row(t);
}

static void print_side(const char *side, const struct run *runs, size_t n)
{
	printf("%s %zu run%s: ", side, n, n == 1 ? "" : "s");
	for (size_t i = 0; i < n && i < 6; i++) {
		printf("%s", i ? ", " : "");
		cmd_put(stdout, runs[i].name);
	}
	printf(n > 6 ? ", ...\n" : "\n");
}

static void print_heading(const struct diff_verb *v, const struct amounts *a)
{
	const struct run *runs;
	size_t n = runs_list(v->set.runs, &runs);

	print_side("before:", runs, v->nbefore);
	print_side("after: ", runs + v->nbefore, n - v->nbefore);
	printf("%s of a run%s, by %s\n\n", a->what, n > 2 ? " (mean)" : "",
		runs_event(v->set.runs));
}

static struct table *start_table(const struct diff_verb *v, const struct amounts *a)
{
	static const char *const heading[] = {
		"before", "after", "change", "%", "95% interval", "", "procedure", "image"};
	struct table *t = table_create(">>>>><<<");

	for (size_t i = 0; i < sizeof heading / sizeof *heading; i++)
		table_cell(t, "%s", heading[i]);
	table_row(t);
	table_header(t);
	if (!v->share) {
		change_cells(t, &v->diff.total, a);
		table_cell(t, "TOTAL");
		table_row(t);
	}
	return t;
}

struct shown {
	size_t n, significant, ambiguous, all_significant;
};

static struct shown print_rows(const struct diff_verb *v, const struct amounts *a)
{
	struct table *t = start_table(v, a);
	struct shown s = {0};

	for (size_t i = 0; i < v->diff.n; i++) {
		const struct diff_row *r = &v->diff.rows[i];

		s.ambiguous += r->row->ambiguous;
		s.all_significant += r->significant;
		if (!is_shown(v, r, s.n))
			continue;
		add_row(t, r, a);
		s.n++;
		s.significant += r->significant;
	}
	table_print(t, stdout, term_width());
	table_destroy(t);
	return s;
}

static void print_notes(const struct diff_verb *v, const struct shown *s)
{
	printf("%s", term_dim());
	if (s->n < v->diff.n && v->brief)
		printf("%zu rows of less than %g%% not shown (-n, --min-share)\n", v->diff.n - s->n,
			100 * TEXT_SHARE);
	else if (s->n < v->diff.n)
		printf("%zu rows not shown, %zu of them significant (-n, --min-share)\n",
			v->diff.n - s->n, s->all_significant - s->significant);
	if (s->all_significant)
		printf("* significant: of those marked 5%% at most are expected to be chance (%zu "
		       "tested)\n",
			v->diff.tested);
	else
		printf("no procedure changed significantly, of %zu tested\n", v->diff.tested);
	if (s->ambiguous)
		printf("%zu procedures look like several of the other build and were not "
		       "matched\n",
			s->ambiguous);
	if (v->set.n == 2)
		printf("one run each: intervals are of sampling only; runs differ besides, so "
		       "record several\n");
	printf("%s", term_reset());
}

static void print_text(const struct diff_verb *v)
{
	struct amounts a = choose_amounts(v);
	struct shown s;

	print_heading(v, &a);
	s = print_rows(v, &a);
	print_notes(v, &s);
}

/* Says what was too slow; whether anything was. */
static bool say_failures(const struct diff_verb *v)
{
	enum { MOST = 5 };
	struct buf text = {0};
	size_t n = 0;

	if (fails(v, &v->diff.total))
		buf_printf(&text, "%s the total by %.1f%%", n++ ? "," : "",
			100 * diff_relative(&v->diff.total));
	for (size_t i = 0; i < v->diff.n; i++)
		if (fails(v, &v->diff.rows[i]) && n++ < MOST)
			buf_printf(&text, "%s %s by %.1f%%", n > 1 ? "," : "",
				v->diff.rows[i].row->name, 100 * diff_relative(&v->diff.rows[i]));
	if (n > MOST)
		buf_printf(&text, " and %zu more", n - MOST);
	fflush(stdout);
	if (n)
		cmd_note("slower by more than %g%%:%s%s", 100 * v->fail_over, buf_cstr(&text),
			v->set.n == 2 ? " (one run each: record several to be sure)" : "");
	buf_deinit(&text);
	return n > 0;
}

/* ---- options ---- */

enum { DIFF_BY = REPORT_LAST, DIFF_BEFORE, DIFF_AFTER, DIFF_FAIL_OVER };
/* What getopt_long returns for an operand when the letters begin with '-'. */
enum { OPERAND = 1 };

static int add_word(struct diff_verb *v, const char *word)
{
	int side = v->told ? v->telling : v->words[BEFORE].n ? AFTER : BEFORE;

	if (!v->told && v->words[AFTER].n)
		return cmd_usage("diff",
			"two sides, not also '%s': several runs go as A1,A2 B1,B2 or behind "
			"--before and --after",
			word);
	*vec_add(&v->words[side]) = word;
	return 0;
}

/* Words that stood in front of the first --after are before. */
static int set_side(struct diff_verb *v, int side, const char *word)
{
	if (!v->told && v->words[AFTER].n)
		return cmd_usage("diff", "'%s' stands on neither side", v->words[AFTER].p[0]);
	v->told = true;
	v->telling = side;
	return add_word(v, word);
}

static int set_by(struct diff_verb *v, const char *value)
{
	v->share = !strcmp(value, "share");
	if (!v->share && strcmp(value, "time"))
		return cmd_usage("diff", "--by takes time or share, not '%s'", value);
	return 0;
}

static int set_fail_over(struct diff_verb *v, const char *value)
{
	size_t n = strlen(value);
	_cleanup_free_ char *number = xstrndup(value, n && value[n - 1] == '%' ? n - 1 : n);

	if (parse_real(number, 0, 1e6, &v->fail_over))
		return cmd_usage("diff", "--fail-over takes per cent (\"5\"), not '%s'", value);
	v->fail_over /= 100;
	return 0;
}

static int diff_option(void *arg, int c, const char *value)
{
	struct diff_verb *v = arg;

	switch (c) {
	case OPERAND:
		return add_word(v, value);
	case DIFF_BY:
		return set_by(v, value);
	case DIFF_BEFORE:
		return set_side(v, BEFORE, value);
	case DIFF_AFTER:
		return set_side(v, AFTER, value);
	case DIFF_FAIL_OVER:
		return set_fail_over(v, value);
	case 'i':
		return cmd_usage("diff", "databases are named without -i: BEFORE AFTER");
	}
	return 1;
}

static int parse(struct diff_verb *v, int argc, char **argv)
{
	static const struct option options[] = {REPORT_LONG, REPORT_ROWS_LONG,
		REPORT_MIN_SHARE_LONG, {"by", required_argument, NULL, DIFF_BY},
		{"before", required_argument, NULL, DIFF_BEFORE},
		{"after", required_argument, NULL, DIFF_AFTER},
		{"fail-over", required_argument, NULL, DIFF_FAIL_OVER}, {0}};
	static const struct report_verb verb = {"diff", "-:n:" REPORT_SHORT, options, diff_option};
	int rc = report_parse(&v->report, &verb, v, argc, argv);

	for (; !rc && optind < argc; optind++)
		rc = add_word(v, argv[optind]);
	if (!rc && (!v->words[BEFORE].n || !v->words[AFTER].n))
		return cmd_usage("diff", "name two databases, or two epochs: BEFORE AFTER");
	return rc;
}

/* ---- the whole ---- */

static int load(struct diff_verb *v, struct err *e)
{
	int rc = run_set_init(&v->set, &v->report, e);

	for (int side = BEFORE; side <= AFTER; side++) {
		vec_each (word, &v->words[side])
			if (!rc)
				rc = run_set_add(&v->set, *word, true, e);
		if (side == BEFORE)
			v->nbefore = v->set.n;
	}
	return rc ? rc : runs_match(v->set.runs, v->report.procedure, e);
}

static int report(struct diff_verb *v, bool *failed, struct err *e)
{
	int rc = load(v, e);

	if (rc)
		return rc;
	diff_init(&v->diff, v->set.runs, v->nbefore, v->share);
	v->brief = !v->report.json && !v->report.rows && !v->report.has_min_share;
	if (!v->report.rows)
		v->report.rows = UINT64_MAX;
	report_pager(&v->report);
	if (v->report.json)
		print_json(v);
	else if (v->diff.n)
		print_text(v);
	else
		printf("no samples\n");
	*failed = say_failures(v);
	return 0;
}

int cmd_diff(int argc, char **argv)
{
	struct diff_verb v = {.fail_over = -1};
	struct err e = {0};
	bool failed = false;
	int code = parse(&v, argc, argv);

	if (code < 0)
		code = cmd_help_text("diff");
	else if (!code)
		code = report(&v, &failed, &e) ? cmd_fail(&e) : failed ? EXIT_NO : EXIT_DONE;
	diff_deinit(&v.diff);
	run_set_deinit(&v.set);
	for (int side = BEFORE; side <= AFTER; side++)
		vec_deinit(&v.words[side]);
	report_deinit(&v.report);
	return code;
}
