#include "edit/exact_model.h"

#include "edit/endings.h"
#include "edit/exact_turns.h"
#include "edit/guess.h"
#include "isa/decode.h"

#include <stdlib.h>
#include <string.h>

struct modelling {
	const struct exact_scene *scene;
	const struct flow *flow;
	struct edit_function *function;
	struct exact_function *out;
	exact_places *places;
	const struct loops *loops;
	const struct exact_alone *alone;
	double *often;   /* by edge of the flow */
	bool *apart;     /* by block: its call comes back several times or never */
	uint32_t *table; /* by block: the table node that it jumps through, GRAPH_NONE */
	exact_turns turns;
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

/* What always comes back, as an instruction does: it calls nobody, or ends all by a signal. */
static bool always_comes_back(const char *name)
{
	static const char *const list[] = {"memcpy", "memmove", "mempcpy", "memset", "memcmp",
		"bcmp", "memchr", "memrchr", "rawmemchr", "strlen", "strnlen", "strcmp", "strncmp",
		"strcasecmp", "strncasecmp", "strcoll", "strcpy", "strncpy", "stpcpy", "strcat",
		"strchr", "strchrnul", "strrchr", "strstr", "strspn", "strcspn", "strpbrk",
		"__memcpy_chk", "__memmove_chk", "__memset_chk", "__strcpy_chk", "__strcat_chk",
		"tolower", "toupper", "__ctype_b_loc", "__ctype_tolower_loc", "__ctype_toupper_loc",
		"__errno_location", "malloc", "calloc", "realloc", "free", "floor", "ceil", "fmod",
		"sqrt", "exp", "log", "pow", "sin", "cos", "tan", "atan", "atan2", "floorf", "expf",
		"logf", "powf", "ldexp", "frexp", "strtol", "strtoul", "strtod", NULL};

	return is_one_of(name, list);
}

bool exact_has_library(const struct exact_scene *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->functions[i]->procedure->name &&
			always_comes_back(s->functions[i]->procedure->name))
			return true;
	return false;
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
		return !s->has_library && always_comes_back(p->name) ? EXACT_CALLS_NOBODY
								     : EXACT_CALLS_OUTSIDE;
	return EXACT_CALLS_WILD;
}

static bool leaves_by_jump(const struct flow *f, uint32_t block)
{
	graph_each_out (e, &f->graph, block)
		if (f->edge_kind[*e] == FLOW_EDGE_TAIL)
			return true;
	return false;
}

static uint32_t last_insn(const struct flow *f, uint32_t block)
{
	return f->blocks[block].first + f->blocks[block].count - 1;
}

/* A trap behind a call: the compiler knew that it does not come back (_start). */
static bool traps_behind(const struct flow *f, uint32_t block)
{
	graph_each_out (e, &f->graph, block) {
		uint32_t to = f->graph.edge[*e].to;

		if (to < f->nblocks && f->blocks[to].end == FLOW_STOPS &&
			f->insns[last_insn(f, to)].kind == INSN_TRAP)
			return true;
	}
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
	m->apart[block] |= traps_behind(f, block);
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

/* ---- what counting costs ---- */

/*
 * By a counter in line. Jumps more cost little in loops, where they are foreseen, and much in a
 * large program that goes through more branches than predictors hold: two fifths of what counting
 * cost cc1 were jumps to counters and back.
 */
static const double prices[][2] = {
	[EDIT_IN_LINE] = {1, 1}, [EDIT_AROUND] = {4, 1.5}, [EDIT_ASIDE] = {10, 3}};

static double price_of(const struct modelling *m, uint32_t edge)
{
	bool turns = m->loops->of[m->flow->graph.edge[edge].from] != GRAPH_NONE;

	return prices[edit_edge_way(m->scene->edit, m->function, edge)][turns];
}

/*
 * A counter on a branch may have to be jumped to; one in the block before it tells as much. So such
 * blocks are divided: they get a node that their ways out leave from, as those through a table.
 */
static bool is_divided(const struct modelling *m, uint32_t block)
{
	const struct flow *f = m->flow;
	bool apart = false;

	if (f->blocks[block].end != FLOW_BRANCHES)
		return false;
	graph_each_out (e, &f->graph, block) {
		if (f->graph.edge[*e].to == f->exit_node)
			return false;
		apart |= price_of(m, *e) > 1;
	}
	return apart;
}

static void divide_blocks(struct modelling *m)
{
	for (uint32_t i = 0; i < m->flow->nblocks; i++)
		if (m->table[i] == GRAPH_NONE && is_divided(m, i))
			m->table[i] = m->flow->nblocks + m->out->tables++;
}

/* Blocks that a register counts have a link of their own, which costs nothing while it turns. */
static bool can_divide(const struct modelling *m, uint32_t block)
{
	graph_each_out (e, &m->flow->graph, block)
		if (m->flow->graph.edge[*e].to == m->flow->exit_node)
			return false;
	return !m->apart[block];
}

static void divide_turns(struct modelling *m)
{
	size_t n = 0;

	exact_find_turns(m->scene->edit, m->function, m->alone, m->often, &m->turns);
	vec_each (t, &m->turns) {
		bool divided = is_divided(m, t->block);
		if (!divided && (m->table[t->block] != GRAPH_NONE || !can_divide(m, t->block)))
			continue;
		if (!divided)
			m->table[t->block] = m->flow->nblocks + m->out->tables++;
		m->turns.p[n++] = *t;
	}
	m->turns.n = n;
}

/* ---- links ---- */

static void add_link(struct modelling *m, uint32_t from, uint32_t to, enum exact_link_kind kind,
	const struct exact_place *place)
{
	*vec_add(&m->out->links) = (struct exact_link){.from = from, .to = to, .kind = kind};
	*vec_add(m->places) = *place;
}

static struct exact_place on_edge(const struct modelling *m, uint32_t edge)
{
	double price = price_of(m, edge);
	struct exact_place p = {.how = EXACT_ON_EDGE,
		.where = edge,
		.weight = m->often[edge] * price,
		.price = price};

	if (!edit_edge_carries(m->function, edge))
		p.how = EXACT_NOWHERE;
	return p;
}

/* Before the last instruction of a block: however it goes on. */
static struct exact_place at_end(const struct modelling *m, uint32_t block)
{
	struct exact_place p = {
		.how = EXACT_BEFORE, .where = last_insn(m->flow, block), .price = 1};

	graph_each_out (e, &m->flow->graph, block)
		p.weight += m->often[*e];
	return p;
}

static const uint8_t kinds[] = {
	[FLOW_EDGE_RETURN] = EXACT_LINK_RETURN,
	[FLOW_EDGE_TAIL] = EXACT_LINK_TAIL,
	[FLOW_EDGE_STOP] = EXACT_LINK_STOP,
	[FLOW_EDGE_UNSEEN] = EXACT_LINK_LEAVE,
};

static void add_edge(struct modelling *m, uint32_t edge)
{
	const struct flow *f = m->flow;
	struct graph_edge e = f->graph.edge[edge];
	uint32_t outside = exact_outside(m->out);
	struct exact_place place = on_edge(m, edge);

	if (f->edge_kind[edge] == FLOW_EDGE_ENTRY) {
		place = (struct exact_place){
			.how = EXACT_AT_ENTRY, .weight = m->often[edge], .price = 1};
		add_link(m, outside, e.to, EXACT_LINK_ENTRY, &place);
	} else if (e.from == f->entry_node) {
		add_link(m, outside, e.to, EXACT_LINK_ENTERED, &place);
	} else if (e.to != f->exit_node) {
		add_link(m, e.from, e.to, EXACT_LINK_INSIDE, &place);
	} else {
		if (place.how == EXACT_NOWHERE && graph_out_degree(&f->graph, e.from) == 1)
			place = at_end(m, e.from);
		add_link(m, e.from, outside, kinds[f->edge_kind[edge]], &place);
	}
}

/* Going into such a call and coming back are two links, which need not agree. */
static void add_apart(struct modelling *m, uint32_t edge)
{
	struct graph_edge e = m->flow->graph.edge[edge];
	struct exact_place away = at_end(m, e.from), back = on_edge(m, edge);
	uint32_t outside = exact_outside(m->out);

	add_link(m, e.from, outside, EXACT_LINK_AWAY, &away);
	add_link(m, outside, e.to, EXACT_LINK_BACK, &back);
}

/* All edges of a group are counted as one. */
static void add_shared(struct modelling *m, uint32_t edge)
{
	struct graph_edge e = m->flow->graph.edge[edge];
	struct exact_place place = on_edge(m, edge);

	if (edit_edge_group(m->function, edge) == edge)
		add_link(m, m->table[e.from], e.to, EXACT_LINK_INSIDE, &place);
}

static void take_turn(const struct exact_turn *t, struct exact_place *place)
{
	place->price = t->price;
	place->weight *= t->price;
	place->step = t->step;
	place->reg = t->reg;
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
	for (uint32_t i = 0; i < f->nblocks; i++) {
		struct exact_place place = at_end(m, i);

		if (m->table[i] == GRAPH_NONE)
			continue;
		if (f->blocks[i].end == FLOW_BRANCHES)
			place.where = f->blocks[i].first; /* fewer flags are in use there */
		vec_each (t, &m->turns)
			if (t->block == i)
				take_turn(t, &place);
		add_link(m, i, m->table[i], EXACT_LINK_INSIDE, &place);
	}
}

void exact_model(const struct exact_scene *s, struct edit_function *f, struct exact_function *out,
	exact_places *places, const struct loops *loops, const struct exact_alone *alone)
{
	const struct flow *flow = f->flow;
	struct modelling m = {.scene = s,
		.flow = flow,
		.function = f,
		.out = out,
		.places = places,
		.loops = loops,
		.alone = alone};

	out->start = f->procedure->start;
	out->blocks.n = out->links.n = places->n = 0;
	out->tables = 0;
	m.table = graph_numbers(flow->nblocks, GRAPH_NONE);
	m.apart = xcalloc(flow->nblocks + 1, sizeof *m.apart);
	for (uint32_t i = 0; i < flow->nblocks; i++)
		add_block(&m, i);
	if (flow->njumps > 1)
		find_tables(&m);
	divide_blocks(&m);
	m.often = guess_edges(s->edit, f, loops);
	if (alone)
		divide_turns(&m);
	add_links(&m);
	free(m.table);
	free(m.apart);
	free(m.often);
	vec_deinit(&m.turns);
}
