/*
 * The call paths of samples that tell only the height of the stack (collect/driver.h), by path maps
 * (calls/map.h) that are learned from the stacks that were copied. One map for each program.
 *
 * Samples wait here until a flush asks for their paths, since the stack that explains them may come
 * later than they do. Numbers of images are good until contexts_flushed, as everywhere here.
 */
#ifndef CULPRIT_COLLECT_CONTEXTS_H
#define CULPRIT_COLLECT_CONTEXTS_H

#include "base/vec.h"
#include "calls/map.h"
#include "calls/training.h"
#include "calls/walk.h"
#include "collect/sampler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct contexts;
struct driver_stack;
struct err;
struct image_cache;
struct process_table;
struct store;

struct contexts *contexts_create(
	struct image_cache *images, const struct process_table *processes, enum contexts_how how);
void contexts_destroy(struct contexts *c); /* takes NULL */

/* A call that led to a sample, if it was asked for: which one (driver.h; 0: none), and where. */
struct context_caller {
	uint64_t offset;
	uint32_t image, at;
};

/* Compared as bytes: what is not set must be 0. */
struct context_sample {
	uint64_t offset;        /* of the program's instruction, */
	uint64_t kernel_offset; /* of the kernel's if it was there */
	uint64_t where;         /* WHERE_CONTEXT of it, and WHERE_HELD */
	struct context_caller callers[DRIVER_CALLERS];
	uint64_t sp, owner; /* on a stack that nobody knows: of this process (stack_roots.h) */
	uint32_t image;     /* numbers; */
	uint32_t kernel;    /* the image's number + 1; 0: it was not there */
	uint32_t program;   /* the image that was executed */
	uint32_t who;       /* with the event */
};

/* What would tell more of the path of samples like this one. */
enum context_wish {
	CONTEXT_WISH_NOTHING, /* also after the first of them */
	CONTEXT_WISH_STACK,
	CONTEXT_WISH_CALLERS, /* those of `ask` (driver.h) */
};
enum context_wish contexts_sample(
	struct contexts *c, const struct context_sample *s, uint64_t count, uint64_t *ask);

/* Where an address of the process is: the number of an image and an offset. */
typedef uint32_t context_place_fn(void *arg, uint64_t pc, uint64_t *offset);

/*
 * Walks the copy of a stack (or takes a chain of return addresses as it is) and learns from it. Its
 * sample is counted with it, if it is not counted without (WHERE_COPIED). Returns what samples
 * like it should tell (an ask of driver.h).
 */
struct context_stack {
	struct context_sample sample;
	const struct driver_stack *stack;
	const uint8_t *bytes;
	context_place_fn *place;
	void *arg;
};
uint64_t contexts_stack(struct contexts *c, const struct context_stack *s);

/*
 * Counts one sample with a path that was recorded with it: addresses of the kernel, then of the
 * program, innermost first. With `stack` those of the program are found by it, and not learned
 * from: nobody says where that stack begins.
 */
struct context_path {
	uint32_t program, who; /* as of context_sample */
	const uint64_t *pcs;
	size_t n;
	const struct walk_start *stack; /* NULL: pcs has all of them */
	context_place_fn *place;
	void *arg;
};
void contexts_path(struct contexts *c, const struct context_path *p);

/* Whether what waits for a flush should wait no longer. */
bool contexts_full(const struct contexts *c);

/* What the stack before has taught of the way from one return address to the next. */
size_t contexts_steps(const struct contexts *c, const struct stack_step **out);

/* Where the program's own stack begins, if samples do not tell; 0: nobody does. */
bool contexts_knows_stacks(const struct contexts *c, uint64_t owner);
void contexts_main_stack(struct contexts *c, uint64_t owner, uint64_t start);

/* A procedure that paths go through, for the store to know its name. */
struct called_procedure {
	uint64_t vaddr;
	uint32_t image, pad;
};

/* The paths of one program's samples; counts are of the innermost procedures. */
struct context_profile {
	uint32_t program, who;
	struct call_tree *tree;
};

/* What was learned of one program since the last flush is the fresh part of its map. */
struct context_lesson {
	uint32_t program, pad;
	struct call_map *map;
};

struct contexts_settled {
	VEC(struct context_profile) profiles;
	VEC(struct called_procedure) procedures; /* by image, then by address */
	VEC(struct context_lesson) lessons;
};
/* All since the last flush; stays the contexts' until they are settled again or flushed. */
const struct contexts_settled *contexts_settle(struct contexts *c);
/* No more is sampled: what is left to find out then holds nobody up. */
void contexts_finish(struct contexts *c);
void contexts_flushed(struct contexts *c);

/* Of copied stacks, since the beginning. */
struct contexts_statistics {
	uint64_t ends[WALK_ENDS];
	uint64_t joined; /* of those that did not come to the root, to paths that were known */
	uint64_t verdicts[PATH_VERDICTS];         /* of those taken at random */
	uint64_t heights;                         /* known, in all maps */
	size_t bytes;                             /* of all of it in memory, about */
	uint64_t unique, ranked, walked, unknown; /* samples */
	uint64_t refused;                         /* for want of memory: counted as unknown */
	struct call_training training;            /* by contexts that were counted */
};
void contexts_statistics(const struct contexts *c, struct contexts_statistics *out);

/* Takes over what earlier collections have learned. */
int contexts_load(struct contexts *c, struct store *s, struct err *e);

size_t contexts_memory(const struct contexts *c);

#endif
