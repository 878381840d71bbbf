#include "burst/burst.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/hmap.h"
#include "base/mem.h"
#include "burst/burst_internal.h"
#include "burst/payload.h"
#include "edit/endings.h"
#include "edit/runtime.h"
#include "edit/snippet.h"
#include "isa/decode.h"
#include "rt/burst.h"
#include "rt/routines.h"

/*
 * What is put where. Of a check a0 is the other copy, or the routine and then the other copy; of a
 * point it is its number. Who is led over brings a value along, a1, which costs nothing while
 * nobody is. The words of the thread are those of rt/burst.h.
 */
#define LEAVE "tls[512] -= 1; if tls[512] < 0 goto a0"
#define LEAD  "tls[512] -= 1; if tls[512] < 0 goto over; apart; over: v0 = a1; goto a0"
#define TURN                                                           \
	"tls[520] -= 1; if tls[520] >= 0 goto stay; t0 = call a0(0); " \
	"if t0 == 0 goto stay; goto a1; stay:"
#define ROOM "t0 = tls[528]; if t0 <= tls[536] goto room; call a0(0); room:"

static const char *const points[BURST_WORDS + 1] = {
	"t0 = tls[528]; t1 = a0; [t0] = t1; t0 += 8; tls[528] = t0",
	"t0 = tls[528]; t1 = a0; [t0] = t1; t1 = &m0; [t0 + 8] = t1; t0 += 16; tls[528] = t0",
	"t0 = tls[528]; t1 = a0; [t0] = t1; t1 = &m0; [t0 + 8] = t1; t1 = &m1; [t0 + 16] = t1; "
	"t0 += 24; tls[528] = t0",
	"t0 = tls[528]; t1 = a0; [t0] = t1; t1 = &m0; [t0 + 8] = t1; t1 = &m1; [t0 + 16] = t1; "
	"t1 = &m2; [t0 + 24] = t1; t0 += 32; tls[528] = t0",
	"t0 = tls[528]; t1 = a0; [t0] = t1; t1 = &m0; [t0 + 8] = t1; t1 = &m1; [t0 + 16] = t1; "
	"t1 = &m2; [t0 + 24] = t1; t1 = &m3; [t0 + 32] = t1; t0 += 40; tls[528] = t0",
};

_Static_assert(BURST_CHECK == 512 && BURST_INSTR == 520 && BURST_CURSOR == 528 &&
		       BURST_LIMIT == 536 && BURST_WORDS == 4,
	"as the snippets have it");

static void destroy(struct burst *b)
{
	if (!b)
		return;
	snippet_destroy(b->leave);
	snippet_destroy(b->lead);
	snippet_destroy(b->turn);
	snippet_destroy(b->room);
	held_snippets_destroy(b->held);
	for (int i = 0; i <= BURST_WORDS; i++)
		snippet_destroy(b->point[i]);
	for (int i = 0; i < PAYLOAD_SNIPPETS; i++)
		snippet_destroy(b->own_snippets[i]);
	burst_map_deinit(&b->map);
	free(b->checked);
	free(b->twins);
	free(b);
}

/* ---- checks ---- */

/* The checks of one function, which exists twice. */
struct checking {
	struct burst *burst;
	struct edit_function *first, *twin;
	struct held held;
	bool *done; /* by block: its check in the second copy */
};

/*
 * In the second copy a check stands where the block begins: who comes over from the first copy
 * passes it as well, so that also bursts that leave and come again all the time, through code that
 * exists once, have an end.
 */
static void check_block(struct checking *c, uint32_t block)
{
	unsigned held = c->held.variable[block];
	struct burst *b = c->burst;

	if (!c->done[block])
		edit_before(b->edit, c->twin, c->twin->flow->blocks[block].first,
			held ? b->held[held].turn : b->turn,
			(uint64_t[]){RT_CALL_BURST_TURN, EDIT_OTHER});
	c->done[block] = true;
}

/* In the first copy, on an edge, or at the entry. */
static void check_first(struct checking *c, uint32_t edge)
{
	struct burst *b = c->burst;
	const struct payload *payload = b->options->payload;
	uint64_t arguments[] = {EDIT_OTHER, 0};
	bool brings = payload->arrive && payload->arrive(b, edge, &arguments[1]);
	unsigned held = edge == GRAPH_NONE ? 0 : held_on_edge(&c->held, c->first, edge);
	const struct snippet *s = held     ? brings ? b->held[held].lead : b->held[held].leave
				  : brings ? b->lead
					   : b->leave;

	if (edge == GRAPH_NONE)
		edit_at_entry(b->edit, c->first, s, arguments);
	else
		edit_on_edge(b->edit, c->first, edge, s, arguments);
}

/* Edges that cannot be told apart have their code once. */
static void check_loops(struct checking *c, const struct checks_loops *loops)
{
	const struct graph *graph = &c->first->flow->graph;
	bool *left = xcalloc(graph->edges + 1, sizeof *left);

	for (uint32_t k = 0; k < graph->edges; k++) {
		uint32_t edge = edit_edge_group(c->first, k);

		if (!loops->back[k] || left[edge])
			continue;
		left[edge] = true;
		check_first(c, edge);
		check_block(c, graph->edge[k].to);
	}
	free(left);
}

static void check(struct burst *b, size_t i, const struct checks_loops *loops)
{
	const struct flow *flow = b->functions[i]->flow;
	struct checking c = {.burst = b,
		.first = b->functions[i],
		.twin = b->twins[i],
		.done = xcalloc(flow->nblocks + 1, sizeof *c.done)};

	held_init(&c.held, b, c.first, loops);
	held_put_before(&c.held, b, c.first);
	if (b->checked[i]) {
		check_first(&c, GRAPH_NONE);
		check_block(&c, flow_block_at(flow, flow->entry));
	}
	check_loops(&c, loops);
	held_put_behind(&c.held, b, c.first);
	held_deinit(&c.held);
	free(c.done);
}

/* ---- both copies ---- */

static void redirect_calls(struct burst *b, struct edit_function *twin)
{
	const struct flow *flow = twin->flow;

	for (uint32_t i = 0; i < flow->ninsns; i++) {
		const struct flow_insn *insn = &flow->insns[i];
		size_t to = b->n;

		if (insn->kind == INSN_CALL)
			to = endings_number(b->functions, b->n, flow_target(insn));
		if (to < b->n && b->twins[to])
			edit_redirect_call(b->edit, twin, i, b->twins[to]);
	}
}

static void make_twins(struct burst *b)
{
	b->twins = xcalloc(b->n + 1, sizeof *b->twins);
	for (size_t i = 0; i < b->n; i++) {
		const char *why;

		if (b->functions[i]->chosen && !b->functions[i]->refused)
			b->twins[i] = edit_duplicate(b->edit, b->functions[i], &why);
		b->map.procedures += b->twins[i] != NULL;
	}
}

static void instrument(struct burst *b)
{
	const struct payload *payload = b->options->payload;

	make_twins(b);
	b->checked = checks_at_entries(b->edit, b->options->entries);
	for (size_t i = 0; i < b->n; i++) {
		struct checks_loops loops;

		if (!b->twins[i])
			continue;
		checks_loops_init(&loops, b->edit, b->functions[i], b->options->boring);
		if (payload->begin)
			payload->begin(b, b->functions[i], &loops);
		check(b, i, &loops);
		payload->put(b, b->twins[i], loops.boring);
		redirect_calls(b, b->twins[i]);
		checks_loops_deinit(&loops);
	}
	if (payload->end)
		payload->end(b);
}

/* ---- as a tool ---- */

static int make_snippets(struct burst *b, struct err *e)
{
	int rc = snippet_create(LEAVE, &b->leave, e);

	if (!rc)
		rc = snippet_create(LEAD, &b->lead, e);
	if (!rc)
		rc = snippet_create(TURN, &b->turn, e);
	if (!rc)
		rc = snippet_create(ROOM, &b->room, e);
	if (!rc)
		rc = held_snippets_create(b->held, e);
	for (int i = 0; i <= BURST_WORDS && !rc; i++)
		rc = snippet_create(points[i], &b->point[i], e);
	for (int i = 0; i < PAYLOAD_SNIPPETS && b->options->payload->texts[i] && !rc; i++)
		rc = snippet_create(b->options->payload->texts[i], &b->own_snippets[i], e);
	return rc;
}

static void begin_map(struct burst *b)
{
	struct image *im = edit_image(b->edit);
	_cleanup_free_ char *path = realpath(image_path(im), NULL);

	b->map.id = *image_id(im);
	b->map.path = xstrdup(path ? path : image_path(im));
	b->map.first = burst_map_first(&b->map.id);
}

/* More than the run time needs in the image: a thread's state and buffer. */
#define BUFFER_BYTES ((BURST_BUFFER + BURST_ROOM + 64) * sizeof(uint64_t) + RT_PATH)

static int apply(const void *options, struct edit *edit, const char *counts, void **state,
	struct buf *map, struct err *e)
{
	struct burst *b = *state = xcalloc(1, sizeof *b);
	struct rt_header *h;
	const char *why;
	int rc;

	b->options = options;
	b->edit = edit;
	if (counts[0] != '/' || strlen(counts) >= RT_PATH)
		return err_set(e, -EINVAL, "%s: bursts need a file with an absolute, shorter path",
			counts);
	if (!runtime_has_thread_words(edit, &why))
		return err_set(e, -EOPNOTSUPP, "%s: bursts need words in threads, but %s",
			image_path(edit_image(edit)), why);
	rc = make_snippets(b, e);
	if (rc)
		return rc;
	b->n = edit_functions(edit, &b->functions);
	begin_map(b);
	h = runtime_header(edit);
	strcpy(h->path, counts);
	h->buffer = edit_data(edit, BUFFER_BYTES, 64);
	instrument(b);
	edit_describe(edit, "bursts", NULL, 0);
	burst_map_put(&b->map, map);
	return 0;
}

static void release(void *state)
{
	destroy(state);
}

static int outline(const struct buf *bytes, struct edit_outline *out)
{
	struct burst_map map;
	int rc = burst_map_read(&map, bytes->p, bytes->n);

	if (rc)
		return rc;
	*out = (struct edit_outline){
		map.points.n ? BURST_PAGE : 0, burst_map_path(bytes->p, bytes->n)};
	burst_map_deinit(&map);
	return 0;
}

const struct burst_options burst_defaults = {
	.entries = CHECKS_CYCLES, .boring = 4, .payload = &payload_references};

void burst_tool(const struct burst_options *o, struct edit_tool *out)
{
	*out = (struct edit_tool){
		.options = o, .apply = apply, .release = release, .outline = outline};
	snprintf(out->name, sizeof out->name, "bursts-%u-%u-%s-%" PRIx64, o->entries, o->boring,
		o->payload->name, o->more ? hash_bytes(o->more, strlen(o->more)) : 0);
}
