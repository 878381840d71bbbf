#include "paths/derive.h"

#include "base/mem.h"

#include <errno.h>
#include <stdlib.h>

/* Where a path begins and ends: a head, or the outside. */
struct ends {
	uint32_t from, to;
};

static struct ends ends_of(const struct numbering *n, uint64_t number, number_path *memory)
{
	uint32_t first, last;

	numbering_decode(n, number, memory);
	first = memory->p[0];
	last = memory->p[memory->n - 1];
	return (struct ends){
		.from = first >= n->given ? n->dag.edge[first].to : n->outside,
		.to = last < n->given && n->cut[last] ? n->dag.edge[n->begins[last]].to
						      : n->outside,
	};
}

/* ---- choosing ---- */

struct candidate {
	double cost;
	uint32_t edge; /* of the dag: it is counted there */
	uint64_t number;
	struct ends ends;
};

struct tree {
	const struct numbering *n;
	bool *ground;     /* by node: the outside, and heads from which paths may be lost */
	uint32_t *group;  /* by node: another one that is joined to it, or itself */
	uint32_t *degree; /* by node: paths of the tree that are still to be put in order */
	VEC(struct candidate) all;
};

static uint32_t find(const struct tree *t, uint32_t node)
{
	while (t->group[node] != node)
		node = t->group[node] = t->group[t->group[node]];
	return node;
}

static bool join(struct tree *t, uint32_t a, uint32_t b)
{
	a = find(t, a);
	b = find(t, b);
	t->group[a] = b;
	return a != b;
}

static void find_ground(struct tree *t, const bool *safe)
{
	const struct numbering *n = t->n;

	t->ground[n->outside] = true;
	for (uint32_t i = 0; i < n->reached; i++) {
		uint32_t node = n->order[i];
		bool unsafe = !safe[node];

		graph_each_out (e, &n->dag, node)
			unsafe |= n->dag.edge[*e].to != n->outside && t->ground[n->dag.edge[*e].to];
		t->ground[node] = unsafe;
		if (unsafe)
			join(t, node, n->outside);
	}
}

static int by_cost(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->cost != y->cost)
		return x->cost > y->cost ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

/* What is counted at a place of its own. */
static void find_candidates(struct tree *t, const double *weight, const struct plan *plan)
{
	number_path memory = {0};

	for (uint32_t i = 0; i < t->n->given; i++) {
		struct candidate c = {weight ? weight[i] : 1, i, plan->step[i].by, {0, 0}};

		if (plan->step[i].op != PLAN_COUNTED)
			continue;
		c.ends = ends_of(t->n, c.number, &memory);
		if (c.ends.from != c.ends.to)
			*vec_add(&t->all) = c;
	}
	vec_deinit(&memory);
	vec_sort(&t->all, by_cost);
}

/* Those that stay are the tree. */
static void take_tree(struct tree *t, struct plan *plan)
{
	size_t n = 0;

	vec_each (c, &t->all) {
		if (!join(t, c->ends.from, c->ends.to))
			continue;
		plan->step[c->edge] = (struct plan_step){PLAN_NOTHING, 0};
		plan->cost -= c->cost;
		t->degree[c->ends.from]++;
		t->degree[c->ends.to]++;
		t->all.p[n++] = *c;
	}
	t->all.n = n;
}

static bool tells(const struct tree *t, uint32_t node)
{
	return !t->ground[node] && t->degree[node] == 1;
}

/* Leaves first: each is told by what is counted and those before it. */
static void put_in_order(struct tree *t, path_derived_list *out)
{
	while (t->all.n) {
		size_t n = 0;

		vec_each (c, &t->all) {
			bool by_end = tells(t, c->ends.to);

			if (!by_end && !tells(t, c->ends.from)) {
				t->all.p[n++] = *c;
				continue;
			}
			*vec_add(out) = (struct path_derived){c->number, by_end};
			t->degree[c->ends.from]--;
			t->degree[c->ends.to]--;
		}
		t->all.n = n;
	}
}

void derive_choose(const struct numbering *n, const double *weight, const bool *safe,
	struct plan *plan, path_derived_list *out)
{
	struct tree t = {.n = n};

	out->n = 0;
	t.ground = xcalloc(n->dag.nodes + 1, sizeof *t.ground);
	t.group = graph_numbers(n->dag.nodes, 0);
	t.degree = graph_numbers(n->dag.nodes, 0);
	for (uint32_t i = 0; i < n->dag.nodes; i++)
		t.group[i] = i;
	find_ground(&t, safe);
	find_candidates(&t, weight, plan);
	take_tree(&t, plan);
	put_in_order(&t, out);
	free(t.ground);
	free(t.group);
	free(t.degree);
	vec_deinit(&t.all);
}

/* ---- counts ---- */

/* What ends at a head more than begins there. */
static void balance(const struct numbering *n, const uint64_t *counts, int64_t *more)
{
	number_path memory = {0};

	for (uint64_t i = 0; i < n->total; i++) {
		struct ends e;

		if (!counts[i])
			continue;
		e = ends_of(n, i, &memory);
		more[e.to] += (int64_t)counts[i];
		more[e.from] -= (int64_t)counts[i];
	}
	vec_deinit(&memory);
}

int derive_counts(const struct numbering *n, const struct path_derived *list, size_t nlist,
	uint64_t *counts, uint64_t *off)
{
	int64_t *more = xcalloc(n->dag.nodes + 1, sizeof *more);
	number_path memory = {0};
	int rc = 0;

	*off = 0;
	for (size_t i = 0; i < nlist && !rc; i++)
		if (list[i].number >= n->total)
			rc = -EBADMSG;
		else
			counts[list[i].number] = 0;
	if (!rc)
		balance(n, counts, more);
	for (size_t i = 0; i < nlist && !rc; i++) {
		struct ends e = ends_of(n, list[i].number, &memory);
		int64_t count = list[i].by_end ? -more[e.to] : more[e.from];

		if ((list[i].by_end ? e.to : e.from) == n->outside || e.from == e.to)
			rc = -EBADMSG;
		if (count < 0) {
			*off += (uint64_t)-count;
			count = 0;
		}
		counts[list[i].number] = (uint64_t)count;
		more[e.to] += count;
		more[e.from] -= count;
	}
	free(more);
	vec_deinit(&memory);
	return rc;
}
