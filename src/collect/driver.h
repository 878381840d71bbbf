/*
 * What the BPF sampler (driver.bpf.c, the device driver of the DCPI paper's section 4.2) and its
 * user-space half share.
 *
 * Each CPU has two tables of four-entry buckets; the sampler counts in the active one. An entry
 * that must make room goes to the ring buffer. Nothing here is atomic: a table belongs to its CPU.
 */
#ifndef CULPRIT_COLLECT_DRIVER_H
#define CULPRIT_COLLECT_DRIVER_H

#ifndef __bpf__
#include <stdint.h>
typedef uint8_t u8;
typedef uint32_t u32;
typedef uint64_t u64;
#endif

#define DRIVER_WAYS 4

/* tag: the exec generation (24 bits), the mode (2) and the event's number (6). */
#define DRIVER_EVENTS      64
#define DRIVER_TAG_EVENT   0x3fu
#define DRIVER_TAG_KERNEL  0x40u
#define DRIVER_TAG_GENERATION_SHIFT 8

/*
 * 32 bytes: a bucket is two cache lines. The first five fields are the key; count 0 is a free
 * entry. The exec generation keeps apart what an exec or a reused pid would mix inside one drain;
 * `seen` says where on the time line of the side-band records the entry belongs.
 */
struct driver_entry {
	u64 pc;
	u32 pid, tid;
	u32 tag;
	u32 cgroup; /* low half of the cgroup v2 id */
	u32 count;
	u32 seen; /* first sight, in units of 1024 ns after the table's base time */
};

struct driver_bucket {
	struct driver_entry way[DRIVER_WAYS];
};

/* One entry evicted, as it stands in the ring buffer: `base` makes `seen` absolute, cpu its owner. */
struct driver_eviction {
	struct driver_entry entry;
	u64 base;
	u32 cpu, pad;
};

/* Per CPU, on cache lines of its own. */
struct driver_cpu {
	u32 active; /* which table counts: 0 or 1; set by user space */
	u32 turn;   /* round robin of evictions */
	u64 base[2]; /* CLOCK_MONOTONIC at the start of each table's use */
	u64 samples, hits, evictions, dropped;
} __attribute__((aligned(128)));

#endif
