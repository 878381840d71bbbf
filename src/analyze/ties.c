#include "analyze/ties.h"

#include "base/mem.h"
#include "base/vec.h"
#include "isa/decode.h"

#include <math.h>
#include <stdlib.h>

/* What a tie leaves open however many calls were seen: bursts begin where time is spent. */
#define TIE_DOUBT 0.08
/* Where the rest of the entries comes from, and who of several a call site calls, is seen by bursts
 * that began where time is spent. */
#define SHARE_DOUBT  0.5
#define FEWEST_CALLS 10

/* Calls of one procedure by another, as the caller has them. */
struct calls {
	uint32_t caller, callee; /* rows */
	double calls;            /* by the flow of the caller */
	double doubt;            /* variances of the call sites' calls, weighted with these */
	double seen;             /* returns */
};

/* A call site and one that it calls. */
struct site {
	uint32_t caller, block, callee;
	double seen;
};

/* A range of code. */
struct span {
	uint64_t start, size;
	uint32_t row;
};

struct ties {
	const struct frequencies_row *rows;
	size_t n;
	const uint32_t *number;
	VEC(struct span) spans;
	double *returns; /* by row: seen, to wherever */
	VEC(struct site) sites;
	VEC(struct calls) calls;
};

/* ---- who calls whom ---- */

static int by_start(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static void find_spans(struct ties *t)
{
	for (uint32_t r = 0; r < t->n; r++) {
		const struct procedure *p =
			&t->rows[r].evidence->image->procedures.p[t->rows[r].procedure];

		for (uint32_t i = 0; i < p->nranges; i++)
			*vec_add(&t->spans) =
				(struct span){p->ranges[i].start, p->ranges[i].size, r};
	}
	vec_sort(&t->spans, by_start);
}

static uint32_t row_at(const struct ties *t, uint64_t address)
{
	size_t low = 0, high = t->spans.n;
	const struct span *s;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (t->spans.p[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	s = low ? &t->spans.p[low - 1] : NULL;
	return s && address - s->start < s->size ? s->row : GRAPH_NONE;
}

static void add_return(struct ties *t, uint32_t callee, const struct evidence_way *w)
{
	uint32_t caller, block;

	t->returns[callee] += (double)w->count;
	caller = w->target ? GRAPH_NONE : row_at(t, w->to);
	if (caller == GRAPH_NONE || caller == callee || t->number[caller] == GRAPH_NONE ||
		t->number[callee] == GRAPH_NONE)
		return;
	if (evidence_insn_at(t->rows[caller].evidence->flow, w->to - 1, &block) != GRAPH_NONE)
		*vec_add(&t->sites) = (struct site){caller, block, callee, (double)w->count};
}

static void find_sites(struct ties *t)
{
	for (uint32_t r = 0; r < t->n; r++) {
		const struct evidence *ev = t->rows[r].evidence;

		for (size_t i = 0; i < ev->nways; i++)
			if (ev->flow->insns[ev->ways[i].insn].kind == INSN_RETURN)
				add_return(t, r, &ev->ways[i]);
	}
}

static int by_site(const void *a, const void *b)
{
	const struct site *x = a, *y = b;

	if (x->caller != y->caller)
		return x->caller < y->caller ? -1 : 1;
	if (x->block != y->block)
		return x->block < y->block ? -1 : 1;
	return x->callee < y->callee ? -1 : x->callee > y->callee;
}

static int by_ends(const void *a, const void *b)
{
	const struct calls *x = a, *y = b;

	if (x->callee != y->callee)
		return x->callee < y->callee ? -1 : 1;
	return x->caller < y->caller ? -1 : x->caller > y->caller;
}

static double variance_of(const struct estimate *e)
{
	double error = log(e->high / e->low) / (2 * FREQUENCY_NINETY);

	return isfinite(error) ? error * error : 1;
}

/* A call site's count goes to those that it was seen to call, as often as it was. */
static void share_out(struct ties *t)
{
	for (size_t i = 0, k; i < t->sites.n; i = k) {
		const struct site *first = &t->sites.p[i];
		double all = 0;

		for (k = i; k < t->sites.n && t->sites.p[k].caller == first->caller &&
			    t->sites.p[k].block == first->block;
			k++)
			all += t->sites.p[k].seen;
		for (size_t j = i; j < k; j++) {
			const struct site *s = &t->sites.p[j];
			const struct estimate *e = &t->rows[s->caller].frequency->block[s->block];
			double share = s->seen / all, calls = e->count * share;
			double doubt = SHARE_DOUBT * (1 - share);

			*vec_add(&t->calls) = (struct calls){.caller = s->caller,
				.callee = s->callee,
				.calls = calls,
				.doubt = calls * (variance_of(e) + doubt * doubt),
				.seen = s->seen};
		}
	}
}

static void add_up(struct ties *t)
{
	size_t kept = 0;

	vec_sort(&t->calls, by_ends);
	for (size_t i = 0; i < t->calls.n; i++) {
		struct calls *one = &t->calls.p[i];

		if (kept && !by_ends(&t->calls.p[kept - 1], one)) {
			t->calls.p[kept - 1].calls += one->calls;
			t->calls.p[kept - 1].doubt += one->doubt;
			t->calls.p[kept - 1].seen += one->seen;
		} else {
			t->calls.p[kept++] = *one;
		}
	}
	t->calls.n = kept;
}

/* ---- what a tie says ---- */

/* How often a procedure is entered: its first block may be a loop's. */
static const struct estimate *entries_of(const struct frequency *f)
{
	for (uint32_t e = 0; e < f->flow->graph.edges; e++)
		if (f->flow->edge_kind[e] == FLOW_EDGE_ENTRY)
			return &f->edge[e];
	return NULL;
}

/* Calls of one callee, which are all that there are. */
static bool weigh(const struct ties *t, const struct calls *c, size_t n, struct tie *out)
{
	const struct estimate *entries = entries_of(t->rows[c->callee].frequency);
	double seen = 0, part, rest;

	for (size_t i = 0; i < n; i++)
		seen += c[i].seen;
	if (!entries || seen < FEWEST_CALLS || !(entries->count > 0))
		return false;
	*out = (struct tie){.callee = c->callee};
	out->callers = xcalloc(n, sizeof *out->callers);
	for (size_t i = 0; i < n; i++)
		if (c[i].calls > 0)
			out->callers[out->ncallers++] = (struct tie_caller){
				c[i].caller, c[i].calls, c[i].doubt / c[i].calls};
	part = seen / t->returns[c->callee];
	rest = SHARE_DOUBT * (1 - part);
	out->entries = entries->count * part;
	out->variance = 2 / seen + TIE_DOUBT * TIE_DOUBT + rest * rest + variance_of(entries);
	if (out->ncallers)
		return true;
	free(out->callers);
	return false;
}

size_t ties_find(
	const struct frequencies_row *rows, size_t n, const uint32_t *number, struct tie **out)
{
	struct ties t = {.rows = rows, .n = n, .number = number};
	VEC(struct tie) list = {0};

	t.returns = xcalloc(n + 1, sizeof *t.returns);
	find_spans(&t);
	find_sites(&t);
	vec_sort(&t.sites, by_site);
	share_out(&t);
	add_up(&t);
	for (size_t i = 0, k; i < t.calls.n; i = k) {
		struct tie one;

		for (k = i; k < t.calls.n && t.calls.p[k].callee == t.calls.p[i].callee;)
			k++;
		if (weigh(&t, &t.calls.p[i], k - i, &one))
			*vec_add(&list) = one;
	}
	free(t.returns);
	vec_deinit(&t.spans);
	vec_deinit(&t.sites);
	vec_deinit(&t.calls);
	*out = list.p;
	return list.n;
}

void ties_free(struct tie *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(list[i].callers);
	free(list);
}
