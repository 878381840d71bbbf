/* What `culprit paths` prints for people. */
#include "base/mem.h"
#include "base/table.h"
#include "base/term.h"
#include "cmd/paths_view.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define BLOCKS_MOST 10 /* of a path, unless a procedure was named */
#define ROWS_MOST   50

static double percent(double part, double whole)
{
	return whole > 0 ? 100 * part / whole : 0;
}

/* ---- the paper's tables 4 and 5 ---- */

static void put_share(
	struct table *t, const struct path_summary *s, const char *name, const struct path_share *c)
{
	table_cell(t, "%s", name);
	table_cell(t, "%" PRIu64, c->paths);
	if (s->measured)
		table_cell(t, "%.1f%%", percent(c->instructions, s->instructions));
	table_cell(t, "%.1f%%", percent(c->weight, s->weight));
	table_cell(t, "%" PRIu64, c->procedures);
	table_cell(
		t, "%.1f", c->procedures ? (double)c->in_procedures / (double)c->procedures : 0.0);
	table_cell(t, "%.1f%%", percent(c->procedures_weight, s->weight));
	table_row(t);
}

static struct path_share both(const struct path_share *a, const struct path_share *b)
{
	return (struct path_share){.paths = a->paths + b->paths,
		.procedures = a->procedures + b->procedures,
		.in_procedures = a->in_procedures + b->in_procedures,
		.weight = a->weight + b->weight,
		.instructions = a->instructions + b->instructions,
		.procedures_weight = a->procedures_weight + b->procedures_weight};
}

static void print_classes(const struct path_summary *s)
{
	struct table *t = table_create(s->measured ? "<>>>>>>" : "<>>>>>");
	struct path_share hot = both(&s->of[PATH_DENSE], &s->of[PATH_SPARSE]);

	table_cell(t, "%s", "");
	table_cell(t, "paths");
	if (s->measured)
		table_cell(t, "instructions");
	table_cell(t, "%s", s->metric);
	table_cell(t, "procedures");
	table_cell(t, "paths each");
	table_cell(t, "%s", s->metric);
	table_row(t);
	table_header(t);
	put_share(t, s, "hot", &hot);
	if (s->measured) {
		put_share(t, s, "  dense", &s->of[PATH_DENSE]);
		put_share(t, s, "  sparse", &s->of[PATH_SPARSE]);
	}
	put_share(t, s, "cold", &s->of[PATH_COLD]);
	table_print(t, stdout, term_width());
	table_destroy(t);
}

/* How much of what was measured is measuring itself. */
static void print_measuring(const struct paths_view *v)
{
	const struct metric_names *names = path_list_metrics(v->list);
	const struct path_summary *s = path_list_summary(v->list);
	int readings = metric_find(names, METRIC_READINGS);
	int measuring = metric_find(names, METRIC_MEASURING), clock = metric_find(names, "tsc");

	if (readings < 0)
		return;
	printf("metrics were read %" PRIu64 " times", s->metrics[readings]);
	if (measuring >= 0 && clock >= 0 && s->metrics[clock])
		printf("; of the ticks, about %" PRIu64 " (%.0f%%) are reading and counting",
			s->metrics[measuring],
			100.0 * (double)s->metrics[measuring] / (double)s->metrics[clock]);
	printf("\n");
}

static void print_heading(const struct paths_view *v)
{
	const struct path_summary *s = path_list_summary(v->list);
	const struct path_procedure *list;
	size_t n = path_list_procedures(v->list, &list), ran = 0;
	uint64_t count = 0, off = 0;

	for (size_t i = 0; i < n; i++) {
		ran += list[i].n > 0;
		count += list[i].count;
		off += list[i].off > 0;
	}
	printf("%" PRIu64 " paths ran %" PRIu64 " times, of %.4g that %zu procedures have\n",
		s->paths, count, s->potential, ran);
	if (s->measured)
		printf("hot: at least %g%% of %s; dense: more of it an instruction than all "
		       "together\n",
			100 * v->hot, s->metric);
	else
		printf("hot: at least %g%% of %s\n", 100 * v->hot, s->metric);
	print_measuring(v);
	if (off)
		printf("counts of %zu procedures may be off: paths that were begun and not "
		       "ended\n",
			(size_t)off);
	if (s->without_code)
		printf("the instructions of %" PRIu64 " procedures are not known\n",
			s->without_code);
	printf("\n");
}

static void print_prediction(const struct paths_view *v)
{
	const struct path_prediction *p = &v->prediction;

	printf("\nEdges alone, as if branches did not depend on each other, foretell %.1f%% of the "
	       "flow\nand %" PRIu64 " of %" PRIu64 " hot paths; they call %" PRIu64
	       " paths hot that are cold, and %" PRIu64 " that never ran.\n",
		100 * p->overlap, p->foretold, p->hot, p->wrong, p->never);
}

/* ---- paths ---- */

static void put_path_heading(struct table *t, const struct paths_view *v)
{
	const struct path_summary *s = path_list_summary(v->list);

	table_cell(t, "%s", s->metric);
	table_cell(t, "sum");
	if (s->measured)
		table_cell(t, "each time");
	table_cell(t, "times");
	if (v->compare)
		table_cell(t, "by edges");
	table_cell(t, "length");
	table_cell(t, "path");
	table_row(t);
	table_header(t);
}

static void put_cells(
	struct table *t, const struct paths_view *v, const struct path_entry *p, double sum)
{
	const struct path_summary *s = path_list_summary(v->list);

	table_cell(t, "%.2f%%", percent(p->weight, s->weight));
	table_cell(t, "%.1f%%", percent(sum, s->weight));
	if (s->measured)
		table_cell(t, "%.1f", p->count ? p->weight / (double)p->count : 0.0);
	table_cell(t, "%" PRIu64, p->count);
	if (v->compare)
		table_cell(t, "%.0f", paths_predicted(v, p));
	table_cell(t, "%" PRIu64, p->length);
}

/* Text that nobody vouches for in a cell. */
static void put_line(struct table *t, const struct paths_view *v, const char *text)
{
	const struct path_summary *s = path_list_summary(v->list);
	int empty = 4 + s->measured + v->compare;

	for (int i = 0; i < empty; i++)
		table_cell(t, "%s", "");
	table_cell(t, "  %s", text);
	table_row(t);
}

static void put_path(struct table *t, struct paths_view *v, const struct path_entry *p, double sum)
{
	const struct path_procedure *procedure = paths_procedure(v, p);
	struct buf blocks = {0}, lines = {0};

	put_cells(t, v, p, sum);
	table_cell(t, "%s (%" PRIu32 " of %zu)", procedure->name, p->rank, procedure->n);
	table_row(t);
	path_format(&p->shape, v->what ? 0 : BLOCKS_MOST, &blocks);
	put_line(t, v, buf_cstr(&blocks));
	path_lines_format(v->lines, procedure->image, procedure->procedure, &p->shape, &lines);
	if (lines.n)
		put_line(t, v, buf_cstr(&lines));
	buf_deinit(&blocks);
	buf_deinit(&lines);
}

static void print_paths(struct paths_view *v)
{
	const struct path_summary *s = path_list_summary(v->list);
	struct table *t = table_create(s->measured && v->compare   ? ">>>>>><"
				       : s->measured || v->compare ? ">>>>><"
								   : ">>>><");
	const struct path_entry *const *paths;
	size_t n = path_list_ranked(v->list, &paths);
	uint64_t most = v->report.rows ? v->report.rows : ROWS_MOST, shown = 0, hidden = 0;
	double sum = 0;

	put_path_heading(t, v);
	for (size_t i = 0; i < n; i++) {
		if (!paths_shows_path(v, paths[i]))
			continue;
		if (shown == most) {
			hidden++;
			continue;
		}
		sum += paths[i]->weight;
		put_path(t, v, paths[i], sum);
		shown++;
	}
	table_print(t, stdout, v->what ? 0 : term_width());
	table_destroy(t);
	if (!shown)
		printf("%s\n", v->what ? "no paths of that procedure ran"
				       : "no path is hot; --min-share shows those with less");
	if (hidden)
		printf("and %" PRIu64 " more (-n shows more)\n", hidden);
}

/* ---- procedures ---- */

static int compare_procedures(const void *a, const void *b)
{
	const struct path_procedure *x = *(const struct path_procedure *const *)a;
	const struct path_procedure *y = *(const struct path_procedure *const *)b;

	if (x->n != y->n)
		return x->n > y->n ? -1 : 1;
	if (x->weight != y->weight)
		return x->weight > y->weight ? -1 : 1;
	return strcmp(x->name, y->name);
}

static void put_procedure(
	struct table *t, const struct paths_view *v, const struct path_procedure *p)
{
	table_cell(t, "%zu", p->n);
	table_cell(t, "%.4g", (double)p->potential);
	table_cell(t, "%s", path_how_name(p->how));
	table_cell(t, "%" PRIu64, p->count);
	table_cell(t, "%.2f%%", percent(p->weight, path_list_summary(v->list)->weight));
	table_cell(t, "%s", p->off ? "yes" : "");
	table_cell(t, "%s", p->name);
	table_row(t);
}

static void print_procedures(const struct paths_view *v)
{
	const struct path_summary *s = path_list_summary(v->list);
	const struct path_procedure *list;
	size_t n = path_list_procedures(v->list, &list), shown = 0;
	_cleanup_free_ const struct path_procedure **order = xcalloc(n + 1, sizeof *order);
	struct table *t = table_create(">><>><<");

	for (size_t i = 0; i < n; i++)
		if (list[i].n && paths_shows(v, &list[i]))
			order[shown++] = &list[i];
	qsort(order, shown, sizeof *order, compare_procedures);
	table_cell(t, "paths");
	table_cell(t, "potential");
	table_cell(t, "counted");
	table_cell(t, "times");
	table_cell(t, "%s", s->metric);
	table_cell(t, "off");
	table_cell(t, "procedure");
	table_row(t);
	table_header(t);
	for (size_t i = 0; i < shown && (!v->report.rows || i < v->report.rows); i++)
		put_procedure(t, v, order[i]);
	table_print(t, stdout, term_width());
	table_destroy(t);
}

void paths_print_text(struct paths_view *v)
{
	print_heading(v);
	print_classes(path_list_summary(v->list));
	if (v->compare)
		print_prediction(v);
	printf("\n");
	if (v->by_procedure)
		print_procedures(v);
	else
		print_paths(v);
	report_epochs_note(&v->report);
}
