/*
 * Samples by address and event, gathered from many profiles and summed up by sorting.
 */
#ifndef CULPRIT_ANALYZE_PCPOOL_H
#define CULPRIT_ANALYZE_PCPOOL_H

#include "base/vec.h"

#include <stddef.h>
#include <stdint.h>

struct pc_sum {
	uint64_t vaddr, count;
	uint32_t event;
};

struct pc_pool {
	VEC(struct pc_sum) list; /* after pc_pool_settle: by address, then event; none twice */
	size_t settled;
};

void pc_pool_add(struct pc_pool *p, uint64_t vaddr, uint32_t event, uint64_t count);
void pc_pool_settle(struct pc_pool *p);
void pc_pool_deinit(struct pc_pool *p);

#endif
