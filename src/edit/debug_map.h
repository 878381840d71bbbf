/*
 * Where old addresses are in the new code, for debug information.
 *
 * Inside a piece code keeps its order, so a range of old code is a range of new code; what was
 * added before an instruction belongs to it. Twins are told apart: they have lines, but the
 * functions that are described are the first copies.
 */
#ifndef CULPRIT_EDIT_DEBUG_MAP_H
#define CULPRIT_EDIT_DEBUG_MAP_H

#include "base/vec.h"
#include "edit/edit.h"

typedef VEC(struct edit_span) span_list;

/* Spans by number, [first, end) of one of the lists of a map. */
struct debug_part {
	size_t first, end;
};

struct debug_piece {
	uint64_t old, old_end;
	const struct edit_fragment *fragment;
	struct debug_part copied, added;
};

struct debug_map {
	VEC(struct debug_piece) pieces; /* by old, then first copies first */
	span_list copied, added;        /* of each piece by old, then at */
};

typedef VEC(struct range) range_list;

void debug_map_init(
	struct debug_map *m, const struct edit *e, const struct edit_fragment *fragments, size_t n);
void debug_map_deinit(struct debug_map *m);

/* The number of the first piece that ends behind an address. */
size_t debug_map_from(const struct debug_map *m, uint64_t old);
/* The first copy of the piece around an address; NULL: it was not moved. */
const struct debug_piece *debug_map_piece(const struct debug_map *m, uint64_t old);
uint64_t debug_piece_at(
	const struct debug_map *m, const struct debug_piece *p, uint64_t old); /* in that copy */

/* An instruction; the end of a range whose last byte is before it; where a call returns to. */
uint64_t debug_map_start(const struct debug_map *m, uint64_t old);
uint64_t debug_map_end(const struct debug_map *m, uint64_t old);

/* Appends what became of a range, pieces that moved and what lies between them. */
void debug_map_range(
	const struct debug_map *m, uint64_t start, uint64_t end, bool twins, range_list *out);

#endif
