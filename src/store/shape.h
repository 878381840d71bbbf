/*
 * The shape of a path inside a procedure: the blocks that it goes through, how it begins and ends.
 * It is what a path is known by, whatever number an edited program gave it. Addresses are virtual
 * addresses of the file.
 *
 * As bytes, given the start of the procedure:
 *
 *   u8      start, u8 end
 *   uleb    number of blocks, 1 at least
 *   sleb    each block less the one before, the first less the procedure's start
 *   sleb    next less the last block, only of a path that ends in a jump to the next
 */
#ifndef CULPRIT_STORE_SHAPE_H
#define CULPRIT_STORE_SHAPE_H

#include "base/cursor.h"
#include "base/vec.h"

#include <stdint.h>

struct buf;

enum path_start {
	PATH_ENTRY,   /* the procedure is called */
	PATH_AGAIN,   /* the path before ended in a jump to here: a loop, a cut */
	PATH_ENTERED, /* somebody comes into the middle: a landing pad, a call that returns again */
	PATH_STARTS,
};

enum path_end {
	PATH_RETURN,
	PATH_TAIL, /* goes to another procedure for good */
	PATH_NEXT, /* a jump to where the next path begins: a loop, a cut */
	PATH_STOP, /* a call that does not come back, a trap */
	PATH_ENDS,
};

struct path_shape {
	uint8_t start, end;
	uint32_t n;
	const uint64_t *blocks; /* starts */
	uint64_t next;          /* the block that PATH_NEXT goes to, else 0 */
};

typedef VEC(uint64_t) block_list;

/* By blocks, then start, end, next. */
int path_shape_compare(const struct path_shape *a, const struct path_shape *b);

void path_shape_put(const struct path_shape *s, uint64_t procedure, struct buf *out);
/* Blocks are put into the list, in place of what was there. -EBADMSG. */
int path_shape_read(struct path_shape *s, uint64_t procedure, struct cursor *c, block_list *blocks);

#endif
