/*
 * What has come together since the last flush: samples by (event, image, offset, process name or
 * process), and totals without offsets by thread, CPU and cgroup.
 *
 * Memory is bounded. When flushes keep failing, samples with new keys are refused, and the caller
 * counts them as lost. Where thousands of processes come and go between two flushes, the totals of
 * those that ended with few samples are kept by name, as if they were one process with pid 0.
 */
#ifndef CULPRIT_COLLECT_ATTRIBUTE_SUMS_H
#define CULPRIT_COLLECT_ATTRIBUTE_SUMS_H

#include "base/hmap.h"
#include "base/vec.h"
#include "collect/attribute_pcs.h"
#include "collect/procfs.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct process;
struct process_table;

/* To whom samples belong: a process, or with pid 0 all processes of a name. */
struct who {
	int32_t pid;
	uint32_t serial;
	uint64_t started; /* CLOCK_MONOTONIC ns */
	uint64_t samples;
	uint32_t name; /* the number of that name; its own for a name */
	char comm[PROCFS_COMM];
};

#define SUM_EVENT_SHIFT 26 /* six bits above the number of a who */
#define SUM_WHO_MASK    ((1u << SUM_EVENT_SHIFT) - 1)

struct sum_total {
	uint32_t who;
	int32_t tid;
	uint32_t image;
	uint32_t cgroup_id;
	uint16_t cpu, event;
	uint32_t thread, cgroup; /* strings; set by the caller when the row is fresh */
	uint64_t samples;
};

struct sums {
	bool by_process; /* offsets are kept by process, not only by name */
	struct pcs pcs;
	struct hmap totals; /* struct sum_total */
	VEC(struct who) who;
	VEC(uint32_t) free_who;
	struct hmap names; /* comm to number */
	struct strtab strings;
	uint32_t turn; /* a new one after each clearing */
};

void sums_init(struct sums *s, bool by_process);
void sums_deinit(struct sums *s);

/* The number of a process; kept in it, so that it is found at once until the next clearing. */
uint32_t sums_who(struct sums *s, struct process *p);

/*
 * Adds samples. NULL when they are refused, else their row of totals; a fresh row wants the names
 * of thread and cgroup.
 */
struct sum_sample {
	uint64_t offset;
	uint32_t who, image, cgroup_id, cpu;
	int32_t tid;
	uint8_t event;
	uint32_t count;
};
struct sum_total *sums_add(struct sums *s, const struct sum_sample *sample, bool *fresh);

/* After each drain. */
void sums_fold(struct sums *s, const struct process_table *t);

void sums_clear(struct sums *s);

/* As much as should be held in memory: it is time to flush. */
bool sums_full(const struct sums *s);

size_t sums_memory(const struct sums *s);

#endif
