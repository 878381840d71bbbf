/*
 * A collection under way: sampler, attribution and store joined, with the clock that drives them.
 *
 * The owner polls collector_fd and calls collector_turn when it is readable. Samples are drained
 * every few seconds and written every flush interval, each flush one transaction: what a kill loses
 * is at most one interval. A flush that fails (a full disk) is tried again and loses nothing until
 * memory runs short.
 */
#ifndef CULPRIT_COLLECT_COLLECTOR_H
#define CULPRIT_COLLECT_COLLECTOR_H

#include "collect/contexts.h"
#include "collect/sampler.h"
#include "collect/scout.h"

#include <stdbool.h>
#include <stdint.h>

struct collector;
struct err;
struct only_result;
struct plugin;
struct skid;
struct upcall;

struct collector_options {
	struct sampler_options sampling; /* what it points to outlives the collector */
	double excursions; /* share of their time that threads are held for these (scout.h), 0: none */
	const char *database;
	const char *label;        /* of the epoch, may be NULL */
	bool per_process;         /* keep profiles by pid */
	bool delayed;             /* sampling begins with collector_enable, not at the start */
	double budget, cost;      /* for the record: share of each CPU, seconds a sample */
	const struct skid *skids; /* the same, of each event; they may become known until the end */
	double drain_s, flush_s;  /* intervals */
	double keep_days;         /* expire what is older, 0: keep all */
	uint64_t keep_bytes;      /* bound of the database, 0: none */
	const struct plugin
		*plugins; /* that look at bursts with values; they outlive the collector */
	size_t nplugins;
	const char *const *only; /* values of these names only (only.h); they outlive it too */
	size_t nonly;
	struct upcall *upcall; /* values from inside the programs, may be NULL; outlives it too */
};

/* Opens events and database, so that nothing is started that could not be kept. */
int collector_create(const struct collector_options *o, struct collector **out, struct err *e);
void collector_destroy(struct collector *c);

/* Gives up before anything was sampled: a database that this collection made goes again. */
void collector_discard(struct collector *c);

int collector_start(struct collector *c, struct err *e); /* begins the epoch */
int collector_enable(struct collector *c, struct err *e);
int collector_fd(const struct collector *c);

/* Does what is due. A failed flush is reported through collector_status, not here. */
void collector_turn(struct collector *c);
/* How long it is from one such time to the next where nothing else happens. */
long collector_turn_ms(const struct shadow_options *o);

int collector_flush(struct collector *c, struct err *e); /* drain and write now */
int collector_epoch(
	struct collector *c, const char *label, struct err *e); /* end this, begin one */
int collector_finish(struct collector *c, struct err *e);       /* stop, write, end the epoch */

/* Before the end: the epoch is one run of a command, all of it and nothing else (command.h). The
   path is the caller's until then. */
void collector_ran(struct collector *c, const char *program, uint64_t command);

/* Samples of one event in this collection. */
struct collector_event {
	const char *name;
	uint64_t samples, attributed, unknown, lost, throttled, missed;
	double expected, period;
};

struct collector_status {
	int64_t since; /* microseconds since the epoch */
	double rate, budget, cost;
	double share; /* of the machine, used so far: own CPU time plus samples x cost */
	size_t rss, maps;
	bool bpf;
	struct sampler_statistics driver;
	double interpreting;   /* share of the machine's time that bursts took */
	uint64_t wrong;        /* bursts that did not come out as in the kernel when run again */
	uint64_t anchors_seen; /* pairs of samples delivered */
	uint64_t anchors_kept; /* and written */
	bool has_paths;        /* call paths were asked for and can be had */
	struct contexts_statistics paths;
	struct scout_statistics excursions;
	const char *no_bursts; /* why nothing is interpreted; "" when it is, or was not asked for */
	uint64_t flushes, failed_flushes;
	const char *last_failure;     /* "" when the last flush went well */
	struct collector_event total; /* all events together */
};
void collector_status(struct collector *c, struct collector_status *out);
size_t collector_events(const struct collector *c, const struct collector_event **out);
const struct sampler *collector_sampler(const struct collector *c);
/* What came of the nth name of options.only. */
void collector_only(const struct collector *c, size_t n, struct only_result *out);
bool collector_kernel_hidden(const struct collector *c);

#endif
