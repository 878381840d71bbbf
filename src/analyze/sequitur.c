#include "analyze/sequitur.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/mem.h"
#include "base/vec.h"

/* What a symbol stands for, in the two upper bits. */
#define RULE  GRAMMAR_RULE
#define CUT   GRAMMAR_CUT
#define GUARD (UINT32_C(3) << 30) /* closes the ring of a rule's symbols */
#define KINDS (UINT32_C(3) << 30)

struct symbol {
	uint32_t prev, next, value;
};

struct rule {
	uint32_t guard; /* symbol; 0: the rule is gone */
	uint32_t uses;  /* of one that is gone: the next such, + 1 */
};

/*
 * A pair that stands somewhere: its first symbol (0: the place is free), and part of its hash, so
 * that symbols are hardly looked at in vain.
 */
struct place {
	uint32_t tag, first;
};

/* Symbol 0 is nobody. Pairs are kept in a table of open addressing. */
struct sequitur {
	struct symbol *symbols;
	size_t n, space;
	VEC(struct rule) rules;
	uint32_t free;   /* symbols, linked by next */
	uint32_t unused; /* rules, + 1, linked by uses */
	size_t live, pairs, places;
	unsigned shift; /* of a hash, to be a place */
	struct place *table;
	uint32_t cuts;
};

#define AT(s, i) ((s)->symbols[i])

#define HUGE ((size_t)2 << 20)

/* What is looked at all over the place should need few entries of the machine's page tables. */
static void make_huge(void *p, size_t bytes)
{
	uintptr_t from = ((uintptr_t)p + HUGE - 1) & ~(HUGE - 1), to = (uintptr_t)p + bytes;

	if (to > from + HUGE)
		madvise((void *)from, (to - from) & ~(HUGE - 1), MADV_HUGEPAGE);
}

/* ---- the table of pairs ---- */

static uint64_t pair_at(const struct sequitur *s, uint32_t first)
{
	return (uint64_t)AT(s, first).value << 32 | AT(s, AT(s, first).next).value;
}

static uint32_t tag_of(uint64_t pair)
{
	return (uint32_t)(pair * 0x9e3779b97f4a7c15u >> 32);
}

static size_t home_of(const struct sequitur *s, uint32_t tag)
{
	return tag >> s->shift;
}

/* The place where a pair is kept, or one that is free. */
static struct place *find_pair(const struct sequitur *s, uint64_t pair)
{
	uint32_t tag = tag_of(pair);
	size_t at = home_of(s, tag);

	while (s->table[at].first &&
		(s->table[at].tag != tag || pair_at(s, s->table[at].first) != pair))
		at = (at + 1) & (s->places - 1);
	return &s->table[at];
}

static void move_place(struct sequitur *s, const struct place *p)
{
	size_t at = home_of(s, p->tag);

	while (s->table[at].first)
		at = (at + 1) & (s->places - 1);
	s->table[at] = *p;
}

static void grow_table(struct sequitur *s)
{
	struct place *old = s->table;
	size_t n = s->places;

	s->places = n ? 2 * n : 1024;
	s->shift = (unsigned)(32 - __builtin_ctzll(s->places));
	s->table = xcalloc(s->places, sizeof *s->table);
	make_huge(s->table, s->places * sizeof *s->table);
	for (size_t i = 0; i < n; i++)
		if (old[i].first)
			move_place(s, &old[i]);
	free(old);
}

static void put_pair(struct sequitur *s, struct place *at, uint64_t pair, uint32_t first)
{
	s->pairs += !at->first;
	*at = (struct place){tag_of(pair), first};
	if (s->pairs * 3 >= s->places * 2)
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
		size_t home = home_of(s, s->table[at].tag);

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

/* Unless it is kept for another one. */
static void forget_pair(struct sequitur *s, uint32_t first)
{
	size_t at;

	if (!AT(s, first).next || !is_paired(s, first))
		return;
	at = home_of(s, tag_of(pair_at(s, first)));
	while (s->table[at].first && s->table[at].first != first)
		at = (at + 1) & (s->places - 1);
	if (s->table[at].first)
		close_gap(s, at);
}

/* ---- symbols ---- */

static uint32_t add_symbol(struct sequitur *s)
{
	if (s->n == s->space) {
		s->space = s->space ? 2 * s->space : 1024;
		s->symbols = xrealloc(s->symbols, s->space * sizeof *s->symbols);
		make_huge(s->symbols, s->space * sizeof *s->symbols);
	}
	return (uint32_t)s->n++;
}

static uint32_t new_symbol(struct sequitur *s, uint32_t value)
{
	uint32_t i = s->free;

	if (i)
		s->free = AT(s, i).next;
	else
		i = add_symbol(s);
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

/* Of a left one whose pair is not kept. */
static void join_unkept(struct sequitur *s, uint32_t left, uint32_t right)
{
	if (is_in_run(s, right))
		keep_pair(s, right);
	if (is_in_run(s, left))
		keep_pair(s, AT(s, left).prev);
	AT(s, left).next = right;
	AT(s, right).prev = left;
}

static void join(struct sequitur *s, uint32_t left, uint32_t right)
{
	if (AT(s, left).next) {
		forget_pair(s, left);
		join_unkept(s, left, right);
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

/* One that its neighbours do not lead to any more, and whose pair is not kept. */
static void drop_unkept(struct sequitur *s, uint32_t i)
{
	uint32_t value = AT(s, i).value;

	if ((value & KINDS) == RULE)
		s->rules.p[value & ~KINDS].uses--;
	free_symbol(s, i);
}

static void drop_symbol(struct sequitur *s, uint32_t i)
{
	forget_pair(s, i);
	drop_unkept(s, i);
}

/* ---- rules ---- */

static bool is_guard(const struct sequitur *s, uint32_t i)
{
	return (AT(s, i).value & KINDS) == GUARD;
}

static uint32_t new_rule(struct sequitur *s)
{
	uint32_t number = s->unused ? s->unused - 1 : (uint32_t)s->rules.n, guard;

	if (s->unused)
		s->unused = s->rules.p[number].uses;
	else
		vec_add(&s->rules);
	s->rules.p[number] = (struct rule){0};
	guard = new_symbol(s, GUARD | number);
	AT(s, guard).prev = AT(s, guard).next = guard;
	s->rules.p[number].guard = guard;
	return number;
}

static bool check(struct sequitur *s, uint32_t first);

/*
 * Two symbols from i on become one that stands for a rule. Their pair is kept for the rule already,
 * unless they are equal: in a run it may be theirs again. The pairs that the one before makes
 * meanwhile with what comes up were never kept.
 */
static void substitute(struct sequitur *s, uint32_t i, uint32_t rule)
{
	uint32_t before = AT(s, i).prev, second = AT(s, i).next, behind = AT(s, second).next, fresh;

	join(s, before, second);
	if (AT(s, i).value == AT(s, second).value)
		forget_pair(s, i);
	drop_unkept(s, i);
	join_unkept(s, before, behind);
	drop_symbol(s, second);
	fresh = new_symbol(s, RULE | rule);
	join(s, fresh, behind);
	join_unkept(s, before, fresh);
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
	s->rules.p[rule] = (struct rule){.uses = s->unused};
	s->unused = rule + 1;
	AT(s, i).next = 0;
	join(s, left, first);
	join(s, last, right);
	free_symbol(s, i);
	if (is_paired(s, last))
		keep_pair(s, last);
}

static void ask_for_pair(const struct sequitur *s, uint32_t first, uint32_t second)
{
	__builtin_prefetch(&s->table[home_of(s, tag_of((uint64_t)first << 32 | second))]);
}

/* The pairs that come and go when two symbols become one: all are asked for at once. */
static void ask_for_pairs(const struct sequitur *s, uint32_t i, uint32_t rule)
{
	const struct symbol *x = &AT(s, i), *next = &AT(s, x->next);
	uint32_t before = AT(s, x->prev).value, behind = AT(s, next->next).value;

	ask_for_pair(s, before, x->value);
	ask_for_pair(s, next->value, behind);
	ask_for_pair(s, before, RULE | rule);
	ask_for_pair(s, RULE | rule, behind);
}

static uint32_t make_rule(struct sequitur *s, uint32_t i, struct place *at)
{
	uint32_t rule = new_rule(s), guard = s->rules.p[rule].guard, other = at->first;
	uint32_t first = AT(s, i).value, second = AT(s, AT(s, i).next).value;

	ask_for_pairs(s, other, rule);
	ask_for_pairs(s, i, rule);
	insert_behind(s, guard, new_symbol(s, first));
	insert_behind(s, AT(s, guard).prev, new_symbol(s, second));
	at->first = AT(s, guard).next;
	substitute(s, other, rule);
	substitute(s, i, rule);
	if (first == second)
		keep_pair(s, AT(s, guard).next);
	return rule;
}

/*
 * Whether a pair that is there twice begins with a rule that is used nowhere else. A new rule for
 * the pair would be the only one to use it, so it would be taken apart at once: what follows it in
 * both places is put to its end instead. So it is with every terminal while a sequence goes on as
 * it did before.
 */
static bool goes_on(const struct sequitur *s, uint32_t i)
{
	uint32_t value = AT(s, i).value;

	return (value & KINDS) == RULE && s->rules.p[value & ~KINDS].uses == 2;
}

/* The symbol behind another goes; the pair of the two is not kept. */
static void drop_behind(struct sequitur *s, uint32_t i)
{
	uint32_t second = AT(s, i).next, behind = AT(s, second).next;

	join_unkept(s, i, behind);
	drop_symbol(s, second);
}

/* What will be looked for if both places go on alike. */
static void ask_for_next(const struct sequitur *s, uint32_t last, uint32_t other)
{
	const struct symbol *next = &AT(s, AT(s, other).next);
	uint32_t behind = AT(s, next->next).value;

	ask_for_pair(s, AT(s, last).value, next->value);
	ask_for_pair(s, next->value, behind);
	ask_for_pair(s, AT(s, other).value, behind);
}

static void lengthen(struct sequitur *s, uint32_t i, struct place *at)
{
	uint32_t guard = s->rules.p[AT(s, i).value & ~KINDS].guard, last = AT(s, guard).prev;
	uint32_t fresh = new_symbol(s, AT(s, AT(s, i).next).value), other = at->first;

	close_gap(s, (size_t)(at - s->table));
	AT(s, last).next = AT(s, guard).prev = fresh;
	AT(s, fresh).prev = last;
	AT(s, fresh).next = guard;
	drop_behind(s, other);
	drop_behind(s, i);
	keep_pair(s, last);
	ask_for_next(s, fresh, other);
	check(s, other);
	check(s, i);
}

/* A pair that is there twice: a rule, which may be all that the other consists of. */
static void match(struct sequitur *s, uint32_t i, struct place *at)
{
	uint32_t other = at->first, rule, first;

	if (is_guard(s, AT(s, other).prev) && is_guard(s, AT(s, AT(s, other).next).next)) {
		rule = AT(s, AT(s, other).prev).value & ~KINDS;
		ask_for_pairs(s, i, rule);
		substitute(s, i, rule);
	} else if (goes_on(s, i)) {
		lengthen(s, i, at);
		return;
	} else {
		rule = make_rule(s, i, at);
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
	match(s, first, at);
	return true;
}

/* ---- from outside ---- */

struct sequitur *sequitur_create(void)
{
	struct sequitur *s = xcalloc(1, sizeof *s);

	add_symbol(s);
	AT(s, 0) = (struct symbol){0};
	grow_table(s);
	new_rule(s);
	return s;
}

void sequitur_destroy(struct sequitur *s)
{
	if (!s)
		return;
	free(s->symbols);
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

#define AHEAD 12 /* terminals: so long a word takes from memory */

static size_t home_of_two(const struct sequitur *s, const uint32_t *terminals)
{
	return home_of(s, tag_of((uint64_t)terminals[0] << 32 | terminals[1]));
}

/* The place of each pair is asked for before its turn comes, then the symbol that stands there. */
void sequitur_add_all(struct sequitur *s, const uint32_t *terminals, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (i + AHEAD + 1 < n)
			__builtin_prefetch(&s->table[home_of_two(s, terminals + i + AHEAD)]);
		if (i + AHEAD / 2 + 1 < n)
			__builtin_prefetch(
				&AT(s, s->table[home_of_two(s, terminals + i + AHEAD / 2)].first));
		append(s, terminals[i]);
	}
}

void sequitur_cut(struct sequitur *s)
{
	append(s, CUT | s->cuts++);
}

size_t sequitur_symbols(const struct sequitur *s)
{
	size_t guards = 0;

	vec_each (r, &s->rules)
		guards += r->guard != 0;
	return s->live - guards;
}

void sequitur_grammar(const struct sequitur *s, struct grammar *out)
{
	vec_each (r, &s->rules) {
		*vec_add(&out->begins) = (uint32_t)out->symbols.n;
		for (uint32_t i = r->guard ? AT(s, r->guard).next : 0; i && !is_guard(s, i);
			i = AT(s, i).next)
			*vec_add(&out->symbols) =
				(AT(s, i).value & KINDS) == CUT ? GRAMMAR_CUT : AT(s, i).value;
	}
}
