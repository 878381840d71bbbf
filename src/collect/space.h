/*
 * The executable mappings of an address space, with what they replaced lately.
 *
 * Spaces are counted by reference and copied when one of several owners changes one, as fork does
 * it; NULL is the empty space. There is no record of an unmapping: a mapping lasts until another
 * takes its place, and then stays findable by time until the samples of its time were placed.
 */
#ifndef CULPRIT_COLLECT_SPACE_H
#define CULPRIT_COLLECT_SPACE_H

#include <stddef.h>
#include <stdint.h>

struct space;

/* One executable mapping; `offset` is the place in the file (the address itself without a file). */
struct mapping {
	uint64_t start, size, offset;
	uint64_t since; /* CLOCK_MONOTONIC ns, 0: before us */
	uint32_t file;  /* number in the file table */
};

/* Sample times are cut to 1024 ns, so a sample may look this much older than it is. */
#define SPACE_SLACK_NS 2048

struct space *space_share(struct space *s); /* one more owner */
void space_drop(struct space *s);           /* one less */

/*
 * Puts a mapping into *s, which is copied first when it has other owners. What it replaces is kept
 * as past; past that ended before `horizon` is forgotten. Does nothing past a sane number of
 * mappings.
 */
void space_map(struct space **s, const struct mapping *m, uint64_t horizon);

/* The mapping that covered pc at that time; one that came later when nothing else did. */
const struct mapping *space_find(const struct space *s, uint64_t pc, uint64_t time);

/* All current ones, by start. */
size_t space_mappings(const struct space *s, const struct mapping **out);
/* And what was replaced and is not forgotten. */
size_t space_past(const struct space *s, const struct mapping **out);

size_t space_memory(const struct space *s);

#endif
