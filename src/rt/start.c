/* Maps the counters over their file (rt.h). No libc: only system calls. */
#include "rt/rt.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define ERRORS_FROM (-4095L)

static bool is_error(long result)
{
	return result < 0 && result >= ERRORS_FROM;
}

static long call6(long number, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
}

static long call4(long number, long a, long b, long c, long d)
{
	return call6(number, a, b, c, d, 0, 0);
}

static long map(uint64_t at, uint64_t size, int flags, long fd)
{
	return call6(
		SYS_mmap, (long)at, (long)size, PROT_READ | PROT_WRITE, MAP_SHARED | flags, fd, 0);
}

/* A file with holes on a full disk would end the program by SIGBUS: every byte is written. */
static long write_zeros(long fd, uint64_t from, uint64_t to)
{
	static const char zeros[1024];

	while (from < to) {
		uint64_t n = to - from < sizeof zeros ? to - from : sizeof zeros;
		long done = call4(SYS_pwrite64, fd, (long)zeros, (long)n, (long)from);

		if (is_error(done))
			return done;
		from += (uint64_t)done;
	}
	return 0;
}

static long grow(long fd, uint64_t size)
{
	struct stat st;
	long result = call4(SYS_fstat, fd, (long)&st, 0, 0);

	if (is_error(result) || (uint64_t)st.st_size >= size)
		return result;
	result = call4(SYS_fallocate, fd, 0, 0, (long)size);
	return is_error(result) ? write_zeros(fd, (uint64_t)st.st_size, size) : 0;
}

/* Others that start at the same moment wait: they must not write zeros over counts. */
static long make_room(long fd, uint64_t size)
{
	long result;

	call4(SYS_flock, fd, LOCK_EX, 0, 0);
	result = grow(fd, size);
	call4(SYS_flock, fd, LOCK_UN, 0, 0);
	return result;
}

/* What was counted before: in resolvers of symbols, and by libraries that were started earlier. */
static void add_counts(const uint64_t *from, uint64_t *to, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		if (from[i])
			__atomic_fetch_add(&to[i], from[i], __ATOMIC_RELAXED);
}

static long map_counters(uint64_t counters, uint64_t size, long fd)
{
	long copy = make_room(fd, size);

	if (!is_error(copy))
		copy = map(0, size, 0, fd);
	if (is_error(copy))
		return copy;
	add_counts((const uint64_t *)counters, (uint64_t *)copy, size / RT_COUNTER);
	call4(SYS_munmap, copy, (long)size, 0, 0);
	return map(counters, size, MAP_FIXED, fd);
}

/* ---- the one message ---- */

static size_t append(char *text, size_t n, size_t space, const char *what)
{
	while (*what && n < space)
		text[n++] = *what++;
	return n;
}

static size_t append_number(char *text, size_t n, size_t space, unsigned number)
{
	char digits[12];
	size_t at = sizeof digits;

	digits[--at] = 0;
	do
		digits[--at] = (char)('0' + number % 10);
	while (number /= 10);
	return append(text, n, space, digits + at);
}

static void complain(const char *path, long error)
{
	char text[RT_PATH + 100];
	size_t n = append(text, 0, sizeof text, "culprit: cannot count into ");

	n = append(text, n, sizeof text, path);
	n = append(text, n, sizeof text, " (error ");
	n = append_number(text, n, sizeof text, (unsigned)-error);
	n = append(text, n, sizeof text, "); this process runs on without\n");
	call4(SYS_write, 2, (long)text, (long)n, 0);
}

void rt_main(const struct rt_header *h);

void rt_main(const struct rt_header *h)
{
	long fd, result;

	if (!h->size)
		return;
	fd = call4(SYS_openat, AT_FDCWD, (long)h->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	result = fd;
	if (!is_error(fd)) {
		result = map_counters(h->counters + ((uint64_t)h - h->address), h->size, fd);
		call4(SYS_close, fd, 0, 0, 0);
	}
	if (is_error(result))
		complain(h->path, result);
}
