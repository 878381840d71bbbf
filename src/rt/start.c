/* Maps the counters over their file (rt.h). No libc: only system calls. */
#include "rt/runtime.h"
#include "rt/sys.h"

#include <errno.h>
#include <sys/file.h>
#include <sys/stat.h>

/* A file with holes on a full disk would end the program by SIGBUS: every byte is written. */
static long write_zeros(long fd, uint64_t from, uint64_t to)
{
	static const char zeros[1024];

	while (from < to) {
		uint64_t n = to - from < sizeof zeros ? to - from : sizeof zeros;
		long done = sys_call(SYS_pwrite64, fd, (long)zeros, (long)n, (long)from);

		if (sys_failed(done))
			return done;
		from += (uint64_t)done;
	}
	return 0;
}

long rt_make_room(long fd, uint64_t from, uint64_t to)
{
	struct stat st;
	long result = sys_call(SYS_fstat, fd, (long)&st, 0, 0);
	uint64_t end = (uint64_t)st.st_size;

	if (sys_failed(result) || (!from && end >= to))
		return result;
	result = sys_call(SYS_fallocate, fd, 0, (long)from, (long)(to - from));
	if (!sys_failed(result) || result == -ENOSPC)
		return result;
	return write_zeros(fd, end > from ? end : from, to);
}

/* Others that start at the same moment wait: they must not write zeros over counts. */
static long make_first_room(long fd, uint64_t size)
{
	long result;

	sys_call(SYS_flock, fd, LOCK_EX, 0, 0);
	result = rt_make_room(fd, 0, size);
	sys_call(SYS_flock, fd, LOCK_UN, 0, 0);
	return result;
}

/* What was counted before: in resolvers of symbols, and by libraries that were started earlier. */
static void add_counts(const uint64_t *from, uint64_t *to, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		if (from[i])
			__atomic_fetch_add(&to[i], from[i], __ATOMIC_RELAXED);
}

#define PAGE    4096
#define ENTRIES 64

/* Pages that were written to, or read from, are in memory or swapped out (proc_pid_pagemap(5)). */
static bool was_touched(uint64_t entry)
{
	return entry >> 62;
}

/* Hardly any counter was: of a page that nobody touched none is looked at, which would touch it. */
static void add_touched(uint64_t from, uint64_t to, uint64_t size)
{
	long fd =
		sys_call(SYS_openat, AT_FDCWD, (long)"/proc/self/pagemap", O_RDONLY | O_CLOEXEC, 0);
	uint64_t entry[ENTRIES];

	for (uint64_t at = 0; at < size; at += PAGE) {
		uint64_t i = at / PAGE % ENTRIES, next = size - at < PAGE ? size - at : PAGE;

		if (!sys_failed(fd) && !i &&
			sys_call(SYS_pread64, fd, (long)entry, sizeof entry,
				(long)((from + at) / PAGE * sizeof *entry)) != sizeof entry) {
			sys_close(fd);
			fd = -EIO;
		}
		if (sys_failed(fd) || was_touched(entry[i]))
			add_counts((const uint64_t *)(from + at), (uint64_t *)(to + at),
				next / RT_COUNTER);
	}
	if (!sys_failed(fd))
		sys_close(fd);
}

static long map_counters(const struct rt_header *h, long fd)
{
	uint64_t counters = (uint64_t)rt_here(h->counters);
	long copy = make_first_room(fd, h->size + (h->threads ? RT_DIRECTORY : 0));

	if (!sys_failed(copy))
		copy = sys_map(0, h->size, 0, fd, 0);
	if (sys_failed(copy))
		return copy;
	add_touched(counters, (uint64_t)copy, h->size);
	sys_unmap((uint64_t)copy, h->size);
	return sys_map(counters, h->size, MAP_FIXED, fd, 0);
}

/* ---- how processes end ---- */

static void mark(const struct rt_header *h, uint64_t from_end)
{
	uint64_t *counters = rt_here(h->counters);

	__atomic_fetch_add(&counters[h->size / RT_COUNTER - from_end], 1, __ATOMIC_RELAXED);
}

static uint64_t process_number(void)
{
	return (uint64_t)sys_call(SYS_getpid, 0, 0, 0, 0);
}

/* Its number is kept in memory of its own: a child that has a copy of it is another process. */
static void begin_process(const struct rt_header *h)
{
	*(uint64_t *)rt_here(h->ends) = process_number();
	mark(h, RT_ENDS_STARTED);
}

uint64_t rt_ended(void)
{
	const struct rt_header *h = &rt_header;
	uint64_t *process = rt_here(h->ends);

	if (*process && *process == process_number()) {
		*process = 0;
		mark(h, RT_ENDS_ENDED);
	}
	return 0;
}

void rt_finish(void)
{
	rt_ended();
	if (rt_header.last)
		((void (*)(void))rt_here(rt_header.last))();
}

/* ---- the start ---- */

void rt_main(const struct rt_header *h)
{
	long fd, result;

	if (!h->size)
		return;
	fd = sys_open(h->path);
	result = fd;
	if (!sys_failed(fd)) {
		result = map_counters(h, fd);
		if (!sys_failed(result) && h->threads)
			rt_threads_start(h, fd);
		if (!sys_failed(result))
			rt_paths_start(h);
		if (!sys_failed(result) && h->ends)
			begin_process(h);
		sys_close(fd);
	}
	if (sys_failed(result))
		rt_complain(h->path, result);
}
