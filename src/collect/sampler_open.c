#include "collect/sampler_open.h"

#include "base/err.h"
#include "base/io.h"
#include "collect/driver_user.h"
#include "collect/record.h"
#include "collect/sampler.h"
#include "collect/sampler_places.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* A CPU's ring: about a second of side-band records, or of samples, on a busy machine. */
#define RING_BYTES       ((size_t)512 << 10)
#define RING_WITH_STACKS ((size_t)8 << 20)

/*
 * Bytes of stacks that come through rings, and what they may take of samples and a second. The part
 * is a prime: where a probe is met by several callers in turn, each of them gets its stack.
 */
#define STACK_BYTES     16384
#define STACKS_PART     5
#define STACKS_A_SECOND 300

/* What this kernel's perf_event_attr knows. */
struct features {
	bool build_id, cgroup, lost, inherit_thread;
};

struct opener {
	const struct sampler_options *o;
	const struct sampler_places *places;
	const struct driver *driver;
	struct period_source *draw;
	struct features has;
	struct sampler_opened *out;
	struct err *e;
};

static struct perf_event_attr plain_attr(void)
{
	return (struct perf_event_attr){.size = sizeof(struct perf_event_attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = RECORD_SAMPLE_TYPE,
		.sample_id_all = 1,
		.read_format = COUNTER_READ_FORMAT,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.exclude_kernel = 1,
		.watermark = 1}; /* wakeup_watermark 0: half the ring */
}

/* Old kernels refuse what they do not know; asked about our own task, they refuse nothing else. */
static bool known(struct perf_event_attr attr)
{
	int fd = counter_kernel.open(&attr, 0, -1, 0);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static struct features find_features(void)
{
	struct perf_event_attr build_id = plain_attr(), cgroup = build_id, lost = build_id,
			       thread = build_id;

	build_id.mmap = build_id.mmap2 = build_id.build_id = 1;
	cgroup.cgroup = 1;
	lost.read_format |= PERF_FORMAT_LOST;
	thread.inherit = thread.inherit_thread = 1;
	return (struct features){.build_id = known(build_id),
		.cgroup = known(cgroup),
		.lost = known(lost),
		.inherit_thread = known(thread)};
}

/* ---- what went wrong ---- */

static int explain_refusal(const struct opener *w, const struct sampler_task *task)
{
	static const char path[] = "/proc/sys/kernel/perf_event_paranoid";
	bool wide = task->id < 0;
	long paranoid = 0;
	char who[64] = "the whole machine";

	io_read_long(path, &paranoid);
	if (!wide)
		snprintf(who, sizeof who, "process %d", task->asked);
	else if (w->places->cgroup >= 0)
		snprintf(who, sizeof who, "a cgroup");
	return err_set(w->e, -EACCES,
		"sampling %s is not allowed: it takes CAP_PERFMON (root), or %s%s at %d or lower "
		"(now %ld)%s",
		who, wide ? "" : "a process of your own and ", path, wide ? 0 : 2, paranoid,
		geteuid() == 0 ? "; in a container, also a seccomp profile with perf_event_open"
			       : "");
}

static int explain_event(const struct opener *w, int code, const struct event *ev, int cpu)
{
	switch (code) {
	case -ENOENT:
	case -EOPNOTSUPP:
	case -EINVAL:
	case -EBUSY:
		return err_set(w->e, -EOPNOTSUPP,
			"event %s cannot be sampled on this machine%s; -e cpu-clock always can",
			ev->name, code == -EINVAL ? " (or not at this rate)" : "");
	case -ENOSYS:
		return err_set(w->e, code, "this kernel has no perf events (CONFIG_PERF_EVENTS)");
	default:
		return err_errno(w->e, code, "event %s on CPU %d", ev->name, cpu);
	}
}

static int explain_open(const struct opener *w, int code, const struct event *ev,
	const struct sampler_task *task, int cpu)
{
	switch (code) {
	case -EACCES:
	case -EPERM:
		return explain_refusal(w, task);
	case -ESRCH:
		return err_set(w->e, code, "process %d: it has ended", task->asked);
	case -EMFILE:
	case -ENFILE:
		return err_set(w->e, code,
			"too many open files: an event on each CPU of each thread needs one (%zu "
			"are "
			"open); raise ulimit -n",
			w->out->counters.n + w->out->sideband.n);
	default:
		return explain_event(w, code, ev, cpu);
	}
}

/* ---- opening ---- */

static bool raise_file_limit(void)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) < 0 || l.rlim_cur >= l.rlim_max)
		return false;
	l.rlim_cur = l.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &l) == 0;
}

/* A CPU may have gone off line since it was listed, and a thread may have ended. */
static bool is_gone(int code)
{
	return code == -ENODEV || code == -ESRCH;
}

static int open_event(struct perf_event_attr *attr, pid_t pid, int cpu, unsigned long flags)
{
	int fd = counter_kernel.open(attr, pid, cpu, flags);

	if (fd == -EMFILE && raise_file_limit())
		fd = counter_kernel.open(attr, pid, cpu, flags);
	return fd;
}

static void set_inheritance(
	const struct opener *w, const struct sampler_task *task, struct perf_event_attr *attr)
{
	bool can = !task->threads || w->has.inherit_thread;

	attr->inherit = task->inherit && can;
	attr->inherit_thread = task->threads && attr->inherit;
}

/*
 * Side-band records of a cgroup's processes are taken from the whole machine: what a process mapped
 * before it moved into the cgroup counts too.
 *
 * The kernel marks a record of a mapping as one with a build-id, and does not take the mark back
 * for the next event, which did not ask for one (perf_event_mmap_output, Linux 5.12 to 6.18 at
 * least): perf 6.1 then reads a device number as a build-id's size, and aborts. Events of the whole
 * machine come before those of tasks, so only the latter ask: behind them is only who follows the
 * same task.
 */
static int open_sideband(struct opener *w, const struct sampler_task *task, int cpu)
{
	struct perf_event_attr attr = plain_attr();
	int fd;

	attr.mmap = attr.mmap2 = attr.comm = attr.comm_exec = attr.task = 1;
	attr.build_id = w->out->build_ids;
	attr.cgroup = w->has.cgroup;
	attr.read_format |= w->has.lost ? PERF_FORMAT_LOST : 0;
	set_inheritance(w, task, &attr);
	fd = open_event(&attr, task->id, cpu, 0);
	if (fd >= 0)
		*vec_add(&w->out->sideband) = fd;
	return fd;
}

/* Tracepoints and probes take other programs than we have: their samples come through the ring. */
static bool is_counted_in_kernel(const struct opener *w, const struct event *ev)
{
	return w->driver && ev->attr.type != PERF_TYPE_TRACEPOINT && !*ev->probed;
}

static bool tells_user(const struct opener *w, const struct event *ev)
{
	return w->o->contexts && w->o->contexts != CONTEXTS_CHAIN && !is_counted_in_kernel(w, ev);
}

/* Stacks take more room; who may lock only so much memory would have none left for other CPUs. */
static size_t ring_bytes(const struct opener *w)
{
	for (size_t i = 0; i < w->o->nevents && geteuid() == 0; i++)
		if (tells_user(w, &w->o->events[i]))
			return RING_WITH_STACKS;
	return RING_BYTES;
}

/* Ordinary users may lock only so much memory, so smaller rings are tried too. */
static int map_ring(struct opener *w, int fd, int cpu)
{
	struct sampler_ring ring = {.fd = fd, .cpu = cpu};
	size_t smallest = sysconf(_SC_PAGESIZE);
	int r = -EPERM;

	for (size_t size = ring_bytes(w); size >= smallest; size /= 2) {
		r = ring_open(&ring.ring, fd, size);
		if (r != -EPERM && r != -ENOMEM)
			break;
	}
	if (r < 0)
		return err_errno(w->e, r,
			"cannot map a ring buffer (raise kernel.perf_event_mlock_kb, or ulimit "
			"-l)");
	*vec_add(&w->out->rings) = ring;
	return 0;
}

static void set_sampling(struct opener *w, const struct event *ev, bool teaches,
	struct perf_event_attr *attr, struct counter *c)
{
	double rate = w->o->rate;

	if (teaches)
		rate = fmin(rate / STACKS_PART, STACKS_A_SECOND);
	c->is_clock = ev->is_clock;
	c->adaptive = !w->o->period && !ev->is_clock;
	if (c->adaptive) {
		attr->freq = 1;
		c->mean = attr->sample_freq = rate < 1 ? 1 : rate;
		return;
	}
	c->mean = w->o->period ? w->o->period * (teaches ? STACKS_PART : 1) : 1e9 / rate;
	if (c->mean < (c->is_clock ? COUNTER_CLOCK_MIN : 1))
		c->mean = c->is_clock ? COUNTER_CLOCK_MIN : 1;
	c->period = counter_draw(c, w->draw);
	attr->sample_period = c->period;
}

static struct perf_event_attr sampling_attr(
	struct opener *w, const struct event *ev, const struct sampler_task *task)
{
	struct perf_event_attr attr = ev->attr, plain = plain_attr();

	attr.size = plain.size;
	attr.sample_type = plain.sample_type;
	attr.sample_id_all = 1;
	attr.read_format = plain.read_format | (w->has.lost ? PERF_FORMAT_LOST : 0);
	attr.use_clockid = 1;
	attr.clockid = plain.clockid;
	attr.watermark = 1;
	attr.disabled = 1;
	attr.enable_on_exec = w->o->target.enable_on_exec;
	/* Those of probes are for all processes: there is no exec that enables them. */
	if (*ev->probed && w->o->target.enable_on_exec)
		attr.disabled = attr.enable_on_exec = 0;
	if (w->out->excludes_kernel && !attr.exclude_user)
		attr.exclude_kernel = 1;
	if (*ev->probed)
		attr.config1 = (uint64_t)(uintptr_t)ev->probed;
	else
		set_inheritance(w, task, &attr);
	return attr;
}

/*
 * Where samples come through the ring, call paths are told by three registers, and learned from
 * stacks that a second event brings, a few of them.
 */
static void ask_for_user(const struct opener *w, bool stacks, struct perf_event_attr *attr)
{
	attr->sample_type |= PERF_SAMPLE_REGS_USER;
	attr->sample_regs_user = RECORD_FEW_REGISTERS;
	if (!stacks && w->o->contexts != CONTEXTS_COPIED)
		return;
	attr->sample_type |= PERF_SAMPLE_STACK_USER;
	attr->sample_regs_user = RECORD_ALL_REGISTERS;
	attr->sample_stack_user = STACK_BYTES;
}

/* With perf_event_paranoid at 2 an ordinary user may sample his programs, but not the kernel. */
static int open_allowed(struct opener *w, struct perf_event_attr *attr, pid_t pid, int cpu)
{
	unsigned long flags = w->places->cgroup >= 0 ? PERF_FLAG_PID_CGROUP : 0;
	int fd = open_event(attr, pid, cpu, flags);

	if ((fd != -EACCES && fd != -EPERM) || attr->exclude_kernel || attr->exclude_user)
		return fd;
	attr->exclude_kernel = 1;
	fd = open_event(attr, pid, cpu, flags);
	if (fd >= 0)
		w->out->excludes_kernel = true;
	return fd;
}

static int attach(struct opener *w, const struct counter *c, const struct event *ev)
{
	int r = 0;

	if (!is_counted_in_kernel(w, ev))
		return 0;
	if (ioctl(c->fd, PERF_EVENT_IOC_SET_BPF, driver_program(w->driver, c->event)) < 0)
		r = -errno;
	if (r < 0 && w->o->how == SAMPLER_BPF)
		return err_errno(w->e, r, "event %s cannot be sampled with BPF", ev->name);
	return 0;
}

/*
 * The kernel reads the path of a probe again for each child that inherits it, in the child: which
 * fails, and the fork with it. So they are for all processes, and sampler.c leaves out the others'.
 */
static pid_t task_of(
	const struct opener *w, const struct event *ev, const struct sampler_task *task)
{
	if (w->places->cgroup >= 0)
		return w->places->cgroup;
	return *ev->probed ? -1 : task->id;
}

/* `teaches`: its samples are only there for their stacks. */
static int open_counter(
	struct opener *w, size_t event, bool teaches, const struct sampler_task *task, int cpu)
{
	const struct event *ev = &w->o->events[event];
	const struct sampler_ring *ring = &w->out->rings.p[w->out->rings.n - 1];
	struct perf_event_attr attr = sampling_attr(w, ev, task);
	struct counter c = {.event = teaches ? w->o->nevents : event,
		.shared = attr.inherit,
		.probed = *ev->probed,
		.software = attr.type == PERF_TYPE_SOFTWARE || attr.type == PERF_TYPE_TRACEPOINT ||
			    *ev->probed,
		.copies = task->id < 0 || *ev->probed ? 1 : (int)w->places->cpus.n};
	int r;

	set_sampling(w, ev, teaches, &attr, &c);
	if (tells_user(w, ev))
		ask_for_user(w, teaches, &attr);
	c.fd = open_allowed(w, &attr, task_of(w, ev, task), cpu);
	if (c.fd < 0)
		return is_gone(c.fd) ? c.fd : explain_open(w, c.fd, ev, task, cpu);
	*vec_add(&w->out->counters) = c;
	if (ioctl(c.fd, PERF_EVENT_IOC_SET_OUTPUT, ring->fd) < 0)
		return err_errno(w->e, -errno, "event %s on CPU %d", ev->name, cpu);
	r = teaches ? 0 : attach(w, &c, ev);
	if (r == 0)
		r = counter_begin(&w->out->counters.p[w->out->counters.n - 1], &counter_kernel);
	return r;
}

static int open_task(struct opener *w, const struct sampler_task *task, int cpu, bool *has_ring)
{
	int fd = open_sideband(w, task, cpu), r = 0;

	if (fd < 0)
		return is_gone(fd) ? fd : explain_open(w, fd, w->o->events, task, cpu);
	if (!*has_ring)
		r = map_ring(w, fd, cpu);
	else if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, w->out->rings.p[w->out->rings.n - 1].fd) < 0)
		r = err_errno(w->e, -errno, "side-band event on CPU %d", cpu);
	*has_ring = true;
	for (size_t i = 0; i < w->o->nevents && r == 0; i++) {
		if (*w->o->events[i].probed && task != w->places->tasks.p)
			continue;
		r = open_counter(w, i, false, task, cpu);
		if (r == 0 && w->o->contexts != CONTEXTS_COPIED && tells_user(w, &w->o->events[i]))
			r = open_counter(w, i, true, task, cpu);
	}
	return r;
}

static int open_cpu(struct opener *w, int cpu)
{
	bool has_ring = false;

	vec_each (task, &w->places->tasks) {
		int r = open_task(w, task, cpu, &has_ring);

		if (r < 0 && !is_gone(r))
			return r;
	}
	return 0;
}

int sampler_open(const struct sampler_options *o, const struct sampler_places *p,
	const struct driver *driver, struct period_source *draw, struct sampler_opened *out,
	struct err *e)
{
	struct sampler_opened opened = {0};
	struct opener w = {.o = o,
		.places = p,
		.driver = driver,
		.draw = draw,
		.has = find_features(),
		.out = &opened,
		.e = e};
	int r = 0;

	opened.counts_lost = w.has.lost;
	opened.build_ids = w.has.build_id && p->tasks.p[0].id >= 0;
	vec_each (cpu, &p->cpus) {
		r = open_cpu(&w, *cpu);
		if (r < 0)
			break;
	}
	if (r == 0 && !opened.counters.n)
		r = p->tasks.p[0].id < 0 ? err_set(e, -ENODEV, "none of the CPUs is on line")
					 : explain_open(&w, -ESRCH, o->events, &p->tasks.p[0], 0);
	if (r < 0) {
		sampler_opened_deinit(&opened);
		return r;
	}
	*out = opened;
	return 0;
}

void sampler_opened_deinit(struct sampler_opened *s)
{
	vec_each (c, &s->counters)
		close(c->fd);
	vec_each (r, &s->rings)
		ring_close(&r->ring);
	vec_each (fd, &s->sideband)
		close(*fd);
	vec_deinit(&s->counters);
	vec_deinit(&s->rings);
	vec_deinit(&s->sideband);
}
