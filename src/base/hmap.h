/*
 * A hash table of fixed-size records that begin with their key (open addressing, linear probing).
 *
 *     struct count { uint64_t pc; uint32_t image; uint32_t pad; uint64_t n; };
 *     struct hmap m;
 *     hmap_init(&m, sizeof(struct count), offsetof(struct count, n));
 *     struct count *c = hmap_put(&m, &key, &fresh);
 *
 * Keys are compared as bytes: pads must be zero. A record pointer is good until the next put or
 * delete. A fresh record is the key followed by zeros.
 */
#ifndef CULPRIT_BASE_HMAP_H
#define CULPRIT_BASE_HMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hmap {
	unsigned char *records;
	uint32_t *hashes; /* 0 marks a free slot */
	size_t n, slots;
	uint32_t record_size, key_size;
};

void hmap_init(struct hmap *m, size_t record_size, size_t key_size);
void hmap_deinit(struct hmap *m);
void hmap_clear(struct hmap *m); /* empties it; keeps the space unless it is far too large */

void *hmap_get(const struct hmap *m, const void *key);        /* NULL when absent */
void *hmap_put(struct hmap *m, const void *key, bool *fresh); /* fresh may be NULL */
bool hmap_delete(struct hmap *m, const void *key);

/*
 * Iteration in no particular order: for (void *r = NULL; (r = hmap_next(m, r)); )
 * Put and delete move records, so neither may happen between two calls: collect the keys first.
 */
void *hmap_next(const struct hmap *m, const void *after);

uint64_t hash_bytes(const void *p, size_t n);

/* Strings numbered in order of arrival, from 0. */
struct strtab {
	char **strings;
	size_t n, space;
	uint32_t *slots;
	size_t nslots;
};
uint32_t strtab_add(struct strtab *t, const char *s);
void strtab_deinit(struct strtab *t);

#endif
