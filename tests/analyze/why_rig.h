/*
 * Analyses of functions that a test writes in assembly, with samples and frequencies as it says.
 */
#ifndef CULPRIT_TESTS_ANALYZE_WHY_RIG_H
#define CULPRIT_TESTS_ANALYZE_WHY_RIG_H

#include "flow/assembled.h"

#include "analyze/evidence.h"
#include "analyze/frequency.h"
#include "analyze/why.h"
#include "base/buf.h"
#include "base/mem.h"

#include <math.h>

#define FUNCTION(name, body)                                                              \
	".text\n.p2align 6\n.globl " name "\n.type " name ", @function\n" name ":\n" body \
	".size " name ", .-" name "\n"

#define PERIOD 1000.0 /* cycles that a sample stands for */

struct rig {
	struct selected_image image;
	struct procedure procedure;
	struct buf code;
	struct evidence evidence;
	struct frequency frequency;
	struct why_machine machine;
	struct why *why;
	struct err e;
};

/* All blocks and edges at 0; the scale is known. */
static inline void rig_open(struct rig *r, const char *text)
{
	*r = (struct rig){0};
	assemble(text);
	r->procedure = *find_procedure("f");
	r->image.procedures.p = &r->procedure;
	r->image.procedures.n = 1;
	r->evidence.image = &r->image;
	r->evidence.flow = flow_of("f");
	for (uint32_t i = 0; i < r->procedure.nranges; i++)
		assert_int_equal(image_code(built, &r->procedure.ranges[i], &r->code), 0);
	r->evidence.code = r->code.p;
	r->evidence.code_size = r->code.n;
	r->evidence.samples = xcalloc(r->evidence.flow->ninsns, sizeof(uint64_t));
	r->evidence.period = PERIOD;
	r->evidence.timed = true;
	r->frequency.flow = r->evidence.flow;
	r->frequency.scale = FREQUENCY_KNOWN;
	r->frequency.scale_low = 0.95;
	r->frequency.scale_high = 1.05;
	r->frequency.block = xcalloc(r->evidence.flow->nblocks, sizeof(struct estimate));
	r->frequency.edge = xcalloc(r->evidence.flow->graph.edges, sizeof(struct estimate));
	r->machine = (struct why_machine){
		.model = model_by_name("icelake"), .known = true, .cycles_per_ns = 3, .skid = 1};
}

static inline void rig_close(struct rig *r)
{
	why_destroy(r->why);
	flow_destroy(r->evidence.flow);
	free(r->evidence.samples);
	free(r->frequency.block);
	free(r->frequency.edge);
	buf_deinit(&r->code);
}

static inline struct estimate about(double count)
{
	return (struct estimate){count, 0.95 * count, 1.05 * count, CONFIDENCE_HIGH};
}

/* Control went from one block (or the entry) to another (or the exit) so often. */
static inline void went(struct rig *r, uint32_t from, uint32_t to, double count)
{
	const struct flow *f = r->evidence.flow;

	graph_each_out (e, &f->graph, from) {
		if (f->graph.edge[*e].to != to || r->frequency.edge[*e].count > 0)
			continue;
		r->frequency.edge[*e] = about(count);
		if (to < f->nblocks)
			r->frequency.block[to] = about(r->frequency.block[to].count + count);
		return;
	}
	fail_msg("no edge from %u to %u", from, to);
}

static inline void entered(struct rig *r, double count)
{
	went(r, r->evidence.flow->entry_node, 0, count);
}

static inline void left(struct rig *r, uint32_t from, double count)
{
	went(r, from, r->evidence.flow->exit_node, count);
}

/* An instruction took so many cycles a time: the sample shows at the one behind, inside a block. */
static inline void took(struct rig *r, uint32_t insn, double cycles, double count)
{
	r->evidence.samples[insn + 1] += (uint64_t)(cycles * count / PERIOD + 0.5);
	r->evidence.total += (uint64_t)(cycles * count / PERIOD + 0.5);
}

static inline const struct why *explain(struct rig *r)
{
	why_destroy(r->why);
	r->why = NULL;
	if (why_create(&r->evidence, &r->frequency, &r->machine, &r->why, &r->e))
		fail_msg("%s", r->e.text);
	return r->why;
}

/* The stall of an instruction that a culprit may have caused, or NULL. */
static inline const struct why_stall *stall_by(const struct rig *r, uint32_t insn, enum culprit c)
{
	const struct why_insn *in = &r->why->insns[insn];

	for (uint32_t i = 0; i < in->nstalls; i++)
		if (r->why->stalls[in->first_stall + i].culprit == c)
			return &r->why->stalls[in->first_stall + i];
	return NULL;
}

static inline void assert_first(const struct rig *r, uint32_t insn, enum culprit c)
{
	const struct why_insn *in = &r->why->insns[insn];

	if (!in->nstalls)
		fail_msg("instruction %u: no stall", insn);
	if (r->why->stalls[in->first_stall].culprit != c)
		fail_msg("instruction %u: %s is first, not %s", insn,
			culprit_name(r->why->stalls[in->first_stall].culprit), culprit_name(c));
}

static inline void assert_guilty(const struct rig *r, uint32_t insn, enum culprit c)
{
	if (!stall_by(r, insn, c))
		fail_msg("instruction %u: %s is not among the culprits", insn, culprit_name(c));
}

static inline void assert_acquitted(const struct rig *r, uint32_t insn, enum culprit c)
{
	assert_true(r->why->insns[insn].stall > 0);
	if (stall_by(r, insn, c))
		fail_msg("instruction %u: %s is among the culprits", insn, culprit_name(c));
}

static inline void assert_near(double value, double expected, double within)
{
	if (!(fabs(value - expected) <= within))
		fail_msg("%g, not %g (within %g)", value, expected, within);
}

#endif
