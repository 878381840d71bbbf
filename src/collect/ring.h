/*
 * A perf ring buffer: the reader's end of a mapped perf event.
 *
 *     while ((r = ring_next(&ring, &size))) ...; ring_done(&ring);
 *
 * What ring_next returned is good until the next ring_next; the kernel gets its room back with
 * ring_done.
 */
#ifndef CULPRIT_COLLECT_RING_H
#define CULPRIT_COLLECT_RING_H

#include <stddef.h>
#include <stdint.h>

struct perf_event_mmap_page;

struct ring {
	struct perf_event_mmap_page *page; /* followed by the data; NULL: closed */
	uint8_t *data;
	size_t size;       /* of the data, a power of two */
	uint64_t at, head; /* what is being read: [at, head) */
	void *piece;       /* a record that wraps around, put together */
};

/* Maps the ring of a perf event, `size` bytes of data. */
int ring_open(struct ring *r, int fd, size_t size);
void ring_close(struct ring *r);

/* The next record as the kernel wrote it, or NULL. */
const void *ring_next(struct ring *r, size_t *size);
void ring_done(struct ring *r);

/*
 * Waits until the kernel has finished writing every record, and every count of a BPF sampler, that
 * it had begun.
 */
void ring_settle(void);

#endif
