/* culprit top --children: procedures with what they called, from calling contexts. */
#include "analyze/context_tree.h"
#include "analyze/inclusive.h"
#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/table.h"
#include "base/term.h"
#include "cmd/shorten.h"
#include "cmd/top_view.h"

#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <string.h>

struct children {
	const struct report *report;
	struct context_tree *tree;
	const struct context_procedure *procedures;
	const struct selected_event *event; /* NULL: calls were counted */
	inclusive_list rows;                /* that are shown */
	size_t hidden;
	double total; /* of what is selected */
};

static double share(const struct children *c, double weight)
{
	return c->total > 0 ? weight / c->total : 0;
}

static bool is_wanted(const struct children *c, const struct inclusive_row *row)
{
	const char *pattern = c->report->procedure, *name = c->procedures[row->procedure].name;

	return !pattern || !strcmp(pattern, name) || !fnmatch(pattern, name, 0);
}

/* Keeps the rows that are asked for. */
static void choose(struct children *c, uint64_t most)
{
	size_t kept = 0;

	vec_each (row, &c->rows) {
		if (!is_wanted(c, row))
			continue;
		if (kept < most && share(c, row->all) >= c->report->min_share)
			c->rows.p[kept++] = *row;
		else
			c->hidden++;
	}
	c->rows.n = kept;
}

/* ---- JSON ---- */

static void put_row(
	struct json *j, const struct children *c, const struct inclusive_row *row, double so_far)
{
	const struct context_procedure *p = &c->procedures[row->procedure];

	json_open(j, '{');
	json_kstr(j, "event", context_tree_sampled(c->tree));
	json_kdouble(j, "samples", row->own);
	json_kshare(j, "share", share(c, row->own));
	json_kshare(j, "cumulative", share(c, so_far));
	json_kdouble(j, "inclusive", row->all);
	json_kshare(j, "with_callees", share(c, row->all));
	json_kstr(j, "procedure", p->name);
	if (p->image)
		json_kaddr(j, "start", p->start);
	else
		json_kstr(j, "start", NULL);
	top_put_image(j, p->image);
	json_close(j);
}

static void print_json(const struct children *c)
{
	double so_far = 0;
	struct json j;

	json_init(&j, stdout);
	json_open(&j, '{');
	json_key(&j, "events");
	json_open(&j, '[');
	if (c->event)
		top_put_event(&j, c->event, (uint64_t)c->total);
	json_close(&j);
	json_kstr(&j, "metric", context_tree_metric(c->tree));
	json_key(&j, "rows");
	json_open(&j, '[');
	vec_each (row, &c->rows)
		put_row(&j, c, row, so_far += row->own);
	json_close(&j);
	json_close(&j);
}

/* ---- text ---- */

static void print_rows(const struct children *c)
{
	const char *what = c->event ? c->event->name : context_tree_metric(c->tree);
	struct table *t = table_create(">>>><<");

	table_cell(t, "with callees");
	table_cell(t, "%%");
	table_cell(t, "%s", what);
	table_cell(t, "%%");
	table_cell(t, "procedure");
	table_cell(t, "image");
	table_row(t);
	table_header(t);
	vec_each (row, &c->rows) {
		const struct context_procedure *p = &c->procedures[row->procedure];
		_cleanup_free_ char *name = shorten_name(p->name, term_width() ? 60 : 0);

		table_cell(t, "%.0f", row->all);
		table_cell(t, "%.2f%%", 100 * share(c, row->all));
		table_cell(t, "%.0f", row->own);
		table_cell(t, "%.2f%%", 100 * share(c, row->own));
		table_cell(t, "%s", name);
		table_cell(t, "%s", p->image ? p->image->path : "");
		table_row(t);
	}
	table_print(t, stdout, term_width());
	table_destroy(t);
}

/* Samples that were taken without call paths, such as those of other epochs. */
static void print_missing(const struct children *c)
{
	const struct store_filter *f = &c->report->filter;
	uint64_t all = c->event->account.attributed + c->event->account.unknown;
	double known = context_tree_total(c->tree);

	if (!f->comm && !f->pid && (double)all > known)
		printf("%.0f more samples have no call path ('culprit record -g')\n",
			(double)all - known);
}

static void print_text(const struct children *c)
{
	if (c->event) {
		printf("Total samples for event type %s = %.0f, by call paths\n", c->event->name,
			c->total);
		top_print_account(c->event, stdout);
		print_missing(c);
	} else {
		printf("%s = %.0f, by calling contexts as they were counted\n",
			context_tree_metric(c->tree), c->total);
	}
	printf("A procedure with callees has what it called in it, recursion once.\n\n");
	print_rows(c);
	if (c->hidden)
		printf("%s%zu smaller row%s not shown (-n, --min-share)%s\n", term_dim(), c->hidden,
			c->hidden == 1 ? "" : "s", term_reset());
	report_epochs_note(c->report);
}

/* ---- the whole ---- */

/* Samples come first here; counts where there are none. */
static int make_tree(struct children *c, struct err *e)
{
	struct context_tree_options o = {.events = true};
	int rc = context_tree_create(c->report->sel, &o, &c->tree, e);

	o.events = false;
	if (rc == -ENOENT && !c->report->events.n)
		rc = context_tree_create(c->report->sel, &o, &c->tree, e);
	return rc;
}

static void weigh(struct children *c)
{
	const char *sampled = context_tree_sampled(c->tree);
	const struct context_node *nodes;
	size_t n = context_tree_nodes(c->tree, &nodes);

	for (size_t i = 0; i < n; i++)
		c->total += nodes[i].own;
	for (size_t i = 0; sampled && i < c->report->nevents; i++)
		if (!strcmp(c->report->event[i].name, sampled))
			c->event = &c->report->event[i];
}

int top_children(struct report *r, struct err *e)
{
	struct children c = {.report = r};
	int rc = make_tree(&c, e);

	if (rc)
		return rc;
	context_tree_procedures(c.tree, &c.procedures);
	weigh(&c);
	inclusive_rows(c.tree, &c.rows);
	choose(&c, r->rows);
	report_pager(r);
	if (r->json)
		print_json(&c);
	else
		print_text(&c);
	vec_deinit(&c.rows);
	context_tree_destroy(c.tree);
	return 0;
}
