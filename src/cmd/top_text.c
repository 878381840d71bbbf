/* culprit top as text. */
#include "cmd/top_view.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/table.h"
#include "base/term.h"
#include "cmd/shorten.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static bool is_narrowed(const struct top *t)
{
	const struct store_filter *f = &t->report.filter;

	return f->comm || f->image || f->pid || t->report.procedure;
}

void top_print_account(const struct selected_event *ev, FILE *out)
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
		fprintf(out, any ? ", " : "%s: ", ev->name);
		fprintf(out, "%" PRIu64 " %s (%.2f%%)", list[i].n, list[i].what,
			100 * share_of(list[i].n, all));
		any = true;
	}
	if (a->scale > 1.005)
		fprintf(out, "%s%s sampled %.1f%% of the time (multiplexed)", any ? "; " : "",
			ev->name, 100 / a->scale);
	if (any || a->scale > 1.005)
		fprintf(out, "\n");
}

void top_print_heading(const struct top *t, FILE *out)
{
	fprintf(out, "Total samples for event type ");
	for (size_t i = 0; i < t->report.nevents; i++) {
		fprintf(out, "%s%s = %" PRIu64, i ? ", " : "", t->report.event[i].name,
			tally_total(t->tally, i));
		if (is_narrowed(t))
			fprintf(out, " (of %" PRIu64 ")",
				t->report.event[i].account.attributed +
					t->report.event[i].account.unknown);
	}
	fprintf(out, "\n");
	for (size_t i = 0; i < t->report.nevents; i++)
		top_print_account(&t->report.event[i], out);
	fprintf(out,
		"The counts given below are the number of samples for each listed event type.\n\n");
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
static struct widths find_widths(const struct top *t, const top_rows *rows)
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

static bool is_asked_for(const struct top *t, const struct tally_row *r)
{
	return !t->match || strcasestr(r->name, t->match) ||
	       (r->image && strcasestr(r->image->path, t->match));
}

/* Whether a row is shown: it counts for one of the events. */
static bool is_shown(const struct top *t, const struct tally_row *r)
{
	if (!is_asked_for(t, r))
		return false;
	for (size_t i = 0; i < t->report.nevents; i++)
		if (r->samples[i] &&
			share_of(r->samples[i], tally_total(t->tally, i)) >= t->report.min_share)
			return true;
	return false;
}

static void print_rest(const struct top *t, size_t n, uint64_t shown, FILE *out)
{
	uint64_t total = tally_total(t->tally, 0);

	if (n)
		fprintf(out,
			"%s%zu smaller row%s with %.2f%% of %s not shown (-n, --min-share)%s\n",
			term_dim(), n, n == 1 ? "" : "s", 100 * share_of(total - shown, total),
			t->report.event[0].name, term_reset());
}

top_rows top_shown(const struct top *t, size_t *hidden)
{
	const struct tally_row *rows;
	size_t n = tally_rows(t->tally, &rows);
	top_rows list = {0};

	for (size_t i = 0; i < n && list.n < t->report.rows; i++)
		if (is_shown(t, &rows[i]))
			*vec_add(&list) = &rows[i];
	*hidden = n - list.n;
	return list;
}

uint64_t top_print_rows(const struct top *t, const top_rows *rows, FILE *out)
{
	struct table *table = start_table(t);
	struct widths w = find_widths(t, rows);
	uint64_t so_far = 0;

	vec_each (r, rows) {
		so_far += (*r)->samples[0];
		count_cells(table, t, *r, so_far);
		name_cells(table, t, *r, w);
		table_row(table);
	}
	table_print(table, out, term_width());
	table_destroy(table);
	return so_far;
}

void top_print_text(const struct top *t, FILE *out)
{
	size_t hidden;
	top_rows rows = top_shown(t, &hidden);

	if (t->report.nevents)
		top_print_heading(t, out);
	if (rows.n || hidden)
		print_rest(t, hidden, top_print_rows(t, &rows, out), out);
	else
		fprintf(out, "no samples\n");
	vec_deinit(&rows);
}
