/*
 * What bursts have shown since the last flush: edges, and values when they are wanted, by image and
 * process name or process; and what excursions have: how far away it was what instructions touched.
 *
 * Memory is bounded: edges with new keys are refused when there are too many, and counted; of stays
 * what has come so far goes on to be counted.
 */
#ifndef CULPRIT_COLLECT_ATTRIBUTE_BURSTS_H
#define CULPRIT_COLLECT_ATTRIBUTE_BURSTS_H

#include "base/hmap.h"
#include "base/vec.h"
#include "store/pack.h"
#include "store/stays.h"

#include <stdint.h>

struct value_profile;

struct burst_edge {
	uint64_t from, to;
	uint32_t target; /* the image's number + 1; 0: the same image */
	uint32_t pad;
	uint64_t count;
};

struct burst_group {
	uint32_t image, who;
	struct hmap edges; /* struct burst_edge */
	struct hmap stays; /* struct stay */
	struct value_profile *values;
};

struct bursts {
	struct hmap groups; /* struct burst_group, by image and who */
	size_t edges, stays;
	uint64_t refused; /* edges that found no room */
};

void bursts_init(struct bursts *b);
void bursts_deinit(struct bursts *b);
void bursts_clear(struct bursts *b);

struct burst_group *bursts_group(struct bursts *b, uint32_t image, uint32_t who);
void bursts_edge(
	struct bursts *b, struct burst_group *g, uint64_t from, uint32_t target, uint64_t to);
void bursts_edges(struct bursts *b, struct burst_group *g, uint64_t from, uint32_t target,
	uint64_t to, uint64_t count);
void bursts_stay(struct bursts *b, struct burst_group *g, const struct stay *s);
/* The group's values, made when there are none yet. */
struct value_profile *bursts_values(struct burst_group *g);

/* Groups by image and who; free the list. */
struct burst_group **bursts_sorted(const struct bursts *b);

/* Offsets at which something of the group happened: of each edge, and of each place with values. */
struct offsets {
	VEC(struct pc_count) list;
};
void burst_group_offsets(const struct burst_group *g, struct offsets *out);

size_t bursts_memory(const struct bursts *b);

#endif
