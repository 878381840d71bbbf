#include "paths/join.h"

#include "base/mem.h"

#include <stdlib.h>

void joining_deinit(struct joining *j)
{
	vec_deinit(&j->pieces);
	vec_deinit(&j->edges);
}

void join_add(struct joining *j, const struct numbering *n, const number_path *path, uint64_t count)
{
	uint32_t first = path->p[0], last = path->p[path->n - 1];

	*vec_add(&j->pieces) = (struct join_piece){
		.count = count,
		.from = first >= n->given ? n->dag.edge[first].to : n->outside,
		.to = n->cut[last] ? n->dag.edge[n->begins[last]].to : n->outside,
		.first = j->edges.n,
		.n = path->n,
	};
	vec_each (e, path)
		*vec_add(&j->edges) = *e;
}

/* Where one ends and the other begins is told by the latter, unless nothing else is of the former:
 * then that is how it began. */
static void put_together(struct joining *j, size_t a, size_t b, uint64_t count)
{
	struct join_piece x = j->pieces.p[a], y = j->pieces.p[b];
	size_t first = j->edges.n, kept = x.n > 1 ? x.n - 1 : 1;

	vec_reserve(&j->edges, first + kept + y.n);
	for (size_t i = 0; i < kept; i++)
		*vec_add(&j->edges) = j->edges.p[x.first + i];
	for (size_t i = 0; i < y.n; i++)
		*vec_add(&j->edges) = j->edges.p[y.first + i];
	*vec_add(&j->pieces) = (struct join_piece){count, x.from, y.to, first, kept + y.n};
}

/* What is certain of each pair follows from how often all were counted; then that is taken off. */
static void join_at(struct joining *j, uint32_t head, uint64_t *taken)
{
	size_t n = j->pieces.n;
	uint64_t in = 0, out = 0, all;

	for (size_t i = 0; i < n; i++) {
		taken[i] = 0;
		in += j->pieces.p[i].to == head ? j->pieces.p[i].count : 0;
		out += j->pieces.p[i].from == head ? j->pieces.p[i].count : 0;
	}
	all = in > out ? in : out;
	for (size_t a = 0; a < n; a++)
		for (size_t b = 0; j->pieces.p[a].to == head && b < n; b++) {
			uint64_t both = j->pieces.p[a].count + j->pieces.p[b].count;

			if (j->pieces.p[b].from != head || both <= all)
				continue;
			put_together(j, a, b, both - all);
			taken[a] += both - all;
			taken[b] += both - all;
		}
	for (size_t i = 0; i < n; i++)
		j->pieces.p[i].count -= taken[i];
}

/* Those that are used up make room. */
static void drop_empty(struct joining *j)
{
	size_t n = 0;

	vec_each (p, &j->pieces)
		if (p->count)
			j->pieces.p[n++] = *p;
	j->pieces.n = n;
}

static bool is_seam(
	const struct numbering *n, const struct graph *g, const bool *around, uint32_t node)
{
	bool head = false;

	graph_each_in (e, g, node) {
		if (around[*e])
			return false;
		head |= n->cut[*e];
	}
	return head;
}

void join_all(
	struct joining *j, const struct numbering *n, const struct graph *g, const bool *around)
{
	for (uint32_t i = n->reached; i-- > 0;) {
		uint64_t *taken;

		if (!is_seam(n, g, around, n->order[i]))
			continue;
		taken = xcalloc(j->pieces.n + 1, sizeof *taken);
		join_at(j, n->order[i], taken);
		free(taken);
		drop_empty(j);
	}
}
