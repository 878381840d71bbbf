#include "analyze/frequency_internal.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>

/*
 * Executions of one excursion go together: where the ways of a branch do not differ from one
 * excursion to the next, because there are few, each is worth so many outcomes.
 */
#define WORTH 8.0
/* So many excursions are as good as that guess. */
#define GUESS 2.0
/*
 * However many there are: they begin where time is spent, and what goes on for longer than they do
 * is seen too often where it is slow. Standard error of log odds.
 */
#define DOUBT 0.05

/* By traced edge of a node, while its passages are gone through. */
struct sharing {
	const struct evidence *ev;
	const struct traced *t;
	uint32_t *edge, *way; /* the traced edge of one of the flow, of a way */
	double *sum;          /* by traced edge: weighted passages */
	double *one;          /* the same, of one excursion */
	double *variance;     /* of sums, with the shares as they are */
};

static uint32_t traced_edge(const struct sharing *s, const struct evidence_passage *p)
{
	uint32_t way;

	if (p->edge != GRAPH_NONE)
		return s->edge[p->edge];
	way = evidence_way_at(s->ev, &p->way);
	return way == GRAPH_NONE ? GRAPH_NONE : s->way[way];
}

/* Passages of a block in one excursion; returns how many they are. */
static size_t take_one(const struct sharing *s, const struct evidence_passage *p,
	const struct evidence_passage *end, double *weighted)
{
	const struct evidence_passage *first = p;

	*weighted = 0;
	for (; p < end && p->excursion == first->excursion; p++) {
		uint32_t e = traced_edge(s, p);

		if (e == GRAPH_NONE)
			continue;
		s->one[e] += p->weight * p->count;
		*weighted += p->weight * p->count;
	}
	return (size_t)(p - first);
}

/* Of a node: what leaves it in all excursions, how many came by, how many passages those are. */
struct passing {
	double sum, squares, count;
};

static struct passing add_up(
	struct sharing *s, const struct evidence_passage *p, const struct evidence_passage *end)
{
	struct passing all = {0};

	while (p < end) {
		double weighted;
		size_t n = take_one(s, p, end, &weighted);

		graph_each_out (e, &s->t->graph, p->block) {
			s->sum[*e] += s->one[*e];
			s->one[*e] = 0;
		}
		all.sum += weighted;
		all.squares += weighted * weighted;
		for (; n; n--, p++)
			all.count += traced_edge(s, p) != GRAPH_NONE ? p->count : 0;
	}
	return all;
}

static void find_variance(struct sharing *s, const struct evidence_passage *p,
	const struct evidence_passage *end, double sum)
{
	while (p < end) {
		double weighted;
		size_t n = take_one(s, p, end, &weighted);

		graph_each_out (e, &s->t->graph, p->block) {
			double off = s->one[*e] - s->sum[*e] / sum * weighted;

			s->variance[*e] += off * off;
			s->one[*e] = 0;
		}
		p += n;
	}
}

/* How many outcomes that are drawn one by one would vary as much as the shares of excursions. */
static double worth(const struct sharing *s, uint32_t node, const struct passing *all)
{
	double came = all->sum * all->sum / all->squares, spread = 0, drawn = 0, say;
	uint32_t ways = graph_out_degree(&s->t->graph, node);

	graph_each_out (e, &s->t->graph, node) {
		double share = s->sum[*e] / all->sum;

		spread += s->variance[*e] / (all->sum * all->sum);
		drawn += share * (1 - share);
	}
	say = spread > 0 ? fmin(all->count, drawn / spread) : all->count;
	say = (came + GUESS) / (came / say + GUESS / fmin(all->count, WORTH * came));
	return say / (1 + say * drawn / ways * DOUBT * DOUBT);
}

static void share_out(struct sharing *s, const struct evidence_passage *p,
	const struct evidence_passage *end, double *out)
{
	uint32_t node = p->block;
	struct passing all = add_up(s, p, end);
	double say;

	if (!(all.sum > 0) || graph_out_degree(&s->t->graph, node) < 2)
		return;
	find_variance(s, p, end, all.sum);
	say = worth(s, node, &all);
	graph_each_out (e, &s->t->graph, node)
		out[*e] = say * s->sum[*e] / all.sum;
}

void excursions_say(const struct evidence *ev, const struct traced *t, double *out)
{
	uint32_t edges = t->graph.edges;
	struct sharing s = {.ev = ev,
		.t = t,
		.edge = graph_numbers(ev->flow->graph.edges + 1, GRAPH_NONE),
		.way = graph_numbers((uint32_t)ev->nways + 1, GRAPH_NONE),
		.sum = xcalloc(edges + 1, sizeof *s.sum),
		.one = xcalloc(edges + 1, sizeof *s.one),
		.variance = xcalloc(edges + 1, sizeof *s.variance)};

	for (uint32_t e = 0; e < edges; e++)
		if (t->edge[e] != GRAPH_NONE)
			s.edge[t->edge[e]] = e;
		else
			s.way[t->way[e]] = e;
	for (size_t i = 0, k; i < ev->npassages; i = k) {
		for (k = i; k < ev->npassages && ev->passages[k].block == ev->passages[i].block;)
			k++;
		share_out(&s, ev->passages + i, ev->passages + k, out);
	}
	free(s.edge);
	free(s.way);
	free(s.sum);
	free(s.one);
	free(s.variance);
}
