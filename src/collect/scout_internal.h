/* What the files of the scout share. */
#ifndef CULPRIT_COLLECT_SCOUT_INTERNAL_H
#define CULPRIT_COLLECT_SCOUT_INTERNAL_H

#include "base/err.h"
#include "collect/reservoir.h"
#include "collect/scout.h"

#include <stdbool.h>
#include <sys/types.h>

/* ---- the clock that says who runs: scout_clock.c ---- */

struct scout_clock;

int scout_clock_create(const struct sampler_target *t, uint64_t period_ns, struct scout_clock **out,
	struct err *e);
void scout_clock_destroy(struct scout_clock *c);
void scout_clock_enable(struct scout_clock *c);

struct scout_tick {
	pid_t pid, tid;
	uint64_t time;
};

/* Waits for ticks, or until `other` is readable, or a thread that was held has news (SIGCHLD).
 * How many ticks there were, and any one of them. */
size_t scout_clock_wait(
	struct scout_clock *c, int other, struct reservoir *random, struct scout_tick *one);

/* ---- a thread that is held: scout_thread.c ---- */

enum scout_hold {
	SCOUT_HELD,
	SCOUT_LATE,
	SCOUT_REFUSED,
};

/* Before anything else: so that threads' news wake who waits for them (SIGCHLD is to be blocked).
 */
void scout_threads_listen(void);
enum scout_hold scout_thread_hold(pid_t tid);
void scout_thread_release(pid_t tid);
/* Of a thread that is held; false: it is gone. */
bool scout_thread_state(pid_t tid, struct user_regs_struct *registers, void *vectors);
/* Lets it do a system call that it is at, or comes to next, if it is the one that is expected.
 * False: it is held no more, for it is gone or comes to another one, or the call takes long. */
bool scout_thread_pass_call(pid_t tid, const struct user_regs_struct *at);
/* Lets go of threads that could not be when they were to. */
void scout_threads_tidy(void);
/* An excursion_read_fn; arg points to the thread's number. */
int scout_thread_read(void *arg, uint64_t address, void *to, size_t n);

/* ---- what it may do meanwhile: scout_call.c ---- */

#define SCOUT_CALL_LENGTH 2 /* bytes of syscall */

/* Whether it is at a system call that takes no long time and comes back, and that we may interrupt
 * where it does take long. */
bool scout_thread_at_short_call(pid_t pid, pid_t tid, const struct user_regs_struct *registers);

/* ---- the process: scout_process.c ---- */

/* Does not return. The descriptor leads to who reads; statistics are shared with him. */
_Noreturn void scout_process(
	const struct scout_options *o, int link, volatile struct scout_statistics *stats);

/* The first thing it says: 0, or why it cannot. */
struct scout_greeting {
	int code;
	char text[sizeof((struct err *)0)->text];
};

#endif
