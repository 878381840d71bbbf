#include "analyze/stream_numbers.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/vec.h"

/* A run's process: numbers of its instructions, by site, + 1. */
struct space {
	uint32_t part, process;
	VEC(uint32_t) who;
};

/* In a table of open addressing; number 0: free. */
struct slot {
	uint64_t address;
	uint32_t who, number; /* the instruction; the reference, + 1 */
};

struct stream_numbers {
	VEC(struct space) spaces;
	size_t last; /* space */
	uint32_t instructions;
	struct slot *slots;
	size_t nslots;
	unsigned shift; /* of a hash, to be a slot */
	VEC(struct stream_reference) references;
};

static size_t home_of(const struct stream_numbers *n, uint64_t address, uint32_t who)
{
	return (size_t)((address ^ (uint64_t)who << 40) * 0x9e3779b97f4a7c15u >> n->shift);
}

static struct slot *find(const struct stream_numbers *n, uint64_t address, uint32_t who)
{
	size_t at = home_of(n, address, who);

	while (n->slots[at].number && (n->slots[at].address != address || n->slots[at].who != who))
		at = (at + 1) & (n->nslots - 1);
	return &n->slots[at];
}

static void grow(struct stream_numbers *n)
{
	struct slot *old = n->slots;
	size_t count = n->nslots;

	n->nslots = count ? 2 * count : 4096;
	n->shift = (unsigned)(64 - __builtin_ctzll(n->nslots));
	n->slots = xcalloc(n->nslots, sizeof *n->slots);
	for (size_t i = 0; i < count; i++)
		if (old[i].number)
			*find(n, old[i].address, old[i].who) = old[i];
	free(old);
}

static struct space *space_of(struct stream_numbers *n, uint32_t part, uint32_t process)
{
	struct space *s = n->spaces.p + n->last;

	if (n->last < n->spaces.n && s->part == part && s->process == process)
		return s;
	for (n->last = 0; n->last < n->spaces.n; n->last++) {
		s = n->spaces.p + n->last;
		if (s->part == part && s->process == process)
			return s;
	}
	*vec_add(&n->spaces) = (struct space){.part = part, .process = process};
	return n->spaces.p + n->last;
}

static uint32_t who_of(struct stream_numbers *n, struct space *s, uint32_t site)
{
	while (site >= s->who.n)
		*vec_add(&s->who) = 0;
	if (!s->who.p[site])
		s->who.p[site] = ++n->instructions;
	return s->who.p[site];
}

uint32_t stream_number(struct stream_numbers *n, const struct trace_site *sites, uint32_t part,
	const struct trace_burst *b, size_t event)
{
	const struct trace_reference *r = &b->references[event];
	uint32_t who = who_of(n, space_of(n, part, b->process), r->site);
	struct slot *slot = find(n, r->address, who);

	if (slot->number)
		return slot->number - 1;
	*vec_add(&n->references) =
		(struct stream_reference){sites[r->site], r->address, b->process, b->time};
	*slot = (struct slot){r->address, who, (uint32_t)n->references.n};
	if (n->references.n * 2 >= n->nslots)
		grow(n);
	return (uint32_t)n->references.n - 1;
}

const struct stream_reference *stream_numbers_at(const struct stream_numbers *n, uint32_t number)
{
	return &n->references.p[number];
}

struct stream_numbers *stream_numbers_create(void)
{
	struct stream_numbers *n = xcalloc(1, sizeof *n);

	grow(n);
	return n;
}

void stream_numbers_destroy(struct stream_numbers *n)
{
	if (!n)
		return;
	vec_each (s, &n->spaces)
		vec_deinit(&s->who);
	vec_deinit(&n->spaces);
	vec_deinit(&n->references);
	free(n->slots);
	free(n);
}
