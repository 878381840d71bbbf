/*
 * The payload of paths: where an acyclic path through a procedure ends (Ball and Larus, MICRO 1996;
 * paths/number.h), its number. The variable in which numbers add up is v0, in both copies, though
 * only the second has code for it.
 *
 * Every path that is recorded is whole. Control comes into a second copy by a call of it, which is
 * where paths begin; from the first copy, at a check; or back from a callee, where it was left in
 * the middle of a path and goes on. Checks stand at entries and where loops go back: there a path
 * begins, and who comes over brings the value along that it begins with. A path that has not ended
 * when the burst has is not recorded.
 *
 * Paths also end where loops are entered and left that nothing is recorded in (checks.h), and there
 * are none inside: so such loops have no code, and no path is lost with them.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "burst/burst_internal.h"
#include "burst/checks.h"
#include "burst/payload.h"
#include "edit/edit.h"
#include "edit/endings.h"
#include "paths/choose.h"
#include "rt/burst.h"
#include "rt/routines.h"
#include "store/traces.h"

/* Of the payload's snippets. */
enum { SUM, SET, ADD };

#define SUM_TEXT \
	"t0 = tls[528]; t1 = a0; [t0] = t1; t1 = v0; [t0 + 8] = t1; t0 += 16; tls[528] = t0"

_Static_assert(BURST_CURSOR == 528, "as the snippet has it");

/* All functions; of one after the other, what was chosen. */
struct tracing {
	struct choosing choosing;
	struct paths_map_writer writer;
	const bool *boring; /* by block */
	bool *ends;
};

static struct tracing *own_of(struct burst *b)
{
	struct tracing *t = b->own;

	if (t)
		return t;
	t = b->own = xcalloc(1, sizeof *t);
	t->choosing = (struct choosing){.scene = {.edit = b->edit,
						.functions = b->functions,
						.n = b->n,
						.never = endings_find(b->functions, b->n)},
		.array = NUMBER_MOST,
		.most = NUMBER_MOST,
		.full = true,
		.to_the_end = true};
	return t;
}

/* ---- where paths end ---- */

static bool is_boring(const struct tracing *t, uint32_t block)
{
	return block < t->choosing.function->flow->nblocks && t->boring[block];
}

/* At checks, and on the ways into boring loops and out of them. */
static bool *find_ends(const struct tracing *t, struct edit_function *f, const bool *back)
{
	const struct graph *g = &f->flow->graph;
	bool *ends = xcalloc(g->edges + 1, sizeof *ends);

	for (uint32_t i = 0; i < g->edges; i++)
		if (back[i] || is_boring(t, g->edge[i].from) != is_boring(t, g->edge[i].to))
			ends[edit_edge_group(f, i)] = true;
	return ends;
}

static void begin(struct burst *b, struct edit_function *f, const struct checks_loops *loops)
{
	struct tracing *t = own_of(b);

	t->choosing.function = f;
	t->boring = loops->boring;
	t->choosing.ends = t->ends = find_ends(t, f, loops->back);
	choose_paths(&t->choosing, f);
}

/* ---- what stands on links ---- */

/* What is done behind the end of a path, for the next one; of other links, what is done there. */
static struct plan_step next_step(const struct tracing *t, uint32_t link)
{
	const struct numbering *n = &t->choosing.numbering;

	return t->choosing.plan.step[n->cut[link] ? n->begins[link] : link];
}

static bool arrive(struct burst *b, uint32_t edge, uint64_t *value)
{
	const struct tracing *t = b->own;
	const struct choosing *c = &t->choosing;

	for (uint32_t i = 0; i < c->places.n; i++) {
		const struct exact_place *p = &c->places.p[i];
		bool here = edge == GRAPH_NONE ? c->model.graph.links.p[i].kind == EXACT_LINK_ENTRY
					       : p->how == EXACT_ON_EDGE && p->where == edge;
		struct plan_step step = next_step(t, i);

		if (!here || step.op != PLAN_SET)
			continue;
		*value = step.by;
		return true;
	}
	return false;
}

static void insert(struct burst *b, struct edit_function *twin, const struct exact_place *at,
	const struct snippet *s, uint64_t argument)
{
	if (at->how == EXACT_AT_ENTRY)
		edit_at_entry(b->edit, twin, s, &argument);
	else if (at->how == EXACT_ON_EDGE)
		edit_on_edge(b->edit, twin, at->where, s, &argument);
	else if (at->how == EXACT_BEFORE)
		edit_before(b->edit, twin, at->where, s, &argument);
}

static uint32_t block_of(const struct flow *flow, const struct exact_place *at)
{
	return at->how == EXACT_ON_EDGE  ? flow->graph.edge[at->where].from
	       : at->how == EXACT_BEFORE ? flow_block_at(flow, flow->insns[at->where].address)
					 : GRAPH_NONE;
}

/* The last instruction of the path that ends on a link. */
static uint64_t last_of(const struct flow *flow, const struct exact_place *at)
{
	const struct flow_block *block = &flow->blocks[block_of(flow, at)];

	return flow->insns[block->first + block->count - 1].address;
}

static void put_end(struct burst *b, struct edit_function *twin, const struct exact_place *at,
	const struct plan_step *step)
{
	bool known = step->op == PLAN_COUNTED;
	struct point p = {.words = !known};
	const struct snippet *s = known ? b->point[0] : b->own_snippets[SUM];

	if (at->how == EXACT_NOWHERE || block_of(twin->flow, at) >= twin->flow->nblocks)
		return;
	*vec_add(&p.events) = (struct burst_event){.at = last_of(twin->flow, at),
		.kind = TRACE_PATH,
		.word = known ? BURST_NO_WORD : 0,
		.by = (int64_t)step->by};
	insert(b, twin, at, b->room, RT_CALL_BURST_ROOM);
	insert(b, twin, at, s, point_add(b, twin, &p));
	vec_deinit(&p.events);
}

/* Links of boring loops have nothing, but that a path ends on the way in, and begins on the way
 * out. */
static void put_on_link(struct burst *b, struct edit_function *twin, uint32_t link)
{
	const struct tracing *t = b->own;
	const struct exact_link *l = &t->choosing.model.graph.links.p[link];
	const struct exact_place *at = &t->choosing.places.p[link];
	struct plan_step step = t->choosing.plan.step[link], next = next_step(t, link);
	bool from = !is_boring(t, block_of(twin->flow, at)), to = !is_boring(t, l->to);

	if (from && (step.op == PLAN_COUNT || step.op == PLAN_COUNTED))
		put_end(b, twin, at, &step);
	if (from && step.op == PLAN_ADD)
		insert(b, twin, at, b->own_snippets[ADD], step.by);
	if (to && next.op == PLAN_SET)
		insert(b, twin, at, b->own_snippets[SET], next.by);
}

static void put(struct burst *b, struct edit_function *twin, const bool *boring)
{
	struct tracing *t = b->own;

	(void)boring; /* as in begin() */
	for (uint32_t i = 0; i < t->choosing.model.graph.links.n; i++)
		put_on_link(b, twin, i);
	t->choosing.model.first = 0;
	paths_map_add(&t->writer, &t->choosing.model);
	choose_end(&t->choosing);
	free(t->ends);
	t->choosing.ends = t->ends = NULL;
}

/* ---- the map ---- */

static void end(struct burst *b)
{
	static const struct path_layout layout = {
		.words = NUMBER_MOST, .stride = 1, .hash = NUMBER_MOST};
	struct tracing *t = own_of(b);

	paths_map_finish(&t->writer, &layout, &b->map.id, b->map.path, &b->map.paths);
	free(t->choosing.scene.never);
	choosing_deinit(&t->choosing);
	b->own = NULL;
	free(t);
}

const struct payload payload_paths = {.name = "paths",
	.words = "paths",
	.texts = {[SUM] = SUM_TEXT, [SET] = "v0 = a0", [ADD] = "v0 += a0"},
	.put = put,
	.begin = begin,
	.arrive = arrive,
	.end = end};
