#include "paths/seams.h"

#include "base/mem.h"

#include <stdlib.h>

#define SURE 0.75 /* share of the ways that have to be the same */

struct seams {
	const struct numbering *n;
	const struct graph *g;
	const double *often, *cuttable;
	bool *cut;
	uint8_t *before,
		*behind; /* by node: ways from where paths begin, to where they end; 2: more */
	double *same_before, *same_behind; /* by node: the share of the most frequent of these */
};

static uint8_t more(unsigned ways)
{
	return ways > 2 ? 2 : (uint8_t)ways;
}

static double sum_in(const struct seams *s, uint32_t node)
{
	double sum = 0;

	graph_each_in (e, s->g, node)
		sum += s->often[*e];
	return sum;
}

static double sum_out(const struct seams *s, uint32_t node)
{
	double sum = 0;

	graph_each_out (e, s->g, node)
		sum += s->often[*e];
	return sum;
}

/* ---- ways ---- */

static void look_behind(struct seams *s, uint32_t node)
{
	double sum = sum_out(s, node), most = 0;
	unsigned ways = 0;

	graph_each_out (e, s->g, node) {
		uint32_t to = s->g->edge[*e].to;
		bool ends = s->cut[*e] || to == s->n->outside;
		double same = sum > 0 ? s->often[*e] / sum * (ends ? 1 : s->same_behind[to]) : 0;

		ways += ends ? 1 : s->behind[to];
		most = same > most ? same : most;
	}
	s->behind[node] = more(ways);
	s->same_behind[node] = most;
}

static void look_before(struct seams *s, uint32_t node)
{
	double sum = sum_in(s, node), most = 0, begins = 0;
	unsigned ways = 0;
	bool head = false;

	graph_each_in (e, s->g, node) {
		uint32_t from = s->g->edge[*e].from;
		double same;

		if (s->cut[*e]) {
			head = true;
			begins += s->often[*e];
			continue;
		}
		same = s->often[*e] * (from == s->n->outside ? 1 : s->same_before[from]);
		ways += from == s->n->outside ? 1 : s->before[from];
		most = same > most ? same : most;
	}
	most = begins > most ? begins : most;
	s->before[node] = more(ways + head);
	s->same_before[node] = sum > 0 ? most / sum : 0;
}

/* ---- cutting ---- */

static bool is_seam(const struct seams *s, uint32_t node)
{
	if (s->before[node] < 2 || s->behind[node] < 2 ||
		(s->same_before[node] < SURE && s->same_behind[node] < SURE))
		return false;
	graph_each_in (e, s->g, node)
		if (!s->cut[*e] && s->cuttable[*e] < 0)
			return false;
	return true;
}

void seams_cut(const struct numbering *n, const struct graph *g, const double *often,
	const double *cuttable, bool *cut)
{
	struct seams s = {.n = n, .g = g, .often = often, .cuttable = cuttable, .cut = cut};

	s.before = xcalloc(g->nodes + 1, sizeof *s.before);
	s.behind = xcalloc(g->nodes + 1, sizeof *s.behind);
	s.same_before = xcalloc(g->nodes + 1, sizeof *s.same_before);
	s.same_behind = xcalloc(g->nodes + 1, sizeof *s.same_behind);
	for (uint32_t i = 0; i < n->reached; i++)
		look_behind(&s, n->order[i]);
	for (uint32_t i = n->reached; i-- > 0;) {
		uint32_t node = n->order[i];

		look_before(&s, node);
		if (!is_seam(&s, node))
			continue;
		graph_each_in (e, g, node)
			cut[*e] = true;
		s.before[node] = 1;
		s.same_before[node] = 1;
	}
	free(s.before);
	free(s.behind);
	free(s.same_before);
	free(s.same_behind);
}
