#include "flow/liveness.h"

#include <stdlib.h>

#include "base/mem.h"
#include "flow/liveness_internal.h"

/* ---- instructions ---- */

/* What is remembered from one instruction of a block to the next. */
struct reader {
	struct liveness *l;
	const struct flow_source *source;
	unsigned pushed;        /* words that are still there */
	bool stored;            /* the last one did, and used rsp */
	bool maybe_thread;      /* rax may hold the address of a TLS descriptor */
	bool calls, moves;      /* the procedure has calls; it moves rsp */
	bool copies;            /* it has rsp elsewhere than in rbp */
	unsigned named, framed; /* bytes below rsp, and below rbp */
};

static size_t code_at(const struct flow_source *s, uint64_t address, const uint8_t **out)
{
	const uint8_t *code = s->code;

	for (uint32_t i = 0; i < s->nranges; i++) {
		uint64_t into = address - s->ranges[i].start;
		if (into < s->ranges[i].size) {
			*out = code + into;
			return s->ranges[i].size - into;
		}
		code += s->ranges[i].size;
	}
	return 0;
}

/* A TLS descriptor is called by `lea x(%rip), %rax; call *(%rax)` and changes no other register. */
static struct effect effect_of_pointer(const struct reader *r, const struct form *f)
{
	if (f->from.type == FORM_MEMORY && f->base == REG_RAX && f->index == REG_NONE &&
		!f->displacement && r->maybe_thread)
		return (struct effect){LIVE_ALL, 1u << REG_RAX | LIVE_FLAGS(FORM_FLAGS)};
	return (struct effect){LIVE_ABI_USES, LIVE_ABI_KILLS};
}

static void add_site(struct liveness *l, uint32_t number, bool tail)
{
	*vec_add(&l->sites) = (struct site){.insn = number,
		.callee = GRAPH_NONE,
		.own = l->effects[number].uses,
		.target = flow_target(&l->flow->insns[number]),
		.tail = tail};
}

static struct effect effect_of(struct reader *r, uint32_t number, const struct form *f)
{
	const struct flow_insn *i = &r->l->flow->insns[number];
	const struct effect everything = {LIVE_ALL, 0};
	struct effect e = {0};

	if (i->kind == INSN_SYSCALL || i->kind == INSN_TRAP)
		return everything;
	if (i->kind == INSN_CALL) {
		add_site(r->l, number, false);
		return everything;
	}
	if (i->kind == INSN_CALL_INDIRECT) {
		r->l->calls_others = true;
		e = effect_of_pointer(r, f);
	}
	e.uses |= f->reads | LIVE_FLAGS(f->flags_read);
	e.kills |= f->kills | LIVE_FLAGS(f->flags_killed);
	e.kills &= ~(1u << REG_RSP);
	return e;
}

/* What is pushed or stored last may be where the return goes. */
static void follow_stack(struct reader *r, const struct form *f)
{
	if (f->kind == INSN_RETURN)
		r->l->returns_oddly |= r->pushed || r->stored;
	if (f->op == FORM_PUSH)
		r->pushed++;
	else if (f->op == FORM_POP)
		r->pushed -= r->pushed > 0;
	else if (f->writes & 1u << REG_RSP)
		r->pushed = 0;
	r->stored = f->stores && f->reads & 1u << REG_RSP && f->kind == INSN_PLAIN;
	if (f->writes & 1u << REG_RAX)
		r->maybe_thread = f->op == FORM_ADDRESS && f->base == REG_NONE;
}

static void note_red_zone(struct reader *r, const struct form *f)
{
	bool to_frame = f->op == FORM_MOVE && f->to.type == FORM_REGISTER && f->to.reg == REG_RBP;

	r->calls |= f->kind == INSN_CALL || f->kind == INSN_CALL_INDIRECT;
	r->moves |= f->writes & 1u << REG_RSP && f->kind != INSN_RETURN;
	r->copies |= f->copies_rsp && !to_frame;
	if (f->below_rsp > r->named)
		r->named = f->below_rsp;
	if (f->below_rbp > r->framed)
		r->framed = f->below_rbp;
}

/* Compilers use it only in procedures that call nobody. Where rsp moves too, others than those that
 * are named may be in use. */
static uint8_t red_zone(const struct reader *r)
{
	unsigned below = r->named;

	if (!r->calls && r->copies)
		below = FORM_BELOW_MAX;
	if (!r->calls && r->framed > below)
		below = r->framed;
	return below && r->moves ? FORM_BELOW_MAX : (uint8_t)below;
}

static void read_insn(struct reader *r, uint32_t number)
{
	struct liveness *l = r->l;
	const struct flow_insn *i = &l->flow->insns[number];
	const uint8_t *code = NULL;
	struct form f;

	size_t n = code_at(r->source, i->address, &code);
	if (i->end == FLOW_BAD || isa_form(code, n, i->address, &f)) {
		l->effects[number] = (struct effect){LIVE_ALL, 0};
		return;
	}
	l->effects[number] = effect_of(r, number, &f);
	l->written |= f.writes | LIVE_FLAGS(f.flags_written);
	follow_stack(r, &f);
	note_red_zone(r, &f);
}

static void read_block(struct reader *r, uint32_t k)
{
	const struct flow_block *b = &r->l->flow->blocks[k];
	uint32_t last = b->first + b->count - 1;

	r->pushed = 0;
	r->stored = false;
	r->maybe_thread = true;
	for (uint32_t i = b->first; i <= last; i++) {
		read_insn(r, i);
		r->l->block_of[i] = k;
	}
	const struct flow_insn *i = &r->l->flow->insns[last];
	if (i->kind != INSN_JUMP && i->kind != INSN_BRANCH)
		return;
	graph_each_out (e, &r->l->flow->graph, k)
		if (r->l->flow->edge_kind[*e] == FLOW_EDGE_TAIL) {
			add_site(r->l, last, true);
			r->l->effects[last].uses = LIVE_ALL;
		}
}

/* ---- blocks ---- */

/* What somebody outside may read after the procedure. */
static both needed_outside(const struct liveness *l, uint32_t block, uint8_t kind)
{
	const struct flow_block *b = &l->flow->blocks[block];
	const struct flow_insn *last = &l->flow->insns[b->first + b->count - 1];

	switch ((enum flow_edge_kind)kind) {
	case FLOW_EDGE_RETURN:
		return l->at_end;
	case FLOW_EDGE_TAIL: /* what a direct one goes to is among the effects */
		return l->at_end | (b->end == FLOW_TAIL_INDIRECT ? BOTH(LIVE_ABI_USES) : 0);
	case FLOW_EDGE_STOP: /* a call that does not come back may unwind */
		return last->kind == INSN_CALL ? l->at_end : BOTH(LIVE_ALL);
	default:
		return BOTH(LIVE_ALL);
	}
}

static both needed_behind(const struct liveness *l, uint32_t block)
{
	const struct graph *g = &l->flow->graph;
	const struct flow_block *b = &l->flow->blocks[block];
	uint8_t kind = l->flow->insns[b->first + b->count - 1].kind;
	both needed = b->marks & FLOW_PADDING ? BOTH(LIVE_ALL) : 0;

	graph_each_out (e, g, block) {
		uint32_t to = g->edge[*e].to;
		needed |= to < l->flow->nblocks ? l->in[to]
						: needed_outside(l, block, l->flow->edge_kind[*e]);
	}
	if (kind == INSN_CALL || kind == INSN_CALL_INDIRECT)
		needed |= l->unseen;
	return needed;
}

static void sum_up(struct liveness *l)
{
	for (uint32_t k = 0; k < l->flow->nblocks; k++) {
		const struct flow_block *b = &l->flow->blocks[k];
		uint32_t uses = 0, kills = 0;
		for (uint32_t i = b->first + b->count; i-- > b->first;) {
			uses = (uses & ~l->effects[i].kills) | l->effects[i].uses;
			kills |= l->effects[i].kills;
		}
		l->sums[k].uses = BOTH(uses);
		l->sums[k].kills = BOTH(kills);
	}
}

/* Backwards until nothing changes. */
static void spread(struct liveness *l)
{
	const struct flow *f = l->flow;
	VEC(uint32_t) stack = {0};
	bool *waits = xmalloc(f->nblocks + 1);

	for (uint32_t k = 0; k < f->nblocks; k++) {
		*vec_add(&stack) = k;
		waits[k] = true;
	}
	while (stack.n) {
		uint32_t k = stack.p[--stack.n];
		waits[k] = false;
		l->out[k] = needed_behind(l, k);
		both in = (l->out[k] & ~l->sums[k].kills) | l->sums[k].uses;
		if (in == l->in[k])
			continue;
		l->in[k] = in;
		graph_each_in (e, &f->graph, k) {
			uint32_t from = f->graph.edge[*e].from;
			if (from >= f->nblocks || waits[from])
				continue;
			*vec_add(&stack) = from;
			waits[from] = true;
		}
	}
	vec_deinit(&stack);
	free(waits);
}

static both needed_unseen(const struct liveness *l)
{
	both needed = 0;

	for (uint32_t k = 0; k < l->flow->nblocks; k++)
		if (l->flow->blocks[k].marks & FLOW_ENTERED)
			needed |= l->in[k];
	return needed;
}

void liveness_settle(struct liveness *l)
{
	sum_up(l);
	spread(l);
	while (needed_unseen(l) & ~l->unseen) { /* as often as there are bits, at most */
		l->unseen |= needed_unseen(l);
		spread(l);
	}
}

void liveness_read(const struct flow *f, const struct flow_source *source, struct liveness **out)
{
	struct liveness *l = xcalloc(1, sizeof *l);
	struct reader r = {.l = l, .source = source};

	l->flow = f;
	l->effects = xcalloc(f->ninsns + 1, sizeof *l->effects);
	l->block_of = xcalloc(f->ninsns + 1, sizeof *l->block_of);
	l->sums = xcalloc(f->nblocks + 1, sizeof *l->sums);
	l->in = xcalloc(f->nblocks + 1, sizeof *l->in);
	l->out = xcalloc(f->nblocks + 1, sizeof *l->out);
	for (uint32_t k = 0; k < f->nblocks; k++)
		read_block(&r, k);
	l->red_zone = red_zone(&r);
	*out = l;
}

uint32_t liveness_after(const struct liveness *l, uint32_t insn)
{
	uint32_t k = l->block_of[insn];
	const struct flow_block *b = &l->flow->blocks[k];
	uint32_t live = BOTH_LIVE(l->out[k]);

	for (uint32_t i = b->first + b->count; --i > insn;)
		live = (live & ~l->effects[i].kills) | l->effects[i].uses;
	return live;
}

uint32_t liveness_reads(const struct liveness *l)
{
	both needed = 0;

	graph_each_out (e, &l->flow->graph, l->flow->entry_node)
		if (l->flow->edge_kind[*e] == FLOW_EDGE_ENTRY)
			needed |= l->in[l->flow->graph.edge[*e].to];
	return BOTH_READ(needed);
}

/* ---- public ---- */

void liveness_create(const struct flow *f, const struct flow_source *source, struct liveness **out)
{
	liveness_read(f, source, out);
	(*out)->at_end = REGS_RESULTS | REGS_KEPT | (REGS_ALL & ~(*out)->written);
	liveness_settle(*out);
}

void liveness_destroy(struct liveness *l)
{
	if (!l)
		return;
	vec_deinit(&l->sites);
	free(l->effects);
	free(l->block_of);
	free(l->sums);
	free(l->in);
	free(l->out);
	free(l);
}

uint32_t liveness_in(const struct liveness *l, uint32_t block)
{
	return BOTH_LIVE(l->in[block]);
}

uint32_t liveness_out(const struct liveness *l, uint32_t block)
{
	return BOTH_LIVE(l->out[block]);
}

uint32_t liveness_before(const struct liveness *l, uint32_t insn)
{
	return (liveness_after(l, insn) & ~l->effects[insn].kills) | l->effects[insn].uses;
}

uint32_t liveness_written(const struct liveness *l)
{
	return l->written;
}

unsigned liveness_red_zone(const struct liveness *l)
{
	return l->red_zone;
}
