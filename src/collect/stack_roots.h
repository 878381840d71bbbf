/*
 * Where the stacks begin that the sampler does not know: those of coroutines, and all where it does
 * not tell. A stack that was walked to its root tells it; later samples near below are on the same
 * one.
 *
 * Owners are processes, by any number that is never used again.
 */
#ifndef CULPRIT_COLLECT_STACK_ROOTS_H
#define CULPRIT_COLLECT_STACK_ROOTS_H

#include "base/hmap.h"
#include "calls/map.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stack_root {
	uint64_t base; /* what heights on it count from */
	uint64_t size; /* bytes below it that belong to it */
	enum stack_kind kind;
};

struct stack_roots {
	struct hmap owners;
};

void stack_roots_init(struct stack_roots *r);
void stack_roots_deinit(struct stack_roots *r);

/* One that is there already with this base is replaced. */
void stack_roots_add(struct stack_roots *r, uint64_t owner, const struct stack_root *root);
/* The stack that the address is on; NULL: nobody knows it. Good until the next one is added. */
const struct stack_root *stack_roots_find(
	const struct stack_roots *r, uint64_t owner, uint64_t address);

/* Whether any was ever added. */
bool stack_roots_knows(const struct stack_roots *r, uint64_t owner);

size_t stack_roots_memory(const struct stack_roots *r);

#endif
