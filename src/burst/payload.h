/*
 * What bursts record: a table of payloads. Each puts points into the second copy of a function, and
 * has a name by which it is asked for ("refs", "calls", "refs+calls", "paths", "values").
 */
#ifndef CULPRIT_BURST_PAYLOAD_H
#define CULPRIT_BURST_PAYLOAD_H

#include <stdbool.h>
#include <stdint.h>

struct burst;
struct checks_loops;
struct edit_function;
struct err;

#define PAYLOAD_SNIPPETS 3 /* of its own, at most */

struct payload {
	const char *name;
	const char *words;                   /* what its events are called */
	const char *texts[PAYLOAD_SNIPPETS]; /* of snippets, NULL behind the last */
	/* In the second copy, but not in blocks that are boring (by number). */
	void (*put)(struct burst *b, struct edit_function *twin, const bool *boring);
	/* Whether what is said behind its name makes sense; NULL: nothing may be said. */
	int (*check)(const char *more, struct err *e);
	/* All of these or none: before the checks of a function, which is not the second copy; */
	void (*begin)(struct burst *b, struct edit_function *f, const struct checks_loops *loops);
	/* whether v0 has to have a value for who comes over to its second copy, on an edge, or, for
	 * GRAPH_NONE, at the entry; */
	bool (*arrive)(struct burst *b, uint32_t edge, uint64_t *value);
	/* and when all functions are done. */
	void (*end)(struct burst *b);
};

extern const struct payload payload_references, payload_calls, payload_references_calls,
	payload_paths, payload_values;

/* "values=loads": the payload, and what is said behind its name (NULL: nothing). -EINVAL. */
int payload_find(const char *text, const struct payload **out, const char **more, struct err *e);

#endif
