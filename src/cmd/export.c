/*
 * culprit export: what a database holds, for other programs.
 */
#include "analyze/context_tree.h"
#include "analyze/edge_tally.h"
#include "base/err.h"
#include "cmd/cmd.h"
#include "export/bolt.h"
#include "export/code_counts.h"
#include "export/csv.h"
#include "export/firefox.h"
#include "export/folded.h"
#include "export/llvm_sample.h"
#include "export/pprof.h"
#include "export/speedscope.h"
#include "export/stacks.h"

#include <errno.h>
#include <fnmatch.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct exporting;
struct writing;

struct format {
	const char *name;
	int (*load)(struct exporting *x, struct err *e);
	void (*print)(struct writing *w);
	void (*note)(const struct writing *w); /* what is left out, on standard error */
	bool stacks;                           /* --flat goes with it */
	bool binary;
};

struct exporting {
	struct report report;
	const struct format *format;
	const char *output;
	struct edge_tally *edges;   /* -f edges */
	struct code_counts *counts; /* -f counts and what compilers read */
	char *text;                 /* -f llvm-sample, and of how many functions */
	size_t text_size, functions;
	struct context_tree *contexts; /* -f folded */
	struct stacks *stacks;         /* what viewers of other profilers read */
	bool flat;                     /* --flat */
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

static void print_procedure(
	struct writing *w, const struct code_image *im, const struct code_procedure *p)
{
	print_image(w);
	fprintf(w->out, "procedure 0x%" PRIx64 " %s\n", p->procedure->start,
		frequency_scale_name(p->scale));
	for (size_t i = 0; i < p->nblocks; i++) {
		const struct code_block *b = &im->blocks.p[p->block + i];

		fprintf(w->out, "block 0x%" PRIx64 " %" PRIu32 " %.0f %s\n", b->start, b->size,
			b->count, frequency_confidence_name(b->confidence));
	}
	for (size_t i = 0; i < p->nedges; i++) {
		const struct code_edge *edge = &im->edges.p[p->edge + i];

		fprintf(w->out, "edge 0x%" PRIx64 " 0x%" PRIx64 " %.0f %s\n", edge->from, edge->to,
			edge->count, frequency_confidence_name(edge->confidence));
	}
	w->lines += p->nblocks + p->nedges;
}

static void print_counts(struct writing *w)
{
	const struct code_image *images;
	size_t n = code_counts_images(w->x->counts, &images);

	for (size_t i = 0; i < n; i++) {
		w->image = images[i].image;
		vec_each (p, &images[i].procedures)
			if (is_wanted(w, p->procedure))
				print_procedure(w, &images[i], p);
	}
}

static int load_counts(struct exporting *x, struct err *e)
{
	return code_counts_create(x->report.sel, &x->counts, e);
}

static void note_counts(const struct writing *w)
{
	uint64_t left_out = code_counts_left_out(w->x->counts);

	if (left_out && !w->x->report.procedure)
		cmd_note("%" PRIu64 " samples are in code that neither the database nor a file "
			 "has, and are left out",
			left_out);
	else if (!w->lines)
		cmd_note("no samples and no exact counts in what was selected");
}

/* ---- for BOLT and compilers ---- */

/* The one image that has counts, of those selected. */
static const struct code_image *only_image(const struct exporting *x, size_t *found)
{
	const struct code_image *images, *one = NULL;
	size_t n = code_counts_images(x->counts, &images);

	*found = 0;
	for (size_t i = 0; i < n; i++)
		if (images[i].procedures.n) {
			one = &images[i];
			++*found;
		}
	return one;
}

static int load_one(struct exporting *x, struct err *e)
{
	int rc = load_counts(x, e);
	const struct code_image *one;
	size_t found;

	if (rc)
		return rc;
	one = only_image(x, &found);
	if (!one)
		return err_set(e, -ENOENT, "no samples and no exact counts in what was selected");
	if (found > 1)
		return err_set(e, -EINVAL,
			"%zu images have counts, and %s is of one program: name it with --image "
			"(%s, ...)",
			found, x->format->name, one->image->path);
	return 0;
}

static void print_bolt(struct writing *w)
{
	size_t found;

	w->lines = bolt_write(w->x->report.sel, only_image(w->x, &found), w->out);
}

/* Lines are read here, as there may be none; the text is kept until the file is open. */
static int load_llvm(struct exporting *x, struct err *e)
{
	size_t found;
	FILE *out;
	int rc = load_one(x, e);

	if (rc)
		return rc;
	out = open_memstream(&x->text, &x->text_size);
	if (!out)
		return err_errno(e, -errno, "no memory");
	rc = llvm_sample_write(x->report.sel, only_image(x, &found), out, &x->functions, e);
	fclose(out);
	return rc;
}

static void print_llvm(struct writing *w)
{
	fwrite(w->x->text, 1, w->x->text_size, w->out);
	w->lines = w->x->functions;
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

static const struct format formats[] = {
	{"counts", load_counts, print_counts, note_counts, false, false},
	{"bolt", load_one, print_bolt, note_counts, false, false},
	{"llvm-sample", load_llvm, print_llvm, note_counts, false, false},
	{"edges", load_edges, print_edges, note_edges, false, false},
	{"folded", load_folded, print_folded, note_folded, false, false},
	{"pprof", load_stacks, print_pprof, note_stacks, true, true},
	{"speedscope", load_stacks, print_speedscope, note_stacks, true, false},
	{"firefox", load_stacks, print_firefox, note_stacks, true, false},
	{"csv", load_stacks, print_csv, note_stacks, true, false},
};

#define FORMATS "counts, bolt, llvm-sample, edges, folded, pprof, speedscope, firefox or csv"

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
	code_counts_destroy(x.counts);
	free(x.text);
	edge_tally_destroy(x.edges);
	context_tree_destroy(x.contexts);
	stacks_destroy(x.stacks);
	report_deinit(&x.report);
	return code;
}
