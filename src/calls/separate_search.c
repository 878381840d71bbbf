/*
 * The searches. Greedy: the heaviest place that several paths share is taken first, and of all that
 * can be changed in what its paths differ in, what makes the most paths and samples unique. Random:
 * the paper's 5.1.1.
 */
#include "calls/separate_internal.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

enum {
	STEP = 16,            /* the stack's alignment */
	CANDIDATES = 16,      /* changes that are tried for a place */
	PASSES = 6,           /* over all places */
	RIVALS = 4,           /* paths of a place that are compared with its heaviest */
	STUCK_SOME = 100,     /* the paper's: a change for the worse is taken then, */
	STUCK_FOR_GOOD = 2000 /* and this is the end */
};
/* Sizes that are tried; larger ones are for stacks with much room. */
static const uint16_t sizes[] = {
	0, 16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 208, 272, 352, 464, 608, 800, 1040};
enum { SIZES = sizeof sizes / sizeof *sizes };

#define BUDGET  160000000ull
#define GAIN    1e-9
#define NOTHING (-1e9)

struct search {
	struct separation s;
	const struct separate_options *options;
	enum separate_method method;
	uint64_t budget, tries, state;
	double enough;  /* a gain that is taken at once */
	int32_t *tally; /* by function or call: how much more often the one has it */
	VEC(uint32_t) touched;
};

static bool is_over(const struct search *x)
{
	return x->s.looks >= x->budget;
}

/* ---- places that are shared ---- */

struct shared {
	uint32_t spot; /* its heaviest */
	double weight;
};
typedef VEC(struct shared) shared_list;

static int by_weight(const void *a, const void *b)
{
	const struct shared *x = a, *y = b;

	if (x->weight != y->weight)
		return x->weight > y->weight ? -1 : 1;
	return x->spot < y->spot ? -1 : x->spot > y->spot;
}

static double worth(const struct separation *s, const struct place *p)
{
	return (s->all > 0 ? p->weight / s->all : 0) + (double)p->n / s->in->n;
}

static uint32_t heaviest(const struct separation *s, const struct place *p)
{
	uint32_t best = p->first;

	for (uint32_t i = p->first; i != SEPARATE_NONE; i = s->spots[i].next)
		if (s->spots[i].weight > s->spots[best].weight ||
			(s->spots[i].weight == s->spots[best].weight && i < best))
			best = i;
	return best;
}

static void find_shared(const struct separation *s, shared_list *out)
{
	out->n = 0;
	for (const struct place *p = s->places; p < s->places + s->nplaces; p++)
		if (p->n && !p->alone)
			*vec_add(out) = (struct shared){heaviest(s, p), worth(s, p)};
	vec_sort(out, by_weight);
}

static const struct place *place_of(const struct separation *s, uint32_t spot)
{
	return &s->places[s->spots[spot].place];
}

/* ---- in what two paths differ ---- */

static void count(struct search *x, uint32_t what, int32_t by)
{
	if (what == SEPARATE_NONE)
		return;
	if (!x->tally[what])
		*vec_add(&x->touched) = what;
	x->tally[what] += by;
}

/* The frames that callers of a context have made, or the calls that led to it. */
static void count_path(struct search *x, uint32_t spot, int32_t by)
{
	const struct spot *all = x->s.spots;

	if (x->method != SEPARATE_PAD) {
		for (; spot != SEPARATE_NONE; spot = all[spot].caller)
			count(x, all[spot].call, by);
		return;
	}
	while ((spot = all[spot].caller) != SEPARATE_NONE)
		if (!all[spot].copy)
			count(x, all[spot].function, by);
}

static bool is_possible(const struct search *x, uint32_t what)
{
	const struct separate_input *in = x->s.in;

	if (x->method == SEPARATE_PAD)
		return in->pads[what];
	return x->method == SEPARATE_WRAP ? in->calls[what].wraps : in->calls[what].clones;
}

static int by_number(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Leaves in `touched` what differs and can be changed; all tallies are 0 again. */
static void compare(struct search *x, uint32_t one, uint32_t other)
{
	size_t n = 0;

	x->touched.n = 0;
	count_path(x, one, 1);
	count_path(x, other, -1);
	vec_sort(&x->touched, by_number);
	for (size_t i = 0; i < x->touched.n; i++) {
		uint32_t what = x->touched.p[i];
		bool differs = x->tally[what];

		x->tally[what] = 0;
		if (differs && is_possible(x, what))
			x->touched.p[n++] = what;
	}
	x->touched.n = n;
}

/* ---- trying ---- */

/* What is left of a try: at most two knobs, as a call that goes to a copy may give it a size. */
struct attempt {
	struct knob knobs[2];
	unsigned n;
	double gain;
};

static void put_knobs(struct search *x, struct attempt *a)
{
	bool deep = false;

	for (unsigned i = 0; i < a->n; i++) {
		uint32_t old = separation_get(&x->s, &a->knobs[i]);

		separation_set(&x->s, &a->knobs[i]);
		a->knobs[i].value = old; /* so that putting them again takes them back */
		deep = deep || x->s.too_deep;
	}
	if (a->n == 2) {
		struct knob k = a->knobs[0];
		a->knobs[0] = a->knobs[1];
		a->knobs[1] = k;
	}
	x->s.too_deep = deep;
}

/* The gain of a change, which is taken back; NOTHING if the stack would be too deep. */
static double try_knobs(struct search *x, const struct attempt *a)
{
	double before = separation_score(&x->s), gain;
	struct attempt back = *a;

	x->tries++;
	put_knobs(x, &back);
	gain = x->s.too_deep ? NOTHING : separation_score(&x->s) - before;
	put_knobs(x, &back);
	return gain;
}

static bool has_copy(const struct separation *s, uint32_t function)
{
	for (uint32_t i = 0; i < s->in->ncalls; i++)
		if (s->in->calls[i].callee == function && s->cloned[i])
			return true;
	return false;
}

static struct attempt make_attempt(const struct search *x, uint32_t what, uint32_t bytes)
{
	struct attempt a = {.n = 1};
	uint32_t callee;

	a.knobs[0] = (struct knob){.method = x->method, .number = what, .value = bytes};
	if (x->method != SEPARATE_CLONE)
		return a;
	callee = x->s.in->calls[what].callee;
	a.knobs[0].value = !x->s.cloned[what];
	if (has_copy(&x->s, callee)) /* its size is settled */
		return a;
	a.knobs[a.n++] = a.knobs[0];
	a.knobs[0] = (struct knob){SEPARATE_CLONE, callee, true, bytes};
	return a;
}

/* Tries sizes for one thing that can be changed. */
static void try_sizes(struct search *x, uint32_t what, struct attempt *best)
{
	const struct separate_input *in = x->s.in;
	bool clone = x->method == SEPARATE_CLONE;
	uint32_t callee = clone ? in->calls[what].callee : 0;
	bool sized = !clone || (in->pads[callee] && !has_copy(&x->s, callee));

	for (uint32_t v = 0; v < (sized ? SIZES : 1) && !is_over(x); v++) {
		struct attempt a = make_attempt(x, what, sizes[v]);

		if (!clone && separation_get(&x->s, &a.knobs[0]) == sizes[v])
			continue;
		a.gain = try_knobs(x, &a);
		if (a.gain > best->gain + GAIN)
			*best = a;
		if (a.gain == NOTHING || best->gain >= x->enough)
			break;
	}
}

/* The cheapest first: those that move least. */
static int by_occurrences(const void *a, const void *b, void *of)
{
	const uint32_t *first = of;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	uint32_t nx = first[x + 1] - first[x], ny = first[y + 1] - first[y];

	if (nx != ny)
		return nx < ny ? -1 : 1;
	return x < y ? -1 : x > y;
}

static void sort_candidates(struct search *x)
{
	bool frames = x->method == SEPARATE_PAD;

	if (x->touched.n)
		qsort_r(x->touched.p, x->touched.n, sizeof *x->touched.p, by_occurrences,
			frames ? x->s.of_function.first : x->s.of_call.first);
}

/* One change for the paths of a place; false: none helps. */
static bool improve(struct search *x, uint32_t spot)
{
	const struct place *p = place_of(&x->s, spot);
	struct attempt best = {.gain = 0};
	uint32_t path = x->s.spots[spot].path, rivals[RIVALS], n = 0;

	for (uint32_t i = p->first; i != SEPARATE_NONE && n < RIVALS; i = x->s.spots[i].next)
		if (x->s.spots[i].path != path)
			rivals[n++] = i;
	x->enough = worth(&x->s, p) / 2;
	for (uint32_t r = 0; r < n && best.gain < x->enough; r++) {
		compare(x, spot, rivals[r]);
		sort_candidates(x);
		for (size_t i = 0;
			i < x->touched.n && i < CANDIDATES && best.gain < x->enough && !is_over(x);
			i++)
			try_sizes(x, x->touched.p[i], &best);
	}
	if (best.gain <= GAIN)
		return false;
	put_knobs(x, &best);
	return true;
}

static void improve_all(struct search *x)
{
	shared_list shared = {0};
	bool better = true;

	for (unsigned pass = 0; better && pass < PASSES; pass++) {
		better = false;
		find_shared(&x->s, &shared);
		vec_each (place, &shared) {
			while (!is_over(x) && !place_of(&x->s, place->spot)->alone &&
				improve(x, place->spot))
				better = true;
		}
	}
	vec_deinit(&shared);
}

/* Takes back what was no use after all. */
static void prune(struct search *x, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct attempt a = {.n = 1, .knobs[0] = {.method = x->method, .number = i}};

		if (separation_get(&x->s, &a.knobs[0]) && try_knobs(x, &a) > -GAIN)
			put_knobs(x, &a);
	}
}

/* ---- the paper's search ---- */

static uint32_t draw(struct search *x, size_t n)
{
	x->state = x->state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((x->state >> 33) % n);
}

static bool are_apart(const struct separation *s, uint32_t a, uint32_t b)
{
	return place_of(s, a) != place_of(s, b);
}

struct altered {
	struct knob old[CANDIDATES];
	unsigned n;
	bool deep;
};

/* Its step 3: the first function by 16 bytes, the second by 32, until the paths are apart. */
static void alter(struct search *x, uint32_t one, uint32_t other, struct altered *a)
{
	*a = (struct altered){0};
	compare(x, one, other);
	for (size_t i = 0; i < x->touched.n && a->n < CANDIDATES; i++) {
		struct knob k = {.method = SEPARATE_PAD, .number = x->touched.p[i]};

		k.value = separation_get(&x->s, &k);
		a->old[a->n++] = k;
		k.value += STEP * (uint32_t)(i + 1);
		separation_set(&x->s, &k);
		a->deep = a->deep || x->s.too_deep;
		if (are_apart(&x->s, one, other))
			break;
	}
}

static void undo(struct search *x, const struct altered *a)
{
	for (unsigned i = a->n; i-- > 0;)
		separation_set(&x->s, &a->old[i]);
}

static void set_sizes(struct search *x, const uint32_t *pad)
{
	for (uint32_t i = 0; i < x->s.in->functions; i++)
		separation_set(&x->s,
			&(struct knob){.method = SEPARATE_PAD, .number = i, .value = pad[i]});
}

/* A path that shares its place with the one, NONE when there is none any more. */
static uint32_t draw_rival(struct search *x, uint32_t one)
{
	const struct place *p = place_of(&x->s, one);
	uint32_t more = draw(x, p->n), other = SEPARATE_NONE;

	for (uint32_t i = p->first; i != SEPARATE_NONE; i = x->s.spots[i].next) {
		if (x->s.spots[i].path == x->s.spots[one].path)
			continue;
		other = i;
		if (!more--)
			break;
	}
	return other;
}

/* The best sizes that were come by are kept, since it may end with worse ones. */
static void search_randomly(struct search *x)
{
	uint32_t n = x->s.in->functions, most = x->s.paths;
	_cleanup_free_ uint32_t *best = xcalloc(n + 1, sizeof *best);
	shared_list shared = {0};
	unsigned stuck = 0, idle = 0;

	find_shared(&x->s, &shared);
	while (shared.n && idle < STUCK_FOR_GOOD && !is_over(x)) {
		uint32_t one = shared.p[draw(x, shared.n)].spot, before = x->s.paths;
		uint32_t other = draw_rival(x, one);
		struct altered a = {0};

		idle++;
		x->tries++;
		if (other == SEPARATE_NONE)
			continue;
		alter(x, one, other, &a);
		if (a.deep || !a.n || (x->s.paths <= before && ++stuck < STUCK_SOME)) {
			undo(x, &a);
			continue;
		}
		stuck = 0;
		if (x->s.paths > most) {
			most = x->s.paths;
			memcpy(best, x->s.pad, n * sizeof *best);
			idle = 0;
		}
		find_shared(&x->s, &shared);
	}
	vec_deinit(&shared);
	set_sizes(x, best);
}

/* ---- out of dead ends ---- */

/*
 * Where no single change helps any more, one of the paper's is made all the same, and the search
 * goes on from there; what comes of it is kept if it is better.
 */
static void shake(struct search *x)
{
	uint32_t n = x->s.in->functions;
	_cleanup_free_ uint32_t *best = xcalloc(n + 1, sizeof *best);
	double score = separation_score(&x->s);
	shared_list shared = {0};

	find_shared(&x->s, &shared);
	for (unsigned idle = 0; shared.n && idle < STUCK_SOME && !is_over(x); idle++) {
		uint32_t one = shared.p[draw(x, shared.n)].spot, other = draw_rival(x, one);
		struct altered a = {0};

		memcpy(best, x->s.pad, n * sizeof *best);
		if (other != SEPARATE_NONE)
			alter(x, one, other, &a);
		if (a.deep)
			undo(x, &a);
		else if (a.n)
			improve_all(x);
		if (separation_score(&x->s) <= score + GAIN) {
			set_sizes(x, best);
			continue;
		}
		score = separation_score(&x->s);
		find_shared(&x->s, &shared);
		idle = 0;
	}
	vec_deinit(&shared);
}

/* ---- the whole ---- */

static void add_change(struct separate_result *r, struct separate_change c)
{
	*vec_add(&r->changes) = c;
}

static void list_changes(const struct separation *s, struct separate_result *r)
{
	const struct separate_input *in = s->in;

	for (uint32_t i = 0; i < in->functions; i++)
		if (s->pad[i])
			add_change(r, (struct separate_change){
					      SEPARATE_PAD, i, SEPARATE_NONE, s->pad[i]});
	for (uint32_t i = 0; i < in->ncalls; i++)
		if (s->wrap[i])
			add_change(r, (struct separate_change){SEPARATE_WRAP, in->calls[i].callee,
					      in->calls[i].caller, s->wrap[i]});
	for (uint32_t i = 0; i < in->functions; i++)
		if (s->pad_copy[i] && has_copy(s, i))
			add_change(r, (struct separate_change){
					      SEPARATE_CLONE, i, SEPARATE_NONE, s->pad_copy[i]});
	for (uint32_t i = 0; i < in->ncalls; i++)
		if (s->cloned[i])
			add_change(r, (struct separate_change){SEPARATE_CLONE, in->calls[i].callee,
					      in->calls[i].caller, 0});
}

static void allow(struct search *x, unsigned part)
{
	x->budget = x->s.looks + x->options->budget / part;
}

static void search_greedily(struct search *x, struct separate_result *r)
{
	const struct separate_input *in = x->s.in;

	for (int i = 0; i < SEPARATE_METHODS; i++) {
		x->method = (enum separate_method)i;
		allow(x, 4);
		improve_all(x);
		if (i == SEPARATE_PAD) {
			allow(x, 4);
			shake(x);
		}
		allow(x, 4);
		if (i != SEPARATE_CLONE)
			prune(x, i == SEPARATE_PAD ? in->functions : in->ncalls);
		separation_state(&x->s, &r->after[i]);
	}
}

static void mark_shared(const struct separation *s, uint8_t bit, uint8_t *out)
{
	for (uint32_t i = 0; i < s->in->n; i++)
		if (!place_of(s, i)->alone)
			out[s->spots[i].number] |= bit;
}

void separate_search(const struct separate_input *in, const struct separate_options *o,
	struct separate_result *out)
{
	struct separate_options options = *o;
	struct search x = {.options = &options, .state = o->seed + 1};
	uint32_t most = in->functions > in->ncalls ? in->functions : in->ncalls;

	*out = (struct separate_result){0};
	options.budget = x.budget = o->budget ? o->budget : BUDGET;
	x.tally = xcalloc(most + 1, sizeof *x.tally);
	separation_init(&x.s, in);
	separation_state(&x.s, &out->before);
	out->shared = xcalloc(in->n + 1, sizeof *out->shared);
	mark_shared(&x.s, SHARED_BEFORE, out->shared);
	if (o->growth > 0)
		x.s.limit = (int64_t)((double)out->before.deepest * o->growth) - 1;
	if (o->random) {
		search_randomly(&x);
		for (int i = 0; i < SEPARATE_METHODS; i++)
			separation_state(&x.s, &out->after[i]);
	} else {
		search_greedily(&x, out);
	}
	list_changes(&x.s, out);
	mark_shared(&x.s, SHARED_AFTER, out->shared);
	out->extra = xcalloc(in->n + 1, sizeof *out->extra);
	for (uint32_t i = 0; i < in->n; i++)
		out->extra[x.s.spots[i].number] = x.s.spots[i].extra;
	out->tries = x.tries;
	out->looks = x.s.looks;
	separation_deinit(&x.s);
	vec_deinit(&x.touched);
	free(x.tally);
}

void separate_result_deinit(struct separate_result *r)
{
	vec_deinit(&r->changes);
	free(r->extra);
	free(r->shared);
}
