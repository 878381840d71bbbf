/*
 * culprit export: what a database holds, for other programs.
 */
#include "analyze/edge_tally.h"
#include "base/err.h"
#include "cmd/cmd.h"

#include <errno.h>
#include <fnmatch.h>
#include <getopt.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

struct exporting {
	struct report report;
	const char *format, *output;
	struct edge_tally *edges;
};

/* ---- counts ---- */

/* The text while it is written: a heading comes with the first line under it. */
struct counts {
	const struct exporting *x;
	FILE *out;
	const struct image_edges *image, *printed;
	size_t lines;
};

/*
 * A count k of n samples has the binomial standard error sqrt(k (1 - k/n)), at most sqrt(k): 5% of
 * the count at 400, 10% at 100.
 */
static const char *confidence(uint64_t count)
{
	return count >= 400 ? "high" : count >= 100 ? "medium" : "low";
}

static bool is_wanted(const struct counts *c, const struct procedure *p)
{
	const char *pattern = c->x->report.procedure, *label = p->name;
	char text[512];

	if (!label)
		label = procedure_label(p, c->image->image->path, text, sizeof text);
	return !pattern || !strcmp(pattern, label) || !fnmatch(pattern, label, 0);
}

static void print_image(struct counts *c)
{
	const struct selected_image *im = c->image->image;
	char id[IMAGE_ID_TEXT];

	if (c->printed == c->image)
		return;
	c->printed = c->image;
	fprintf(c->out, "image %s ", im->identity.size ? image_id_text(&im->identity, id) : "-");
	cmd_put(c->out, im->path);
	fputc('\n', c->out);
}

/* The edges of the procedure that the first of them is in; returns how many. */
static size_t print_procedure(struct counts *c, const struct edge_sum *edges, size_t n)
{
	const struct procedure *p = &c->image->image->procedures.p[edges->procedure];
	size_t end = 1;

	while (end < n && edges[end].procedure == edges->procedure)
		end++;
	if (!is_wanted(c, p))
		return end;
	print_image(c);
	fprintf(c->out, "procedure 0x%" PRIx64 " relative\n", p->start);
	for (size_t i = 0; i < end; i++)
		fprintf(c->out, "edge 0x%" PRIx64 " 0x%" PRIx64 " %" PRIu64 " %s\n", edges[i].from,
			edges[i].to, edges[i].count, confidence(edges[i].count));
	c->lines += end;
	return end;
}

static size_t print_counts(const struct exporting *x, FILE *out)
{
	struct counts c = {.x = x, .out = out};
	const struct image_edges *images;
	size_t n = edge_tally_images(x->edges, &images);

	for (size_t i = 0; i < n; i++) {
		c.image = &images[i];
		for (size_t at = 0; at < c.image->n;)
			at += print_procedure(&c, c.image->edges + at, c.image->n - at);
	}
	return c.lines;
}

/* ---- where it goes ---- */

static bool same_file(const char *a, const char *b)
{
	struct stat x, y;

	return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static int open_output(const struct exporting *x, FILE **out, struct err *e)
{
	if (!x->output)
		return 0;
	if (same_file(x->output, x->report.input))
		return err_set(e, -EINVAL, "%s: is the database itself: name another file with -o",
			x->output);
	*out = fopen(x->output, "we");
	if (!*out)
		return err_set(e, -errno, "%s: cannot be made: %s: name another place with -o",
			x->output, strerror(errno));
	return 0;
}

/* A full disk must not look like success; main does the same for standard output. */
static int close_output(const struct exporting *x, FILE *out, struct err *e)
{
	bool failed;

	if (!x->output)
		return 0;
	failed = ferror(out);
	errno = 0;
	if (fclose(out) || failed)
		return err_set(e, errno ? -errno : -EIO,
			"%s: cannot be written: %s: name another place with -o", x->output,
			strerror(errno ? errno : EIO));
	return 0;
}

/* ---- options ---- */

static int export_option(void *arg, int c, const char *value)
{
	struct exporting *x = arg;

	switch (c) {
	case 'f':
		if (strcmp(value, "counts"))
			return cmd_usage("export", "-f takes counts, not '%s'", value);
		x->format = value;
		return 0;
	case 'o':
		x->output = value;
		return 0;
	}
	return 1;
}

static int parse(struct exporting *x, int argc, char **argv)
{
	static const struct option options[] = {REPORT_FILTERS,
		{"format", required_argument, NULL, 'f'}, {"output", required_argument, NULL, 'o'},
		{0}};
	static const struct report_verb verb = {
		"export", ":f:o:" REPORT_SHORT, options, export_option};
	int rc = report_parse(&x->report, &verb, x, argc, argv);

	if (!rc)
		rc = report_no_operand("export", argc, argv);
	if (!rc && !x->format)
		return cmd_usage("export", "name a format: -f counts");
	return rc;
}

/* ---- the whole ---- */

static int load(struct exporting *x, struct err *e)
{
	const struct image_edges *images;
	int rc = report_select(&x->report, NULL, e), pid = x->report.filter.pid;

	if (!rc)
		rc = edge_tally_create(x->report.sel, &x->edges, e);
	if (!rc && pid && !edge_tally_images(x->edges, &images) && !edge_tally_nowhere(x->edges))
		rc = err_set(e, -ENOENT,
			"process %d has no edge samples of its own in %s: collect with 'culprit "
			"record --per-process', or use --comm",
			pid, x->report.input);
	return rc;
}

static int write_counts(struct exporting *x, struct err *e)
{
	FILE *out = stdout;
	uint64_t nowhere;
	size_t lines;
	int rc = load(x, e);

	if (!rc)
		rc = open_output(x, &out, e);
	if (rc)
		return rc;
	lines = print_counts(x, out);
	rc = close_output(x, out, e);
	if (rc)
		return rc;
	fflush(stdout);
	nowhere = edge_tally_nowhere(x->edges);
	if (nowhere && !x->report.procedure)
		cmd_note("%" PRIu64 " edge samples are in code of no procedure that the database "
			 "knows, and are left out",
			nowhere);
	else if (!lines)
		cmd_note("no edge samples in what was selected");
	return 0;
}

int cmd_export(int argc, char **argv)
{
	struct exporting x = {0};
	struct err e = {0};
	int code = parse(&x, argc, argv);

	if (code < 0)
		code = cmd_help_text("export");
	else if (!code && write_counts(&x, &e))
		code = cmd_fail(&e);
	edge_tally_destroy(x.edges);
	report_deinit(&x.report);
	return code;
}
