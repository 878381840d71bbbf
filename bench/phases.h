/*
 * Comparing samplers in turns of milliseconds: each stands ready with its events switched off, and
 * has them on while it is its turn.
 *
 * The price of an interrupt in a virtual machine changes from second to second by more than what is
 * to be compared, so that one run after the other would compare the weather. The events are reached
 * through pidfd_getfd, without their owner's knowledge; only those that count are switched (a
 * side-band event counts nothing and stays on). Included by one file of each program.
 */
#ifndef CULPRIT_BENCH_PHASES_H
#define CULPRIT_BENCH_PHASES_H

#include <dirent.h>
#include <err.h>
#include <linux/perf_event.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MAX_CPUS   256
#define MAX_PHASES 12
#define MAX_EVENTS 1024

struct phase {
	char name[32];
	int event[MAX_EVENTS];
	int nevents;
};

static struct phase phases[MAX_PHASES];
static int nphases;
static atomic_int turn; /* phase that runs; -1 while events are switched */
static atomic_uint turns;
static atomic_bool over;

static double seconds_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC_RAW, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

/* Takes over a descriptor of another process if it is a perf event that counts. */
static void adopt(struct phase *p, int pidfd, pid_t pid, const char *number)
{
	char path[320], target[64];
	snprintf(path, sizeof path, "/proc/%d/fd/%s", pid, number);
	ssize_t n = readlink(path, target, sizeof target - 1);
	if (n < 0 || p->nevents == MAX_EVENTS)
		return;
	target[n] = 0;
	if (strcmp(target, "anon_inode:[perf_event]"))
		return;
	int fd = syscall(SYS_pidfd_getfd, pidfd, atoi(number), 0);
	uint64_t value[8] = {0};
	if (fd >= 0 && read(fd, value, sizeof value) > 0 && value[0])
		p->event[p->nevents++] = fd;
	else if (fd >= 0)
		close(fd);
}

static void switch_events(const struct phase *p, int on)
{
	for (int i = 0; i < p->nevents; i++)
		ioctl(p->event[i], on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
}

/* A phase without a sampler switches events that do nothing: switching disturbs by itself. */
static void open_dummies(struct phase *p)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.size = sizeof attr,
		.disabled = 1};
	int cpus = sysconf(_SC_NPROCESSORS_ONLN);
	for (int cpu = 0; cpu < cpus && p->nevents < MAX_EVENTS; cpu++) {
		int fd = syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
		if (fd < 0)
			err(1, "dummy event on CPU %d", cpu);
		p->event[p->nevents++] = fd;
	}
}

static void add_phase(const char *text)
{
	struct phase *p = &phases[nphases];
	const char *equals = strchr(text, '=');
	if (!equals || nphases == MAX_PHASES)
		errx(2, "-x NAME=[PID], %d of them at most", MAX_PHASES);
	nphases++;
	snprintf(p->name, sizeof p->name, "%.*s", (int)(equals - text), text);
	pid_t pid = atoi(equals + 1);
	if (!pid) {
		open_dummies(p);
		return;
	}
	char path[32];
	snprintf(path, sizeof path, "/proc/%d/fd", pid);
	DIR *d = opendir(path);
	int pidfd = syscall(SYS_pidfd_open, pid, 0);
	if (!d || pidfd < 0)
		err(1, "process %d", pid);
	for (struct dirent *e; (e = readdir(d));)
		adopt(p, pidfd, pid, e->d_name);
	closedir(d);
	if (!p->nevents)
		errx(1, "process %d has no perf event that counts", pid);
	switch_events(p, 0);
}

static void take_turn(int phase, long ms)
{
	struct timespec length = {ms / 1000, ms % 1000 * 1000000};
	switch_events(&phases[phase], 1);
	atomic_fetch_add(&turns, 1);
	atomic_store(&turn, phase);
	nanosleep(&length, NULL);
	atomic_store(&turn, -1);
	switch_events(&phases[phase], 0);
}

/* Gives all phases their turns, in another order each time, until the time is over; leaves all
 * events on, as they were. */
static void direct(double seconds, long phase_ms)
{
	double end = seconds_now() + seconds;
	int order[MAX_PHASES];
	uint32_t seed = 1;
	for (int i = 0; i < nphases; i++)
		order[i] = i;
	while (seconds_now() < end) {
		for (int i = nphases - 1; i > 0; i--) {
			seed = seed * 1664525 + 1013904223;
			int k = (uint64_t)seed * (i + 1) >> 32, t = order[i];
			order[i] = order[k];
			order[k] = t;
		}
		for (int i = 0; i < nphases; i++)
			take_turn(order[i], phase_ms);
	}
	atomic_store(&over, true);
	for (int i = 0; i < nphases; i++)
		switch_events(&phases[i], 1);
}

#endif
