#include "edit/variable.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "edit/pad.h"
#include "edit/pad_internal.h"
#include "edit/snippet_plan.h"
#include "edit/unwind.h"
#include "flow/program.h"
#include "image/data.h"

enum { WORD = 8, RED_ZONE = 128 };

/* A variable that is looked for. */
struct search {
	struct edit *e;
	struct function *f;
	const struct flow *flow;
	const struct liveness *lives;
	const bool *blocks; /* NULL: all */
	struct variable *out;
	/* What the blocks do: */
	bool calls, moves_stack;
	bool leaf;        /* nor does the rest of the function call anybody */
	uint16_t touched; /* registers */
	const char *why;
};

static bool is_inside(const struct search *s, uint32_t block)
{
	return !(s->flow->blocks[block].marks & FLOW_PADDING) && (!s->blocks || s->blocks[block]);
}

/* ---- what the blocks do ---- */

static bool is_call(const struct flow_insn *i)
{
	return i->kind == INSN_CALL || i->kind == INSN_CALL_INDIRECT;
}

/* Unwinding may go on there, from a call that does not come back. */
static bool is_entered_inside(const struct search *s)
{
	for (uint32_t k = 0; k < s->flow->nblocks; k++)
		if (is_inside(s, k) && s->flow->blocks[k].marks & FLOW_ENTERED)
			return true;
	return false;
}

static bool read_block(struct search *s, const struct flow_block *b, bool entered)
{
	for (uint32_t i = b->first; i < b->first + b->count; i++) {
		const struct flow_insn *insn = &s->flow->insns[i];
		const uint8_t *code = edit_code(s->e, insn->address, insn->length);
		struct form f;
		if (!code || isa_form(code, insn->length, insn->address, &f))
			return false;
		if (is_call(insn)) {
			s->calls |= b->end != FLOW_STOPS || entered;
			continue;
		}
		s->touched |= f.reads | f.writes;
		s->moves_stack |=
			(f.writes >> REG_RSP & 1 && insn->kind != INSN_RETURN) || sets_anchor(&f);
	}
	return true;
}

static bool read_blocks(struct search *s)
{
	bool entered = is_entered_inside(s);

	s->leaf = true;
	for (uint32_t i = 0; i < s->flow->ninsns; i++)
		s->leaf &= !is_call(&s->flow->insns[i]);
	for (uint32_t k = 0; k < s->flow->nblocks; k++)
		if (is_inside(s, k) && !read_block(s, &s->flow->blocks[k], entered))
			return false;
	return true;
}

/* ---- registers ---- */

/* Code on an edge may go before the jump that takes it. */
static uint32_t live_around(const struct search *s, uint32_t block)
{
	uint32_t live = liveness_in(s->lives, block);

	graph_each_in (edge, &s->flow->graph, block) {
		uint32_t from = s->flow->graph.edge[*edge].from;
		if (from < s->flow->nblocks && s->flow->blocks[from].end == FLOW_JUMPS)
			live |= liveness_out(s->lives, from);
	}
	return live;
}

static bool holds(const struct variable *v, const struct flow *flow, uint32_t block)
{
	return !v->blocks || (block < flow->nblocks && v->blocks[block]);
}

/* The blocks, and those next to them: code on the edges between uses variables of both sides. */
static bool *blocks_around(const struct search *s)
{
	bool *around = xcalloc(s->flow->nblocks + 1, sizeof *around);

	for (uint32_t i = 0; i < s->flow->nblocks; i++)
		around[i] = is_inside(s, i);
	for (uint32_t i = 0; i < s->flow->graph.edges; i++) {
		struct graph_edge e = s->flow->graph.edge[i];

		if (e.from >= s->flow->nblocks || e.to >= s->flow->nblocks)
			continue;
		around[e.to] |= is_inside(s, e.from);
		around[e.from] |= is_inside(s, e.to);
	}
	return around;
}

/* Registers of variables that such code has as well. */
static uint16_t taken_around(const struct search *s)
{
	bool *around = blocks_around(s);
	uint16_t taken = 0;

	vec_each (v, &s->f->variables)
		for (uint32_t i = 0; i < s->flow->nblocks && v->reg != REG_NONE; i++)
			if (around[i] && holds(v, s->flow, i)) {
				taken |= (uint16_t)(1u << v->reg);
				break;
			}
	free(around);
	return taken;
}

/* Untouched and dead at the start of a block is dead in all of it. */
static bool find_register(struct search *s)
{
	uint16_t set = (uint16_t)(PLAN_CANDIDATES & ~s->touched & ~(1u << REG_RAX));

	if (s->calls) /* what is called may have variables too */
		return false;
	for (uint32_t k = 0; k < s->flow->nblocks && set; k++)
		if (is_inside(s, k))
			set &= (uint16_t) ~(live_around(s, k) | unwind_registers(s->e->unwind,
									s->flow->blocks[k].start));
	if (set)
		set &= (uint16_t)~taken_around(s);
	s->out->reg = plan_choose(set);
	return s->out->reg != REG_NONE;
}

/* What the jumps to these blocks use: code on the way may stand before them. */
static uint16_t used_to_enter(const struct search *s)
{
	uint16_t used = 0;

	for (uint32_t i = 0; i < s->flow->graph.edges; i++) {
		struct graph_edge edge = s->flow->graph.edge[i];
		struct form f;

		if (edge.to >= s->flow->nblocks || !is_inside(s, edge.to) ||
			edge.from >= s->flow->nblocks)
			continue;
		const struct flow_block *b = &s->flow->blocks[edge.from];
		const struct flow_insn *last = &s->flow->insns[b->first + b->count - 1];
		const uint8_t *code = edit_code(s->e, last->address, last->length);

		if (!code || isa_form(code, last->length, last->address, &f))
			return REGS_ALL;
		used |= f.reads | f.writes;
	}
	return used;
}

/*
 * Registers that a callee may change anyway, or that the function has saved: to unwinding they are
 * the same whatever is in them.
 */
static bool find_borrowed(struct search *s)
{
	uint16_t set = (uint16_t)(PLAN_CANDIDATES & ~s->touched & ~(1u << REG_RAX));

	if (s->calls)
		return false;
	set &= (uint16_t)~used_to_enter(s);
	for (uint32_t k = 0; k < s->flow->nblocks && set; k++) {
		uint64_t at = s->flow->blocks[k].start;

		if (is_inside(s, k))
			set &= (uint16_t)((~REGS_KEPT | unwind_saved(s->e->unwind, at)) &
					  ~unwind_registers(s->e->unwind, at));
	}
	if (set)
		set &= (uint16_t)~taken_around(s);
	s->out->reg = plan_choose(set);
	return s->out->reg != REG_NONE;
}

/* ---- words below the stack ---- */

static bool is_reachable(const struct variable_word *w)
{
	return w->base == REG_RBP || w->offset >= -RED_ZONE;
}

/* Below all that may be in use, and below what was popped (scratch.c). */
static bool find_word_below(struct search *s)
{
	unsigned used = liveness_red_zone(s->lives);

	if (s->calls || s->moves_stack)
		return false;
	used = used > SCRATCH_POPPED ? (used + 7) & ~7u : SCRATCH_POPPED;
	s->out->word =
		(struct variable_word){REG_RSP, -(int32_t)(used + WORD * (s->out->number + 1u))};
	return is_reachable(&s->out->word);
}

/* How far below the CFA an instruction may reach; DEPTH_UNKNOWN. */
static int32_t reach(const struct depths *d, uint32_t insn, bool leaf)
{
	const struct form *f = &d->views[insn].form;
	struct spot at = d->spots[insn], next = depths_step(&d->views[insn], at);
	int32_t deepest = at.depth + f->below_rsp;

	if (at.depth < 0 || next.depth < 0 || at.anchor < 0)
		return DEPTH_UNKNOWN;
	if (leaf && f->copies_rsp && !sets_anchor(f))
		return DEPTH_UNKNOWN;
	if (leaf && at.anchor > 0 && at.anchor + f->below_rbp > deepest)
		deepest = at.anchor + f->below_rbp;
	return next.depth > deepest ? next.depth : deepest;
}

/*
 * The same of all blocks that matter: who calls nobody may have something in the red zone anywhere;
 * others have nothing there that they do not name, but what was popped must stay.
 */
static int32_t reach_of_all(const struct search *s, const struct depths *d)
{
	int32_t deepest = 0;

	for (uint32_t k = 0; k < s->flow->nblocks; k++) {
		const struct flow_block *b = &s->flow->blocks[k];
		for (uint32_t i = b->first; i < b->first + b->count; i++) {
			if (d->spots[i].depth == DEPTH_UNSEEN || !(s->leaf || is_inside(s, k)))
				continue;
			int32_t depth = reach(d, i, s->leaf);
			if (depth < 0)
				return depth;
			deepest = depth > deepest ? depth : deepest;
		}
	}
	return ((deepest + 7) & ~7) + (s->leaf ? 0 : SCRATCH_POPPED);
}

/* ---- words at a depth ---- */

/* Where a word at a depth below the CFA is, before an instruction, with the frame as it was. */
static struct variable_word word_below(struct spot at, int32_t depth)
{
	if (at.depth == DEPTH_UNSEEN)
		return (struct variable_word){.base = REG_NONE};
	return (struct variable_word){REG_RSP, at.depth - depth};
}

/* The same with a gap in it, where the word is the first or one of the next. */
static struct variable_word word_in_gap(
	const struct pad *p, uint32_t insn, struct spot at, int32_t depth)
{
	int32_t size = (int32_t)p->size;

	if (at.depth == DEPTH_UNSEEN)
		return (struct variable_word){.base = REG_NONE};
	if (at.depth >= 0)
		return (struct variable_word){
			REG_RSP, at.depth + (p->open[insn] ? size : 0) - depth};
	if (at.anchor <= 0)
		return (struct variable_word){REG_RSP, -RED_ZONE - WORD};
	return (struct variable_word){
		REG_RBP, at.anchor + (at.anchor > (int32_t)p->gap ? size : 0) - depth};
}

/* Whether it can be had at all places in and around the blocks. */
static bool all_reachable(const struct search *s)
{
	const struct variable_word *words = s->out->by_insn;

	for (uint32_t k = 0; k < s->flow->nblocks; k++) {
		const struct flow_block *b = &s->flow->blocks[k];
		bool inside = is_inside(s, k), leads_in = false, comes_from = false;
		graph_each_out (edge, &s->flow->graph, k) {
			uint32_t to = s->flow->graph.edge[*edge].to;
			leads_in |= to < s->flow->nblocks && is_inside(s, to);
		}
		graph_each_in (edge, &s->flow->graph, k) {
			uint32_t from = s->flow->graph.edge[*edge].from;
			comes_from |= from < s->flow->nblocks && is_inside(s, from);
		}
		for (uint32_t i = b->first; i < b->first + b->count; i++)
			if ((inside || (comes_from && i == b->first) ||
				    (leads_in && i == b->first + b->count - 1)) &&
				!is_reachable(&words[i]))
				return false;
	}
	return true;
}

static struct variable_word *words_at(const struct depths *d, const struct pad *p, int32_t depth)
{
	uint32_t n = d->flow->ninsns;
	struct variable_word *words = xcalloc(n + 1, sizeof *words);

	for (uint32_t i = 0; i < n; i++)
		words[i] =
			p ? word_in_gap(p, i, d->spots[i], depth) : word_below(d->spots[i], depth);
	return words;
}

static bool keep_words(struct search *s, const struct depths *d, const struct pad *p, int32_t depth)
{
	s->out->by_insn = words_at(d, p, depth);
	if (all_reachable(s))
		return true;
	free(s->out->by_insn);
	s->out->by_insn = NULL;
	s->why = "a frame that is too large to reach over";
	return false;
}

/* A frame that grows later would move what lies below it. */
static bool find_word_at_depth(struct search *s, const struct depths *d)
{
	if (s->calls || s->f->pad)
		return false;
	int32_t depth = reach_of_all(s, d);
	return depth >= 0 && keep_words(s, d, NULL, depth + WORD * (s->out->number + 1));
}

static bool lies_below(const struct function *f)
{
	vec_each (v, &f->variables)
		if (v->by_insn && !f->pad)
			return true;
	return false;
}

/* The depth of a variable's word in the gap. */
static int32_t depth_in_gap(const struct pad *p, uint8_t number)
{
	size_t i = 0;

	while (p->words.p[i] != number)
		i++;
	return (int32_t)p->gap + WORD * (int32_t)(i + 1);
}

/* A gap with so much room, in place of the one that is there; its words stay where they are in it.
 */
static bool have_gap(struct search *s, const struct depths *d, uint32_t size)
{
	struct pad *old = s->f->pad, *p;

	if (old && old->size >= size)
		return true;
	p = pad_create(s->e, s->f, size, &s->why);
	if (!p)
		return false;
	s->f->pad = p;
	if (!old)
		return true;
	vec_each (number, &old->words)
		*vec_add(&p->words) = *number;
	pad_destroy(old);
	vec_each (v, &s->f->variables) {
		if (!v->by_insn)
			continue;
		free(v->by_insn);
		v->by_insn = words_at(d, p, depth_in_gap(p, v->number));
	}
	return true;
}

/* Frames grow by what is needed: recursions go deep. */
static bool find_word_in_gap(struct search *s, const struct depths *d)
{
	struct function *f = s->f;
	bool known = false;

	if (lies_below(f)) {
		s->why = "another variable lies below its frame";
		return false;
	}
	for (size_t i = 0; f->pad && i < f->pad->words.n; i++)
		known |= f->pad->words.p[i] == s->out->number;
	if (!known) {
		size_t words = f->pad ? f->pad->words.n : 0;

		if (!have_gap(s, d, (uint32_t)(WORD * (words + 1) + 15) & ~15u))
			return false;
		*vec_add(&f->pad->words) = s->out->number;
	}
	return keep_words(s, d, f->pad, depth_in_gap(f->pad, s->out->number));
}

/* A function that calls may need its gap for another variable, and a word in it costs no more. */
static bool find_word(struct search *s)
{
	struct depths d;

	if (find_word_below(s))
		return true;
	s->why = depths_find(s->e, s->flow, &d);
	bool found =
		!s->why && ((s->leaf && find_word_at_depth(s, &d)) || find_word_in_gap(s, &d) ||
				   (!s->leaf && find_word_at_depth(s, &d)));
	depths_deinit(&d);
	return found;
}

/* ---- public ---- */

static int by_address(const void *key, const void *pad)
{
	const uint64_t *x = key, *y = pad;

	return *x < *y ? -1 : *x > *y;
}

/* Whoever goes into the middle brings no value; unwinding does, for it leaves the frame alone. */
static bool is_entered_elsewhere(const struct edit *e, const struct flow *flow)
{
	const struct image_data *data = program_data(e->program);
	const uint64_t *pads = NULL;
	size_t n = data ? image_data_landing_pads(data, &pads) : 0;

	for (uint32_t k = 0; k < flow->nblocks; k++) {
		const struct flow_block *b = &flow->blocks[k];
		if (b->marks & FLOW_ENTERED & ~FLOW_ENTERED_UNREACHED && b->start != flow->entry &&
			!(n && bsearch(&b->start, pads, n, sizeof *pads, by_address)))
			return true;
	}
	return false;
}

enum where { ANYWHERE, IN_REGISTER, BORROWED };

static const char *find(struct search *s, enum where where)
{
	if (!read_blocks(s))
		return "bytes that are no instructions";
	if (where == BORROWED ? find_borrowed(s) : find_register(s))
		return NULL;
	if (where != ANYWHERE)
		return "no register is free";
	return find_word(s) ? NULL : s->why;
}

static const char *search_and_keep(struct edit *e, struct edit_function *public, unsigned v,
	const bool *blocks, enum where where)
{
	struct function *f = (struct function *)public;
	struct variable found = {.number = (uint8_t)v, .reg = REG_NONE};

	f = f->original ? f->original : f;
	if (public->refused)
		return public->refused;
	if (!blocks && is_entered_elsewhere(e, public->flow))
		return "others go into its middle";
	struct search s = {.e = e,
		.f = f,
		.flow = public->flow,
		.lives = edit_liveness(e, public),
		.blocks = blocks,
		.out = &found};
	const char *why = find(&s, where);
	if (why)
		return why;
	if (blocks)
		found.blocks = xmemdup(blocks, public->flow->nblocks * sizeof *blocks);
	*vec_add(&f->variables) = found;
	return NULL;
}

bool edit_variable(
	struct edit *e, struct edit_function *f, unsigned v, const bool *blocks, const char **why)
{
	*why = search_and_keep(e, f, v, blocks, ANYWHERE);
	return !*why;
}

bool edit_variable_in_register(
	struct edit *e, struct edit_function *f, unsigned v, const bool *blocks)
{
	return !search_and_keep(e, f, v, blocks, IN_REGISTER);
}

bool edit_variable_borrowed(struct edit *e, struct edit_function *f, unsigned v, const bool *blocks)
{
	return !search_and_keep(e, f, v, blocks, BORROWED);
}

void edit_variable_is(struct edit *e __attribute__((unused)), struct edit_function *public,
	unsigned v, const bool *blocks, uint8_t reg)
{
	struct function *f = (struct function *)public;

	f = f->original ? f->original : f;
	*vec_add(&f->variables) = (struct variable){.number = (uint8_t)v,
		.reg = reg,
		.blocks = xmemdup(blocks, public->flow->nblocks * sizeof *blocks)};
}

void variables_deinit(struct function *f)
{
	vec_each (v, &f->variables) {
		free(v->blocks);
		free(v->by_insn);
	}
	vec_deinit(&f->variables);
}

/* ---- places ---- */

void variables_at(const struct function *f, uint32_t insn, uint32_t from, uint32_t to,
	struct snippet_place *place)
{
	f = f->original ? f->original : f;
	vec_each (v, &f->variables) {
		struct variable_word w = v->by_insn ? v->by_insn[insn] : v->word;
		if (!holds(v, f->public.flow, from) && !holds(v, f->public.flow, to))
			continue;
		place->variable[v->number].reg = v->reg;
		if (v->reg != REG_NONE) {
			place->live |= 1u << v->reg;
			continue;
		}
		if (w.base == REG_NONE) /* nobody comes here */
			w = (struct variable_word){REG_RSP, -RED_ZONE};
		place->variable[v->number].base = w.base;
		place->variable[v->number].slot = w.offset;
		if (w.base == REG_RSP && -w.offset > place->red_zone)
			place->red_zone = (uint8_t)-w.offset;
	}
}
