#include "paths/seams.h"

#include "base/mem.h"

#include <stdlib.h>

#define SURE 0.75 /* share of the ways that have to be the same */

struct seams {
	const struct numbering *n;
	const struct graph *g;
	const struct seams_wish *wish;
	const double *often;
	bool *cut;
	bool *sure; /* by node: who comes there comes to the end of the path */
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
	bool sure = s->wish->safe[node];

	graph_each_out (e, s->g, node) {
		uint32_t to = s->g->edge[*e].to;
		bool ends = s->cut[*e] || to == s->n->outside;
		double same = sum > 0 ? s->often[*e] / sum * (ends ? 1 : s->same_behind[to]) : 0;

		ways += ends ? 1 : s->behind[to];
		sure &= ends || s->sure[to];
		most = same > most ? same : most;
	}
	s->behind[node] = more(ways);
	s->same_behind[node] = most;
	s->sure[node] = sure;
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

static bool can_be_cut(const struct seams *s, uint32_t node)
{
	graph_each_in (e, s->g, node)
		if (!s->cut[*e] && !s->wish->can[*e])
			return false;
	return true;
}

/* Ways in cross ways out, but one side is nearly always the same. */
static bool is_crossing(const struct seams *s, uint32_t node)
{
	return s->behind[node] > 1 &&
	       (s->same_before[node] >= SURE || s->same_behind[node] >= SURE);
}

/* The heaviest way in is dear, and need not be counted. */
static bool spares_dear(const struct seams *s, uint32_t node)
{
	uint32_t most = GRAPH_NONE;

	graph_each_in (e, s->g, node)
		if (most == GRAPH_NONE || s->often[*e] > s->often[most])
			most = *e;
	return s->behind[node] == 1 && s->sure[node] && most != GRAPH_NONE && s->wish->dear[most];
}

static bool is_seam(const struct seams *s, uint32_t node)
{
	return s->before[node] > 1 &&
	       (spares_dear(s, node) || (!s->wish->certain && is_crossing(s, node))) &&
	       can_be_cut(s, node);
}

void seams_cut(
	const struct numbering *n, const struct graph *g, const struct seams_wish *wish, bool *cut)
{
	struct seams s = {.n = n, .g = g, .wish = wish, .often = wish->often, .cut = cut};

	s.before = xcalloc(g->nodes + 1, sizeof *s.before);
	s.behind = xcalloc(g->nodes + 1, sizeof *s.behind);
	s.sure = xcalloc(g->nodes + 1, sizeof *s.sure);
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
	free(s.sure);
	free(s.same_before);
	free(s.same_behind);
}
