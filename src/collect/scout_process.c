#include "collect/scout_internal.h"

#include "base/err.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/vec.h"
#include "collect/privilege.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

/*
 * Instructions of a window. Long enough to run over the border of most of what is fast: on programs
 * with exact counts the ways of branches in windows of 20,000 were nearer to the truth than in
 * those of 5,000, by a third to a half.
 */
#define WINDOW  20000
#define STRETCH (WINDOW / SCOUT_STRETCHES)
/* System calls that a window may go through: each takes the thread away for a while. */
#define CALLS_MOST 32

/* What a window takes, about, before it is known. */
#define FIRST_NS 800000
/* Ticks for a window, so that there is some choice. */
#define TICKS 8

struct scouting {
	int link;
	volatile struct scout_statistics *stats;
	struct scout_clock *clock;
	struct excursion *excursion;
	double share, window_ns; /* what one takes, in the mean */
	uint64_t period;         /* of ticks */
	struct reservoir random;
	VEC(struct excursion_edge) edges; /* of a window, */
	struct scout_window window;       /* and what else is told of it */
	size_t first;                     /* edge of the stretch under way */
	void *vectors;
};

/* ---- what is told ---- */

/* Until there is room again, which may take long: the reader himself may be stopped here. */
static void wait_to_say(int link)
{
	struct pollfd room = {.fd = link, .events = POLLOUT};
	sigset_t blocked;

	scout_threads_tidy();
	sigprocmask(SIG_SETMASK, NULL, &blocked);
	sigdelset(&blocked, SIGCHLD);
	ppoll(&room, 1, NULL, &blocked);
}

static void say(const struct scouting *s, const void *p, size_t n)
{
	while (n) {
		ssize_t sent = send(s->link, p, n, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (sent < 0 && errno == EAGAIN) {
			wait_to_say(s->link);
			continue;
		}
		if (sent < 0)
			_exit(0); /* nobody listens any more */
		p = (const char *)p + sent;
		n -= (size_t)sent;
	}
}

static int by_place(const void *a, const void *b)
{
	const struct excursion_edge *x = a, *y = b;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return x->to < y->to ? -1 : x->to > y->to;
}

/* Those of a stretch that an interruption has cut in two are put together. */
static void settle(struct scouting *s, unsigned stretch)
{
	struct excursion_edge *list = s->edges.p + s->first;
	size_t n = s->edges.n - s->first, kept = 0;

	if (n)
		qsort(list, n, sizeof *list, by_place);
	for (size_t i = 0; i < n; i++)
		if (kept && !by_place(&list[kept - 1], &list[i]))
			list[kept - 1].count += list[i].count;
		else
			list[kept++] = list[i];
	s->window.nedges[stretch] = kept;
	s->edges.n = s->first += kept;
}

static void tell(struct scouting *s, const struct scout_tick *of)
{
	const struct excursion_stay *stays;

	s->window.nstays = excursion_stays(s->excursion, &stays);
	s->window.pid = of->pid;
	s->window.tid = of->tid;
	s->window.time = of->time;
	say(s, &s->window, sizeof s->window);
	say(s, s->edges.p, s->edges.n * sizeof *s->edges.p);
	say(s, stays, s->window.nstays * sizeof *stays);
}

/* ---- a window ---- */

static void begin_window(struct scouting *s)
{
	s->window = (struct scout_window){0};
	s->edges.n = s->first = 0;
	excursion_forget_caches(s->excursion);
}

static uint64_t take_edges(struct scouting *s)
{
	const struct excursion_edge *edges;
	size_t n = excursion_edges(s->excursion, &edges);

	for (size_t i = 0; i < n; i++)
		*vec_add(&s->edges) = edges[i];
	return excursion_instructions(s->excursion);
}

/* From where the thread is, to the end of the window or as far as it goes; returns how far that
 * is. An excursion may go a few instructions further than asked: the next stretch has as many less.
 */
static uint64_t walk(struct scouting *s, struct excursion_start *start, uint64_t done)
{
	bool begun = false;

	while (done < WINDOW) {
		unsigned stretch = (unsigned)(done / STRETCH);
		uint64_t more = STRETCH - done % STRETCH, came;

		if (begun)
			excursion_go_on(s->excursion, more);
		else
			excursion_run(s->excursion, start, more);
		begun = true;
		came = take_edges(s);
		s->window.instructions[stretch] += came;
		done += came;
		if (came < more)
			break;
		settle(s, stretch);
	}
	return done;
}

/* From where the thread is held, which it is not any more then. Returns how far it came. */
static uint64_t go_through(
	struct scouting *s, const struct scout_tick *of, struct excursion_start *start)
{
	struct user_regs_struct end;
	uint64_t done = walk(s, start, 0);
	bool held = true;

	for (int calls = 0; done < WINDOW && calls < CALLS_MOST; calls++) {
		excursion_registers(s->excursion, &end);
		if (!scout_thread_at_short_call(of->pid, of->tid, &end))
			break;
		held = scout_thread_pass_call(of->tid, &end);
		if (!held || !scout_thread_state(of->tid, &start->registers, s->vectors))
			break;
		done = walk(s, start, done);
	}
	if (held)
		scout_thread_release(of->tid);
	if (done < WINDOW)
		settle(s, (unsigned)(done / STRETCH));
	s->stats->early += done < WINDOW;
	s->stats->windows++;
	s->stats->instructions += done;
	return done;
}

/* Of a thread in the kernel nothing but that is known. */
static bool is_in_kernel(const struct user_regs_struct *r)
{
	return (long long)r->orig_rax != -1;
}

/* What else there is runs in 32 bits, or 16; in the low byte also under Xen. */
static bool is_of_64_bits(const struct user_regs_struct *r)
{
	return (r->cs & 0xff) == 0x33;
}

/* How many instructions were seen; 0: none. */
static uint64_t visit(struct scouting *s, struct scout_tick *of)
{
	pid_t tid = of->tid;
	struct excursion_start start = {
		.vectors = s->vectors, .read = scout_thread_read, .arg = &tid};
	enum scout_hold held = scout_thread_hold(tid);
	bool there;

	begin_window(s);
	/* From now on it is held: before it had to be its turn on a CPU. */
	of->time = io_clock_ns(CLOCK_MONOTONIC);
	there = held == SCOUT_HELD && scout_thread_state(tid, &start.registers, s->vectors) &&
		!is_in_kernel(&start.registers);
	if (there && is_of_64_bits(&start.registers))
		return go_through(s, of, &start);
	if (held == SCOUT_REFUSED)
		s->stats->refused++;
	else if (there)
		s->stats->foreign++;
	else
		s->stats->late++;
	if (held == SCOUT_HELD)
		scout_thread_release(tid);
	return 0;
}

/* ---- how often ---- */

/*
 * Each tick is followed with the same probability, whatever came of those before: a program has
 * phases that are as long as the time between two windows, and must not get into step with them.
 */
static void visit_by_chance(struct scouting *s, struct scout_tick *of, size_t ticks)
{
	double chance = fmin(0.5, s->share * (double)s->period / s->window_ns);
	uint64_t took, instructions;

	if (of->pid <= 0 || of->tid == getpid() ||
		(double)reservoir_below(&s->random, 1 << 30) >= 0x1p30 * chance * (double)ticks)
		return;
	instructions = visit(s, of);
	took = io_clock_ns(CLOCK_MONOTONIC) - of->time;
	s->stats->held_ns += took;
	s->window.stands_ns = (uint64_t)((double)s->period / chance);
	if (instructions)
		tell(s, of);
	s->window_ns += ((double)took - s->window_ns) / 16;
}

/* ---- the process ---- */

/* Descriptors of others are not kept open. */
static int keep_only(int link)
{
	int fd = dup2(link, 3);

	close_range(4, ~0u, 0);
	return fd;
}

static int set_up(const struct scout_options *o, struct scouting *s, struct err *e)
{
	int rc = excursion_create(&s->excursion, e);

	s->share = o->share;
	s->window_ns = FIRST_NS;
	s->period = (uint64_t)(FIRST_NS / o->share / TICKS);
	s->vectors = aligned_alloc(64, EXCURSION_VECTORS);
	if (!s->vectors)
		abort();
	if (!rc)
		rc = scout_clock_create(o->target, s->period, &s->clock, e);
	/* Others' instructions run here: the less they could do, the better. */
	return rc ? rc : privilege_drop(e);
}

/* What the reader wants; false: nothing any more. */
static bool is_wanted(struct scouting *s)
{
	char byte;
	ssize_t n = recv(s->link, &byte, 1, MSG_DONTWAIT);

	if (n > 0)
		scout_clock_enable(s->clock);
	return n > 0 || (n < 0 && errno == EAGAIN);
}

_Noreturn void scout_process(
	const struct scout_options *o, int link, volatile struct scout_statistics *stats)
{
	struct scouting s = {.link = keep_only(link),
		.stats = stats,
		.random.random = io_clock_ns(CLOCK_MONOTONIC)};
	struct scout_greeting hello = {0};
	struct err e = {0};
	sigset_t most;

	prctl(PR_SET_NAME, "culprit-scout");
	sigfillset(
		&most); /* excursion_create lets through those that copies of instructions raise */
	sigprocmask(SIG_SETMASK, &most, NULL);
	scout_threads_listen();
	hello.code = set_up(o, &s, &e);
	memcpy(hello.text, e.text, sizeof hello.text);
	say(&s, &hello, sizeof hello);
	while (!hello.code && is_wanted(&s)) {
		struct scout_tick one;
		size_t ticks;

		/* In front of the wait: news that came during a visit wake nobody any more. */
		scout_threads_tidy();
		ticks = scout_clock_wait(s.clock, s.link, &s.random, &one);
		visit_by_chance(&s, &one, ticks);
	}
	_exit(0);
}
