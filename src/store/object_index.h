/*
 * Which object an address was in at a time.
 */
#ifndef CULPRIT_STORE_OBJECT_INDEX_H
#define CULPRIT_STORE_OBJECT_INDEX_H

#include "store/objects.h"

#include <stdint.h>

struct object_index;

/* The set must outlive it, and not change. */
struct object_index *object_index_create(const struct object_set *s);
void object_index_destroy(struct object_index *x); /* takes NULL */

/* The number of the one that was had last before that time; OBJECT_NONE. */
uint32_t object_index_find(
	const struct object_index *x, uint32_t process, uint64_t time, uint64_t address);

#endif
