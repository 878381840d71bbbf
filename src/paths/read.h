/*
 * From what an edited file counted to which paths ran how often.
 *
 * A path that was begun and never ended is not counted: its procedure was left by an exception or
 * longjmp, or was active when the process ended. How many they are shows where paths follow each
 * other: fewer began at a loop than jumps to it were counted. Those are said; first paths of
 * activations that were lost leave no trace.
 */
#ifndef CULPRIT_PATHS_READ_H
#define CULPRIT_PATHS_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "paths/map.h"
#include "rt/rt.h"
#include "store/paths.h"

/* With metrics, the numbers of a row are their sums, then readings, and stretches if there is room.
 */
struct path_rows {
	VEC(struct path_row) list; /* as paths_pack wants them */
	block_list blocks;         /* theirs */
};
void path_rows_deinit(struct path_rows *r);

/* A path of a procedure that is hashed, by its key. */
struct paths_hashed {
	uint64_t key, count;
	uint64_t sums[RT_METRICS];
};

struct paths_source {
	const void *map; /* map.h */
	size_t size;
	const uint64_t *words; /* all that the map has */
	size_t n;
	const struct paths_hashed *hashed; /* beside those of the table, each once */
	size_t nhashed;
	bool shared; /* several counted at once, without locking */
};

struct paths_read_summary {
	struct metric_names metrics;
	uint32_t procedures;
	uint64_t paths, executions; /* that ran; how often, all together */
	uint64_t sums[RT_METRICS];  /* of metrics */
	uint64_t readings;          /* of each metric */
	uint64_t stretches;         /* between readings, that belong to paths */
	uint64_t unmeasured;        /* procedures that are only counted */
	uint64_t unfinished;        /* that are known to have begun only */
	uint64_t no_room; /* executions that found none in the table: which is not known */
};

/* Of several files. */
void paths_summary_add(struct paths_read_summary *to, const struct paths_read_summary *sum);

/* Fills rows, which are empty at first. -EBADMSG when the map is damaged or words are missing. */
int paths_read(
	const struct paths_source *s, struct path_rows *rows, struct paths_read_summary *sum);

/* The shape of a path of a function, by number; its blocks are in the list, in place of what was
 * there. False when it goes through none: an entry that is counted apart. */
bool paths_read_shape(const struct path_function *f, const struct numbering *n, uint64_t number,
	number_path *memory, block_list *blocks, struct path_shape *out);

#endif
