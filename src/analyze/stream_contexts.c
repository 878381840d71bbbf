#include "analyze/stream_contexts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/burst_stacks.h"
#include "base/err.h"
#include "base/hmap.h"
#include "base/mem.h"

#define FRAMES_MOST 256  /* of a path: recursion may be deep */
#define JOINED_MOST 2000 /* contexts of a stream; of more, none is part of another */

/* A path by a hash of it, of one stream. */
struct seen {
	uint64_t stream, hash;
	uint32_t context; /* in the stream's list */
};

typedef VEC(struct stream_context) context_list;

struct stream_contexts {
	context_list *of; /* by stream */
	size_t n;
	struct hmap seen;
	struct burst_stacks stacks;
	struct arena arena;
	bool calls;
};

/* ---- occurrences ---- */

/* The innermost frame that is common to the references of an occurrence. */
static uint32_t common_frame(struct burst_stacks *s, const struct trace_site *sites,
	const struct trace_burst *b, const struct streams_occurrence *o)
{
	uint32_t frame = s->of.p[o->first];

	for (size_t i = o->first; i <= o->last && frame != BURST_NO_FRAME; i++)
		if (trace_is_reference(sites[b->references[i].site].kind) && s->of.p[i] != frame)
			frame = burst_stacks_common(s, frame, s->of.p[i]);
	return frame;
}

/* Outermost first; returns how many. */
static uint32_t path_of(const struct burst_stacks *s, uint32_t frame, struct stream_frame *out)
{
	uint32_t n = 0;

	for (uint32_t f = frame; f != BURST_NO_FRAME && n < FRAMES_MOST; f = s->frames.p[f].caller)
		out[n++] = (struct stream_frame){.image = s->frames.p[f].image,
			.procedure = s->frames.p[f].procedure,
			.gap = s->frames.p[f].gap};
	for (uint32_t i = 0; i < n / 2; i++) {
		struct stream_frame swapped = out[i];

		out[i] = out[n - 1 - i];
		out[n - 1 - i] = swapped;
	}
	if (n)
		out[0].gap = false;
	return n;
}

static uint64_t hash_of(const struct stream_frame *frames, uint32_t n)
{
	uint64_t hash = n;

	for (uint32_t i = 0; i < n; i++) {
		uint64_t words[] = {hash, frames[i].image, frames[i].procedure, frames[i].gap};

		hash = hash_bytes(words, sizeof words);
	}
	return hash;
}

static void add(
	struct stream_contexts *c, size_t stream, const struct stream_frame *frames, uint32_t n)
{
	struct seen key = {.stream = stream, .hash = hash_of(frames, n)}, *s;
	struct stream_frame *own;
	bool fresh;

	s = hmap_put(&c->seen, &key, &fresh);
	if (fresh) {
		own = arena_alloc(&c->arena, n * sizeof *own + 1);
		memcpy(own, frames, n * sizeof *own);
		s->context = (uint32_t)c->of[stream].n;
		*vec_add(&c->of[stream]) = (struct stream_context){.frames = own, .n = n};
	}
	c->of[stream].p[s->context].occurrences++;
}

static int take_burst(void *arg, const struct trace_site *sites, const struct trace_burst *b,
	const struct streams_occurrence *list, size_t n)
{
	struct stream_contexts *c = arg;
	struct stream_frame frames[FRAMES_MOST];

	burst_stacks_read(&c->stacks, sites, b);
	c->calls |= c->stacks.calls;
	for (size_t i = 0; i < n; i++) {
		uint32_t frame = common_frame(&c->stacks, sites, b, &list[i]);

		add(c, list[i].stream, frames, path_of(&c->stacks, frame, frames));
	}
	return 0;
}

/* ---- paths that are parts of others ---- */

static bool is_same(const struct stream_frame *a, const struct stream_frame *b, bool first)
{
	return a->image == b->image && a->procedure == b->procedure && (first || a->gap == b->gap);
}

/* Whether the longer one goes on with more callers. */
static bool ends_with(const struct stream_context *longer, const struct stream_context *x)
{
	if (longer->n <= x->n || !x->n)
		return false;
	for (uint32_t i = 0; i < x->n; i++)
		if (!is_same(&longer->frames[longer->n - x->n + i], &x->frames[i], !i))
			return false;
	return true;
}

static int by_length(const void *a, const void *b)
{
	const struct stream_context *x = a, *y = b;

	return x->n < y->n ? -1 : x->n > y->n;
}

static int by_occurrences(const void *a, const void *b)
{
	const struct stream_context *x = a, *y = b;

	if (x->occurrences != y->occurrences)
		return x->occurrences > y->occurrences ? -1 : 1;
	if (x->n != y->n)
		return x->n < y->n ? -1 : 1;
	for (uint32_t i = 0; i < x->n; i++)
		if (x->frames[i].procedure != y->frames[i].procedure)
			return x->frames[i].procedure < y->frames[i].procedure ? -1 : 1;
	return 0;
}

/* The only one of the next longer ones that ends as it does; NULL: there is none, or several. */
static struct stream_context *only_longer(context_list *list, size_t at)
{
	struct stream_context *found = NULL;

	for (size_t i = at + 1; i < list->n; i++) {
		if (!ends_with(&list->p[i], &list->p[at]))
			continue;
		if (found && !ends_with(&list->p[i], found))
			return NULL;
		if (!found)
			found = &list->p[i];
	}
	return found;
}

/* From the shortest on, so that what is known least is handed on to what is known best. */
static void join(context_list *list)
{
	size_t n = 0;

	vec_sort(list, by_length);
	for (size_t i = 0; list->n <= JOINED_MOST && i < list->n; i++) {
		struct stream_context *longer = only_longer(list, i);

		if (longer) {
			longer->occurrences += list->p[i].occurrences;
			list->p[i].occurrences = 0;
		}
	}
	for (size_t i = 0; i < list->n; i++)
		if (list->p[i].occurrences)
			list->p[n++] = list->p[i];
	list->n = n;
	vec_sort(list, by_occurrences);
}

/* ---- from outside ---- */

int stream_contexts_create(struct streams *s, struct stream_contexts **out, struct err *e)
{
	struct stream_contexts *c = xcalloc(1, sizeof *c);
	const struct stream *list;
	int rc;

	c->n = streams_all(s, &list);
	c->of = xcalloc(c->n + 1, sizeof *c->of);
	hmap_init(&c->seen, sizeof(struct seen), offsetof(struct seen, context));
	rc = streams_each_occurrence(s, take_burst, c, e);
	if (!rc && !c->calls)
		rc = err_set(e, -ENOENT,
			"no calls in these bursts; 'culprit record --bursts --payload refs+calls "
			"-- COMMAND' takes them along");
	for (size_t i = 0; i < c->n; i++)
		join(&c->of[i]);
	if (rc)
		stream_contexts_destroy(c);
	else
		*out = c;
	return rc;
}

void stream_contexts_destroy(struct stream_contexts *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->n; i++)
		vec_deinit(&c->of[i]);
	free(c->of);
	hmap_deinit(&c->seen);
	burst_stacks_deinit(&c->stacks);
	arena_deinit(&c->arena);
	free(c);
}

size_t stream_contexts_of(
	const struct stream_contexts *c, size_t stream, const struct stream_context **out)
{
	*out = c->of[stream].p;
	return c->of[stream].n;
}
