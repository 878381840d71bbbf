/*
 * What user space tells the BPF sampler of the sizes of frames (struct driver_step of driver.h), in
 * memory that both have mapped.
 */
#ifndef CULPRIT_COLLECT_DRIVER_TEACH_H
#define CULPRIT_COLLECT_DRIVER_TEACH_H

#include "collect/driver.h"

struct stack_step;

/* How far an address is from where code or libraries begin, as the kernel counts it. */
static inline uint64_t driver_place_in(const struct driver_stack *s, uint64_t address)
{
	return address - (address - s->code < s->code_end - s->code ? s->code : s->libraries);
}

/* What a stack of the program has taught. */
void driver_steps_teach(
	struct driver_seen *seen, const struct driver_stack *s, const struct stack_step *step);

#endif
