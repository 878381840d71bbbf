/* Figures and sentences that the views of `why` share. */
#include "analyze/evidence.h"
#include "analyze/frequency.h"
#include "base/json.h"
#include "base/mem.h"
#include "cmd/why_view.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

const char *why_count(double count, char text[16])
{
	static const char units[] = " kMGTPE";
	size_t unit = 0;

	if (!(count >= 0) || isinf(count)) {
		strcpy(text, "-");
		return text;
	}
	for (; count >= 999.5 && unit + 2 < sizeof units; unit++)
		count /= 1000;
	if (count >= 999.5)
		snprintf(text, 16, "%.0e", count * pow(1000, (double)unit));
	else if (!unit && (count >= 99.5 || count == floor(count)))
		snprintf(text, 16, "%.0f", count);
	else
		snprintf(text, 16, "%.*f%.*s",
			count < 9.995   ? 2
			: count < 99.95 ? 1
					: 0,
			count, unit ? 1 : 0, units + unit);
	return text;
}

static int decimals(double cycles)
{
	return cycles < 9.995 ? 2 : cycles < 99.95 ? 1 : 0;
}

const char *why_cy(double cycles, char text[16])
{
	if (isnan(cycles) || isinf(cycles) || fabs(cycles) > 1e9)
		strcpy(text, "-");
	else
		snprintf(text, 16, "%.*fcy", decimals(fabs(cycles)), cycles);
	return text;
}

const char *why_range(double low, double high, char text[40])
{
	char a[16], b[16];

	why_cy(low, a);
	why_cy(high, b);
	if (!strcmp(a, b) || !strcmp(a, "-") || !strcmp(b, "-"))
		snprintf(text, 40, "%s", b);
	else
		snprintf(text, 40, "%.*s-%s", (int)(strlen(a) - 2), a, b);
	return text;
}

/*
 * Blocks without samples are cold when they run less often than once in a thousand calls; in
 * procedures of many blocks also when the most frequent one runs a hundred times as often.
 */
enum { CALLS = 1000, TIMES = 100, MANY_BLOCKS = 50 };

static double cold_count(const struct why *w)
{
	const struct flow *f = w->evidence->flow;
	double calls = 0, most = 0;

	graph_each_out (e, &f->graph, f->entry_node)
		if (f->edge_kind[*e] == FLOW_EDGE_ENTRY)
			calls += w->frequency->edge[*e].count;
	for (uint32_t b = 0; b < f->nblocks; b++)
		most = fmax(most, w->frequency->block[b].count);
	return f->nblocks > MANY_BLOCKS ? fmax(calls / CALLS, most / TIMES) : calls / CALLS;
}

bool *why_cold_blocks(const struct why *w)
{
	const struct flow *f = w->evidence->flow;
	bool *cold = xcalloc(f->nblocks + 1, sizeof *cold);
	double least = cold_count(w);

	for (uint32_t b = 0; b < f->nblocks; b++)
		cold[b] = why_block_samples(w, b) < 0.5 && w->frequency->block[b].count <= least;
	return cold;
}

double why_block_samples(const struct why *w, uint32_t block)
{
	const struct flow_block *b = &w->evidence->flow->blocks[block];
	double sum = 0;

	for (uint32_t i = b->first; i < b->first + b->count; i++)
		sum += w->insns[i].samples;
	return sum;
}

/* The ways of the jump that the first of them is of: how many, and how often all were seen. */
static size_t ways_of_one(const struct evidence_way *ways, size_t n, double *total)
{
	size_t i = 0;

	*total = 0;
	for (; i < n && ways[i].insn == ways->insn; i++)
		*total += (double)ways[i].count;
	return i;
}

size_t why_seen_edges(const struct why *w, struct why_seen **out)
{
	const struct evidence *ev = w->evidence;
	struct why_seen *list = xcalloc(ev->nways + 1, sizeof *list);
	size_t n = 0, of_one;
	double total;

	for (size_t i = 0; i < ev->nways; i += of_one) {
		const struct evidence_way *ways = ev->ways + i;
		const struct flow_insn *jump = &ev->flow->insns[ways->insn];
		uint32_t from = flow_block_at(ev->flow, jump->address);

		of_one = ways_of_one(ways, ev->nways - i, &total);
		if (jump->kind != INSN_JUMP_INDIRECT || from == GRAPH_NONE)
			continue;
		for (size_t k = 0; k < of_one; k++) {
			uint32_t to =
				ways[k].target ? GRAPH_NONE : flow_block_at(ev->flow, ways[k].to);

			if (to != GRAPH_NONE && ev->flow->blocks[to].start == ways[k].to)
				list[n++] = (struct why_seen){from, to,
					w->frequency->block[from].count * (double)ways[k].count /
						total};
		}
	}
	*out = list;
	return n;
}

double why_insn_cycles(const struct why *w, const struct why_insn *i)
{
	if (!isnan(i->cpi))
		return i->cpi;
	return i->count > 0 ? i->samples * w->sample / i->count : NAN;
}

double why_block_cycles(const struct why *w, uint32_t block)
{
	double count = w->frequency->block[block].count * w->assumed;

	if (!isnan(w->blocks[block].actual))
		return w->blocks[block].actual;
	return count > 0 ? why_block_samples(w, block) * w->sample / count : NAN;
}

double why_cpi(const struct why *w)
{
	const struct flow *f = w->evidence->flow;
	double instructions = 0, samples = 0;

	if (!isnan(w->cpi.actual))
		return w->cpi.actual;
	for (uint32_t b = 0; b < f->nblocks; b++) {
		instructions += w->frequency->block[b].count * w->assumed * f->blocks[b].count;
		samples += why_block_samples(w, b);
	}
	return instructions > 0 ? samples * w->sample / instructions : NAN;
}

double why_lost(const struct why *w, const struct why_insn *i)
{
	double lost = i->samples * w->sample - i->execution * i->count;

	return lost > 0 && i->stopped + i->stall > 0 ? lost : 0;
}

/* ---- an instruction ---- */

static void copy_charge(struct why_charge *c, const struct why *w, const struct why_stall *s)
{
	*c = (struct why_charge){.culprit = s->culprit, .min = fmin(s->min, s->max), .max = s->max};
	c->nfrom = s->nfrom;
	for (uint32_t i = 0; i < s->nfrom && i < WHY_FROM; i++)
		c->from[i] = w->evidence->flow->insns[w->from[s->first_from + i]].address;
}

void why_place_init(struct why_place *p, const struct why *w, uint32_t insn)
{
	const struct flow_insn *insns = w->evidence->flow->insns;
	const struct why_insn *i = &w->insns[insn];

	p->address = insns[insn].address;
	p->insn = *i;
	p->cycles = why_insn_cycles(w, i);
	p->lost = why_lost(w, i);
	p->stopped = fmax(0, fmin(i->stopped, p->cycles - i->execution - i->stall));
	p->on = i->on != GRAPH_NONE ? insns[i->on].address : 0;
	p->units[0] = 0;
	if (i->stopped > 0 && i->cause == WHY_UNIT)
		why_units(w, i->group, p->units, sizeof p->units);
	p->ncharges = i->nstalls < CULPRITS ? i->nstalls : CULPRITS;
	for (uint32_t k = 0; k < p->ncharges; k++)
		copy_charge(&p->charges[k], w, &w->stalls[i->first_stall + k]);
}

/* How an instruction that is to blame is called. */
static const char *guilty_noun(enum culprit c)
{
	switch (c) {
	case CULPRIT_DCACHE:
	case CULPRIT_DTLB:
		return "the load";
	case CULPRIT_MISPREDICT:
		return "the branch";
	case CULPRIT_STORE_BUFFER:
	case CULPRIT_FORWARDING:
	case CULPRIT_ALIAS:
		return "the store";
	case CULPRIT_CALLEE:
		return "the call";
	default:
		return "that";
	}
}

/* What excursions saw of it. */
static void add_share_gone(const struct why_place *p, enum culprit c, FILE *out)
{
	double gone = c == CULPRIT_DCACHE   ? p->insn.gone
		      : c == CULPRIT_ICACHE ? p->insn.line_gone
					    : NAN;

	if (isfinite(gone))
		fprintf(out, " (%.1f%% were gone)", 100 * gone);
}

void why_charge_words(const struct why_place *p, const struct why_charge *c, FILE *out)
{
	enum { MOST = 4 };

	fputs(culprit_title(c->culprit), out);
	add_share_gone(p, c->culprit, out);
	if (c->nfrom == 1 && c->from[0] == p->address)
		return;
	for (uint32_t i = 0; i < c->nfrom && i < MOST; i++) {
		if (i)
			fputs(i + 1 < c->nfrom ? ", " : " or ", out);
		if (c->from[i] == p->address)
			fputs(i ? "itself" : ": itself", out);
		else
			fprintf(out, i ? "%s%" PRIx64 : ": %s at %" PRIx64,
				i ? "" : guilty_noun(c->culprit), c->from[i]);
	}
	if (c->nfrom > MOST)
		fprintf(out, " or %u others", c->nfrom - MOST);
}

void why_cause_words(const struct why_place *p, FILE *out)
{
	fputs(why_cause_title(p->insn.cause), out);
	if (*p->units)
		fprintf(out, " (%s)", p->units);
	if (p->on && p->on != p->address)
		fprintf(out, ": that at %" PRIx64, p->on);
}

/* ---- the summary ---- */

static double static_of(const struct why_summary *s)
{
	double sum = 0;

	for (int c = 0; c < WHY_CAUSES; c++)
		sum += s->cause[c];
	return sum;
}

static void print_subtotal(const char *prefix, const char *what, double share, FILE *out)
{
	fprintf(out, "%s%-32s %22.1f%%\n", prefix, what, 100 * share);
}

static void print_dynamic(const struct why_summary *s, const char *prefix, FILE *out)
{
	for (int c = 0; c < CULPRITS; c++)
		if (s->culprit[c].max >= 0.0005)
			fprintf(out, "%s%-32s %6.1f%% to %5.1f%%\n", prefix, culprit_title(c),
				100 * s->culprit[c].min, 100 * s->culprit[c].max);
	fprintf(out, "%s%-32s %6.1f%%\n", prefix, "unexplained stall", 100 * s->unexplained);
	fprintf(out, "%s%-32s %6.1f%%\n", prefix, "unexplained gain", 100 * s->unexplained_gain);
	print_subtotal(prefix, "  subtotal dynamic",
		s->dynamic + s->unexplained + s->unexplained_gain, out);
}

void why_summary_print(const struct why_summary *s, const char *prefix, FILE *out)
{
	double fixed = static_of(s);
	double stall = s->dynamic + s->unexplained + s->unexplained_gain + fixed;

	print_dynamic(s, prefix, out);
	for (int c = 0; c < WHY_CAUSES; c++)
		if (s->cause[c] >= 0.0005)
			fprintf(out, "%s%-32s %6.1f%%\n", prefix, why_cause_title(c),
				100 * s->cause[c]);
	print_subtotal(prefix, "  subtotal static", fixed, out);
	print_subtotal(prefix, "total stall", stall, out);
	print_subtotal(prefix, "execution", s->execution, out);
	print_subtotal(prefix, "sampling error", s->sampling_error, out);
	print_subtotal(prefix, "total", stall + s->execution + s->sampling_error, out);
}

void why_summary_json(const struct why_summary *s, struct json *j)
{
	json_open(j, '{');
	json_kshare(j, "execution", s->execution);
	json_key(j, "static");
	json_open(j, '[');
	for (int c = 0; c < WHY_CAUSES; c++) {
		json_open(j, '{');
		json_kstr(j, "cause", why_cause_name(c));
		json_kshare(j, "share", s->cause[c]);
		json_close(j);
	}
	json_close(j);
	json_key(j, "dynamic");
	json_open(j, '[');
	for (int c = 0; c < CULPRITS; c++) {
		json_open(j, '{');
		json_kstr(j, "culprit", culprit_name(c));
		json_kshare(j, "min", s->culprit[c].min);
		json_kshare(j, "max", s->culprit[c].max);
		json_close(j);
	}
	json_close(j);
	json_kshare(j, "dynamic_total", s->dynamic);
	json_kshare(j, "unexplained", s->unexplained);
	json_kshare(j, "unexplained_gain", s->unexplained_gain);
	json_kshare(j, "sampling_error", s->sampling_error);
	json_close(j);
}

static void charge_json(const struct why_charge *c, struct json *j)
{
	json_open(j, '{');
	json_kstr(j, "culprit", culprit_name(c->culprit));
	json_kdouble(j, "min", c->min);
	json_kdouble(j, "max", c->max);
	json_key(j, "from");
	json_open(j, '[');
	for (uint32_t i = 0; i < c->nfrom && i < WHY_FROM; i++)
		json_addr(j, c->from[i]);
	json_close(j);
	json_close(j);
}

void why_place_json(const struct why_place *p, struct json *j)
{
	json_key(j, "static");
	json_open(j, '[');
	if (p->insn.stopped > 0) {
		json_open(j, '{');
		json_kstr(j, "cause", why_cause_name(p->insn.cause));
		json_kdouble(j, "cycles", p->insn.stopped);
		if (p->on)
			json_kaddr(j, "from", p->on);
		else
			json_kstr(j, "from", NULL);
		json_close(j);
	}
	json_close(j);
	json_key(j, "stalls");
	json_open(j, '[');
	for (uint32_t k = 0; k < p->ncharges; k++)
		charge_json(&p->charges[k], j);
	json_close(j);
}
