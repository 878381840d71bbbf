/*
 * culprit top: where the time went (dcpiprof, Figure 1 of the DCPI paper).
 */
#include "analyze/tally.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/table.h"
#include "base/term.h"
#include "cmd/shorten.h"
#include "cmd/top_view.h"

#include <getopt.h>
#include <inttypes.h>
#include <string.h>

struct view;

struct top {
	struct report report;
	const struct view *view;
	const char *sort;
	bool children;
	bool over_time;  /* --by time */
	uint64_t slices; /* of it, 0: as many as fit */
	const char *of;  /* image or procedure */
	struct tally *tally;
};

/* ---- JSON ---- */

void top_put_image(struct json *j, const struct selected_image *im)
{
	char id[IMAGE_ID_TEXT];

	json_kstr(j, "image", im ? im->path : NULL);
	json_kstr(j, "build_id", im && im->identity.size ? image_id_text(&im->identity, id) : NULL);
}

static void put_procedure(struct json *j, const struct tally_row *r)
{
	json_kstr(j, "procedure", r->name);
	if (r->known) {
		json_kaddr(j, "start", r->start);
	} else {
		json_kstr(j, "start", NULL);
	}
	top_put_image(j, r->image);
}

static void put_image(struct json *j, const struct tally_row *r)
{
	top_put_image(j, r->image);
}

static void put_started(struct json *j, const struct tally_row *r)
{
	if (r->started)
		json_kdouble(j, "started", (double)r->started / 1e6);
	else
		json_kstr(j, "started", NULL);
}

static void put_process(struct json *j, const struct tally_row *r)
{
	json_kstr(j, "process", r->name);
	json_kint(j, "pid", r->pid);
	put_started(j, r);
}

static void put_thread(struct json *j, const struct tally_row *r)
{
	json_kstr(j, "thread", r->name);
	json_kint(j, "tid", r->tid);
	json_kstr(j, "process", r->process);
	json_kint(j, "pid", r->pid);
	put_started(j, r);
}

static void put_comm(struct json *j, const struct tally_row *r)
{
	json_kstr(j, "comm", r->name);
}

static void put_line(struct json *j, const struct tally_row *r)
{
	json_kstr(j, "file", r->known ? r->name : NULL);
	if (r->known) {
		json_kint(j, "line", r->line);
	} else {
		json_kstr(j, "line", NULL);
		json_kstr(j, "reason", r->name);
	}
	top_put_image(j, r->image);
}

static void put_cgroup(struct json *j, const struct tally_row *r)
{
	json_kstr(j, "cgroup", r->known ? r->name : NULL);
}

static void put_cpu(struct json *j, const struct tally_row *r)
{
	json_kint(j, "cpu", r->cpu);
}

/* The views: their columns behind the counts, and their keys. */
static const struct view {
	const char *name;
	enum tally_by by;
	const char *columns[3];
	void (*put)(struct json *j, const struct tally_row *r);
} views[] = {
	{"procedure", TALLY_PROCEDURE, {"procedure", "image"}, put_procedure},
	{"image", TALLY_IMAGE, {"image"}, put_image},
	{"process", TALLY_PROCESS, {"pid", "process"}, put_process},
	{"thread", TALLY_THREAD, {"tid", "thread", "process"}, put_thread},
	{"comm", TALLY_COMM, {"process name"}, put_comm},
	{"line", TALLY_LINE, {"line", "image"}, put_line},
	{"cgroup", TALLY_CGROUP, {"cgroup"}, put_cgroup},
	{"cpu", TALLY_CPU, {"cpu"}, put_cpu},
};

void top_put_event(struct json *j, const struct selected_event *ev, uint64_t samples)
{
	json_open(j, '{');
	json_kstr(j, "name", ev->name);
	json_kdouble(j, "period", ev->period);
	json_kuint(j, "samples", samples);
	json_kuint(j, "unknown", ev->account.unknown);
	json_kuint(j, "lost", ev->account.lost);
	json_kuint(j, "throttled", ev->account.throttled);
	json_kuint(j, "missed", ev->account.missed);
	json_kuint(j, "attributed", ev->account.attributed);
	json_kdouble(j, "expected", ev->account.expected);
	json_kdouble(j, "scale", ev->account.scale);
	json_close(j);
}

static void put_rows(struct json *j, const struct top *t, size_t event)
{
	uint64_t total = tally_total(t->tally, event), so_far = 0;
	const struct tally_row **rows;
	size_t n = tally_rows_by(t->tally, event, &rows);

	for (size_t i = 0; i < n && i < t->report.rows; i++) {
		double share = share_of(rows[i]->samples[event], total);

		if (share < t->report.min_share)
			break;
		so_far += rows[i]->samples[event];
		json_open(j, '{');
		json_kstr(j, "event", t->report.event[event].name);
		json_kuint(j, "samples", rows[i]->samples[event]);
		json_kshare(j, "share", share);
		json_kshare(j, "cumulative", share_of(so_far, total));
		t->view->put(j, rows[i]);
		json_close(j);
	}
	free(rows);
}

static void print_json(const struct top *t)
{
	struct json j;

	json_init(&j, stdout);
	json_open(&j, '{');
	json_key(&j, "events");
	json_open(&j, '[');
	for (size_t i = 0; i < t->report.nevents; i++)
		top_put_event(&j, &t->report.event[i], tally_total(t->tally, i));
	json_close(&j);
	json_key(&j, "rows");
	json_open(&j, '[');
	for (size_t i = 0; i < t->report.nevents; i++)
		put_rows(&j, t, i);
	json_close(&j);
	json_close(&j);
}

/* ---- text ---- */

static bool is_narrowed(const struct top *t)
{
	const struct store_filter *f = &t->report.filter;

	return f->comm || f->image || f->pid || t->report.procedure;
}

void top_print_account(const struct selected_event *ev)
{
	const struct store_account *a = &ev->account;
	const struct {
		const char *what;
		uint64_t n;
	} list[] = {{"unknown", a->unknown}, {"lost", a->lost}, {"throttled", a->throttled},
		{"missed", a->missed}};
	uint64_t all = a->attributed + a->unknown + a->lost + a->throttled + a->missed;
	bool any = false;

	for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
		if (!list[i].n)
			continue;
		printf(any ? ", " : "%s: ", ev->name);
		printf("%" PRIu64 " %s (%.2f%%)", list[i].n, list[i].what,
			100 * share_of(list[i].n, all));
		any = true;
	}
	if (a->scale > 1.005)
		printf("%s%s sampled %.1f%% of the time (multiplexed)", any ? "; " : "", ev->name,
			100 / a->scale);
	if (any || a->scale > 1.005)
		printf("\n");
}

static void print_heading(const struct top *t)
{
	printf("Total samples for event type ");
	for (size_t i = 0; i < t->report.nevents; i++) {
		printf("%s%s = %" PRIu64, i ? ", " : "", t->report.event[i].name,
			tally_total(t->tally, i));
		if (is_narrowed(t))
			printf(" (of %" PRIu64 ")", t->report.event[i].account.attributed +
							    t->report.event[i].account.unknown);
	}
	printf("\n");
	for (size_t i = 0; i < t->report.nevents; i++)
		top_print_account(&t->report.event[i]);
	printf("The counts given below are the number of samples for each listed event type.\n\n");
}

/* How many columns of the terminal a name and the path behind it may have. */
struct widths {
	size_t name, path; /* 0: no limit */
};

static char *line_label(const struct tally_row *r)
{
	return r->known ? xasprintf("%s:%d", r->name, r->line) : xstrdup(r->name);
}

static void name_and_path(
	struct table *table, const struct tally_row *r, bool line, struct widths w)
{
	_cleanup_free_ char *label = line ? line_label(r) : xstrdup(r->name);
	_cleanup_free_ char *name =
		line && r->known ? shorten_path(label, w.name) : shorten_name(label, w.name);
	_cleanup_free_ char *path = shorten_path(r->image->path, w.path);

	table_cell(table, "%s", name);
	table_cell(table, "%s", path);
}

static void name_cells(
	struct table *table, const struct top *t, const struct tally_row *r, struct widths w)
{
	switch (t->view->by) {
	case TALLY_PROCEDURE:
	case TALLY_LINE:
		name_and_path(table, r, t->view->by == TALLY_LINE, w);
		break;
	case TALLY_PROCESS:
		table_cell(table, r->pid ? "%d" : "-", r->pid);
		table_cell(table, "%s", r->name);
		break;
	case TALLY_THREAD:
		table_cell(table, r->tid ? "%d" : "-", r->tid);
		table_cell(table, "%s", r->name);
		table_cell(table, r->pid ? "%s (%d)" : "%s", r->process, r->pid);
		break;
	default:
		table_cell(table, "%s", r->name);
	}
}

typedef VEC(const struct tally_row *) row_list;

static size_t digits(uint64_t n)
{
	char text[24];

	return (size_t)snprintf(text, sizeof text, "%" PRIu64, n);
}

/* Columns in front of the names: a count and a share for each event, and the cumulative share. */
static size_t count_columns(const struct top *t)
{
	enum { GAP = 2, SHARE = 7 };
	size_t columns = SHARE + GAP;

	for (size_t i = 0; i < t->report.nevents; i++) {
		size_t name = text_columns(t->report.event[i].name);
		size_t number = digits(tally_total(t->tally, i));

		columns += (name > number ? name : number) + GAP + SHARE + GAP;
	}
	return columns + GAP;
}

/* A terminal's columns are shared out: the path gives way first, up to half of what there is. */
static struct widths find_widths(const struct top *t, row_list *rows)
{
	enum { LEAST = 12 };
	size_t width = (size_t)term_width(), before = count_columns(t), left, name = 0, path = 0;

	if (!width || (t->view->by != TALLY_PROCEDURE && t->view->by != TALLY_LINE))
		return (struct widths){0, 0};
	vec_each (r, rows) {
		_cleanup_free_ char *label = line_label(*r);
		size_t columns = text_columns(t->view->by == TALLY_LINE ? label : (*r)->name);

		name = columns > name ? columns : name;
		columns = text_columns((*r)->image->path);
		path = columns > path ? columns : path;
	}
	left = width > before + 2 * LEAST ? width - before : 2 * LEAST;
	if (name + path <= left)
		return (struct widths){0, 0};
	if (name > left / 2)
		name = path < left / 2 ? left - path : left / 2;
	return (struct widths){name, left - name};
}

static struct table *start_table(const struct top *t)
{
	const char *const *names = t->view->columns;
	struct buf columns = {0};
	struct table *table;

	for (size_t i = 0; i < t->report.nevents; i++)
		buf_printf(&columns, i ? ">>" : ">>>");
	for (int i = 0; i < 3 && names[i]; i++)
		buf_printf(&columns, names[1] && strstr(names[i], "id") ? ">" : "<");
	table = table_create(buf_cstr(&columns));
	buf_deinit(&columns);
	for (size_t i = 0; i < t->report.nevents; i++) {
		table_cell(table, "%s", t->report.event[i].name);
		table_cell(table, "%%");
		if (!i)
			table_cell(table, "cum%%");
	}
	for (int i = 0; i < 3 && names[i]; i++)
		table_cell(table, "%s", names[i]);
	table_row(table);
	table_header(table);
	return table;
}

static void count_cells(
	struct table *table, const struct top *t, const struct tally_row *r, uint64_t so_far)
{
	for (size_t i = 0; i < t->report.nevents; i++) {
		uint64_t total = tally_total(t->tally, i);

		table_cell(table, "%" PRIu64, r->samples[i]);
		table_cell(table, "%.2f%%", 100 * share_of(r->samples[i], total));
		if (!i)
			table_cell(table, "%.2f%%", 100 * share_of(so_far, total));
	}
}

/* Whether a row is shown: it counts for one of the events. */
static bool is_shown(const struct top *t, const struct tally_row *r)
{
	for (size_t i = 0; i < t->report.nevents; i++)
		if (r->samples[i] &&
			share_of(r->samples[i], tally_total(t->tally, i)) >= t->report.min_share)
			return true;
	return false;
}

static void print_rest(const struct top *t, size_t n, uint64_t shown)
{
	uint64_t total = tally_total(t->tally, 0);

	if (n)
		printf("%s%zu smaller row%s with %.2f%% of %s not shown (-n, --min-share)%s\n",
			term_dim(), n, n == 1 ? "" : "s", 100 * share_of(total - shown, total),
			t->report.event[0].name, term_reset());
}

static row_list shown_rows(const struct top *t, size_t *hidden)
{
	const struct tally_row *rows;
	size_t n = tally_rows(t->tally, &rows);
	row_list list = {0};

	for (size_t i = 0; i < n && list.n < t->report.rows; i++)
		if (is_shown(t, &rows[i]))
			*vec_add(&list) = &rows[i];
	*hidden = n - list.n;
	return list;
}

static void print_rows(const struct top *t)
{
	struct table *table = start_table(t);
	size_t hidden;
	row_list rows = shown_rows(t, &hidden);
	struct widths w = find_widths(t, &rows);
	uint64_t so_far = 0;

	vec_each (r, &rows) {
		so_far += (*r)->samples[0];
		count_cells(table, t, *r, so_far);
		name_cells(table, t, *r, w);
		table_row(table);
	}
	table_print(table, stdout, term_width());
	table_destroy(table);
	vec_deinit(&rows);
	print_rest(t, hidden, so_far);
}

static void print_text(const struct top *t)
{
	const struct tally_row *rows;

	if (t->report.nevents)
		print_heading(t);
	if (tally_rows(t->tally, &rows))
		print_rows(t);
	else
		printf("no samples\n");
	report_epochs_note(&t->report);
}

/* ---- options ---- */

enum { TOP_BY = REPORT_LAST, TOP_SORT, TOP_CHILDREN, TOP_SLICES, TOP_OF };

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
	if (t->report.json)
		print_json(t);
	else
		print_text(t);
	return 0;
}

int cmd_top(int argc, char **argv)
{
	struct top t = {.view = &views[0]};
	struct err e = {0};
	int code = parse(&t, argc, argv);

	if (code < 0)
		code = cmd_help_text("top");
	else if (!code && report(&t, &e))
		code = cmd_fail(&e);
	tally_destroy(t.tally);
	report_deinit(&t.report);
	return code;
}
