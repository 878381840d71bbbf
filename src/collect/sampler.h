/*
 * Sampling: opens events on what is to be sampled, counts samples in the kernel (BPF driver) or
 * reads them from perf's ring buffers where BPF is not allowed, and hands over side-band records
 * and counted samples.
 *
 * Order: side-band records are delivered in time order over all CPUs, and a sample only when all
 * records up to its time were, so that the receiver knows every mapping it can refer to. Equal
 * samples may come several times.
 */
#ifndef CULPRIT_COLLECT_SAMPLER_H
#define CULPRIT_COLLECT_SAMPLER_H

#include "collect/driver.h"
#include "collect/event.h"
#include "collect/shadow_user.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct driver_pair;
struct driver_stack;
struct err;
struct record;
struct sampler;

enum sampler_how {
	SAMPLER_BEST, /* BPF where it is allowed, else rings */
	SAMPLER_BPF,  /* BPF or an error that says what is missing */
	SAMPLER_RING,
};

/* What call paths are told by. */
enum contexts_how {
	CONTEXTS_NONE,
	CONTEXTS_INFERRED, /* the height of the stack, and copies of what is new */
	CONTEXTS_JUDGED, /* the same; but every stack is looked at, to see whether that was right */
	CONTEXTS_COPIED, /* every stack is copied and walked */
	CONTEXTS_CHAIN,  /* the chain of frame pointers that the kernel finds */
};

struct sampler_target {
	bool all;          /* every process on the machine */
	const pid_t *pids; /* processes: all their threads now and later */
	size_t npids;
	const pid_t *tids; /* single threads */
	size_t ntids;
	const char *cgroup; /* path below the cgroup mount, or absolute */
	const int *cpus;    /* only these CPUs; all when ncpus is 0 */
	size_t ncpus;
	bool inherit;        /* children too */
	bool enable_on_exec; /* a command that waits to be started: begins at its exec */
};

struct sampler_options {
	struct sampler_target target;
	const struct event *events;
	size_t nevents;
	double rate;     /* samples a second on each CPU; 0 when period is given */
	uint64_t period; /* events between samples */
	enum sampler_how how;
	/*
	 * The interpreter runs from one in so many samples of the first event; 0: never. Where it
	 * cannot be had sampler_why_not_shadow says why.
	 */
	uint32_t shadow_every;
	struct shadow_options shadow;
	/* Pairs begin at one in so many samples of the first event, in the mean; 0: none. BPF only.
	 */
	uint32_t pair_every;
	/* Samples tell the height of the stack, and stacks are copied. BPF only. */
	enum contexts_how contexts;
};

int sampler_create(const struct sampler_options *o, struct sampler **out, struct err *e);
void sampler_destroy(struct sampler *s);
int sampler_enable(struct sampler *s, struct err *e); /* not needed with enable_on_exec */
void sampler_disable(struct sampler *s);

bool sampler_uses_bpf(const struct sampler *s);
const char *sampler_why_not_bpf(const struct sampler *s); /* "" when it does */
bool sampler_excludes_kernel(const struct sampler *s); /* perf_event_paranoid left only user mode */

bool sampler_interprets(const struct sampler *s);
const char *sampler_why_not_shadow(const struct sampler *s); /* "" when it does, or need not */

/* An epoll descriptor that becomes readable when sampler_service has something urgent to do. */
int sampler_fd(const struct sampler *s);

/* A sample, counted. */
struct sample {
	uint64_t pc, time; /* time: first sight, CLOCK_MONOTONIC ns */
	int32_t pid, tid;
	uint32_t cpu;
	uint32_t cgroup; /* low half of the cgroup v2 id, 0 unknown (rings do not tell) */
	uint32_t count;
	uint8_t event; /* index into options.events */
	bool kernel;
	bool ring; /* it did not come from the driver */
	/* With contexts (collect/driver.h): */
	uint64_t where, user, caller[DRIVER_CALLERS];
};

/*
 * How far the next return address was from one of a stack's, or (STEP_FIRST, STEP_EXACT of
 * collect/driver.h) the first from the stack pointer, in words. Fixed: it always is.
 */
struct stack_step {
	uint64_t address;
	uint64_t row;        /* the instruction: the call before a return address */
	uint64_t start, end; /* of the code around, if the same is true of all of it; else 0 */
	uint32_t words, what;
	bool fixed, root;
};

struct sampler_sink {
	void (*record)(void *arg, const struct record *r); /* MMAP, COMM, FORK, EXIT, CGROUP */
	void (*sample)(void *arg, const struct sample *s);
	void *arg;
	shadow_fn *burst;                                     /* NULL: nobody wants them */
	void (*pair)(void *arg, const struct driver_pair *p); /* the same */
	void (*stack)(void *arg, const struct driver_stack *s, const uint8_t *bytes);
};

/* Empties rings and overflow buffers before they fill, redraws the periods. */
void sampler_service(struct sampler *s, const struct sampler_sink *sink);
/* Swaps the tables and delivers everything. */
void sampler_drain(struct sampler *s, const struct sampler_sink *sink);

/* As those of driver_user.h. */
void sampler_want(struct sampler *s, const struct sample *sample);
void sampler_ask(struct sampler *s, const struct sample *sample, uint64_t ask);
void sampler_answer(
	struct sampler *s, const struct driver_stack *stack, const uint8_t *bytes, uint64_t ask);
void sampler_teach(
	struct sampler *s, const struct driver_stack *stack, const struct stack_step *step);
bool sampler_hurries(const struct sampler *s);

/* As shadow_leave_out and shadow_take_in (shadow_user.h). */
void sampler_leave_out(struct sampler *s, const struct shadow_burst *b);
void sampler_watch(struct sampler *s, const struct shadow_watch *w); /* as shadow_watch */
void sampler_take_in(struct sampler *s, pid_t pid);

/* Since the last call, per event. */
struct sampler_account {
	uint64_t samples;   /* delivered (the sum of counts) */
	uint64_t lost;      /* counted but not delivered: full ring, LOST records */
	uint64_t throttled; /* not taken while the kernel throttled the event */
	/*
	 * The event's own count / period, throttled time included. 0: unknown, since a clock with
	 * :u or :k counts all the time. What is short of it was taken by the hypervisor, or fell
	 * into stretches with interrupts off.
	 */
	double expected;
	double period; /* mean, what one sample stands for; 0: unknown */
	double scale;  /* time enabled / time running */
};
void sampler_account(struct sampler *s, size_t event, struct sampler_account *out);

/* Running totals of the driver, for daemon status and the benchmarks. */
struct sampler_statistics {
	uint64_t samples, hits, evictions, dropped;
	uint64_t sideband_lost;        /* side-band records that found the ring full */
	uint64_t bpf_run_ns, bpf_runs; /* 0 unless kernel.bpf_stats_enabled */
	size_t map_bytes;              /* BPF maps and ring buffers */
	/*
	 * Pairs of samples: those begun came about, fell apart (another activation), lapsed (no
	 * next sample on the same CPU in time) or were dropped for want of room.
	 */
	uint64_t pairs, pairs_begun, pairs_apart, pairs_lapsed, pairs_dropped;
	/* Stacks: copied; not copied because too many were; for want of room; not in memory. */
	uint64_t stacks, trails, stacks_held, stacks_lost, stacks_gone;
	struct shadow_statistics shadow;
};
void sampler_statistics(const struct sampler *s, struct sampler_statistics *out);

#endif
