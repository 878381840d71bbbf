/*
 * Value profiles as bytes: the database's blobs of type "value". Reading trusts nothing.
 */
#ifndef CULPRIT_VALUES_VALUES_PACK_H
#define CULPRIT_VALUES_VALUES_PACK_H

#include "store/store.h"
#include "values/values.h"

void value_profile_pack(const struct value_profile *p, struct buf *out);

/*
 * Adds a packed profile to p. Lists keep p's capacity; keys past p's limit are refused. -EBADMSG
 * (p is unchanged); -EINVAL when it was made by the other algorithm.
 */
int value_profile_unpack(struct value_profile *p, const void *data, size_t n);

/*
 * merge: as value_profile_unpack, with the larger capacity and room for all keys. weight: values
 * added, the refused ones included.
 */
extern const struct blob_type blob_value;

/* store_open of a store that knows this type: all who write, merge or check want that. */
int value_store_open(const char *path, enum store_mode mode, struct store **out, struct err *e);

#endif
