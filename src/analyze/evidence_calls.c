#include "analyze/evidence_internal.h"

#include "base/mem.h"

#include <stdlib.h>

/* Callees of callees count too; recursion comes to rest by itself, for shares are below 1. */
enum { ROUNDS = 6 };

/* A transfer into the middle of another procedure is a return. */
static void find_returns(struct evidence_source *s, double *returns)
{
	struct code_walk walk = code_walk_start(&s->image->map, NULL, 0);
	const struct procedure *list = s->image->procedures.p;

	vec_each (placed, &s->edges) {
		uint64_t to;
		uint32_t caller;

		if (placed->edge.target)
			continue;
		caller = code_walk_to(&walk, placed->edge.to, &to);
		if (caller == CODE_NOWHERE || caller == placed->procedure ||
			list[caller].start == to)
			continue;
		*vec_add(&s->calls) = (struct placed_call){.procedure = caller,
			.callee = placed->procedure,
			.address = to,
			.share = (double)placed->edge.count};
		returns[placed->procedure] += (double)placed->edge.count;
	}
}

static int by_caller(const void *a, const void *b)
{
	const struct placed_call *x = a, *y = b;

	if (x->procedure != y->procedure)
		return x->procedure < y->procedure ? -1 : 1;
	return x->address < y->address ? -1 : x->address > y->address;
}

void evidence_find_calls(struct evidence_source *s)
{
	size_t n = s->image->procedures.n;
	double *returns = xcalloc(n + 1, sizeof *returns);
	double *own = xcalloc(n + 1, sizeof *own), *all = xcalloc(n + 1, sizeof *all);

	find_returns(s, returns);
	vec_each (p, &s->procedures)
		own[p->procedure] = all[p->procedure] = (double)p->samples;
	for (int round = 0; round < ROUNDS; round++) {
		vec_each (c, &s->calls)
			c->samples = all[c->callee] * c->share / returns[c->callee];
		for (size_t i = 0; i < n; i++)
			all[i] = own[i];
		vec_each (c, &s->calls)
			all[c->procedure] += c->samples;
	}
	vec_sort(&s->calls, by_caller);
	free(returns);
	free(own);
	free(all);
}
