#include "analyze/induction.h"

#include "base/mem.h"
#include "base/vec.h"
#include "flow/loops.h"
#include "isa/form.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Sure limits of what a core does in a nanosecond, in instructions. */
#define FASTEST 30.0
#define SLOWEST 0.01

#define FEWEST_PAIRS 4.0
#define AGREEING     0.6 /* of the pairs, at least */
#define SPREAD       1.6 /* factor around the middle within which pairs agree */

/* ---- what instructions do to registers ---- */

/* What a block or a loop does to the registers in one go. */
struct motion {
	uint16_t moved;     /* only ever by constants */
	uint16_t clobbered; /* otherwise */
};

/* How far an instruction moves a register; 0: not at all, or not by a constant. */
static int64_t stride_of(const struct form *f, unsigned reg)
{
	bool own = f->to.type == FORM_REGISTER && f->to.reg == reg && f->to.size >= 4;

	if (!own)
		return 0;
	switch (f->op) {
	case FORM_ADD:
		return f->from.type == FORM_IMMEDIATE ? f->immediate : 0;
	case FORM_SUBTRACT:
		return f->from.type == FORM_IMMEDIATE ? -f->immediate : 0;
	case FORM_ADDRESS:
		return f->base == reg && f->index == REG_NONE && !f->other_space
			       ? (int64_t)f->displacement
			       : 0;
	}
	return 0;
}

static bool is_call(const struct flow_insn *i)
{
	return i->kind == INSN_CALL || i->kind == INSN_CALL_INDIRECT || i->kind == INSN_SYSCALL;
}

struct moves {
	const struct evidence *ev;
	struct form *forms;                    /* by instruction; length 0: unknown */
	struct motion *block;                  /* by block */
	struct motion *loop;                   /* by loop, inner ones included */
	uint32_t (*counted)[ANCHOR_REGISTERS]; /* by pair: the loop that a register counts */
	bool *wanted;                          /* by loop: some pair counts it */
};

static const uint8_t *code_at(const struct evidence *ev, uint64_t address, size_t *left)
{
	const struct procedure *p = &ev->image->procedures.p[ev->procedure];
	size_t before = 0;

	for (uint32_t i = 0; i < p->nranges; i++) {
		uint64_t at = address - p->ranges[i].start;

		if (at < p->ranges[i].size && before + at < ev->code_size) {
			*left = p->ranges[i].size - at;
			return ev->code + before + at;
		}
		before += p->ranges[i].size;
	}
	return NULL;
}

static void add_motion(struct motion *to, const struct motion *m)
{
	to->moved |= m->moved;
	to->clobbered |= m->clobbered;
}

static struct motion motion_of(struct moves *m, uint32_t insn)
{
	const struct flow_insn *i = &m->ev->flow->insns[insn];
	struct form *f = &m->forms[insn];
	struct motion motion = {0};
	size_t left;
	const uint8_t *code = code_at(m->ev, i->address, &left);

	if (!code || isa_form(code, left, i->address, f))
		return (struct motion){.clobbered = REGS_ALL};
	if (is_call(i))
		motion.clobbered = REGS_ALL & ~REGS_KEPT;
	for (unsigned r = 0; r < ANCHOR_REGISTERS; r++)
		if (!(f->writes >> r & 1) || r == REG_RSP)
			continue;
		else if (stride_of(f, r))
			motion.moved |= (uint16_t)(1 << r);
		else
			motion.clobbered |= (uint16_t)(1 << r);
	return motion;
}

static bool counts(const struct moves *m, uint32_t loop, unsigned reg)
{
	return m->loop[loop].moved >> reg & 1 && !(m->loop[loop].clobbered >> reg & 1);
}

/* The loop that a register counts: the outermost around both samples that it counts in. */
static uint32_t counted_loop(const struct moves *m, const struct loops *loops, uint32_t block,
	uint32_t last, unsigned reg)
{
	uint32_t found = GRAPH_NONE;

	for (uint32_t l = loops->of[block]; l != GRAPH_NONE; l = loops->loop[l].parent)
		if (loops_contain(loops, l, last) && counts(m, l, reg))
			found = l;
	return found;
}

static void find_counted(struct moves *m, const struct loops *loops)
{
	const struct evidence *ev = m->ev;

	for (size_t i = 0; i < ev->nanchors; i++) {
		uint32_t block, last;
		bool inside = evidence_insn_at(ev->flow, ev->anchors[i].pc, &block) != GRAPH_NONE &&
			      evidence_insn_at(ev->flow, ev->anchors[i].last, &last) != GRAPH_NONE;

		for (unsigned r = 0; r < ANCHOR_REGISTERS; r++) {
			uint32_t l = inside ? counted_loop(m, loops, block, last, r) : GRAPH_NONE;

			m->counted[i][r] = l;
			if (l != GRAPH_NONE)
				m->wanted[l] = true;
		}
	}
}

static void moves_init(struct moves *m, const struct evidence *ev, const struct loops *loops)
{
	const struct flow *f = ev->flow;

	*m = (struct moves){.ev = ev};
	m->forms = xcalloc(f->ninsns + 1, sizeof *m->forms);
	m->block = xcalloc(f->nblocks + 1, sizeof *m->block);
	m->loop = xcalloc(loops->n + 1, sizeof *m->loop);
	for (uint32_t b = 0; b < f->nblocks; b++) {
		for (uint32_t i = 0; i < f->blocks[b].count; i++) {
			struct motion motion = motion_of(m, f->blocks[b].first + i);

			add_motion(&m->block[b], &motion);
		}
		for (uint32_t l = loops->of[b]; l != GRAPH_NONE; l = loops->loop[l].parent)
			add_motion(&m->loop[l], &m->block[b]);
	}
	m->counted = xcalloc(ev->nanchors + 1, sizeof *m->counted);
	m->wanted = xcalloc(loops->n + 1, sizeof *m->wanted);
	find_counted(m, loops);
}

static void moves_deinit(struct moves *m)
{
	free(m->forms);
	free(m->block);
	free(m->loop);
	free(m->counted);
	free(m->wanted);
}

/* ---- strides ---- */

/* How a register moves in one turn of a loop, in the mean, and what a turn takes. */
struct turn {
	double stride;
	double instructions;
	bool mixed; /* moves forth and back: means say little */
};

static struct turn turn_of(const struct moves *m, const struct loops *loops, uint32_t loop,
	unsigned reg, const double *flow)
{
	const struct flow *f = m->ev->flow;
	double turns = flow[loops->loop[loop].header], up = 0, down = 0;
	struct turn t = {0};

	for (uint32_t b = 0; b < f->nblocks; b++) {
		if (!loops_contain(loops, loop, b))
			continue;
		t.instructions += flow[b] * f->blocks[b].count;
		if (!(m->block[b].moved >> reg & 1))
			continue;
		for (uint32_t i = 0; i < f->blocks[b].count; i++) {
			const struct form *form = &m->forms[f->blocks[b].first + i];
			int64_t by = form->writes >> reg & 1 ? stride_of(form, reg) : 0;

			up += by > 0 ? flow[b] * (double)by : 0;
			down -= by < 0 ? flow[b] * (double)by : 0;
		}
	}
	if (!(turns > 0))
		return t;
	t.stride = (up - down) / turns;
	t.instructions /= turns;
	t.mixed = up > 0.02 * down && down > 0.02 * up;
	return t;
}

/* ---- pairs ---- */

struct pair {
	double rate, weight, between;
};
typedef VEC(struct pair) pair_list; /* rate 0: it cannot be right */

static int by_rate(const void *a, const void *b)
{
	const struct pair *x = a, *y = b;

	return x->rate < y->rate ? -1 : x->rate > y->rate;
}

static double weight_of(const pair_list *list, size_t from, size_t to)
{
	double sum = 0;

	for (size_t i = from; i < to; i++)
		sum += list->p[i].weight;
	return sum;
}

/* The rate that carries half of the weight. */
static double middle_of(const pair_list *list)
{
	double half = weight_of(list, 0, list->n) / 2, sum = 0;

	vec_each (p, list)
		if ((sum += p->weight) >= half)
			return p->rate;
	return 0;
}

/*
 * The mean of the pairs around the middle; what lies further out is taken for other activations.
 * All pairs take the same time or nearly, so that the mean of their rates is the loop's.
 */
static bool agree(pair_list *list, struct loop_rate *out)
{
	double all = weight_of(list, 0, list->n), sum = 0, squares = 0, n = 0, time = 0;
	double middle, variance;
	size_t kept = 0;

	vec_sort(list, by_rate);
	middle = middle_of(list);
	vec_each (p, list)
		if (p->rate > middle / SPREAD && p->rate < middle * SPREAD) {
			sum += p->weight * p->rate;
			time += p->weight * p->between;
			n += p->weight;
			kept++;
		}
	if (n < FEWEST_PAIRS || kept < 3 || n < AGREEING * all)
		return false;
	out->rate = sum / n;
	out->between = time / n;
	vec_each (p, list)
		if (p->rate > middle / SPREAD && p->rate < middle * SPREAD)
			squares += p->weight * (p->rate - out->rate) * (p->rate - out->rate);
	variance = squares / n / (out->rate * out->rate);
	out->error = sqrt(variance / (double)kept + 0.25 * (1 - n / all) * (1 - n / all));
	out->pairs = n;
	return true;
}

static void gather_pairs(
	const struct moves *m, uint32_t loop, unsigned reg, const struct turn *t, pair_list *out)
{
	const struct evidence *ev = m->ev;

	out->n = 0;
	for (size_t i = 0; i < ev->nanchors; i++) {
		const struct anchor *a = &ev->anchors[i];
		double turns, speed;

		if (!a->between || m->counted[i][reg] != loop)
			continue;
		turns = (double)a->difference[reg] / t->stride;
		speed = turns * t->instructions / (double)a->between;
		if (!(speed > SLOWEST && speed < FASTEST))
			turns = 0;
		*vec_add(out) = (struct pair){
			turns / (double)a->between, (double)a->weight, (double)a->between};
	}
}

/* ---- the whole ---- */

static bool rate_of(const struct moves *m, const struct loops *loops, uint32_t loop,
	const double *flow, struct loop_rate *out)
{
	struct loop_rate best = {0};
	pair_list pairs = {0};

	for (unsigned r = 0; r < ANCHOR_REGISTERS; r++) {
		struct loop_rate one = {.loop = loop, .header = loops->loop[loop].header};
		struct turn t;

		if (!counts(m, loop, r))
			continue;
		t = turn_of(m, loops, loop, r, flow);
		if (t.mixed || t.stride == 0)
			continue;
		gather_pairs(m, loop, r, &t, &pairs);
		if (pairs.n && agree(&pairs, &one) && (!best.pairs || one.error < best.error))
			best = one;
	}
	vec_deinit(&pairs);
	*out = best;
	return best.pairs > 0;
}

size_t induction_rates(const struct evidence *ev, const struct loops *loops, const double *flow,
	struct loop_rate **out)
{
	VEC(struct loop_rate) list = {0};
	struct moves m;

	*out = NULL;
	if (!ev->nanchors || !loops->n)
		return 0;
	moves_init(&m, ev, loops);
	for (uint32_t l = 0; l < loops->n; l++) {
		struct loop_rate one;

		if (m.wanted[l] && flow[loops->loop[l].header] > 0 &&
			rate_of(&m, loops, l, flow, &one))
			*vec_add(&list) = one;
	}
	moves_deinit(&m);
	*out = list.p;
	return list.n;
}
