/*
 * Side-band records as a test tells them. Pids are above the kernel's limit, so that /proc knows
 * nothing of them; times are microseconds.
 */
#ifndef CULPRIT_TESTS_RECORDS_H
#define CULPRIT_TESTS_RECORDS_H

#include "collect/record.h"

#define US        1000ull
#define PID(n)    (5000000 + (n))
#define TEXT_SIZE 0x10000ull

static inline struct record record_fork(uint64_t us, pid_t parent, pid_t pid)
{
	return (struct record){.kind = RECORD_FORK,
		.time = us * US,
		.pid = pid,
		.tid = pid,
		.task = {.parent_pid = parent, .parent_tid = parent}};
}

static inline struct record record_thread(uint64_t us, pid_t pid, pid_t parent_tid, pid_t tid)
{
	return (struct record){.kind = RECORD_FORK,
		.time = us * US,
		.pid = pid,
		.tid = tid,
		.task = {.parent_pid = pid, .parent_tid = parent_tid}};
}

static inline struct record record_exit(uint64_t us, pid_t pid, pid_t tid)
{
	return (struct record){.kind = RECORD_EXIT, .time = us * US, .pid = pid, .tid = tid};
}

static inline struct record record_exec(uint64_t us, pid_t pid, const char *name)
{
	return (struct record){.kind = RECORD_COMM,
		.time = us * US,
		.pid = pid,
		.tid = pid,
		.comm = {.exec = true, .name = name}};
}

static inline struct record record_rename(uint64_t us, pid_t pid, pid_t tid, const char *name)
{
	return (struct record){.kind = RECORD_COMM,
		.time = us * US,
		.pid = pid,
		.tid = tid,
		.comm = {.name = name}};
}

static inline struct record record_map(
	uint64_t us, pid_t pid, uint64_t start, uint64_t size, uint64_t offset, const char *path)
{
	return (struct record){.kind = RECORD_MMAP,
		.time = us * US,
		.pid = pid,
		.tid = pid,
		.mmap = {.start = start, .size = size, .offset = offset, .path = path}};
}

#endif
