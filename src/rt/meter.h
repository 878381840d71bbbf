/*
 * How threads read events of the kernel: each has a meter, with an event of its own for each
 * metric. What an event counted is read by an instruction from the page that the kernel maps for
 * it, where that can be (linux/perf_event.h: cap_user_rdpmc and an index), else by a call.
 */
#ifndef CULPRIT_RT_METER_H
#define CULPRIT_RT_METER_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

#include "rt/rt.h"

#define RT_METERS 1024 /* threads of a process that measure at once */

struct rt_meter_event {
	int64_t fd;    /* negative: there is none */
	uint64_t id;   /* by which the kernel knows it */
	uint64_t page; /* address of the mapped page; 0: there is none */
	uint64_t base; /* what earlier events of the meter counted */
	uint64_t last; /* the last reading */
};

struct rt_meter {
	uint32_t thread; /* its number; 0: nobody's */
	uint32_t told;   /* the thread control block has the number, too */
	uint64_t key;    /* of the metrics */
	struct rt_meter_event event[RT_METRICS];
};

/* The first page is zero in children of fork, where nothing is mapped that the parent mapped. */
struct rt_meters {
	uint64_t process;
	uint8_t rest[4096 - sizeof(uint64_t)];
	uint64_t used; /* the first ones, that were somebody's */
	struct rt_meter meter[RT_METERS];
};

/*
 * The count of an event from its page, by the counter that `counter` reads. The kernel changes
 * `lock` whenever it changes the rest. False: it is not on a counter that programs can read.
 */
static inline bool meter_read_page(const volatile struct perf_event_mmap_page *page,
	uint64_t (*counter)(uint32_t index), uint64_t *out)
{
	uint32_t lock, index;

	do {
		lock = page->lock;
		__asm__ volatile("" : : : "memory");
		index = page->index;
		if (!page->cap_user_rdpmc || !index)
			return false;
		unsigned unused = 64 - page->pmc_width;
		int64_t raw = (int64_t)(counter(index - 1) << unused) >> unused;
		*out = (uint64_t)(page->offset + raw);
		__asm__ volatile("" : : : "memory");
	} while (page->lock != lock);
	return true;
}

#endif
