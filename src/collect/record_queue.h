/*
 * Records of many rings, held until their time has come and delivered in time order.
 */
#ifndef CULPRIT_COLLECT_RECORD_QUEUE_H
#define CULPRIT_COLLECT_RECORD_QUEUE_H

#include "base/buf.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>

struct record;

struct record_place {
	uint64_t time;
	size_t offset, size; /* in bytes */
};

struct record_queue {
	struct buf bytes; /* records as the kernel wrote them, in the order of arrival */
	VEC(struct record_place) places;
	bool build_ids; /* of the events, see record_parse */
};

void record_queue_deinit(struct record_queue *q);

/* Takes a copy, whatever it is. */
void record_queue_put(struct record_queue *q, uint64_t time, const void *bytes, size_t size);
typedef void record_bytes_fn(void *arg, uint64_t time, const uint8_t *bytes, size_t size);
void record_queue_take(struct record_queue *q, uint64_t until, record_bytes_fn *fn, void *arg);

/* Takes a copy. Records that cannot be parsed or say nothing to us are left out. */
void record_queue_add(struct record_queue *q, const void *record, size_t size);

/* Delivers what has time <= until; equal times in order of arrival. The rest stays. */
void record_queue_deliver(struct record_queue *q, uint64_t until,
	void (*fn)(void *arg, const struct record *r), void *arg);

#endif
