/*
 * Who is running: processes, their threads, names, address spaces and cgroups, rebuilt from
 * side-band records (and /proc for what ran before), kept as history until the samples of a drain
 * have been placed.
 *
 * A process lives through eras: each exec begins a new one with an empty address space; fork shares
 * the parent's (copied when either changes). A sample is placed by its time and, where two eras of a
 * pid fall into one drain, by time alone. Exited processes stay until process_table_reap.
 */
#ifndef CULPRIT_COLLECT_PROCESS_H
#define CULPRIT_COLLECT_PROCESS_H

#include "image/image.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct record;
struct process_table;

/* One executable mapping. */
struct mapping {
	uint64_t start, size, offset;
	uint32_t file; /* index of struct mapped_file */
};

/* A file as the side-band named it; interned, so that equal files have one number. */
struct mapped_file {
	const char *path;
	struct image_id build_id;
	uint64_t inode;
	uint32_t major, minor;
	pid_t opener; /* the latest process known to map it: /proc/OPENER/root leads to the file */
};

struct process {
	pid_t pid;
	pid_t parent;
	uint64_t started; /* CLOCK_MONOTONIC ns; 0: before us */
	const char *comm; /* of the main thread, at its last record */
	const char *cgroup;
	uint32_t serial; /* different for each process that ever had this pid, and for each exec */
};

struct process_table *process_table_create(void);
void process_table_destroy(struct process_table *t);

/* Reads all processes of /proc (only_pid 0) or one of them with its threads. */
void process_table_scan(struct process_table *t, pid_t only_pid);

void process_table_record(struct process_table *t, const struct record *r);

/* The process and era that had this pid at this time; makes a nameless one when nobody saw it. */
struct process *process_at(struct process_table *t, pid_t pid, uint64_t time);

/* The mapping that covers pc in that era, or NULL. */
const struct mapping *process_mapping(struct process_table *t, const struct process *p, uint64_t pc);

const struct mapped_file *mapped_file(const struct process_table *t, uint32_t file);

/* The thread's name and the process's cgroup (cgroup_id: low half of the v2 id, 0 unknown). */
const char *process_thread_name(struct process_table *t, const struct process *p, pid_t tid);
const char *process_cgroup(struct process_table *t, struct process *p, uint32_t cgroup_id);

/* Forgets processes that exited, and eras that ended, before `time`. */
void process_table_reap(struct process_table *t, uint64_t time);

size_t process_table_memory(const struct process_table *t);

#endif
