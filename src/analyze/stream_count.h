/*
 * How often texts (stream_trie.h) occur in a sequence that comes symbol by symbol. A reference is
 * given to the first text in the order of their numbers that wants it: with numbers by heat the
 * hottest streams are found wherever they are, whatever stands before them, so that two traces of
 * one program are taken apart in the same way.
 */
#ifndef CULPRIT_ANALYZE_STREAM_COUNT_H
#define CULPRIT_ANALYZE_STREAM_COUNT_H

#include <stdint.h>

#include "analyze/stream_trie.h"

struct stream_count;

/* Of texts 1 to `texts`, of which none is longer than `longest`. */
struct stream_count *stream_count_create(
	const struct stream_trie *trie, uint32_t texts, uint32_t longest);
void stream_count_destroy(struct stream_count *c);

/* Whom to tell of each occurrence: where it begins, by symbols since the sequence was cut. */
typedef void stream_found_fn(void *arg, uint32_t text, uint64_t at, uint32_t length);
void stream_count_tell(struct stream_count *c, stream_found_fn *fn, void *arg);

void stream_count_add(struct stream_count *c, uint32_t symbol); /* a terminal or a cut */
/* At the end; by text, from 1 on. */
const uint64_t *stream_count_end(struct stream_count *c);

#endif
