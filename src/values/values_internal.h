/*
 * What packing needs of value profiles.
 */
#ifndef CULPRIT_VALUES_VALUES_INTERNAL_H
#define CULPRIT_VALUES_VALUES_INTERNAL_H

#include "values/values.h"

/* A key and its list, one line of cache; the kind is the list's tag. Free when the total is 0. */
struct value_slot {
	uint64_t offset, context;
	struct hotlist list;
};
_Static_assert(sizeof(struct value_slot) == 64, "a slot is a line of cache");

struct value_profile {
	struct hotlist_pool *pool;
	void *memory;             /* that the slots are in */
	struct value_slot *slots; /* open addressing, a power of two of them */
	size_t nslots, n, limit;
	uint64_t refused;
};

/* The list of a key, fresh (empty, to be filled at once) or not; NULL when there is no room. */
struct hotlist *value_profile_put(struct value_profile *p, const struct value_key *key);

#endif
