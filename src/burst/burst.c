#include "burst/burst.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "burst/map.h"
#include "edit/endings.h"
#include "edit/runtime.h"
#include "edit/snippet.h"
#include "isa/decode.h"
#include "isa/reference.h"
#include "rt/burst.h"
#include "rt/routines.h"

/*
 * What is put where. a0 is the routine, but for LEAVE where it is the other copy and NAMED where it
 * is the number of the place. The words of the thread are those of rt/burst.h.
 */
enum {
	LEAVE,  /* a check of the first copy: a decrement, and a branch that is hardly ever taken */
	TURN,   /* of the second */
	ROOM,   /* before the first record of a block: for a1 bytes */
	NAMED0, /* the payload: an address and who wanted it */
	NAMED1,
	NAMED0_THREAD, /* the same, relative to the thread pointer */
	NAMED1_THREAD,
	SNIPPETS
};

#define PUT "[t0] = t1; [t0 + 8] = a0; t0 += 16; tls[528] = t0"

static const char *const texts[SNIPPETS] = {
	[LEAVE] = "tls[512] -= 1; if tls[512] < 0 goto a0",
	[TURN] = "tls[520] -= 1; if tls[520] >= 0 goto stay; t0 = call a0(0); "
		 "if t0 == 0 goto stay; goto a1; stay:",
	[ROOM] = "t0 = tls[528]; t0 += a1; if t0 <= tls[536] goto room; call a0(a1); room:",
	[NAMED0] = "t0 = tls[528]; t1 = &m0; " PUT,
	[NAMED1] = "t0 = tls[528]; t1 = &m1; " PUT,
	[NAMED0_THREAD] = "t0 = tls[528]; t1 = &m0; t1 += tls[16]; " PUT,
	[NAMED1_THREAD] = "t0 = tls[528]; t1 = &m1; t1 += tls[16]; " PUT,
};

_Static_assert(BURST_CHECK == 512 && BURST_INSTR == 520 && BURST_CURSOR == 528 &&
		       BURST_LIMIT == 536 && sizeof(struct burst_record) == 16,
	"as the snippets have it");

struct burst {
	const struct burst_options *options;
	struct edit *edit;
	struct edit_function **functions, **twins;
	size_t n;
	bool *checked; /* entries */
	struct burst_map map;
	struct snippet *snippet[SNIPPETS];
};

static void destroy(struct burst *b)
{
	if (!b)
		return;
	for (int i = 0; i < SNIPPETS; i++)
		snippet_destroy(b->snippet[i]);
	burst_map_deinit(&b->map);
	free(b->checked);
	free(b->twins);
	free(b);
}

/* ---- checks ---- */

/*
 * In the second copy a check stands where the block begins: who comes over from the first copy
 * passes it as well, so that also bursts that leave and come again all the time, through code that
 * exists once, have an end.
 */
static void check_block(struct burst *b, size_t i, uint32_t block, bool *done)
{
	const struct flow *flow = b->twins[i]->flow;

	if (!done[block])
		edit_before(b->edit, b->twins[i], flow->blocks[block].first, b->snippet[TURN],
			(uint64_t[]){RT_CALL_BURST_TURN, EDIT_OTHER});
	done[block] = true;
}

static void check_entry(struct burst *b, size_t i, bool *done)
{
	const struct flow *flow = b->functions[i]->flow;

	if (!b->checked[i])
		return;
	edit_at_entry(b->edit, b->functions[i], b->snippet[LEAVE], (uint64_t[]){EDIT_OTHER});
	check_block(b, i, flow_block_at(flow, flow->entry), done);
}

/* Edges that cannot be told apart have their code once. */
static void check_loops(struct burst *b, size_t i, const struct checks_loops *loops, bool *done)
{
	const struct graph *graph = &b->functions[i]->flow->graph;
	bool *left = xcalloc(graph->edges + 1, sizeof *left);

	for (uint32_t k = 0; k < graph->edges; k++) {
		uint32_t edge = edit_edge_group(b->functions[i], k);

		if (!loops->back[k] || left[edge])
			continue;
		left[edge] = true;
		edit_on_edge(b->edit, b->functions[i], edge, b->snippet[LEAVE],
			(uint64_t[]){EDIT_OTHER});
		check_block(b, i, graph->edge[k].to, done);
	}
	free(left);
}

static void check(struct burst *b, size_t i, const struct checks_loops *loops)
{
	bool *done = xcalloc(b->functions[i]->flow->nblocks + 1, sizeof *done);

	check_entry(b, i, done);
	check_loops(b, i, loops, done);
	free(done);
}

/* ---- recording ---- */

static void record_insn(struct burst *b, struct edit_function *f, uint32_t insn,
	const struct reference *list, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		const struct reference *r = &list[i];
		int which = (r->thread ? NAMED0_THREAD : NAMED0) + (int)i;
		uint64_t number = b->map.first + b->map.sites.n;

		*vec_add(&b->map.sites) = (struct burst_site){f->procedure->start,
			f->flow->insns[insn].address,
			(uint8_t)((r->loads ? BURST_LOAD : 0) | (r->stores ? BURST_STORE : 0)),
			r->size};
		edit_before(b->edit, f, insn, b->snippet[which], &number);
	}
}

/* Room is asked for once, for all that is recorded before the block may be left. */
static void record_block(struct burst *b, struct edit_function *f, const struct flow_block *block)
{
	struct reference list[REFERENCES_MAX];
	uint32_t end = block->first + block->count, left = 0;

	for (uint32_t i = block->first; i < end; i++) {
		unsigned n = edit_references(b->edit, f, i, list);

		if (n > left) {
			uint32_t k = i;
			for (left = n; ++k < end && left < BURST_BLOCK;) {
				struct reference more[REFERENCES_MAX];
				left += edit_references(b->edit, f, k, more);
			}
			edit_before(b->edit, f, i, b->snippet[ROOM],
				(uint64_t[]){
					RT_CALL_BURST_ROOM, left * sizeof(struct burst_record)});
		}
		record_insn(b, f, i, list, n);
		left -= n;
	}
}

static void record(struct burst *b, struct edit_function *f, const struct checks_loops *loops)
{
	const struct flow *flow = f->flow;

	for (uint32_t i = 0; i < flow->nblocks; i++)
		if (!loops->boring[i] && !(flow->blocks[i].marks & FLOW_PADDING))
			record_block(b, f, &flow->blocks[i]);
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
	make_twins(b);
	b->checked = checks_at_entries(b->edit, b->options->entries);
	for (size_t i = 0; i < b->n; i++) {
		struct checks_loops loops;

		if (!b->twins[i])
			continue;
		checks_loops_init(&loops, b->edit, b->functions[i], b->options->boring);
		check(b, i, &loops);
		record(b, b->twins[i], &loops);
		redirect_calls(b, b->twins[i]);
		checks_loops_deinit(&loops);
	}
}

/* ---- as a tool ---- */

static int make_snippets(struct burst *b, struct err *e)
{
	int rc = 0;

	for (int i = 0; i < SNIPPETS && !rc; i++)
		rc = snippet_create(texts[i], &b->snippet[i], e);
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

/* More than a thread's state and buffer need. */
#define BUFFER_BYTES ((BURST_BUFFER + BURST_ROOM + 64) * sizeof(struct burst_record) + RT_PATH)

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
		map.sites.n ? BURST_PAGE : 0, burst_map_path(bytes->p, bytes->n)};
	burst_map_deinit(&map);
	return 0;
}

const struct burst_options burst_defaults = {.entries = CHECKS_CYCLES, .boring = 4};

void burst_tool(const struct burst_options *o, struct edit_tool *out)
{
	*out = (struct edit_tool){
		.options = o, .apply = apply, .release = release, .outline = outline};
	snprintf(out->name, sizeof out->name, "bursts-%u-%u", o->entries, o->boring);
}
