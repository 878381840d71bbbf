/*
 * Where fetching may have had to begin anew before an instruction: behind transfers that may be
 * mispredicted, in other lines and pages of code.
 */
#include "analyze/why_internal.h"

#include "analyze/foresight.h"
#include "analyze/residence.h"
#include "analyze/stays.h"
#include "base/mem.h"

#include <math.h>
#include <string.h>

#define LINE      64
#define PAGE      4096
#define CODE_COST 1 /* cycles of a line, where none is seen alone */
/* How far the share of lines that are gone may be off, by walks: lines do not come by chance alone.
 */
#define LIKELY_GONE 2
#define SHADOW      48 /* instructions whose latencies show after the pipeline was emptied */

/* ---- branches ---- */

#define LEAST 14 /* cycles that a mispredicted branch costs: at least, usually, at most */
#define USUAL 18
#define MOST  25
/*
 * While the pipeline is empty after a misprediction, interrupts show the branch's target or the
 * instruction behind it. The first kind of samples is moved to the branch like all others there,
 * the second to the target. On Ice Lake there were 1.8 times as many of the first kind, on Zen 4
 * none.
 */
#define SPLIT_LIKELY 1.8
#define SPLIT        2.5

static bool is_predicted(const struct why_work *w, uint32_t block)
{
	switch (w->flow->blocks[block].end) {
	case FLOW_BRANCHES:
	case FLOW_TABLE:
	case FLOW_UNRESOLVED:
		return true;
	default:
		return false;
	}
}

static bool splits(const struct why_work *w)
{
	return strncmp(model_name(w->machine->model), "zen", 3) != 0;
}

/* Cycles beyond the best case where a block leads, for each of its executions. */
static double lost_behind(struct why_work *w, uint32_t block, double *usual)
{
	const struct graph *g = &w->flow->graph;
	double all = 0, most = 0, lost = 0;

	graph_each_out (e, g, block) {
		double count = why_edge_count(w, *e);
		uint32_t to = g->edge[*e].to;

		all += count;
		most = fmax(most, count);
		if (to < w->flow->nblocks && count > 0) {
			const struct why_time *t = &w->time[w->flow->blocks[to].first];

			lost += (t->seen - t->laid) * count / why_block_count(w, to);
		}
	}
	*usual = all > 0 ? most / all : 1;
	return all > 0 ? lost / all : 0;
}

static bool look_up(const struct why_work *w, uint32_t block, double *share)
{
	const struct flow_block *b = &w->flow->blocks[block];
	uint64_t at = w->flow->insns[b->first + b->count - 1].address;

	return w->machine->foresight && foresight_misses(w->machine->foresight, w->evidence->image,
						why_offset(w, at), share);
}

/* Only of branches that walks came by often enough to foresee them, or not. */
void why_keep_refills(struct why_work *w)
{
	const struct graph *g = &w->flow->graph;
	double behind = splits(w) ? 1 / (1 + SPLIT_LIKELY) : 1, share;

	for (uint32_t b = 0; b < w->flow->nblocks; b++) {
		if (!is_predicted(w, b) || !look_up(w, b, &share))
			continue;
		w->time[why_last(w, b)].kept +=
			share * USUAL * (1 - behind) * why_block_count(w, b);
		graph_each_out (e, g, b) {
			uint32_t to = g->edge[*e].to;

			if (to < w->flow->nblocks)
				w->time[w->flow->blocks[to].first].kept +=
					share * USUAL * behind * why_edge_count(w, *e);
		}
	}
}

/* Cycles beyond the best case at the end of a block, for each execution, if only the transfer can
 * be to blame for them. */
static double lost_at(struct why_work *w, uint32_t block)
{
	uint32_t last = why_last(w, block);
	double count = why_block_count(w, block);

	if (!(count > 0) || why_loads_far(w, last))
		return 0;
	return (w->time[last].seen - w->time[last].laid) / count;
}

/*
 * Whoever always expects the usual way is wrong as often as the others come; predictors do better,
 * so that is a bound. Another is the time that was lost where the branch leads.
 */
static void find_after(struct why_work *w, uint32_t block)
{
	struct why_misses *m = &w->misses[block];
	double usual, lost = lost_behind(w, block, &usual), share = 0;

	m->after = fmin(1 - usual, fmax((1 + SPLIT) * lost, lost + lost_at(w, block)) / LEAST);
	m->foreseen = look_up(w, block, &share);
	m->after_likely = fmin(m->after, m->foreseen ? share : (1 - usual) / 2);
}

/* Of so many mispredictions, those that can be on this edge, and that likely are. */
static void find_before(struct why_work *w, uint32_t block)
{
	const struct graph *g = &w->flow->graph;
	struct why_misses *m = &w->misses[block];
	double all = 0;

	graph_each_in (e, g, block) {
		uint32_t from = g->edge[*e].from;
		double count = why_edge_count(w, *e), n;

		all += count;
		if (from == w->flow->entry_node) {
			m->before += count; /* whoever calls may do so through a pointer */
			continue;
		}
		n = why_block_count(w, from);
		m->before += fmin(count, w->misses[from].after * n);
		m->before_likely += fmin(count, w->misses[from].after_likely * n / 2);
	}
	m->before = all > 0 ? fmin(1, m->before / all) : 0;
	m->before_likely = all > 0 ? fmin(1, m->before_likely / all) : 0;
}

void why_find_missed(struct why_work *w)
{
	memset(w->misses, 0, (w->flow->nblocks + 1) * sizeof *w->misses);
	for (uint32_t b = 0; b < w->flow->nblocks; b++)
		if (is_predicted(w, b))
			find_after(w, b);
	for (uint32_t b = 0; b < w->flow->nblocks; b++)
		find_before(w, b);
}

/* The branch before a block that most of its mispredictions come from. */
static uint32_t worst_branch(struct why_work *w, uint32_t block)
{
	const struct graph *g = &w->flow->graph;
	uint32_t worst = GRAPH_NONE;
	double most = 0;

	graph_each_in (e, g, block) {
		uint32_t from = g->edge[*e].from;
		const struct flow_block *b = &w->flow->blocks[from];
		double missed;

		if (from == w->flow->entry_node)
			continue;
		missed = fmin(
			why_edge_count(w, *e), w->misses[from].after * why_block_count(w, from));
		if (missed > most) {
			most = missed;
			worst = b->first + b->count - 1;
		}
	}
	return worst;
}

/* ---- shadows ---- */

/*
 * After the pipeline was emptied nothing older is under way, so latencies show that are hidden
 * else: the scoreboard says which, when it begins there. The first instruction is left out, for it
 * is where fetching shows.
 */
struct shadow {
	struct why_work *work;
	uint32_t block;        /* that is begun after a misprediction, */
	double missed, likely; /* so many times */
	uint32_t number[SHADOW];
	struct model_insn insn[SHADOW];
};

#define OFTEN 0.125 /* ways that are followed come so often, as a share */

static void cast_shadow(struct shadow *s, size_t n, size_t from, double share)
{
	struct why_work *w = s->work;
	struct scoreboard_insn out[SHADOW];

	if (scoreboard_block(w->board, s->insn, n, out, NULL))
		return;
	for (size_t i = from < 1 ? 1 : from; i < n; i++) {
		struct why_shadow *to = &w->shadow[s->number[i]];
		double lost = fmin(out[i].stall, MOST) - w->why->insns[s->number[i]].min_cpi;

		if (!(lost > 0))
			continue;
		to->missed += s->missed * share * lost;
		to->likely += s->likely * share * lost;
		if (s->missed * share * lost > to->most) {
			to->most = s->missed * share * lost;
			to->block = s->block;
		}
	}
}

static void follow_shadow(struct shadow *s, uint32_t block, size_t n, double share)
{
	struct why_work *w = s->work;
	const struct flow_block *b = &w->flow->blocks[block];
	double count = why_block_count(w, block);
	size_t from = n;

	for (uint32_t i = 0; i < b->count && n < SHADOW; i++) {
		s->number[n] = b->first + i;
		s->insn[n++] = why_fact_of(w, b->first + i)->model;
	}
	cast_shadow(s, n, from, share);
	if (n == SHADOW || n == from || b->end == FLOW_CALLS)
		return;
	graph_each_out (e, &w->flow->graph, block) {
		uint32_t to = w->flow->graph.edge[*e].to;
		double part = share * fmin(1, why_edge_count(w, *e) / count);

		if (to < w->flow->nblocks && part >= OFTEN)
			follow_shadow(s, to, n, part);
	}
}

static void find_shadows(struct why_work *w)
{
	struct shadow s = {.work = w};

	for (s.block = 0; s.block < w->flow->nblocks; s.block++) {
		const struct why_misses *m = &w->misses[s.block];
		double count = why_block_count(w, s.block);

		s.missed = m->before * count;
		s.likely = m->before_likely * count;
		if (s.missed * USUAL > w->sample)
			follow_shadow(&s, s.block, 0, 1);
	}
}

static void look_at_shadow(struct why_work *w, uint32_t insn, struct why_front *out)
{
	const struct why_shadow *s = &w->shadow[insn];
	double count = why_block_count(w, w->block_of[insn]);

	if (!(s->missed > 0) || !(count > 0))
		return;
	out->missed += s->missed / count;
	out->likely += s->likely / count;
	out->branch = worst_branch(w, s->block);
	out->foreseen = out->branch != GRAPH_NONE && w->misses[w->block_of[out->branch]].foreseen;
}

static void look_at_branches(struct why_work *w, uint32_t insn, struct why_front *out)
{
	uint32_t block = w->block_of[insn];
	const struct flow_block *b = &w->flow->blocks[block];
	const struct why_misses *m = &w->misses[block];
	bool split = splits(w);

	look_at_shadow(w, insn, out);
	if (out->leads) {
		out->missed += m->before * MOST;
		out->likely += m->before_likely * USUAL / (split ? 1 + SPLIT_LIKELY : 1);
		out->branch = worst_branch(w, block);
		out->foreseen |=
			out->branch != GRAPH_NONE && w->misses[w->block_of[out->branch]].foreseen;
	}
	if (out->ends && split) {
		double usual;

		out->missed += fmin(m->after * MOST,
			fmax(SPLIT * lost_behind(w, block, &usual), lost_at(w, block)));
		out->likely += m->after_likely * USUAL * SPLIT_LIKELY / (1 + SPLIT_LIKELY);
		out->foreseen |= m->foreseen;
		out->branch = b->first + b->count - 1;
	}
	out->likely = fmin(out->likely, out->missed);
}

/* ---- lines and pages ---- */

static bool apart(const struct flow_insn *a, const struct flow_insn *b, uint64_t unit)
{
	return (a->address + a->length - 1) / unit != (b->address + b->length - 1) / unit;
}

/* How often the line of an instruction is gone from the cache when control comes there. */
struct gone {
	double by_walks, likely, most;
	bool watched;
};

static struct gone is_gone(const struct why_work *w, const struct flow_insn *in)
{
	const struct selected_image *im = w->evidence->image;
	uint64_t offset = why_offset(w, in->address + in->length - 1);
	struct gone gone = {1, 1, 1, false};
	struct stays_share seen;

	if (w->machine->residence &&
		residence_misses(w->machine->residence, im, offset, &gone.by_walks))
		gone.most = LIKELY_GONE * gone.by_walks;
	gone.likely = gone.by_walks;
	gone.watched = w->machine->stays && stays_code(w->machine->stays, im, offset, &seen);
	if (gone.watched) {
		gone.likely = seen.likely;
		gone.most = seen.most;
	}
	return gone;
}

/* Of so many of the executions. */
static void set_gone(struct why_front *out, const struct gone *gone, double share)
{
	out->gone = fmax(out->gone, share * gone->by_walks);
	out->gone_likely = fmax(out->gone_likely, share * gone->likely);
	out->gone_most = fmax(out->gone_most, share * gone->most);
	out->watched |= gone->watched;
}

static void look_at_edges(struct why_work *w, uint32_t block, struct why_front *out)
{
	const struct graph *g = &w->flow->graph;
	const struct flow_insn *first = &w->flow->insns[w->flow->blocks[block].first];
	double all = 0, line = 0, page = 0, entered = 0;
	struct gone gone = is_gone(w, first);

	graph_each_in (e, g, block) {
		uint32_t from = g->edge[*e].from;
		double count = why_edge_count(w, *e);
		bool outside =
			from == w->flow->entry_node || w->flow->blocks[from].end == FLOW_CALLS;

		all += count;
		entered += from == w->flow->entry_node ? count : 0;
		if (!outside) {
			const struct flow_block *b = &w->flow->blocks[from];
			const struct flow_insn *last = &w->flow->insns[b->first + b->count - 1];

			line += apart(first, last, LINE) ? count : 0;
			page += apart(first, last, PAGE) ? count : 0;
		} else {
			line += count;
			page += count;
		}
	}
	if (!(all > 0))
		return;
	out->fresh_line = line / all;
	out->fresh_page = page / all;
	out->entered = entered / all;
	set_gone(out, &gone, out->fresh_line);
}

/* What is fetched behind the end of a block shows there, too: see SPLIT. */
static void look_at_targets(struct why_work *w, uint32_t block, struct why_front *out)
{
	const struct graph *g = &w->flow->graph;
	const struct flow_block *b = &w->flow->blocks[block];
	const struct flow_insn *last = &w->flow->insns[b->first + b->count - 1];
	double all = 0, line = 0, page = 0;
	struct gone gone = {0};

	graph_each_out (e, g, block) {
		uint32_t to = g->edge[*e].to;
		double count = why_edge_count(w, *e);

		all += count;
		if (to >= w->flow->nblocks)
			continue;
		const struct flow_insn *first = &w->flow->insns[w->flow->blocks[to].first];

		page += apart(first, last, PAGE) ? count : 0;
		if (!apart(first, last, LINE))
			continue;
		struct gone there = is_gone(w, first);

		line += count;
		gone.by_walks += count * there.by_walks;
		gone.likely += count * there.likely;
		gone.most += count * there.most;
		gone.watched |= there.watched;
	}
	if (!(all > 0))
		return;
	set_gone(out, &gone, 1 / all);
	out->fresh_line = fmax(out->fresh_line, line / all);
	out->fresh_page = fmax(out->fresh_page, page / all);
}

/* How often its innermost loop is entered, for each execution. */
double why_fresh(struct why_work *w, uint32_t block)
{
	const struct graph *g = &w->flow->graph;
	uint32_t loop = w->loops.of[block];
	double count = why_block_count(w, block), entered = 0;

	if (loop == GRAPH_NONE || !(count > 0) || why_loop_of(w, loop)->calls)
		return 1;
	graph_each_in (e, g, w->loops.loop[loop].header)
		if (!(w->loops.edge[*e] & LOOP_BACK))
			entered += why_edge_count(w, *e);
	return fmin(1, entered / count);
}

static void look_before(const struct why_work *w, uint32_t insn, struct why_front *out)
{
	const struct flow_insn *in = &w->flow->insns[insn];

	out->fresh_line = apart(in, in - 1, LINE);
	if (out->fresh_line > 0) {
		struct gone gone = is_gone(w, in);

		set_gone(out, &gone, 1);
	}
	out->fresh_page = apart(in, in - 1, PAGE);
}

static void look_at_code(struct why_work *w, uint32_t insn, struct why_front *out)
{
	uint32_t block = w->block_of[insn];

	if (insn == w->flow->blocks[block].first)
		look_at_edges(w, block, out);
	else
		look_before(w, insn, out);
	if (insn == why_last(w, block))
		look_at_targets(w, block, out);
}

/* Moves between registers retire with what is behind them. */
static bool is_move(struct why_work *w, uint32_t insn)
{
	const struct model_insn *in = &why_fact_of(w, insn)->model;

	return in->flags & (MODEL_MOVE | MODEL_ELIMINATED) ||
	       (in->uops == 1 && in->latency <= 1 && in->nreads == 1 && in->nwrites == 1 &&
		       !in->nplaces);
}

/* Whether it is the first of its block that can hold up anything. */
static bool is_first(struct why_work *w, uint32_t insn)
{
	uint32_t first = w->flow->blocks[w->block_of[insn]].first;

	return insn == first || (insn == first + 1 && is_move(w, first));
}

/* What another line of code costs, from instructions that touch no memory and do nothing slow. */
struct witness {
	double lost, times;
};

static void hear(struct why_work *w, uint32_t insn, double share, double likely, struct witness *v)
{
	const struct why_fact *f = why_fact_of(w, insn);
	double count = why_block_count(w, w->block_of[insn]) * share;

	if (f->model.nplaces || f->hazards || !(count > 0))
		return;
	v->lost += fmax(0, w->time[insn].seen - w->time[insn].laid - likely);
	v->times += count;
}

static void hear_all(struct why_work *w, struct witness *next, struct witness *other)
{
	for (uint32_t b = 0; b < w->flow->nblocks; b++) {
		const struct flow_block *block = &w->flow->blocks[b];
		struct why_front front = {0};

		if (!(why_block_count(w, b) > 0))
			continue;
		for (uint32_t i = block->first + 1; i < block->first + block->count; i++)
			if (apart(&w->flow->insns[i], &w->flow->insns[i - 1], LINE))
				hear(w, i, 1, 0, next);
		look_at_edges(w, b, &front);
		if (block->count && front.fresh_line > 0.5 && !(front.entered > 0.1))
			hear(w, block->first, front.fresh_line,
				w->misses[b].before_likely * USUAL * why_block_count(w, b), other);
	}
}

void why_find_front(struct why_work *w)
{
	struct witness next = {0}, other = {0};

	why_find_missed(w);
	find_shadows(w);
	hear_all(w, &next, &other);
	w->next_line = next.times > 0 ? next.lost / next.times : CODE_COST;
	w->other_line = other.times > 0 ? other.lost / other.times : CODE_COST;
}

double why_line_gone(struct why_work *w, uint32_t insn)
{
	struct why_front front = {0};

	look_at_code(w, insn, &front);
	return front.fresh_line * front.gone;
}

void why_front_at(struct why_work *w, uint32_t insn, struct why_front *out)
{
	uint32_t block = w->block_of[insn];

	*out = (struct why_front){.branch = GRAPH_NONE};
	out->leads = is_first(w, insn);
	out->ends = is_predicted(w, block) && insn == why_last(w, block);
	out->fresh = why_fresh(w, block);
	if (w->loops.of[block] != GRAPH_NONE) {
		const struct why_loop *l = why_loop_of(w, w->loops.of[block]);

		out->lines = l->lines;
		out->pages = l->pages;
	}
	look_at_branches(w, insn, out);
	look_at_code(w, insn, out);
}
