/*
 * Writes what has come together to the store: images, the procedures that got samples with their
 * code, profiles and totals (the paper's section 4.3.3). Nothing is forgotten here: the caller does
 * that when the transaction is safe.
 */
#ifndef CULPRIT_COLLECT_FLUSH_H
#define CULPRIT_COLLECT_FLUSH_H

#include <stddef.h>
#include <stdint.h>

struct anchor_pool;
struct progress;
struct bursts;
struct contexts;
struct contexts_settled;
struct err;
struct excursion_pool;
struct image_cache;
struct process_table;
struct store;
struct sums;
struct walk_pool;

struct flush {
	struct sums *sums;
	struct bursts *bursts;
	struct anchor_pool *anchors;
	struct progress *progress;
	struct walk_pool *walks;
	struct excursion_pool *excursions;
	struct contexts *contexts; /* NULL: none */
	struct image_cache *images;
	const struct process_table *processes;
	int64_t clock_offset; /* CLOCK_REALTIME less CLOCK_MONOTONIC, ns */
	struct store *store;
	int64_t epoch;
	const int64_t *events; /* the store's ids */
	int64_t t0, t1;
	const struct contexts_settled *settled; /* by flush_write itself */
};

int flush_write(const struct flush *f, struct err *e);

#endif
