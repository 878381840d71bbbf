#include "edit/exact_model.h"

#include "edit/endings.h"
#include "flow/loops.h"
#include "isa/decode.h"

#include <stdlib.h>
#include <string.h>

struct modelling {
	const struct exact_scene *scene;
	const struct flow *flow;
	struct edit_function *function;
	struct exact_function *out;
	exact_places *places;
	double *often;   /* by node of the model */
	bool *apart;     /* by block: its call comes back several times or never */
	uint32_t *table; /* by block: the table node that it jumps through, GRAPH_NONE */
};

/* ---- who is called ---- */

static bool is_one_of(const char *name, const char *const *list)
{
	size_t n = strcspn(name, "@");

	for (; *list; list++)
		if (strlen(*list) == n && !strncmp(name, *list, n))
			return true;
	return false;
}

static bool comes_back_twice(const char *name)
{
	static const char *const list[] = {"setjmp", "_setjmp", "sigsetjmp", "__sigsetjmp", "fork",
		"__fork", "__libc_fork", "vfork", "__vfork", "getcontext", "swapcontext", NULL};

	return name && is_one_of(name, list);
}

/* What runs our own code again, or ends the process when it succeeds; and all that throws. */
static bool may_stay_away(const char *name)
{
	static const char *const list[] = {"execl", "execle", "execlp", "execv", "execve", "execvp",
		"execvpe", "fexecve", "qsort", "qsort_r", "bsearch", "ftw", "nftw", "scandir",
		"twalk", "tdestroy", "dlopen", "dlclose", "dl_iterate_phdr", "pthread_once",
		"raise", "kill", "tgkill", "__cxa_rethrow", "_Unwind_RaiseException", NULL};

	return is_one_of(name, list) || strstr(name, "::") || !strncmp(name, "operator ", 9);
}

/* *apart: it comes back several times or never. */
static enum exact_call call_of(struct modelling *m, const struct flow_insn *i, bool *apart)
{
	const struct exact_scene *s = m->scene;
	const struct procedure *p;
	size_t number;

	if (i->kind != INSN_CALL && i->kind != INSN_JUMP && i->kind != INSN_BRANCH)
		return EXACT_CALLS_WILD;
	number = endings_number(s->functions, s->n, flow_target(i));
	p = image_procedure_at(edit_image(s->edit), flow_target(i));
	*apart = (p && comes_back_twice(p->name)) || (number < s->n && s->never[number]);
	if (number < s->n && s->functions[number]->chosen && !s->functions[number]->refused)
		return EXACT_CALLS_COUNTED;
	if (p && p->source == PROCEDURE_PLT && p->name && !may_stay_away(p->name))
		return EXACT_CALLS_OUTSIDE;
	return EXACT_CALLS_WILD;
}

static bool leaves_by_jump(const struct flow *f, uint32_t block)
{
	graph_each_out (e, &f->graph, block)
		if (f->edge_kind[*e] == FLOW_EDGE_TAIL)
			return true;
	return false;
}

static void add_block(struct modelling *m, uint32_t block)
{
	const struct flow *f = m->flow;
	const struct flow_block *b = &f->blocks[block];
	const struct flow_insn *last = &f->insns[b->first + b->count - 1];
	struct exact_block *to = vec_add(&m->out->blocks);

	*to = (struct exact_block){.start = b->start,
		.size = b->size,
		.last = last->length,
		.padding = b->marks & FLOW_PADDING};
	if (b->end != FLOW_CALLS && !leaves_by_jump(f, block))
		return;
	to->call = call_of(m, last, &m->apart[block]);
	m->apart[block] &= b->end == FLOW_CALLS;
	if (to->call == EXACT_CALLS_COUNTED)
		to->callee = flow_target(last);
}

/* ---- tables that several jumps share ---- */

/* Jumps whose edges are in one group go through one table; its node takes what they all send. */
static void find_tables(struct modelling *m)
{
	const struct flow *f = m->flow;
	uint32_t *holder = graph_numbers(f->graph.edges, GRAPH_NONE); /* by group: a block */

	for (uint32_t i = 0; i < f->graph.edges; i++) {
		uint32_t group, from = f->graph.edge[i].from;

		if (f->edge_kind[i] != FLOW_EDGE_TABLE)
			continue;
		group = edit_edge_group(m->function, i);
		if (holder[group] == GRAPH_NONE) {
			holder[group] = from;
		} else if (holder[group] != from) {
			uint32_t *table = &m->table[holder[group]];

			if (*table == GRAPH_NONE)
				*table = f->nblocks + m->out->tables++;
			m->table[from] = *table;
		}
	}
	free(holder);
}

/* ---- blocks that are loops ---- */

static bool turns_itself(const struct flow *f, uint32_t block)
{
	bool turns = false;

	if (f->blocks[block].end != FLOW_BRANCHES)
		return false;
	graph_each_out (e, &f->graph, block) {
		uint32_t to = f->graph.edge[*e].to;
		if (to == f->exit_node)
			return false;
		turns |= to == block && f->edge_kind[*e] == FLOW_EDGE_JUMP;
	}
	return turns;
}

/* Such a block is cheaper to count than its branch, where a counter has to be jumped to: it gets a
 * node that its ways out leave from, as those through a table. */
static void divide_loops(struct modelling *m)
{
	for (uint32_t i = 0; i < m->flow->nblocks; i++)
		if (m->table[i] == GRAPH_NONE && turns_itself(m->flow, i))
			m->table[i] = m->flow->nblocks + m->out->tables++;
}

/* ---- how often ---- */

#define LOOP_TURNS   8.0
#define LOOP_DEEPEST 8
#define COLD         0.01
#define STUB         2.0 /* what a counter costs that has to be jumped to, by one in line */

static bool is_cold(const struct modelling *m, uint32_t block)
{
	const struct procedure *p = m->function->procedure;
	const struct flow_block *b = &m->flow->blocks[block];

	return b->end == FLOW_STOPS || b->start - p->ranges[0].start >= p->ranges[0].size;
}

static void guess_often(struct modelling *m)
{
	const struct flow *f = m->flow;
	struct loops loops;

	loops_init(&loops, &f->graph, f->entry_node);
	for (uint32_t i = 0; i < f->nblocks; i++) {
		uint32_t loop = loops.of[i],
			 depth = loop == GRAPH_NONE ? 0 : loops.loop[loop].depth;

		m->often[i] = is_cold(m, i) ? COLD : 1;
		for (uint32_t d = 0; d < depth && d < LOOP_DEEPEST; d++)
			m->often[i] *= LOOP_TURNS;
	}
	loops_deinit(&loops);
	for (uint32_t i = 0; i < f->nblocks; i++)
		if (m->table[i] != GRAPH_NONE && m->often[m->table[i]] < m->often[i])
			m->often[m->table[i]] = m->often[i];
}

static bool is_in_line(const struct flow *f, uint32_t edge)
{
	const struct graph_edge *e = &f->graph.edge[edge];

	return f->edge_kind[edge] == FLOW_EDGE_FALL || graph_out_degree(&f->graph, e->from) == 1 ||
	       graph_in_degree(&f->graph, e->to) == 1;
}

/* ---- links ---- */

static void add_link(struct modelling *m, uint32_t from, uint32_t to, enum exact_link_kind kind,
	enum exact_how how, uint32_t where)
{
	uint32_t outside = exact_outside(m->out);
	double x = from == outside ? m->often[to] : m->often[from];
	double y = to == outside ? x : m->often[to];

	*vec_add(&m->out->links) = (struct exact_link){.from = from, .to = to, .kind = kind};
	*vec_add(m->places) = (struct exact_place){how, where, x < y ? x : y};
	if (how == EXACT_ON_EDGE && !is_in_line(m->flow, where))
		m->places->p[m->places->n - 1].weight *= STUB;
}

static uint32_t last_insn(const struct flow *f, uint32_t block)
{
	return f->blocks[block].first + f->blocks[block].count - 1;
}

static const uint8_t kinds[] = {
	[FLOW_EDGE_ENTRY] = EXACT_LINK_ENTRY,
	[FLOW_EDGE_FALL] = EXACT_LINK_INSIDE,
	[FLOW_EDGE_JUMP] = EXACT_LINK_INSIDE,
	[FLOW_EDGE_TABLE] = EXACT_LINK_INSIDE,
	[FLOW_EDGE_RETURN] = EXACT_LINK_RETURN,
	[FLOW_EDGE_TAIL] = EXACT_LINK_TAIL,
	[FLOW_EDGE_STOP] = EXACT_LINK_STOP,
};

static void add_edge(struct modelling *m, uint32_t edge)
{
	const struct flow *f = m->flow;
	struct graph_edge e = f->graph.edge[edge];
	uint32_t outside = exact_outside(m->out);
	enum flow_edge_kind kind = f->edge_kind[edge];
	enum exact_how how = edit_edge_carries(m->function, edge) ? EXACT_ON_EDGE : EXACT_NOWHERE;

	if (kind == FLOW_EDGE_ENTRY)
		add_link(m, outside, e.to, EXACT_LINK_ENTRY, EXACT_AT_ENTRY, 0);
	else if (e.from == f->entry_node)
		add_link(m, outside, e.to, EXACT_LINK_ENTERED, how, edge);
	else if (e.to != f->exit_node)
		add_link(m, e.from, e.to, EXACT_LINK_INSIDE, how, edge);
	else if (how == EXACT_NOWHERE && graph_out_degree(&f->graph, e.from) == 1)
		add_link(m, e.from, outside, EXACT_LINK_LEAVE, EXACT_BEFORE, last_insn(f, e.from));
	else
		add_link(m, e.from, outside,
			kind == FLOW_EDGE_UNSEEN ? EXACT_LINK_LEAVE : kinds[kind], how, edge);
}

/* Going into such a call and coming back are two links, which need not agree. */
static void add_apart(struct modelling *m, uint32_t edge)
{
	struct graph_edge e = m->flow->graph.edge[edge];
	uint32_t outside = exact_outside(m->out);

	add_link(m, e.from, outside, EXACT_LINK_AWAY, EXACT_BEFORE, last_insn(m->flow, e.from));
	add_link(m, outside, e.to, EXACT_LINK_BACK, EXACT_ON_EDGE, edge);
}

static void add_shared(struct modelling *m, uint32_t edge)
{
	if (edit_edge_group(m->function, edge) == edge) {
		struct graph_edge e = m->flow->graph.edge[edge];

		add_link(m, m->table[e.from], e.to, EXACT_LINK_INSIDE, EXACT_ON_EDGE, edge);
	}
}

static void add_links(struct modelling *m)
{
	const struct flow *f = m->flow;

	for (uint32_t i = 0; i < f->graph.edges; i++) {
		uint32_t from = f->graph.edge[i].from;

		if (from < f->nblocks && m->table[from] != GRAPH_NONE)
			add_shared(m, i);
		else if (from < f->nblocks && m->apart[from] && f->graph.edge[i].to != f->exit_node)
			add_apart(m, i);
		else
			add_edge(m, i);
	}
	for (uint32_t i = 0; i < f->nblocks; i++)
		if (m->table[i] != GRAPH_NONE)
			add_link(m, i, m->table[i], EXACT_LINK_INSIDE, EXACT_BEFORE,
				turns_itself(f, i) ? f->blocks[i].first : last_insn(f, i));
}

void exact_model(const struct exact_scene *s, struct edit_function *f, struct exact_function *out,
	exact_places *places)
{
	const struct flow *flow = f->flow;
	struct modelling m = {
		.scene = s, .flow = flow, .function = f, .out = out, .places = places};

	out->start = f->procedure->start;
	out->blocks.n = out->links.n = places->n = 0;
	out->tables = 0;
	m.table = graph_numbers(flow->nblocks, GRAPH_NONE);
	m.apart = xcalloc(flow->nblocks + 1, sizeof *m.apart);
	for (uint32_t i = 0; i < flow->nblocks; i++)
		add_block(&m, i);
	if (flow->njumps > 1)
		find_tables(&m);
	divide_loops(&m);
	m.often = xcalloc(flow->nblocks + out->tables + 1, sizeof *m.often);
	guess_often(&m);
	add_links(&m);
	free(m.table);
	free(m.apart);
	free(m.often);
}
