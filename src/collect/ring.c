#include "collect/ring.h"

#include "base/mem.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* A record's length has 16 bits. */
#define RECORD_MAX (1 << 16)

int ring_open(struct ring *r, int fd, size_t size)
{
	size_t page = sysconf(_SC_PAGESIZE);
	void *p = mmap(NULL, page + size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		return -errno;
	*r = (struct ring){.page = p, .data = (uint8_t *)p + page, .size = size};
	return 0;
}

void ring_close(struct ring *r)
{
	if (r->page)
		munmap(r->page, sysconf(_SC_PAGESIZE) + r->size);
	free(r->piece);
	*r = (struct ring){0};
}

/* Copies what wraps around the end of the buffer. */
static const void *join(struct ring *r, size_t offset, size_t size)
{
	size_t first = r->size - offset;

	if (!r->piece)
		r->piece = xmalloc(RECORD_MAX);
	memcpy(r->piece, r->data + offset, first);
	memcpy((uint8_t *)r->piece + first, r->data, size - first);
	return r->piece;
}

const void *ring_next(struct ring *r, size_t *size)
{
	struct perf_event_header h;
	size_t offset;

	if (r->at == r->head) {
		r->head = __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE);
		if (r->at == r->head)
			return NULL;
	}
	/* Records start at multiples of 8, so that a header never wraps. */
	offset = r->at & (r->size - 1);
	memcpy(&h, r->data + offset, sizeof h);
	if (h.size < sizeof h || h.size % 8 || h.size > r->head - r->at) {
		r->at = r->head; /* not the kernel's doing; what follows cannot be told apart */
		return NULL;
	}
	r->at += h.size;
	*size = h.size;
	return offset + h.size <= r->size ? r->data + offset : join(r, offset, h.size);
}

void ring_done(struct ring *r)
{
	__atomic_store_n(&r->page->data_tail, r->at, __ATOMIC_RELEASE);
}

void ring_settle(void)
{
	/*
	 * Records are written and BPF programs run inside RCU read-side sections, and this command
	 * waits for those that have begun.
	 */
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) == 0)
		return;
	/* Not with nohz_full; but nothing of the kind takes a hundredth of this. */
	nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
}
