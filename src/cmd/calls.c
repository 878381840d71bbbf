/*
 * culprit calls: calling contexts, as a tree from the top or from the bottom, as hot contexts,
 * folded stacks or a flame graph.
 */
#include "analyze/context_new.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "cmd/calls_view.h"
#include "cmd/path_format.h"
#include "export/flame.h"
#include "export/folded.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_DEFAULT 0.01

/* ---- contexts as lists ---- */

static int compare_own(const void *a, const void *b)
{
	const struct context_node *x = *(const struct context_node *const *)a;
	const struct context_node *y = *(const struct context_node *const *)b;

	if (x->own != y->own)
		return x->own > y->own ? -1 : 1;
	return x < y ? -1 : x > y;
}

/* Contexts that only others were called through are in the paths of those. */
static bool is_listed(const struct calls_view *v, const struct context_node *n)
{
	return n->own > 0 || n->count || v->report.has_min_share;
}

size_t calls_hot(const struct calls_view *v, double least, const struct context_node ***out)
{
	const struct context_node *nodes;
	size_t n = context_tree_nodes(v->tree, &nodes), found = 0;
	double weight = least * context_tree_total(v->tree);

	*out = xcalloc(n + 1, sizeof **out);
	for (size_t i = 0; i < n; i++)
		if (nodes[i].own >= weight && (nodes[i].own > 0 || !least) &&
			is_listed(v, &nodes[i]) && (!v->fresh || (v->fresh[i] && nodes[i].own > 0)))
			(*out)[found++] = &nodes[i];
	qsort(*out, found, sizeof **out, compare_own);
	return found;
}

void calls_chain_of(const struct calls_view *v, const struct context_node *n, calls_chain *out)
{
	const struct context_node *nodes;
	uint32_t at;

	context_tree_nodes(v->tree, &nodes);
	out->n = 0;
	vec_reserve(out, n->depth + 1);
	out->n = n->depth + 1;
	at = (uint32_t)(n - nodes);
	for (size_t i = out->n; i--; at = nodes[at].parent)
		out->p[i] = at;
}

/* ---- JSON ---- */

static void put_frames(struct json *j, const struct calls_view *v, const calls_chain *chain)
{
	const struct context_procedure *procedures;
	const struct context_node *nodes;

	context_tree_procedures(v->tree, &procedures);
	context_tree_nodes(v->tree, &nodes);
	json_key(j, "path");
	json_open(j, '[');
	vec_each (at, chain)
		json_str(j, procedures[nodes[*at].procedure].name);
	json_close(j);
	json_key(j, "frames");
	json_open(j, '[');
	vec_each (at, chain) {
		const struct context_procedure *p = &procedures[nodes[*at].procedure];

		json_open(j, '{');
		json_kstr(j, "image", p->image ? p->image->path : NULL);
		json_kaddr(j, "start", p->start);
		if (nodes[*at].site)
			json_kaddr(j, "site", nodes[*at].site);
		if (nodes[*at].jumped)
			json_kbool(j, "jumped", true);
		json_close(j);
	}
	json_close(j);
}

static void put_metrics(struct json *j, const struct call_tree *calls, const uint64_t *metrics)
{
	const struct metric_names *names = call_tree_metrics(calls);

	json_key(j, "metrics");
	json_open(j, '{');
	for (uint32_t i = 0; i < names->n; i++)
		json_kuint(j, names->name[i], metrics[i]);
	json_close(j);
}

static void put_paths(struct json *j, const struct call_tree *calls, const struct call_node *n)
{
	json_key(j, "paths");
	json_open(j, '[');
	for (uint32_t i = 0; i < n->npaths; i++) {
		const struct call_path *p = call_tree_path(calls, n->path + i);

		json_open(j, '{');
		json_kstr(j, "begins", path_start_name(p->shape.start));
		json_kstr(j, "ends", path_end_name(p->shape.end));
		if (p->shape.next)
			json_kaddr(j, "next", p->shape.next);
		json_key(j, "blocks");
		json_open(j, '[');
		for (uint32_t k = 0; k < p->shape.n; k++)
			json_addr(j, p->shape.blocks[k]);
		json_close(j);
		json_kuint(j, "count", p->count);
		if (call_tree_metrics(calls)->n)
			put_metrics(j, calls, p->metrics);
		json_close(j);
	}
	json_close(j);
}

static void put_context(struct json *j, const struct calls_view *v, const struct context_node *n,
	calls_chain *chain)
{
	const struct call_tree *calls = context_tree_calls(v->tree);
	const struct call_node *from = call_tree_node(calls, n->source);
	double total = context_tree_total(v->tree);

	calls_chain_of(v, n, chain);
	json_open(j, '{');
	put_frames(j, v, chain);
	json_kuint(j, "samples", context_tree_sampled(v->tree) ? n->count : 0);
	json_kuint(j, "count", context_tree_sampled(v->tree) ? 0 : n->count);
	json_kshare(j, "share", total > 0 ? n->own / total : 0);
	json_kshare(j, "with_callees", total > 0 ? n->all / total : 0);
	json_kstr(j, "known", context_known_word(context_tree_known(v->tree, n)));
	put_metrics(j, calls, from->metrics);
	json_kbool(j, "recursive", n->recursive);
	if (from->npaths)
		put_paths(j, calls, from);
	json_close(j);
}

static void print_size(const struct calls_view *v)
{
	const struct context_procedure *procedures;
	struct context_size s;
	struct json j;

	context_tree_procedures(v->tree, &procedures);
	context_size(v->tree, &s);
	json_init(&j, stdout);
	json_open(&j, '{');
	json_kuint(&j, "bytes", s.bytes);
	json_kuint(&j, "nodes", s.nodes);
	json_kuint(&j, "procedures", s.procedures);
	json_kuint(&j, "roots", s.roots);
	json_kuint(&j, "interior", s.interior);
	json_kdouble(&j, "degree", s.degree);
	json_kdouble(&j, "height", s.height);
	json_kuint(&j, "deepest", s.deepest);
	json_kuint(&j, "replication", s.replication);
	json_kstr(&j, "replicated", s.replication ? procedures[s.replicated].name : NULL);
	json_kuint(&j, "recursive", s.recursive);
	json_kuint(&j, "sites", s.sites);
	json_kuint(&j, "one_path", s.one_path);
	json_kuint(&j, "paths", s.paths);
	json_close(&j);
}

/* Of counted paths 1; of sampled ones what was measured, or NAN. */
static double precision(const struct calls_view *v)
{
	uint64_t verdicts[PATH_VERDICTS];
	double share;

	if (!context_tree_sampled(v->tree))
		return 1;
	context_tree_verdicts(v->tree, verdicts);
	share = call_map_precision(verdicts);
	return share < 0 ? NAN : share;
}

/* What the stacks said that were looked at at random. */
static void put_verdicts(struct json *j, const struct calls_view *v)
{
	uint64_t verdicts[PATH_VERDICTS];

	context_tree_verdicts(v->tree, verdicts);
	json_key(j, "verdicts");
	json_open(j, '{');
	for (unsigned i = 0; i < PATH_VERDICTS; i++)
		json_kuint(j, call_verdict_word((enum call_verdict)i), verdicts[i]);
	json_close(j);
}

/* Every context by itself, with its whole path. */
static void put_contexts(struct json *j, const struct calls_view *v)
{
	_cleanup_free_ const struct context_node **hot = NULL;
	size_t n = calls_hot(v, v->report.has_min_share ? v->least : 0, &hot);
	calls_chain chain = {0};

	json_key(j, "contexts");
	json_open(j, '[');
	for (size_t i = 0; i < n && (!v->report.rows || i < v->report.rows); i++)
		put_context(j, v, hot[i], &chain);
	json_close(j);
	vec_deinit(&chain);
}

static void put_procedures(struct json *j, const struct calls_view *v)
{
	const struct context_procedure *procedures;
	size_t n = context_tree_procedures(v->tree, &procedures);

	json_key(j, "procedures");
	json_open(j, '[');
	for (size_t i = 0; i < n; i++) {
		json_open(j, '{');
		json_kstr(j, "name", procedures[i].name);
		json_kstr(j, "image", procedures[i].image ? procedures[i].image->path : NULL);
		json_kaddr(j, "start", procedures[i].start);
		json_close(j);
	}
	json_close(j);
}

/* The tree as it is, in preorder: [parent (-1: a root), procedure, own weight, count, known]. */
static void put_tree(struct json *j, const struct calls_view *v)
{
	const struct context_node *nodes;
	size_t n = context_tree_nodes(v->tree, &nodes);

	put_procedures(j, v);
	json_key(j, "known");
	json_open(j, '[');
	for (int k = CONTEXT_EXACT; k <= CONTEXT_UNKNOWN; k++)
		json_str(j, context_known_word((enum context_known)k));
	json_close(j);
	json_key(j, "nodes");
	json_open(j, '[');
	for (size_t i = 0; i < n; i++) {
		json_open(j, '[');
		json_int(j, nodes[i].parent == CONTEXT_NONE ? -1 : (int64_t)nodes[i].parent);
		json_uint(j, nodes[i].procedure);
		json_double(j, nodes[i].own);
		json_uint(j, nodes[i].count);
		json_uint(j, context_tree_known(v->tree, &nodes[i]));
		json_close(j);
	}
	json_close(j);
}

static void print_contexts(const struct calls_view *v)
{
	struct json j;

	json_init(&j, stdout);
	json_open(&j, '{');
	json_kdouble(&j, "precision", precision(v));
	if (context_tree_sampled(v->tree))
		put_verdicts(&j, v);
	json_kstr(&j, "event", context_tree_sampled(v->tree));
	json_kstr(&j, "metric", context_tree_metric(v->tree));
	json_kdouble(&j, "total", context_tree_total(v->tree));
	if (v->whole)
		put_tree(&j, v);
	else
		put_contexts(&j, v);
	json_close(&j);
}

static void print_json(const struct calls_view *v)
{
	if (v->form == CALLS_SIZE)
		print_size(v);
	else
		print_contexts(v);
}

/* ---- for other programs ---- */

static void print_svg(const struct calls_view *v, FILE *out)
{
	const struct context_procedure *procedures;
	const struct context_node *nodes;
	size_t n = context_tree_nodes(v->tree, &nodes);
	_cleanup_free_ struct flame_box *boxes = xcalloc(n + 1, sizeof *boxes);
	_cleanup_free_ char *subtitle = xasprintf("%zu contexts, %.0f %s; callers below callees", n,
		context_tree_total(v->tree), context_tree_metric(v->tree));

	context_tree_procedures(v->tree, &procedures);
	for (size_t i = 0; i < n; i++)
		boxes[i] = (struct flame_box){.depth = nodes[i].depth,
			.weight = nodes[i].all,
			.name = procedures[nodes[i].procedure].name,
			.detail = nodes[i].recursive ? "recursive"
				  : nodes[i].jumped  ? "jumped on"
						     : NULL};
	flame_write(&(struct flame){.title = v->report.input,
			    .subtitle = subtitle,
			    .unit = context_tree_metric(v->tree),
			    .total = context_tree_total(v->tree),
			    .boxes = boxes,
			    .n = n},
		out);
}

static int print_other(const struct calls_view *v, struct err *e)
{
	FILE *out = stdout;
	int rc = report_output(&v->report, v->output, &out, e);

	if (rc)
		return rc;
	if (v->form == CALLS_SVG)
		print_svg(v, out);
	else
		folded_write(v->tree, out);
	return v->output ? cmd_output_close(v->output, out, e) : 0;
}

/* ---- options ---- */

enum {
	CALLS_OPTION_METRIC = REPORT_LAST,
	CALLS_OPTION_SITES,
	CALLS_OPTION_CHECK,
	CALLS_OPTION_AT,
	CALLS_OPTION_NEW,
	CALLS_OPTION_PATHS,
	CALLS_OPTION_WHOLE,
	CALLS_OPTION_FORM, /* and those behind it, in the order of enum calls_form */
};

static void ask(struct calls_view *v, enum calls_form form, const char *other)
{
	v->form = form;
	v->other = other;
}

static int calls_option(void *arg, int c, const char *value)
{
	struct calls_view *v = arg;

	if (c == CALLS_OPTION_METRIC)
		v->metric = value;
	else if (c == CALLS_OPTION_SITES)
		v->sites = true;
	else if (c == CALLS_OPTION_CHECK)
		ask(v, CALLS_CHECK, value);
	else if (c == CALLS_OPTION_AT)
		ask(v, CALLS_AT, value);
	else if (c == CALLS_OPTION_NEW)
		v->earlier = value;
	else if (c == CALLS_OPTION_PATHS)
		v->paths = true;
	else if (c == CALLS_OPTION_WHOLE)
		v->whole = true;
	else if (c == 'o')
		v->output = value;
	else if (c >= CALLS_OPTION_FORM && c <= CALLS_OPTION_FORM + CALLS_SVG)
		v->form = c - CALLS_OPTION_FORM;
	else
		return 1;
	return 0;
}

static int parse(struct calls_view *v, int argc, char **argv)
{
	static const struct option options[] = {REPORT_LONG, REPORT_ROWS_LONG,
		REPORT_MIN_SHARE_LONG, {"output", required_argument, NULL, 'o'},
		{"metric", required_argument, NULL, CALLS_OPTION_METRIC},
		{"sites", no_argument, NULL, CALLS_OPTION_SITES},
		{"check", required_argument, NULL, CALLS_OPTION_CHECK},
		{"at", required_argument, NULL, CALLS_OPTION_AT},
		{"new", required_argument, NULL, CALLS_OPTION_NEW},
		{"paths", no_argument, NULL, CALLS_OPTION_PATHS},
		{"tree", no_argument, NULL, CALLS_OPTION_WHOLE},
		{"top-down", no_argument, NULL, CALLS_OPTION_FORM + CALLS_TREE},
		{"bottom-up", no_argument, NULL, CALLS_OPTION_FORM + CALLS_CALLERS},
		{"hot", no_argument, NULL, CALLS_OPTION_FORM + CALLS_HOT},
		{"size", no_argument, NULL, CALLS_OPTION_FORM + CALLS_SIZE},
		{"folded", no_argument, NULL, CALLS_OPTION_FORM + CALLS_FOLDED},
		{"svg", no_argument, NULL, CALLS_OPTION_FORM + CALLS_SVG}, {0}};
	static const struct report_verb verb = {
		"calls", ":n:o:" REPORT_SHORT, options, calls_option};
	int rc = report_parse(&v->report, &verb, v, argc, argv);

	if (!rc)
		rc = report_no_operand("calls", argc, argv);
	if (!rc && v->paths && v->form != CALLS_TREE && v->form != CALLS_HOT)
		return cmd_usage(
			"calls", "--paths goes with --top-down and --hot; --json has them always");
	if (!rc && v->earlier && v->form == CALLS_TREE)
		v->form = CALLS_HOT;
	if (!rc && v->earlier && v->form != CALLS_HOT)
		return cmd_usage("calls", "--new lists contexts, it goes with --hot and --json");
	if (!rc && v->whole && (!v->report.json || v->form != CALLS_TREE || v->earlier))
		return cmd_usage("calls", "--tree goes with --json, and without other forms");
	if (!rc && v->output && v->form != CALLS_SVG && v->form != CALLS_FOLDED)
		return cmd_usage("calls", "-o goes with --svg and --folded");
	return rc;
}

/* ---- the whole ---- */

static bool has_paths(const struct calls_view *v)
{
	const struct call_tree *calls = context_tree_calls(v->tree);

	for (uint32_t i = 0; i < call_tree_size(calls); i++)
		if (call_tree_node(calls, i)->npaths)
			return true;
	return false;
}

/* All of them are shown, however small. */
static int find_new(struct calls_view *v, struct err *e)
{
	struct report earlier = {.input = v->earlier, .no_pager = true};
	int rc = report_select(&earlier, NULL, e);

	if (!rc)
		rc = context_new(v->tree, earlier.sel, &v->fresh, e);
	report_deinit(&earlier);
	v->least = v->report.has_min_share ? v->report.min_share : 0;
	return rc;
}

static int report(struct calls_view *v, struct err *e)
{
	struct context_tree_options o = {.metric = v->metric,
		.events = v->report.events.n > 0,
		.procedure = v->report.procedure,
		.sites = v->sites || v->form == CALLS_SIZE};
	int rc = report_select(&v->report, NULL, e);

	v->least = v->report.has_min_share ? v->report.min_share : LEAST_DEFAULT;
	if (!rc)
		rc = context_tree_create(v->report.sel, &o, &v->tree, e);
	if (!rc && v->paths && !has_paths(v))
		rc = err_set(e, -ENOENT,
			"%s: no paths were counted by context; 'culprit record --paths --context' "
			"does",
			v->report.input);
	if (!rc && v->earlier)
		rc = find_new(v, e);
	if (rc)
		return rc;
	if (!v->report.json && (v->form == CALLS_SVG || v->form == CALLS_FOLDED))
		return print_other(v, e);
	report_pager(&v->report);
	if (v->report.json)
		print_json(v);
	else
		calls_print_text(v);
	return 0;
}

static int answer(struct calls_view *v, struct err *e)
{
	if (v->form == CALLS_CHECK)
		return calls_check(v, e);
	return v->form == CALLS_AT ? calls_at(v, e) : report(v, e);
}

int cmd_calls(int argc, char **argv)
{
	struct calls_view v = {0};
	struct err e = {0};
	int code = parse(&v, argc, argv);

	if (code < 0)
		code = cmd_help_text("calls");
	else if (!code && answer(&v, &e))
		code = cmd_fail(&e);
	free(v.fresh);
	context_tree_destroy(v.tree);
	report_deinit(&v.report);
	return code;
}
