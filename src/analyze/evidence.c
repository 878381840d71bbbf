#include "analyze/evidence_internal.h"

#include "base/err.h"
#include "base/mem.h"
#include "flow/noreturn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- code and flow ---- */

/* Without the file, callees are known by the names that the database keeps. */
static bool returns(void *arg, uint64_t target)
{
	const struct selected_image *im = arg;
	const struct procedure *p = store_procedure_at(&im->procedures, target);

	return !p || p->start != target || !noreturn_name(p->name);
}

static int flow_from_code(const struct evidence_source *s, const struct procedure *p,
	const struct buf *code, struct flow **out, struct err *e)
{
	struct flow_source source = {.ranges = p->ranges,
		.nranges = p->nranges,
		.entry = p->start,
		.code = code->p,
		.kernel = s->image->kind == IMAGE_KERNEL || s->image->kind == IMAGE_MODULE,
		.returns = returns,
		.arg = s->image};

	return flow_create(&source, out, e);
}

static size_t size_of(const struct procedure *p)
{
	size_t sum = 0;

	for (uint32_t i = 0; i < p->nranges; i++)
		sum += p->ranges[i].size;
	return sum;
}

static int no_code(const struct evidence_source *s, const struct procedure *p, struct err *e)
{
	char label[256];

	procedure_label(p, s->image->path, label, sizeof label);
	if (s->image->kind != IMAGE_ELF)
		return err_set(e, -ENOENT,
			"%s: the database has no code of it: the kernel's is read from /proc/kcore "
			"while it is sampled, that made at run time never",
			label);
	return err_set(e, -ENOENT,
		"%s: the database has no code of it, and the file is gone or not the one that was "
		"sampled: it needs more samples, or the file",
		label);
}

static int load_flow(
	struct evidence_source *s, struct evidence *ev, const struct procedure *p, struct err *e)
{
	struct buf code = {0};
	int rc = s->program ? 0 : -ENOENT;

	for (uint32_t i = 0; i < p->nranges && !rc; i++)
		rc = image_code(s->file, &p->ranges[i], &code);
	if (!rc)
		rc = program_flow(s->program, p, &ev->flow, e);
	if (rc) {
		code.n = 0;
		rc = store_code(selection_store(s->sel), s->image->id, p->start, &code, e);
		if (!rc && code.n == size_of(p))
			rc = flow_from_code(s, p, &code, &ev->flow, e);
		else if (!rc || rc == -ENOENT)
			rc = no_code(s, p, e);
	}
	ev->code = code.p;
	ev->code_size = code.n;
	return rc;
}

/* ---- samples ---- */

uint32_t evidence_insn_at(const struct flow *f, uint64_t address, uint32_t *block)
{
	uint32_t b = flow_block_at(f, address), low, high;

	if (b == GRAPH_NONE)
		return GRAPH_NONE;
	low = f->blocks[b].first;
	high = low + f->blocks[b].count;
	while (high - low > 1) {
		uint32_t mid = low + (high - low) / 2;

		if (f->insns[mid].address <= address)
			low = mid;
		else
			high = mid;
	}
	if (block)
		*block = b;
	return low;
}

static void place_samples(const struct evidence_source *s, struct evidence *ev)
{
	const struct placed_samples *list;
	size_t n = evidence_slice(&s->samples, ev->procedure, &list);

	for (size_t i = 0; i < n; i++) {
		uint32_t insn = evidence_insn_at(ev->flow, list[i].address, NULL);
		uint64_t **by = &ev->events[list[i].event];

		if (list[i].event == s->time)
			ev->total += list[i].count;
		if (insn == GRAPH_NONE)
			continue;
		if (!*by)
			*by = xcalloc(ev->flow->ninsns + 1, sizeof **by);
		(*by)[insn] += list[i].count;
	}
	ev->timed = s->time != SIZE_MAX;
	ev->clock = s->clock;
	ev->period = s->period;
	if (ev->timed && ev->events[s->time])
		ev->samples = ev->events[s->time];
	else
		ev->samples = ev->none = xcalloc(ev->flow->ninsns + 1, sizeof *ev->none);
}

/* ---- edges ---- */

typedef VEC(struct evidence_way) way_list;

/* The edge that an observed transfer took; GRAPH_NONE when the graph shows none. */
static uint32_t find_edge(const struct flow *f, uint32_t block, const struct edge *seen)
{
	uint32_t leaving = GRAPH_NONE, leavers = 0;

	graph_each_out (it, &f->graph, block) {
		uint32_t to = f->graph.edge[*it].to;

		if (to < f->nblocks && !seen->target && f->blocks[to].start == seen->to)
			return *it;
		if (to == f->exit_node) {
			leaving = *it;
			leavers++;
		}
	}
	/* Out of the procedure: a return, a tail call, a jump that is not resolved. */
	if (leavers == 1 && (seen->target || flow_block_at(f, seen->to) == GRAPH_NONE))
		return leaving;
	return GRAPH_NONE;
}

static bool ends_block(const struct flow *f, uint32_t block, uint32_t insn)
{
	return insn == f->blocks[block].first + f->blocks[block].count - 1;
}

uint32_t evidence_edge_of(const struct evidence *ev, const struct edge *seen)
{
	const struct flow *f = ev->flow;
	uint32_t block, insn = evidence_insn_at(f, seen->from, &block);

	if (insn == GRAPH_NONE || f->insns[insn].address != seen->from ||
		!ends_block(f, block, insn) || f->blocks[block].end == FLOW_CALLS)
		return GRAPH_NONE;
	return find_edge(f, block, seen);
}

/* A transfer that the graph has as an edge inside is told by that alone. */
static bool is_way(const struct evidence *ev, uint32_t edge)
{
	return edge == GRAPH_NONE || ev->flow->graph.edge[edge].to == ev->flow->exit_node;
}

static void place_edges(const struct evidence_source *s, struct evidence *ev, way_list *ways)
{
	const struct flow *f = ev->flow;
	const struct placed_edge *list;
	size_t n = evidence_slice(&s->edges, ev->procedure, &list);

	ev->edges = xcalloc(f->graph.edges + 1, sizeof *ev->edges);
	for (size_t i = 0; i < n; i++) {
		const struct edge *seen = &list[i].edge;
		uint32_t insn = evidence_insn_at(f, seen->from, NULL), edge;

		if (insn == GRAPH_NONE || f->insns[insn].address != seen->from)
			continue;
		edge = evidence_edge_of(ev, seen);
		if (edge != GRAPH_NONE)
			ev->edges[edge] += seen->count;
		if (is_way(ev, edge))
			*vec_add(ways) = (struct evidence_way){.insn = insn,
				.target = seen->target,
				.to = seen->to,
				.count = seen->count};
	}
}

static void place_passages(const struct evidence_source *s, struct evidence *ev, way_list *ways)
{
	const struct flow *f = ev->flow;
	const struct placed_passage *list;
	size_t n = evidence_slice(&s->passages, ev->procedure, &list);

	ev->passed = xcalloc(f->graph.edges + 1, sizeof *ev->passed);
	ev->passages = xcalloc(n + 1, sizeof *ev->passages);
	for (size_t i = 0; i < n; i++) {
		const struct edge *seen = &list[i].edge;
		struct evidence_passage p = {.excursion = list[i].excursion,
			.stretch = list[i].stretch,
			.edge = evidence_edge_of(ev, seen),
			.count = (double)seen->count,
			.stands = list[i].weight,
			.weight = list[i].weight,
			.way = {.target = seen->target, .to = seen->to, .passed = seen->count}};

		p.way.insn = evidence_insn_at(f, seen->from, &p.block);
		if (p.way.insn == GRAPH_NONE || f->insns[p.way.insn].address != seen->from)
			continue;
		if (p.edge != GRAPH_NONE)
			ev->passed[p.edge] += seen->count;
		if (is_way(ev, p.edge))
			*vec_add(ways) = p.way;
		ev->passages[ev->npassages++] = p;
	}
}

static int by_way(const void *a, const void *b)
{
	const struct evidence_way *x = a, *y = b;

	if (x->insn != y->insn)
		return x->insn < y->insn ? -1 : 1;
	if (x->target != y->target)
		return x->target < y->target ? -1 : 1;
	return x->to < y->to ? -1 : x->to > y->to;
}

static void settle_ways(struct evidence *ev, way_list *ways)
{
	size_t kept = 0;

	vec_sort(ways, by_way);
	for (size_t i = 0; i < ways->n; i++) {
		const struct evidence_way *w = &ways->p[i];

		if (kept && !by_way(&ways->p[kept - 1], w)) {
			ways->p[kept - 1].count += w->count;
			ways->p[kept - 1].passed += w->passed;
		} else {
			ways->p[kept++] = *w;
		}
	}
	ev->ways = ways->p;
	ev->nways = kept;
}

uint32_t evidence_way_at(const struct evidence *ev, const struct evidence_way *like)
{
	const struct evidence_way *w =
		ev->nways ? bsearch(like, ev->ways, ev->nways, sizeof *ev->ways, by_way) : NULL;

	return w ? (uint32_t)(w - ev->ways) : GRAPH_NONE;
}

static void place_transfers(const struct evidence_source *s, struct evidence *ev)
{
	way_list ways = {0};

	place_edges(s, ev, &ways);
	place_passages(s, ev, &ways);
	settle_ways(ev, &ways);
}

static void place_anchors(const struct evidence_source *s, struct evidence *ev)
{
	const struct placed_anchor *list;
	size_t n = evidence_slice(&s->anchors, ev->procedure, &list);

	ev->anchors = xcalloc(n + 1, sizeof *ev->anchors);
	ev->nanchors = n;
	for (size_t i = 0; i < n; i++)
		ev->anchors[i] = list[i].anchor;
}

static void place_paces(const struct evidence_source *s, struct evidence *ev)
{
	const struct placed_pace *list;
	size_t n = evidence_slice(&s->paces, ev->procedure, &list);

	ev->paces = xcalloc(n + 1, sizeof *ev->paces);
	for (size_t i = 0; i < n; i++)
		ev->paces[i] = list[i].pace;
	ev->npaces = paces_settle(ev->paces, n);
}

/* The call is what ends in front of where it comes back to. */
static void place_calls(const struct evidence_source *s, struct evidence *ev)
{
	const struct placed_call *list;
	size_t n = evidence_slice(&s->calls, ev->procedure, &list);

	ev->callees = xcalloc(ev->flow->nblocks + 1, sizeof *ev->callees);
	for (size_t i = 0; i < n; i++) {
		uint32_t block;

		if (evidence_insn_at(ev->flow, list[i].address - 1, &block) != GRAPH_NONE)
			ev->callees[block] += list[i].samples;
	}
}

/* ---- the whole ---- */

int evidence_take(
	struct evidence_source *s, uint32_t procedure, struct evidence **out, struct err *e)
{
	struct evidence *ev = xcalloc(1, sizeof *ev);
	const struct selected_event *events;
	int rc;

	ev->image = s->image;
	ev->procedure = procedure;
	ev->nevents = selection_events(s->sel, &events);
	ev->events = xcalloc(ev->nevents + 1, sizeof *ev->events);
	if ((rc = load_flow(s, ev, &s->image->procedures.p[procedure], e))) {
		evidence_destroy(ev);
		return rc;
	}
	place_samples(s, ev);
	place_transfers(s, ev);
	place_anchors(s, ev);
	place_paces(s, ev);
	place_calls(s, ev);
	*out = ev;
	return 0;
}

int evidence_create(struct selection *sel, struct selected_image *im, uint32_t procedure,
	struct evidence **out, struct err *e)
{
	struct evidence_source *s;
	int rc = evidence_source_create(sel, im, &s, e);

	if (rc)
		return rc;
	rc = evidence_take(s, procedure, out, e);
	evidence_source_destroy(s);
	return rc;
}

void evidence_counts_destroy(struct evidence_counts *c)
{
	if (!c)
		return;
	free(c->block);
	free(c->edge);
	free(c->doubt);
	free(c);
}

void evidence_destroy(struct evidence *ev)
{
	if (!ev)
		return;
	if (ev->flow)
		flow_destroy(ev->flow);
	for (size_t i = 0; i < ev->nevents; i++)
		free(ev->events[i]);
	free(ev->events);
	free(ev->none);
	free((void *)ev->code);
	free(ev->edges);
	free(ev->passed);
	free(ev->passages);
	free(ev->outcomes);
	free(ev->ways);
	free(ev->anchors);
	free(ev->paces);
	free(ev->callees);
	evidence_counts_destroy(ev->counts);
	free(ev);
}
