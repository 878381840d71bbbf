/*
 * Value sampling by upcall, from the side of the profiler (the user-mode interpreter of the ASPLOS
 * 2000 paper): prepares what the library in src/upcall needs, and reads the values that it finds.
 *
 * The shared memory lives as long as the struct upcall or a process that maps it. Processes that do
 * not load the library (static ones, set-user-ID ones, ones that cannot see /proc) run as ever and
 * give no values. Not thread-safe.
 */
#ifndef CULPRIT_VALUES_UPCALL_H
#define CULPRIT_VALUES_UPCALL_H

#include "values/upcall_shared.h"

#include <stdbool.h>

struct err;
struct upcall;

/* Zeros are the defaults. */
struct upcall_options {
	const char *library;  /* its path; NULL: found beside the program */
	uint64_t period;      /* ns of CPU time between samples of a thread: UPCALL_PERIOD */
	unsigned steps, skip; /* instructions at most: UPCALL_STEPS, UPCALL_SKIP */
	bool no_values;       /* only what plug-ins make, and edges */
	bool no_edges;
	const struct plugin *plugins;
	size_t nplugins; /* PLUGINS_MAX at most */
};
#define UPCALL_PERIOD 1000000
#define UPCALL_STEPS  64
#define UPCALL_SKIP   32

/* -ENOENT when the library is not installed, -EINVAL for options out of range, others of the
 * system. */
int upcall_prepare(const struct upcall_options *o, struct upcall **out, struct err *e);
void upcall_destroy(struct upcall *u);

/* A copy of an environment in which programs load the library; one free() frees all of it. */
char **upcall_environment(const struct upcall *u, char *const *old);

struct upcall_tuple {
	uint64_t time; /* CLOCK_MONOTONIC, ns */
	uint64_t pc, value, context;
	uint32_t pid, tid, cpu;
	uint32_t kind; /* enum value_kind, or UPCALL_EDGE */
};
typedef void upcall_fn(void *arg, const struct upcall_tuple *t);

/*
 * Takes all values that are there; returns how many. To be called some ten times a second while
 * processes run and once after they ended; what finds its ring full is counted as dropped.
 */
size_t upcall_read(struct upcall *u, upcall_fn *fn, void *arg);

struct upcall_counts {
	uint64_t processes, refused, bursts, steps, dropped, blocked, busy, barred;
	uint64_t rings;   /* that were ever in use: threads at once, about */
	uint64_t damaged; /* bursts that made no sense, from processes gone wild */
	uint64_t stops[16];
	int refused_errno;
};
void upcall_count(const struct upcall *u, struct upcall_counts *out);

#endif
