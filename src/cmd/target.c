#include "cmd/target.h"

#include "base/err.h"
#include "base/mem.h"
#include "cmd/cmd.h"
#include "collect/calibrate.h"
#include "collect/only.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	/* Instructions of a burst, at most. What is seen right behind a sample is of code that was
	   slow just then, and some hundred instructions on little of that is left; but the further
	   on, the more a slow phase of a program outweighs a fast one. */
	EDGES_STEPS = 256,
	VALUES_STEPS = 64,
	/* Passed over first, at most: where interrupts fall is not even. Without values nothing is
	   passed over, since walks are weighted by where they began (analyze/even.h). */
	SKIP_STEPS = 16,
};
#define EDGES_SHARE  0.002 /* of each CPU, at most; and of the budget if that is small: */
#define EDGES_PART   0.2
#define EXCURSIONS_SHARE 0.01
#define VALUES_SHARE 0.045 /* the last burst may go beyond it: 5% is not to be reached */
#define BURST_S      2e-5  /* what one takes, about */
#define PAIRS_S      128 /* pairs of samples begun a second and CPU: as many as a flush keeps, and */
#define PAIRS_EVERY  8   /* not at more than one sample in so many */

static int add_ids(struct target *t, const char *option, const char *list, bool threads)
{
	_cleanup_free_ char *copy = xstrdup(list);
	char *rest = copy;

	for (char *word; (word = strsep(&rest, ","));) {
		uint64_t id;

		if (parse_uint(word, 1, 1 << 22, &id) < 0)
			return cmd_usage(t->verb, "%s: '%s' is no process id", option, word);
		if (threads)
			*vec_add(&t->tids) = id;
		else
			*vec_add(&t->pids) = id;
	}
	return 0;
}

/* "0,2-5" */
static int add_cpus(struct target *t, const char *list)
{
	_cleanup_free_ char *copy = xstrdup(list);
	char *rest = copy;

	for (char *word; (word = strsep(&rest, ","));) {
		unsigned first, last;
		int n = 0;

		if (sscanf(word, "%u%n", &first, &n) != 1 || !isdigit(*word))
			return cmd_usage(t->verb, "-C: '%s' is no CPU", word);
		last = first;
		if (word[n] == '-' && sscanf(word + n + 1, "%u%n", &last, &n) != 1)
			return cmd_usage(t->verb, "-C: '%s' is no range of CPUs", word);
		if (last < first || last > 65535)
			return cmd_usage(t->verb, "-C: '%s' is no range of CPUs", word);
		for (unsigned cpu = first; cpu <= last; cpu++)
			*vec_add(&t->cpus) = cpu;
	}
	return 0;
}

/* Commas separate events, except inside the slashes of "cpu/event=1,umask=2/". */
static int add_events(struct target *t, const char *list)
{
	for (const char *at = list; at;) {
		size_t n = 0;
		bool inside = false;
		struct err e = {0};

		for (; at[n] && (inside || at[n] != ','); n++)
			inside ^= at[n] == '/';
		_cleanup_free_ char *word = xstrndup(at, n);
		struct event ev;

		if (event_parse(word, &ev, &e) < 0)
			return cmd_fail(&e);
		*vec_add(&t->events) = ev;
		at = at[n] ? at + n + 1 : NULL;
	}
	return 0;
}

static int add_plugin(struct target *t, const char *spec)
{
	struct err e = {0};

	if (t->nplugins == PLUGINS_MAX)
		return cmd_usage(t->verb, "--plugin: %d at most", PLUGINS_MAX);
	if (plugin_load(&t->plugins[t->nplugins], spec, t->plugins, t->nplugins, &e) < 0)
		return cmd_fail(&e);
	t->nplugins++;
	return 0;
}

static int add_only(struct target *t, const char *name)
{
	struct err e = {0};

	if (t->only.n == ONLY_MOST)
		return cmd_usage(t->verb, "--only: %d at most", ONLY_MOST);
	if (only_check(name, &e) < 0)
		return cmd_usage(t->verb, "%s", e.text);
	*vec_add(&t->only) = name;
	return 0;
}

static int set_call_graph(struct target *t, const char *name)
{
	static const char *const names[] = {[CONTEXTS_INFERRED] = "inferred",
		[CONTEXTS_JUDGED] = "judged",
		[CONTEXTS_COPIED] = "copy",
		[CONTEXTS_CHAIN] = "fp"};

	for (unsigned i = CONTEXTS_INFERRED; i < sizeof names / sizeof *names; i++)
		if (!strcmp(name, names[i])) {
			t->contexts = i;
			return 0;
		}
	return cmd_usage(
		t->verb, "--call-graph: '%s' is unknown (inferred, judged, copy, fp)", name);
}

int target_option(struct target *t, int option, const char *argument)
{
	switch (option) {
	case 'a':
		t->all = true;
		return 0;
	case 'p':
		return add_ids(t, "-p", argument, false);
	case 't':
		return add_ids(t, "-t", argument, true);
	case 'C':
		return add_cpus(t, argument);
	case 'e':
		return add_events(t, argument);
	case 'G':
		t->cgroup = argument;
		return 0;
	case 'g':
		if (!t->contexts)
			t->contexts = CONTEXTS_INFERRED;
		return 0;
	case TARGET_CALL_GRAPH:
		return set_call_graph(t, argument);
	case 'o':
		t->database = argument;
		return 0;
	case 'F':
		if (parse_real(argument, 1, 1e6, &t->rate) < 0)
			return cmd_usage(
				t->verb, "-F: '%s' is no rate from 1 to 1000000", argument);
		return 0;
	case 'c':
		if (parse_uint(argument, 1, 1ull << 60, &t->period) < 0)
			return cmd_usage(t->verb, "-c: '%s' is no period", argument);
		return 0;
	case TARGET_BUDGET:
		if (parse_share(argument, &t->budget) < 0 || !(t->budget > 0 && t->budget <= 0.5))
			return cmd_usage(t->verb,
				"--budget: '%s' is no share up to 50%% (write 1%% or 0.01)",
				argument);
		return 0;
	case TARGET_NO_INHERIT:
		t->no_inherit = true;
		return 0;
	case TARGET_NO_BPF:
		t->how = SAMPLER_RING;
		return 0;
	case TARGET_BPF:
		t->how = SAMPLER_BPF;
		return 0;
	case TARGET_PER_PROCESS:
		t->per_process = true;
		return 0;
	case TARGET_CALIBRATE:
		t->fresh = true;
		return 0;
	case TARGET_NO_EDGES:
		t->no_edges = true;
		return 0;
	case TARGET_EDGES:
		if (parse_share(argument, &t->edges) < 0 || !(t->edges > 0 && t->edges <= 0.2))
			return cmd_usage(t->verb,
				"--edges: '%s' is no share up to 20%% (write 1%% or 0.01)",
				argument);
		return 0;
	case TARGET_EXCURSIONS:
		t->excursions = EXCURSIONS_SHARE;
		if (argument && (parse_share(argument, &t->excursions) < 0 ||
					!(t->excursions > 0 && t->excursions <= 0.2)))
			return cmd_usage(t->verb,
				"--excursions: '%s' is no share up to 20%% (write 1%% or 0.01)",
				argument);
		return 0;
	case TARGET_VALUES:
		if (argument && strcmp(argument, "shadow") && strcmp(argument, "upcall"))
			return cmd_usage(
				t->verb, "--values: '%s' is unknown (shadow, upcall)", argument);
		t->upcall = argument && !strcmp(argument, "upcall");
		t->values = !t->upcall;
		return 0;
	case TARGET_PLUGIN:
		return add_plugin(t, argument);
	case TARGET_ONLY:
		return add_only(t, argument);
	}
	return -1;
}

/* What edge samples may cost: a part of the budget, or what nobody notices where there is none. */
static double edges_share(const struct target *t, double budget)
{
	if (t->edges > 0)
		return t->edges;
	return budget && budget * EDGES_PART < EDGES_SHARE ? budget * EDGES_PART : EDGES_SHARE;
}

/* What cannot be measured now stays unknown. */
void target_calibrate_skid(struct target *t)
{
	for (size_t i = 0; i < t->events.n; i++) {
		struct err e = {0};

		if (!t->skids.p[i].cycles_per_ns)
			calibrate_skid(&t->events.p[i], t->fresh, &t->skids.p[i], &e);
	}
}

/* Whoever gives a rate need not wait, as for the cost. */
static void choose_skids(struct target *t, struct collector_options *o)
{
	bool given = t->rate || t->period;

	vec_each (ev, &t->events) {
		struct skid *known = vec_add(&t->skids);

		*known = (struct skid){0};
		if (!t->fresh)
			calibrate_skid_known(ev, known);
	}
	if (!given || t->fresh)
		target_calibrate_skid(t);
	o->skids = t->skids.p;
}

/*
 * The rate is the highest whose cost stays inside the budget; several events share it. When the
 * cost cannot be measured (a CPU of our own is needed for that) the rate is a careful one. Who
 * gives a rate need not wait for the measurement; the cost is stated if it is known.
 */
static void choose_rate(struct target *t, struct collector_options *o)
{
	bool given = t->rate || t->period;
	double edges;
	struct calibration c = {0};
	struct err e = {0};

	if (given && !t->fresh)
		calibrate_known(&t->events.p[0], &c);
	else
		calibrate_cost(&t->events.p[0], t->prices, t->fresh, &c, &e);
	o->cost = c.cost;
	if (given)
		return;
	o->budget = t->budget ? t->budget : DEFAULT_BUDGET;
	edges = t->no_edges ? 0 : edges_share(t, o->budget);
	o->sampling.rate = c.cost > 0 ? calibrate_rate(&c, (o->budget - edges) / t->events.n) : 99;
	/* Interpreting is part of what a sample costs. */
	if (c.cost > 0)
		o->cost += edges / o->sampling.rate;
}

/*
 * Edge samples are always on, at a cost that nobody notices; values cost more, and are other
 * people's data, so they are kept only for who asks.
 */
static void choose_shadow(const struct target *t, double budget, struct sampler_options *o)
{
	o->shadow = (struct shadow_options){.values = t->values,
		.steps = t->values ? VALUES_STEPS : EDGES_STEPS,
		.skip = t->values ? SKIP_STEPS : 0,
		.share = t->values ? VALUES_SHARE : edges_share(t, budget),
		.user = true,
		.kernel = true,
		.choosy = t->only.n > 0,
		.watch = !t->values};
	/* Which samples go on is decided before the interpreter is called: to find there that the
	 * share is used up costs programs as much as a short burst. */
	if (!t->no_edges || t->values)
		o->shadow_every = 1 + (uint32_t)(o->rate * BURST_S / o->shadow.share);
	if (!t->no_edges)
		o->pair_every = fmax(PAIRS_EVERY, o->rate / PAIRS_S);
}

int target_finish(struct target *t)
{
	struct collector_options *o = &t->options;

	if (t->rate && t->period)
		return cmd_usage(t->verb, "-F and -c exclude each other");
	if (t->events.n == 0 && add_events(t, "cycles") != 0)
		return EXIT_MACHINE;
	o->sampling = (struct sampler_options){.target = {.all = t->all,
						       .pids = t->pids.p,
						       .npids = t->pids.n,
						       .tids = t->tids.p,
						       .ntids = t->tids.n,
						       .cgroup = t->cgroup,
						       .cpus = t->cpus.p,
						       .ncpus = t->cpus.n,
						       .inherit = !t->no_inherit},
		.events = t->events.p,
		.nevents = t->events.n,
		.rate = t->rate,
		.period = t->period,
		.how = t->how,
		.contexts = t->contexts};
	o->database = t->database;
	o->per_process = t->per_process;
	o->excursions = t->excursions;
	choose_rate(t, o);
	choose_skids(t, o);
	choose_shadow(t, o->budget, &o->sampling);
	if (t->nplugins && !t->values && !t->upcall)
		return cmd_usage(t->verb, "--plugin looks at values: give --values too");
	if (t->only.n && !t->values && !t->upcall)
		return cmd_usage(t->verb, "--only chooses values: give --values too");
	o->only = t->only.p;
	o->nonly = t->only.n;
	o->plugins = t->plugins;
	o->nplugins = t->upcall ? 0 : t->nplugins;
	return 0;
}

void target_say_limits(const struct target *t, struct collector *c)
{
	const struct sampler *s = collector_sampler(c);

	vec_each (ev, &t->events)
		if (ev->fell_back)
			cmd_note("this machine has no cycle counter; sampling %s", ev->name);
	if (!sampler_uses_bpf(s) && t->how == SAMPLER_BEST && geteuid() == 0)
		cmd_note("sampling without BPF: %s", sampler_why_not_bpf(s));
	if (t->contexts == CONTEXTS_CHAIN && !sampler_uses_bpf(s))
		cmd_note("no call paths: --call-graph=fp needs BPF: %s", sampler_why_not_bpf(s));
	if (t->values && !sampler_interprets(s))
		cmd_note("no values: %s", sampler_why_not_shadow(s));
	if (sampler_excludes_kernel(s))
		cmd_note("user mode only: kernel.perf_event_paranoid forbids the kernel's samples "
			 "(set it to 1, or give CAP_PERFMON)");
	else if (collector_kernel_hidden(c))
		cmd_note("kernel symbols are hidden: set kernel.kptr_restrict to 0 or give "
			 "CAP_SYSLOG");
}

void target_say_missed(const struct target *t, const struct collector *c)
{
	if (!t->upcall && !sampler_interprets(collector_sampler(c)))
		return;
	for (size_t i = 0; i < t->only.n; i++) {
		struct only_result r;

		collector_only(c, i, &r);
		if (r.found && !r.seen)
			cmd_note("--only %s: it was there, but not seen running", r.name);
		else if (!r.found && r.nearest)
			cmd_note("--only %s: nothing that ran has this name; did you mean '%s'?",
				r.name, r.nearest);
		else if (!r.found)
			cmd_note("--only %s: nothing that ran has this name", r.name);
	}
}

void target_deinit(struct target *t)
{
	for (size_t i = 0; i < t->nplugins; i++)
		plugin_close(&t->plugins[i]);
	vec_deinit(&t->pids);
	vec_deinit(&t->tids);
	vec_deinit(&t->cpus);
	vec_deinit(&t->events);
	vec_deinit(&t->skids);
	vec_deinit(&t->only);
}
