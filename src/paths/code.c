#include "paths/code.h"

#include "base/mem.h"
#include "edit/snippet.h"
#include "edit/threads.h"
#include "rt/routines.h"
#include "rt/rt.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* What a snippet does, in this order. */
enum {
	ADD = 1,
	COUNT = 2,   /* a path ends: that which v0 tells; */
	COUNTED = 4, /* that which is known; */
	HASH = 8,    /* that which v0 tells, in the table */
	BEGIN = 16,  /* a path begins */
	POINT = 32,  /* v0 becomes an address, */
	KEY = 64,    /* or a number */
	GIVES = 128, /* what is read is left for whom control goes to */
	TAKES = 256, /* nothing is read: somebody left it */
	FIND = 512,  /* the record has to be found */
	CALL = 0,    /* somebody is called, or comes back; */
	MOVE = 0,    /* where nothing is measured: the variable goes over */
};
_Static_assert(CODE_TEXTS == 2 * FIND, "each has its place");

/* Arguments: where to count or how much to add; what v0 becomes; routines; what is known of
 * threads. With records there is one routine of the table, and what finds them. */
enum { AT, BECOMES, TABLE, TABLE_SECOND, THREADS = 6, ROUTINE = MEASURE_ARGUMENT, ARGUMENTS };
enum { FINDING = TABLE_SECOND };
#define FIND_THREAD THREADS_FIND("t5", "a6")
_Static_assert(FINDING + CODE_FINDING == ROUTINE, "they have room");

/* What is done for loops whose turns are counted. */
enum { TURN, TURN_BEGIN, TURN_END, TURN_END_KNOWN };

void paths_code_deinit(struct paths_code *c)
{
	for (int i = 0; i < 4; i++)
		for (int k = 0; k < 4; k++)
			snippet_destroy(c->turns[i][k / 2][k % 2]);
	snippet_destroy(c->moves[0]);
	snippet_destroy(c->moves[1]);
	vec_deinit(&c->loops);
	for (int i = 0; i < CODE_TEXTS; i++) {
		snippet_destroy(c->snippets[i]);
		for (int k = 0; k < 4; k++)
			snippet_destroy(c->unmeasured[k][i]);
	}
}

/* ---- texts ---- */

static const char *variable(const struct paths_code *c, bool fast)
{
	return fast ? "v5" : c->records ? "v2" : "v0";
}

static const char *base_of(const struct paths_code *c, unsigned what, bool fast)
{
	if (c->records && what & COUNT)
		return fast ? "v0 + v5 + a0" : "v0 + v2 + a0";
	if (c->threads && what & COUNT)
		return fast ? "v5 + t5 + a0" : "v0 + t5 + a0";
	if (what & COUNT)
		return fast ? "v5 + a0" : "v0 + a0";
	return c->records ? "v0 + a0" : c->threads ? "a0 + t5" : "a0";
}

/* The variable of what was read of a metric when the path began. */
static unsigned begun(const struct paths_code *c, unsigned which)
{
	return (c->records ? 3 : 1) + which;
}

/* Where a reading is passed on. */
static unsigned word(unsigned which)
{
	return RT_WORD(RT_WORD_CLOCK + which);
}

/* One of the metrics, to a register; by the one who was here before, or for the one who comes. */
static void write_reading(
	const struct paths_code *c, unsigned what, unsigned which, const char *to, struct buf *b)
{
	if (what & TAKES)
		buf_printf(b, "%s = tls[%u]; ", to, word(which));
	else
		measure_text(&c->measures, which, to, b);
	if (what & GIVES)
		buf_printf(b, "tls[%u] = %s; ", word(which), to);
}

/* base: of the counter; NULL: it is in the table, and t3 its key. */
static void write_sums(const struct paths_code *c, unsigned what, const char *base, struct buf *b)
{
	const char *lock = c->atomic ? "atomic " : "";

	for (unsigned i = 0; i < c->measures.n; i++) {
		buf_printf(b, "t0 = t%u; t0 -= v%u; ", 1 + i, begun(c, i));
		if (base)
			buf_printf(b, "%s[%s + %u] += t0; ", lock, base, 8 + 8 * i);
		else
			buf_printf(b, "call a%d(t3, t0); ", i ? TABLE_SECOND : TABLE);
		if (what & BEGIN)
			buf_printf(b, "v%u = t%u; ", begun(c, i), 1 + i);
	}
}

/* Has where the counter in a record is in t4, if that takes more than an address or is needed more
 * than once. Returns how it is addressed. */
static const char *write_place(
	const struct paths_code *c, unsigned what, bool measured, bool fast, struct buf *b)
{
	const char *record = what & FIND ? "t4" : "v0";

	if (what & FIND)
		buf_printf(b, "%s", c->finds);
	if (what & HASH && what & COUNTED)
		buf_printf(b, "t4 = call a%d(%s, a0); ", TABLE, record);
	else if (what & HASH)
		buf_printf(b, "t3 = %s; t3 += a0; t4 = call a%d(%s, t3); ", variable(c, fast),
			TABLE, record);
	else if (what & FIND)
		return "t4 + a0";
	else if (measured)
		buf_printf(b, "t4 = &[%s]; ", base_of(c, what, fast));
	return what & HASH || measured ? "t4" : base_of(c, what, fast);
}

/* It is read first: what counting takes belongs to what comes next. */
static void write_end(
	const struct paths_code *c, unsigned what, bool measured, bool fast, struct buf *b)
{
	bool hashed = what & HASH && !c->records;
	const char *base = hashed ? NULL : base_of(c, what, fast);

	for (unsigned i = 0; measured && i < c->measures.n; i++)
		write_reading(c, what, i, i ? "t2" : "t1", b);
	if (c->records)
		base = write_place(c, what, measured, fast, b);
	else if (c->threads && !hashed)
		buf_printf(b, FIND_THREAD);
	if (hashed)
		buf_printf(b, "t3 = v0; t3 += a0; ");
	else
		buf_printf(b, "%s[%s] += 1; ", c->atomic ? "atomic " : "", base);
	if (measured)
		write_sums(c, what, base, b);
	else if (hashed)
		buf_printf(b, "call a%d(t3, 0); ", TABLE);
}

static void write_call(const struct paths_code *c, unsigned what, struct buf *b)
{
	for (unsigned i = 0; i < c->measures.n; i++) {
		write_reading(c, what, i, "t0", b);
		buf_printf(b, "t0 -= v%u; v%u = t0; ", begun(c, i), begun(c, i));
	}
}

/* What does not end where it is goes on in the variable of where it leads to. */
static void write_text(
	const struct paths_code *c, unsigned what, bool measured, unsigned fast, struct buf *b)
{
	bool ends = what & (COUNT | COUNTED | HASH);
	const char *from = variable(c, fast & CODE_FROM), *to = variable(c, fast & CODE_TO);

	if (measured && !(what & ~(unsigned)(GIVES | TAKES)))
		write_call(c, what, b);
	if (!measured && !(what & ~(unsigned)ADD) && from != to)
		buf_printf(b, "%s = %s; ", to, from);
	if (what & ADD)
		buf_printf(b, "%s += a0; ", to);
	if (ends)
		write_end(c, what, measured, fast & CODE_FROM, b);
	for (unsigned i = 0; !ends && what & BEGIN && i < c->measures.n; i++) {
		char name[] = {'v', (char)('0' + begun(c, i)), 0};

		write_reading(c, what, i, name, b);
	}
	if (what & POINT)
		buf_printf(b, "%s = &[a1]; ", to);
	if (what & KEY)
		buf_printf(b, "%s = a1; ", to);
	b->n -= 2; /* the last divider */
}

/* ---- places ---- */

struct inserting {
	struct paths_code *c;
	const struct paths_body *b;
	bool hashed;
	unsigned fast; /* CODE_*, of the link */
};

/* Functions without v1 count, but measure nothing. */
static const struct snippet *snippet_for(struct inserting *in, unsigned what)
{
	bool measured = in->b->measured;
	struct snippet **s = measured ? &in->c->snippets[what] : &in->c->unmeasured[in->fast][what];
	struct buf text = {0};
	int rc = 0;

	if (!*s) {
		write_text(in->c, what, measured, in->fast, &text);
		rc = snippet_create(buf_cstr(&text), s, NULL);
		buf_deinit(&text);
	}
	assert(!rc);
	(void)rc;
	return *s;
}

static void fill_arguments(const struct inserting *in, uint64_t *arguments)
{
	arguments[TABLE] = in->c->records ? RT_CALL_CONTEXT_PATH : RT_CALL_PATH;
	arguments[TABLE_SECOND] = RT_CALL_PATH_SECOND;
	arguments[THREADS] = in->c->threads;
	arguments[ROUTINE] = MEASURE_ROUTINE;
	if (in->b->finding)
		memcpy(arguments + FINDING, in->b->finding, CODE_FINDING * sizeof *arguments);
}

static void insert(struct inserting *in, const struct exact_place *at, unsigned what,
	uint64_t where, uint64_t becomes)
{
	const struct snippet *s = snippet_for(in, what);
	struct edit_function *f = in->b->chosen->function;
	uint64_t arguments[ARGUMENTS] = {[AT] = where, [BECOMES] = becomes};
	struct edit *e = in->c->edit;

	fill_arguments(in, arguments);

	if (at->how == EXACT_AT_ENTRY)
		edit_at_entry(e, f, s, arguments);
	else if (at->how == EXACT_ON_EDGE)
		edit_on_edge(e, f, at->where, s, arguments);
	else if (at->how == EXACT_BEFORE)
		edit_before(e, f, at->where, s, arguments);
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
	if (in->hashed)
		return sum;
	return in->c->records ? sum * paths_code_stride(in->c) * RT_COUNTER : counter(in, sum);
}

static uint64_t as_step(const struct inserting *in, uint64_t by)
{
	return in->hashed ? by : by * paths_code_stride(in->c) * RT_COUNTER;
}

/* A path of a hashed function that is known needs no table. */
static uint64_t fixed_counter(struct inserting *in, uint64_t number)
{
	uint64_t at = edit_data(in->c->edit, paths_code_stride(in->c) * RT_COUNTER, RT_COUNTER);

	*vec_add(&in->b->model->fixed) =
		(struct path_fixed){number, (at - in->c->words) / RT_COUNTER};
	return at;
}

static void insert_end(struct inserting *in, const struct exact_place *at,
	const struct plan_step *end, unsigned begin, uint64_t becomes)
{
	unsigned known = COUNTED | (in->b->finding ? FIND : 0);

	if (in->hashed && in->c->records)
		insert(in, at, (end->op == PLAN_COUNTED ? HASH | known : HASH) | begin, end->by,
			becomes);
	else if (end->op == PLAN_COUNTED)
		insert(in, at, known | begin,
			in->hashed ? fixed_counter(in, end->by) : counter(in, end->by), becomes);
	else if (in->hashed)
		insert(in, at, HASH | begin, in->b->model->first + end->by, becomes);
	else
		insert(in, at, COUNT | begin,
			in->c->records ? counter(in, end->by) : as_step(in, end->by), becomes);
}

/* ---- readings that are passed on ---- */

/* Whom a block calls or jumps to, if he is known to take what is left for him. */
static bool callee_takes(const struct inserting *in, uint32_t block)
{
	const struct flow *flow = in->b->chosen->function->flow;
	size_t callee = block < flow->nblocks ? handover_callee(&in->b->chosen->scene,
							&flow->insns[flow->blocks[block].first +
								     flow->blocks[block].count - 1])
					      : in->b->chosen->scene.n;

	return callee < in->b->chosen->scene.n && in->c->handover->takes[callee];
}

static unsigned passing(const struct inserting *in, const struct exact_link *link)
{
	const struct handover *h = in->c->handover;

	if (!in->b->measured)
		return 0;
	switch (link->kind) {
	case EXACT_LINK_ENTRY:
		return h->takes[in->b->number] ? TAKES : 0;
	case EXACT_LINK_RETURN:
		return h->gives[in->b->number] ? GIVES : 0;
	case EXACT_LINK_TAIL:
	case EXACT_LINK_STOP:
	case EXACT_LINK_AWAY:
		return callee_takes(in, link->from) ? GIVES : 0;
	default:
		return 0;
	}
}

/* Ways in and out have one end only. */
static unsigned fast_ends(const struct choosing *c, uint32_t link)
{
	const struct exact_link *l = &c->model.graph.links.p[link];
	uint32_t outside = exact_outside(&c->model.graph);
	bool from = c->fast.p[l->from == outside ? l->to : l->from];
	bool to = c->fast.p[l->to == outside ? l->from : l->to];

	return (from ? CODE_FROM : 0) | (to ? CODE_TO : 0);
}

static bool goes_over(const struct inserting *in, uint32_t link)
{
	const struct choosing *c = in->b->chosen;
	struct graph_edge e = c->numbering.dag.edge[link];

	return (in->fast == CODE_FROM || in->fast == CODE_TO) && !c->numbering.cut[link] &&
	       e.from != c->numbering.outside && e.to != c->numbering.outside &&
	       c->plan.held[e.from] && c->plan.held[e.to];
}

static void insert_on_link(struct inserting *in, uint32_t link)
{
	const struct numbering *n = &in->b->chosen->numbering;
	const struct exact_place *at = &in->b->chosen->places.p[link];
	unsigned set = in->hashed || in->c->records ? KEY : POINT, begin = 0;
	struct plan_step step = in->b->chosen->plan.step[link], next = step;

	in->fast = in->b->measured ? 0 : fast_ends(in->b->chosen, link);
	if (n->cut[link])
		next = in->b->chosen->plan.step[n->begins[link]];
	if (n->cut[link] || n->dag.edge[link].from == n->outside)
		begin = in->b->measured ? BEGIN : 0;
	if (next.op == PLAN_SET)
		begin |= set;
	if (begin || step.op == PLAN_COUNT || step.op == PLAN_COUNTED)
		begin |= passing(in, &in->b->model->graph.links.p[link]);
	if (step.op == PLAN_COUNT || step.op == PLAN_COUNTED)
		insert_end(in, at, &step, begin, as_variable(in, next.by));
	else if (step.op == PLAN_ADD)
		insert(in, at, ADD, as_step(in, step.by), 0);
	else if (begin)
		insert(in, at, begin, 0, as_variable(in, next.by));
	else if (goes_over(in, link))
		insert(in, at, MOVE, 0, 0);
}

/* Before all else on the ways into loops that borrow a register, and behind it on those out. */
static void insert_borrowing(struct inserting *in, bool into)
{
	static const char *const texts[] = {"v5 = v6", "v6 = v5"};
	const struct choosing *c = in->b->chosen;
	bool saves;
	int rc = 0;

	if (!in->c->moves[into])
		rc = snippet_create(texts[into], &in->c->moves[into], NULL);
	assert(!rc);
	(void)rc;
	for (uint32_t i = 0; i < c->function->flow->graph.edges; i++)
		if (fast_borrows(c, i, &saves) && saves == into)
			edit_on_edge(in->c->edit, c->function, i, in->c->moves[into], NULL);
}

/* ---- turns ---- */

/*
 * Leaving after n turns: n - 1 went around. The first of these ended the path that came in, in a0;
 * the others are the path of a1, and the one that leaves begins where v0 becomes a2.
 */
static void write_turn(
	const struct paths_code *c, int what, bool borrowed, bool fast, struct buf *b)
{
	const char *lock = c->atomic ? "atomic " : "", *known = c->records   ? "v0 + a1"
								: c->threads ? "a1 + t5"
									     : "a1";

	if (c->threads && (what == TURN_END || what == TURN_END_KNOWN))
		buf_printf(b, FIND_THREAD);
	switch (what) {
	case TURN:
		buf_printf(b, "v3 += 1");
		return;
	case TURN_BEGIN:
		buf_printf(b, "%sv3 = 0", borrowed ? "v4 = v3; " : "");
		return;
	case TURN_END:
		buf_printf(b, "if v3 == 1 goto on; %s[%s] += 1; v3 -= 2; %s[%s] += v3; ", lock,
			base_of(c, COUNT, fast), lock, known);
		buf_printf(b, c->records ? "%s = a2; on: " : "%s = &[a2]; on: ", variable(c, fast));
		break;
	default:
		buf_printf(b, "v3 -= 1; %s[%s] += v3; ", lock, known);
	}
	if (borrowed)
		buf_printf(b, "v3 = v4");
}

static const struct snippet *turn_snippet(
	struct paths_code *c, int what, const struct turn_loop *t, bool fast)
{
	struct snippet **s = &c->turns[what][t->borrowed][fast];
	struct buf text = {0};
	int rc = 0;

	if (!*s) {
		write_turn(c, what, t->borrowed, fast, &text);
		rc = snippet_create(buf_cstr(&text), s, NULL);
		buf_deinit(&text);
	}
	assert(!rc);
	(void)rc;
	return *s;
}

static void insert_turns(struct inserting *in, const struct turn_loop *t)
{
	const struct choosing *chosen = in->b->chosen;
	const struct exact_place *places = chosen->places.p;
	struct plan_step end = chosen->plan.step[t->around];
	uint64_t again = chosen->plan.step[chosen->numbering.begins[t->around]].by;
	bool known = end.op == PLAN_COUNTED, fast = chosen->fast.p[t->block];
	uint64_t at[ARGUMENTS] = {
		0, counter(in, known ? end.by : again + end.by), as_variable(in, again)};

	at[THREADS] = in->c->threads;
	if (!known)
		at[0] = in->c->records ? counter(in, end.by) : as_step(in, end.by);
	edit_before(in->c->edit, chosen->function, places[t->inside].where,
		turn_snippet(in->c, TURN, t, fast), NULL);
	edit_on_edge(in->c->edit, chosen->function, places[t->leaving].where,
		turn_snippet(in->c, known ? TURN_END_KNOWN : TURN_END, t, fast), at);
	for (uint32_t i = 0; i < in->b->model->graph.links.n; i++)
		if (in->b->model->graph.links.p[i].to == t->block && i != t->around)
			edit_on_edge(in->c->edit, chosen->function, places[i].where,
				turn_snippet(in->c, TURN_BEGIN, t, fast), NULL);
}

static bool is_around(const turn_loops *loops, uint32_t link)
{
	vec_each (t, loops)
		if (t->around == link)
			return true;
	return false;
}

/* ---- calls ---- */

/* What callees take is not the path's. Calls that paths end at need nothing. */
static void insert_on_call(struct inserting *in, uint32_t block)
{
	const struct choosing *c = in->b->chosen;
	const struct flow *flow = c->function->flow;
	uint32_t last = flow->blocks[block].first + flow->blocks[block].count - 1;
	size_t callee = handover_callee(&c->scene, &flow->insns[last]);
	bool known = callee < c->scene.n;
	unsigned before = known && in->c->handover->takes[callee] ? GIVES : 0;
	unsigned after = known && in->c->handover->gives[callee] ? TAKES : 0;
	uint64_t arguments[ARGUMENTS] = {0};

	fill_arguments(in, arguments);
	edit_before(in->c->edit, c->function, last, snippet_for(in, CALL | before), arguments);
	edit_after_call(in->c->edit, c->function, last, snippet_for(in, CALL | after), arguments);
	in->b->model->readings.p[block] = after ? 1 : 2;
}

/* Readings are told by block, and at the entry. */
static void insert_on_calls(struct inserting *in)
{
	const struct flow *flow = in->b->chosen->function->flow;
	struct path_function *m = in->b->model;

	for (uint32_t i = 0; i < flow->nblocks; i++)
		*vec_add(&m->readings) = 0;
	m->takes = in->c->handover->takes[in->b->number];
	for (uint32_t i = 0; i < flow->nblocks; i++)
		if (flow->blocks[i].end == FLOW_CALLS && !handover_is_apart(&m->graph, i))
			insert_on_call(in, i);
}

bool paths_code_can_measure(const struct paths_code *c, struct edit_function *f)
{
	bool *all = xmalloc(f->flow->nblocks + 1), had = c->measures.n;
	const char *why;

	memset(all, true, f->flow->nblocks + 1);
	for (unsigned i = 0; i < c->measures.n && had; i++)
		had = edit_variable(c->edit, f, begun(c, i), all, &why);
	free(all);
	return had;
}

void paths_code_insert(struct paths_code *c, const struct paths_body *b)
{
	struct inserting in = {.c = c, .b = b, .hashed = b->model->how == PATH_HOW_HASH};

	b->model->readings.n = 0;
	b->model->takes = false;
	c->loops.n = 0;
	if (b->measured)
		insert_on_calls(&in);
	else if (!in.hashed && !c->measures.n && !b->finding)
		turns_find(b->chosen, &c->loops);
	if (!b->measured)
		insert_borrowing(&in, true);
	vec_each (t, &c->loops)
		insert_turns(&in, t);
	for (uint32_t i = 0; i < b->model->graph.links.n; i++)
		if (!is_around(&c->loops, i))
			insert_on_link(&in, i);
	if (!b->measured)
		insert_borrowing(&in, false);
}
