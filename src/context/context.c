#include "context/context.h"

#include "base/err.h"
#include "base/mem.h"
#include "context/path_words.h"
#include "edit/guide.h"
#include "edit/runtime.h"
#include "edit/snippet.h"
#include "rt/context.h"
#include "rt/routines.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * What is put where. a0 is the procedure's number in the tree, a4 the same negated, a1 the routine,
 * a2 its number in the image, a3 its place in a fan, a7 the routine that reads metrics; the
 * thread's word is at 128, in a record the count at 8, the body at 32 and the parent at 40. %1$s
 * makes it atomic.
 */
enum {
	NARROW,
	NARROW_RECORD,
	NARROW_KEEPS,
	WIDE,
	WIDE_RECORD,
	WIDE_KEEPS,
	ANNOUNCE,
	PASS_ON,
	CHARGE,
	END_THREAD,
	COUNT,
	SNIPPETS
};

#define LOOK_NARROW "t1 = tls[128]; t0 = [t1]; if [t0] != a0 goto other; plain: "
#define LOOK_WIDE   "t1 = tls[128]; if t1 == 0 goto new; t0 = [t1]; if [t0] != a0 goto other; plain: "
/* A stand-in; a place of a fan, which may have one, too; or the run time knows. */
#define ELSE_NARROW "apart; other: if [t0] == a4 goto found; t0 = call a1(a2); found: "
#define ELSE_WIDE                                                                         \
	"apart; other: if [t0] == a4 goto found; if [t0] != 1 goto new; t0 = [t0 + a3]; " \
	"if [t0] == a0 goto plain; if [t0] == a4 goto found; "                            \
	"new: t0 = call a1(a2); t1 = tls[128]; found: "

/* Counted, then t0 is the record with the slots: itself, but for stand-ins. */
#define COUNT_ENTRY "%1$s[t0 + 8] += 1; "
#define BODY        "t0 = [t0 + 32]; "
#define NARROW_WITH(keep) \
	LOOK_NARROW COUNT_ENTRY "same: " keep ELSE_NARROW COUNT_ENTRY BODY "goto same"
#define WIDE_WITH(keep) LOOK_WIDE COUNT_ENTRY "same: " keep ELSE_WIDE COUNT_ENTRY BODY "goto same"
#define KEEP_BOTH       "v0 = t0; v1 = t1; "

/* As paths/code.h wants it. */
static const char finds[] =
	"t5 = tls[128]; if t5 == 0 goto new; t4 = [t5]; if [t4] == a3 goto same; "
	"if [t4] != 1 goto new; t4 = [t4 + a6]; if [t4] == a3 goto same; "
	"new: t4 = call a4(a5); t5 = tls[128]; same: t4 = [t4 + 32]; ";

static const char *const texts[SNIPPETS] = {
	[NARROW] = NARROW_WITH(""),
	[NARROW_RECORD] = NARROW_WITH("v0 = t0; "),
	[NARROW_KEEPS] = NARROW_WITH(KEEP_BOTH),
	[WIDE] = WIDE_WITH(""),
	[WIDE_RECORD] = WIDE_WITH("v0 = t0; "),
	[WIDE_KEEPS] = WIDE_WITH(KEEP_BOTH),
	[ANNOUNCE] = "t0 = &[v0 + a0]; tls[128] = t0",
	[PASS_ON] = "tls[128] = v1",
	[CHARGE] = "",
	[END_THREAD] = "tls[128] = 0",
	[COUNT] = "%1$s[v0 + a0] += 1",
};

/*
 * With metrics. What a caller which announces nothing took before it called belongs to the record
 * that has the slot, so who may be called so reads at its entry, too.
 */
static const char *const measured_before[SNIPPETS] = {
	[WIDE] = LOOK_WIDE COUNT_ENTRY,
	[WIDE_KEEPS] = LOOK_WIDE COUNT_ENTRY,
	[ANNOUNCE] = "",
	[PASS_ON] = "",
	[CHARGE] = "",
	[END_THREAD] = "",
};
static const char *const measured_behind[SNIPPETS] = {
	[WIDE] = ELSE_WIDE "goto plain",
	[WIDE_KEEPS] = BODY KEEP_BOTH ELSE_WIDE "goto plain",
	[ANNOUNCE] = "t0 = &[v0 + a0]; tls[128] = t0",
	[PASS_ON] = "tls[128] = v1",
	[CHARGE] = "",
	[END_THREAD] = "tls[128] = 0",
};

/* The second metric lies right before the record. */
static const int metric_at[RT_METRICS] = {offsetof(struct context_record, metric), -8};

_Static_assert(CONTEXT_WORD == 128 && CONTEXT_FAN == 1 &&
		       offsetof(struct context_record, count) == 8 &&
		       offsetof(struct context_record, body) == 32 &&
		       offsetof(struct context_record, parent) == 40,
	"as the snippets have it");

struct context {
	const struct context_options *options;
	struct edit *edit;
	struct survey survey;
	bool charges;      /* what is measured belongs to contexts, not to their paths */
	uint32_t *numbers; /* of procedures in the map, by function */
	struct context_map map;
	struct path_words paths;
	VEC(struct context_shape) shapes;
	struct snippet *snippet[SNIPPETS];
};

static void destroy(struct context *c)
{
	if (!c)
		return;
	for (int i = 0; i < SNIPPETS; i++)
		snippet_destroy(c->snippet[i]);
	survey_deinit(&c->survey);
	context_map_deinit(&c->map);
	path_words_deinit(&c->paths);
	vec_deinit(&c->shapes);
	free(c->numbers);
	free(c);
}

/* How much it was since the last reading: of the record that was active. */
static void write_charge(const struct context *c, bool own, struct buf *out)
{
	const char *lock = c->options->atomic ? "atomic " : "", *to = own ? "v0" : "t2";

	for (unsigned i = 0; i < c->options->measures.n; i++) {
		unsigned last = RT_WORD(RT_WORD_CLOCK + i);

		measure_text(&c->options->measures, i, "t2", out);
		buf_printf(out, "t3 = t2; t3 -= tls[%u]; tls[%u] = t2; ", last, last);
		if (!own)
			buf_printf(out, "t2 = [t0 + 40]; ");
		buf_printf(out, "%s[%s + %d] += t3; ", lock, to, metric_at[i]);
	}
}

static int make_snippet(struct context *c, int which, struct err *e)
{
	const char *lock = c->options->atomic ? "atomic " : "";
	struct buf text = {0};
	int rc;

	if (c->charges && measured_before[which]) {
		buf_printf(&text, measured_before[which], lock);
		write_charge(c, which != WIDE && which != WIDE_KEEPS, &text);
		buf_printf(&text, measured_behind[which], lock);
	} else {
		buf_printf(&text, texts[which], lock);
	}
	rc = snippet_create(buf_cstr(&text), &c->snippet[which], e);
	buf_deinit(&text);
	return rc;
}

static int make_snippets(struct context *c, struct err *e)
{
	int rc = 0;

	for (int i = 0; i < SNIPPETS && !rc; i++)
		rc = make_snippet(c, i, e);
	return rc;
}

/* ---- the map ---- */

static bool is_counted(const struct context *c, const struct survey_call *call)
{
	return call->callee != SURVEY_ANYBODY && c->survey.functions[call->callee].counted;
}

/* Whether a call has a slot: not when it is counted, or what was announced before is passed on. */
static bool has_slot(
	const struct context *c, const struct survey_function *f, const struct survey_call *call)
{
	return f->keeps && !is_counted(c, call) && !call->ends_thread &&
	       !(call->jumps && f->outside);
}

static void add_sites(struct context *c, const struct survey_function *f)
{
	struct context_procedure *p = vec_add(&c->map.procedures);
	const struct survey_call *calls = c->survey.calls.p + f->first;

	*p = (struct context_procedure){
		.start = f->function->procedure->start, .site = (uint32_t)c->map.sites.n};
	for (uint32_t i = 0; i < f->calls && f->keeps; i++) {
		if (!is_counted(c, &calls[i]))
			continue;
		*vec_add(&c->map.sites) =
			(struct context_site){calls[i].at, c->numbers[calls[i].callee]};
		p->counts++;
	}
	for (uint32_t i = 0; i < f->calls; i++) {
		if (!has_slot(c, f, &calls[i]))
			continue;
		*vec_add(&c->map.sites) = (struct context_site){.at = calls[i].at};
		p->slots++;
	}
}

static void make_map(struct context *c)
{
	struct image *im = edit_image(c->edit);
	_cleanup_free_ char *path = realpath(image_path(im), NULL);
	uint32_t n = 0;

	c->numbers = xcalloc(c->survey.n + 1, sizeof *c->numbers);
	for (size_t i = 0; i < c->survey.n; i++)
		if (c->survey.functions[i].moved)
			c->numbers[i] = n++;
	c->map.id = *image_id(im);
	c->map.path = xstrdup(path ? path : image_path(im));
	measures_names(&c->options->measures, &c->map.metrics);
	c->map.stride = c->options->paths ? 1 + c->options->measures.n : 0;
	c->map.first = context_map_first(&c->map.id, n);
	for (size_t i = 0; i < c->survey.n; i++)
		if (c->survey.functions[i].moved)
			add_sites(c, &c->survey.functions[i]);
}

/* ---- code ---- */

/* What finds a record. */
static void fill_finding(const struct context *c, uint32_t number, uint64_t *arguments)
{
	uint64_t procedure = c->map.first + number;

	arguments[0] = procedure;
	arguments[1] = RT_CALL_CONTEXT_ENTER;
	arguments[2] = number;
	arguments[3] = offsetof(struct context_fan, place) + procedure % CONTEXT_PLACES * 8;
}

static void at_entry(struct context *c, const struct survey_function *f, uint32_t number)
{
	uint64_t arguments[] = {[MEASURE_ARGUMENT] = MEASURE_ROUTINE};
	bool both = f->keeps && (f->calls || c->charges);
	int which = f->wide ? WIDE : NARROW, more = both ? 2 : f->keeps;

	fill_finding(c, number, arguments);
	arguments[4] = -arguments[0];
	edit_at_entry(c->edit, f->function, c->snippet[which + more], arguments);
}

static void at_call(struct context *c, const struct survey_function *f,
	const struct survey_call *call, int snippet, int64_t offset)
{
	const uint64_t arguments[] = {(uint64_t)offset, [MEASURE_ARGUMENT] = MEASURE_ROUTINE};

	if (call->jumps)
		edit_on_edge(c->edit, f->function, call->edge, c->snippet[snippet], arguments);
	else
		edit_before(c->edit, f->function, call->insn, c->snippet[snippet], arguments);
}

static void at_calls(struct context *c, const struct survey_function *f, uint32_t number)
{
	const struct context_procedure *p = &c->map.procedures.p[number];
	int64_t count = -8 * (int64_t)(context_map_before(&c->map) + p->paths);
	uint32_t slot = 0;

	for (uint32_t i = f->first; i < f->first + f->calls; i++) {
		const struct survey_call *call = &c->survey.calls.p[i];

		if (call->ends_thread) {
			at_call(c, f, call, END_THREAD, 0);
		} else if (is_counted(c, call)) {
			at_call(c, f, call, COUNT, count -= 8);
		} else if (has_slot(c, f, call)) {
			at_call(c, f, call, ANNOUNCE, (int64_t)context_slot_at(slot++));
		} else {
			at_call(c, f, call, PASS_ON, 0);
		}
	}
}

/* A jump to somebody who calls nobody back is as good as a return. */
static bool is_return(const struct context *c, const struct survey_function *f, uint32_t edge)
{
	enum flow_edge_kind kind = f->function->flow->edge_kind[edge];

	for (uint32_t i = f->first; i < f->first + f->calls; i++)
		if (c->survey.calls.p[i].jumps && c->survey.calls.p[i].edge == edge)
			return false;
	return kind == FLOW_EDGE_RETURN || kind == FLOW_EDGE_TAIL;
}

static void at_returns(struct context *c, const struct survey_function *f)
{
	const struct flow *flow = f->function->flow;
	const uint64_t arguments[] = {[MEASURE_ARGUMENT] = MEASURE_ROUTINE};
	int which = f->calls ? PASS_ON : CHARGE;

	if (which == CHARGE && !c->charges)
		return;
	for (uint32_t i = 0; i < flow->graph.edges; i++)
		if (is_return(c, f, i))
			edit_on_edge(c->edit, f->function, i, c->snippet[which], arguments);
}

static void instrument_contexts(struct context *c, const struct survey_function *f, uint32_t number)
{
	if (f->counted)
		return;
	at_entry(c, f, number);
	if (f->keeps) {
		at_calls(c, f, number);
		at_returns(c, f);
	}
}

static void instrument(struct context *c)
{
	uint64_t finding[CODE_FINDING];

	for (size_t i = 0; i < c->survey.n; i++) {
		const struct survey_function *f = &c->survey.functions[i];
		struct context_procedure *p = &c->map.procedures.p[c->numbers[i]];

		if (!f->moved)
			continue;
		if (c->options->paths)
			path_words_choose(&c->paths, f, p);
		instrument_contexts(c, f, c->numbers[i]);
		fill_finding(c, c->numbers[i], finding);
		if (c->options->paths)
			path_words_insert(&c->paths, f, p, finding);
	}
}

static void fill_header(struct context *c, const char *counts)
{
	struct rt_header *h;
	size_t shapes;

	vec_each (p, &c->map.procedures)
		*vec_add(&c->shapes) = (struct context_shape){
			(uint16_t)(p->counts + p->paths + context_map_before(&c->map)), p->slots};
	shapes = runtime_append(c->edit, c->shapes.p, c->shapes.n * sizeof *c->shapes.p);
	h = runtime_header(c->edit);
	h->context.first = c->map.first;
	h->context.shapes = shapes;
	strcpy(h->path, counts);
}

/* ---- as a tool ---- */

static void survey(struct context *c)
{
	_cleanup_free_ bool *recorded = NULL;

	if (c->options->paths) {
		path_words_init(&c->paths, c->edit,
			&(struct path_words_options){.guide = c->options->guide,
				.atomic = c->options->atomic,
				.full = c->options->full,
				.measures = &c->options->measures,
				.finds = finds});
		recorded = path_words_recorded(&c->paths);
	}
	survey_make(&c->survey, c->edit, c->charges, recorded);
	if (c->options->paths)
		path_words_measure(&c->paths, &c->survey);
}

static int apply(const void *options, struct edit *edit, const char *counts, void **state,
	struct buf *map, struct err *e)
{
	struct context *c = *state = xcalloc(1, sizeof *c);
	const char *why;
	int rc;

	c->options = options;
	c->edit = edit;
	c->charges = c->options->measures.n && !c->options->paths;
	if (counts[0] != '/' || strlen(counts) >= RT_PATH)
		return err_set(e, -EINVAL,
			"%s: contexts need a file with an absolute, shorter path", counts);
	if (!runtime_has_thread_words(edit, &why))
		return err_set(e, -EOPNOTSUPP, "%s: contexts need words in threads, but %s",
			image_path(edit_image(edit)), why);
	rc = measures_prepare(&c->options->measures, edit, e);
	if (!rc)
		rc = make_snippets(c, e);
	if (rc)
		return rc;
	survey(c);
	make_map(c);
	instrument(c);
	fill_header(c, counts);
	edit_describe(edit, "context", NULL, 0);
	if (c->options->paths)
		path_words_put(&c->paths, &c->map, map);
	else
		context_map_put(&c->map, map);
	return 0;
}

static void release(void *state)
{
	destroy(state);
}

static int outline(const struct buf *bytes, struct edit_outline *out)
{
	struct path_words_map map;
	int rc = path_words_read(&map, bytes->p, bytes->n);

	if (rc)
		return rc;
	*out = (struct edit_outline){map.context.procedures.n ? CONTEXT_FIRST : 0,
		path_words_original(bytes->p, bytes->n)};
	context_map_deinit(&map.context);
	return 0;
}

void context_tool(const struct context_options *o, struct edit_tool *out)
{
	*out = (struct edit_tool){
		.options = o, .apply = apply, .release = release, .outline = outline};
	snprintf(out->name, sizeof out->name, "context%s%s%s", o->paths ? "-paths" : "",
		o->full ? "-full" : "", o->atomic ? "-atomic" : "");
	measures_tag(&o->measures, out->name, sizeof out->name);
	if (o->guide && guide_hash(o->guide))
		snprintf(out->name + strlen(out->name), sizeof out->name - strlen(out->name),
			"-refined-%016" PRIx64, guide_hash(o->guide));
}
