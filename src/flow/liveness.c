#include "flow/liveness.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/vec.h"

/* What an instruction needs, and what it makes dead before it. */
struct effect {
	uint32_t uses, kills;
};

struct liveness {
	const struct flow *flow;
	struct effect *effects; /* by instruction */
	uint32_t *block_of;     /* by instruction */
	uint32_t *in, *out;     /* by block */
	uint16_t written;
	uint32_t unseen; /* live where blocks are entered unseen: calls may go there */
};

struct context {
	struct liveness *l;
	const struct flow_source *source;
	liveness_clobbers *clobbers;
	void *arg;
};

/* ---- instructions ---- */

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

static struct effect effect_of_call(const struct context *c, const struct flow_insn *i)
{
	struct effect e = {REGS_ARGUMENTS | 1u << REG_RSP, LIVE_FLAGS(FORM_FLAGS)};

	if (i->kind == INSN_CALL_INDIRECT)
		e.kills |= REGS_ALL & ~REGS_KEPT;
	else if (c->clobbers)
		e.kills |= c->clobbers(c->arg, flow_target(i)) & ~REGS_KEPT;
	return e;
}

static struct effect effect_of(const struct context *c, const struct flow_insn *i)
{
	const struct effect everything = {LIVE_ALL, 0};
	const uint8_t *code = NULL;
	struct effect e = {0};
	struct form f;

	size_t n = code_at(c->source, i->address, &code);
	if (i->end == FLOW_BAD || isa_form(code, n, i->address, &f))
		return everything;
	c->l->written |= f.writes;
	if (i->kind == INSN_SYSCALL || (i->kind == INSN_TRAP))
		return everything;
	if (i->kind == INSN_CALL || i->kind == INSN_CALL_INDIRECT)
		e = effect_of_call(c, i);
	e.uses |= f.reads | LIVE_FLAGS(f.flags_read);
	e.kills |= f.kills | LIVE_FLAGS(f.flags_killed);
	e.kills &= ~(1u << REG_RSP);
	return e;
}

static void find_effects(const struct context *c)
{
	const struct flow *f = c->l->flow;

	for (uint32_t k = 0; k < f->nblocks; k++) {
		const struct flow_block *b = &f->blocks[k];
		for (uint32_t i = b->first; i < b->first + b->count; i++) {
			c->l->effects[i] = effect_of(c, &f->insns[i]);
			c->l->block_of[i] = k;
		}
	}
}

/* ---- blocks ---- */

/* What somebody outside may read after the procedure. */
static uint32_t live_at_exit(const struct liveness *l, uint32_t block, uint8_t kind)
{
	const struct flow_block *b = &l->flow->blocks[block];
	const struct flow_insn *last = &l->flow->insns[b->first + b->count - 1];
	uint32_t kept = REGS_KEPT | (REGS_ALL & ~(uint32_t)l->written);

	switch ((enum flow_edge_kind)kind) {
	case FLOW_EDGE_RETURN:
		return REGS_RESULTS | kept;
	case FLOW_EDGE_TAIL:
		return REGS_ARGUMENTS | kept;
	case FLOW_EDGE_STOP: /* a call that does not come back may unwind */
		return last->kind == INSN_CALL ? kept : LIVE_ALL;
	default:
		return LIVE_ALL;
	}
}

static uint32_t live_behind(const struct liveness *l, uint32_t block)
{
	const struct graph *g = &l->flow->graph;
	const struct flow_block *b = &l->flow->blocks[block];
	uint8_t kind = l->flow->insns[b->first + b->count - 1].kind;
	uint32_t live = b->marks & FLOW_PADDING ? LIVE_ALL : 0;

	graph_each_out (e, g, block) {
		uint32_t to = g->edge[*e].to;
		live |= to < l->flow->nblocks ? l->in[to]
					      : live_at_exit(l, block, l->flow->edge_kind[*e]);
	}
	if (kind == INSN_CALL || kind == INSN_CALL_INDIRECT)
		live |= l->unseen;
	return live;
}

static uint32_t live_before(const struct liveness *l, uint32_t from, uint32_t end, uint32_t live)
{
	while (end-- > from)
		live = (live & ~l->effects[end].kills) | l->effects[end].uses;
	return live;
}

/* Backwards until nothing changes. */
static void settle(struct liveness *l)
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
		const struct flow_block *b = &f->blocks[k];
		waits[k] = false;
		l->out[k] = live_behind(l, k);
		uint32_t in = live_before(l, b->first, b->first + b->count, l->out[k]);
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

static uint32_t live_unseen(const struct liveness *l)
{
	uint32_t live = 0;

	for (uint32_t k = 0; k < l->flow->nblocks; k++)
		if (l->flow->blocks[k].marks & FLOW_ENTERED)
			live |= l->in[k];
	return live;
}

/* ---- public ---- */

void liveness_create(const struct flow *f, const struct flow_source *source,
	liveness_clobbers *clobbers, void *arg, struct liveness **out)
{
	struct liveness *l = xcalloc(1, sizeof *l);
	struct context c = {l, source, clobbers, arg};

	l->flow = f;
	l->effects = xcalloc(f->ninsns + 1, sizeof *l->effects);
	l->block_of = xcalloc(f->ninsns + 1, sizeof *l->block_of);
	l->in = xcalloc(f->nblocks + 1, sizeof *l->in);
	l->out = xcalloc(f->nblocks + 1, sizeof *l->out);
	find_effects(&c);
	settle(l);
	while (live_unseen(l) & ~l->unseen) { /* as often as there are bits, at most */
		l->unseen |= live_unseen(l);
		settle(l);
	}
	*out = l;
}

void liveness_destroy(struct liveness *l)
{
	if (!l)
		return;
	free(l->effects);
	free(l->block_of);
	free(l->in);
	free(l->out);
	free(l);
}

uint32_t liveness_in(const struct liveness *l, uint32_t block)
{
	return l->in[block];
}

uint32_t liveness_out(const struct liveness *l, uint32_t block)
{
	return l->out[block];
}

uint32_t liveness_before(const struct liveness *l, uint32_t insn)
{
	uint32_t k = l->block_of[insn];
	const struct flow_block *b = &l->flow->blocks[k];

	return live_before(l, insn, b->first + b->count, l->out[k]);
}

uint16_t liveness_written(const struct liveness *l)
{
	return l->written;
}
