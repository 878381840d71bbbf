/*
 * Numbers for references to memory, in the order in which they come: an instruction and an address,
 * of one run and process.
 */
#ifndef CULPRIT_ANALYZE_STREAM_NUMBERS_H
#define CULPRIT_ANALYZE_STREAM_NUMBERS_H

#include "analyze/streams.h"

struct stream_numbers;

struct stream_numbers *stream_numbers_create(void);
void stream_numbers_destroy(struct stream_numbers *n);

/* Of a burst's event; `part` is the number of the run. */
uint32_t stream_number(struct stream_numbers *n, const struct trace_site *sites, uint32_t part,
	const struct trace_burst *b, size_t event);
const struct stream_reference *stream_numbers_at(const struct stream_numbers *n, uint32_t number);

#endif
