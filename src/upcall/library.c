/*
 * Beginning and forking. The constructor makes the process ready to be sampled, or leaves it
 * exactly as it is.
 */
#include "base/err.h"
#include "upcall/upcall_internal.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define EXPORT          __attribute__((visibility("default")))
#define HWCAP2_FSGSBASE 2

struct upcall_process upcall_process;

static void *(*real_mmap)(void *, size_t, int, int, int, off_t);

/* ---- events ---- */

/*
 * A clock of this process's threads, those to come too, but neither of its children nor of what it
 * executes: both load the library themselves, or are none of our business.
 */
static int open_event(int cpu, bool disabled)
{
	struct perf_event_attr a = {
		.size = sizeof a,
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.sample_period = upcall_process.shared->orders.period,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.inherit = 1,
		.inherit_thread = 1,
		.remove_on_exec = 1,
		.sigtrap = 1,
		.disabled = disabled,
		.sig_data = UPCALL_DATA,
	};
	int fd = (int)syscall(SYS_perf_event_open, &a, 0, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/*
 * Programs have no file open that they did not open, and none that they could close: a mapping
 * keeps each event until the process ends or executes another program. Inherited events can be
 * mapped only when each is for one CPU.
 */
static int open_events(void)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF), page = sysconf(_SC_PAGESIZE);
	int opened = 0, error = ENODEV;

	for (int cpu = 0; cpu < cpus; cpu++) {
		int fd = open_event(cpu, false);
		void *p = MAP_FAILED;

		if (fd >= 0)
			p = real_mmap(
				NULL, (size_t)page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (p != MAP_FAILED)
			opened++;
		else if (fd != -ENODEV) /* a CPU that is off */
			error = fd < 0 ? -fd : errno;
		if (fd >= 0)
			close(fd);
	}
	return opened ? 0 : -error;
}

static void count_process(int rc)
{
	struct upcall_sums *sums = &upcall_process.shared->sums;

	if (rc < 0)
		atomic_store(&sums->refused_errno, -rc);
	upcall_add(rc < 0 ? &sums->refused : &sums->processes, 1);
}

static void after_fork(void)
{
	int error = errno;

	if (upcall_process.active) {
		upcall_process.pid = (pid_t)syscall(SYS_getpid);
		upcall_forget_thread();
		upcall_signals_forked();
		count_process(open_events());
	}
	errno = error;
}

/* ---- devices ---- */

/* Whether loads from a mapping of this file may do more than load. */
static bool is_device(int fd)
{
	char link[64], path[32] = "/proc/self/fd/";
	struct stat s;
	ssize_t n;
	char digits[12];
	int k = 0;

	if (fd < 0 || fstat(fd, &s) < 0 || S_ISREG(s.st_mode))
		return false;
	if (S_ISCHR(s.st_mode))
		return major(s.st_rdev) != 1 || (minor(s.st_rdev) != 5 && minor(s.st_rdev) != 3);
	for (unsigned rest = (unsigned)fd; k == 0 || rest; rest /= 10)
		digits[k++] = (char)('0' + rest % 10);
	for (size_t at = strlen(path); k;)
		path[at++] = digits[--k];
	n = readlink(path, link, sizeof link - 1);
	link[n > 0 ? n : 0] = 0;
	return strcmp(link, "anon_inode:[io_uring]") != 0 &&
	       strcmp(link, "anon_inode:[perf_event]") != 0;
}

EXPORT void *mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset)
{
	void *p;

	if (real_mmap)
		p = real_mmap(address, size, protection, flags, fd, offset);
	else
		p = (void *)syscall(SYS_mmap, address, size, protection, flags, fd, offset);
	if (p != MAP_FAILED && !(flags & MAP_ANONYMOUS) && upcall_process.active) {
		int error = errno;

		if (is_device(fd))
			atomic_store(&upcall_process.barred, true);
		errno = error;
	}
	return p;
}

EXPORT void *mmap64(void *address, size_t size, int protection, int flags, int fd, off_t offset)
	__attribute__((alias("mmap")));

/* ---- beginning ---- */

static struct upcall_shared *map_shared(const char *file)
{
	struct upcall_shared *s = MAP_FAILED;
	int fd = open(file, O_RDWR | O_CLOEXEC);
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size == sizeof *s)
		s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fd >= 0)
		close(fd);
	if (s == MAP_FAILED)
		return NULL;
	if (s->magic != UPCALL_MAGIC || s->size != sizeof *s) {
		munmap(s, sizeof *s);
		return NULL;
	}
	return s;
}

static int open_plugins(void)
{
	const struct upcall_orders *o = &upcall_process.shared->orders;
	size_t size = sizeof(struct upcall_thread);
	struct err e;

	for (uint32_t i = 0; i < o->nplugins && i < PLUGINS_MAX; i++) {
		struct plugin *p = &upcall_process.plugins[i];
		int rc = plugin_open(p, o->plugin[i].path, &e);

		if (rc < 0)
			return rc;
		memcpy(p->config, o->plugin[i].config, sizeof p->config);
		p->kind = o->plugin[i].kind;
		upcall_process.nplugins = i + 1;
		size += p->is->state_size + 64;
	}
	upcall_process.thread_size = ((size + 4095) & ~(size_t)4095) + UPCALL_STACK;
	return 0;
}

/* What may fail is tried first, then come the handlers, then the signals. */
static int begin(void)
{
	struct stat space;
	int fd, rc = open_plugins();

	if (rc < 0)
		return rc;
	upcall_process.pid = (pid_t)syscall(SYS_getpid);
	if (stat("/proc/self/ns/pid", &space) == 0)
		upcall_process.space = (uint32_t)space.st_ino & 0xfffff;
	upcall_process.reads_base = getauxval(AT_HWCAP2) & HWCAP2_FSGSBASE;
	fd = open_event(-1, true);
	if (fd < 0)
		return fd;
	close(fd);
	upcall_signals_begin();
	upcall_process.active = true;
	return open_events();
}

__attribute__((constructor)) static void load(void)
{
	const char *file = getenv(UPCALL_ENVIRONMENT);
	int error = errno;

	upcall_signals_find();
	real_mmap = (void *(*)(void *, size_t, int, int, int, off_t))dlsym(RTLD_NEXT, "mmap");
	if (file)
		upcall_process.shared = map_shared(file);
	if (upcall_process.shared) {
		count_process(begin());
		pthread_atfork(NULL, NULL, after_fork);
	}
	errno = error;
}
