/* What the files behind attribute.h share. */
#ifndef CULPRIT_COLLECT_ATTRIBUTE_INTERNAL_H
#define CULPRIT_COLLECT_ATTRIBUTE_INTERNAL_H

#include "collect/anchor_pool.h"
#include "collect/attribute.h"
#include "collect/attribute_bursts.h"
#include "collect/attribute_sums.h"
#include "collect/excursion_pool.h"
#include "collect/progress.h"
#include "collect/straight.h"
#include "collect/walk_pool.h"
#include "isa/interp.h"
#include "values/capture.h"

struct burst_plugins;
struct cgroups;
struct image_cache;
struct only;
struct process;
struct process_table;

struct event_counts {
	uint64_t attributed, unknown, refused;
};

struct attribution {
	struct cgroups *cgroups;
	struct process_table *processes;
	struct image_cache *images;
	struct sums sums;
	struct bursts bursts;
	struct straights straights;
	uint64_t nbursts, wrong;
	struct anchor_pool anchors;
	uint64_t pairs_seen, pairs_kept;
	struct walk_pool walks;
	struct excursion_pool excursions;
	struct progress progress;
	struct contexts *contexts; /* NULL: nobody wants call paths */
	struct interp machine;     /* that bursts are run again on */
	struct burst_plugins *plugins;
	struct only *only; /* NULL: values of all that runs */
	struct event_counts *counts;
	size_t nevents;
	int64_t clock_offset;
	uint32_t drains;
};

/* The image and offset of an address of the program. */
uint32_t attribution_place(
	struct attribution *a, struct process *p, uint64_t pc, uint64_t time, uint64_t *offset);

/* The sample's call path, as attribution_sample. What was copied comes with its stack. */
enum context_wish attribution_context(struct attribution *a, struct process *p,
	const struct sample *s, const struct sum_sample *sum, uint64_t *ask);

/* A burst on its way to where it belongs. */
struct journey {
	struct attribution *a;
	struct process *p;
	uint64_t time;
	uint32_t who;
	const struct shadow_burst *burst;
	struct capture capture;
	uint32_t here; /* the image that its walk is in, while `walks` */
	bool begun, walks;
	bool kept;  /* something of it */
	bool shown; /* plug-ins have begun to look at a piece of it */
};

struct journey journey_of(struct attribution *a, pid_t pid, uint64_t time);
/* The image and offset of an address there, also of the kernel's. */
uint32_t journey_place(struct journey *j, uint64_t pc, uint64_t *offset);

#endif
