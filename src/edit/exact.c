#include "edit/exact.h"

#include "base/err.h"
#include "edit/chords.h"
#include "edit/counts.h"
#include "edit/endings.h"
#include "edit/exact_loops.h"
#include "edit/exact_map.h"
#include "edit/exact_model.h"
#include "edit/guide.h"
#include "edit/runtime.h"
#include "edit/snippet.h"
#include "edit/threads.h"
#include "isa/decode.h"
#include "rt/routines.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE 4096

struct exact {
	struct snippet *count;
	struct snippet *ends; /* where the process is about to end */
	struct snippet *begin[SNIPPET_VARIABLES], *step[SNIPPET_VARIABLES], *end[SNIPPET_VARIABLES];
	struct snippet *less[SNIPPET_VARIABLES]; /* begins, where a register counts by itself */
	struct exact_options options;
	uint64_t counters, bytes; /* where they are, how much */
	struct threads threads;
};

/* What is to be counted, until it is known where the counters are. */
struct insertion {
	struct edit_function *function;
	enum exact_how how;
	uint32_t where;
	uint8_t held; /* the variable that it is counted in, EXACT_IN_MEMORY */
};

/* What that needs where its loop is entered and left. */
struct holding {
	struct edit_function *function;
	uint64_t counter;
	struct exact_hold hold;
};

struct instrumenting {
	struct exact_scene scene;
	struct exact_map_writer writer;
	struct exact_function model;
	exact_places places;
	VEC(struct insertion) insertions; /* by number of the counter */
	VEC(struct holding) holdings;
	exact_holds holds; /* of one function */
	VEC(struct graph_edge) edges;
	VEC(double) weights;
	const struct guide *guide;
	VEC(double) taken; /* by link: how often it was, by the guide, or likely is */
	struct exact_alone alone;
	VEC(bool) loses; /* by node: flow may be lost there */
};

/* ---- one function ---- */

/*
 * Calls may not come back; all else loses nothing, unless a signal ends it: the callers' books show
 * that. What leaves for good by a jump is not expected back.
 */
static void find_losses(struct instrumenting *in)
{
	const struct exact_function *f = &in->model;

	vec_reserve(&in->loses, exact_outside(f) + 1);
	memset(in->loses.p, 0, exact_outside(f) + 1);
	vec_each (l, &f->links)
		if (l->kind == EXACT_LINK_INSIDE && l->from < f->blocks.n)
			in->loses.p[l->from] = f->blocks.p[l->from].call != EXACT_CALLS_NOBODY;
}

#define HARDLY                                                                            \
	1e-9 /* guesses, against what was counted: among what was never taken they decide \
	      */

static void weigh(struct instrumenting *in, struct edit_function *function)
{
	vec_reserve(&in->taken, in->places.n + 1);
	bool guided = in->guide && guide_weights(in->guide, &in->model, in->taken.p);

	function->seldom = in->guide && !guided;
	for (size_t i = 0; i < in->places.n; i++) {
		struct exact_place *p = &in->places.p[i];

		if (guided)
			p->weight = in->taken.p[i] * p->price + HARDLY * p->weight;
		else
			in->taken.p[i] = p->price > 0 ? p->weight / p->price : 0;
	}
}

static int choose(struct instrumenting *in, struct edit_function *function)
{
	struct exact_function *f = &in->model;
	struct chords chords;
	struct graph g;
	int rc;

	in->edges.n = in->weights.n = 0;
	weigh(in, function);
	find_losses(in);
	for (size_t i = 0; i < f->links.n; i++) {
		const struct exact_place *place = &in->places.p[i];

		*vec_add(&in->edges) = (struct graph_edge){f->links.p[i].from, f->links.p[i].to};
		*vec_add(&in->weights) = place->how == EXACT_NOWHERE ? -1 : place->weight;
	}
	graph_init(&g, exact_outside(f) + 1, in->edges.p, (uint32_t)in->edges.n);
	rc = chords_choose(&chords, &g, exact_outside(f), in->weights.p, in->loses.p);
	for (size_t i = 0; i < f->links.n && !rc; i++)
		f->links.p[i].counted = chords.counted[i];
	if (!rc)
		chords_deinit(&chords);
	graph_deinit(&g);
	return rc;
}

static void insert_all(struct instrumenting *in, struct edit_function *f)
{
	uint8_t *held = exact_hold_loops(
		in->scene.edit, f, &in->model, &in->places, &in->alone, in->taken.p, &in->holds);
	uint64_t *counter = xcalloc(in->model.links.n + 1, sizeof *counter);
	for (size_t i = 0; i < in->model.links.n; i++) {
		struct exact_link *l = &in->model.links.p[i];
		const struct exact_place *p = &in->places.p[i];

		counter[i] = in->insertions.n;
		l->held = held[i] != EXACT_IN_MEMORY;
		l->step = l->held ? p->step : 0;
		if (l->counted)
			*vec_add(&in->insertions) = (struct insertion){
				f, l->step ? EXACT_NOWHERE : p->how, p->where, held[i]};
	}
	vec_each (hold, &in->holds)
		*vec_add(&in->holdings) = (struct holding){f, counter[hold->link], *hold};
	free(counter);
	free(held);
}

static void take_function(struct instrumenting *in, struct edit_function *f)
{
	struct loops loops;

	loops_init(&loops, &f->flow->graph, f->flow->entry_node);
	exact_alone_find(&in->alone, f, &loops);
	exact_model(&in->scene, f, &in->model, &in->places, &loops, &in->alone);
	if (choose(in, f)) {
		f->chosen = false; /* what cannot be counted need not be moved */
	} else {
		insert_all(in, f);
		exact_map_add(&in->writer, &in->model);
	}
	exact_alone_deinit(&in->alone);
	loops_deinit(&loops);
}

/* ---- all of them ---- */

static void insert(struct exact *x, struct edit *e, const struct insertion *i, uint64_t counter)
{
	uint64_t at[] = {x->counters + counter * RT_COUNTER, x->threads.at};
	const struct snippet *s = i->held == EXACT_IN_MEMORY ? x->count : x->step[i->held];

	if (i->how == EXACT_AT_ENTRY)
		edit_at_entry(e, i->function, s, at);
	else if (i->how == EXACT_ON_EDGE)
		edit_on_edge(e, i->function, i->where, s, at);
	else if (i->how == EXACT_BEFORE)
		edit_before(e, i->function, i->where, s, at);
}

static void insert_holding(struct exact *x, struct edit *e, const struct holding *h)
{
	uint64_t at[] = {x->counters + h->counter * RT_COUNTER, x->threads.at};
	unsigned v = h->hold.variable;
	const struct snippet *begin = h->hold.turns ? x->less[v] : x->begin[v];

	edit_on_edge(e, h->function, h->hold.edge, h->hold.begins ? begin : x->end[v], at);
}

static int make_snippets(struct exact *x, struct err *e)
{
	const char *atomic = x->options.atomic ? "atomic " : "";
	const char *find = x->options.per_thread ? THREADS_FIND("t0", "a1") : "";
	char text[128];
	int rc = 0;

	const char *where = x->options.per_thread ? "[a0 + t0]" : "[a0]";
	snprintf(text, sizeof text, "%s%s%s += 1", find, atomic, where);
	rc = snippet_create(text, &x->count, e);
	for (unsigned v = 0; v < SNIPPET_VARIABLES && !rc; v++) {
		snprintf(text, sizeof text, "v%u = 0", v);
		rc = snippet_create(text, &x->begin[v], e);
		snprintf(text, sizeof text, "v%u += 1", v);
		rc = rc ? rc : snippet_create(text, &x->step[v], e);
		snprintf(text, sizeof text, "%s%s%s += v%u", find, atomic, where, v);
		rc = rc ? rc : snippet_create(text, &x->end[v], e);
		snprintf(text, sizeof text, "%s%s%s -= v%u", find, atomic, where, v);
		rc = rc ? rc : snippet_create(text, &x->less[v], e);
	}
	return rc ? rc : snippet_create("call a0()", &x->ends, e);
}

/* ---- how processes end ---- */

/* exit is noticed by itself: it runs what the dynamic linker has to run last. */
static bool ends_process(struct image *im, const struct flow_insn *i)
{
	static const char *const names[] = {"_exit", "_Exit", "quick_exit"};
	const struct procedure *p =
		i->kind == INSN_CALL ? image_procedure_at(im, flow_target(i)) : NULL;

	for (size_t n = 0; p && p->name && n < sizeof names / sizeof *names; n++)
		if (p->source == PROCEDURE_PLT && strcspn(p->name, "@") == strlen(names[n]) &&
			!strncmp(p->name, names[n], strlen(names[n])))
			return true;
	return false;
}

static void mark_ends(struct exact *x, struct edit *e)
{
	const uint64_t arguments[] = {RT_CALL_ENDED};
	struct edit_function **all;
	size_t n = edit_functions(e, &all);

	runtime_header(e)->ends = edit_data(e, sizeof(uint64_t), 8);
	for (size_t i = 0; i < n; i++)
		for (uint32_t k = 0; all[i]->chosen && !all[i]->refused && k < all[i]->flow->ninsns;
			k++)
			if (ends_process(edit_image(e), &all[i]->flow->insns[k]))
				edit_before(e, all[i], k, x->ends, arguments);
}

bool exact_all_ended(const struct counts *c)
{
	const uint64_t *end = c->p + c->bytes / RT_COUNTER;

	return end[-RT_ENDS_STARTED] && end[-RT_ENDS_STARTED] == end[-RT_ENDS_ENDED];
}

/* ---- everything ---- */

static uint64_t bytes_of(uint64_t counters)
{
	return counters ? (counters + RT_ENDS) * RT_COUNTER : 0;
}

static void fill_header(const struct exact *x, struct rt_header *h)
{
	h->counters = x->counters;
	h->size = x->bytes;
	strcpy(h->path, x->options.counts);
}

static void instrument(struct exact *x, struct edit *edit, struct buf *map)
{
	struct instrumenting in = {.scene = {.edit = edit}, .guide = x->options.guide};
	struct image *im = edit_image(edit);
	_cleanup_free_ char *path = realpath(image_path(im), NULL);

	in.scene.n = edit_functions(edit, &in.scene.functions);
	in.scene.never = endings_find(in.scene.functions, in.scene.n);
	in.scene.has_library = exact_has_library(&in.scene);
	for (size_t i = 0; i < in.scene.n; i++)
		if (in.scene.functions[i]->chosen && !in.scene.functions[i]->refused)
			take_function(&in, in.scene.functions[i]);
	x->bytes = (bytes_of(in.insertions.n) + PAGE - 1) / PAGE * PAGE;
	x->counters = edit_data(edit, x->bytes, PAGE);
	if (x->options.per_thread) {
		threads_check(&x->threads, edit);
		threads_finish(&x->threads, edit, x->bytes);
	}
	if (x->bytes)
		mark_ends(x, edit);
	for (size_t i = 0; i < in.insertions.n; i++)
		insert(x, edit, &in.insertions.p[i], i);
	vec_each (h, &in.holdings)
		insert_holding(x, edit, h);
	exact_map_finish(&in.writer, image_id(im), path ? path : image_path(im), map);
	free(in.scene.never);
	exact_function_deinit(&in.model);
	vec_deinit(&in.places);
	vec_deinit(&in.insertions);
	vec_deinit(&in.holdings);
	vec_deinit(&in.holds);
	vec_deinit(&in.edges);
	vec_deinit(&in.weights);
	vec_deinit(&in.taken);
	vec_deinit(&in.loses);
}

int exact_create(struct edit *edit, const struct exact_options *o, struct exact **out,
	struct buf *map, struct err *e)
{
	struct exact *x;
	int rc;

	if (o->counts[0] != '/' || strlen(o->counts) >= RT_PATH)
		return err_set(e, -EINVAL, "%s: counts need a file with an absolute, shorter path",
			o->counts);
	x = xcalloc(1, sizeof *x);
	x->options = *o;
	x->options.counts = xstrdup(o->counts);
	rc = make_snippets(x, e);
	if (!rc && o->per_thread)
		rc = threads_begin(&x->threads, edit, e);
	if (rc) {
		exact_destroy(x);
		return rc;
	}
	instrument(x, edit, map);
	fill_header(x, runtime_header(edit));
	edit_describe(edit, "exact", (uint64_t[]){x->counters, x->bytes}, 2 * sizeof(uint64_t));
	*out = x;
	return 0;
}

void exact_destroy(struct exact *x)
{
	if (!x)
		return;
	snippet_destroy(x->count);
	threads_deinit(&x->threads);
	snippet_destroy(x->ends);
	for (unsigned v = 0; v < SNIPPET_VARIABLES; v++) {
		snippet_destroy(x->begin[v]);
		snippet_destroy(x->step[v]);
		snippet_destroy(x->end[v]);
		snippet_destroy(x->less[v]);
	}
	free((char *)x->options.counts);
	free(x);
}

uint64_t exact_bytes(const struct exact *x)
{
	return x->bytes;
}

/* ---- as a tool ---- */

static int apply(const void *options, struct edit *edit, const char *counts, void **state,
	struct buf *map, struct err *e)
{
	struct exact_options o = *(const struct exact_options *)options;
	struct exact *x = NULL;
	int rc;

	o.counts = counts;
	rc = exact_create(edit, &o, &x, map, e);
	*state = x;
	return rc;
}

static void release(void *state)
{
	exact_destroy(state);
}

static int outline(const struct buf *map, struct edit_outline *out)
{
	struct exact_map_reader r;
	int rc = exact_map_open(&r, map->p, map->n);

	if (!rc)
		*out = (struct edit_outline){bytes_of(r.counters), r.path};
	return rc;
}

void exact_tool(const struct exact_options *o, struct edit_tool *out)
{
	*out = (struct edit_tool){
		.options = o, .apply = apply, .release = release, .outline = outline};
	snprintf(out->name, sizeof out->name, "exact%s%s", o->atomic ? "-atomic" : "",
		o->per_thread ? "-thread" : "");
	if (o->guide && guide_hash(o->guide))
		snprintf(out->name + strlen(out->name), sizeof out->name - strlen(out->name),
			"-refined-%016" PRIx64, guide_hash(o->guide));
}
