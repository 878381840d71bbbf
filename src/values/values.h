/*
 * The value profile of one image: a hot list for each (offset in the image, kind of value,
 * context). What values a kind means is the collector's business; a context is 0 for "any", else a
 * hash of the call site.
 *
 * Memory is bounded by the number of keys; values of keys that find no room are counted as refused.
 * A value that is the most frequent of its key touches one line of cache, and adding allocates only
 * while the profile grows. Not thread-safe.
 */
#ifndef CULPRIT_VALUES_VALUES_H
#define CULPRIT_VALUES_VALUES_H

#include "values/hotlist.h"

struct value_profile;

enum value_kind {
	VALUE_RESULT,
	VALUE_SOURCE,
	VALUE_ADDRESS,
	VALUE_STRIDE,
	VALUE_LATENCY,
	VALUE_CONFLICT,
	VALUE_FLOAT,
	VALUE_LENGTH,
	VALUE_ENTRY0, /* argument registers at a procedure's entry */
	VALUE_ENTRY1,
	VALUE_ENTRY2,
	VALUE_ENTRY3,
	VALUE_ENTRY4,
	VALUE_ENTRY5,
	VALUE_KINDS,
	VALUE_PLUGIN0 = 64, /* and up: of plug-ins */
};
/* "result", "entry 0", "plugin" for all of plug-ins; NULL: of no kind. */
const char *value_kind_name(unsigned kind);

/*
 * Contexts: a call site, in the image of what it calls or in another one. That one is told by some
 * bits of what stands for it in edges (edge_image_key): enough among the images of one database.
 */
#define VALUE_CONTEXT_SITE      (1ull << 62) /* | offset of the call instruction */
#define VALUE_CONTEXT_FAR       (1ull << 63) /* | VALUE_CONTEXT_KEY | offset */
#define VALUE_CONTEXT_KEY(k)    ((k) << 40 & ((1ull << 62) - (1ull << 40)))
#define VALUE_CONTEXT_KEY_OF(c) VALUE_CONTEXT_KEY((c) >> 40)
#define VALUE_CONTEXT_OFFSET(c) ((c) & ((1ull << 40) - 1))

struct value_key {
	uint64_t offset, context;
	uint16_t kind;
};

/* Zeros are the defaults. */
struct value_options {
	enum hotlist_algorithm algorithm;
	unsigned capacity; /* of each list; HOTLIST_CAPACITY */
	size_t keys;       /* at most; VALUE_KEYS */
	uint64_t seed;
};
#define VALUE_KEYS 65536

struct value_profile *value_profile_create(const struct value_options *o); /* NULL: defaults */
void value_profile_destroy(struct value_profile *p);
void value_profile_clear(struct value_profile *p); /* empty; keeps memory that was of use */

/* A value came `weight` times. */
void value_profile_add(
	struct value_profile *p, const struct value_key *key, uint64_t value, uint64_t weight);

size_t value_profile_keys(const struct value_profile *p);
uint64_t value_profile_refused(const struct value_profile *p); /* weight of values without room */
size_t value_profile_bytes(const struct value_profile *p);     /* memory it holds */

/* NULL when absent. Lists are good until the next add, merge or clear. */
const struct hotlist *value_profile_find(
	const struct value_profile *p, const struct value_key *key);
/* hotlist_read and hotlist_absent of one of its lists. */
size_t value_profile_read(const struct value_profile *p, const struct hotlist *h,
	struct hot_value out[HOTLIST_CAPACITY_MAX]);
uint64_t value_profile_absent(const struct value_profile *p, const struct hotlist *h);

/* All lists by offset, kind, context; stops when fn returns nonzero, and returns it. */
typedef int value_fn(void *arg, const struct value_key *key, const struct hotlist *h);
int value_profile_each(const struct value_profile *p, value_fn *fn, void *arg);

#endif
