/*
 * Texts that are looked for in a sequence: a trie, and at each place of the sequence all of its
 * texts that begin there.
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

struct stream_match {
	uint32_t text, length;
};

/* All texts that the sequence begins with, the shortest first; there is room for any length. */
unsigned stream_trie_find(
	const struct stream_trie *t, const uint32_t *sequence, size_t n, struct stream_match *out);

#endif
