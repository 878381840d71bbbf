#include "analyze/grammar.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/mem.h"

static bool is_rule(uint32_t symbol)
{
	return (symbol & GRAMMAR_RULE) != 0;
}

/* Of one rule, when those of the rules in it are known; else these are put to what is open. */
static uint32_t length_of(const struct grammar *g, uint32_t rule, const uint32_t *known,
	uint32_t most, uint32_t **open, size_t *n)
{
	uint64_t sum = 0;
	bool waits = false;

	grammar_each_symbol(x, g, rule)
	{
		uint32_t inner = *x & ~GRAMMAR_RULE;

		if (is_rule(*x) && !known[inner]) {
			(*open)[(*n)++] = inner;
			waits = true;
		}
		sum += is_rule(*x) ? known[inner] : 1;
	}
	return waits ? 0 : !sum || sum > most ? UINT32_MAX : (uint32_t)sum;
}

uint32_t *grammar_lengths(const struct grammar *g, uint32_t most)
{
	uint32_t *length = xcalloc(grammar_rules(g) + 1, sizeof *length);
	VEC(uint32_t) open = {0};

	for (uint32_t rule = 0; rule < grammar_rules(g); rule++) {
		*vec_add(&open) = rule;
		while (open.n) {
			uint32_t r = open.p[open.n - 1];

			vec_reserve(&open, open.n + grammar_end(g, r) - g->begins.p[r]);
			if (!length[r])
				length[r] = length_of(g, r, length, most, &open.p, &open.n);
			if (length[r])
				open.n--;
		}
	}
	vec_deinit(&open);
	return length;
}

void grammar_expand(const struct grammar *g, uint32_t rule, uint32_t **to)
{
	grammar_each_symbol(x, g, rule)
	{
		if (is_rule(*x))
			grammar_expand(g, *x & ~GRAMMAR_RULE, to);
		else
			*(*to)++ = *x;
	}
}

/* Where the sequence goes on in a rule. */
struct spot {
	uint32_t at, end;
};

void grammar_each(const struct grammar *g, grammar_fn *fn, void *arg)
{
	VEC(struct spot) open = {0};

	if (g->begins.n)
		*vec_add(&open) = (struct spot){0, grammar_end(g, 0)};
	while (open.n) {
		struct spot *top = &open.p[open.n - 1];
		uint32_t x;

		if (top->at == top->end) {
			open.n--;
			continue;
		}
		x = g->symbols.p[top->at++];
		if (is_rule(x)) {
			x &= ~GRAMMAR_RULE;
			*vec_add(&open) = (struct spot){g->begins.p[x], grammar_end(g, x)};
		} else {
			fn(arg, x);
		}
	}
	vec_deinit(&open);
}

void grammar_deinit(struct grammar *g)
{
	vec_deinit(&g->begins);
	vec_deinit(&g->symbols);
}
