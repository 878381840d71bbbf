/*
 * What culprit and the library that it loads into programs (src/upcall) share: one file in memory,
 * mapped by all processes of a recording.
 *
 * culprit fills in the orders before the first process starts. A ring belongs to one thread at a
 * time: the thread writes units and moves head, culprit reads them and moves tail. A process that
 * goes wild may write anything here: the reader believes nothing.
 *
 * A burst in a ring is a unit that says where it comes from and n units with a value each.
 */
#ifndef CULPRIT_VALUES_UPCALL_SHARED_H
#define CULPRIT_VALUES_UPCALL_SHARED_H

#include "values/plugin_host.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdint.h>

#define UPCALL_MAGIC       0x31304c4c41435055ull /* "UPCALL01" */
#define UPCALL_ENVIRONMENT "CULPRIT_UPCALL"      /* names the shared file */
#define UPCALL_RINGS       1024
#define UPCALL_UNITS       16384    /* of a ring, a power of two: 512 KB, taken as they are used */
#define UPCALL_EDGE        0x10000u /* kind: value is where a branch went; others: value_kind */

/* Of the first unit of a burst: words 0 to 2 are time, pid << 32 | tid, cpu; kind is n. */
struct upcall_unit {
	uint64_t word[3]; /* pc, value, context */
	uint32_t kind, mark;
};
#define UPCALL_BURST 0x42555253u /* mark of the first unit */
#define UPCALL_VALUE 0x56414c55u

struct upcall_ring {
	_Atomic uint64_t head __attribute__((aligned(64))); /* units ever written */
	_Atomic uint64_t tail __attribute__((aligned(64))); /* units ever read */
	struct upcall_unit unit[UPCALL_UNITS] __attribute__((aligned(64)));
};

/* A thread, in the pid namespace that it counts in. Process and thread ids have 22 bits. */
#define UPCALL_OWNER(space, pid, tid) \
	((uint64_t)(space) << 44 | (uint64_t)(pid) << 22 | (uint64_t)(tid))

struct upcall_orders {
	uint64_t period;      /* ns of CPU time between samples of a thread */
	uint32_t steps, skip; /* of a burst: at most, drawn at random */
	uint32_t values, edges;
	uint32_t nplugins;
	struct {
		uint32_t kind;
		unsigned char config[CULPRIT_CONFIG_SIZE];
		char path[PATH_MAX];
	} plugin[PLUGINS_MAX];
};

/* What became of the samples; all processes add to it. */
struct upcall_sums {
	_Atomic uint64_t processes; /* that loaded the library and are sampled */
	_Atomic uint64_t refused; /* that could not be sampled; refused_errno tells why the last */
	_Atomic uint64_t bursts, steps;
	_Atomic uint64_t dropped;   /* values that found no room in their ring */
	_Atomic uint64_t blocked;   /* samples that came while signals were blocked */
	_Atomic uint64_t busy;      /* samples without a ring, or inside another sample */
	_Atomic uint64_t barred;    /* samples of processes that map barred */
	_Atomic uint64_t stops[16]; /* enum interp_stop */
	_Atomic int refused_errno;
};

struct upcall_shared {
	uint64_t magic, size;
	struct upcall_orders orders;
	struct upcall_sums sums __attribute__((aligned(64)));
	_Atomic uint64_t owner[UPCALL_RINGS]; /* of each ring: UPCALL_OWNER; 0: never used */
	struct upcall_ring ring[UPCALL_RINGS] __attribute__((aligned(4096)));
};

#endif
