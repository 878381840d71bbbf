#include "edit/disambiguate.h"

#include "base/err.h"
#include "base/hmap.h"
#include "base/mem.h"
#include "calls/gather.h"
#include "edit/edit_internal.h"
#include "edit/endings.h"
#include "edit/pad.h"
#include "edit/wrap.h"
#include "store/edges.h"
#include "store/store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define GROWTH 1.13 /* of the deepest stack; the paper's mean */

struct worker {
	struct edit *e;
	struct gathered known;
	struct edit_function **list;
	size_t n;
	uint32_t *number;   /* by function that is known: in the list; n: of another file */
	const char **fixed; /* by function that is known: why its frame must stay as it is */
	bool *pads;
	VEC(struct separate_call) calls;
	struct disambiguated *out;
};

/* ---- what can be changed ---- */

static struct edit_function *function_of(const struct worker *w, uint32_t known)
{
	return w->number[known] < w->n ? w->list[w->number[known]] : NULL;
}

static const char *judge_frame(struct worker *w, struct edit_function *f)
{
	const char *why = f->refused;
	struct pad *p = NULL;

	if (!why && !f->chosen)
		return "it was left out";
	if (!why)
		p = pad_create(w->e, (struct function *)f, 16, &why);
	pad_destroy(p);
	return why;
}

static void find_functions(struct worker *w, uint64_t image)
{
	size_t n = w->known.functions.n;

	w->number = xcalloc(n + 1, sizeof *w->number);
	w->fixed = xcalloc(n + 1, sizeof *w->fixed);
	w->pads = xcalloc(n + 1, sizeof *w->pads);
	for (size_t i = 0; i < n; i++) {
		const struct gathered_function *g = &w->known.functions.p[i];

		w->number[i] = (uint32_t)w->n;
		if (g->image == image)
			w->number[i] = (uint32_t)endings_number(w->list, w->n, g->procedure);
		if (w->number[i] == w->n) {
			w->fixed[i] = g->image == image ? "it is no function that can be edited"
							: "it is in another file";
			continue;
		}
		w->fixed[i] = judge_frame(w, w->list[w->number[i]]);
		w->pads[i] = !w->fixed[i];
		w->out->functions++;
		w->out->resizable += w->pads[i];
	}
}

static bool calls_it(const struct edit_function *f, uint32_t insn, const struct edit_function *to)
{
	const struct flow_insn *i = &f->flow->insns[insn];

	return i->kind == INSN_CALL && flow_target(i) == to->procedure->start;
}

/* What can be done to all calls from one function to another. */
static struct separate_call judge_call(struct worker *w, uint32_t caller, uint32_t callee)
{
	struct edit_function *f = function_of(w, caller), *to = function_of(w, callee);
	struct separate_call c = {.caller = caller, .callee = callee, .wraps = true};
	bool any = false;

	if (f->refused || !f->chosen)
		return (struct separate_call){0};
	for (uint32_t i = 0; i < f->flow->ninsns; i++) {
		if (!calls_it(f, i, to))
			continue;
		any = true;
		c.wraps = c.wraps && !wrap_refused(w->e, f, i);
	}
	c.wraps = c.wraps && any;
	c.clones = any && !twin_refused(w->e, to) && !pad_keeps_labels(w->e, to->flow);
	return c;
}

/* Compared as bytes. */
struct pair {
	uint32_t caller, callee;
};

static void find_calls(struct worker *w)
{
	struct hmap pairs;

	hmap_init(&pairs, sizeof(struct pair), sizeof(struct pair));
	vec_each (c, &w->known.contexts) {
		struct pair key = {0, c->function};
		struct separate_call call;
		bool fresh = false;

		if (c->caller == SEPARATE_NONE)
			continue;
		key.caller = w->known.contexts.p[c->caller].function;
		if (function_of(w, key.caller) && function_of(w, key.callee))
			hmap_put(&pairs, &key, &fresh);
		if (!fresh)
			continue;
		call = judge_call(w, key.caller, key.callee);
		if (call.wraps || call.clones)
			*vec_add(&w->calls) = call;
	}
	hmap_deinit(&pairs);
}

/* ---- changing ---- */

static int refuse(const struct edit_function *f, const char *what, const char *why, struct err *err)
{
	return err_set(err, -EFAULT, "the function at 0x%llx can have no %s after all: %s",
		(unsigned long long)f->procedure->start, what, why);
}

static int apply_pad(struct worker *w, const struct separate_change *c, struct err *err)
{
	struct edit_function *f = function_of(w, c->function);
	const char *why;

	f->chosen = true;
	return edit_pad_frame(w->e, f, c->bytes, &why) ? 0 : refuse(f, "larger frame", why, err);
}

static int apply_wrap(struct worker *w, const struct separate_change *c, struct err *err)
{
	struct edit_function *f = function_of(w, c->caller), *to = function_of(w, c->function);
	const char *why;

	f->chosen = true;
	for (uint32_t i = 0; i < f->flow->ninsns; i++)
		if (calls_it(f, i, to) && !edit_wrap_call(w->e, f, i, c->bytes, &why))
			return refuse(f, "wrapped call", why, err);
	return 0;
}

/* The callee's second copy, with a frame of its own. */
static int make_copy(struct worker *w, uint32_t callee, uint32_t bytes, struct edit_function **out,
	struct err *err)
{
	struct edit_function *f = function_of(w, callee);
	struct function *inside = (struct function *)f;
	const char *why;

	f->chosen = true;
	*out = inside->twin ? &inside->twin->public : edit_duplicate(w->e, f, &why);
	if (!*out)
		return refuse(f, "second copy", why, err);
	if (!inside->twin->pad && (bytes || inside->pad) && !edit_pad_copy(w->e, *out, bytes, &why))
		return refuse(f, "second copy of another size", why, err);
	return 0;
}

static void redirect_calls(struct worker *w, struct edit_function *f,
	const struct edit_function *to, const struct edit_function *copy)
{
	for (uint32_t i = 0; i < f->flow->ninsns; i++)
		if (calls_it(f, i, to))
			edit_redirect_call(w->e, f, i, copy);
}

/* Sizes of copies come first, then who calls them. */
static int apply_clone(struct worker *w, const struct separate_change *c, struct err *err)
{
	struct edit_function *copy,
		*f = function_of(w, c->caller == SEPARATE_NONE ? c->function : c->caller);
	int r = make_copy(w, c->function, c->caller == SEPARATE_NONE ? c->bytes : 0, &copy, err);

	if (r || c->caller == SEPARATE_NONE)
		return r;
	f->chosen = true;
	redirect_calls(w, f, function_of(w, c->function), copy);
	return 0;
}

/* A caller's second copy calls whom the first calls. */
static void redirect_copies(struct worker *w, const struct separate_result *r)
{
	vec_each (c, &r->changes) {
		struct function *f, *to;

		if (c->method != SEPARATE_CLONE || c->caller == SEPARATE_NONE)
			continue;
		f = (struct function *)function_of(w, c->caller);
		to = (struct function *)function_of(w, c->function);
		if (f->twin)
			redirect_calls(w, &f->twin->public, &to->public, &to->twin->public);
	}
}

/*
 * Frames, copies, then wrapped calls: these go into the frames of both copies.
 */
static int apply(struct worker *w, const struct separate_result *r, struct err *err)
{
	static const enum separate_method order[] = {SEPARATE_PAD, SEPARATE_CLONE, SEPARATE_WRAP};
	int rc = 0;

	for (size_t i = 0; i < w->n; i++)
		w->list[i]->chosen = false;
	for (unsigned i = 0; i < SEPARATE_METHODS; i++)
		vec_each (c, &r->changes) {
			if (c->method != order[i] || rc)
				continue;
			rc = c->method == SEPARATE_PAD    ? apply_pad(w, c, err)
			     : c->method == SEPARATE_WRAP ? apply_wrap(w, c, err)
							  : apply_clone(w, c, err);
		}
	if (!rc)
		redirect_copies(w, r);
	return rc;
}

/* ---- what is to be told ---- */

static int by_samples(const void *a, const void *b)
{
	const struct disambiguate_reason *x = a, *y = b;

	if (x->samples != y->samples)
		return x->samples > y->samples ? -1 : 1;
	return x->functions > y->functions ? -1 : x->functions < y->functions;
}

static size_t reason_number(struct disambiguated *out, const char *words)
{
	for (size_t i = 0; i < out->reasons.n; i++)
		if (!strcmp(out->reasons.p[i].words, words))
			return i;
	*vec_add(&out->reasons) = (struct disambiguate_reason){.words = words};
	return out->reasons.n - 1;
}

/* Each function once, each context once for a reason. */
static void tell_reasons(struct worker *w, const uint8_t *shared)
{
	const struct separate_context *all = w->known.contexts.p;
	bool *told = xcalloc(w->known.functions.n + 1, sizeof *told);
	double sum = 0;

	for (size_t i = 0; i < w->known.contexts.n; i++) {
		uint64_t seen = 0;

		sum += all[i].weight;
		if (!shared[i])
			continue;
		for (uint32_t up = all[i].caller; up != SEPARATE_NONE; up = all[up].caller) {
			uint32_t f = all[up].function;
			size_t k;

			if (!w->fixed[f])
				continue;
			k = reason_number(w->out, w->fixed[f]);
			w->out->reasons.p[k].functions += !told[f];
			told[f] = true;
			if (k < 64 && !(seen >> k & 1))
				w->out->reasons.p[k].samples += all[i].weight;
			seen |= k < 64 ? 1ull << k : 0;
		}
	}
	vec_each (r, &w->out->reasons)
		r->samples /= sum > 0 ? sum : 1;
	vec_sort(&w->out->reasons, by_samples);
	free(told);
}

static void tell(struct worker *w, const struct separate_result *r)
{
	struct disambiguated *out = w->out;

	out->before = r->before;
	memcpy(out->after, r->after, sizeof out->after);
	out->contexts = (uint32_t)w->known.contexts.n;
	out->tries = r->tries;
	vec_each (c, &r->changes)
		*vec_add(&out->changes) = (struct disambiguate_change){c->method,
			function_of(w, c->function),
			c->caller == SEPARATE_NONE ? NULL : function_of(w, c->caller), c->bytes};
	tell_reasons(w, r->shared);
}

/* ---- the whole ---- */

static int search(struct worker *w, const struct disambiguate_options *o, struct err *err)
{
	struct separate_options how = {.random = o->random, .growth = GROWTH, .seed = 1};
	struct separate_result r;
	struct separate_input in = {.contexts = w->known.contexts.p,
		.n = (uint32_t)w->known.contexts.n,
		.pads = w->pads,
		.functions = (uint32_t)w->known.functions.n,
		.calls = w->calls.p,
		.ncalls = (uint32_t)w->calls.n};

	separate_search(&in, &how, &r);
	tell(w, &r);
	int rc = apply(w, &r, err);
	separate_result_deinit(&r);
	return rc;
}

int disambiguate(struct edit *e, const struct disambiguate_options *o, struct disambiguated *out,
	struct err *err)
{
	struct worker w = {.e = e, .out = out};
	struct image *im = edit_image(e);
	uint64_t key = edge_image_key(image_kind(im), image_id(im), image_path(im));
	struct store *s;
	int rc = store_open(o->database, STORE_READ, &s, err);

	*out = (struct disambiguated){0};
	if (rc)
		return rc;
	rc = gather_contexts(s, key, &w.known, err);
	store_close(s);
	if (rc)
		return rc;
	w.n = edit_functions(e, &w.list);
	find_functions(&w, key);
	find_calls(&w);
	rc = search(&w, o, err);
	gathered_deinit(&w.known);
	vec_deinit(&w.calls);
	free(w.number);
	free(w.fixed);
	free(w.pads);
	return rc;
}

void disambiguated_deinit(struct disambiguated *d)
{
	vec_deinit(&d->changes);
	vec_deinit(&d->reasons);
}
