/*
 * Stays: whether what instructions touched was still in the first caches, as excursions saw
 * (collect/excursion_cache.h): of each instruction how often what it loaded was, of each line of
 * code how often when control came to it from another.
 *
 * A profile belongs to an image; offsets are file offsets of instructions, as in PC profiles, and
 * of where lines of code begin. Merging adds up. Reading trusts nothing.
 */
#ifndef CULPRIT_STORE_STAYS_H
#define CULPRIT_STORE_STAYS_H

#include "base/cursor.h"
#include "store/store.h"

#include <stddef.h>
#include <stdint.h>

struct buf;

struct stay {
	uint64_t offset;
	uint64_t is_code;    /* 0 or 1 */
	uint64_t kept, gone; /* times that it was there, and was not; not both are 0 */
};

/* Registered by the store; its weight is the sum of all times. */
extern const struct blob_type blob_stay;

/* Sorts a list by offset, data first, and adds up what is the same; returns how many are left. */
size_t stays_settle(struct stay *list, size_t n);

/* Appends a profile. The list must be settled. */
void stays_pack(const struct stay *list, size_t n, struct buf *out);

struct stay_reader {
	struct cursor at;
	uint64_t left;
	struct stay last;
	bool begun;
};
int stay_reader_init(struct stay_reader *r, const void *p, size_t n); /* -EBADMSG */
/* 1 and the next stay, 0 at the end, -EBADMSG. */
int stay_reader_next(struct stay_reader *r, struct stay *out);

#endif
