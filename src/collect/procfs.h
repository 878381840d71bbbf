/*
 * What /proc says about processes that ran before us.
 */
#ifndef CULPRIT_COLLECT_PROCFS_H
#define CULPRIT_COLLECT_PROCFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PROCFS_COMM 16 /* with its NUL, as the kernel keeps it */

/* One line of /proc/PID/maps. */
struct procfs_map {
	uint64_t start, size, offset, inode;
	uint32_t major, minor;
	bool executable;
	const char *path; /* "" for memory without a name; points into the line */
};

/* Takes one line apart (without its newline; it is changed). 0 or -EBADMSG. */
int procfs_map_parse(char *line, struct procfs_map *out);

/* Calls fn for each executable mapping; 0 or -errno (-ESRCH: no such process). */
typedef void procfs_map_fn(void *arg, const struct procfs_map *map);
int procfs_maps(pid_t pid, procfs_map_fn *fn, void *arg);

struct procfs_stat {
	char comm[PROCFS_COMM];
	pid_t parent;
	uint32_t threads;
	uint64_t started; /* CLOCK_MONOTONIC ns, to a tick */
	uint64_t stack;   /* where it begins; 0: not ours to know */
};
int procfs_stat_parse(const char *text, struct procfs_stat *out); /* started: in ticks since boot */
int procfs_stat(pid_t pid, struct procfs_stat *out);

/* The process that a thread belongs to; the number itself when that cannot be read. */
pid_t procfs_leader(pid_t tid);

/* Calls fn for each number in a directory of /proc: processes, or the threads of one. */
typedef void procfs_number_fn(void *arg, pid_t number);
int procfs_each(const char *directory, procfs_number_fn *fn, void *arg);

#endif
