/* What the halves of the stacks share: stacks.c (contexts) and stacks_code.c (instructions). */
#ifndef CULPRIT_EXPORT_STACKS_INTERNAL_H
#define CULPRIT_EXPORT_STACKS_INTERNAL_H

#include "base/hmap.h"
#include "base/vec.h"
#include "export/stacks.h"

struct stacks {
	struct selection *sel;
	struct stacks_options options;
	int event; /* in the selection; -1: counted */
	bool contexts;
	struct hmap index, processes; /* struct frame_record, struct process_record */
	struct strtab texts;
	VEC(struct stack_group) groups;
	VEC(struct stack_node) nodes;
	VEC(struct stack_frame) frames;
	VEC(struct inlined_line) lines;
	VEC(struct stack_measure) measures;
	uint64_t without;
	int64_t t0, t1;
};

/* The text, kept as long as the stacks. */
const char *stacks_keep(struct stacks *s, const char *text);
/* The number of a frame; its name may be anybody's. */
uint32_t stacks_frame(struct stacks *s, const struct stack_frame *f);
/* The group of a process of the store. */
size_t stacks_group(void *arg, int64_t process);

/* Fills groups with nodes for the instructions that were sampled. */
int stacks_take_instructions(struct stacks *s, struct err *e);
/* How many samples of the event there are, with or without contexts. */
int stacks_count_samples(struct stacks *s, uint64_t *out, struct err *e);
void stacks_find_lines(struct stacks *s);

#endif
