#include "analyze/grammar.h"

#include <stdlib.h>

#include "base/hmap.h"
#include "base/mem.h"

static bool is_rule(uint32_t symbol)
{
	return (symbol & GRAMMAR_RULE) != 0;
}

/* ---- pairs ---- */

/* Rules that the sequence needs, each behind those that are in it. */
struct order {
	VEC(uint32_t) rules, open;
	uint8_t *state; /* by rule: seen, then done */
};

enum { SEEN = 1, DONE = 2 };

static void see_rule(const struct grammar *g, struct order *o, uint32_t rule)
{
	o->state[rule] = SEEN;
	grammar_each_symbol(x, g, rule)
	{
		if (is_rule(*x) && !o->state[*x & ~GRAMMAR_RULE])
			*vec_add(&o->open) = *x & ~GRAMMAR_RULE;
	}
}

static void order_rules(const struct grammar *g, struct order *o)
{
	o->state = xcalloc(grammar_rules(g) + 1, sizeof *o->state);
	if (g->begins.n)
		*vec_add(&o->open) = 0;
	while (o->open.n) {
		uint32_t rule = o->open.p[o->open.n - 1];

		if (!o->state[rule]) {
			see_rule(g, o, rule);
			continue;
		}
		if (o->state[rule] == SEEN)
			*vec_add(&o->rules) = rule;
		o->state[rule] = DONE;
		o->open.n--;
	}
}

/* A rule: its first and last terminal, and how often it stands in the sequence. */
struct ends {
	uint32_t first, last;
	uint64_t times;
};

static uint32_t first_of(const struct ends *ends, uint32_t symbol)
{
	return is_rule(symbol) ? ends[symbol & ~GRAMMAR_RULE].first : symbol;
}

static uint32_t last_of(const struct ends *ends, uint32_t symbol)
{
	return is_rule(symbol) ? ends[symbol & ~GRAMMAR_RULE].last : symbol;
}

static struct ends *find_ends(const struct grammar *g, const struct order *o)
{
	struct ends *ends = xcalloc(grammar_rules(g) + 1, sizeof *ends);

	vec_each (r, &o->rules) {
		uint32_t begin = g->begins.p[*r], end = grammar_end(g, *r);

		if (begin == end)
			continue;
		ends[*r].first = first_of(ends, g->symbols.p[begin]);
		ends[*r].last = last_of(ends, g->symbols.p[end - 1]);
	}
	ends[0].times = 1;
	for (size_t i = o->rules.n; i-- > 0;)
		grammar_each_symbol(x, g, o->rules.p[i])
		{
			if (is_rule(*x))
				ends[*x & ~GRAMMAR_RULE].times += ends[o->rules.p[i]].times;
		}
	return ends;
}

struct pair {
	uint32_t left, right; /* terminals; the key */
	uint64_t times;
};

bool *grammar_joints(const struct grammar *g, uint64_t least)
{
	bool *joints = xcalloc(g->symbols.n + 1, sizeof *joints);
	struct order order = {0};
	struct ends *ends;
	struct hmap pairs;

	hmap_init(&pairs, sizeof(struct pair), offsetof(struct pair, times));
	order_rules(g, &order);
	ends = find_ends(g, &order);
	for (int known = 0; known < 2; known++)
		vec_each (r, &order.rules)
			for (uint32_t i = g->begins.p[*r] + 1; i < grammar_end(g, *r); i++) {
				struct pair key = {last_of(ends, g->symbols.p[i - 1]),
					first_of(ends, g->symbols.p[i]), 0};
				struct pair *p;

				if (key.left == GRAMMAR_CUT || key.right == GRAMMAR_CUT)
					continue;
				p = hmap_put(&pairs, &key, NULL);
				if (known)
					joints[i] = p->times >= least;
				else
					p->times += ends[*r].times;
			}
	hmap_deinit(&pairs);
	free(ends);
	free(order.state);
	vec_deinit(&order.rules);
	vec_deinit(&order.open);
	return joints;
}

/* ---- the sequence ---- */

/* Where the sequence goes on in a rule. */
struct spot {
	uint32_t begin, at, end;
};

void grammar_each(const struct grammar *g, const bool *joints, grammar_fn *fn, void *arg)
{
	VEC(struct spot) open = {0};

	if (g->begins.n)
		*vec_add(&open) = (struct spot){0, 0, grammar_end(g, 0)};
	while (open.n) {
		struct spot *top = &open.p[open.n - 1];
		uint32_t x;

		if (top->at == top->end) {
			open.n--;
			continue;
		}
		if (joints && top->at > top->begin && !joints[top->at])
			fn(arg, GRAMMAR_CUT);
		x = g->symbols.p[top->at++];
		if (is_rule(x)) {
			x &= ~GRAMMAR_RULE;
			*vec_add(&open) =
				(struct spot){g->begins.p[x], g->begins.p[x], grammar_end(g, x)};
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
