#include "analyze/even.h"

#include "base/mem.h"
#include "base/vec.h"
#include "store/edges.h"
#include "store/walks.h"

#include <math.h>
#include <stdlib.h>

/* So many samples more on either side: where there are few their number says little. */
#define SAMPLES_MORE 30.0
/* No instruction is taken to need less than this part of what it should: what retires along with
 * others hardly ever shows, and the few bursts from there would outweigh all others. */
#define LEAST_TIME 0.5
/* Of a block with hardly any bursts one stands for no more than this many. */
#define MOST_WEIGHT 8.0
/* Outcomes as bursts saw them are worth so many that are weighted: more where these are few. */
#define AS_SEEN 40.0
/* A procedure where no share of at least so many outcomes changes by so much is left as it is. */
#define FEWEST      30
#define LEAST_MOVED 0.03

/* A range of code. */
struct span {
	uint64_t start, size;
	uint32_t row;
};

/* Of a row: weights of the outcomes by edge of its flow, and of what began there by block. */
struct tallied {
	double *sum, *squares, *begun;
};

/* Where a burst began. */
struct start {
	uint32_t row, block, insn;
};

struct evening {
	const struct selected_image *im;
	struct frequencies_row *rows;
	size_t n;
	VEC(struct span) spans;
	struct tallied *tallied;
	double samples; /* of an instruction that runs once, on the average; */
	double bursts;  /* that began at one, as well */
	uint64_t key;   /* of the image */
};

/* ---- where addresses are ---- */

static int by_start(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static void find_spans(struct evening *t)
{
	for (uint32_t r = 0; r < t->n; r++) {
		const struct procedure *p = &t->im->procedures.p[t->rows[r].procedure];

		for (uint32_t i = 0; i < p->nranges; i++)
			*vec_add(&t->spans) =
				(struct span){p->ranges[i].start, p->ranges[i].size, r};
	}
	vec_sort(&t->spans, by_start);
}

static uint32_t row_at(const struct evening *t, uint64_t address)
{
	size_t low = 0, high = t->spans.n;
	const struct span *s;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (t->spans.p[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	s = low ? &t->spans.p[low - 1] : NULL;
	return s && address - s->start < s->size ? s->row : GRAPH_NONE;
}

static uint64_t address_of(const struct evening *t, uint64_t offset)
{
	uint64_t address = offset;

	if (t->im->nsegments &&
		!segments_vaddr(t->im->segments, t->im->nsegments, offset, &address))
		return UINT64_MAX;
	return address;
}

/* ---- weights ---- */

static double count_at(const struct evening *t, const struct start *s)
{
	return t->rows[s->row].frequency->block[s->block].count;
}

/* Executions of all instructions, and their samples. */
static double executed(const struct evening *t, double *samples)
{
	double all = 0;

	*samples = 0;
	for (size_t r = 0; r < t->n; r++) {
		const struct flow *f = t->rows[r].evidence->flow;

		*samples += (double)t->rows[r].evidence->total;
		for (uint32_t b = 0; b < f->nblocks; b++)
			all += t->rows[r].frequency->block[b].count * f->blocks[b].count;
	}
	return all;
}

static double samples_at(const struct evening *t, const struct start *s)
{
	return (double)t->rows[s->row].evidence->samples[s->insn];
}

/* What bursts from an instruction have in common: how long it takes. */
static double by_time(const struct evening *t, const struct start *s)
{
	double expected = count_at(t, s) * t->samples;
	double taken = fmax(samples_at(t, s), LEAST_TIME * expected);

	return (expected + SAMPLES_MORE) / (taken + SAMPLES_MORE);
}

/* Of the bursts from a block, those from where time is spent stand for less. */
static double within_block(const struct evening *t, const struct start *s)
{
	return 1 / (samples_at(t, s) + SAMPLES_MORE);
}

/* As many from each block as its share of the executed instructions. */
static double by_block(const struct evening *t, const struct start *s)
{
	const struct flow_block *b = &t->rows[s->row].evidence->flow->blocks[s->block];
	double expected = count_at(t, s) * b->count * t->bursts;

	return fmin(
		MOST_WEIGHT, expected * within_block(t, s) / t->tallied[s->row].begun[s->block]);
}

static bool find_start(const struct evening *t, uint64_t address, struct start *out)
{
	out->row = row_at(t, address);
	if (out->row == GRAPH_NONE)
		return false;
	out->insn = evidence_insn_at(t->rows[out->row].evidence->flow, address, &out->block);
	return out->insn != GRAPH_NONE;
}

/*
 * By time alone, blocks whose instructions retire with others are shown by too few bursts: the way
 * into a loop, say, and then the loop seems to be left more often than it is entered. By block
 * these few weigh much. The mean of the two halves what is wrong with either.
 */
static double weight_at(const struct evening *t, uint64_t address)
{
	struct start s;

	return find_start(t, address, &s) ? sqrt(by_time(t, &s) * by_block(t, &s)) : 1;
}

/* ---- walks ---- */

static void add_step(struct evening *t, const struct edge *seen, double weight)
{
	uint32_t r = row_at(t, seen->from), edge;

	if (r == GRAPH_NONE)
		return;
	edge = evidence_edge_of(t->rows[r].evidence, seen);
	if (edge == GRAPH_NONE)
		return;
	t->tallied[r].sum[edge] += weight;
	t->tallied[r].squares[edge] += weight * weight;
}

static void add_start(struct evening *t, const struct walk *walk)
{
	struct start s;

	if (!find_start(t, address_of(t, walk->start), &s))
		return;
	t->tallied[s.row].begun[s.block] += (double)walk->weight * within_block(t, &s);
	t->bursts += (double)walk->weight;
}

static void add_walk(struct evening *t, const struct walk *walk)
{
	double weight = (double)walk->weight * weight_at(t, address_of(t, walk->start));
	bool here = true;

	for (uint32_t i = 0; i < walk->nsteps; i++) {
		const struct walk_step *s = &walk->steps[i];
		bool to_here = s->target ? s->target == t->key : here;
		struct edge seen = {.from = address_of(t, s->from),
			.target = to_here ? 0 : 1,
			.to = to_here ? address_of(t, s->to) : s->to};

		if (here)
			add_step(t, &seen, weight);
		here = to_here;
	}
}

static int read_walks(const struct store_profile *p, struct evening *t,
	void (*see)(struct evening *, const struct walk *))
{
	struct walk_reader *r = xmalloc(sizeof *r);
	struct walk walk;
	int rc = walk_reader_init(r, p->data, p->size);

	while (!rc && (rc = walk_reader_next(r, &walk)) > 0) {
		see(t, &walk);
		rc = 0;
	}
	free(r);
	return rc;
}

static int read_starts(void *arg, const struct store_profile *p)
{
	return read_walks(p, arg, add_start);
}

static int read_steps(void *arg, const struct store_profile *p)
{
	return read_walks(p, arg, add_walk);
}

/* ---- outcomes ---- */

/* Of the edges that leave a block: as seen, and weighted. As many as the weights are worth. */
static void mix(const struct tallied *w, const struct evidence *ev, uint32_t block, double *out)
{
	double sum = 0, squares = 0, seen = 0, worth, all;

	graph_each_out (e, &ev->flow->graph, block) {
		sum += w->sum[*e];
		squares += w->squares[*e];
		seen += (double)ev->edges[*e];
	}
	worth = squares > 0 ? sum * sum / squares : 0;
	all = worth + fmin(seen, AS_SEEN);
	graph_each_out (e, &ev->flow->graph, block) {
		double even = sum > 0 ? w->sum[*e] / sum : 0;
		double own = seen > 0 ? (double)ev->edges[*e] / seen : 0;

		out[*e] = sum > 0 && seen > 0 ? fmin(all, seen) / all *
							(worth * even + fmin(seen, AS_SEEN) * own)
					      : (double)ev->edges[*e];
	}
}

/* Whether a share of a block's outcomes became much different, of those that are no chance. */
static bool is_moved(const struct evidence *ev, uint32_t block, const double *now)
{
	double before = 0, after = 0;

	graph_each_out (e, &ev->flow->graph, block) {
		before += ev->outcomes ? ev->outcomes[*e] : (double)ev->edges[*e];
		after += now[*e];
	}
	graph_each_out (e, &ev->flow->graph, block) {
		double old = ev->outcomes ? ev->outcomes[*e] : (double)ev->edges[*e];

		if (ev->edges[*e] >= FEWEST && before > 0 && after > 0 &&
			fabs(now[*e] / after * before / old - 1) > LEAST_MOVED)
			return true;
	}
	return false;
}

/* Whether there are new ones: to estimate anew takes time. */
static bool give_outcomes(const struct tallied *w, struct evidence *ev)
{
	double *now = xcalloc(ev->flow->graph.edges + 1, sizeof *now);
	bool any = false;

	for (uint32_t node = 0; node < ev->flow->graph.nodes; node++) {
		mix(w, ev, node, now);
		any = any || is_moved(ev, node, now);
	}
	if (!any) {
		free(now);
		return false;
	}
	free(ev->outcomes);
	ev->outcomes = now;
	return true;
}

static int weigh(struct evening *t, struct selection *sel, struct err *e)
{
	double samples, all = executed(t, &samples);
	int rc = selection_blobs_of(sel, t->im, &blob_walk, read_starts, t, e);

	if (rc || !(all > 0))
		return rc;
	t->samples = samples / all;
	t->bursts /= all;
	return selection_blobs_of(sel, t->im, &blob_walk, read_steps, t, e);
}

int even_outcomes(struct selection *sel, const struct selected_image *im,
	struct frequencies_row *rows, size_t n, bool *changed, struct err *e)
{
	struct evening t = {.im = im, .rows = rows, .n = n};
	int rc;

	t.key = edge_image_key(im->kind, &im->identity, im->path);
	t.tallied = xcalloc(n + 1, sizeof *t.tallied);
	for (size_t r = 0; r < n; r++) {
		const struct flow *f = rows[r].evidence->flow;

		t.tallied[r].sum = xcalloc(f->graph.edges + 1, sizeof *t.tallied[r].sum);
		t.tallied[r].squares = xcalloc(f->graph.edges + 1, sizeof *t.tallied[r].squares);
		t.tallied[r].begun = xcalloc(f->nblocks + 1, sizeof *t.tallied[r].begun);
	}
	find_spans(&t);
	rc = weigh(&t, sel, e);
	for (size_t r = 0; r < n; r++) {
		changed[r] = !rc && give_outcomes(&t.tallied[r], rows[r].evidence);
		free(t.tallied[r].sum);
		free(t.tallied[r].squares);
		free(t.tallied[r].begun);
	}
	free(t.tallied);
	vec_deinit(&t.spans);
	return rc;
}
