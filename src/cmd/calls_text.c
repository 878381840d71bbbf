/* What `culprit calls` prints for people. */
#include "base/buf.h"
#include "base/mem.h"
#include "base/table.h"
#include "base/term.h"
#include "cmd/calls_view.h"
#include "cmd/path_format.h"
#include "store/contexts.h"

#include <inttypes.h>
#include <stdlib.h>

#define INDENT_MOST 40 /* levels; deeper ones tell their depth */
#define HOT_ROWS    50
#define PATHS_MOST  8    /* of a context */
#define PATH_LEAST  0.01 /* of what ran in it */
#define BLOCKS_MOST 12

static double percent(double part, double whole)
{
	return whole > 0 ? 100 * part / whole : 0;
}

/* What the numbers of nodes are. */
static const char *counted_word(const struct calls_view *v)
{
	return context_tree_sampled(v->tree) ? CONTEXT_BY_SAMPLES : CONTEXT_BY_CALLS;
}

/* ---- paths ---- */

static int by_count(const void *a, const void *b)
{
	const struct call_path *x = *(const struct call_path *const *)a;
	const struct call_path *y = *(const struct call_path *const *)b;

	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	return path_shape_compare(&x->shape, &y->shape);
}

static void put_path(struct table *t, const struct call_path *p, double share, uint32_t indent)
{
	struct buf text = {0};

	path_format(&p->shape, BLOCKS_MOST, &text);
	table_cell(t, " ");
	table_cell(t, "%.0f%%", 100 * share);
	table_cell(t, "%" PRIu64, p->count);
	table_cell(t, "%*s| %s", 2 * (int)indent, "", buf_cstr(&text));
	table_row(t);
	buf_deinit(&text);
}

/* Those that ran most in this context; shares are of what ran in it. */
static void put_paths(
	struct table *t, const struct calls_view *v, const struct context_node *n, uint32_t indent)
{
	const struct call_tree *calls = context_tree_calls(v->tree);
	const struct call_node *from = call_tree_node(calls, n->source);
	VEC(const struct call_path *) list = {0};
	double all = 0;

	for (uint32_t i = 0; i < from->npaths && v->paths; i++) {
		*vec_add(&list) = call_tree_path(calls, from->path + i);
		all += (double)list.p[i]->count;
	}
	vec_sort(&list, by_count);
	for (size_t i = 0; i < list.n && i < PATHS_MOST; i++)
		if ((double)list.p[i]->count >= PATH_LEAST * all)
			put_path(t, list.p[i], (double)list.p[i]->count / all, indent);
	vec_deinit(&list);
}

/* ---- trees ---- */

static void put_name(struct table *t, const struct context_node *n,
	const struct context_procedure *p, const char *arrow)
{
	int levels = n->depth < INDENT_MOST ? (int)n->depth : INDENT_MOST;
	struct buf text = {0};

	buf_printf(&text, "%*s%s%s", 2 * levels, "", n->depth ? arrow : "", p->name);
	if (n->depth > INDENT_MOST)
		buf_printf(&text, " (level %" PRIu32 ")", n->depth);
	if (n->site)
		buf_printf(&text, " from %" PRIx64, n->site);
	if (n->jumped)
		buf_printf(&text, " (jumped on)");
	if (n->recursive)
		buf_printf(&text, " (recursive)");
	table_cell(t, "%s", buf_cstr(&text));
	buf_deinit(&text);
}

static void put_node(struct table *t, const struct context_tree *tree, const struct context_node *n,
	const char *arrow)
{
	double total = context_tree_total(tree);
	const struct context_procedure *procedures;

	context_tree_procedures(tree, &procedures);
	table_cell(t, "%.2f%%", percent(n->all, total));
	table_cell(t, n->own > 0 ? "%.2f%%" : "", percent(n->own, total));
	table_cell(t, "%" PRIu64, n->count);
	put_name(t, n, &procedures[n->procedure], arrow);
	table_row(t);
}

/* Nodes with enough of the weight, and recursion below them; how many others there are. */
static uint64_t put_nodes(struct table *t, const struct calls_view *v,
	const struct context_tree *tree, const char *arrow)
{
	const struct context_node *nodes;
	size_t n = context_tree_nodes(tree, &nodes);
	double least = v->least * context_tree_total(tree);
	uint64_t left = v->report.rows ? v->report.rows : UINT64_MAX, hidden = 0;

	for (size_t i = 0; i < n;) {
		if ((!nodes[i].recursive && nodes[i].all < least) || !left) {
			hidden += nodes[i].end - i;
			i = nodes[i].end;
			continue;
		}
		put_node(t, tree, &nodes[i], arrow);
		if (tree == v->tree)
			put_paths(t, v, &nodes[i],
				nodes[i].depth < INDENT_MOST ? nodes[i].depth + 1 : INDENT_MOST);
		i++;
		left--;
	}
	return hidden;
}

static void print_tree(const struct calls_view *v, const struct context_tree *tree,
	const char *what, const char *arrow)
{
	struct table *t = table_create(">>><");
	uint64_t hidden;

	table_cell(t, "%s", context_tree_metric(tree));
	table_cell(t, "own");
	table_cell(t, "%s", counted_word(v));
	table_cell(t, "%s", what);
	table_row(t);
	table_header(t);
	hidden = put_nodes(t, v, tree, arrow);
	table_print(t, stdout, term_width());
	table_destroy(t);
	if (hidden)
		printf("and %" PRIu64 " more (--min-share, -n)\n", hidden);
}

static void print_callers(const struct calls_view *v)
{
	struct context_tree *callers =
		context_tree_callers(v->tree, v->least * context_tree_total(v->tree));

	print_tree(v, callers, "procedure, and its callers", "< ");
	context_tree_destroy(callers);
}

/* ---- hot contexts ---- */

static void put_hot(struct table *t, const struct calls_view *v, const struct context_node *n,
	double sum, calls_chain *chain)
{
	double total = context_tree_total(v->tree);
	const struct context_procedure *procedures;
	const struct context_node *nodes;
	struct buf text = {0};

	context_tree_procedures(v->tree, &procedures);
	context_tree_nodes(v->tree, &nodes);
	calls_chain_of(v, n, chain);
	vec_each (at, chain)
		buf_printf(&text, "%s%s", at == chain->p ? "" : " > ",
			procedures[nodes[*at].procedure].name);
	if (n->recursive)
		buf_printf(&text, " (recursive)");
	if (context_tree_known(v->tree, n) == CONTEXT_RANKED)
		buf_printf(&text, " (likeliest of several)");
	table_cell(t, "%.2f%%", percent(n->own, total));
	table_cell(t, "%.1f%%", percent(sum, total));
	table_cell(t, "%" PRIu64, n->count);
	table_cell(t, "%s", buf_cstr(&text));
	table_row(t);
	buf_deinit(&text);
}

static void print_hot(const struct calls_view *v)
{
	_cleanup_free_ const struct context_node **hot = NULL;
	size_t n = calls_hot(v, v->least, &hot), most = v->report.rows ? v->report.rows : HOT_ROWS;
	struct table *t = table_create(">>><");
	calls_chain chain = {0};
	double sum = 0;

	table_cell(t, "%s", context_tree_metric(v->tree));
	table_cell(t, "sum");
	table_cell(t, "%s", counted_word(v));
	table_cell(t, "context");
	table_row(t);
	table_header(t);
	for (size_t i = 0; i < n && i < most; i++) {
		sum += hot[i]->own;
		put_hot(t, v, hot[i], sum, &chain);
		put_paths(t, v, hot[i], 1);
	}
	table_print(t, stdout, 0);
	table_destroy(t);
	vec_deinit(&chain);
	if (!n)
		printf("%s\n", v->earlier ? "no context is new"
					  : "no context is hot; --min-share shows those with less");
	if (n > most)
		printf("and %zu more (-n shows more)\n", n - most);
}

static void print_new(const struct calls_view *v)
{
	_cleanup_free_ const struct context_node **list = NULL;
	size_t n = calls_hot(v, 0, &list);
	double own = 0;

	for (size_t i = 0; i < n; i++)
		own += list[i]->own;
	printf("%zu contexts with %.2f%% of it are not in ", n,
		percent(own, context_tree_total(v->tree)));
	cmd_put(stdout, v->earlier);
	printf("\n");
}

/* ---- the paper's table 3 ---- */

static void print_size(const struct calls_view *v)
{
	const struct context_procedure *procedures;
	struct context_size s;

	context_tree_procedures(v->tree, &procedures);
	context_size(v->tree, &s);
	printf("%-28s %" PRIu64 " bytes\n", "profile", s.bytes);
	printf("%-28s %" PRIu32 ", of %" PRIu32 " procedures\n", "nodes", s.nodes, s.procedures);
	printf("%-28s %.2f\n", "children of an inner node", s.degree);
	printf("%-28s %.1f mean, %" PRIu32 " most\n", "height", s.height, s.deepest);
	printf("%-28s %" PRIu32 ", ", "most nodes of a procedure", s.replication);
	cmd_put(stdout, s.replication ? procedures[s.replicated].name : "");
	printf("\n%-28s %" PRIu32 "\n", "calls closed by recursion", s.recursive);
	if (s.sites)
		printf("%-28s %" PRIu32 "\n", "call sites used", s.sites);
	if (s.paths)
		printf("%-28s %" PRIu32 "\n%-28s %" PRIu64 "\n", "  of these, on one path",
			s.one_path, "paths in all nodes", s.paths);
}

/* How sure the paths of samples are. */
static void print_certainty(const struct calls_view *v)
{
	const struct call_tree *calls = context_tree_calls(v->tree);
	int ranked = metric_find(call_tree_metrics(calls), CONTEXT_METRIC_RANKED);
	int unknown = metric_find(call_tree_metrics(calls), CONTEXT_METRIC_UNKNOWN);
	uint64_t verdicts[PATH_VERDICTS], judged = 0, sum[3] = {0};

	for (uint32_t i = 0; i < call_tree_size(calls); i++) {
		const struct call_node *n = call_tree_node(calls, i);

		sum[0] += n->count;
		sum[1] += ranked < 0 ? 0 : n->metrics[ranked];
		sum[2] += unknown < 0 ? 0 : n->metrics[unknown];
	}
	context_tree_verdicts(v->tree, verdicts);
	for (unsigned i = 0; i < PATH_VERDICTS; i++)
		judged += verdicts[i];
	printf("sampled by %s; %.2f%% of the paths are the likeliest of several, %.2f%% unknown",
		context_tree_sampled(v->tree), percent((double)sum[1], (double)sum[0]),
		percent((double)sum[2], (double)sum[0]));
	if (judged)
		printf("; of %" PRIu64 " stacks looked at at random %.1f%% had been named right",
			judged, 100 * call_map_precision(verdicts));
	printf("\n");
}

void calls_print_text(struct calls_view *v)
{
	const struct context_node *nodes;
	size_t n = context_tree_nodes(v->tree, &nodes);

	if (v->form == CALLS_SIZE) {
		print_size(v);
		return;
	}
	printf("%zu contexts; %s = %.0f\n", n, context_tree_metric(v->tree),
		context_tree_total(v->tree));
	if (context_tree_sampled(v->tree))
		print_certainty(v);
	if (v->earlier)
		print_new(v);
	printf("\n");
	if (v->form == CALLS_HOT)
		print_hot(v);
	else if (v->form == CALLS_CALLERS)
		print_callers(v);
	else
		print_tree(v, v->tree, "context", "");
	report_epochs_note(&v->report);
}
