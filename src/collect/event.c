#include "collect/event.h"

#include "base/err.h"
#include "base/mem.h"
#include "collect/counter.h"
#include "collect/event_pmu.h"
#include "collect/event_probe.h"
#include "collect/event_tracepoint.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct event_name {
	const char *name;
	uint32_t type;
	uint64_t config;
};

#define HARDWARE(name, config)                                   \
	{                                                        \
		name, PERF_TYPE_HARDWARE, PERF_COUNT_HW_##config \
	}
#define SOFTWARE(name, config)                                   \
	{                                                        \
		name, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_##config \
	}

static const struct event_name names[] = {
	HARDWARE("cycles", CPU_CYCLES),
	HARDWARE("cpu-cycles", CPU_CYCLES),
	HARDWARE("instructions", INSTRUCTIONS),
	HARDWARE("cache-references", CACHE_REFERENCES),
	HARDWARE("cache-misses", CACHE_MISSES),
	HARDWARE("branches", BRANCH_INSTRUCTIONS),
	HARDWARE("branch-instructions", BRANCH_INSTRUCTIONS),
	HARDWARE("branch-misses", BRANCH_MISSES),
	HARDWARE("bus-cycles", BUS_CYCLES),
	HARDWARE("stalled-cycles-frontend", STALLED_CYCLES_FRONTEND),
	HARDWARE("stalled-cycles-backend", STALLED_CYCLES_BACKEND),
	HARDWARE("ref-cycles", REF_CPU_CYCLES),
	SOFTWARE("cpu-clock", CPU_CLOCK),
	SOFTWARE("task-clock", TASK_CLOCK),
	SOFTWARE("page-faults", PAGE_FAULTS),
	SOFTWARE("faults", PAGE_FAULTS),
	SOFTWARE("minor-faults", PAGE_FAULTS_MIN),
	SOFTWARE("major-faults", PAGE_FAULTS_MAJ),
	SOFTWARE("context-switches", CONTEXT_SWITCHES),
	SOFTWARE("cs", CONTEXT_SWITCHES),
	SOFTWARE("cpu-migrations", CPU_MIGRATIONS),
	SOFTWARE("migrations", CPU_MIGRATIONS),
	SOFTWARE("alignment-faults", ALIGNMENT_FAULTS),
	SOFTWARE("emulation-faults", EMULATION_FAULTS),
};
#define NNAMES (sizeof names / sizeof *names)

/* Cache events are put together: "L1-dcache" "-load" "-misses". In the order of their numbers. */
static const char *const caches[] = {
	"L1-dcache", "L1-icache", "LLC", "dTLB", "iTLB", "branch", "node"};
static const char *const operations[][2] = {
	{"loads", "load-misses"}, {"stores", "store-misses"}, {"prefetches", "prefetch-misses"}};
#define NCACHES     (sizeof caches / sizeof *caches)
#define NOPERATIONS (sizeof operations / sizeof *operations)

static void cache_name(size_t cache, size_t operation, size_t result, char *name, size_t size)
{
	snprintf(name, size, "%s-%s", caches[cache], operations[operation][result]);
}

static bool find_cache(const char *name, struct perf_event_attr *attr)
{
	for (size_t i = 0; i < NCACHES * NOPERATIONS * 2; i++) {
		size_t cache = i / (NOPERATIONS * 2), op = i / 2 % NOPERATIONS, result = i % 2;
		char candidate[64];

		cache_name(cache, op, result, candidate, sizeof candidate);
		if (strcmp(name, candidate))
			continue;
		attr->type = PERF_TYPE_HW_CACHE;
		attr->config = cache | op << 8 | result << 16;
		return true;
	}
	return false;
}

/* "r1a2": what the CPU's manual gives. */
static bool find_raw(const char *name, struct perf_event_attr *attr)
{
	if (*name != 'r' || !name[1] || strlen(name) > 17 ||
		name[1 + strspn(name + 1, "0123456789abcdefABCDEF")])
		return false;
	attr->type = PERF_TYPE_RAW;
	attr->config = strtoull(name + 1, NULL, 16);
	return true;
}

static bool find_named(const char *name, struct perf_event_attr *attr)
{
	for (size_t i = 0; i < NNAMES; i++) {
		if (!strcmp(name, names[i].name)) {
			attr->type = names[i].type;
			attr->config = names[i].config;
			return true;
		}
	}
	return find_cache(name, attr) || find_raw(name, attr);
}

/* Whether the machine has it. Not being allowed to look is no answer; opening it later gives one.
 */
static bool is_there(struct perf_event_attr attr)
{
	int fd;

	attr.size = sizeof attr;
	attr.disabled = 1;
	attr.exclude_kernel = 1;
	attr.exclude_user = 0;
	fd = counter_kernel.open(&attr, 0, -1, 0);
	if (fd >= 0)
		close(fd);
	return fd >= 0 || fd == -EACCES || fd == -EPERM || fd == -EMFILE || fd == -EBUSY;
}

static bool is_cycles(const struct perf_event_attr *attr)
{
	return attr->type == PERF_TYPE_HARDWARE && attr->config == PERF_COUNT_HW_CPU_CYCLES;
}

/* "u", "k" or both; "" counts everything. */
static int set_modifiers(const char *spec, const char *modifiers, struct event *ev, struct err *e)
{
	bool user = strchr(modifiers, 'u'), kernel = strchr(modifiers, 'k');

	if (modifiers[strspn(modifiers, "uk")])
		return err_set(e, -EINVAL,
			"event %s: :%s is not known; :u (user) and :k (kernel) are", spec,
			modifiers);
	if (user == kernel)
		return 0;
	ev->attr.exclude_kernel = user;
	ev->attr.exclude_user = kernel;
	ev->attr.exclude_hv = 1;
	return 0;
}

/* "pmu/terms/modifiers", perf's way, or with a colon before the modifiers. */
static int parse_pmu(char *spec, struct event *ev, struct err *e)
{
	char *terms = strchr(spec, '/'), *end = strrchr(spec, '/');

	if (terms == end)
		return err_set(e, -EINVAL, "event %s: a second / is missing", spec);
	*terms++ = 0;
	*end++ = 0;
	if (*end == ':')
		end++;
	if (set_modifiers(ev->name, end, ev, e) < 0)
		return -EINVAL;
	return event_pmu_parse(EVENT_PMU_DEVICES, spec, terms, &ev->attr, e);
}

static int parse_tracepoint(const char *system, char *name, struct event *ev, struct err *e)
{
	char *modifiers = strchr(name, ':');
	uint64_t id;
	int r;

	if (modifiers)
		*modifiers++ = 0;
	r = event_tracepoint_id(system, name, &id, e);
	if (r < 0)
		return r;
	ev->attr.type = PERF_TYPE_TRACEPOINT;
	ev->attr.config = id;
	return set_modifiers(ev->name, modifiers ? modifiers : "", ev, e);
}

static int unknown(const char *spec, struct err *e)
{
	return err_set(e, -EINVAL,
		"event %s: nobody knows it; `culprit doctor --events` lists what there is", spec);
}

/* Without a cycle counter, time is the next best. */
static int settle_for(struct event *ev, const char *modifiers, struct err *e)
{
	if (is_there(ev->attr))
		return 0;
	if (!is_cycles(&ev->attr))
		return err_set(e, -EOPNOTSUPP,
			"event %s: this machine does not have it (a virtual machine without a "
			"PMU?); "
			"-e cpu-clock samples time",
			ev->name);
	ev->attr.type = PERF_TYPE_SOFTWARE;
	ev->attr.config = PERF_COUNT_SW_CPU_CLOCK;
	ev->fell_back = true;
	snprintf(ev->name, sizeof ev->name, "cpu-clock%s%s", *modifiers ? ":" : "", modifiers);
	return 0;
}

static int parse_named(char *spec, struct event *ev, struct err *e)
{
	char *colon = strchr(spec, ':');
	int r;

	if (colon)
		*colon = 0;
	if (!find_named(spec, &ev->attr))
		return colon ? parse_tracepoint(spec, colon + 1, ev, e) : unknown(ev->name, e);
	r = set_modifiers(ev->name, colon ? colon + 1 : "", ev, e);
	return r < 0 ? r : settle_for(ev, colon ? colon + 1 : "", e);
}

int event_parse(const char *spec, struct event *out, struct err *e)
{
	struct event ev = {.attr.size = sizeof ev.attr};
	_cleanup_free_ char *copy = xstrdup(spec ? spec : "cycles");
	int r;

	if (event_is_probe(copy)) {
		r = event_probe_parse(copy, &ev, e);
		if (r == 0)
			*out = ev;
		return r;
	}
	if (strlen(copy) >= sizeof ev.name || !*copy)
		return err_set(e, -EINVAL, "event \"%.64s\": not a name of an event", copy);
	strcpy(ev.name, copy);
	r = strchr(copy, '/') ? parse_pmu(copy, &ev, e) : parse_named(copy, &ev, e);
	if (r < 0)
		return r;
	ev.is_clock = ev.attr.type == PERF_TYPE_SOFTWARE &&
		      (ev.attr.config == PERF_COUNT_SW_CPU_CLOCK ||
			      ev.attr.config == PERF_COUNT_SW_TASK_CLOCK);
	*out = ev;
	return 0;
}

static void offer(const char *name, void (*fn)(void *arg, const char *name), void *arg)
{
	struct perf_event_attr attr = {0};

	if (find_named(name, &attr) && is_there(attr))
		fn(arg, name);
}

void event_each(void (*fn)(void *arg, const char *name), void *arg)
{
	for (size_t i = 0; i < NNAMES; i++)
		offer(names[i].name, fn, arg);
	for (size_t i = 0; i < NCACHES * NOPERATIONS * 2; i++) {
		char name[64];

		cache_name(i / (NOPERATIONS * 2), i / 2 % NOPERATIONS, i % 2, name, sizeof name);
		offer(name, fn, arg);
	}
	event_pmu_each(EVENT_PMU_DEVICES, fn, arg);
	event_tracepoint_each(fn, arg);
}
