/*
 * Where calls come back in an edited file, and where they would have in the original: what a stack
 * of the edited program says of the original's code.
 *
 * Kept as bytes (returns.c); reading trusts nothing.
 */
#ifndef CULPRIT_EDIT_RETURNS_H
#define CULPRIT_EDIT_RETURNS_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/vec.h"

struct edit;

/* After edit_write. */
void returns_put(const struct edit *e, struct buf *out);

struct edit_return {
	uint64_t new, old;
};

struct edit_returns {
	VEC(struct edit_return) list; /* by new */
};
int returns_read(struct edit_returns *r, const void *p, size_t n); /* -EBADMSG */
void returns_deinit(struct edit_returns *r);

/* The old address of a new return address; 0: no call comes back there. */
uint64_t returns_old(const struct edit_returns *r, uint64_t new);

#endif
