/*
 * Whether a process starts threads or processes, and how many: by records that the kernel writes at
 * every fork and clone of it and of all that come from it. Nothing is sampled.
 */
#ifndef CULPRIT_COLLECT_FORKS_H
#define CULPRIT_COLLECT_FORKS_H

#include <stdint.h>
#include <sys/types.h>

struct err;
struct forks;

struct forks_seen {
	uint64_t threads, processes; /* at least so many: a full buffer drops records */
};

/* From now on. Own processes can be watched where perf_event_paranoid is at most 2. */
int forks_watch(pid_t pid, struct forks **out, struct err *e);
void forks_read(struct forks *f, struct forks_seen *out);
void forks_destroy(struct forks *f);

#endif
