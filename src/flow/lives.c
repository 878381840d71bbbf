#include "flow/lives.h"

#include <stdlib.h>
#include <string.h>

#include "base/hmap.h"
#include "base/mem.h"
#include "base/vec.h"
#include "flow/graph.h"
#include "flow/liveness_internal.h"

/* What the others need to know of a procedure. */
struct facts {
	struct liveness *liveness; /* NULL: nothing is known */
	uint32_t uses;             /* what it reads of what it is entered with */
	uint32_t clobbers;
	uint32_t results; /* what callers read after it, beyond the ABI: set or left alone by it */
	uint32_t stub_of; /* a PLT stub for this procedure of the same image */
	bool stub;        /* some PLT stub */
	bool direct;
	bool waits; /* to be looked at again */
};

struct lives {
	struct program *program;
	const struct lives_procedure *list;
	struct facts *facts;
	uint32_t n;
	bool blind; /* there is code that nobody can read, and it may call anybody */
};

/* While they are found. */
struct finder {
	struct lives *l;
	VEC(struct graph_edge) calls;
	struct graph
		graph; /* of calls and tail calls; behind the procedures a root to all of them */
	VEC(uint32_t) queue;
};

/* ---- who is called ---- */

static uint32_t procedure_at(const struct lives *l, uint64_t address, bool *whole)
{
	uint32_t low = 0, high = l->n;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (l->list[middle].procedure->start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	*whole = low && l->list[low - 1].procedure->start == address;
	if (*whole)
		return low - 1;
	const struct procedure *p = image_procedure_at(program_image(l->program), address);
	if (!p)
		return GRAPH_NONE;
	return p->start == address ? GRAPH_NONE : procedure_at(l, p->start, whole);
}

/* A call into the middle of a procedure can want anything of it. */
static void find_callee(struct finder *f, uint32_t caller, struct site *s)
{
	struct lives *l = f->l;
	bool whole;
	uint32_t callee = procedure_at(l, s->target, &whole);

	if (callee == GRAPH_NONE)
		return;
	l->facts[callee].direct = true;
	if (l->list[callee].procedure->start != s->target) {
		l->facts[callee].results = LIVE_ALL;
		return;
	}
	s->callee = callee;
	if (l->facts[callee].stub)
		callee = l->facts[callee].stub_of;
	if (callee != GRAPH_NONE)
		*vec_add(&f->calls) = (struct graph_edge){caller, callee};
}

struct named {
	uint64_t hash;
	uint32_t procedure; /* the last of this name, GRAPH_NONE: there are several */
	uint32_t pad;
};

/* With -fno-semantic-interposition a compiler may know what it calls by the PLT. */
static void find_stubs(struct lives *l)
{
	struct hmap names;

	hmap_init(&names, sizeof(struct named), offsetof(struct named, procedure));
	for (uint32_t i = 0; i < l->n; i++) {
		const struct procedure *p = l->list[i].procedure;
		if (!p->name || p->source == PROCEDURE_PLT)
			continue;
		uint64_t hash = hash_bytes(p->name, strlen(p->name));
		bool fresh;
		struct named *n = hmap_put(&names, &hash, &fresh);
		n->procedure = fresh ? i : GRAPH_NONE;
	}
	for (uint32_t i = 0; i < l->n; i++) {
		const struct procedure *p = l->list[i].procedure;
		const char *at = p->name ? strstr(p->name, "@plt") : NULL;
		l->facts[i].stub = p->source == PROCEDURE_PLT;
		l->facts[i].stub_of = GRAPH_NONE;
		if (!l->facts[i].stub || !at)
			continue;
		uint64_t hash = hash_bytes(p->name, (size_t)(at - p->name));
		const struct named *n = hmap_get(&names, &hash);
		if (!n)
			continue;
		l->facts[i].stub_of = n->procedure;
		if (n->procedure != GRAPH_NONE)
			l->facts[n->procedure].direct = true;
	}
	hmap_deinit(&names);
}

/* ---- reading ---- */

static int read_procedure(struct lives *l, uint32_t i)
{
	const struct procedure *p = l->list[i].procedure;
	struct flow_source source = {.ranges = p->ranges, .nranges = p->nranges, .entry = p->start};
	int err = program_code(l->program, p, &source.code, NULL);

	if (!err)
		liveness_read(l->list[i].flow, &source, &l->facts[i].liveness);
	return err;
}

/* Code that nobody looks at otherwise: whom it calls must expect anything. */
static bool read_stranger(struct lives *l, const struct procedure *p)
{
	struct flow *flow;
	bool whole;

	if (program_flow(l->program, p, &flow, NULL))
		return false;
	for (uint32_t i = 0; i < flow->ninsns; i++) {
		const struct flow_insn *insn = &flow->insns[i];
		if (insn->end == FLOW_BAD || (insn->kind != INSN_CALL && insn->kind != INSN_JUMP &&
						     insn->kind != INSN_BRANCH))
			continue;
		uint32_t callee = procedure_at(l, flow_target(insn), &whole);
		if (callee == GRAPH_NONE || l->list[callee].procedure == p)
			continue;
		l->facts[callee].direct = true;
		l->facts[callee].results = LIVE_ALL;
	}
	flow_destroy(flow);
	return true;
}

/* Code that goes on into the next procedure hands it its own caller. */
static void find_falling(struct lives *l, const struct flow *f)
{
	bool whole;

	for (uint32_t k = 0; k < f->nblocks; k++) {
		const struct flow_block *b = &f->blocks[k];
		if (!(b->marks & FLOW_LEAVES) || (b->end != FLOW_FALLS && b->end != FLOW_BRANCHES))
			continue;
		uint32_t next = procedure_at(l, b->start + b->size, &whole);
		if (next == GRAPH_NONE)
			continue;
		l->facts[next].direct = true;
		l->facts[next].results = LIVE_ALL;
	}
}

static void read_all(struct finder *f)
{
	struct lives *l = f->l;

	for (uint32_t i = 0; i < l->n; i++) {
		if (l->facts[i].stub || (l->list[i].flow && !read_procedure(l, i)))
			continue;
		if (!read_stranger(l, l->list[i].procedure))
			l->blind = true;
	}
	for (uint32_t i = 0; i < l->n; i++) {
		struct liveness *of = l->facts[i].liveness;
		l->facts[i].direct |= l->blind;
		for (size_t k = 0; of && k < of->sites.n; k++)
			find_callee(f, i, &of->sites.p[k]);
		if (of)
			find_falling(l, of->flow);
		*vec_add(&f->calls) = (struct graph_edge){l->n, i};
	}
	graph_init(&f->graph, l->n + 1, f->calls.p, (uint32_t)f->calls.n);
}

/* ---- over calls ---- */

static void look_again(struct finder *f, uint32_t i)
{
	if (i == f->l->n || f->l->facts[i].waits || !f->l->facts[i].liveness)
		return;
	f->l->facts[i].waits = true;
	*vec_add(&f->queue) = i;
}

static void look_at_callers(struct finder *f, uint32_t i)
{
	graph_each_in (e, &f->graph, i)
		look_again(f, f->graph.edge[*e].from);
}

static bool calls_outside(const struct lives *l, const struct liveness *of)
{
	for (size_t k = 0; k < of->sites.n; k++) {
		uint32_t callee = of->sites.p[k].callee;
		if (callee != GRAPH_NONE && l->facts[callee].stub &&
			l->facts[callee].stub_of == GRAPH_NONE)
			return true;
	}
	return of->calls_others;
}

/*
 * A register counts as overwritten only if some instruction does, or a call by the ABI: fewer would
 * be wrong about what a procedure may change, more about what its callers may have kept.
 */
static void find_clobbers(struct finder *f)
{
	struct lives *l = f->l;

	for (uint32_t i = l->n; i-- > 0;) {
		struct facts *facts = &l->facts[i];
		if (facts->stub)
			facts->clobbers = LIVE_ABI_KILLS;
		if (!facts->liveness)
			continue;
		facts->clobbers = facts->liveness->written;
		if (calls_outside(l, facts->liveness))
			facts->clobbers |= LIVE_ABI_KILLS;
		look_again(f, i);
	}
	while (f->queue.n) {
		uint32_t i = f->queue.p[--f->queue.n];
		l->facts[i].waits = false;
		uint32_t all = l->facts[i].clobbers;
		graph_each_out (e, &f->graph, i)
			all |= l->facts[f->graph.edge[*e].to].clobbers;
		if (all != l->facts[i].clobbers)
			look_at_callers(f, i);
		l->facts[i].clobbers = all;
	}
}

/* What a call or jump to a procedure needs, and what its caller cannot count on after it. */
static struct effect effect_of_callee(const struct lives *l, uint32_t callee)
{
	const struct effect unknown = {LIVE_ALL, 0};

	if (callee == GRAPH_NONE)
		return unknown;
	const struct facts *facts = &l->facts[callee];
	if (facts->stub && facts->stub_of == GRAPH_NONE)
		return (struct effect){LIVE_ABI_USES, LIVE_ABI_KILLS};
	if (facts->stub) {
		struct effect e = effect_of_callee(l, facts->stub_of);
		e.uses |= LIVE_ABI_USES;
		return e;
	}
	if (!facts->liveness || facts->liveness->returns_oddly)
		return unknown;
	return (struct effect){facts->uses | REGS_KEPT, facts->clobbers & ~REGS_KEPT};
}

static void set_sites(struct lives *l, struct liveness *of)
{
	for (size_t k = 0; k < of->sites.n; k++) {
		const struct site *s = &of->sites.p[k];
		struct effect e = effect_of_callee(l, s->callee);
		of->effects[s->insn].uses = s->own | e.uses;
		of->effects[s->insn].kills = s->tail ? 0 : e.kills;
	}
}

/* Where a call comes back, not where it may end up otherwise. */
static uint32_t live_on_return(const struct liveness *of, const struct site *s)
{
	uint32_t k = of->block_of[s->insn], live = 0;

	graph_each_out (e, &of->flow->graph, k)
		if (of->flow->graph.edge[*e].to < of->flow->nblocks)
			live |= liveness_in(of, of->flow->graph.edge[*e].to);
	return live;
}

/*
 * What is read after a call is a result of the callee if it overwrites it, and to be left alone
 * by it and by those that it calls in turn if it does not.
 */
static void ask_callees(struct finder *f, uint32_t i)
{
	struct lives *l = f->l;
	const struct liveness *of = l->facts[i].liveness;

	for (size_t k = 0; k < of->sites.n; k++) {
		const struct site *s = &of->sites.p[k];
		uint32_t callee = s->callee;
		if (callee != GRAPH_NONE && l->facts[callee].stub)
			callee = l->facts[callee].stub_of;
		if (callee == GRAPH_NONE)
			continue;
		struct facts *facts = &l->facts[callee];
		uint32_t wanted = s->tail ? l->facts[i].results
					  : live_on_return(of, s) & ~(REGS_RESULTS | REGS_KEPT);
		if (!(wanted & ~facts->results))
			continue;
		facts->results |= wanted;
		look_again(f, callee);
	}
}

static void settle(struct finder *f, uint32_t i)
{
	struct facts *facts = &f->l->facts[i];
	struct liveness *of = facts->liveness;

	facts->waits = false;
	set_sites(f->l, of);
	of->at_end = REGS_RESULTS | REGS_KEPT | facts->results |
		     (f->l->blind ? REGS_ALL & ~facts->clobbers : 0);
	liveness_settle(of);
	ask_callees(f, i);
	uint32_t uses = liveness_reads(of);
	if (uses == facts->uses)
		return;
	facts->uses = uses;
	look_at_callers(f, i);
}

/* Callees first, so that few are looked at twice. */
static void settle_all(struct finder *f)
{
	struct graph_walk walk;

	graph_walk_init(&walk, &f->graph, f->l->n);
	for (uint32_t i = walk.reached; i-- > 0;)
		look_again(f, walk.postorder[i]);
	graph_walk_deinit(&walk);
	while (f->queue.n)
		settle(f, f->queue.p[--f->queue.n]);
}

/* ---- public ---- */

void lives_create(
	struct program *p, const struct lives_procedure *list, size_t n, struct lives **out)
{
	struct lives *l = xcalloc(1, sizeof *l);
	struct finder f = {.l = l};

	l->program = p;
	l->n = (uint32_t)n;
	l->list = list;
	l->facts = xcalloc(n + 1, sizeof *l->facts);
	find_stubs(l);
	read_all(&f);
	find_clobbers(&f);
	settle_all(&f);
	vec_deinit(&f.calls);
	vec_deinit(&f.queue);
	graph_deinit(&f.graph);
	l->list = NULL;
	*out = l;
}

void lives_destroy(struct lives *l)
{
	if (!l)
		return;
	for (uint32_t i = 0; i < l->n; i++)
		liveness_destroy(l->facts[i].liveness);
	free(l->facts);
	free(l);
}

const struct liveness *lives_of(const struct lives *l, size_t procedure)
{
	return l->facts[procedure].liveness;
}

uint32_t lives_clobbers(const struct lives *l, size_t procedure)
{
	return l->facts[procedure].clobbers;
}

bool lives_direct(const struct lives *l, size_t procedure)
{
	return l->facts[procedure].direct;
}
