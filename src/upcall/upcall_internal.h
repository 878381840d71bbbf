/*
 * The library that is loaded into profiled programs: what its parts tell each other.
 *
 * A clock event of the kernel sends SIGTRAP to the thread that it samples (perf's sigtrap). The
 * handler interprets some instructions from there on in shadow: the program goes on as if nothing
 * had happened. Everything that runs in the handler is async-signal-safe: no allocation, no locks,
 * and after the first sample of a thread no system calls in the usual case.
 */
#ifndef CULPRIT_UPCALL_UPCALL_INTERNAL_H
#define CULPRIT_UPCALL_UPCALL_INTERNAL_H

#include "isa/interp.h"
#include "values/capture.h"
#include "values/step.h"
#include "values/upcall_shared.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>
#include <ucontext.h>

#define UPCALL_DATA  0x636c707274757063ull /* sig_data of our events */
#define UPCALL_LINES 256                   /* of memory that a burst remembers to have touched */
#define UPCALL_STACK 131072

struct upcall_line {
	uint64_t address;
	uint32_t epoch;
};

/* What one thread needs while it is interpreted; memory of the process, one for each ring in use.
 */
struct upcall_thread {
	struct upcall_ring *ring;
	_Atomic int busy; /* threads without a TLS of their own could share one */
	pid_t pid, tid;
	uint64_t random;
	/* The values of the burst that is being written. */
	uint64_t head, time;
	uint32_t count, cpu;
	uint32_t kind;      /* that a plug-in emits */
	uint32_t epoch;     /* of lines */
	uint32_t latency;   /* of the slowest load of the instruction; 0: none was measured */
	uint32_t clock;     /* cycles that reading the clock takes */
	const void *sample; /* ucontext */
	struct upcall_line lines[UPCALL_LINES];
	struct interp m;
	struct capture capture;
	struct steps steps;
	void *state[PLUGINS_MAX];
	char *stack_top;
};

struct upcall_process {
	struct upcall_shared *shared;
	struct plugin plugins[PLUGINS_MAX]; /* in the order of shared->orders */
	size_t nplugins;
	size_t thread_size; /* of struct upcall_thread, states and stack */
	pid_t pid;
	uint32_t space;      /* pid namespace, 20 bits */
	bool active;         /* our handlers are in place */
	_Atomic bool barred; /* maps a device, or may not read the clock: not sampled any more */
	bool reads_base;     /* rdfsbase works */
};
extern struct upcall_process upcall_process;

static inline void upcall_add(_Atomic uint64_t *sum, uint64_t n)
{
	atomic_fetch_add_explicit(sum, n, memory_order_relaxed);
}

/* ---- load.c ---- */

/* Read eight bytes; negative when nothing is there. The second also tells how long it took, and
 * fails where programs are not allowed to read the clock. */
int upcall_load(uint64_t address, uint64_t *word);
int upcall_load_timed(uint64_t address, uint64_t *word, uint32_t *cycles);
/* Whether a fault was ours; then the context goes on behind it. */
bool upcall_load_fault(ucontext_t *uc);

/* ---- burst.c ---- */

/* Interprets from t->sample on, and writes what it found. */
void upcall_burst(struct upcall_thread *t);

/* ---- emit.c ---- */

void upcall_emit_begin(struct upcall_thread *t);
void upcall_emit(
	struct upcall_thread *t, uint32_t kind, uint64_t pc, uint64_t value, uint64_t context);
void upcall_emit_end(struct upcall_thread *t);

/* ---- threads.c ---- */

/* Takes a sample on the thread's own stack. */
void upcall_sample(ucontext_t *uc);
void upcall_forget_thread(void); /* after a fork */

/* ---- signals.c ---- */

void upcall_signals_begin(void); /* puts our handlers in place */
void upcall_signals_forked(void);
void upcall_signals_find(void); /* looks up the functions that are wrapped */

#endif
