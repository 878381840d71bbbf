#include "analyze/stream_cut.h"

#include <stdbool.h>
#include <stdlib.h>

#include "analyze/grammar.h"
#include "base/mem.h"
#include "base/vec.h"

#define STRETCH      (UINT32_C(1) << 20) /* is cut anyway: memory has an end */
#define AROUND       2                   /* references on either side that tell a place */
#define PAGE         4096
#define NO_BEGINNING (UINT64_C(1) << 63)

struct stream_cut {
	const struct stream_numbers *numbers;
	uint32_t shortest, longest;
	stream_piece_fn *fn;
	void *arg;
	VEC(uint32_t) text;
	uint64_t *site;  /* by reference: a hash of its instruction */
	uint64_t *order; /* of the place before it */
	/* By place, 0: none. */
	uint32_t *link;            /* the last before it that is not more */
	uint32_t *before, *behind; /* the nearest that are less */
};

/* ---- the order of places ---- */

static uint64_t mix(uint64_t hash, uint64_t with)
{
	hash = (hash ^ with) * 0x9e3779b97f4a7c15u;
	return hash ^ hash >> 29;
}

/* Where code goes back or to another procedure something begins: a turn of a loop, say. */
static bool begins(const struct trace_site *before, const struct trace_site *site)
{
	return before->image != site->image || before->procedure != site->procedure ||
	       before->at >= site->at;
}

/*
 * By instructions first, which other runs have, too; a walk by one instruction over many objects is
 * cut by where these are in their pages, which is the same in most runs.
 */
static void order_places(struct stream_cut *c)
{
	const struct trace_site *before = NULL;
	uint32_t n = (uint32_t)c->text.n;

	for (uint32_t i = 0; i < n; i++) {
		const struct stream_reference *r = stream_numbers_at(c->numbers, c->text.p[i]);

		c->site[i] = mix(mix(1, r->site.image), r->site.at);
		c->order[i] = mix(2, r->address % PAGE) >> 40;
		if (before && !begins(before, &r->site))
			c->order[i] |= NO_BEGINNING;
		before = &r->site;
	}
	for (uint32_t i = 0; i < n; i++) {
		uint64_t hash = 3;

		for (uint32_t k = i < AROUND ? 0 : i - AROUND; k < i + AROUND && k < n; k++)
			hash = mix(hash, c->site[k]);
		c->order[i] |= hash >> 25 << 24;
	}
}

/* For each place that a stretch may be cut at, the one before and the one behind that are less. */
static void find_less(struct stream_cut *c, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++) {
		uint32_t k = i > from ? i - 1 : 0;

		for (; k && c->order[k] > c->order[i]; k = c->link[k])
			c->behind[k] = i;
		c->link[i] = k;
		c->before[i] = k && c->order[k] == c->order[i] ? c->before[k] : k;
		c->behind[i] = 0;
	}
}

static bool is_least(const struct stream_cut *c, uint32_t i)
{
	return (!c->before[i] || i - c->before[i] > c->longest) &&
	       (!c->behind[i] || c->behind[i] - i > c->longest);
}

/* ---- pieces ---- */

static uint32_t least_place(const struct stream_cut *c, uint32_t from, uint32_t to)
{
	uint32_t best = from;

	for (uint32_t i = from + 1; i <= to; i++)
		if (c->order[i] < c->order[best])
			best = i;
	return best;
}

/* Of what is too long the right part is the same again. */
static void cut_further(struct stream_cut *c, uint32_t from, uint32_t to)
{
	while (to - from > c->longest && to - from >= 2 * c->shortest) {
		uint32_t at = least_place(c, from + c->shortest, to - c->shortest);

		cut_further(c, from, at);
		from = at;
	}
	if (to - from >= c->shortest && to - from <= c->longest)
		c->fn(c->arg, c->text.p + from, to - from);
}

static void cut_stretch(struct stream_cut *c)
{
	uint32_t n = (uint32_t)c->text.n, from = 0;

	if (n < c->shortest)
		return;
	order_places(c);
	if (n > c->longest && n >= 2 * c->shortest) {
		find_less(c, c->shortest, n - c->shortest + 1);
		for (uint32_t i = c->shortest; i <= n - c->shortest; i++) {
			if (!is_least(c, i) || i - from < c->shortest)
				continue;
			cut_further(c, from, i);
			from = i;
		}
	}
	cut_further(c, from, n);
}

void stream_cut_add(struct stream_cut *c, uint32_t symbol)
{
	if (symbol != GRAMMAR_CUT)
		*vec_add(&c->text) = symbol;
	if (symbol != GRAMMAR_CUT && c->text.n < STRETCH)
		return;
	cut_stretch(c);
	c->text.n = 0;
}

struct stream_cut *stream_cut_create(const struct stream_numbers *numbers, uint32_t shortest,
	uint32_t longest, stream_piece_fn *fn, void *arg)
{
	struct stream_cut *c = xcalloc(1, sizeof *c);

	*c = (struct stream_cut){.numbers = numbers,
		.shortest = shortest,
		.longest = longest,
		.fn = fn,
		.arg = arg,
		.site = xcalloc(STRETCH, sizeof *c->site),
		.order = xcalloc(STRETCH, sizeof *c->order),
		.link = xcalloc(STRETCH, sizeof *c->link),
		.before = xcalloc(STRETCH, sizeof *c->before),
		.behind = xcalloc(STRETCH, sizeof *c->behind)};
	return c;
}

void stream_cut_destroy(struct stream_cut *c)
{
	if (!c)
		return;
	vec_deinit(&c->text);
	free(c->site);
	free(c->order);
	free(c->link);
	free(c->before);
	free(c->behind);
	free(c);
}
