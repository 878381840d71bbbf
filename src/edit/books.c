#include "edit/books.h"

#include "base/hmap.h"
#include "edit/chords.h"
#include "edit/exact_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A procedure that ran. */
struct account {
	struct exact_function function;
	struct graph graph;
	struct chords chords;
	uint64_t *count;  /* by link */
	uint64_t *passed; /* the same, as far as losses leave it alone: at the outside */
	uint64_t *lost;   /* by block: calls that did not come back, as far as they are placed */
	int64_t *balance; /* by part */
	bool *open;       /* by part: the loss is not placed */
	uint64_t kinds[EXACT_LINK_KINDS];
	uint64_t gone;  /* at most so many calls of it did not come back */
	bool torn;      /* a counter is not a number */
	uint64_t doubt; /* a caller has lost so much, perhaps in here, where nothing shows it */
};

struct numbered {
	uint64_t start;
	uint32_t number; /* of the account; GRAPH_NONE: it did not run */
	uint32_t pad;
};

struct books {
	const struct books_source *source;
	uint64_t doubt;                 /* of all procedures without a balance */
	VEC(struct account *) accounts; /* chords point into them */
	struct hmap by_start;           /* struct numbered */
};

/* ---- opening ---- */

/* What goes in and out is counted, or belongs to a part that cannot have lost anything. */
static void sum_kinds(struct account *a)
{
	a->passed = xmemdup(a->count, (a->function.links.n + 1) * sizeof *a->passed);
	chords_solve(&a->chords, NULL, a->passed);
	for (size_t i = 0; i < a->function.links.n; i++)
		a->kinds[a->function.links.p[i].kind] += a->passed[i];
}

/*
 * What the register of a loop gained (exact_turns.h). If a signal ended the loop, its value at the
 * start is missing, and the number is none.
 */
static uint64_t of_link(struct account *a, const struct exact_link *l, uint64_t counter)
{
	int64_t gained = (int64_t)counter;

	if (!l->step)
		return counter;
	if (gained == INT64_MIN || gained % l->step || gained / l->step < 0) {
		a->torn = true;
		return 0;
	}
	return (uint64_t)(gained / l->step);
}

static int open_account(struct books *b, const struct exact_map_reader *r, const uint64_t *counters)
{
	struct account *a = xcalloc(1, sizeof *a);
	const struct exact_function *f = &a->function;
	struct graph_edge *edges;
	bool *counted;
	size_t next = r->first;
	int rc;

	*vec_add(&b->accounts) = a;
	rc = exact_map_read(r, &a->function);
	if (rc)
		return rc;
	edges = xcalloc(f->links.n + 1, sizeof *edges);
	counted = xcalloc(f->links.n + 1, sizeof *counted);
	a->count = xcalloc(f->links.n + 1, sizeof *a->count);
	for (size_t i = 0; i < f->links.n; i++) {
		const struct exact_link *l = &f->links.p[i];

		edges[i] = (struct graph_edge){l->from, l->to};
		counted[i] = l->counted;
		a->count[i] = l->counted ? of_link(a, l, counters[next++]) : 0;
	}
	graph_init(&a->graph, exact_outside(f) + 1, edges, (uint32_t)f->links.n);
	rc = chords_recall(&a->chords, &a->graph, exact_outside(f), counted);
	a->lost = xcalloc(a->graph.nodes, sizeof *a->lost);
	free(edges);
	free(counted);
	if (!rc)
		sum_kinds(a);
	return rc;
}

static void close_account(struct account *a)
{
	exact_function_deinit(&a->function);
	chords_deinit(&a->chords);
	graph_deinit(&a->graph);
	free(a->count);
	free(a->passed);
	free(a->lost);
	free(a->balance);
	free(a->open);
	free(a);
}

static bool any_counted(const uint64_t *counters, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		if (counters[i])
			return true;
	return false;
}

static int open_books(struct books *b)
{
	const uint64_t *counters = b->source->counters;
	struct exact_map_reader r;
	int rc = exact_map_open(&r, b->source->map, b->source->size);

	if (!rc && r.counters > b->source->n)
		rc = -EBADMSG;
	while (!rc && (rc = exact_map_next(&r)) > 0) {
		struct numbered *known = hmap_put(&b->by_start, &r.start, NULL);

		known->number = GRAPH_NONE;
		rc = 0;
		if (!any_counted(counters + r.first, r.count))
			continue;
		known->number = (uint32_t)b->accounts.n;
		rc = open_account(b, &r, counters);
	}
	return rc;
}

/* ---- losses ---- */

/* How many calls of a block's callee did not come back at most; UINT64_MAX: nobody knows. */
static uint64_t gone_from(const struct books *b, const struct exact_block *block)
{
	const struct numbered *callee;

	if (block->call != EXACT_CALLS_COUNTED)
		return block->call == EXACT_CALLS_WILD ? UINT64_MAX : 0;
	callee = hmap_get(&b->by_start, &block->callee);
	if (!callee)
		return UINT64_MAX;
	return callee->number == GRAPH_NONE ? 0 : b->accounts.p[callee->number]->gone;
}

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* Who jumps to another procedure for good returns when that one does. */
static uint64_t gone_of(const struct books *b, const struct account *a)
{
	uint64_t back = a->kinds[EXACT_LINK_RETURN] + a->kinds[EXACT_LINK_TAIL];
	uint64_t gone = less(a->kinds[EXACT_LINK_ENTRY], back);

	for (size_t i = 0; i < a->function.links.n; i++) {
		const struct exact_link *l = &a->function.links.p[i];
		uint64_t most;

		if (l->kind != EXACT_LINK_TAIL || !a->passed[i] || l->from >= a->function.blocks.n)
			continue;
		most = gone_from(b, &a->function.blocks.p[l->from]);
		gone += most < a->passed[i] ? most : a->passed[i];
	}
	return gone;
}

/* Tails make chains, so it is done again until nothing changes. */
static void find_gone(struct books *b)
{
	bool changed = true;

	for (int round = 0; changed && round < 100; round++) {
		changed = false;
		vec_each (a, &b->accounts) {
			uint64_t gone = gone_of(b, *a);

			changed |= gone != (*a)->gone;
			(*a)->gone = gone;
		}
	}
}

/* Blocks that may have run: counted links that were never taken lead nowhere. */
static bool *find_reached(const struct account *a)
{
	const struct graph *g = &a->graph;
	bool *reached = xcalloc(g->nodes, sizeof *reached);
	uint32_t *stack = graph_numbers(g->nodes, 0), n = 0;

	stack[n++] = a->chords.outside;
	reached[a->chords.outside] = true;
	while (n) {
		uint32_t node = stack[--n];

		graph_each_out (e, g, node) {
			uint32_t to = g->edge[*e].to;

			if (reached[to] || (a->chords.counted[*e] && !a->count[*e]))
				continue;
			reached[to] = true;
			stack[n++] = to;
		}
	}
	free(stack);
	return reached;
}

/* A call that control comes back from, if it does: its block has a link inside. */
static bool is_call_inside(const struct account *a, uint32_t block)
{
	bool inside = false, tail = false;

	graph_each_out (e, &a->graph, block) {
		inside |= a->function.links.p[*e].kind == EXACT_LINK_INSIDE;
		tail |= a->function.links.p[*e].kind == EXACT_LINK_TAIL;
	}
	return inside && !tail && a->function.blocks.p[block].call != EXACT_CALLS_NOBODY;
}

/* The calls of a part that may not have come back, by how sure that is. */
struct suspects {
	uint32_t known, wild, outside; /* how many */
	uint32_t one;                  /* the last of the known and wild ones, else of outside */
	uint64_t most;                 /* that the known ones can have lost */
};

static void find_suspects(const struct books *b, const struct account *a, uint32_t part,
	const bool *reached, struct suspects *s)
{
	*s = (struct suspects){0};
	for (uint32_t i = 0; i < a->function.blocks.n; i++) {
		const struct exact_block *block = &a->function.blocks.p[i];
		uint64_t gone;

		if (!reached[i] || a->chords.part[i] != part || !is_call_inside(a, i))
			continue;
		gone = gone_from(b, block);
		if (!gone && block->call == EXACT_CALLS_OUTSIDE) {
			s->one = s->known + s->wild ? s->one : i;
			s->outside++;
		} else if (gone) {
			s->one = i;
			s->known += gone != UINT64_MAX;
			s->wild += gone == UINT64_MAX;
			s->most += gone != UINT64_MAX ? gone : 0;
		}
	}
}

/* Each of the known suspects lost all that its callee did not give back. */
static void place_at_known(
	const struct books *b, struct account *a, uint32_t part, const bool *reached)
{
	for (uint32_t i = 0; i < a->function.blocks.n; i++) {
		const struct exact_block *block = &a->function.blocks.p[i];
		uint64_t gone = gone_from(b, block);

		if (reached[i] && a->chords.part[i] == part && is_call_inside(a, i) &&
			gone != UINT64_MAX)
			a->lost[i] = gone;
	}
}

/* Whether it is known where the loss of a part is. */
static bool place_loss(const struct books *b, struct account *a, uint32_t part, const bool *reached,
	const struct suspects *s)
{
	uint64_t loss = (uint64_t)a->balance[part];

	if (a->balance[part] < 0)
		return false;
	if (s->known && !s->wild && s->most == loss)
		place_at_known(b, a, part, reached);
	else if (b->source->killed || (s->known == 1 && s->most < loss))
		return false;
	else if (s->known + s->wild == 1 || (!s->known && !s->wild && s->outside == 1))
		a->lost[s->one] = loss;
	else
		return false;
	return true;
}

/* What calls nobody has no balance: a signal may have ended it. */
static void doubt_callees(
	struct books *b, const struct account *a, uint32_t part, const bool *reached)
{
	uint64_t off = (uint64_t)(a->balance[part] < 0 ? -a->balance[part] : a->balance[part]);

	for (uint32_t i = 0; i < a->function.blocks.n; i++) {
		const struct exact_block *block = &a->function.blocks.p[i];
		const struct numbered *callee;

		if (!reached[i] || a->chords.part[i] != part)
			continue;
		if (block->call == EXACT_CALLS_WILD && b->source->killed)
			b->doubt += off; /* through a pointer it may have been any */
		if (block->call != EXACT_CALLS_COUNTED)
			continue;
		callee = hmap_get(&b->by_start, &block->callee);
		if (callee && callee->number != GRAPH_NONE)
			b->accounts.p[callee->number]->doubt += off;
	}
}

static void balance(struct books *b, struct account *a)
{
	bool *reached = NULL;
	struct suspects s;

	a->balance = xcalloc(a->chords.parts + 1, sizeof *a->balance);
	a->open = xcalloc(a->chords.parts + 1, sizeof *a->open);
	chords_balance(&a->chords, a->count, a->balance);
	for (uint32_t i = 0; i < a->chords.parts; i++) {
		if (!a->balance[i])
			continue;
		if (!reached)
			reached = find_reached(a);
		find_suspects(b, a, i, reached, &s);
		a->open[i] = !place_loss(b, a, i, reached, &s);
		if (a->open[i] && (b->source->killed || !(s.known + s.wild + s.outside)))
			doubt_callees(b, a, i, reached);
	}
	free(reached);
}

/* ---- closing ---- */

/* What a signal ended may have been in a loop whose counts never got to memory. */
#define UNBOUNDED UINT32_MAX

static bool holds(const struct account *a)
{
	vec_each (l, &a->function.links)
		if (l->held)
			return true;
	return false;
}

/* By how much its counts may be off. */
static uint64_t doubt(const struct books *b, struct account *a)
{
	uint64_t off = 0;

	for (uint32_t i = 0; i < a->chords.parts; i++)
		if (!a->chords.balanced[i])
			off += a->doubt + b->doubt;
		else if (a->open[i])
			off += (uint64_t)(a->balance[i] < 0 ? -a->balance[i] : a->balance[i]);
	if (!chords_solve(&a->chords, a->lost, a->count) && !off)
		off = 1;
	return a->torn || (off && b->source->killed && holds(a)) ? UNBOUNDED : off;
}

static uint64_t block_count(const struct account *a, uint32_t block)
{
	uint64_t in = 0;

	graph_each_in (e, &a->graph, block)
		in += a->count[*e];
	return in;
}

static uint64_t add_blocks(const struct account *a, exact_rows *rows)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < a->function.blocks.n; i++) {
		const struct exact_block *b = &a->function.blocks.p[i];
		uint64_t count = block_count(a, i);

		if (b->padding)
			continue;
		*vec_add(rows) = (struct exact_row){
			a->function.start, EXACT_BLOCK, b->start, b->size, count};
		sum += count;
	}
	return sum;
}

/* The block that a link leaves. Of tables that jumps share it is not known which of them sent what,
 * so there is none. */
static uint32_t source_of(const struct account *a, const struct exact_link *l)
{
	if (l->from < a->function.blocks.n || l->from == exact_outside(&a->function) ||
		graph_in_degree(&a->graph, l->from) != 1)
		return l->from;
	return a->graph.edge[a->graph.in[a->graph.in_first[l->from]]].from;
}

static void add_edges(const struct account *a, exact_rows *rows)
{
	size_t n = a->function.blocks.n;

	for (size_t i = 0; i < a->function.links.n; i++) {
		const struct exact_link *l = &a->function.links.p[i];
		const struct exact_block *from;

		if (source_of(a, l) >= n || l->to >= n)
			continue;
		from = &a->function.blocks.p[source_of(a, l)];
		*vec_add(rows) = (struct exact_row){a->function.start, EXACT_EDGE,
			from->start + from->size - from->last, a->function.blocks.p[l->to].start,
			a->count[i]};
	}
}

/* Both ways of a branch may lead to one place. */
static void settle(exact_rows *rows, size_t from)
{
	size_t kept = from;

	qsort(rows->p + from, rows->n - from, sizeof *rows->p, exact_row_compare);
	for (size_t i = from; i < rows->n; i++) {
		if (kept > from && !exact_row_compare(&rows->p[kept - 1], &rows->p[i]))
			rows->p[kept - 1].count += rows->p[i].count;
		else
			rows->p[kept++] = rows->p[i];
	}
	rows->n = kept;
}

/* Where several count at once, a few in a hundred are lost; so much is always doubtful. */
#define SHARED_DOUBT 16

static uint64_t shared_doubt(const struct account *a)
{
	uint64_t most = 0;

	for (uint32_t i = 0; i < a->function.blocks.n; i++)
		most = block_count(a, i) > most ? block_count(a, i) : most;
	return most / SHARED_DOUBT + 1;
}

static void report(
	const struct books *b, struct account *a, exact_rows *rows, struct books_summary *sum)
{
	uint64_t off = doubt(b, a);
	size_t from = rows->n;

	if (b->source->shared && off < shared_doubt(a))
		off = shared_doubt(a);
	*vec_add(rows) = (struct exact_row){a->function.start, EXACT_PROCEDURE, 0, 0, off};
	sum->blocks += add_blocks(a, rows);
	add_edges(a, rows);
	settle(rows, from);
	sum->procedures++;
	sum->exact += !off;
}

int books_close(const struct books_source *source, exact_rows *rows, struct books_summary *sum)
{
	struct books b = {.source = source};
	int rc;

	*sum = (struct books_summary){0};
	hmap_init(&b.by_start, sizeof(struct numbered), sizeof(uint64_t));
	rc = open_books(&b);
	if (!rc)
		find_gone(&b);
	for (size_t i = 0; i < b.accounts.n && !rc; i++)
		balance(&b, b.accounts.p[i]);
	for (size_t i = 0; i < b.accounts.n && !rc; i++)
		report(&b, b.accounts.p[i], rows, sum);
	vec_each (a, &b.accounts)
		close_account(*a);
	vec_deinit(&b.accounts);
	hmap_deinit(&b.by_start);
	return rc;
}
