#include "cmd/cfg_dot.h"

#include "analyze/evidence.h"
#include "analyze/frequency.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "cmd/cmd.h"
#include "cmd/shorten.h"
#include "flow/loops.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Unseen edges that are less than this part of the most frequent block would only hide the rest. */
#define RARE 0.001

/* Lines of a block that is not shown in full, and the columns of one. */
enum { HEAD = 6, TAIL = 4, COLUMNS = 60, MANY_EDGES = 400 };

struct dot {
	const struct why_view *v;
	const struct why *w;
	const struct flow *f;
	const struct frequency *q;
	FILE *out;
	bool full;
	bool *shown;     /* by node */
	double *samples; /* by block */
	double total, hottest, most;
	uint32_t hidden;
	struct loops loops;
};

/* ---- text in quotes ---- */

/* Graphviz reads backslashes in labels; "\l" ends a line and sets it to the left. */
static void put_text(FILE *out, const char *s)
{
	while (*s) {
		size_t n;
		uint32_t c = utf8_decode(s, &n);

		if (c == '"' || c == '\\')
			fprintf(out, "\\%c", (char)c);
		else if (c == '\t')
			fputc(' ', out);
		else if (c < 0x20 || (c >= 0x7f && c < 0xa0) || c == UTF8_BAD)
			fputc('?', out);
		else
			fwrite(s, 1, n, out);
		s += n;
	}
}

static void put_insn(const struct dot *d, uint32_t insn, size_t columns)
{
	uint64_t address = d->f->insns[insn].address;
	struct listing_line line = {.text = "?"};
	_cleanup_free_ char *text = NULL;
	char samples[24] = "";

	if (d->v->line(d->v->arg, address, d->v->syntax, &line))
		line = (struct listing_line){.text = "?"};
	text = shorten_name(line.text, columns);
	if (d->w->insns[insn].samples >= 0.5)
		snprintf(samples, sizeof samples, "%.0f", d->w->insns[insn].samples);
	fprintf(d->out, "%7s  %" PRIx64 "  ", samples, address);
	put_text(d->out, text);
	fputs("\\l", d->out);
}

static void put_insns(const struct dot *d, const struct flow_block *b)
{
	bool all = d->full || b->count <= HEAD + TAIL + 1;

	for (uint32_t i = 0; i < b->count; i++) {
		if (!all && i == HEAD) {
			fprintf(d->out, "         … %u more …\\l", b->count - HEAD - TAIL);
			i = b->count - TAIL;
		}
		put_insn(d, b->first + i, d->full ? 0 : COLUMNS);
	}
}

/* ---- blocks ---- */

/* White where no time went, through yellow to red in the hottest block. */
static void put_colour(const struct dot *d, uint32_t block)
{
	double heat = d->hottest > 0 ? sqrt(d->samples[block] / d->hottest) : 0;
	int green = (int)lround(255 - 150 * heat * heat), blue = (int)lround(255 - 175 * heat);

	fprintf(d->out, "fillcolor=\"#ff%02x%02x\"", (unsigned)green, (unsigned)blue);
}

static const char *bound_of(const struct dot *d, const char *sign)
{
	if (d->w->likeliest)
		return "~";
	return d->q->scale == FREQUENCY_RELATIVE ? sign : "";
}

static void put_block_head(const struct dot *d, uint32_t block)
{
	const struct flow_block *b = &d->f->blocks[block];
	const struct estimate *est = &d->q->block[block];
	const struct why_cycles *c = &d->w->blocks[block];
	double n = b->count ? b->count : 1;
	char count[16];

	fprintf(d->out, "%" PRIx64 "..%" PRIx64 "  %.2f%% (%.0f samples)\\l", b->start,
		b->start + b->size - 1, d->total > 0 ? 100 * d->samples[block] / d->total : 0,
		d->samples[block]);
	fprintf(d->out, "%s%s times (%s)", bound_of(d, "<"),
		why_count(est->count * d->w->assumed, count),
		frequency_confidence_name(est->confidence));
	if (d->samples[block] >= 0.5 && est->count > 0)
		fprintf(d->out, ", CPI %s%.2f", bound_of(d, ">"),
			why_block_cycles(d->w, block) / n);
	fprintf(d->out, ", best %.2f\\l\\l", c->best / n);
}

static void put_block(const struct dot *d, uint32_t block)
{
	const struct flow_block *b = &d->f->blocks[block];
	uint32_t loop = d->loops.of[block];

	fprintf(d->out, "  b%u [id=\"block-0x%" PRIx64 "\", label=\"", block, b->start);
	put_block_head(d, block);
	put_insns(d, b);
	fputs("\", ", d->out);
	put_colour(d, block);
	if (loop != GRAPH_NONE && d->loops.loop[loop].header == block)
		fputs(", penwidth=2.5", d->out);
	if (d->samples[block] < 0.5 && d->q->block[block].count <= 0)
		fputs(", color=gray, fontcolor=gray40", d->out);
	fputs("];\n", d->out);
}

/* ---- edges ---- */

static void put_node(const struct dot *d, uint32_t node)
{
	if (node == d->f->entry_node)
		fputs("entry", d->out);
	else if (node == d->f->exit_node)
		fputs("exit", d->out);
	else
		fprintf(d->out, "b%u", node);
}

static const char *style_of(enum frequency_confidence c)
{
	return c >= CONFIDENCE_HIGH ? "solid" : c == CONFIDENCE_MEDIUM ? "dashed" : "dotted";
}

static const char *colour_of(const struct dot *d, uint32_t edge)
{
	if (d->f->edge_kind[edge] == FLOW_EDGE_UNSEEN)
		return "gray60";
	if (d->loops.edge[edge] & LOOP_BACK)
		return "blue3";
	return "black";
}

/* What it is, where the count does not say enough. */
static const char *kind_of(const struct dot *d, uint32_t edge)
{
	switch (d->f->edge_kind[edge]) {
	case FLOW_EDGE_JUMP:
		return d->f->blocks[d->f->graph.edge[edge].from].end == FLOW_BRANCHES ? "taken "
										      : "";
	case FLOW_EDGE_TAIL:
		return "tail call ";
	case FLOW_EDGE_STOP:
		return "stops ";
	case FLOW_EDGE_UNSEEN:
		return "unseen? ";
	default:
		return "";
	}
}

/* " 2.05G 91%": how often, and where there is a choice in what part of the cases. */
static void put_edge_label(const struct dot *d, uint32_t edge)
{
	uint32_t from = d->f->graph.edge[edge].from;
	double count = d->q->edge[edge].count;
	char text[16];

	fprintf(d->out, " %s%s", kind_of(d, edge), why_count(count * d->w->assumed, text));
	if (from < d->f->nblocks && d->f->blocks[from].end == FLOW_BRANCHES &&
		d->q->block[from].count > 0)
		fprintf(d->out, " %.3g%%", 100 * fmin(1, count / d->q->block[from].count));
}

static void put_edge(const struct dot *d, uint32_t edge)
{
	const struct graph_edge *ends = &d->f->graph.edge[edge];
	const struct estimate *est = &d->q->edge[edge];
	double share = d->most > 0 ? est->count / d->most : 0;

	fputs("  ", d->out);
	put_node(d, ends->from);
	fputs(" -> ", d->out);
	put_node(d, ends->to);
	fputs(" [", d->out);
	if (ends->from < d->f->nblocks && ends->to < d->f->nblocks)
		fprintf(d->out, "id=\"edge-0x%" PRIx64 "-0x%" PRIx64 "\", ",
			d->f->blocks[ends->from].start, d->f->blocks[ends->to].start);
	fputs("label=\"", d->out);
	put_edge_label(d, edge);
	fprintf(d->out, "\", penwidth=%.2f, style=%s, color=%s", 0.6 + 5.4 * sqrt(share),
		style_of(est->confidence), colour_of(d, edge));
	if (d->f->edge_kind[edge] == FLOW_EDGE_UNSEEN)
		fputs(", arrowhead=odot", d->out);
	fputs("];\n", d->out);
}

static void put_seen(const struct dot *d)
{
	struct why_seen *seen;
	size_t n = why_seen_edges(d->w, &seen);
	char count[16];

	for (size_t i = 0; i < n; i++)
		if (d->shown[seen[i].from] && d->shown[seen[i].to])
			fprintf(d->out,
				"  b%u -> b%u [label=\" seen %s\", penwidth=%.2f, style=dotted];\n",
				seen[i].from, seen[i].to,
				why_count(seen[i].count * d->w->assumed, count),
				0.6 + 5.4 * sqrt(d->most > 0 ? seen[i].count / d->most : 0));
	free(seen);
}

static bool is_edge_shown(const struct dot *d, uint32_t edge)
{
	const struct graph_edge *ends = &d->f->graph.edge[edge];

	if (!d->shown[ends->from] || !d->shown[ends->to])
		return false;
	return d->v->everything || d->f->edge_kind[edge] != FLOW_EDGE_UNSEEN ||
	       d->q->edge[edge].count > RARE * d->most;
}

/* ---- the whole ---- */

static void look_at_all(struct dot *d)
{
	_cleanup_free_ bool *cold = why_cold_blocks(d->w);

	for (uint32_t b = 0; b < d->f->nblocks; b++) {
		bool padding = d->f->blocks[b].marks & FLOW_PADDING;

		d->samples[b] = why_block_samples(d->w, b);
		d->total += d->samples[b];
		if (d->samples[b] > d->hottest)
			d->hottest = d->samples[b];
		if (d->q->block[b].count > d->most)
			d->most = d->q->block[b].count;
		d->shown[b] = !cold[b] || (d->v->everything && !padding);
		d->hidden += !d->shown[b] && !padding;
	}
	d->shown[d->f->entry_node] = d->shown[d->f->exit_node] = true;
}

static void put_title(const struct dot *d)
{
	const struct why_view *v = d->v;

	put_text(d->out, v->procedure);
	fputs("\\n", d->out);
	put_text(d->out, v->image);
	fprintf(d->out, " at 0x%" PRIx64 "\\n%s = %" PRIu64 " (%.2f%% of all), counts %s", v->start,
		v->event, d->w->evidence->total, 100 * share_of(d->w->evidence->total, v->all),
		d->w->likeliest                     ? "about right (~): their scale is not known"
		: d->q->scale == FREQUENCY_RELATIVE ? "at most (<): their scale is not known"
						    : frequency_scale_name(d->q->scale));
	if (d->hidden)
		fprintf(d->out, "\\n%u block%s that seldom or never ran left out (--all)",
			d->hidden, d->hidden == 1 ? "" : "s");
	fputs("\\nedges: solid high confidence, dashed medium, dotted low; blue back to the start "
	      "of a loop\\n ",
		d->out);
}

static void put_graph(const struct dot *d)
{
	uint32_t edges = 0;

	for (uint32_t e = 0; e < d->f->graph.edges; e++)
		edges += is_edge_shown(d, e);
	fputs("digraph procedure {\n  label=\"", d->out);
	put_title(d);
	fputs("\";\n  labelloc=t; fontname=\"monospace\"; fontsize=12;\n", d->out);
	/* Splines and crossing-free orders take minutes where there are very many edges. */
	if (edges > MANY_EDGES)
		fputs("  splines=polyline; nslimit=1; nslimit1=1; mclimit=0.2;\n", d->out);
	fputs("  node [shape=box, style=filled, fontname=\"monospace\", fontsize=10, "
	      "margin=\"0.08,0.05\"];\n"
	      "  edge [fontname=\"monospace\", fontsize=9];\n"
	      "  entry [shape=ellipse, fillcolor=white];\n"
	      "  exit [shape=ellipse, fillcolor=white];\n",
		d->out);
	for (uint32_t b = 0; b < d->f->nblocks; b++)
		if (d->shown[b])
			put_block(d, b);
	for (uint32_t e = 0; e < d->f->graph.edges; e++)
		if (is_edge_shown(d, e))
			put_edge(d, e);
	put_seen(d);
	fputs("}\n", d->out);
}

void cfg_dot(const struct why_view *v, bool full, FILE *out)
{
	const struct flow *f = v->why->evidence->flow;
	struct dot d = {.v = v,
		.w = v->why,
		.f = f,
		.q = v->why->frequency,
		.out = out,
		.full = full,
		.shown = xcalloc(f->graph.nodes, sizeof *d.shown),
		.samples = xcalloc(f->nblocks + 1, sizeof *d.samples)};

	loops_init(&d.loops, &f->graph, f->entry_node);
	look_at_all(&d);
	put_graph(&d);
	loops_deinit(&d.loops);
	free(d.shown);
	free(d.samples);
}
