/*
 * The places of paths in a profile of traces (store/traces.h): one for each path that ended at a
 * point, made when it is met first. What their numbers mean is found out at the end, for all at
 * once: maps of paths are read from their beginning.
 */
#ifndef CULPRIT_BURST_PATH_SITES_H
#define CULPRIT_BURST_PATH_SITES_H

#include <stdint.h>

#include "base/hmap.h"
#include "base/mem.h"
#include "base/vec.h"
#include "burst/map.h"
#include "store/traces.h"

typedef VEC(struct trace_site) trace_sites;

struct path_site {
	uint64_t procedure, number;
	uint32_t image, site; /* numbers: of the map, in the profile */
};

struct path_sites {
	struct hmap known; /* by point and number: the site, + 1 */
	VEC(struct path_site) list;
	struct arena shapes;
};

void path_sites_init(struct path_sites *p);
void path_sites_deinit(struct path_sites *p); /* shapes of sites are gone then */

/* The site of a path by its number; `point` is one to tell points of all images apart. */
uint32_t path_sites_add(struct path_sites *p, uint64_t point, const struct path_site *path,
	const struct trace_site *like, trace_sites *sites);

/* Gives the sites their shapes; numbers that no path has, and maps that are damaged, leave them
 * without. */
void path_sites_settle(struct path_sites *p, const struct burst_map *const *maps, size_t n,
	struct trace_site *sites);

#endif
