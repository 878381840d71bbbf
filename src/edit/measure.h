/*
 * What edited programs measure beside counting: the time stamp counter ("tsc"), which takes one
 * instruction, or events of the kernel by the names that `record -e` has, which threads open for
 * themselves (rt/meter.h) and a routine of the run time reads.
 */
#ifndef CULPRIT_EDIT_MEASURE_H
#define CULPRIT_EDIT_MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rt/rt.h"
#include "store/metrics.h"

struct buf;
struct edit;
struct err;

#define MEASURE_CLOCK "tsc"

struct measure {
	char name[METRIC_NAME];
	bool is_clock;
	struct rt_event event;
};

/* In the order in which profiles have them. */
struct measures {
	unsigned n;
	struct measure list[RT_METRICS];
};

/*
 * By names. -EINVAL for too many, the same twice and names that nobody knows, -EOPNOTSUPP and the
 * like for events that cannot be opened here.
 */
int measures_parse(const char *const *names, size_t n, struct measures *out, struct err *e);
void measures_names(const struct measures *m, struct metric_names *out);

bool measures_events(const struct measures *m); /* more than the clock */

/* Tells the run time of an edited file; -EOPNOTSUPP: threads cannot have events there. */
int measures_prepare(const struct measures *m, struct edit *edit, struct err *e);

/* The statement that reads one of them into a register of the snippet, by the routine that argument
 * a7 names: MEASURE_ROUTINE. */
#define MEASURE_ARGUMENT 7
void measure_text(const struct measures *m, unsigned which, const char *to, struct buf *out);
#define MEASURE_ROUTINE RT_CALL_METRIC

/* Appends what tells copies apart that measure different things. */
void measures_tag(const struct measures *m, char *name, size_t size);

#endif
