/*
 * What bursts record: a table of payloads. Each puts points into the second copy of a function, and
 * has a name by which it is asked for ("refs", "calls", "values").
 */
#ifndef CULPRIT_BURST_PAYLOAD_H
#define CULPRIT_BURST_PAYLOAD_H

#include <stdbool.h>

struct burst;
struct edit_function;
struct err;

struct payload {
	const char *name;
	const char *words; /* what its events are called */
	/* In the second copy, but not in blocks that are boring (by number). */
	void (*put)(struct burst *b, struct edit_function *twin, const bool *boring);
	/* Whether what is said behind its name makes sense; NULL: nothing may be said. */
	int (*check)(const char *more, struct err *e);
};

extern const struct payload payload_references, payload_calls, payload_values;

/* "values=loads": the payload, and what is said behind its name (NULL: nothing). -EINVAL. */
int payload_find(const char *text, const struct payload **out, const char **more, struct err *e);

#endif
