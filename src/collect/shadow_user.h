/*
 * The interpreter in the sampling interrupt seen from user space: loads shadow.bpf.c, tells it what
 * it may do, and reads the bursts.
 */
#ifndef CULPRIT_COLLECT_SHADOW_USER_H
#define CULPRIT_COLLECT_SHADOW_USER_H

#include "collect/shadow.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct shadow;

struct shadow_options {
	bool values; /* keep what is needed to run the bursts again; else only where branches went
		      */
	uint32_t steps; /* instructions of a burst, at most; lengths are mixed */
	uint32_t skip;  /* instructions passed over first, at most */
	double share;   /* of each CPU's time, at most */
	bool exact;     /* lengths are not mixed */
	bool user, kernel;
	bool choosy;   /* shadow_leave_out will be called */
	bool watch;    /* tell of words that move; shadow_watch will be called. Not with values */
	bool by_calls; /* as before Linux 6.9, also where the kernel could do better */
};

/*
 * `cpus` is the highest CPU number + 1. -EPERM, -EOPNOTSUPP or what the kernel said; the text says
 * what is missing.
 */
int shadow_create(
	const struct shadow_options *o, unsigned cpus, struct shadow **out, struct err *e);
void shadow_destroy(struct shadow *s); /* takes NULL */

/* The program that samples go on to (driver_chain). */
int shadow_program(const struct shadow *s);

/* Becomes readable when the buffers should be emptied soon. */
int shadow_fd(const struct shadow *s);

/* The words behind the burst are contiguous; they are void when the function returns. */
typedef void shadow_fn(void *arg, const struct shadow_burst *b, const uint64_t *words);

/* Hands over what was interpreted by `until` (CLOCK_MONOTONIC ns). */
void shadow_service(struct shadow *s, uint64_t until, shadow_fn *fn, void *arg);

/*
 * Begins no more bursts where this one was: in its process until the next exec, or in the kernel.
 * shadow_take_in makes an end of it for a process, or for all with pid 0. Both only write memory
 * that is shared with the interpreter.
 */
void shadow_leave_out(struct shadow *s, const struct shadow_burst *b);
void shadow_take_in(struct shadow *s, pid_t pid);

/* Reads these words of a thread from now on; one thread may push out another. */
void shadow_watch(struct shadow *s, const struct shadow_watch *w);

struct shadow_statistics {
	uint64_t bursts, steps, ns, longest, dropped, withheld, refused, left_out;
	uint64_t nlong;                  /* bursts over SHADOW_LONG_NS */
	uint64_t longest_own, nlong_own; /* without stretches over SHADOW_PAUSE_NS */
	uint64_t busiest;                /* ns on the CPU that interpreted most */
	uint64_t stops[INTERP_STOPS];
	size_t map_bytes;
};
void shadow_statistics(const struct shadow *s, struct shadow_statistics *out);

#endif
