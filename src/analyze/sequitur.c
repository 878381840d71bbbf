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

/* Symbol 0 is nobody. Pairs are kept by their first symbol, in a table of open addressing. */
struct sequitur {
	VEC(struct symbol) symbols;
	VEC(struct rule) rules;
	uint32_t free; /* symbols, linked by next */
	size_t live, pairs, places;
	uint32_t *table;
	uint32_t cuts;
};

#define AT(s, i) ((s)->symbols.p[i])

/* ---- the table of pairs ---- */

static size_t place_of(const struct sequitur *s, uint32_t first)
{
	uint64_t pair = (uint64_t)AT(s, first).value << 32 | AT(s, AT(s, first).next).value;

	return (size_t)(pair * 0x9e3779b97f4a7c15u >> 20) & (s->places - 1);
}

static bool is_same_pair(const struct sequitur *s, uint32_t a, uint32_t b)
{
	return AT(s, a).value == AT(s, b).value &&
	       AT(s, AT(s, a).next).value == AT(s, AT(s, b).next).value;
}

static void put_first(struct sequitur *s, uint32_t first)
{
	size_t at = place_of(s, first);

	while (s->table[at])
		at = (at + 1) & (s->places - 1);
	s->table[at] = first;
	s->pairs++;
}

static void grow_table(struct sequitur *s)
{
	uint32_t *old = s->table;
	size_t n = s->places;

	s->places = n ? 2 * n : 1024;
	s->table = xcalloc(s->places, sizeof *s->table);
	s->pairs = 0;
	for (size_t i = 0; i < n; i++)
		if (old[i])
			put_first(s, old[i]);
	free(old);
}

/* The place where an equal pair is kept, or one that is free. */
static size_t find_pair(const struct sequitur *s, uint32_t first)
{
	size_t at = place_of(s, first);

	while (s->table[at] && !is_same_pair(s, s->table[at], first))
		at = (at + 1) & (s->places - 1);
	return at;
}

static void keep_pair(struct sequitur *s, uint32_t first)
{
	size_t at;

	if (s->pairs * 2 >= s->places)
		grow_table(s);
	at = find_pair(s, first);
	s->pairs += !s->table[at];
	s->table[at] = first;
}

/* Those behind it move up, so that no place is free between one and where it belongs. */
static void close_gap(struct sequitur *s, size_t gap)
{
	size_t mask = s->places - 1;

	for (size_t at = (gap + 1) & mask; s->table[at]; at = (at + 1) & mask) {
		size_t home = place_of(s, s->table[at]);

		if (((at - home) & mask) < ((at - gap) & mask))
			continue;
		s->table[gap] = s->table[at];
		gap = at;
	}
	s->table[gap] = 0;
	s->pairs--;
}

static bool is_paired(const struct sequitur *s, uint32_t first)
{
	return AT(s, first).value < CUT && AT(s, AT(s, first).next).value < CUT;
}

static void forget_pair(struct sequitur *s, uint32_t first)
{
	size_t at;

	if (!AT(s, first).next || !is_paired(s, first))
		return;
	at = find_pair(s, first);
	if (s->table[at] == first)
		close_gap(s, at);
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
	size_t at;

	if (!is_paired(s, first))
		return false;
	if (s->pairs * 2 >= s->places)
		grow_table(s);
	at = find_pair(s, first);
	if (!s->table[at]) {
		s->table[at] = first;
		s->pairs++;
		return false;
	}
	if (AT(s, s->table[at]).next == first || AT(s, first).next == s->table[at])
		return false;
	if (s->table[at] == first)
		return false;
	match(s, first, s->table[at]);
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
