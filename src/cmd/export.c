/*
 * culprit export: what a database holds, for other programs.
 */
#include "analyze/context_tree.h"
#include "analyze/edge_tally.h"
#include "analyze/exact_counts.h"
#include "analyze/frequencies.h"
#include "analyze/why.h"
#include "base/err.h"
#include "cmd/cmd.h"
#include "export/csv.h"
#include "export/firefox.h"
#include "export/folded.h"
#include "export/pprof.h"
#include "export/speedscope.h"
#include "export/stacks.h"

#include <errno.h>
#include <fnmatch.h>
#include <getopt.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

struct format;

/* The estimates of one image. */
struct exported {
	struct selected_image *image;
	struct frequencies *frequencies;
};

struct exporting {
	struct report report;
	const struct format *format;
	const char *output;
	struct edge_tally *edges;       /* -f edges */
	VEC(struct exported) estimates; /* -f counts, by path */
	struct exact_counts *exact;     /* the same, as edited programs counted */
	struct context_tree *contexts;  /* -f folded */
	struct stacks *stacks;          /* what viewers of other profilers read */
	bool flat;                      /* --flat */
	uint64_t left_out;              /* samples without code */
};

/* The text while it is written: a heading comes with the first line under it. */
struct writing {
	const struct exporting *x;
	FILE *out;
	const struct selected_image *image, *printed;
	size_t lines;
};

static bool is_wanted(const struct writing *w, const struct procedure *p)
{
	const char *pattern = w->x->report.procedure, *label = p->name;
	char text[512];

	if (!label)
		label = procedure_label(p, w->image->path, text, sizeof text);
	return !pattern || !strcmp(pattern, label) || !fnmatch(pattern, label, 0);
}

static void print_image(struct writing *w)
{
	const struct selected_image *im = w->image;
	char id[IMAGE_ID_TEXT];

	if (w->printed == w->image)
		return;
	w->printed = w->image;
	fprintf(w->out, "image %s ", im->identity.size ? image_id_text(&im->identity, id) : "-");
	cmd_put(w->out, im->path);
	fputc('\n', w->out);
}

/* ---- edges: as they were sampled ---- */

/*
 * A count k of n samples has the binomial standard error sqrt(k (1 - k/n)), at most sqrt(k): 5% of
 * the count at 400, 10% at 100.
 */
static const char *confidence(uint64_t count)
{
	return count >= 400 ? "high" : count >= 100 ? "medium" : "low";
}

/* The edges of the procedure that the first of them is in; returns how many. */
static size_t print_edges_of(struct writing *w, const struct edge_sum *edges, size_t n)
{
	const struct procedure *p = &w->image->procedures.p[edges->procedure];
	size_t end = 1;

	while (end < n && edges[end].procedure == edges->procedure)
		end++;
	if (!is_wanted(w, p))
		return end;
	print_image(w);
	fprintf(w->out, "procedure 0x%" PRIx64 " relative\n", p->start);
	for (size_t i = 0; i < end; i++)
		fprintf(w->out, "edge 0x%" PRIx64 " 0x%" PRIx64 " %" PRIu64 " %s\n", edges[i].from,
			edges[i].to, edges[i].count, confidence(edges[i].count));
	w->lines += end;
	return end;
}

static void print_edges(struct writing *w)
{
	const struct image_edges *images;
	size_t n = edge_tally_images(w->x->edges, &images);

	for (size_t i = 0; i < n; i++) {
		w->image = images[i].image;
		for (size_t at = 0; at < images[i].n;)
			at += print_edges_of(w, images[i].edges + at, images[i].n - at);
	}
}

static int load_edges(struct exporting *x, struct err *e)
{
	const struct image_edges *images;
	int pid = x->report.filter.pid, rc = edge_tally_create(x->report.sel, &x->edges, e);

	if (!rc && pid && !edge_tally_images(x->edges, &images) && !edge_tally_nowhere(x->edges))
		rc = err_set(e, -ENOENT,
			"process %d has no edge samples of its own in %s: collect with 'culprit "
			"record --per-process', or use --comm",
			pid, x->report.input);
	return rc;
}

static void note_edges(const struct writing *w)
{
	uint64_t nowhere = edge_tally_nowhere(w->x->edges);

	if (nowhere && !w->x->report.procedure)
		cmd_note("%" PRIu64 " edge samples are in code of no procedure that the database "
			 "knows, and are left out",
			nowhere);
	else if (!w->lines)
		cmd_note("no edge samples in what was selected");
}

/* ---- counts: how often everything ran ---- */

static void print_blocks(struct writing *w, const struct frequency *f)
{
	for (uint32_t b = 0; b < f->flow->nblocks; b++) {
		const struct flow_block *block = &f->flow->blocks[b];

		if (block->marks & FLOW_PADDING)
			continue;
		fprintf(w->out, "block 0x%" PRIx64 " %" PRIu32 " %.0f %s\n", block->start,
			block->size, f->block[b].count,
			frequency_confidence_name(f->block[b].confidence));
		w->lines++;
	}
}

static void print_flows(struct writing *w, const struct frequency *f)
{
	const struct flow *flow = f->flow;

	for (uint32_t i = 0; i < flow->graph.edges; i++) {
		struct graph_edge edge = flow->graph.edge[i];
		const struct flow_block *from = &flow->blocks[edge.from];

		if (edge.from >= flow->nblocks || edge.to >= flow->nblocks)
			continue;
		fprintf(w->out, "edge 0x%" PRIx64 " 0x%" PRIx64 " %.0f %s\n",
			flow->insns[from->first + from->count - 1].address,
			flow->blocks[edge.to].start, f->edge[i].count,
			frequency_confidence_name(f->edge[i].confidence));
	}
}

static void print_estimate(struct writing *w, const struct frequencies_row *row)
{
	const struct procedure *p = &w->image->procedures.p[row->procedure];

	if (!is_wanted(w, p))
		return;
	print_image(w);
	fprintf(w->out, "procedure 0x%" PRIx64 " %s\n", p->start,
		frequency_scale_name(row->frequency->scale));
	print_blocks(w, row->frequency);
	print_flows(w, row->frequency);
}

/* Counts that may be off: so much of one is uncertain. */
static enum frequency_confidence doubtful(uint64_t off, uint64_t count)
{
	double share = (double)off / ((double)count + 1);

	return !off           ? CONFIDENCE_EXACT
	       : share < 0.05 ? CONFIDENCE_HIGH
	       : share < 0.2  ? CONFIDENCE_MEDIUM
			      : CONFIDENCE_LOW;
}

static void print_exact_row(struct writing *w, const struct exact_row *row, uint64_t off)
{
	const char *sure = frequency_confidence_name(doubtful(off, row->count));

	if (row->kind == EXACT_PROCEDURE)
		fprintf(w->out, "procedure 0x%" PRIx64 " %s\n", row->procedure,
			frequency_scale_name(off ? FREQUENCY_KNOWN : FREQUENCY_EXACT));
	else if (row->kind == EXACT_BLOCK)
		fprintf(w->out, "block 0x%" PRIx64 " %" PRIu64 " %" PRIu64 " %s\n", row->a, row->b,
			row->count, sure);
	else
		fprintf(w->out, "edge 0x%" PRIx64 " 0x%" PRIx64 " %" PRIu64 " %s\n", row->a, row->b,
			row->count, sure);
	w->lines++;
}

/* Of what was counted no estimates are wanted: prints those in front of a procedure, skips its own.
 */
static void print_estimates(
	struct writing *w, const struct frequencies *f, size_t *next, uint64_t until)
{
	const struct frequencies_row *rows;
	size_t n = frequencies_rows(f, &rows);
	const struct procedure *p = w->image->procedures.p;

	for (; *next < n && p[rows[*next].procedure].start <= until; ++*next)
		if (p[rows[*next].procedure].start < until)
			print_estimate(w, &rows[*next]);
}

static bool is_wanted_at(const struct writing *w, uint64_t start)
{
	const struct procedure *p = store_procedure_at(&w->image->procedures, start);

	return p && is_wanted(w, p);
}

static void print_counts_of(struct writing *w, const struct exported *x)
{
	struct exact_reader reader;
	struct exact_row row;
	uint64_t off = 0;
	size_t next = 0;
	bool wanted = false, any = exact_counts_of(w->x->exact, x->image, &reader);

	while (any && exact_reader_next(&reader, &row) > 0) {
		if (row.kind == EXACT_PROCEDURE) {
			print_estimates(w, x->frequencies, &next, row.procedure);
			off = row.count;
			wanted = is_wanted_at(w, row.procedure);
		}
		if (wanted) {
			print_image(w);
			print_exact_row(w, &row, off);
		}
	}
	print_estimates(w, x->frequencies, &next, UINT64_MAX);
}

static void print_counts(struct writing *w)
{
	vec_each (x, &w->x->estimates) {
		w->image = x->image;
		print_counts_of(w, x);
	}
}

static int by_path(const void *a, const void *b)
{
	const struct selected_image *x = ((const struct exported *)a)->image;
	const struct selected_image *y = ((const struct exported *)b)->image;
	int c = strcmp(x->path, y->path);

	return c ? c : memcmp(x->identity.bytes, y->identity.bytes, sizeof x->identity.bytes);
}

static int load_counts(struct exporting *x, struct err *e)
{
	struct selected_image *images;
	size_t n = selection_images(x->report.sel, &images);
	struct why_machine machine = {0};
	int rc = exact_counts_create(x->report.sel, &x->exact, e);
	bool timed = !rc && evidence_time_event(x->report.sel) != SIZE_MAX;

	if (timed)
		rc = why_machine_init(&machine, x->report.sel, e);
	for (size_t i = 0; i < n && !rc; i++) {
		struct exported one = {.image = &images[i]};

		rc = selection_load(x->report.sel, &images[i], e);
		if (rc)
			break;
		rc = frequencies_create(
			x->report.sel, &images[i], timed ? &machine : NULL, &one.frequencies, e);
		if (rc)
			break;
		*vec_add(&x->estimates) = one;
		x->left_out += frequencies_left_out(one.frequencies);
	}
	why_machine_deinit(&machine);
	vec_sort(&x->estimates, by_path);
	return rc;
}

static void note_counts(const struct writing *w)
{
	if (w->x->left_out && !w->x->report.procedure)
		cmd_note("%" PRIu64 " samples are in code that neither the database nor a file "
			 "has, and are left out",
			w->x->left_out);
	else if (!w->lines)
		cmd_note("no samples and no exact counts in what was selected");
}

/* ---- folded stacks ---- */

static int load_folded(struct exporting *x, struct err *e)
{
	return context_tree_create(x->report.sel,
		&(struct context_tree_options){.procedure = x->report.procedure}, &x->contexts, e);
}

static void print_folded(struct writing *w)
{
	folded_write(w->x->contexts, w->out);
}

static void note_folded(const struct writing *w)
{
	(void)w;
}

/* ---- what viewers of other profilers read ---- */

static int load_stacks(struct exporting *x, struct err *e)
{
	struct stacks_options o = {.procedure = x->report.procedure,
		.flat = x->flat,
		.events = x->report.events.n > 0};
	const struct stack_group *groups;
	int rc = stacks_create(x->report.sel, &o, &x->stacks, e);

	if (!rc && x->report.filter.pid && !stacks_groups(x->stacks, &groups))
		rc = err_set(e, -ENOENT,
			"process %d has no samples of its own in %s: collect with 'culprit record "
			"--per-process', or use --comm",
			x->report.filter.pid, x->report.input);
	return rc;
}

static void print_pprof(struct writing *w)
{
	pprof_write(w->x->stacks, w->out);
}

static void print_speedscope(struct writing *w)
{
	speedscope_write(w->x->stacks, w->x->report.input, w->out);
}

static void print_firefox(struct writing *w)
{
	firefox_write(w->x->stacks, w->x->report.input, w->out);
}

static void print_csv(struct writing *w)
{
	csv_write(w->x->stacks, w->out);
}

static void note_stacks(const struct writing *w)
{
	const struct stacks *s = w->x->stacks;
	const struct selected_event *ev = stacks_event(s);
	const struct stack_group *groups;
	uint64_t without = stacks_without_context(s);

	if (!stacks_groups(s, &groups))
		cmd_note("no samples and no contexts in what was selected");
	else if (ev && w->x->report.nevents > 1)
		cmd_note("only %s is exported: -e names another event", ev->name);
	if (without)
		cmd_note("%" PRIu64 " samples have no call path and are left out: --flat exports "
			 "all of them, without callers",
			without);
}

/* ---- formats ---- */

struct format {
	const char *name;
	int (*load)(struct exporting *x, struct err *e);
	void (*print)(struct writing *w);
	void (*note)(const struct writing *w); /* what is left out, on standard error */
	bool stacks;                           /* --flat goes with it */
	bool binary;
};

static const struct format formats[] = {
	{"counts", load_counts, print_counts, note_counts, false, false},
	{"edges", load_edges, print_edges, note_edges, false, false},
	{"folded", load_folded, print_folded, note_folded, false, false},
	{"pprof", load_stacks, print_pprof, note_stacks, true, true},
	{"speedscope", load_stacks, print_speedscope, note_stacks, true, false},
	{"firefox", load_stacks, print_firefox, note_stacks, true, false},
	{"csv", load_stacks, print_csv, note_stacks, true, false},
};

#define FORMATS "counts, edges, folded, pprof, speedscope, firefox or csv"

static const struct format *format_named(const char *name)
{
	for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
		if (!strcmp(formats[i].name, name))
			return &formats[i];
	return NULL;
}

/* ---- options ---- */

enum { EXPORT_FLAT = REPORT_LAST };

static int export_option(void *arg, int c, const char *value)
{
	struct exporting *x = arg;

	switch (c) {
	case 'f':
		x->format = format_named(value);
		return x->format ? 0 : cmd_usage("export", "-f takes " FORMATS ", not '%s'", value);
	case 'o':
		x->output = value;
		return 0;
	case EXPORT_FLAT:
		x->flat = true;
		return 0;
	}
	return 1;
}

static int parse(struct exporting *x, int argc, char **argv)
{
	static const struct option options[] = {REPORT_FILTERS,
		{"format", required_argument, NULL, 'f'}, {"output", required_argument, NULL, 'o'},
		{"flat", no_argument, NULL, EXPORT_FLAT}, {0}};
	static const struct report_verb verb = {
		"export", ":f:o:" REPORT_SHORT, options, export_option};
	int rc = report_parse(&x->report, &verb, x, argc, argv);

	if (!rc)
		rc = report_no_operand("export", argc, argv);
	if (!rc && !x->format)
		return cmd_usage("export", "name a format: -f " FORMATS);
	if (!rc && x->flat && !x->format->stacks)
		return cmd_usage("export", "--flat goes with pprof, speedscope, firefox and csv");
	if (!rc && x->format->binary && !x->output && isatty(STDOUT_FILENO))
		return cmd_usage(
			"export", "%s is not for terminals: name a file with -o", x->format->name);
	return rc;
}

/* ---- the whole ---- */

/* The file is made once everything is read. */
static int export(struct exporting *x, struct err *e)
{
	struct writing w = {.x = x, .out = stdout};
	int rc = report_select(&x->report, NULL, e);

	if (!rc)
		rc = x->format->load(x, e);
	if (!rc)
		rc = report_output(&x->report, x->output, &w.out, e);
	if (rc)
		return rc;
	x->format->print(&w);
	rc = x->output ? cmd_output_close(x->output, w.out, e) : 0;
	if (rc)
		return rc;
	fflush(stdout);
	x->format->note(&w);
	return 0;
}

int cmd_export(int argc, char **argv)
{
	struct exporting x = {0};
	struct err e = {0};
	int code = parse(&x, argc, argv);

	if (code < 0)
		code = cmd_help_text("export");
	else if (!code && export(&x, &e))
		code = cmd_fail(&e);
	vec_each (one, &x.estimates)
		frequencies_destroy(one->frequencies);
	vec_deinit(&x.estimates);
	exact_counts_destroy(x.exact);
	edge_tally_destroy(x.edges);
	context_tree_destroy(x.contexts);
	stacks_destroy(x.stacks);
	report_deinit(&x.report);
	return code;
}
