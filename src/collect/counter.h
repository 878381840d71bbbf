/*
 * One opened sampling event and its books: which period was in force while it counted what, and so
 * how many samples it should have given.
 *
 * The kernel restarts the interval to the next sample whenever the period is set, so a stretch
 * between two draws yields floor(counted / period) samples. Children that inherited the event keep
 * the period that was in force when they were born: their counts flow into the parent's, and a
 * shared counter can only be expected to yield counted / period.
 */
#ifndef CULPRIT_COLLECT_COUNTER_H
#define CULPRIT_COLLECT_COUNTER_H

#include "collect/period.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct sampler_account;

struct counter_reading {
	uint64_t count, enabled, running, id, lost;
};

/* Where events come from: the kernel, or a test. */
struct counter_source {
	int (*open)(struct perf_event_attr *attr, pid_t pid, int cpu, unsigned long flags);
	int (*read)(int fd, struct counter_reading *out);
	int (*set_period)(int fd, uint64_t period);
};
extern const struct counter_source counter_kernel;

#define COUNTER_READ_FORMAT \
	(PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING | PERF_FORMAT_ID)

/* The kernel does not run its clocks faster than this, in ns. */
#define COUNTER_CLOCK_MIN 10000

struct counter {
	int fd;
	uint8_t event; /* its index; behind the last: it copies stacks, and its samples do not count
			*/
	bool is_clock; /* counts nanoseconds */
	bool adaptive; /* the kernel holds a rate by changing the period itself */
	bool shared;   /* children may have inherited it */
	bool probed;   /* it sees all processes */
	bool software; /* needs no hardware counter, so that it always runs */
	int copies; /* events on how many CPUs follow the same task; each counts its enabled time */
	uint64_t id;
	uint64_t mean, period; /* what is drawn around, what is in force */
	struct counter_reading last;
	uint64_t stretch;      /* counted since the period was set */
	uint64_t throttled_at; /* CLOCK_MONOTONIC ns, 0: is not throttled */
};

/* Sums over counters of one event. */
struct counter_books {
	double expected, throttled;
	uint64_t count, enabled, running, lost;
};

/* A period around the counter's mean. */
uint64_t counter_draw(const struct counter *c, struct period_source *draw);

/* Begins the books: reads where the counter stands. */
int counter_begin(struct counter *c, const struct counter_source *src);

/* Enters what was counted since the last look. */
void counter_update(struct counter *c, const struct counter_source *src, struct counter_books *b);

/* The same, and a new period when the old one has been in force for some samples. */
void counter_redraw(struct counter *c, const struct counter_source *src, struct period_source *draw,
	struct counter_books *b);

/* The kernel stopped the event at `time`, or lets it go on. */
void counter_throttle(struct counter *c, uint64_t time);
void counter_unthrottle(struct counter *c, uint64_t time, struct counter_books *b);

/* Enters what throttling has cost until now, when it lasts. */
void counter_throttled_until(struct counter *c, uint64_t time, struct counter_books *b);

/* The account of an event of which `samples` were delivered; `mean` serves when nothing counted. */
void counter_account(const struct counter_books *b, const struct counter *c, uint64_t samples,
	struct sampler_account *out);

#endif
