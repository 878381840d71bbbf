#include "collect/forks.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/vec.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGES 16 /* of records, for each CPU */

struct watch {
	int fd;
	struct perf_event_mmap_page *page;
};

/* An event that is inherited can be read only if it is bound to a CPU. */
struct forks {
	VEC(struct watch) watches;
};

static size_t page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static int watch_cpu(struct forks *f, pid_t pid, int cpu)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
		.size = sizeof attr,
		.config = PERF_COUNT_SW_DUMMY,
		.inherit = 1,
		.task = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1};
	struct watch w = {
		.fd = (int)syscall(SYS_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC)};

	if (w.fd < 0)
		return errno == ENODEV ? 0 : -errno; /* a CPU that is switched off */
	w.page = mmap(NULL, (1 + PAGES) * page_size(), PROT_READ | PROT_WRITE, MAP_SHARED, w.fd, 0);
	if (w.page == MAP_FAILED) {
		int rc = -errno;

		close(w.fd);
		return rc;
	}
	*vec_add(&f->watches) = w;
	return 0;
}

int forks_watch(pid_t pid, struct forks **out, struct err *e)
{
	struct forks *f = xcalloc(1, sizeof *f);
	int cpus = (int)sysconf(_SC_NPROCESSORS_CONF), rc = 0;

	for (int cpu = 0; cpu < cpus && !rc; cpu++)
		rc = watch_cpu(f, pid, cpu);
	if (rc) {
		forks_destroy(f);
		return err_errno(e, rc,
			"cannot see whether it starts threads (sysctl "
			"kernel.perf_event_paranoid at most 2 allows it)");
	}
	*out = f;
	return 0;
}

struct fork_record {
	struct perf_event_header header;
	uint32_t pid, ppid, tid, ptid;
};

static void copy_out(const struct watch *w, uint64_t at, void *to, size_t n)
{
	size_t size = PAGES * page_size();
	const uint8_t *data = (const uint8_t *)w->page + page_size();

	for (size_t i = 0; i < n; i++)
		((uint8_t *)to)[i] = data[(at + i) % size];
}

static void read_watch(struct watch *w, struct forks_seen *out)
{
	uint64_t head = __atomic_load_n(&w->page->data_head, __ATOMIC_ACQUIRE);
	uint64_t at = w->page->data_tail;

	while (at < head) {
		struct fork_record r;

		copy_out(w, at, &r, sizeof r.header);
		if (r.header.size < sizeof r.header)
			break;
		if (r.header.type == PERF_RECORD_FORK && r.header.size >= sizeof r) {
			copy_out(w, at, &r, sizeof r);
			out->threads += r.pid == r.ppid;
			out->processes += r.pid != r.ppid;
		}
		at += r.header.size;
	}
	__atomic_store_n(&w->page->data_tail, head, __ATOMIC_RELEASE);
}

void forks_read(struct forks *f, struct forks_seen *out)
{
	*out = (struct forks_seen){0};
	vec_each (w, &f->watches)
		read_watch(w, out);
}

void forks_destroy(struct forks *f)
{
	if (!f)
		return;
	vec_each (w, &f->watches) {
		munmap(w->page, (1 + PAGES) * page_size());
		close(w->fd);
	}
	vec_deinit(&f->watches);
	free(f);
}
