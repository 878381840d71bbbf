#include "analyze/repair.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/hmap.h"
#include "base/mem.h"

#define NONE UINT32_MAX

/* A pair of symbols that occurs, and where. */
struct pair {
	uint32_t left, right;
	uint32_t count, first; /* occurrences that do not overlap, linked */
	uint32_t prev, next;   /* pairs with as many */
};

/* A place of the sequence that is left; gone ones are in nobody's list. */
struct place {
	uint32_t prev, next;
	uint32_t pair;           /* that begins here and is counted, or NONE */
	uint32_t before, behind; /* occurrences of that pair */
};

struct number {
	uint32_t left, right; /* the key */
	uint32_t pair;
};

struct list {
	uint32_t first, last;
};

struct rule {
	uint32_t left, right, uses;
};

struct repair {
	uint32_t *value; /* by place */
	struct place *places;
	size_t n;
	VEC(struct pair) pairs;
	uint32_t unused; /* pairs, linked by next */
	struct hmap numbers;
	struct list *by_count; /* the last: so many and more */
	uint32_t most;
	bool equal;             /* all in the last occur as often */
	VEC(struct rule) rules; /* from 1 on */
};

/* ---- pairs by how often they occur ---- */

static struct list *list_of(struct repair *r, uint32_t count)
{
	return &r->by_count[count < r->most ? count : r->most];
}

static void unlist(struct repair *r, uint32_t pair)
{
	struct pair *p = &r->pairs.p[pair];
	struct list *l = list_of(r, p->count);

	*(p->prev == NONE ? &l->first : &r->pairs.p[p->prev].next) = p->next;
	*(p->next == NONE ? &l->last : &r->pairs.p[p->next].prev) = p->prev;
}

/* At the end: rules that join what was joined just now would nest as deep as they are long. */
static void enlist(struct repair *r, uint32_t pair)
{
	struct pair *p = &r->pairs.p[pair];
	struct list *l = list_of(r, p->count);

	p->prev = l->last;
	p->next = NONE;
	*(l->last == NONE ? &l->first : &r->pairs.p[l->last].next) = pair;
	l->last = pair;
}

static uint32_t pair_number(struct repair *r, uint32_t left, uint32_t right)
{
	struct number key = {left, right, 0}, *found;
	bool fresh;

	found = hmap_put(&r->numbers, &key, &fresh);
	if (!fresh)
		return found->pair;
	if (r->unused == NONE) {
		r->unused = (uint32_t)r->pairs.n;
		vec_add(&r->pairs)->next = NONE;
	}
	found->pair = r->unused;
	r->unused = r->pairs.p[found->pair].next;
	r->pairs.p[found->pair] = (struct pair){left, right, 0, NONE, NONE, NONE};
	enlist(r, found->pair);
	return found->pair;
}

static void drop_pair(struct repair *r, uint32_t pair)
{
	struct pair *p = &r->pairs.p[pair];

	hmap_delete(&r->numbers, &(struct number){p->left, p->right, 0});
	p->next = r->unused;
	r->unused = pair;
}

/* ---- occurrences ---- */

static void forget(struct repair *r, uint32_t at)
{
	struct place *x = at == NONE ? NULL : &r->places[at];
	struct pair *p;

	if (!x || x->pair == NONE)
		return;
	p = &r->pairs.p[x->pair];
	unlist(r, x->pair);
	p->count--;
	*(x->before == NONE ? &p->first : &r->places[x->before].behind) = x->behind;
	if (x->behind != NONE)
		r->places[x->behind].before = x->before;
	if (p->count)
		enlist(r, x->pair);
	else
		drop_pair(r, x->pair);
	x->pair = NONE;
}

static bool is_joinable(const struct repair *r, uint32_t at)
{
	return at != NONE && r->places[at].next != NONE && r->value[at] != GRAMMAR_CUT &&
	       r->value[r->places[at].next] != GRAMMAR_CUT;
}

/* Of three equal symbols in a row only the first two are a pair. */
static bool overlaps(const struct repair *r, uint32_t at, uint32_t pair)
{
	uint32_t prev = r->places[at].prev, next = r->places[at].next;

	return (prev != NONE && r->places[prev].pair == pair) || r->places[next].pair == pair;
}

static void note(struct repair *r, uint32_t at)
{
	struct place *x;
	struct pair *p;
	uint32_t pair;

	if (!is_joinable(r, at))
		return;
	x = &r->places[at];
	pair = pair_number(r, r->value[at], r->value[x->next]);
	if (r->value[at] == r->value[x->next] && overlaps(r, at, pair))
		return;
	p = &r->pairs.p[pair];
	unlist(r, pair);
	p->count++;
	enlist(r, pair);
	x->pair = pair;
	x->before = NONE;
	x->behind = p->first;
	if (p->first != NONE)
		r->places[p->first].before = at;
	p->first = at;
}

/* ---- rules ---- */

/*
 * The most frequent pair; NONE: none occurs twice. New pairs occur no more often than what they are
 * made of. So once there is none in the last list, all in the next one occur equally often.
 */
static uint32_t best_pair(struct repair *r)
{
	uint32_t best = r->by_count[r->most].first;

	for (uint32_t p = best; !r->equal && p != NONE; p = r->pairs.p[p].next)
		if (r->pairs.p[p].count > r->pairs.p[best].count)
			best = p;
	while (best == NONE && r->most > 2) {
		r->equal = true;
		best = r->by_count[--r->most].first;
	}
	return best;
}

static void replace_at(struct repair *r, uint32_t at, uint32_t symbol)
{
	struct place *x = &r->places[at];
	uint32_t gone = x->next;

	forget(r, x->prev);
	forget(r, at);
	forget(r, gone);
	x->next = r->places[gone].next;
	if (x->next != NONE)
		r->places[x->next].prev = at;
	r->value[at] = symbol;
	note(r, x->prev);
	note(r, at);
}

static struct rule *rule_of(const struct repair *r, uint32_t symbol)
{
	return &r->rules.p[(symbol & ~GRAMMAR_RULE) - 1];
}

/* What it joins stood in as many places, and stands in one now. */
static void make_rule(struct repair *r, uint32_t pair)
{
	uint32_t left = r->pairs.p[pair].left, right = r->pairs.p[pair].right;
	uint32_t symbol = GRAMMAR_RULE | (uint32_t)(r->rules.n + 1);
	uint32_t uses = r->pairs.p[pair].count;

	for (uint32_t i = 0; i < uses; i++)
		replace_at(r, r->pairs.p[pair].first, symbol);
	if (left & GRAMMAR_RULE)
		rule_of(r, left)->uses -= uses - 1;
	if (right & GRAMMAR_RULE)
		rule_of(r, right)->uses -= uses - 1;
	*vec_add(&r->rules) = (struct rule){left, right, uses};
}

/* ---- the grammar ---- */

/* A rule that is used once only is written out where that is. */
static void put_symbol(const struct repair *r, uint32_t symbol, struct grammar *out)
{
	VEC(uint32_t) open = {0};

	*vec_add(&open) = symbol;
	while (open.n) {
		uint32_t x = open.p[--open.n];
		const struct rule *rule = x & GRAMMAR_RULE ? rule_of(r, x) : NULL;

		if (!rule || rule->uses > 1) {
			*vec_add(&out->symbols) = x;
			continue;
		}
		*vec_add(&open) = rule->right;
		*vec_add(&open) = rule->left;
	}
	vec_deinit(&open);
}

static void put_grammar(const struct repair *r, struct grammar *out)
{
	*vec_add(&out->begins) = 0;
	for (uint32_t at = r->n ? 0 : NONE; at != NONE; at = r->places[at].next)
		put_symbol(r, r->value[at], out);
	vec_each (rule, &r->rules) {
		*vec_add(&out->begins) = (uint32_t)out->symbols.n;
		if (rule->uses < 2)
			continue;
		put_symbol(r, rule->left, out);
		put_symbol(r, rule->right, out);
	}
}

static void start(struct repair *r, uint32_t *list, size_t n)
{
	r->value = list;
	r->n = n;
	r->unused = NONE;
	r->places = xcalloc(n + 1, sizeof *r->places);
	hmap_init(&r->numbers, sizeof(struct number), offsetof(struct number, pair));
	for (r->most = 4; (uint64_t)r->most * r->most < n;)
		r->most *= 2;
	r->by_count = xcalloc(r->most + 1, sizeof *r->by_count);
	memset(r->by_count, 0xff, (r->most + 1) * sizeof *r->by_count);
	for (uint32_t i = 0; i < n; i++)
		r->places[i] = (struct place){
			i ? i - 1 : NONE, i + 1 < n ? i + 1 : NONE, NONE, NONE, NONE};
	for (uint32_t i = 0; i < n; i++)
		note(r, i);
}

void repair_grammar(uint32_t *list, size_t n, struct grammar *out)
{
	struct repair r = {0};
	uint32_t pair;

	start(&r, list, n);
	while ((pair = best_pair(&r)) != NONE)
		make_rule(&r, pair);
	put_grammar(&r, out);
	hmap_deinit(&r.numbers);
	vec_deinit(&r.pairs);
	vec_deinit(&r.rules);
	free(r.places);
	free(r.by_count);
}
