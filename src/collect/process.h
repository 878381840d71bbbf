/*
 * Who is running: processes, their threads, names, address spaces and cgroups, rebuilt from
 * side-band records (and /proc for what ran before), kept as history until the samples of a drain
 * have been placed (the paper's section 4.3.2).
 *
 * A process lives through eras: each exec begins a new one with an empty address space; fork shares
 * the parent's (copied when either changes). A sample is placed by its time alone, also where
 * several eras of a pid fall into one drain. Exited processes stay until process_table_reap.
 * Applying a record makes no system call; /proc is read for a process that nobody announced, or
 * that runs where nobody saw a mapping (lost records), a few times between two reaps at most.
 */
#ifndef CULPRIT_COLLECT_PROCESS_H
#define CULPRIT_COLLECT_PROCESS_H

#include "collect/file_table.h"
#include "collect/procfs.h"
#include "collect/space.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct cgroups;
struct record;
struct process_table;

/* The name of what nobody announced, and of tasks that the kernel no longer knows by number. */
#define PROCESS_NAMELESS "[unknown]"
#define PROCESS_EXITING  "[exiting]"

/* A process in one of its eras. Pointers are good until process_table_reap. */
struct process {
	pid_t pid;
	pid_t parent;
	uint64_t started;       /* CLOCK_MONOTONIC ns; 0: unknown */
	char comm[PROCFS_COMM]; /* of the main thread, at its last record */
	uint32_t cgroup;        /* that /proc or the parent told (cgroup.h) */
	uint32_t serial; /* different for each process that ever had this pid, and for each exec */
	/* The caller's: under what it filed this era in its turn. A new name resets it. */
	uint32_t filed, filed_turn;
};

/* `cgroups` stays the caller's. Where records are of another time or machine /proc is not read. */
struct process_table *process_table_create(struct cgroups *cgroups, bool recorded);
void process_table_destroy(struct process_table *t);

/* Reads all processes of /proc (only_pid 0), or one of them that may be named by a thread. */
void process_table_scan(struct process_table *t, pid_t only_pid);

/* Returns the number of a file that this record is the first to name, or FILE_ANON. */
uint32_t process_table_record(struct process_table *t, const struct record *r);

/* The process and era that had this pid at this time; makes a nameless one when nobody saw it. */
struct process *process_at(struct process_table *t, pid_t pid, uint64_t time);

/* The mapping that covered pc at that time, or NULL. */
const struct mapping *process_mapping(
	struct process_table *t, struct process *p, uint64_t pc, uint64_t time);

/* All of them now. */
size_t process_mappings(const struct process *p, const struct mapping **out);

const struct mapped_file *mapped_file(const struct process_table *t, uint32_t file);

/* A current mapping of the file in the latest era of pid; false when it has none. */
bool process_maps_file(
	const struct process_table *t, pid_t pid, uint32_t file, struct mapping *out);

/* Whether the era is over. */
bool process_ended(const struct process_table *t, pid_t pid, uint32_t serial);

/* The thread's name, and the process's cgroup (cgroup_id: low half of the v2 id, 0 unknown). */
const char *process_thread_name(const struct process_table *t, const struct process *p, pid_t tid);
const char *process_cgroup(struct process_table *t, struct process *p, uint32_t cgroup_id);

/* Forgets processes that exited, and eras that ended, before `time`. */
void process_table_reap(struct process_table *t, uint64_t time);

/* Ends processes that are gone though no record said so. A system call each: for once a minute. */
void process_table_sweep(struct process_table *t, uint64_t now);

size_t process_table_count(const struct process_table *t); /* eras */
size_t process_table_memory(const struct process_table *t);

#endif
