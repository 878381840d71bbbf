/*
 * The options that say what to sample and how, shared by record and the daemon, and turning them
 * into the collector's.
 */
#ifndef CULPRIT_CMD_TARGET_H
#define CULPRIT_CMD_TARGET_H

#include "base/vec.h"
#include "collect/calibrate_skid.h"
#include "collect/collector.h"
#include "values/plugin_host.h"

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define DEFAULT_BUDGET 0.01

struct target {
	const char *verb; /* for messages */
	VEC(pid_t) pids;
	VEC(pid_t) tids;
	VEC(int) cpus;
	VEC(struct event) events;
	VEC(struct skid) skids; /* of each event */
	bool all, no_inherit, fresh, per_process, no_edges, values;
	enum contexts_how contexts; /* call paths */
	bool upcall; /* values from inside the command, not from the interrupt */
	struct plugin plugins[PLUGINS_MAX];
	size_t nplugins;
	VEC(const char *) only; /* names whose values are kept; none: all */
	const char *cgroup, *database;
	double rate, budget; /* budget is a share */
	double excursions;   /* share of their time that threads are held for these; 0: none */
	double edges;        /* share of each CPU for following branches; 0: as ever */
	int prices;          /* times that the price of a sample is taken before it is believed */
	uint64_t period;
	enum sampler_how how;
	struct collector_options options; /* filled by target_finish */
};

#define TARGET_SHORT "ap:t:F:c:e:C:G:go:"

enum {
	TARGET_BUDGET = 0x200,
	TARGET_NO_INHERIT,
	TARGET_NO_BPF,
	TARGET_BPF,
	TARGET_PER_PROCESS,
	TARGET_CALIBRATE,
	TARGET_NO_EDGES,
	TARGET_EDGES,
	TARGET_EXCURSIONS,
	TARGET_VALUES,
	TARGET_PLUGIN,
	TARGET_ONLY,
	TARGET_CALL_GRAPH
};

#define TARGET_LONG                                                                               \
	{"all-cpus", no_argument, NULL, 'a'}, {"pid", required_argument, NULL, 'p'},              \
		{"tid", required_argument, NULL, 't'}, {"freq", required_argument, NULL, 'F'},    \
		{"count", required_argument, NULL, 'c'}, {"event", required_argument, NULL, 'e'}, \
		{"cpu", required_argument, NULL, 'C'}, {"cgroup", required_argument, NULL, 'G'},  \
		{"output", required_argument, NULL, 'o'}, {"db", required_argument, NULL, 'o'},   \
		{"budget", required_argument, NULL, TARGET_BUDGET},                               \
		{"no-inherit", no_argument, NULL, TARGET_NO_INHERIT},                             \
		{"no-bpf", no_argument, NULL, TARGET_NO_BPF},                                     \
		{"bpf", no_argument, NULL, TARGET_BPF},                                           \
		{"per-process", no_argument, NULL, TARGET_PER_PROCESS},                           \
		{"no-edges", no_argument, NULL, TARGET_NO_EDGES},                                 \
		{"edges", required_argument, NULL, TARGET_EDGES},                                 \
		{"excursions", optional_argument, NULL, TARGET_EXCURSIONS},                       \
		{"values", optional_argument, NULL, TARGET_VALUES},                               \
		{"plugin", required_argument, NULL, TARGET_PLUGIN},                               \
		{"only", required_argument, NULL, TARGET_ONLY},                                   \
		{"call-graph", required_argument, NULL, TARGET_CALL_GRAPH},                       \
	{                                                                                         \
		"calibrate", no_argument, NULL, TARGET_CALIBRATE                                  \
	}

/* Takes one option: 0, EXIT_USAGE after having said why, or -1 when it is none of these. */
int target_option(struct target *t, int option, const char *argument);

/* Parses default events, finds the rate within the budget and fills t->options. 0 or an exit code.
 */
int target_finish(struct target *t);
/* Says what this machine keeps from the samples: a line for each limit. */
void target_say_limits(const struct target *t, struct collector *c);

/* At the end: names of --only that nothing came of, a line for each. */
void target_say_missed(const struct target *t, const struct collector *c);

/* Measures how samples fall where it is not known yet: 0.2 s, once since boot. */
void target_calibrate_skid(struct target *t);

void target_deinit(struct target *t);

#endif
