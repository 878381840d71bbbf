/*
 * The names of threads that have another one than their process.
 */
#ifndef CULPRIT_COLLECT_PROCESS_THREADS_H
#define CULPRIT_COLLECT_PROCESS_THREADS_H

#include "base/hmap.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct thread_names {
	struct hmap names;
};

void thread_names_init(struct thread_names *t);
void thread_names_deinit(struct thread_names *t);

/* NULL when the process has no thread of that number with a name of its own. */
const char *thread_names_get(const struct thread_names *t, pid_t pid, pid_t tid);
void thread_names_set(
	struct thread_names *t, pid_t pid, pid_t tid, const char *name, uint64_t time);

/* Forgets a thread that exited at that time, unless the number has a new owner. */
void thread_names_forget(struct thread_names *t, pid_t tid, uint64_t time);

size_t thread_names_memory(const struct thread_names *t);

#endif
