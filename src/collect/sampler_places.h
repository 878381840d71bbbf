/*
 * Where a target's events are opened: on which CPUs and for which tasks.
 */
#ifndef CULPRIT_COLLECT_SAMPLER_PLACES_H
#define CULPRIT_COLLECT_SAMPLER_PLACES_H

#include "base/vec.h"

#include <stdbool.h>
#include <sys/types.h>

struct err;
struct sampler_target;

struct sampler_task {
	pid_t id;     /* a thread; -1: whatever runs */
	pid_t asked;  /* the process or thread that was asked for */
	bool inherit; /* its children too */
	bool threads; /* of the children only those that are threads */
};

struct sampler_places {
	VEC(int) cpus;
	VEC(struct sampler_task) tasks;
	int cgroup; /* descriptor of its directory, or -1 */
};

/* -ESRCH for a process that is not there, -ENOENT for a cgroup, -EINVAL for a CPU. */
int sampler_places_find(const struct sampler_target *t, struct sampler_places *out, struct err *e);
void sampler_places_deinit(struct sampler_places *p);

/* "0-3,8" as in /sys/devices/system/cpu/online. */
int sampler_parse_cpus(const char *text, struct sampler_places *out);

#endif
