/*
 * Paths of procedures that have too many for an array: counted in a hash table that lies with the
 * counters in the file (paths/map.h). Whoever comes first to a free entry takes it; what finds
 * no room is counted together, as is what comes before the file is mapped.
 */
#include "rt/runtime.h"

#include <stddef.h>

#define PROBES 32

static void add(uint64_t *word, uint64_t amount)
{
	if (rt_header.table_atomic)
		__atomic_fetch_add(word, amount, __ATOMIC_RELAXED);
	else
		*(volatile uint64_t *)word += amount;
}

static uint64_t *table(void)
{
	return rt_here(rt_header.table);
}

/* Behind its key; NULL: there is no room. */
static uint64_t *find(uint64_t key)
{
	uint64_t mask = rt_header.table_entries - 1, at = key * 0x9e3779b97f4a7c15u >> 32;

	for (unsigned i = 0; i < PROBES && table()[RT_TABLE_READY]; i++) {
		uint64_t *entry =
			table() + RT_TABLE_FIRST + rt_header.table_words * ((at + i) & mask);
		uint64_t found = __atomic_load_n(entry, __ATOMIC_RELAXED);

		if (!found)
			__atomic_compare_exchange_n(
				entry, &found, key + 1, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
		if (!found || found == key + 1)
			return entry + 1;
	}
	return NULL;
}

uint64_t rt_path(uint64_t key, uint64_t amount)
{
	uint64_t *entry = find(key);

	add(entry ? entry : table() + RT_TABLE_NO_ROOM, 1);
	if (entry && rt_header.table_words > 2)
		add(entry + 1, amount);
	return 0;
}

uint64_t rt_path_second(uint64_t key, uint64_t amount)
{
	uint64_t *entry = find(key);

	if (entry)
		add(entry + 2, amount);
	return 0;
}

void rt_paths_start(const struct rt_header *h)
{
	if (h->table)
		*((uint64_t *)rt_here(h->table) + RT_TABLE_READY) = 1;
}
