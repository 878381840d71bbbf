#include "collect/scout_internal.h"

#include "base/mem.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

/* Those that wait for somebody else are not in it, nor those that do not come back here. */
static bool is_short(uint64_t call)
{
	switch (call) {
	case SYS_read:
	case SYS_write:
	case SYS_open:
	case SYS_close:
	case SYS_stat:
	case SYS_fstat:
	case SYS_lstat:
	case SYS_lseek:
	case SYS_mmap:
	case SYS_mprotect:
	case SYS_munmap:
	case SYS_brk:
	case SYS_rt_sigaction:
	case SYS_rt_sigprocmask:
	case SYS_pread64:
	case SYS_pwrite64:
	case SYS_readv:
	case SYS_writev:
	case SYS_access:
	case SYS_mremap:
	case SYS_madvise:
	case SYS_getpid:
	case SYS_gettid:
	case SYS_getuid:
	case SYS_fcntl:
	case SYS_fsync:
	case SYS_fdatasync:
	case SYS_ftruncate:
	case SYS_getcwd:
	case SYS_unlink:
	case SYS_readlink:
	case SYS_gettimeofday:
	case SYS_getrusage:
	case SYS_times:
	case SYS_time:
	case SYS_getdents64:
	case SYS_clock_gettime:
	case SYS_openat:
	case SYS_newfstatat:
	case SYS_unlinkat:
	case SYS_faccessat:
	case SYS_getcpu:
	case SYS_getrandom:
	case SYS_statx:
		return true;
	default:
		return false;
	}
}

/* ---- calls of descriptors ---- */

/*
 * When we do not wait any longer for a thread that waits in a call, the call is interrupted, and
 * goes on as if nothing had been. Not so where it has done a part, which is its result then; nor of
 * a socket with a time limit, where it fails (signal(7), about stop signals).
 */
#define WRITTEN_WHOLE 4096 /* PIPE_BUF */

static bool is_writing(uint64_t call)
{
	return call == SYS_write || call == SYS_writev;
}

static bool is_of_descriptor(uint64_t call)
{
	return call == SYS_read || call == SYS_readv || is_writing(call);
}

static bool is_nonblocking(pid_t pid, int number)
{
	_cleanup_free_ char *path = xasprintf("/proc/%d/fdinfo/%d", pid, number);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[256] = {0}, *flags = NULL;

	if (fd < 0)
		return false;
	if (read(fd, text, sizeof text - 1) > 0)
		flags = strstr(text, "flags:");
	close(fd);
	return flags && strtoul(flags + strlen("flags:"), NULL, 8) & O_NONBLOCK;
}

static bool has_limit(int fd, int option)
{
	struct timeval limit;
	socklen_t size = sizeof limit;

	return getsockopt(fd, SOL_SOCKET, option, &limit, &size) < 0 || limit.tv_sec ||
	       limit.tv_usec;
}

/* What cannot be found out may be so. */
static bool is_timed_socket(pid_t pid, int number)
{
	int of = (int)syscall(SYS_pidfd_open, pid, 0);
	int fd = of < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, of, number, 0);
	bool timed = fd < 0 || has_limit(fd, SO_RCVTIMEO) || has_limit(fd, SO_SNDTIMEO);

	if (fd >= 0)
		close(fd);
	if (of >= 0)
		close(of);
	return timed;
}

static bool may_be_cut(pid_t pid, const struct user_regs_struct *r)
{
	int number = (int)r->rdi;
	_cleanup_free_ char *path = xasprintf("/proc/%d/fd/%d", pid, number);
	struct stat file;

	if (stat(path, &file) < 0 || S_ISREG(file.st_mode) || is_nonblocking(pid, number))
		return false;
	if (is_writing(r->rax) && (r->rax == SYS_writev || r->rdx > WRITTEN_WHOLE))
		return true;
	return S_ISSOCK(file.st_mode) && is_timed_socket(pid, number);
}

bool scout_thread_at_short_call(pid_t pid, pid_t tid, const struct user_regs_struct *registers)
{
	uint8_t code[SCOUT_CALL_LENGTH];

	return is_short(registers->rax) &&
	       scout_thread_read(&tid, registers->rip, code, sizeof code) > 0 && code[0] == 0x0f &&
	       code[1] == 0x05 && !(is_of_descriptor(registers->rax) && may_be_cut(pid, registers));
}
