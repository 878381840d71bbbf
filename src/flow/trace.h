/*
 * Takes states (state.h) through the blocks of a procedure, to know what is held on all paths where
 * it jumps through registers and memory.
 */
#ifndef CULPRIT_FLOW_TRACE_H
#define CULPRIT_FLOW_TRACE_H

#include "flow/cfg_internal.h"
#include "flow/state.h"

struct trace {
	struct builder *b;
	struct machine m;
	struct form *forms; /* by instruction; length 0: not decoded yet */
};

void trace_init(struct trace *t, struct builder *b);
void trace_deinit(struct trace *t);

const struct form *trace_form(struct trace *t, uint32_t insn);

/*
 * Calls visit before each indirect jump that is reached. Once from the entry alone, where an
 * unresolved jump is taken to lead to every block that nothing else leads to; once, with
 * `everything`, also from all blocks that may be entered unseen, about which nothing is known; this
 * does nothing when there are none.
 */
typedef void trace_visitor(void *arg, struct state *s, uint32_t insn);
void trace_run(struct trace *t, bool everything, trace_visitor *visit, void *arg);

#endif
