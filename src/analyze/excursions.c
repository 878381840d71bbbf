#include "analyze/excursions.h"

#include "base/mem.h"
#include "base/vec.h"
#include "store/excursions.h"

#include <math.h>
#include <stdlib.h>

/* So many samples more on either side: where there are few their number says little. */
#define SAMPLES_MORE 30.0
/* Blocks in a row that end in no transfer. */
enum { CHAIN_MOST = 64 };
/* An image that an excursion hardly came to does not tell how fast that was. */
#define LEAST_PART 0.02
/* Of whose time less is in the excursions of a row has no part in what they say. */
#define LEAST_SHARE 0.002
/* Weights that are off by less are no reason to estimate anew. */
#define LEAST_MOVED 0.01

/* Of a stretch of one excursion. */
struct outing {
	double base, weight; /* as it came; by how fast it was, too */
	double follows;      /* how much the weight goes up if all is faster (logarithms) */
	double time, work;   /* samples that it should bring, instructions */
};

/* What is behind an edge until the next transfer. */
struct stretch {
	double time, work;
};

struct weighing {
	const struct frequencies_row *rows;
	size_t n;
	const double *factor; /* by row */
	struct outing *outings;
	uint32_t noutings;
	double average; /* samples of an instruction */
	double lasts;   /* see lasting() */
};

/* ---- time ---- */

static double samples_of(const struct evidence *ev, const struct flow_block *b)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < b->count; i++)
		sum += ev->samples[b->first + i];
	return (double)sum;
}

static double time_of(const struct weighing *t, uint32_t row, uint32_t block)
{
	const struct frequencies_row *r = &t->rows[row];
	const struct flow_block *b = &r->evidence->flow->blocks[block];
	double usual = b->count * t->average;
	double expected = r->frequency->block[block].count * t->factor[row] * usual;

	return usual * (samples_of(r->evidence, b) + SAMPLES_MORE) / (expected + SAMPLES_MORE);
}

static bool ends_in_transfer(const struct flow_block *b)
{
	return b->end != FLOW_FALLS && b->end != FLOW_JUMPS && b->end != FLOW_CALLS;
}

static uint32_t next_of(const struct flow *f, uint32_t block)
{
	graph_each_out (e, &f->graph, block)
		if (f->graph.edge[*e].to < f->nblocks)
			return f->graph.edge[*e].to;
	return GRAPH_NONE;
}

/* From a block on to the end of the next one that ends in a transfer. */
static struct stretch stretch_from(const struct weighing *t, uint32_t row, uint32_t block)
{
	const struct flow *f = t->rows[row].evidence->flow;
	struct stretch s = {0};

	for (int i = 0; block != GRAPH_NONE && block < f->nblocks && i < CHAIN_MOST; i++) {
		s.time += time_of(t, row, block);
		s.work += f->blocks[block].count;
		if (ends_in_transfer(&f->blocks[block]))
			break;
		block = next_of(f, block);
	}
	return s;
}

static uint32_t entry_of(const struct flow *f)
{
	for (uint32_t e = 0; e < f->graph.edges; e++)
		if (f->edge_kind[e] == FLOW_EDGE_ENTRY)
			return f->graph.edge[e].to;
	return GRAPH_NONE;
}

/* Who leaves a procedure has entered it, which no transfer tells that is recorded. */
static uint32_t target_of(const struct evidence *ev, const struct evidence_passage *p)
{
	const struct flow *f = ev->flow;
	uint32_t to = p->edge != GRAPH_NONE ? f->graph.edge[p->edge].to
		      : p->way.target       ? GRAPH_NONE
					    : flow_block_at(f, p->way.to);

	return to < f->nblocks ? to : entry_of(f);
}

static struct outing *outing_of(const struct weighing *t, const struct evidence_passage *p)
{
	return &t->outings[p->excursion * EXCURSION_STRETCHES + p->stretch];
}

static void spend_row(struct weighing *t, uint32_t row)
{
	const struct evidence *ev = t->rows[row].evidence;
	struct stretch *known = xcalloc(ev->flow->nblocks + 1, sizeof *known);

	for (size_t i = 0; i < ev->npassages; i++) {
		const struct evidence_passage *p = &ev->passages[i];
		struct outing *o = outing_of(t, p);
		uint32_t to = target_of(ev, p);

		if (to == GRAPH_NONE)
			continue;
		if (!(known[to].work > 0))
			known[to] = stretch_from(t, row, to);
		o->time += p->count * known[to].time;
		o->work += p->count * known[to].work;
	}
	free(known);
}

/* How slow a stretch was, 1: as all on the average. One that hardly came to the image is, too. */
static double pace_of(const struct weighing *t, const struct outing *o, double most)
{
	return o->work > LEAST_PART * most && o->time > 0 ? o->time / (o->work * t->average) : 1;
}

/* How much of what the first stretch is slower or faster than others the last one still is. */
static double lasting(const struct weighing *t, double most)
{
	double both = 0, first = 0, last = 0;

	for (uint32_t i = 0; i < t->noutings; i += EXCURSION_STRETCHES) {
		double a = pace_of(t, &t->outings[i], most) - 1;
		double z = pace_of(t, &t->outings[i + EXCURSION_STRETCHES - 1], most) - 1;

		both += a * z;
		first += a * a;
		last += z * z;
	}
	return first > 0 && last > 0 ? fmin(1, fmax(0, both / sqrt(first * last))) : 0;
}

/* Of all stretches together. */
static double pace_of_all(const struct weighing *t, const struct outing *o, double most)
{
	struct outing all = {0};

	for (int i = 0; i < EXCURSION_STRETCHES; i++) {
		all.time += o[i].time;
		all.work += o[i].work;
	}
	return pace_of(t, &all, most);
}

/*
 * What is executed is seen if an excursion began within the length of one before it: the likelier
 * the more time was spent there. That is as much as is spent in the excursion if what makes it slow
 * lasts, else as much as on the average.
 */
static void weigh_one(const struct weighing *t, struct outing *o, double most)
{
	double pace = 1 + t->lasts * (pace_of_all(t, o, most) - 1);

	for (int i = 0; i < EXCURSION_STRETCHES; i++) {
		o[i].weight = o[i].base / pace;
		o[i].follows = t->lasts * pace_of_all(t, o, most) / pace;
	}
}

/* Instructions that a row executes, by its counts and factor. */
static double work_of(const struct frequencies_row *row, double factor)
{
	const struct flow *f = row->evidence->flow;
	double work = 0;

	for (uint32_t b = 0; b < f->nblocks; b++)
		work += row->frequency->block[b].count * factor * f->blocks[b].count;
	return work;
}

static void find_average(struct weighing *t)
{
	double samples = 0, work = 0;

	for (uint32_t r = 0; r < t->n; r++) {
		samples += (double)t->rows[r].evidence->total;
		work += work_of(&t->rows[r], t->factor[r]);
	}
	t->average = work > 0 ? samples / work : 0;
}

static void spend(struct weighing *t)
{
	double most = 0;

	for (uint32_t i = 0; i < t->noutings; i++)
		t->outings[i].time = t->outings[i].work = 0;
	for (uint32_t r = 0; r < t->n; r++)
		spend_row(t, r);
	for (uint32_t i = 0; i < t->noutings; i++)
		most = fmax(most, t->outings[i].work);
	t->lasts = lasting(t, most);
	for (uint32_t i = 0; i < t->noutings; i += EXCURSION_STRETCHES)
		weigh_one(t, &t->outings[i], most);
}

static void take_outings(struct weighing *t)
{
	uint32_t n = 0;

	for (size_t r = 0; r < t->n; r++) {
		const struct evidence *ev = t->rows[r].evidence;

		for (size_t i = 0; i < ev->npassages; i++)
			if (ev->passages[i].excursion >= n)
				n = ev->passages[i].excursion + 1;
	}
	t->noutings = n * EXCURSION_STRETCHES;
	t->outings = xcalloc(t->noutings + 1, sizeof *t->outings);
	for (size_t r = 0; r < t->n; r++) {
		const struct evidence *ev = t->rows[r].evidence;

		for (size_t i = 0; i < ev->npassages; i++) {
			struct outing *o = outing_of(t, &ev->passages[i]);

			o->base = o->weight = ev->passages[i].stands;
		}
	}
}

/* False: there are no excursions, or nothing is known of what ran in them. */
static bool begin(struct weighing *t)
{
	take_outings(t);
	find_average(t);
	if (!t->noutings || !(t->average > 0))
		return false;
	spend(t);
	return true;
}

/* ---- weights ---- */

static void give_weights(struct weighing *t, bool *changed)
{
	double sum = 0, base = 0;

	for (uint32_t i = 0; i < t->noutings; i++) {
		sum += t->outings[i].weight;
		base += t->outings[i].base;
	}
	for (uint32_t r = 0; r < t->n; r++) {
		struct evidence *ev = t->rows[r].evidence;

		for (size_t i = 0; i < ev->npassages; i++) {
			struct evidence_passage *p = &ev->passages[i];
			double now = outing_of(t, p)->weight * base / sum;

			changed[r] |= fabs(now / p->weight - 1) > LEAST_MOVED;
			p->weight = now;
		}
	}
}

void excursions_weigh(struct frequencies_row *rows, size_t n, const double *factor, bool *changed)
{
	struct weighing t = {.rows = rows, .n = n, .factor = factor};

	if (begin(&t))
		give_weights(&t, changed);
	free(t.outings);
}

/* ---- how procedures compare ---- */

/* What an excursion showed of a row. */
struct showing {
	uint32_t excursion, row;
	double passed; /* weighted passages */
	double time;   /* samples that they should bring */
};

typedef VEC(struct showing) showing_list;

struct comparing {
	struct weighing *w;
	const uint32_t *number;
	showing_list by_excursion, by_row;
	size_t *first;   /* by excursion: in the list */
	double *time;    /* by excursion: of all rows */
	double *all;     /* by excursion: weighted passages of all rows */
	double *passed;  /* by row: the same of all excursions, */
	double *counted; /* and how many its counts make of them */
};

static void show_row(struct comparing *c, uint32_t row)
{
	const struct weighing *t = c->w;
	const struct evidence *ev = t->rows[row].evidence;
	uint32_t n = t->noutings / EXCURSION_STRETCHES, last = GRAPH_NONE;
	struct stretch *known = xcalloc(ev->flow->nblocks + 1, sizeof *known);
	struct showing *one = xcalloc(n + 1, sizeof *one);

	for (size_t i = 0; i < ev->npassages; i++) {
		const struct evidence_passage *p = &ev->passages[i];
		uint32_t to = target_of(ev, p);

		one[p->excursion].passed += outing_of(t, p)->weight * p->count;
		if (to != GRAPH_NONE && !(known[to].work > 0))
			known[to] = stretch_from(t, row, to);
		one[p->excursion].time += to != GRAPH_NONE ? p->count * known[to].time : 0;
		if (p->block != last)
			c->counted[row] +=
				t->rows[row].frequency->block[p->block].count * t->factor[row];
		last = p->block;
	}
	for (uint32_t i = 0; i < n; i++) {
		if (!(one[i].passed > 0))
			continue;
		one[i].excursion = i;
		one[i].row = row;
		*vec_add(&c->by_row) = one[i];
		c->passed[row] += one[i].passed;
		c->all[i] += one[i].passed;
		c->time[i] += one[i].time;
	}
	free(known);
	free(one);
}

static int by_excursion(const void *a, const void *b)
{
	const struct showing *x = a, *y = b;

	if (x->excursion != y->excursion)
		return x->excursion < y->excursion ? -1 : 1;
	return x->row < y->row ? -1 : x->row > y->row;
}

/* Whose time makes the weights of the excursions that show a row. Rows without a number count as
 * the row itself: their factor is not going to change. */
static void find_terms(const struct comparing *c, size_t from, size_t to, double *share,
	struct excursions_word *out)
{
	uint32_t row = c->by_row.p[from].row;
	VEC(struct excursions_term) terms = {0};

	for (size_t i = from; i < to; i++) {
		const struct showing *s = &c->by_row.p[i];
		double part = s->passed / c->passed[row] / c->time[s->excursion] *
			      c->w->outings[s->excursion * EXCURSION_STRETCHES].follows;

		for (size_t k = c->first[s->excursion]; k < c->first[s->excursion + 1]; k++)
			share[c->by_excursion.p[k].row] += part * c->by_excursion.p[k].time;
	}
	for (uint32_t r = 0; r < c->w->n; r++) {
		if (share[r] > LEAST_SHARE && c->number[r] != GRAPH_NONE)
			*vec_add(&terms) = (struct excursions_term){r, share[r]};
		share[r] = 0;
	}
	out->terms = terms.p;
	out->nterms = terms.n;
}

/* A ratio of sums over excursions that go their own ways. */
static double variance_of(
	const struct comparing *c, size_t from, size_t to, double part, double *one)
{
	uint32_t row = c->by_row.p[from].row, n = c->w->noutings / EXCURSION_STRETCHES;
	double squares = 0;

	for (uint32_t i = 0; i < n; i++)
		one[i] = -part * c->all[i];
	for (size_t i = from; i < to; i++)
		one[c->by_row.p[i].excursion] += c->by_row.p[i].passed;
	for (uint32_t i = 0; i < n; i++)
		squares += one[i] * one[i];
	return squares / (c->passed[row] * c->passed[row]);
}

static void show(struct comparing *c)
{
	size_t n = c->w->noutings / EXCURSION_STRETCHES, at = 0;

	for (uint32_t r = 0; r < c->w->n; r++)
		show_row(c, r);
	vec_each (s, &c->by_row)
		*vec_add(&c->by_excursion) = *s;
	vec_sort(&c->by_excursion, by_excursion);
	for (size_t i = 0; i <= n; i++) {
		while (at < c->by_excursion.n && c->by_excursion.p[at].excursion < i)
			at++;
		c->first[i] = at;
	}
}

/* `says` is relative to the mean of all, by passages. */
static size_t say(const struct comparing *c, struct excursions_word **out)
{
	VEC(struct excursions_word) list = {0};
	double *share = xcalloc(c->w->n + 1, sizeof *share);
	double *one = xcalloc(c->w->noutings + 1, sizeof *one), all = 0, counted = 0;

	for (uint32_t r = 0; r < c->w->n; r++) {
		all += c->passed[r];
		counted += c->passed[r] > 0 ? c->counted[r] : 0;
	}
	for (size_t i = 0, k; i < c->by_row.n; i = k) {
		uint32_t row = c->by_row.p[i].row;
		struct excursions_word word = {.row = row};

		for (k = i; k < c->by_row.n && c->by_row.p[k].row == row;)
			k++;
		if (c->number[row] == GRAPH_NONE || !(c->counted[row] > 0))
			continue;
		word.says = log(c->passed[row] / all / (c->counted[row] / counted));
		word.variance = variance_of(c, i, k, c->passed[row] / all, one);
		find_terms(c, i, k, share, &word);
		*vec_add(&list) = word;
	}
	free(share);
	free(one);
	*out = list.p;
	return list.n;
}

size_t excursions_compare(const struct frequencies_row *rows, size_t n, const double *factor,
	const uint32_t *number, struct excursions_word **out)
{
	struct weighing t = {.rows = rows, .n = n, .factor = factor};
	struct comparing c = {.w = &t, .number = number};
	size_t excursions, words = 0;

	*out = NULL;
	if (begin(&t)) {
		excursions = t.noutings / EXCURSION_STRETCHES;
		c.first = xcalloc(excursions + 1, sizeof *c.first);
		c.time = xcalloc(excursions + 1, sizeof *c.time);
		c.all = xcalloc(excursions + 1, sizeof *c.all);
		c.passed = xcalloc(n + 1, sizeof *c.passed);
		c.counted = xcalloc(n + 1, sizeof *c.counted);
		show(&c);
		words = say(&c, out);
	}
	vec_deinit(&c.by_excursion);
	vec_deinit(&c.by_row);
	free(c.first);
	free(c.time);
	free(c.all);
	free(c.passed);
	free(c.counted);
	free(t.outings);
	return words;
}

void excursions_parts(const struct frequencies_row *rows, size_t n, const double *factor,
	const uint32_t *number, double *part)
{
	double all = 0;

	for (size_t r = 0; r < n; r++)
		all += part[r] = number[r] == GRAPH_NONE ? 0 : work_of(&rows[r], factor[r]);
	for (size_t r = 0; r < n && all > 0; r++)
		part[r] /= all;
}

void excursions_words_free(struct excursions_word *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(list[i].terms);
	free(list);
}
