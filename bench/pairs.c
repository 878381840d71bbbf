/*
 * What pairs of samples cost inside the interrupt: the BPF sampler alone on every CPU, with pairs
 * begun at one in so many samples, in turns.
 *
 *   pairs [-F RATE] [-t SECONDS] [EVERY...]
 *
 * 0 is no pairs. Needs kernel.bpf_stats_enabled. Prints a line of NAME=NUMBER for each.
 */
#include "base/err.h"
#include "base/io.h"
#include "collect/driver_user.h"
#include "collect/event.h"
#include "collect/ring.h"
#include "collect/sampler.h"

#include <err.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { TURN_MS = 50, DRAIN_TURNS = 100, MOST = 8 };

struct variant {
	uint32_t every;
	struct sampler_statistics sum;
};

static void see_sample(void *arg, const struct sample *s)
{
	(void)arg, (void)s;
}

static void see_pair(void *arg, const struct driver_pair *p)
{
	(void)arg, (void)p;
}

static void open_events(struct driver *d, double rate, long cpus)
{
	struct err e = {0};
	struct event event;

	if (event_parse("cpu-clock", &event, &e) < 0)
		errx(1, "%s", e.text);
	event.attr.sample_period = (uint64_t)(1e9 / rate);
	for (int cpu = 0; cpu < cpus; cpu++) {
		int fd = (int)syscall(SYS_perf_event_open, &event.attr, -1, cpu, -1, 0);

		if (fd < 0 || ioctl(fd, PERF_EVENT_IOC_SET_BPF, driver_program(d, 0)) < 0 ||
			ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) < 0)
			err(1, "cpu-clock on CPU %d", cpu);
	}
}

static void run_turn(struct driver *d, struct variant *v)
{
	struct sampler_statistics before = {0}, after = {0};

	driver_set_pairs(d, v->every);
	driver_statistics(d, &before);
	nanosleep(&(struct timespec){.tv_nsec = TURN_MS * 1000000}, NULL);
	driver_statistics(d, &after);
	v->sum.bpf_run_ns += after.bpf_run_ns - before.bpf_run_ns;
	v->sum.bpf_runs += after.bpf_runs - before.bpf_runs;
	v->sum.pairs += after.pairs - before.pairs;
	v->sum.pairs_begun += after.pairs_begun - before.pairs_begun;
	v->sum.pairs_apart += after.pairs_apart - before.pairs_apart;
	v->sum.pairs_lapsed += after.pairs_lapsed - before.pairs_lapsed;
	v->sum.pairs_dropped += after.pairs_dropped - before.pairs_dropped;
	driver_service(d, UINT64_MAX, see_sample, NULL);
	driver_pairs(d, UINT64_MAX, see_pair, NULL);
}

/* As seldom as the daemon: empty tables miss more. */
static void drain(struct driver *d)
{
	driver_swap(d);
	ring_settle();
	driver_collect(d, UINT64_MAX, see_sample, NULL);
}

static void report(const struct variant *v)
{
	const struct sampler_statistics *s = &v->sum;

	printf("every=%u samples=%lu ns=%.1f begun=%lu pairs=%lu apart=%lu lapsed=%lu "
	       "dropped=%lu\n",
		v->every, s->bpf_runs,
		s->bpf_runs ? (double)s->bpf_run_ns / (double)s->bpf_runs : 0, s->pairs_begun,
		s->pairs, s->pairs_apart, s->pairs_lapsed, s->pairs_dropped);
}

int main(int argc, char **argv)
{
	static struct variant variants[MOST];
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	double rate = 5200, length = 10;
	struct driver *d;
	struct err e = {0};
	size_t n = 0;
	uint64_t end;

	for (int c; (c = getopt(argc, argv, "F:t:")) != -1;) {
		if (c == 'F')
			rate = atof(optarg);
		else if (c == 't')
			length = atof(optarg);
		else
			errx(2, "usage: pairs [-F RATE] [-t SECONDS] [EVERY...]");
	}
	for (; optind < argc && n < MOST; optind++)
		variants[n++].every = (uint32_t)atoi(argv[optind]);
	if (driver_create(&(struct driver_options){.nevents = 1, .cpus = (unsigned)cpus}, &d, &e) <
		0)
		errx(1, "%s", e.text);
	open_events(d, rate, cpus);
	end = io_clock_ns(CLOCK_MONOTONIC) + (uint64_t)(length * 1e9);
	for (unsigned turn = 1; n && io_clock_ns(CLOCK_MONOTONIC) < end; turn++) {
		run_turn(d, &variants[(size_t)rand() % n]);
		if (turn % DRAIN_TURNS == 0)
			drain(d);
	}
	for (size_t i = 0; i < n; i++)
		report(&variants[i]);
	driver_destroy(d);
	return 0;
}
