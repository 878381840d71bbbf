/* Meters of threads (meter.h). No libc: only system calls. */
#include "rt/meter.h"
#include "rt/runtime.h"
#include "rt/sys.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/resource.h>

#define PAGE      4096
#define HIGH_MOST 1000  /* numbers of files begin here, out of the way of the program's own */
#define TCB_TID   0x2d0 /* glibc keeps a thread's number here; that is checked */
#define IN_VAIN   1     /* in place of a meter: there is none for this thread */
#define SIGNALS   8     /* bytes of a set of them */
#define TRIES     64    /* meters that are looked at for one that is nobody's */

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

static const struct rt_metrics *metrics(void)
{
	return (const void *)((uint64_t)&rt_header + rt_header.metrics);
}

static struct rt_meters *meters(void)
{
	return (struct rt_meters *)((struct rt_process *)RT_PROCESS)->meters;
}

static uint64_t thread_word(void)
{
	uint64_t word;

	__asm__ volatile("mov %%fs:%c1, %0" : "=r"(word) : "i"(RT_WORD(RT_WORD_METER)));
	return word;
}

static void set_thread_word(uint64_t word)
{
	__asm__ volatile("mov %0, %%fs:%c1" : : "r"(word), "i"(RT_WORD(RT_WORD_METER)) : "memory");
}

static uint32_t told_thread(void)
{
	uint32_t number;

	__asm__ volatile("mov %%fs:%c1, %0" : "=r"(number) : "i"(TCB_TID));
	return number;
}

static uint32_t own_thread(void)
{
	return (uint32_t)sys_call(SYS_gettid, 0, 0, 0, 0);
}

/* ---- events ---- */

static bool is_ours(const struct rt_meter_event *e)
{
	uint64_t id = 0;

	return e->fd >= 0 &&
	       !sys_failed(sys_call(SYS_ioctl, e->fd, PERF_EVENT_IOC_ID, (long)&id, 0)) &&
	       id == e->id;
}

/* Numbers that a program closes and uses again for itself are not closed. */
static void close_event(struct rt_meter_event *e)
{
	if (is_ours(e))
		sys_close(e->fd);
	if (e->page)
		sys_unmap(e->page, PAGE);
	e->fd = -1;
	e->page = 0;
	e->base = e->last;
}

/* Where programs do not look: many close or count what is low, or expect a number there. */
static long move_high(long fd)
{
	struct rlimit limit = {0};
	long high, at;

	sys_call(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, (long)&limit);
	at = limit.rlim_cur / 2 < HIGH_MOST ? (long)limit.rlim_cur / 2 : HIGH_MOST;
	high = sys_call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, at, 0);
	sys_close(fd);
	return high;
}

static void map_page(struct rt_meter_event *e)
{
	long at = sys_call6(SYS_mmap, 0, PAGE, PROT_READ, MAP_SHARED, e->fd, 0);

	e->page = sys_failed(at) ? 0 : (uint64_t)at;
}

/* Hardware counters have it to themselves, or not at all: shared by turns they would be guesses. */
static long open_event(struct rt_meter_event *e, const struct rt_event *wanted)
{
	struct perf_event_attr attr = {.type = wanted->type,
		.size = PERF_ATTR_SIZE_VER5,
		.config = wanted->config,
		.config1 = wanted->config1,
		.config2 = wanted->config2,
		.read_format = PERF_FORMAT_ID,
		.exclude_user = !!(wanted->excluded & RT_EXCLUDE_USER),
		.exclude_kernel = !!(wanted->excluded & RT_EXCLUDE_KERNEL),
		.exclude_hv = !!(wanted->excluded & RT_EXCLUDE_HYPERVISOR),
		.pinned =
			wanted->type != PERF_TYPE_SOFTWARE && wanted->type != PERF_TYPE_TRACEPOINT};
	long fd = sys_call6(SYS_perf_event_open, (long)&attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC, 0);

	e->fd = sys_failed(fd) ? fd : move_high(fd);
	if (e->fd < 0)
		return e->fd;
	sys_call(SYS_ioctl, e->fd, PERF_EVENT_IOC_ID, (long)&e->id, 0);
	if (attr.pinned)
		map_page(e);
	return 0;
}

static uint64_t read_counter(uint32_t index)
{
	uint32_t low, high;

	__asm__ volatile("rdpmc" : "=a"(low), "=d"(high) : "c"(index));
	return (uint64_t)high << 32 | low;
}

/* The program may have closed the file, and what has its number now must not be read from. */
static uint64_t read_event(struct rt_meter_event *e, const struct rt_event *wanted)
{
	uint64_t count[2] = {0};

	if (e->page && meter_read_page((void *)e->page, read_counter, &count[0]))
		return e->last = e->base + count[0];
	if (!is_ours(e)) {
		close_event(e);
		if (sys_failed(open_event(e, wanted)))
			return e->last;
	}
	if (sys_call(SYS_read, e->fd, (long)count, sizeof count, 0) != sizeof count)
		return e->last;
	return e->last = e->base + count[0];
}

/* ---- meters ---- */

static uint64_t meters_used(const struct rt_meters *all)
{
	uint64_t used = __atomic_load_n(&all->used, __ATOMIC_ACQUIRE);

	return used < RT_METERS ? used : RT_METERS;
}

/* In children of fork: numbers of files are the parent's events. */
static void forget_parent(struct rt_meters *all)
{
	for (uint64_t i = 0; i < meters_used(all); i++) {
		struct rt_meter *m = &all->meter[i];

		for (unsigned k = 0; m->thread && k < RT_METRICS; k++) {
			m->event[k].page = 0;
			close_event(&m->event[k]);
		}
		m->thread = 0;
	}
}

static struct rt_meters *have_meters(void)
{
	struct rt_process *p = rt_process();
	uint64_t none = 0, now = (uint64_t)sys_call(SYS_getpid, 0, 0, 0, 0);
	struct rt_meters *all;

	if (!p)
		return NULL;
	if (!p->meters) {
		long at = sys_call6(SYS_mmap, 0, sizeof *all, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (sys_failed(at))
			return NULL;
		if (sys_failed(sys_call(SYS_madvise, at, PAGE, MADV_WIPEONFORK, 0)) ||
			!__atomic_compare_exchange_n(&p->meters, &none, (uint64_t)at, false,
				__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			sys_unmap((uint64_t)at, sizeof *all);
	}
	all = (struct rt_meters *)p->meters;
	none = 0;
	if (all && !all->process &&
		__atomic_compare_exchange_n(
			&all->process, &none, now, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		forget_parent(all);
	return all;
}

static bool take(struct rt_meter *m, uint32_t before, uint32_t thread)
{
	return __atomic_compare_exchange_n(
		&m->thread, &before, thread, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static bool is_gone(const struct rt_meters *all, uint32_t thread)
{
	return sys_call(SYS_tgkill, (long)all->process, thread, 0, 0) == -ESRCH;
}

/* Files that measure other things have meters of their own. */
static struct rt_meter *find_own(struct rt_meters *all, uint32_t thread)
{
	for (uint64_t i = 0; i < meters_used(all); i++)
		if (all->meter[i].thread == thread && all->meter[i].key == metrics()->key)
			return &all->meter[i];
	return NULL;
}

static bool take_left(struct rt_meters *all, struct rt_meter *m, uint32_t thread)
{
	uint32_t last = m->thread;

	return (!last || is_gone(all, last)) && take(m, last, thread);
}

/*
 * The one of the thread that was here before, whose readings may still lie about; else one that
 * was left, of some that are looked at; else a new one.
 */
static struct rt_meter *find_meter(struct rt_meters *all, uint32_t thread)
{
	struct rt_meter *before = (struct rt_meter *)thread_word();
	uint64_t n = meters_used(all), i;

	if (before && take_left(all, before, thread))
		return before;
	for (i = 0; i < n && i < TRIES; i++)
		if (take_left(all, &all->meter[(thread + i) % n], thread))
			return &all->meter[(thread + i) % n];
	i = __atomic_fetch_add(&all->used, 1, __ATOMIC_ACQ_REL);
	return i < RT_METERS && take(&all->meter[i], 0, thread) ? &all->meter[i] : NULL;
}

/* Its events count from where they stood, so that no difference of readings is negative. */
static long make_ready(struct rt_meter *m, uint32_t thread)
{
	const struct rt_metrics *wanted = metrics();
	long result = 0;

	m->told = told_thread() == thread;
	m->key = wanted->key;
	for (unsigned i = 0; i < RT_METRICS; i++) {
		m->event[i].fd = m->event[i].id ? m->event[i].fd : -1;
		close_event(&m->event[i]);
		if (wanted->events & 1u << i && !sys_failed(result))
			result = open_event(&m->event[i], &wanted->event[i]);
	}
	return result;
}

static struct rt_meter *make_meter(void)
{
	struct rt_meters *all = have_meters();
	uint32_t thread = own_thread();
	struct rt_meter *m = all ? find_own(all, thread) : NULL;
	long result = 0;

	if (!m) {
		m = all ? find_meter(all, thread) : NULL;
		result = m ? make_ready(m, thread) : -ENOMEM;
	}
	if (sys_failed(result)) {
		rt_complain_of_event(result);
		m = NULL;
	}
	set_thread_word(m ? (uint64_t)m : IN_VAIN);
	return m;
}

/* Handlers wait, for they may come here, too. */
static struct rt_meter *have_meter(void)
{
	uint64_t all = UINT64_MAX, before = 0;
	struct rt_meter *m;

	sys_call(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, (long)&all, (long)&before, SIGNALS);
	m = make_meter();
	sys_call(SYS_rt_sigprocmask, 2, (long)&before, 0, SIGNALS);
	return m;
}

static bool is_own(const struct rt_meter *m)
{
	return meters()->process && m->thread == (m->told ? told_thread() : own_thread()) &&
	       m->key == metrics()->key;
}

uint64_t rt_metric(uint64_t which)
{
	uint64_t word = thread_word();
	struct rt_meter *m = (struct rt_meter *)word;

	if (word == IN_VAIN)
		return 0;
	if (!word || !is_own(m))
		m = have_meter();
	return m ? read_event(&m->event[which], &metrics()->event[which]) : 0;
}
