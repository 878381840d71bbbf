/* What the files that rewrite debug information share: debug.c, debug_units.c, debug_lines.c,
 * debug_lists.c. */
#ifndef CULPRIT_EDIT_DEBUG_INTERNAL_H
#define CULPRIT_EDIT_DEBUG_INTERNAL_H

#include "base/buf.h"
#include "base/cursor.h"
#include "base/hmap.h"
#include "edit/debug_map.h"

#include <elfutils/libdw.h>
#include <stdbool.h>

enum debug_section {
	DEBUG_INFO,
	DEBUG_ABBREV,
	DEBUG_LINE,
	DEBUG_ARANGES,
	DEBUG_RANGES,
	DEBUG_RNGLISTS,
	DEBUG_LOC,
	DEBUG_LOCLISTS,
	DEBUG_ADDR,
	DEBUG_SECTIONS,
};

struct debug_bytes {
	struct cursor old; /* as it was */
	struct buf bytes;  /* as it will be: patched, and longer */
};

struct debug {
	const struct debug_map *map;
	Dwarf *dwarf;
	struct debug_bytes sections[DEBUG_SECTIONS];
	bool there[DEBUG_SECTIONS]; /* in the file as it was */
	struct hmap known;          /* struct debug_list: what was rewritten already */
	size_t rnglists, loclists;  /* where the headers of our tables are; 0: none */
	bool by_cfa;                /* the function's locals are relative to its CFA */
	bool strange;               /* something was not understood: nothing is written */
	bool split;                 /* for it is in other files */
};

/* A location list or a line table: several entries may have the same. */
struct debug_list {
	uint64_t key; /* its section, and where it was */
	uint64_t offset;
	uint64_t views; /* of a location list: GNU's views of its addresses, in front of it */
};

/* The unit that is being rewritten. */
struct debug_unit {
	Dwarf_Die die;
	uint64_t offset; /* of its header */
	uint16_t version;
	uint64_t abbrev;
	uint64_t base;      /* what its lists are relative to */
	uint64_t addr_base; /* of .debug_addr; 0: it has none */
	range_list ranges;  /* where its code is now */
};

static inline struct buf *debug_buf(struct debug *d, enum debug_section s)
{
	return &d->sections[s].bytes;
}

void debug_put_u32(struct debug *d, enum debug_section s, uint64_t offset, uint64_t v);
void debug_put_u64(struct debug *d, enum debug_section s, uint64_t offset, uint64_t v);

/* Where it is now; fresh: the caller writes it and says so. */
struct debug_list *debug_known(
	struct debug *d, enum debug_section s, uint64_t old_offset, bool *fresh);

void debug_unit_write(struct debug *d, struct debug_unit *u);

/* Appends the line table of a unit for the code as it is now; its offset, UINT64_MAX: it has none.
 */
uint64_t debug_lines_write(struct debug *d, const struct debug_unit *u, uint64_t old_offset);

/* Appends a list of ranges for a unit of that version; its offset. */
uint64_t debug_ranges_write(struct debug *d, const struct debug_unit *u, const range_list *list);
/*
 * Appends a location list, made of the one at an offset, if that was not done yet; with GNU's views
 * where an entry asks for them: which of several lines of an address is meant is not kept, so all
 * are 0.
 */
const struct debug_list *debug_locations_write(
	struct debug *d, const struct debug_unit *u, uint64_t old_offset, bool views);
/* Drops old lists that nothing will refer to. */
void debug_lists_begin(struct debug *d);
/* Settles the headers of the tables that were appended to. */
void debug_lists_finish(struct debug *d);
/* The word of .debug_addr that an index stands for; false: it is not there. */
bool debug_address(
	const struct debug *d, const struct debug_unit *u, uint64_t index, uint64_t *out);

/* An expression that is relative to the frame, in a function whose frame became larger. */
void debug_put_expression(const struct debug *d, const struct debug_piece *p, const uint8_t *bytes,
	size_t n, struct buf *out);

#endif
