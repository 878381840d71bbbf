#include "collect/burst_plugins.h"

#include "base/mem.h"
#include "collect/shadow.h"
#include "values/plugin_host.h"
#include "values/step.h"

#include <stdlib.h>

enum { THREADS_MOST = 256 };

struct burst_plugins {
	const struct plugin *list;
	size_t n;
	struct steps steps;
	void *states[PLUGINS_MAX][THREADS_MOST]; /* by thread, made when one is seen */
};

/* What a value on its way needs to know. */
struct emission {
	burst_plugins_fn *fn;
	void *arg;
	unsigned kind;
};

struct burst_plugins *burst_plugins_create(const struct plugin *list, size_t n)
{
	struct burst_plugins *b;

	if (!n)
		return NULL;
	b = xcalloc(1, sizeof *b);
	b->list = list;
	b->n = n;
	return b;
}

void burst_plugins_destroy(struct burst_plugins *b)
{
	for (size_t i = 0; b && i < b->n; i++) {
		for (size_t k = 0; k < THREADS_MOST; k++)
			free(b->states[i][k]);
	}
	free(b);
}

void burst_plugins_begin(struct burst_plugins *b)
{
	steps_begin(&b->steps);
}

void burst_plugins_step(struct burst_plugins *b, const struct interp *m)
{
	steps_add(&b->steps, m);
}

static void *state_of(struct burst_plugins *b, size_t plugin, uint32_t tid)
{
	void **state = &b->states[plugin][tid % THREADS_MOST];
	size_t size = b->list[plugin].is->state_size;

	if (!*state)
		*state = xcalloc(1, size ? size : 1);
	return *state;
}

static void emit(void *arg, uint64_t pc, uint64_t value, uint64_t context)
{
	const struct emission *x = arg;

	x->fn(x->arg, x->kind, pc, value, context);
}

void burst_plugins_end(
	struct burst_plugins *b, const struct shadow_burst *from, burst_plugins_fn *fn, void *arg)
{
	struct culprit_burst burst = {.size = sizeof burst,
		.pid = from->pid,
		.tid = from->tid,
		.time = from->time,
		.kernel = from->kernel};

	steps_contexts(&b->steps);
	for (size_t i = 0; i < b->n; i++) {
		struct emission x = {.fn = fn, .arg = arg, .kind = b->list[i].kind};

		plugin_run(&b->list[i], state_of(b, i, from->tid), &b->steps, &burst, emit, &x);
	}
}
