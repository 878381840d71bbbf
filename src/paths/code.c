#include "paths/code.h"

#include "edit/snippet.h"
#include "rt/routines.h"
#include "rt/rt.h"

#include <assert.h>

/* What a snippet does, in this order. Its arguments: where to count or how much to add; what v0
 * becomes; the routine of the table. */
enum {
	ADD = 1,
	COUNT = 2,   /* a path ends: that which v0 tells; */
	COUNTED = 4, /* that which is known; */
	HASH = 8,    /* that which v0 tells, in the table */
	BEGIN = 16,  /* a path begins */
	POINT = 32,  /* v0 becomes an address, */
	KEY = 64,    /* or a number */
	CALL = 0,    /* somebody is called, or comes back */
};

void paths_code_deinit(struct paths_code *c)
{
	for (int i = 0; i < CODE_TEXTS; i++) {
		snippet_destroy(c->snippets[i]);
		snippet_destroy(c->untimed[i]);
	}
}

/* ---- texts ---- */

static const char *base_of(const struct paths_code *c, unsigned what)
{
	if (c->records)
		return what & COUNT ? "v0 + v2 + a0" : "v0 + a0";
	return what & COUNT ? "v0 + a0" : "a0";
}

/* The clock is read first: what counting takes belongs to what comes next. */
static void write_end(const struct paths_code *c, unsigned what, bool timed, struct buf *b)
{
	const char *lock = c->atomic ? "atomic " : "", *base = base_of(c, what);

	if (timed)
		buf_printf(b, "t1 = rdtsc; t0 = t1; t0 -= v1; ");
	if (what & HASH)
		buf_printf(b, "t0 = v0; t0 += a0; call a2(t0); ");
	else
		buf_printf(b, "%s[%s] += 1; ", lock, base);
	if (timed)
		buf_printf(b, "%s[%s + 8] += t0; ", lock, base);
	if (timed && what & BEGIN)
		buf_printf(b, "v1 = t1; ");
}

static void write_text(const struct paths_code *c, unsigned what, bool timed, struct buf *b)
{
	bool ends = what & (COUNT | COUNTED | HASH);
	const char *variable = c->records ? "v2" : "v0";

	if (what == CALL)
		buf_printf(b, "t0 = rdtsc; t0 -= v1; v1 = t0; ");
	if (what & ADD)
		buf_printf(b, "%s += a0; ", variable);
	if (ends)
		write_end(c, what, timed, b);
	else if (timed && what & BEGIN)
		buf_printf(b, "v1 = rdtsc; ");
	if (what & POINT)
		buf_printf(b, "%s = &[a1]; ", variable);
	if (what & KEY)
		buf_printf(b, "%s = a1; ", variable);
	b->n -= 2; /* the last divider */
}

/* ---- places ---- */

struct inserting {
	struct paths_code *c;
	const struct paths_body *b;
	bool hashed;
};

/* Functions without v1 count, but measure nothing. */
static const struct snippet *snippet_for(struct inserting *in, unsigned what, bool timed)
{
	struct snippet **s = &in->c->snippets[what];
	struct buf text = {0};
	int rc = 0;

	if (!timed && in->c->metric)
		s = &in->c->untimed[what];
	if (!*s) {
		write_text(in->c, what, timed, &text);
		rc = snippet_create(buf_cstr(&text), s, NULL);
		buf_deinit(&text);
	}
	assert(!rc);
	(void)rc;
	return *s;
}

static void insert(struct inserting *in, const struct exact_place *at, unsigned what,
	const uint64_t *arguments)
{
	const struct snippet *s = snippet_for(in, what, in->b->timed);
	struct edit *e = in->c->edit;

	if (at->how == EXACT_AT_ENTRY)
		edit_at_entry(e, in->b->chosen->function, s, arguments);
	else if (at->how == EXACT_ON_EDGE)
		edit_on_edge(e, in->b->chosen->function, at->where, s, arguments);
	else if (at->how == EXACT_BEFORE)
		edit_before(e, in->b->chosen->function, at->where, s, arguments);
}

/* Where the counter of a path is. */
static uint64_t counter(const struct inserting *in, uint64_t number)
{
	uint64_t at = number * paths_code_stride(in->c) * RT_COUNTER;

	if (in->c->records)
		return at - in->b->below * RT_COUNTER;
	return at + in->c->words + in->b->model->first * RT_COUNTER;
}

/* What v0 becomes when the sum is so much. */
static uint64_t as_variable(const struct inserting *in, uint64_t sum)
{
	if (in->c->records)
		return sum * paths_code_stride(in->c) * RT_COUNTER;
	return in->hashed ? sum : counter(in, sum);
}

static uint64_t as_step(const struct inserting *in, uint64_t by)
{
	return in->hashed ? by : by * paths_code_stride(in->c) * RT_COUNTER;
}

/* A path of a hashed function that is known needs no table. */
static uint64_t fixed_counter(struct inserting *in, uint64_t number)
{
	uint64_t at = edit_data(in->c->edit, RT_COUNTER, RT_COUNTER);

	*vec_add(&in->b->model->fixed) =
		(struct path_fixed){number, (at - in->c->words) / RT_COUNTER};
	return at;
}

static void insert_end(struct inserting *in, const struct exact_place *at,
	const struct plan_step *end, unsigned begin, uint64_t becomes)
{
	if (end->op == PLAN_COUNTED)
		insert(in, at, COUNTED | begin,
			(uint64_t[]){in->hashed ? fixed_counter(in, end->by) : counter(in, end->by),
				becomes});
	else if (in->hashed)
		insert(in, at, HASH | begin,
			(uint64_t[]){in->b->model->first + end->by, becomes, RT_CALL_PATH});
	else
		insert(in, at, COUNT | begin,
			(uint64_t[]){in->c->records ? counter(in, end->by) : as_step(in, end->by),
				becomes});
}

static void insert_on_link(struct inserting *in, uint32_t link)
{
	const struct numbering *n = &in->b->chosen->numbering;
	const struct exact_place *at = &in->b->chosen->places.p[link];
	unsigned set = in->hashed || in->c->records ? KEY : POINT, begin = 0;
	struct plan_step step = in->b->chosen->plan.step[link], next = step;

	if (n->cut[link])
		next = in->b->chosen->plan.step[n->begins[link]];
	if (n->cut[link] || n->dag.edge[link].from == n->outside)
		begin = in->b->timed ? BEGIN : 0;
	if (next.op == PLAN_SET)
		begin |= set;
	if (step.op == PLAN_COUNT || step.op == PLAN_COUNTED)
		insert_end(in, at, &step, begin, as_variable(in, next.by));
	else if (step.op == PLAN_ADD)
		insert(in, at, ADD, (uint64_t[]){as_step(in, step.by)});
	else if (begin)
		insert(in, at, begin, (uint64_t[]){0, as_variable(in, next.by)});
}

/* ---- calls ---- */

static bool is_apart(const struct exact_function *f, uint32_t block)
{
	vec_each (l, &f->links)
		if (l->kind == EXACT_LINK_AWAY && l->from == block)
			return true;
	return false;
}

/* The clock stands still while others run. Calls that paths end at need nothing. */
static void insert_on_calls(struct inserting *in)
{
	const struct flow *flow = in->b->chosen->function->flow;
	const struct snippet *s = snippet_for(in, CALL, true);

	for (uint32_t i = 0; i < flow->nblocks; i++) {
		uint32_t last = flow->blocks[i].first + flow->blocks[i].count - 1;

		if (flow->blocks[i].end != FLOW_CALLS || is_apart(&in->b->model->graph, i))
			continue;
		edit_before(in->c->edit, in->b->chosen->function, last, s, NULL);
		edit_after_call(in->c->edit, in->b->chosen->function, last, s, NULL);
	}
}

void paths_code_insert(struct paths_code *c, const struct paths_body *b)
{
	struct inserting in = {.c = c, .b = b, .hashed = b->model->how == PATH_HOW_HASH};

	if (b->timed)
		insert_on_calls(&in);
	for (uint32_t i = 0; i < b->model->graph.links.n; i++)
		insert_on_link(&in, i);
}
