#include "collect/sampler_tally.h"

#include "collect/sampler.h"

#include <stddef.h>
#include <stdint.h>

struct tally_count {
	uint64_t pc;
	int32_t pid, tid;
	uint32_t generation, cpu, cgroup;
	uint8_t event, kernel, pad[2];
	uint64_t time, count; /* the key ends before this */
};

void tally_init(struct tally *t)
{
	hmap_init(&t->counts, sizeof(struct tally_count), offsetof(struct tally_count, time));
}

void tally_deinit(struct tally *t)
{
	hmap_deinit(&t->counts);
}

void tally_add(struct tally *t, const struct sample *s)
{
	struct tally_count key = {.pc = s->pc,
		.pid = s->pid,
		.tid = s->tid,
		.generation = s->generation,
		.cpu = s->cpu,
		.cgroup = s->cgroup,
		.event = s->event,
		.kernel = s->kernel};
	bool fresh;
	struct tally_count *c = hmap_put(&t->counts, &key, &fresh);

	if (fresh || s->time < c->time)
		c->time = s->time;
	c->count += s->count;
}

void tally_deliver(struct tally *t, void (*fn)(void *arg, const struct sample *s), void *arg)
{
	const struct tally_count *c = NULL;

	while ((c = hmap_next(&t->counts, c))) {
		struct sample s = {.pc = c->pc,
			.time = c->time,
			.pid = c->pid,
			.tid = c->tid,
			.generation = c->generation,
			.cpu = c->cpu,
			.cgroup = c->cgroup,
			.event = c->event,
			.kernel = c->kernel};

		/* A count is handed over in pieces when 32 bits do not hold it. */
		for (uint64_t left = c->count; left; left -= s.count) {
			s.count = left < UINT32_MAX ? left : UINT32_MAX;
			fn(arg, &s);
		}
	}
	hmap_clear(&t->counts);
}
