/* System calls for code without a libc; all return -errno. */
#ifndef CULPRIT_RT_SYS_H
#define CULPRIT_RT_SYS_H

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>

static inline bool sys_failed(long result)
{
	return result < 0 && result >= -4095;
}

static inline long sys_call6(long number, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
}

static inline long sys_call(long number, long a, long b, long c, long d)
{
	return sys_call6(number, a, b, c, d, 0, 0);
}

static inline long sys_open(const char *path)
{
	return sys_call(SYS_openat, AT_FDCWD, (long)path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
}

static inline void sys_close(long fd)
{
	sys_call(SYS_close, fd, 0, 0, 0);
}

/* Part of a file, shared. */
static inline long sys_map(uint64_t at, uint64_t size, int flags, long fd, uint64_t offset)
{
	return sys_call6(SYS_mmap, (long)at, (long)size, PROT_READ | PROT_WRITE, MAP_SHARED | flags,
		fd, (long)offset);
}

static inline long sys_unmap(uint64_t at, uint64_t size)
{
	return sys_call(SYS_munmap, (long)at, (long)size, 0, 0);
}

#endif
