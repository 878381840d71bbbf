/*
 * The BPF sampler seen from user space: loads driver.bpf.c, turns its tables over and reads them.
 *
 * A drain is driver_swap, then ring_settle (no handler writes the old tables any more), then
 * driver_collect. Between drains driver_service empties the overflow buffers. None of them makes a
 * system call: all is mapped. Samples are handed over as they lie there: summing them up here would
 * cost more than placing some of them twice.
 */
#ifndef CULPRIT_COLLECT_DRIVER_USER_H
#define CULPRIT_COLLECT_DRIVER_USER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct driver;
struct driver_pair;
struct driver_stack;
struct err;
struct sample;
struct stack_step;
struct sampler_statistics;

struct driver_options {
	size_t nevents; /* at most DRIVER_EVENTS */
	unsigned cpus;  /* the highest CPU number + 1 */
	unsigned paths; /* how calling contexts are told apart (DRIVER_INFER, ...) */
	double rate;    /* samples a second on each CPU; 0: not known */
	/* What stacks of a CPU may cost (DRIVER_COPY_COST, ...), if not the usual: saved up at
	   most, and in a second. */
	bool budgeted;
	uint32_t stacks_saved, stacks_a_second;
};
/* -EPERM, -EOPNOTSUPP or what the kernel said; the text says what is missing. */
int driver_create(const struct driver_options *o, struct driver **out, struct err *e);
void driver_destroy(struct driver *d);

/* The program to attach to this event's perf events. */
int driver_program(const struct driver *d, size_t event);

/* Becomes readable when the overflow buffers should be emptied soon. */
int driver_fd(const struct driver *d);

/* One in `every` samples of the first event goes on to this program. */
int driver_chain(struct driver *d, int program, uint32_t every, struct err *e);

/*
 * Pairs of samples in a row of one thread begin at one in `every` samples of the first event, in
 * the mean. Nothing else ends or changes this.
 */
void driver_set_pairs(struct driver *d, uint32_t every);

typedef void driver_fn(void *arg, const struct sample *s);

/* Hands over what was evicted, as far as it was first seen by `until` (CLOCK_MONOTONIC ns). */
void driver_service(struct driver *d, uint64_t until, driver_fn *fn, void *arg);

void driver_swap(struct driver *d);

/* The same, and all of the tables that were swapped out. */
void driver_collect(struct driver *d, uint64_t until, driver_fn *fn, void *arg);

/* Hands over the pairs that ended by `until`; each is void when the function returns. */
typedef void driver_pair_fn(void *arg, const struct driver_pair *p);
void driver_pairs(struct driver *d, uint64_t until, driver_pair_fn *fn, void *arg);

/* Hands over copies of stacks made by `until`; as time has passed, more may then be made. */
typedef void driver_stack_fn(void *arg, const struct driver_stack *s, const uint8_t *bytes);
void driver_stacks(struct driver *d, uint64_t until, driver_stack_fn *fn, void *arg);

/* The next sample in the context of this one is to come with a copy of its stack. */
void driver_want(struct driver *d, const struct sample *s);
/* Those in the context of this one are to tell callers (ASK_AT of driver.h). */
void driver_ask(struct driver *d, const struct sample *s, uint64_t ask);
/* The same for the context of a stack, of which no more are then copied for being new. */
void driver_answer(
	struct driver *d, const struct driver_stack *s, const uint8_t *bytes, uint64_t ask);
/* What a stack has taught of the way from one return address to the next. */
void driver_teach(struct driver *d, const struct driver_stack *s, const struct stack_step *step);
/* Whether there are stacks that were too young for the last driver_stacks. */
bool driver_hurries(const struct driver *d);

/* Samples of this event dropped for want of room since the last call. */
uint64_t driver_dropped(struct driver *d, size_t event);

void driver_statistics(const struct driver *d, struct sampler_statistics *out);

#endif
