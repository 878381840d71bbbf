/*
 * The scout: a process of our own that now and then stops a thread that is being sampled, for less
 * than a millisecond, and goes on an excursion from there (excursion.h): what the thread is about
 * to do, for some twenty thousand instructions. A process of its own, because copies of foreign
 * instructions run in it, and because waiting for stopped threads would get into the way of whoever
 * waits for children.
 *
 * A clock of its own tells which thread runs at a random time; the thread is let go at once when it
 * turns out to be in the kernel. An excursion that comes to a system call waits until the thread
 * has done it, if it is one that takes no long time, and goes on behind it: else code in front of
 * system calls would be seen too often. How long threads may be held is a share of the time that
 * they run. Nobody's thread stays stopped when the scout ends, however it ends.
 */
#ifndef CULPRIT_COLLECT_SCOUT_H
#define CULPRIT_COLLECT_SCOUT_H

#include "collect/excursion.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct sampler_target;
struct scout;

struct scout_options {
	const struct sampler_target *target;
	double share; /* of the time that threads run, to be held */
};

/* Starts it; fails with what keeps it from going on excursions. */
int scout_create(const struct scout_options *o, struct scout **out, struct err *e);
void scout_enable(struct scout *s); /* not needed with target.enable_on_exec */
/* It goes on no more excursions; what it has seen can still be read. */
void scout_stop(struct scout *s);
void scout_destroy(struct scout *s);

#define SCOUT_STRETCHES 4 /* of a window, one after the other and about equally long */

struct scout_window {
	int32_t pid, tid;
	uint64_t time;      /* when the thread was stopped, CLOCK_MONOTONIC ns */
	uint64_t stands_ns; /* of the time that was sampled */
	uint64_t instructions[SCOUT_STRETCHES];
	uint64_t nedges[SCOUT_STRETCHES]; /* one after the other */
	uint64_t nstays;
};

/* To be called now and then: what has been seen waits here until it is read. */
void scout_service(struct scout *s);

/* What has been seen before a time; each transfer of a window is there once. */
typedef void scout_fn(void *arg, const struct scout_window *w, const struct excursion_edge *edges,
	const struct excursion_stay *stays);
void scout_read(struct scout *s, uint64_t before, scout_fn *fn, void *arg);

struct scout_statistics {
	uint64_t windows, instructions;
	uint64_t held_ns; /* that threads were */
	uint64_t late;    /* in the kernel, or not running any more when they were stopped */
	uint64_t refused; /* not ours to stop */
	uint64_t foreign; /* code that is not of 64 bits */
	uint64_t early;   /* windows that ended before their time */
	bool ended;       /* before it was stopped: since then nothing has been seen */
};
void scout_statistics(const struct scout *s, struct scout_statistics *out);

#endif
