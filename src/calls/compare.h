/*
 * How well a path map names the paths of another one, which is the truth: the categories of
 * Mytkowicz, Coughlin and Diwan (OOPSLA 09), section 8.4.
 *
 * A path counts once for each height that it was seen at: each depth of a recursion, which maps
 * fold, is a path of its own there. Its weight is how often it was sampled, or, of paths that were
 * counted, called.
 */
#ifndef CULPRIT_CALLS_COMPARE_H
#define CULPRIT_CALLS_COMPARE_H

#include "calls/map.h"
#include "calls/training.h"

#include <stdbool.h>
#include <stdint.h>

#define CALL_DEGREES 6 /* one path at this place, two, to five; more */

struct call_score {
	struct {
		uint64_t paths, weight;
	} verdicts[PATH_CATEGORIES],
		degrees[CALL_DEGREES]; /* of those that are among the paths known at their place */
};

/* What a sample tells besides its procedure and the height. */
enum call_key { CALL_BY_HEIGHT, CALL_BY_CALLER, CALL_KEYS };

struct call_comparison {
	struct call_map *map; /* gets nodes that mean nothing */
	const struct call_map *truth;
	bool counted;
	enum call_key key;
	/* Paths with their call sites, of both; NULL: they are not known. */
	const struct call_site_paths *sites, *true_sites;
	/* Told of each path that is not named right, if it is there: its node in the truth, and the
	 * map's (CALL_NONE: none). */
	void (*wrong)(void *arg, enum call_verdict verdict, uint32_t node, uint32_t named,
		uint64_t weight);
	void *arg;
};

/*
 * Adds up over everything that the truth has weight for. By site: paths with their call sites, of
 * which the one that was counted most is named where the map knows several for one path.
 */
void call_map_compare(
	const struct call_comparison *c, struct call_score *sum, struct call_score *by_site);

#endif
