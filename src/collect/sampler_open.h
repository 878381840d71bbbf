/*
 * Opens what a sampler needs: on every CPU a side-band event with a ring, and the sampling events,
 * whose records go to the same ring. Side-band events run from the start, so that what happens
 * while the caller still looks around in /proc is not missed; sampling events are left disabled.
 */
#ifndef CULPRIT_COLLECT_SAMPLER_OPEN_H
#define CULPRIT_COLLECT_SAMPLER_OPEN_H

#include "base/vec.h"
#include "collect/counter.h"
#include "collect/ring.h"

#include <stdbool.h>

struct driver;
struct err;
struct sampler_options;
struct sampler_places;

struct sampler_ring {
	struct ring ring;
	int fd, cpu;
};

struct sampler_opened {
	VEC(struct sampler_ring) rings;    /* one a CPU */
	VEC(struct counter) counters;      /* one a CPU, task and event */
	VEC(int) sideband;                 /* all side-band events, those of the rings included */
	bool excludes_kernel, counts_lost; /* counts_lost: events know what they lost */
	bool build_ids;                    /* records of mappings have them */
};

/*
 * `driver` is NULL for a sampler that reads rings. -EACCES when this is not allowed, -ESRCH when a
 * task has gone, -EOPNOTSUPP for an event that cannot be sampled here, -EMFILE.
 */
int sampler_open(const struct sampler_options *o, const struct sampler_places *p,
	const struct driver *driver, struct period_source *draw, struct sampler_opened *out,
	struct err *e);
void sampler_opened_deinit(struct sampler_opened *s);

#endif
