/*
 * The keys of other images that a profile names (edges.h): a table at its beginning, so that what
 * follows refers to them by number.
 *
 * As bytes: uleb number of keys, then each as u64. They ascend, and none is 0.
 */
#ifndef CULPRIT_STORE_KEYS_H
#define CULPRIT_STORE_KEYS_H

#include "base/cursor.h"
#include "base/vec.h"

#include <stdint.h>

struct buf;

/* To write: collect keys as they come, settle the list, put it; then ask for numbers. */
struct key_list {
	VEC(uint64_t) list;
};
void key_list_settle(struct key_list *k);
void key_list_put(const struct key_list *k, struct buf *out);
uint64_t key_list_number(const struct key_list *k, uint64_t key); /* which must be there */
void key_list_deinit(struct key_list *k);

/* To read: points into the profile's bytes. */
struct key_table {
	const uint8_t *bytes;
	uint64_t n;
};
int key_table_read(struct key_table *t, struct cursor *c); /* -EBADMSG */
uint64_t key_table_at(const struct key_table *t, uint64_t number);

#endif
