/*
 * The paper's Figure 2 for terminals: blocks with their counts and CPI, instructions with their
 * samples and cycles, and above the stalled ones a line for each reason.
 */
#include "analyze/evidence.h"
#include "analyze/frequency.h"
#include "base/mem.h"
#include "base/term.h"
#include "cmd/cmd.h"
#include "cmd/source.h"
#include "cmd/why_view.h"
#include "flow/loops.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Of the procedure's time: what is worth a line of its own, and what is hot. */
#define WORTH_A_LINE 0.002
#define HOT          0.01
enum { SHARE_WIDTH = 7, CYCLES_WIDTH = 13, GAP = 2, ONE_LINE = 150 };

struct text {
	const struct why_view *v;
	const struct why *w;
	const struct flow *f;
	FILE *out;
	int samples_width, address_width;
	double samples, hottest; /* of instructions, after the shift */
	struct source_above source;
	uint32_t hidden, hidden_insns; /* blocks left out since the last one printed */
	struct loops loops;
};

/* Before a figure that the scale leaves open: the one given, or that it is about right. */
static const char *sign(const struct text *t, const char *bound)
{
	if (t->w->likeliest)
		return "~";
	return t->w->frequency->scale == FREQUENCY_RELATIVE ? bound : "";
}

/* ---- the heading ---- */

static void print_scale(const struct text *t)
{
	const struct frequency *f = t->w->frequency;

	switch (f->scale) {
	case FREQUENCY_EXACT:
		fputs("*** counts are those of exact runs of the same command\n", t->out);
		break;
	case FREQUENCY_KNOWN:
		fprintf(t->out, "*** counts are known within a factor of %.2f to %.2f\n",
			f->scale_low, f->scale_high);
		break;
	case FREQUENCY_RELATIVE:
		if (t->w->likeliest) {
			fprintf(t->out,
				"*** the scale of the counts is not known: they and cycles (~) are "
				"the likeliest, by a factor of\n*** %.1f more or less; what is "
				"estimated is how often blocks ran relative to each other\n",
				exp(FREQUENCY_NINETY * f->told));
			break;
		}
		fputs("*** the scale of the counts is not known: they (<) are the most, cycles (>) "
		      "the least that the\n*** time allows; what is estimated is how often blocks "
		      "ran relative to each other\n",
			t->out);
		break;
	}
	if (f->scale != FREQUENCY_EXACT && t->w->evidence->counts)
		fputs("*** (taken from exact runs of this build)\n", t->out);
}

static void print_cpi(const struct text *t)
{
	const struct why_cycles *c = &t->w->cpi;

	fprintf(t->out, "*** best case  %6.2f CPI on %s\n", c->best,
		model_title(t->w->machine.model));
	if (isnan(c->actual))
		fprintf(t->out, "*** actual     %s%5.2f CPI\n", sign(t, ">"), why_cpi(t->w));
	else
		fprintf(t->out, "*** actual     %6.2f CPI (%.2f to %.2f)\n", c->actual, c->low,
			c->high);
}

static void print_heading(const struct text *t)
{
	const struct evidence *ev = t->w->evidence;
	const struct why_view *v = t->v;

	fprintf(t->out, "%s = %" PRIu64 " (%.2f%% of all) in ", v->event, ev->total,
		100 * share_of(ev->total, v->all));
	cmd_put(t->out, v->procedure);
	fputc('\n', t->out);
	cmd_put(t->out, v->image);
	fprintf(t->out, " at 0x%" PRIx64 "\n\n", v->start);
	print_cpi(t);
	print_scale(t);
	fputs("***\n", t->out);
	if (t->w->frequency->scale == FREQUENCY_RELATIVE)
		fputs("*** at that scale (if it ran less often, dynamic stalls are more and all "
		      "else is less):\n",
			t->out);
	why_summary_print(&t->w->summary, "*** ", t->out);
	if ((double)ev->total > t->samples + 0.5)
		fprintf(t->out, "*** (of the %.0f samples that are on instructions)\n", t->samples);
}

/* Where to look in a long listing. */
static void print_hottest(const struct text *t)
{
	enum { MOST = 8, LONG = 40 };
	uint32_t best[MOST], n = 0, at;

	for (uint32_t i = 0; i < t->f->ninsns; i++) {
		double samples = t->w->insns[i].samples;

		if (samples < HOT * t->samples || samples < 0.5)
			continue;
		for (at = n; at && t->w->insns[best[at - 1]].samples < samples; at--)
			if (at < MOST)
				best[at] = best[at - 1];
		if (at < MOST)
			best[at] = i;
		n += n < MOST;
	}
	if (t->f->ninsns < LONG || !n)
		return;
	fputs("***\n*** most time at", t->out);
	for (uint32_t i = 0; i < n; i++)
		fprintf(t->out, "%s %" PRIx64 " (%.1f%%)", i ? "," : "",
			t->f->insns[best[i]].address,
			100 * t->w->insns[best[i]].samples / t->samples);
	fputc('\n', t->out);
}

/* ---- blocks ---- */

static double block_count(const struct text *t, uint32_t block)
{
	return t->w->frequency->block[block].count * t->w->assumed;
}

static void print_block_count(const struct text *t, uint32_t block)
{
	const struct estimate *est = &t->w->frequency->block[block];
	const char *confidence = frequency_confidence_name(est->confidence);
	char count[16], low[16], high[16];

	why_count(block_count(t, block), count);
	why_count(est->low * t->w->assumed, low);
	why_count(est->high * t->w->assumed, high);
	if (est->confidence == CONFIDENCE_EXACT)
		fprintf(t->out, "%s times", count);
	else if (est->count <= 0 || isinf(est->high))
		fprintf(t->out, "count not known (%s)", confidence);
	else if (est->high > 1000 * est->low)
		fprintf(t->out, "%s%s times (%s)", sign(t, "<"), count, confidence);
	else
		fprintf(t->out, "%s%s times (%s: %s to %s)", sign(t, "<"), count, confidence, low,
			high);
}

static void print_block_cpi(const struct text *t, uint32_t block)
{
	const struct why_cycles *c = &t->w->blocks[block];
	double n = t->f->blocks[block].count, actual = why_block_cycles(t->w, block);
	char cy[16];

	fprintf(t->out, "best case %s = %.2f CPI", why_cy(c->best, cy), c->best / n);
	if (why_block_samples(t->w, block) < 0.5)
		fputs(", no samples", t->out);
	else if (isnan(actual))
		fputs(", actual not known", t->out);
	else if (isnan(c->actual))
		fprintf(t->out, ", actual %s%s = %.2f CPI", sign(t, ">"), why_cy(actual, cy),
			actual / n);
	else
		fprintf(t->out, ", actual %s = %.2f CPI (%.2f to %.2f)", why_cy(actual, cy),
			actual / n, c->low / n, c->high / n);
}

static void print_block(const struct text *t, uint32_t block)
{
	const struct flow_block *b = &t->f->blocks[block];
	double share = t->samples > 0 ? why_block_samples(t->w, block) / t->samples : 0;
	bool one_line = t->v->width >= ONE_LINE;

	fprintf(t->out, "%s\n*** %" PRIx64 ": %u instruction%s, ", term_bold(), b->start, b->count,
		b->count == 1 ? "" : "s");
	print_block_count(t, block);
	if (t->loops.of[block] != GRAPH_NONE)
		fprintf(t->out, ", in loop %" PRIx64,
			t->f->blocks[t->loops.loop[t->loops.of[block]].header].start);
	fprintf(t->out, ", %.2f%% of the time%s", 100 * share, one_line ? "; " : "\n*** ");
	print_block_cpi(t, block);
	fprintf(t->out, "%s\n", term_reset());
}

static void print_hidden(struct text *t)
{
	if (t->hidden)
		fprintf(t->out,
			"%s\n*** %u block%s, %u instruction%s: no samples, seldom or never "
			"run (--all)%s\n",
			term_dim(), t->hidden, t->hidden == 1 ? "" : "s", t->hidden_insns,
			t->hidden_insns == 1 ? "" : "s", term_reset());
	t->hidden = t->hidden_insns = 0;
}

/* ---- instructions ---- */

/* The beginning of a bubble: cycles and letter; its words follow. */
static void start_bubble(const struct text *t, double low, double high, char letter)
{
	char cycles[40];

	fprintf(t->out, "%*s%*s  %*c  ", t->samples_width + SHARE_WIDTH + 2 * GAP, "", CYCLES_WIDTH,
		why_range(low, high, cycles), t->address_width, letter);
}

static bool is_worth_a_line(const struct text *t, const struct why_insn *i, double cycles)
{
	if (t->v->everything)
		return cycles > 0;
	return cycles * i->count >= WORTH_A_LINE * t->w->cycles && cycles >= 0.005;
}

static void print_bubbles(const struct text *t, uint32_t insn)
{
	const struct why_insn *i = &t->w->insns[insn];
	struct why_place place;

	why_place_init(&place, t->w, insn);
	if (is_worth_a_line(t, i, place.stopped)) {
		start_bubble(t, place.stopped, place.stopped, why_cause_letter(i->cause));
		why_cause_words(&place, t->out);
		fputc('\n', t->out);
	}
	for (uint32_t k = 0; k < place.ncharges; k++) {
		const struct why_charge *c = &place.charges[k];

		if (!is_worth_a_line(t, i, c->max))
			continue;
		start_bubble(t, c->min, c->max, culprit_letter(c->culprit));
		why_charge_words(&place, c, t->out);
		fputc('\n', t->out);
	}
	if (is_worth_a_line(t, i, i->unexplained)) {
		start_bubble(t, i->unexplained, i->unexplained, '?');
		fputs("unexplained\n", t->out);
	}
}

/* How often the branch at the end of a block is taken, -1 when that is not known. */
static double taken_share(const struct text *t, uint32_t block)
{
	const struct frequency *f = t->w->frequency;
	double taken = 0, sum = 0;

	if (t->f->blocks[block].end != FLOW_BRANCHES)
		return -1;
	graph_each_out (e, &t->f->graph, block) {
		sum += f->edge[*e].count;
		if (t->f->edge_kind[*e] != FLOW_EDGE_FALL)
			taken += f->edge[*e].count;
	}
	return sum > 0 ? taken / sum : -1;
}

static void print_counts(const struct text *t, const struct why_insn *i)
{
	char samples[24] = "", share[16] = "", cy[16], cycles[24] = "";

	if (i->samples >= 0.5) {
		snprintf(samples, sizeof samples, "%.0f", i->samples);
		snprintf(share, sizeof share, "%.2f%%", 100 * i->samples / t->samples);
		if (i->count > 0)
			snprintf(cycles, sizeof cycles, "%s%s", isnan(i->cpi) ? sign(t, ">") : "",
				why_cy(why_insn_cycles(t->w, i), cy));
	}
	fprintf(t->out, "%*s  %*s  %*s  ", t->samples_width, samples, SHARE_WIDTH, share,
		CYCLES_WIDTH, cycles);
}

/* Red for what is at least half as hot as the hottest, bold for a hundredth of the procedure. */
static const char *heat(const struct text *t, const struct why_insn *i)
{
	if (i->samples >= 0.5 && 2 * i->samples >= t->hottest)
		return term_red();
	return i->samples >= HOT * t->samples && i->samples >= 0.5 ? term_bold() : "";
}

static void print_insn(struct text *t, uint32_t block, uint32_t insn)
{
	const struct flow_block *b = &t->f->blocks[block];
	const struct why_insn *i = &t->w->insns[insn];
	struct listing_line line = {.text = "?"};
	const char *colour = heat(t, i);
	double taken = insn == b->first + b->count - 1 ? taken_share(t, block) : -1;

	if (t->v->line(t->v->arg, t->f->insns[insn].address, t->v->syntax, &line))
		line = (struct listing_line){.text = "?"};
	if (!t->v->no_source)
		source_above_print(&t->source, &line,
			t->samples_width + SHARE_WIDTH + CYCLES_WIDTH + 3 * GAP, t->out);
	print_bubbles(t, insn);
	fputs(colour, t->out);
	print_counts(t, i);
	fprintf(t->out, "%*" PRIx64 "  ", t->address_width, t->f->insns[insn].address);
	cmd_put(t->out, line.text);
	fputs(*colour ? term_reset() : "", t->out);
	if (taken >= 0 && block_count(t, block) > 0)
		fprintf(t->out, "  %staken %.1f%%%s", term_dim(), 100 * taken, term_reset());
	fputc('\n', t->out);
}

/* ---- the whole ---- */

static void look_at_all(struct text *t)
{
	uint64_t last = 0;
	char digits[24];

	for (uint32_t i = 0; i < t->f->ninsns; i++) {
		t->samples += t->w->insns[i].samples;
		if (t->w->insns[i].samples > t->hottest)
			t->hottest = t->w->insns[i].samples;
		if (t->f->insns[i].address > last)
			last = t->f->insns[i].address;
	}
	t->address_width = snprintf(digits, sizeof digits, "%" PRIx64, last);
	if (t->address_width < 7)
		t->address_width = 7;
	t->samples_width = snprintf(digits, sizeof digits, "%.0f", t->samples);
	if (t->samples_width < 7)
		t->samples_width = 7;
}

void why_view_print(const struct why_view *v, FILE *out)
{
	_cleanup_free_ bool *cold = why_cold_blocks(v->why);
	struct text t = {.v = v, .w = v->why, .f = v->why->evidence->flow, .out = out};

	look_at_all(&t);
	loops_init(&t.loops, &t.f->graph, t.f->entry_node);
	print_heading(&t);
	print_hottest(&t);
	fprintf(out, "\n%s%*s  %*s  %*s  %*s  instruction%s\n", term_bold(), t.samples_width,
		"samples", SHARE_WIDTH, "%", CYCLES_WIDTH, "cycles", t.address_width, "address",
		term_reset());
	for (uint32_t b = 0; b < t.f->nblocks; b++) {
		const struct flow_block *block = &t.f->blocks[b];

		if (cold[b] && !v->everything) {
			bool padding = block->marks & FLOW_PADDING;

			t.hidden += !padding;
			t.hidden_insns += padding ? 0 : block->count;
			continue;
		}
		print_hidden(&t);
		print_block(&t, b);
		for (uint32_t i = block->first; i < block->first + block->count; i++)
			print_insn(&t, b, i);
	}
	print_hidden(&t);
	loops_deinit(&t.loops);
	source_above_deinit(&t.source);
}
