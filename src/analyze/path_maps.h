/*
 * The path maps that a selection holds (calls/map.h): one for each program, of all epochs selected.
 */
#ifndef CULPRIT_ANALYZE_PATH_MAPS_H
#define CULPRIT_ANALYZE_PATH_MAPS_H

#include "analyze/selection.h"
#include "base/vec.h"
#include "calls/map.h"
#include "calls/training.h"

#include <stdint.h>

struct err;

struct path_map {
	uint64_t program; /* key of the image that was executed */
	const struct selected_image *image;
	struct call_map *map;
	struct call_site_paths sites; /* of what was counted */
};

struct path_maps {
	VEC(struct path_map) list;
	bool counted;                  /* they are of contexts that were counted: */
	struct call_training training; /* how many of these they have */
};

/* Of the programs that the filter's image chooses. -ENOENT when there are none. */
int path_maps_load(struct selection *sel, struct path_maps *out, struct err *e);
/* Teaches them what was counted in the selection, as recordings do (calls/training.h). */
int path_maps_train(struct selection *sel, struct path_maps *maps, struct err *e);
/*
 * Maps of only what was counted, for programs whose roots others know; none when nothing was
 * counted.
 */
int path_maps_count(struct selection *sel, const struct path_maps *others, struct path_maps *out,
	struct err *e);
struct path_map *path_maps_find(const struct path_maps *m, uint64_t program); /* NULL: none */
void path_maps_deinit(struct path_maps *m);

#endif
