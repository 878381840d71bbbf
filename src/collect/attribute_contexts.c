#include "collect/attribute_internal.h"

#include "collect/driver.h"
#include "collect/image_cache.h"
#include "collect/process.h"
#include "collect/procfs.h"
#include "collect/sampler.h"

#include <string.h>

/* The image that was executed: programs lie below the libraries that they load. */
static uint32_t program_of(struct attribution *a, const struct process *p)
{
	const struct mapping *list;
	size_t n = process_mappings(p, &list);

	for (size_t i = 0; i < n; i++)
		if (list[i].file != FILE_ANON)
			return image_cache_of_file(a->images, a->processes, list[i].file);
	return IMAGE_NUMBER_UNKNOWN;
}

/* Rings do not tell where stacks begin: of its own, a process does while it is there. */
static uint64_t owner_of(struct attribution *a, const struct process *p, bool ring)
{
	uint64_t owner = (uint64_t)p->pid << 32 | p->serial;
	struct procfs_stat stat = {0};

	if (ring && !contexts_knows_stacks(a->contexts, owner)) {
		procfs_stat(p->pid, &stat);
		contexts_main_stack(a->contexts, owner, stat.stack);
	}
	return owner;
}

static void take_callers(struct attribution *a, struct process *p, const struct sample *s,
	struct context_sample *out)
{
	for (unsigned i = 0; i < DRIVER_CALLERS && s->caller[i]; i++) {
		struct context_caller *c = &out->callers[i];

		c->at = (uint32_t)(s->caller[i] >> CALLER_SHIFT);
		c->image = attribution_place(
			a, p, CALLER_ADDRESS(s->caller[i]) - 1, s->time, &c->offset);
	}
}

/* Where the sample was: of the kernel's, `image` and `offset` are the kernel's. */
static struct context_sample context_of(struct attribution *a, struct process *p,
	const struct sample *s, uint32_t image, uint64_t offset, uint32_t who)
{
	struct context_sample c = {.image = image,
		.offset = offset,
		.where = WHERE_CONTEXT(s->where) | (s->where & WHERE_HELD),
		.program = program_of(a, p),
		.who = who | (uint32_t)s->event << SUM_EVENT_SHIFT};

	if (s->kernel) {
		c.kernel = image + 1;
		c.kernel_offset = offset;
		c.offset = 0;
		c.image = IMAGE_NUMBER_UNKNOWN;
		if (s->user)
			c.image = attribution_place(a, p, s->user, s->time, &c.offset);
		else
			c.program = image;
	}
	if ((c.where >> WHERE_KIND_SHIFT & WHERE_KIND) == WHERE_OTHER) {
		c.sp = s->caller[0];
		c.owner = owner_of(a, p, s->ring);
	} else {
		take_callers(a, p, s, &c);
	}
	return c;
}

enum context_wish attribution_context(struct attribution *a, struct process *p,
	const struct sample *s, const struct sum_sample *sum, uint64_t *ask)
{
	uint32_t who = a->sums.by_process ? sum->who : a->sums.who.p[sum->who].name;
	struct context_sample c;

	if (s->where & WHERE_COPIED)
		return CONTEXT_WISH_NOTHING;
	c = context_of(a, p, s, sum->image, sum->offset, who);
	return contexts_sample(a->contexts, &c, s->count, ask);
}

/* ---- stacks ---- */

static uint32_t place_frame(void *arg, uint64_t pc, uint64_t *offset)
{
	return journey_place(arg, pc, offset);
}

uint64_t attribution_stack(
	struct attribution *a, const struct driver_stack *s, const uint8_t *bytes)
{
	struct journey j = journey_of(a, (pid_t)s->pid, s->time);
	struct sample sample = {.time = s->time,
		.ring = !s->base,
		.event = s->tag & DRIVER_TAG_EVENT,
		.kernel = s->tag & DRIVER_TAG_KERNEL,
		.where = s->context.where,
		.user = s->context.user};
	uint64_t offset;
	uint32_t image = journey_place(&j, s->pc, &offset);

	if (!a->contexts)
		return 0;
	memcpy(sample.caller, s->context.caller, sizeof sample.caller);
	return contexts_stack(a->contexts,
		&(struct context_stack){.sample = context_of(a, j.p, &sample, image, offset, j.who),
			.stack = s,
			.bytes = bytes,
			.place = place_frame,
			.arg = &j});
}

void attribution_path(
	struct attribution *a, const struct sample *s, const struct attribution_path *path)
{
	struct journey j = journey_of(a, s->pid, s->time);
	uint32_t program = program_of(a, j.p);
	uint64_t offset;

	if (!a->contexts)
		return;
	/* Threads of the kernel have no program. */
	if (program == IMAGE_NUMBER_UNKNOWN && s->kernel)
		program = journey_place(&j, s->pc, &offset);
	contexts_path(a->contexts, &(struct context_path){.program = program,
					   .who = j.who | (uint32_t)s->event << SUM_EVENT_SHIFT,
					   .pcs = path->pcs,
					   .n = path->n,
					   .stack = path->stack,
					   .place = place_frame,
					   .arg = &j});
}

size_t attribution_steps(const struct attribution *a, const struct stack_step **out)
{
	return a->contexts ? contexts_steps(a->contexts, out) : 0;
}

bool attribution_contexts(const struct attribution *a, struct contexts_statistics *out)
{
	if (a->contexts)
		contexts_statistics(a->contexts, out);
	return a->contexts;
}

int attribution_load(struct attribution *a, struct store *s, struct err *e)
{
	return a->contexts ? contexts_load(a->contexts, s, e) : 0;
}
