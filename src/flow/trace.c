#include "flow/trace.h"

#include <stdlib.h>
#include <string.h>

enum {
	WIDEN_AFTER = 2, /* visits of a block */
	SWEEPS_MAX = 40,
};

/* States are kept as short as they are. */
struct kept {
	uint32_t nslots, nfacts;
	uint32_t reg[16];
	uint16_t weak;
	struct comparison flags;
	uint64_t rest[]; /* facts, then slots */
};

struct node {
	struct kept *in;
	uint32_t order; /* in which blocks are visited; GRAPH_NONE: not reached */
	uint8_t visits;
	bool dirty;
	bool single; /* one edge leads to it */
	bool header; /* an edge leads back to it */
};

/* Behind the blocks stands a node for where unresolved jumps go. */
struct run {
	struct trace *t;
	struct builder *b;
	struct graph graph;
	struct node *nodes;
	uint32_t *sequence, nreached;
	uint32_t unseen, root;
	trace_visitor *visit;
	void *arg;
	bool last; /* the sweep in which jumps are visited */
};

void trace_init(struct trace *t, struct builder *b)
{
	*t = (struct trace){.b = b, .forms = xcalloc(b->insns.n + 1, sizeof *t->forms)};
}

void trace_deinit(struct trace *t)
{
	free(t->forms);
}

/* What a call changes counts as written by it. */
static uint16_t changed_by_call(const struct flow_source *s, const struct flow_insn *i)
{
	if (i->kind != INSN_CALL && i->kind != INSN_CALL_INDIRECT)
		return 0;
	uint16_t abi = REGS_ALL & ~REGS_KEPT;
	return i->kind == INSN_CALL && s->clobbers ? s->clobbers(s->arg, flow_target(i)) & abi
						   : abi;
}

const struct form *trace_form(struct trace *t, uint32_t insn)
{
	const struct flow_insn *i = &t->b->insns.p[insn];
	struct form *f = &t->forms[insn];
	const uint8_t *code = NULL;

	if (f->length)
		return f;
	size_t n = builder_code(t->b, i->address, &code);
	if (isa_form(code, n, i->address, f)) /* a byte that is no instruction */
		*f = (struct form){.length = 1, .writes = REGS_ALL, .stores = true};
	else
		f->writes |= changed_by_call(t->b->source, i);
	return f;
}

/* ---- keeping states ---- */

static struct kept *keep(const struct state *s)
{
	size_t facts = s->nfacts * sizeof *s->facts, slots = s->nslots * sizeof *s->slots;
	struct kept *k = xmalloc(sizeof *k + facts + slots);

	k->nslots = s->nslots;
	k->nfacts = s->nfacts;
	memcpy(k->reg, s->reg, sizeof k->reg);
	k->weak = s->weak;
	k->flags = s->flags;
	memcpy(k->rest, s->facts, facts);
	memcpy((char *)k->rest + facts, s->slots, slots);
	return k;
}

static void recall(const struct kept *k, struct state *s)
{
	size_t facts = k->nfacts * sizeof *s->facts, slots = k->nslots * sizeof *s->slots;

	s->nslots = k->nslots;
	s->nfacts = k->nfacts;
	memcpy(s->reg, k->reg, sizeof k->reg);
	s->weak = k->weak;
	s->flags = k->flags;
	memcpy(s->facts, k->rest, facts);
	memcpy(s->slots, (const char *)k->rest + facts, slots);
}

static void set_in(struct node *n, const struct state *s)
{
	free(n->in);
	n->in = keep(s);
	n->dirty = true;
}

/* A state comes to a node by an edge. */
static void arrive(struct run *r, uint32_t to, const struct state *s)
{
	struct node *n = &r->nodes[to];
	struct state joined;

	if (n->order == GRAPH_NONE)
		return;
	if (r->last && n->header)
		return; /* it has what holds after any number of turns */
	if (!n->in) {
		set_in(n, s);
		return;
	}
	recall(n->in, &joined);
	if (n->single) {
		if (!state_equal(&joined, s))
			set_in(n, s);
	} else if (state_join(&r->t->m, &joined, s, to, n->visits >= WIDEN_AFTER))
		set_in(n, &joined);
}

/* ---- the graph that states go through ---- */

static bool is_indirect(const struct builder *b, uint32_t k)
{
	uint8_t end = b->blocks.p[k].end;

	return end == FLOW_UNRESOLVED || end == FLOW_TABLE || end == FLOW_TAIL_INDIRECT;
}

/* Blocks that nothing leads to. */
static bool *find_heads(const struct builder *b, uint32_t entry)
{
	bool *head = xmalloc(b->blocks.n + 1);

	for (uint32_t k = 0; k < b->blocks.n; k++)
		head[k] = k != entry && !(b->blocks.p[k].marks & FLOW_PADDING);
	vec_each (e, &b->edges)
		head[e->to < b->blocks.n ? e->to : b->blocks.n] = false;
	return head;
}

/* The edges among blocks, those of unresolved jumps and those of the root. */
static void make_graph(struct run *r, enum trace_ways ways)
{
	struct builder *b = r->b;
	VEC(struct graph_edge) edges = {0};
	uint32_t entry = b->block_of[builder_insn_at(b, b->source->entry)];
	_cleanup_free_ bool *head = find_heads(b, entry);

	*vec_add(&edges) = (struct graph_edge){r->root, entry};
	vec_each (e, &b->edges) {
		if (e->to < b->blocks.n)
			*vec_add(&edges) = *e;
	}
	for (uint32_t k = 0; k < b->blocks.n; k++) {
		if (b->blocks.p[k].end == FLOW_UNRESOLVED && ways != TRACE_KNOWN)
			*vec_add(&edges) = (struct graph_edge){k, r->unseen};
		if (head[k])
			*vec_add(&edges) = (struct graph_edge){r->unseen, k};
		if (ways == TRACE_EVERYTHING && (head[k] || b->blocks.p[k].marks & FLOW_ENTERED))
			*vec_add(&edges) = (struct graph_edge){r->root, k};
	}
	graph_init(&r->graph, r->root + 1, edges.p, (uint32_t)edges.n);
	vec_deinit(&edges);
}

/* Only what leads to an indirect jump matters. */
static bool *find_useful(const struct run *r)
{
	bool *useful = xcalloc(r->root + 1, sizeof *useful);
	_cleanup_free_ uint32_t *stack = xmalloc((r->root + 1) * sizeof *stack);
	uint32_t n = 0;

	for (uint32_t k = 0; k < r->b->blocks.n; k++) {
		if (!is_indirect(r->b, k))
			continue;
		useful[k] = true;
		stack[n++] = k;
	}
	while (n) {
		uint32_t k = stack[--n];
		graph_each_in (e, &r->graph, k) {
			uint32_t from = r->graph.edge[*e].from;
			if (useful[from])
				continue;
			useful[from] = true;
			stack[n++] = from;
		}
	}
	return useful;
}

static void order_nodes(struct run *r)
{
	struct graph_walk w;
	_cleanup_free_ bool *useful = find_useful(r);

	graph_walk_init(&w, &r->graph, r->root);
	r->sequence = xmalloc((w.reached + 1) * sizeof *r->sequence);
	for (uint32_t n = 0; n <= r->root; n++)
		r->nodes[n].order = GRAPH_NONE;
	for (uint32_t i = 0; i < w.reached; i++) {
		uint32_t node = w.postorder[w.reached - 1 - i];
		if (!useful[node])
			continue;
		r->nodes[node].order = r->nreached;
		r->sequence[r->nreached++] = node;
	}
	graph_walk_deinit(&w);
	for (uint32_t e = 0; e < r->graph.edges; e++) {
		struct graph_edge edge = r->graph.edge[e];
		uint32_t from = r->nodes[edge.from].order, to = r->nodes[edge.to].order;
		if (from != GRAPH_NONE && to != GRAPH_NONE && to <= from)
			r->nodes[edge.to].header = true;
	}
	for (uint32_t n = 0; n <= r->root; n++)
		r->nodes[n].single = graph_in_degree(&r->graph, n) == 1;
}

/* ---- running ---- */

static void run_block(struct run *r, uint32_t k, struct state *s)
{
	const struct flow_block *block = &r->b->blocks.p[k];

	for (uint32_t i = 0; i < block->count; i++) {
		uint32_t insn = block->first + i;
		if (r->last && i + 1 == block->count && is_indirect(r->b, k))
			r->visit(r->arg, s, insn);
		state_step(&r->t->m, s, trace_form(r->t, insn), insn);
	}
}

static void leave_block(struct run *r, uint32_t k, const struct state *s)
{
	const struct flow_block *block = &r->b->blocks.p[k];
	uint8_t condition = FORM_NO_CONDITION;

	if (block->end == FLOW_BRANCHES)
		condition = trace_form(r->t, block->first + block->count - 1)->condition;
	for (uint32_t e = r->b->first_edge.p[k]; e < r->b->first_edge.p[k + 1]; e++) {
		uint32_t to = r->b->edges.p[e].to;
		if (to >= r->b->blocks.n)
			continue;
		if (condition == FORM_NO_CONDITION) {
			arrive(r, to, s);
			continue;
		}
		struct state branched = *s;
		state_branch(&r->t->m, &branched, condition, r->b->kinds.p[e] == FLOW_EDGE_JUMP);
		arrive(r, to, &branched);
	}
	if (block->end == FLOW_UNRESOLVED)
		arrive(r, r->unseen, s);
}

static void visit_node(struct run *r, uint32_t n)
{
	struct state s;

	r->nodes[n].dirty = false;
	r->nodes[n].visits += r->nodes[n].visits < UINT8_MAX;
	recall(r->nodes[n].in, &s);
	if (n == r->unseen) {
		graph_each_out (e, &r->graph, n)
			arrive(r, r->graph.edge[*e].to, &s);
		return;
	}
	run_block(r, n, &s);
	leave_block(r, n, &s);
}

/* The root comes first; its edges say where to begin. */
static void begin(struct run *r)
{
	uint32_t entry = r->b->block_of[builder_insn_at(r->b, r->b->source->entry)];
	bool first = true;
	struct state s;

	graph_each_out (e, &r->graph, r->root) {
		uint32_t to = r->graph.edge[*e].to;
		if (first && to == entry)
			state_entry(&r->t->m, &s);
		else
			state_unknown(&r->t->m, &s, to);
		first = false;
		arrive(r, to, &s);
	}
}

static bool sweep(struct run *r)
{
	bool any = false;

	for (uint32_t i = 0; i < r->nreached; i++) {
		uint32_t n = r->sequence[i];
		if (n == r->root || !r->nodes[n].dirty)
			continue;
		any = true;
		visit_node(r, n);
	}
	return any;
}

/*
 * First what loops change is found, in as many sweeps as it takes. Bounds that were found on the
 * way are worse than need be, since a block may have seen states that were replaced later. So all
 * but what holds where loops begin is thrown away, and one sweep finds the rest anew.
 */
static void settle(struct run *r)
{
	bool moving = true;

	begin(r);
	for (int i = 0; i < SWEEPS_MAX && moving; i++)
		moving = sweep(r);
	for (uint32_t n = 0; n < r->root; n++) {
		struct node *node = &r->nodes[n];
		struct state s;
		if (!node->in)
			continue;
		if (node->header && moving) {
			state_unknown(&r->t->m, &s, n);
			set_in(node, &s);
		}
		node->dirty = node->header;
		if (!node->header) {
			free(node->in);
			node->in = NULL;
		}
	}
	r->last = true;
	begin(r);
	sweep(r);
}

void trace_run(struct trace *t, enum trace_ways ways, trace_visitor *visit, void *arg)
{
	struct builder *b = t->b;
	uint32_t n = (uint32_t)b->blocks.n;
	struct run r = {.t = t,
		.b = b,
		.unseen = n,
		.root = n + 1,
		.visit = visit,
		.arg = arg,
		.nodes = xcalloc((size_t)n + 2, sizeof *r.nodes)};

	machine_init(&t->m, b->source->read, b->source->arg);
	make_graph(&r, ways);
	order_nodes(&r);
	if (ways != TRACE_EVERYTHING || graph_out_degree(&r.graph, r.root) > 1)
		settle(&r);
	for (uint32_t i = 0; i < n + 2; i++)
		free(r.nodes[i].in);
	free(r.nodes);
	free(r.sequence);
	graph_deinit(&r.graph);
	machine_deinit(&t->m);
}
