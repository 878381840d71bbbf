#include "analyze/evidence_internal.h"

#include "analyze/pcpool.h"
#include "base/err.h"
#include "base/mem.h"
#include "store/excursions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- slices ---- */

/* Every placed thing begins with its procedure. */
static uint32_t procedure_of(const void *p, size_t size, size_t i)
{
	uint32_t number;

	memcpy(&number, (const char *)p + i * size, sizeof number);
	return number;
}

static size_t first_not_below(const void *p, size_t n, size_t size, uint64_t procedure)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (procedure_of(p, size, mid) < procedure)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

size_t evidence_slice_of(
	const void *p, size_t n, size_t size, uint32_t procedure, const void **first)
{
	size_t at = first_not_below(p, n, size, procedure);

	*first = (const char *)p + at * size;
	return first_not_below(p, n, size, (uint64_t)procedure + 1) - at;
}

/* ---- the time event ---- */

static bool is_event(const char *name, const char *what)
{
	size_t n = strlen(what);

	return !strncmp(name, what, n) && (!name[n] || name[n] == ':');
}

/* Samples that found no room or were throttled are time too; those a hypervisor swallowed are not
 * the program's. */
static double period_of(const struct selected_event *ev)
{
	const struct store_account *a = &ev->account;
	double seen = (double)(a->attributed + a->unknown);

	return seen > 0 ? ev->period * (1 + (double)(a->lost + a->throttled) / seen) : ev->period;
}

static bool is_clock(const char *name)
{
	return is_event(name, "cpu-clock") || is_event(name, "task-clock");
}

size_t evidence_time_event(const struct selection *sel)
{
	const struct selected_event *events;
	size_t n = selection_events(sel, &events);

	for (size_t i = 0; i < n; i++)
		if (is_clock(events[i].name) || is_event(events[i].name, "cycles"))
			return i;
	return SIZE_MAX;
}

static void choose_time(struct evidence_source *s)
{
	const struct selected_event *events;

	s->time = evidence_time_event(s->sel);
	if (s->time == SIZE_MAX)
		return;
	selection_events(s->sel, &events);
	s->clock = is_clock(events[s->time].name);
	s->period = period_of(&events[s->time]);
}

/* ---- samples ---- */

struct pc_gather {
	struct pc_pool pool; /* by file offset */
};

static int add_pcs(
	void *arg, struct selected_image *im, size_t event, struct pc_reader *pcs, struct err *e)
{
	struct pc_gather *g = arg;
	struct pc_count pc;
	int rc;

	(void)im;
	(void)e;
	while ((rc = pc_reader_next(pcs, &pc)) > 0)
		pc_pool_add(&g->pool, pc.offset, (uint32_t)event, pc.count);
	return rc;
}

static int by_place(const void *a, const void *b)
{
	const struct placed_samples *x = a, *y = b;

	if (x->procedure != y->procedure)
		return x->procedure < y->procedure ? -1 : 1;
	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return x->event < y->event ? -1 : x->event > y->event;
}

static int gather_samples(struct evidence_source *s, struct err *e)
{
	struct code_walk walk =
		code_walk_start(&s->image->map, s->image->segments, s->image->nsegments);
	struct pc_gather g = {0};
	int rc = selection_profiles_of(s->sel, s->image, add_pcs, &g, e);

	pc_pool_settle(&g.pool);
	vec_each (sum, &g.pool.list) {
		struct placed_samples placed = {.event = sum->event, .count = sum->count};

		placed.procedure = code_walk_to(&walk, sum->vaddr, &placed.address);
		if (placed.procedure != CODE_NOWHERE)
			*vec_add(&s->samples) = placed;
	}
	pc_pool_deinit(&g.pool);
	vec_sort(&s->samples, by_place);
	return rc;
}

static int hottest_first(const void *a, const void *b)
{
	const struct evidence_procedure *x = a, *y = b;

	if (x->samples != y->samples)
		return x->samples > y->samples ? -1 : 1;
	return x->procedure < y->procedure ? -1 : x->procedure > y->procedure;
}

static void list_procedures(struct evidence_source *s)
{
	struct evidence_procedure *last = NULL;

	vec_each (placed, &s->samples) {
		if (placed->event != s->time)
			continue;
		if (!last || last->procedure != placed->procedure) {
			last = vec_add(&s->procedures);
			*last = (struct evidence_procedure){placed->procedure, 0};
		}
		last->samples += placed->count;
	}
	vec_sort(&s->procedures, hottest_first);
}

/* ---- edges ---- */

static bool place(const struct selected_image *im, uint64_t offset, uint64_t *vaddr)
{
	*vaddr = offset;
	return !im->nsegments || segments_vaddr(im->segments, im->nsegments, offset, vaddr);
}

static int add_edges(void *arg, const struct store_profile *p)
{
	struct evidence_source *s = arg;
	struct code_walk walk =
		code_walk_start(&s->image->map, s->image->segments, s->image->nsegments);
	struct edge_reader reader;
	struct edge edge;
	int rc = edge_reader_init(&reader, p->data, p->size);

	while (!rc && (rc = edge_reader_next(&reader, &edge)) > 0) {
		struct placed_edge placed = {.edge = edge};

		placed.procedure = code_walk_to(&walk, edge.from, &placed.edge.from);
		if (placed.procedure != CODE_NOWHERE &&
			(edge.target || place(s->image, edge.to, &placed.edge.to)))
			*vec_add(&s->edges) = placed;
		rc = 0;
	}
	return rc;
}

static int by_edge(const void *a, const void *b)
{
	const struct placed_edge *x = a, *y = b;

	if (x->procedure != y->procedure)
		return x->procedure < y->procedure ? -1 : 1;
	return edge_compare(&x->edge, &y->edge);
}

static void settle_edges(struct evidence_source *s)
{
	size_t kept = 0;

	vec_sort(&s->edges, by_edge);
	for (size_t i = 0; i < s->edges.n; i++) {
		struct placed_edge *edge = &s->edges.p[i];

		if (kept && !by_edge(&s->edges.p[kept - 1], edge))
			s->edges.p[kept - 1].edge.count += edge->edge.count;
		else
			s->edges.p[kept++] = *edge;
	}
	s->edges.n = kept;
}

/* ---- excursions ---- */

static void add_passages(struct evidence_source *s, const struct excursion_part *x)
{
	struct code_walk walk =
		code_walk_start(&s->image->map, s->image->segments, s->image->nsegments);

	if (!s->excursions || s->last_excursion != x->number / EXCURSION_STRETCHES)
		s->excursions++;
	s->last_excursion = x->number / EXCURSION_STRETCHES;
	for (size_t i = 0; i < x->nedges; i++) {
		const struct edge *edge = &x->edges[i];
		struct placed_passage placed = {.excursion = s->excursions - 1,
			.stretch = x->number % EXCURSION_STRETCHES,
			.edge = *edge,
			.weight = (double)x->weight};

		placed.procedure = code_walk_to(&walk, edge->from, &placed.edge.from);
		if (placed.procedure != CODE_NOWHERE &&
			(edge->target || place(s->image, edge->to, &placed.edge.to)))
			*vec_add(&s->passages) = placed;
	}
}

static int add_excursions(void *arg, const struct store_profile *p)
{
	struct excursion_reader reader;
	struct excursion_part x;
	int rc = excursion_reader_init(&reader, p->data, p->size);

	while (!rc && (rc = excursion_reader_next(&reader, &x)) > 0) {
		add_passages(arg, &x);
		rc = 0;
	}
	excursion_reader_deinit(&reader);
	return rc;
}

static int by_passage(const void *a, const void *b)
{
	const struct placed_passage *x = a, *y = b;

	if (x->procedure != y->procedure)
		return x->procedure < y->procedure ? -1 : 1;
	if (x->edge.from != y->edge.from)
		return x->edge.from < y->edge.from ? -1 : 1;
	return x->excursion < y->excursion ? -1 : x->excursion > y->excursion;
}

/* ---- anchors ---- */

static int add_anchors(void *arg, const struct store_profile *p)
{
	struct evidence_source *s = arg;
	struct code_walk walk =
		code_walk_start(&s->image->map, s->image->segments, s->image->nsegments);
	struct anchor_reader reader;
	struct anchor anchor;
	int rc = anchor_reader_init(&reader, p->data, p->size);

	while (!rc && (rc = anchor_reader_next(&reader, &anchor)) > 0) {
		struct placed_anchor placed = {.anchor = anchor};
		uint32_t last = code_walk_to(&walk, anchor.last, &placed.anchor.last);

		placed.procedure = code_walk_to(&walk, anchor.pc, &placed.anchor.pc);
		if (placed.procedure != CODE_NOWHERE && placed.procedure == last)
			*vec_add(&s->anchors) = placed;
		rc = 0;
	}
	return rc;
}

static int by_anchor(const void *a, const void *b)
{
	const struct placed_anchor *x = a, *y = b;

	if (x->procedure != y->procedure)
		return x->procedure < y->procedure ? -1 : 1;
	return anchor_compare(&x->anchor, &y->anchor);
}

/* ---- paces ---- */

static int add_paces(void *arg, const struct store_profile *p)
{
	struct evidence_source *s = arg;
	struct code_walk walk =
		code_walk_start(&s->image->map, s->image->segments, s->image->nsegments);
	struct pace_reader reader;
	struct pace pace;
	int rc = pace_reader_init(&reader, p->data, p->size);

	while (!rc && (rc = pace_reader_next(&reader, &pace)) > 0) {
		struct placed_pace placed = {.pace = pace};

		placed.procedure = code_walk_to(&walk, pace.offset, &placed.pace.offset);
		if (placed.procedure != CODE_NOWHERE)
			*vec_add(&s->paces) = placed;
		rc = 0;
	}
	return rc;
}

static int by_pace(const void *a, const void *b)
{
	const struct placed_pace *x = a, *y = b;

	if (x->procedure != y->procedure)
		return x->procedure < y->procedure ? -1 : 1;
	return x->pace.offset < y->pace.offset ? -1 : x->pace.offset > y->pace.offset;
}

/* ---- the whole ---- */

/* The file, while it is the one that was sampled. */
static void open_file(struct evidence_source *s)
{
	struct image *file;

	if (s->image->kind != IMAGE_ELF || image_open_path(s->image->path, &file, NULL))
		return;
	if (!s->image->identity.size || !image_id_equal(image_id(file), &s->image->identity)) {
		image_destroy(file);
		return;
	}
	s->file = file;
	program_create(file, &s->program);
}

static int gather(struct evidence_source *s, struct err *e)
{
	int rc = selection_load(s->sel, s->image, e);

	choose_time(s);
	if (!rc)
		rc = gather_samples(s, e);
	if (!rc)
		rc = selection_blobs_of(s->sel, s->image, &blob_edge, add_edges, s, e);
	if (!rc)
		rc = selection_blobs_of(s->sel, s->image, &blob_excursion, add_excursions, s, e);
	if (!rc)
		rc = selection_blobs_of(s->sel, s->image, &blob_anchor, add_anchors, s, e);
	if (!rc)
		rc = selection_blobs_of(s->sel, s->image, &blob_turns, add_paces, s, e);
	if (rc)
		return rc;
	settle_edges(s);
	vec_sort(&s->passages, by_passage);
	vec_sort(&s->anchors, by_anchor);
	vec_sort(&s->paces, by_pace);
	list_procedures(s);
	evidence_find_calls(s);
	open_file(s);
	return 0;
}

int evidence_source_create(struct selection *sel, struct selected_image *im,
	struct evidence_source **out, struct err *e)
{
	struct evidence_source *s = xcalloc(1, sizeof *s);
	int rc;

	s->sel = sel;
	s->image = im;
	if ((rc = gather(s, e))) {
		evidence_source_destroy(s);
		return rc;
	}
	*out = s;
	return 0;
}

void evidence_source_destroy(struct evidence_source *s)
{
	if (!s)
		return;
	program_destroy(s->program);
	if (s->file)
		image_destroy(s->file);
	vec_deinit(&s->samples);
	vec_deinit(&s->edges);
	vec_deinit(&s->passages);
	vec_deinit(&s->anchors);
	vec_deinit(&s->paces);
	vec_deinit(&s->calls);
	vec_deinit(&s->procedures);
	free(s);
}

size_t evidence_source_procedures(
	const struct evidence_source *s, const struct evidence_procedure **out)
{
	*out = s->procedures.p;
	return s->procedures.n;
}
