#include "analyze/sequitur.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/vec.h"

/* What a symbol stands for, in the two upper bits. */
#define RULE  (UINT32_C(1) << 30)
#define CUT   (UINT32_C(2) << 30)
#define GUARD (UINT32_C(3) << 30) /* closes the ring of a rule's symbols */
#define KINDS (UINT32_C(3) << 30)

struct symbol {
	uint32_t prev, next, value;
};

struct rule {
	uint32_t guard; /* symbol; 0: the rule is gone */
	uint32_t uses;
};

/* A pair that stands somewhere, and its first symbol; 0: the place is free. */
struct place {
	uint64_t pair;
	uint32_t first;
};

/* Symbol 0 is nobody. Pairs are kept in a table of open addressing. */
struct sequitur {
	VEC(struct symbol) symbols;
	VEC(struct rule) rules;
	uint32_t free; /* symbols, linked by next */
	size_t live, pairs, places;
	unsigned shift; /* of a hash, to be a place */
	struct place *table;
	uint32_t cuts;
};

#define AT(s, i) ((s)->symbols.p[i])

/* ---- the table of pairs ---- */

static uint64_t pair_at(const struct sequitur *s, uint32_t first)
{
	return (uint64_t)AT(s, first).value << 32 | AT(s, AT(s, first).next).value;
}

static size_t home_of(const struct sequitur *s, uint64_t pair)
{
	return (size_t)(pair * 0x9e3779b97f4a7c15u >> s->shift);
}

/* The place where a pair is kept, or one that is free. */
static struct place *find_pair(const struct sequitur *s, uint64_t pair)
{
	size_t at = home_of(s, pair);

	while (s->table[at].first && s->table[at].pair != pair)
		at = (at + 1) & (s->places - 1);
	return &s->table[at];
}

static void grow_table(struct sequitur *s)
{
	struct place *old = s->table;
	size_t n = s->places;

	s->places = n ? 2 * n : 1024;
	s->shift = (unsigned)(64 - __builtin_ctzll(s->places));
	s->table = xcalloc(s->places, sizeof *s->table);
	for (size_t i = 0; i < n; i++)
		if (old[i].first)
			*find_pair(s, old[i].pair) = old[i];
	free(old);
}

static void put_pair(struct sequitur *s, struct place *at, uint64_t pair, uint32_t first)
{
	s->pairs += !at->first;
	*at = (struct place){pair, first};
	if (s->pairs * 2 >= s->places)
		grow_table(s);
}

static void keep_pair(struct sequitur *s, uint32_t first)
{
	uint64_t pair = pair_at(s, first);

	put_pair(s, find_pair(s, pair), pair, first);
}

/* Those behind it move up, so that no place is free between one and where it belongs. */
static void close_gap(struct sequitur *s, size_t gap)
{
	size_t mask = s->places - 1;

	for (size_t at = (gap + 1) & mask; s->table[at].first; at = (at + 1) & mask) {
		size_t home = home_of(s, s->table[at].pair);

		if (((at - home) & mask) < ((at - gap) & mask))
			continue;
		s->table[gap] = s->table[at];
		gap = at;
	}
	s->table[gap].first = 0;
	s->pairs--;
}

static bool is_paired(const struct sequitur *s, uint32_t first)
{
	return AT(s, first).value < CUT && AT(s, AT(s, first).next).value < CUT;
}

static void forget_pair(struct sequitur *s, uint32_t first)
{
	struct place *at;

	if (!AT(s, first).next || !is_paired(s, first))
		return;
	at = find_pair(s, pair_at(s, first));
	if (at->first == first)
		close_gap(s, (size_t)(at - s->table));
}

/* ---- symbols ---- */

static uint32_t new_symbol(struct sequitur *s, uint32_t value)
{
	uint32_t i = s->free;

	if (i) {
		s->free = AT(s, i).next;
	} else {
		i = (uint32_t)s->symbols.n;
		vec_add(&s->symbols);
	}
	AT(s, i) = (struct symbol){0, 0, value};
	if ((value & KINDS) == RULE)
		s->rules.p[value & ~KINDS].uses++;
	s->live++;
	return i;
}

static void free_symbol(struct sequitur *s, uint32_t i)
{
	AT(s, i).next = s->free;
	s->free = i;
	s->live--;
}

/*
 * In the middle of a run of three equal symbols, of which one pair only is kept: when that goes,
 * the other must be kept in its place.
 */
static bool is_in_run(const struct sequitur *s, uint32_t i)
{
	const struct symbol *x = &AT(s, i);

	return x->prev && x->next && x->value < CUT && x->value == AT(s, x->prev).value &&
	       x->value == AT(s, x->next).value;
}

static void join(struct sequitur *s, uint32_t left, uint32_t right)
{
	if (AT(s, left).next) {
		forget_pair(s, left);
		if (is_in_run(s, right))
			keep_pair(s, right);
		if (is_in_run(s, left))
			keep_pair(s, AT(s, left).prev);
	}
	AT(s, left).next = right;
	AT(s, right).prev = left;
}

static void insert_behind(struct sequitur *s, uint32_t at, uint32_t i)
{
	uint32_t next = AT(s, at).next;

	join(s, i, next);
	join(s, at, i);
}

static void remove_symbol(struct sequitur *s, uint32_t i)
{
	struct symbol x = AT(s, i);

	join(s, x.prev, x.next);
	forget_pair(s, i);
	if ((x.value & KINDS) == RULE)
		s->rules.p[x.value & ~KINDS].uses--;
	free_symbol(s, i);
}

/* ---- rules ---- */

static bool is_guard(const struct sequitur *s, uint32_t i)
{
	return (AT(s, i).value & KINDS) == GUARD;
}

static uint32_t new_rule(struct sequitur *s)
{
	uint32_t number = (uint32_t)s->rules.n, guard;

	*vec_add(&s->rules) = (struct rule){0};
	guard = new_symbol(s, GUARD | number);
	AT(s, guard).prev = AT(s, guard).next = guard;
	s->rules.p[number].guard = guard;
	return number;
}

static bool check(struct sequitur *s, uint32_t first);

/* Two symbols from i on become one that stands for a rule. */
static void substitute(struct sequitur *s, uint32_t i, uint32_t rule)
{
	uint32_t before = AT(s, i).prev;

	remove_symbol(s, AT(s, before).next);
	remove_symbol(s, AT(s, before).next);
	insert_behind(s, before, new_symbol(s, RULE | rule));
	if (!check(s, before))
		check(s, AT(s, before).next);
}

/* The symbol, the only one of its rule, becomes what the rule consists of. */
static void expand(struct sequitur *s, uint32_t i)
{
	uint32_t rule = AT(s, i).value & ~KINDS, guard = s->rules.p[rule].guard;
	uint32_t left = AT(s, i).prev, right = AT(s, i).next;
	uint32_t first = AT(s, guard).next, last = AT(s, guard).prev;

	forget_pair(s, i);
	free_symbol(s, guard);
	s->rules.p[rule] = (struct rule){0};
	AT(s, i).next = 0;
	join(s, left, first);
	join(s, last, right);
	free_symbol(s, i);
	if (is_paired(s, last))
		keep_pair(s, last);
}

static uint32_t make_rule(struct sequitur *s, uint32_t i, uint32_t other)
{
	uint32_t rule = new_rule(s), guard = s->rules.p[rule].guard;
	uint32_t first = AT(s, i).value, second = AT(s, AT(s, i).next).value;

	insert_behind(s, guard, new_symbol(s, first));
	insert_behind(s, AT(s, guard).prev, new_symbol(s, second));
	substitute(s, other, rule);
	substitute(s, i, rule);
	keep_pair(s, AT(s, guard).next);
	return rule;
}

/* A pair that is there twice: a rule, which may be all that the other consists of. */
static void match(struct sequitur *s, uint32_t i, uint32_t other)
{
	uint32_t rule, first;

	if (is_guard(s, AT(s, other).prev) && is_guard(s, AT(s, AT(s, other).next).next)) {
		rule = AT(s, AT(s, other).prev).value & ~KINDS;
		substitute(s, i, rule);
	} else {
		rule = make_rule(s, i, other);
	}
	first = AT(s, s->rules.p[rule].guard).next;
	if ((AT(s, first).value & KINDS) == RULE &&
		s->rules.p[AT(s, first).value & ~KINDS].uses == 1)
		expand(s, first);
}

/* Whether the pair was there before, and the grammar changed. */
static bool check(struct sequitur *s, uint32_t first)
{
	struct place *at;
	uint64_t pair;

	if (!is_paired(s, first))
		return false;
	pair = pair_at(s, first);
	at = find_pair(s, pair);
	if (!at->first) {
		put_pair(s, at, pair, first);
		return false;
	}
	if (at->first == first || AT(s, at->first).next == first || AT(s, first).next == at->first)
		return false;
	match(s, first, at->first);
	return true;
}

/* ---- from outside ---- */

struct sequitur *sequitur_create(void)
{
	struct sequitur *s = xcalloc(1, sizeof *s);

	*vec_add(&s->symbols) = (struct symbol){0};
	grow_table(s);
	new_rule(s);
	return s;
}

void sequitur_destroy(struct sequitur *s)
{
	if (!s)
		return;
	vec_deinit(&s->symbols);
	vec_deinit(&s->rules);
	free(s->table);
	free(s);
}

static void append(struct sequitur *s, uint32_t value)
{
	uint32_t guard = s->rules.p[0].guard, last = AT(s, guard).prev;

	insert_behind(s, last, new_symbol(s, value));
	check(s, last);
}

void sequitur_add(struct sequitur *s, uint32_t terminal)
{
	append(s, terminal);
}

void sequitur_cut(struct sequitur *s)
{
	append(s, CUT | s->cuts++);
}

uint32_t sequitur_rules(const struct sequitur *s)
{
	return (uint32_t)s->rules.n;
}

size_t sequitur_symbols(const struct sequitur *s)
{
	size_t guards = 0;

	vec_each (r, &s->rules)
		guards += r->guard != 0;
	return s->live - guards;
}

bool sequitur_next(
	const struct sequitur *s, uint32_t rule, uint32_t *at, struct sequitur_symbol *out)
{
	uint32_t guard = s->rules.p[rule].guard;

	if (!guard)
		return false;
	*at = AT(s, *at ? *at : guard).next;
	if (is_guard(s, *at))
		return false;
	out->number = AT(s, *at).value & ~KINDS;
	out->kind = (AT(s, *at).value & KINDS) == RULE  ? SEQUITUR_RULE
		    : (AT(s, *at).value & KINDS) == CUT ? SEQUITUR_CUT
							: SEQUITUR_TERMINAL;
	return true;
}
