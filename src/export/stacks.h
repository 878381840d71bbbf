/*
 * What a selection holds as stacks with weights: the one source of the formats that viewers of
 * other profilers read.
 *
 * Where there are calling contexts (analyze/context_tree.h) stacks are those, and a frame is a
 * procedure; the address of a frame is known where its call site is. Without contexts, or when flat
 * is asked for, a stack is one instruction that was sampled. Stacks are in groups, one for each
 * process that profiles were kept of. All strings live as long as the selection and the stacks.
 */
#ifndef CULPRIT_EXPORT_STACKS_H
#define CULPRIT_EXPORT_STACKS_H

#include "analyze/selection.h"
#include "image/lines.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct stacks;
struct strtab;

#define STACK_NONE          UINT32_MAX
#define STACK_MEASURES_MOST 5

/* Where a stack is at. */
struct stack_frame {
	const struct selected_image *image; /* NULL: unknown */
	const char *name;                   /* of the procedure, or what stands for it */
	const char *file;                   /* where the procedure begins; NULL: unknown */
	int start_line;                     /* the same; 0: unknown */
	uint64_t start, address;            /* address: the instruction, else the start */
	bool exact;                         /* it is the instruction's; only then it has lines */
	uint32_t line, nlines;              /* of stacks_lines; the last is the procedure's own */
};

struct stack_node {
	uint32_t parent; /* STACK_NONE: a root; before this one */
	uint32_t depth;
	uint32_t frame;  /* of the innermost procedure */
	uint32_t caller; /* frame of the parent, at the call site; STACK_NONE for a root */
	double value[STACK_MEASURES_MOST];
};

/* The nodes of a process, in preorder, one after the other. */
struct stack_group {
	const char *process; /* its name */
	int32_t pid;         /* 0: all of that name */
	uint32_t first, end;
	double weight; /* the sum of the first measure */
};

/* What a node has numbers of. */
struct stack_measure {
	const char *name, *unit;
};

struct stacks_options {
	const char *procedure; /* glob over names, NULL: all */
	bool flat;             /* no contexts */
	bool events;           /* events were named: no counted contexts */
};

/* No samples is no error. */
int stacks_create(
	struct selection *sel, const struct stacks_options *o, struct stacks **out, struct err *e);
void stacks_destroy(struct stacks *s); /* takes NULL */

/* The heaviest first; those without samples are left out. */
size_t stacks_groups(const struct stacks *s, const struct stack_group **out);
size_t stacks_nodes(const struct stacks *s, const struct stack_node **out);
size_t stacks_frames(const struct stacks *s, const struct stack_frame **out);
size_t stacks_lines(const struct stacks *s, const struct inlined_line **out);
/* The first is what there is a number of: samples, calls. The last is what it stands for. */
size_t stacks_measures(const struct stacks *s, const struct stack_measure **out);
/* What was sampled; NULL: it was counted. */
const struct selected_event *stacks_event(const struct stacks *s);
bool stacks_are_contexts(const struct stacks *s);
uint64_t stacks_without_context(const struct stacks *s); /* samples that are in none, left out */
/* When all of it was collected, microseconds since 1970; 0 unknown. */
void stacks_time(const struct stacks *s, int64_t *from, int64_t *to);
/* Adds lines that say what it is, and what is left out. */
void stacks_describe(const struct stacks *s, struct strtab *lines);

#endif
