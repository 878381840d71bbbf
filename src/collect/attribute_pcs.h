/*
 * Samples by offset, in one small hash table for each group of (image, event, who), as the paper's
 * daemon has it (section 4.3.1): an entry is eight bytes, so that those of a busy minute stay in
 * the cache. A group spans 4 GB of offsets; the upper half of an offset belongs to its key.
 */
#ifndef CULPRIT_COLLECT_ATTRIBUTE_PCS_H
#define CULPRIT_COLLECT_ATTRIBUTE_PCS_H

#include "base/hmap.h"
#include "store/pack.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pc_entry {
	uint32_t offset, samples; /* samples 0: free */
};

struct pc_group {
	uint32_t image, who; /* `who` holds the event too */
	uint32_t high;       /* of the offsets */
	uint32_t n, slots;
	struct pc_entry *entries;
};

struct pcs {
	struct hmap groups;    /* struct pc_group */
	struct pc_group *last; /* where samples were added last */
	size_t n, slots;       /* of all groups */
};

void pcs_init(struct pcs *p);
void pcs_deinit(struct pcs *p);
void pcs_clear(struct pcs *p);

/* False when this would be one more than `most` entries, or too much for a count. */
bool pcs_add(struct pcs *p, uint32_t image, uint32_t who, uint64_t offset, uint32_t samples,
	size_t most);

/* All groups by image, who and offset, p->groups.n of them; the caller frees the list. */
const struct pc_group **pcs_sorted(const struct pcs *p);
/* The entries of a group in order; `out` has room for its n. */
void pc_group_list(const struct pc_group *g, struct pc_count *out);

size_t pcs_memory(const struct pcs *p);

#endif
