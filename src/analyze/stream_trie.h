/*
 * Texts that are looked for in a sequence: a trie, and at each place of the sequence the longest of
 * its texts that begins there, so that what is found does not overlap.
 */
#ifndef CULPRIT_ANALYZE_STREAM_TRIE_H
#define CULPRIT_ANALYZE_STREAM_TRIE_H

#include <stddef.h>
#include <stdint.h>

struct stream_trie;

struct stream_trie *stream_trie_create(void);
void stream_trie_destroy(struct stream_trie *t);

/* The number of a text that is there already, else NUMBER (not 0), which it has from then on. */
uint32_t stream_trie_add(struct stream_trie *t, const uint32_t *text, uint32_t n, uint32_t number);

/* The longest text that the sequence begins with, and how long; 0: none. */
uint32_t stream_trie_find(
	const struct stream_trie *t, const uint32_t *sequence, size_t n, uint32_t *length);

#endif
