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
 * Calls visit before each indirect jump that is reached. From the entry, unresolved jumps are taken
 * to lead nowhere (KNOWN), so that one table does not hide another; or to every block that nothing
 * else leads to (LIKELY). EVERYTHING starts also from all blocks that may be entered unseen, about
 * which nothing is known, and does nothing when there are none.
 */
enum trace_ways { TRACE_KNOWN, TRACE_LIKELY, TRACE_EVERYTHING };
typedef void trace_visitor(void *arg, struct state *s, uint32_t insn);
void trace_run(struct trace *t, enum trace_ways ways, trace_visitor *visit, void *arg);

#endif
