/*
 * Interprets the whole machine from the sampling interrupt and says what came of it.
 *
 *   bursts [-F RATE] [-e EVERY] [-n STEPS] [-x] [-v] [-k] [-s SHARE] [-t SECONDS]
 *
 * Bursts of 16 up to STEPS instructions (-x: of exactly so many) of user programs (-k: of the
 * kernel too), from every sample (-e: from one in so many); -v with inputs, and all of them run
 * again; within SHARE of each CPU (1). Without -t it runs until it is killed. Prints a line of
 * NAME=NUMBER.
 */
#include "base/err.h"
#include "collect/burst.h"
#include "collect/event.h"
#include "collect/sampler.h"

#include <err.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

struct found {
	struct interp m;
	uint64_t user, with_branch, again, wrong, values, known;
	double seconds; /* that it ran */
};

static void see_record(void *arg, const struct record *r)
{
	(void)arg, (void)r;
}

static void see_sample(void *arg, const struct sample *s)
{
	(void)arg, (void)s;
}

static void see_step(void *arg, const struct interp *m)
{
	struct found *f = arg;

	f->values++;
	f->known += (m->effect.has & INTERP_HAS_VALUE) != 0;
}

static void see_burst(void *arg, const struct shadow_burst *b, const uint64_t *words)
{
	struct found *f = arg;

	f->user += !b->kernel;
	f->with_branch += !b->kernel && b->edges;
	if (!b->inputs)
		return;
	if (burst_replay(b, words, &f->m, see_step, f))
		f->again++;
	else
		f->wrong++;
}

static double seconds(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void run(struct sampler *s, struct found *f, double length)
{
	struct sampler_sink sink = {
		.record = see_record, .sample = see_sample, .burst = see_burst, .arg = f};
	double start = seconds(CLOCK_MONOTONIC);

	while (!length || seconds(CLOCK_MONOTONIC) - start < length) {
		struct pollfd p = {.fd = sampler_fd(s), .events = POLLIN};

		poll(&p, 1, 100);
		sampler_service(s, &sink);
	}
	sampler_drain(s, &sink);
	f->seconds = seconds(CLOCK_MONOTONIC) - start;
}

static double share(uint64_t part, uint64_t whole)
{
	return whole ? (double)part / (double)whole : 0;
}

static void report(const struct sampler *s, const struct found *f)
{
	struct sampler_statistics all;
	const struct shadow_statistics *h = &all.shadow;

	sampler_statistics(s, &all);
	printf("samples=%lu bursts=%lu steps=%.2f ns=%.1f longest=%lu dropped=%lu withheld=%lu ",
		all.samples, h->bursts, share(h->steps, h->bursts), share(h->ns, h->bursts),
		h->longest, h->dropped, h->withheld);
	/* A burst that came to nothing is not written, and had no branch. */
	printf("branch=%.5f instruction=%.5f control=%.5f ", share(f->with_branch, h->bursts),
		share(h->stops[INTERP_INSTRUCTION], h->bursts),
		share(h->stops[INTERP_CONTROL], h->bursts));
	printf("seconds=%.3f bpf_ns=%lu ", f->seconds, all.bpf_run_ns);
	printf("long=%lu longest_own=%lu long_own=%lu busiest=%lu ", h->nlong, h->longest_own,
		h->nlong_own, h->busiest);
	printf("again=%lu wrong=%lu known=%.4f cpu=%.4f\n", f->again, f->wrong,
		share(f->known, f->values), seconds(CLOCK_PROCESS_CPUTIME_ID));
}

int main(int argc, char **argv)
{
	static struct found found;
	struct event event;
	struct sampler *s;
	struct err e = {0};
	double length = 0;
	struct sampler_options o = {.target = {.all = true},
		.events = &event,
		.nevents = 1,
		.rate = 5200,
		.how = SAMPLER_BPF,
		.shadow_every = 1,
		.shadow = {.steps = 16, .share = 1, .user = true}};

	signal(SIGINT, SIG_DFL); /* shells have it ignored in the background */
	for (int c; (c = getopt(argc, argv, "F:e:n:xvks:t:")) != -1;) {
		switch (c) {
		case 'F':
			o.rate = atof(optarg);
			break;
		case 'n':
			o.shadow.steps = (uint32_t)atoi(optarg);
			break;
		case 'x':
			o.shadow.exact = true;
			break;
		case 'v':
			o.shadow.values = true;
			break;
		case 'k':
			o.shadow.kernel = true;
			break;
		case 'e':
			o.shadow_every = (uint32_t)atoi(optarg);
			break;
		case 's':
			o.shadow.share = atof(optarg);
			break;
		case 't':
			length = atof(optarg);
			break;
		default:
			errx(2, "usage: bursts [-F RATE] [-e EVERY] [-n STEPS] [-x] [-v] [-k] "
				"[-s SHARE] [-t SECONDS]");
		}
	}
	if (event_parse("cpu-clock", &event, &e) < 0 || sampler_create(&o, &s, &e) < 0)
		errx(1, "%s", e.text);
	if (!sampler_interprets(s))
		errx(1, "%s", sampler_why_not_shadow(s));
	if (sampler_enable(s, &e) < 0)
		errx(1, "%s", e.text);
	run(s, &found, length);
	report(s, &found);
	sampler_destroy(s);
	return 0;
}
