#include "analyze/advice_prefetch.h"

#include "base/hmap.h"
#include "base/mem.h"
#include "base/vec.h"

#include <stdlib.h>

#define FIRST_CACHE  512  /* lines: 32 KB */
#define STRIDE_MOST  2048 /* bytes: steps that hardware follows stay in a page */
#define EVEN_LEAST   0.7
#define POINTER_WORK 12 /* references of a turn that may cover a part of a miss */
#define STRIDES      4

struct site_key {
	uint64_t image, at;
};

/* What one instruction did, with its most frequent steps (Space-Saving). */
struct site {
	struct site_key key;
	struct reach_advice sum;
	uint64_t last, last_number, last_burst, gaps;
	struct {
		int64_t step;
		uint64_t count;
	} strides[STRIDES];
	uint64_t group_votes;
};

struct line_key {
	uint64_t line;
	uint64_t site; /* 0: of any, in the burst at hand */
};

struct line {
	struct line_key key;
	uint64_t burst;
};

struct reaches {
	struct hmap sites, lines;
	VEC(struct reach_advice) list;
};

static void count_step(struct site *s, int64_t step)
{
	unsigned least = 0;

	for (unsigned i = 0; i < STRIDES; i++) {
		if (s->strides[i].count && s->strides[i].step == step) {
			s->strides[i].count++;
			return;
		}
		if (s->strides[i].count < s->strides[least].count)
			least = i;
	}
	s->strides[least].step = step;
	s->strides[least].count++;
}

/* The majority, by votes (Boyer and Moore). */
static void vote(struct site *s, uint32_t group)
{
	if (!s->group_votes)
		s->sum.group = group;
	s->group_votes += s->sum.group == group ? 1 : -1;
}

static void count_line(struct reaches *w, struct site *s, const struct touch *t)
{
	uint64_t line = t->address / TOUCH_LINE;
	struct line_key own = {line, t->site->at | 1}, any = {line, 0};
	struct line *l;
	bool fresh;

	hmap_put(&w->lines, &own, &fresh);
	s->sum.lines += fresh;
	l = hmap_put(&w->lines, &any, &fresh);
	s->sum.fresh += fresh || l->burst != t->burst + 1;
	l->burst = t->burst + 1;
}

void reaches_take(struct reaches *w, const struct touch *t)
{
	struct site_key key = {t->site->image, t->site->at};
	bool fresh;
	struct site *s = hmap_put(&w->sites, &key, &fresh);

	if (fresh)
		s->sum.site = *t->site;
	s->sum.references++;
	vote(s, t->thing.group);
	if (!fresh && s->last_burst == t->burst) {
		s->sum.steps++;
		s->gaps += t->number - s->last_number - 1;
		count_step(s, (int64_t)(t->address - s->last));
	}
	s->last = t->address;
	s->last_number = t->number;
	s->last_burst = t->burst;
	count_line(w, s, t);
}

/* ---- verdicts ---- */

static enum reach_kind kind_of(const struct reach_advice *a, struct things *things)
{
	bool even = a->steps && (double)a->even >= EVEN_LEAST * (double)a->steps;

	if (a->lines <= 1 || (even && !a->stride))
		return REACH_SAME;
	if (even)
		return REACH_STRIDE;
	return things && things_is_chased(things, &a->site) ? REACH_POINTER : REACH_IRREGULAR;
}

static enum prefetch_verdict verdict_of(const struct reach_advice *a)
{
	uint64_t step = (uint64_t)(a->stride < 0 ? -a->stride : a->stride);

	if (a->lines <= FIRST_CACHE || a->kind == REACH_SAME)
		return PREFETCH_FITS;
	if (a->kind == REACH_STRIDE)
		return step <= STRIDE_MOST ? PREFETCH_HARDWARE : PREFETCH_PAGES;
	if (a->kind == REACH_POINTER)
		return a->between >= POINTER_WORK ? PREFETCH_POINTER : PREFETCH_LATE;
	return PREFETCH_COMPUTED;
}

static void judge(struct site *s, struct things *things)
{
	struct reach_advice *a = &s->sum;

	for (unsigned i = 0; i < STRIDES; i++)
		if (s->strides[i].count > a->even) {
			a->even = s->strides[i].count;
			a->stride = s->strides[i].step;
		}
	a->between = a->steps ? s->gaps / a->steps : 0;
	a->kind = kind_of(a, things);
	a->verdict = verdict_of(a);
}

static int by_fresh(const void *a, const void *b)
{
	const struct reach_advice *x = a, *y = b;

	if (x->fresh != y->fresh)
		return x->fresh > y->fresh ? -1 : 1;
	return x->site.at < y->site.at ? -1 : x->site.at > y->site.at;
}

size_t reaches_settle(struct reaches *w, struct things *things, const struct reach_advice **out)
{
	for (struct site *s = NULL; (s = hmap_next(&w->sites, s));) {
		judge(s, things);
		*vec_add(&w->list) = s->sum;
	}
	vec_sort(&w->list, by_fresh);
	*out = w->list.p;
	return w->list.n;
}

const char *reach_kind_name(enum reach_kind k)
{
	static const char *const names[] = {[REACH_SAME] = "same place",
		[REACH_STRIDE] = "stride",
		[REACH_POINTER] = "pointer chase",
		[REACH_IRREGULAR] = "irregular"};

	return names[k];
}

const char *prefetch_name(enum prefetch_verdict v)
{
	return v <= PREFETCH_LATE ? "don't" : "prefetch";
}

const char *prefetch_words(enum prefetch_verdict v)
{
	static const char *const words[] = {
		[PREFETCH_FITS] = "what it touches fits into the first cache",
		[PREFETCH_HARDWARE] = "the hardware follows even steps",
		[PREFETCH_LATE] =
			"the next address is known too late: put what it reaches in order",
		[PREFETCH_POINTER] = "what the next pointer leads to, when a turn begins",
		[PREFETCH_PAGES] = "some turns ahead: steps leave the page, where hardware stops",
		[PREFETCH_COMPUTED] = "some turns ahead, where the index is known by then"};

	return words[v];
}

struct reaches *reaches_create(void)
{
	struct reaches *w = xcalloc(1, sizeof *w);

	hmap_init(&w->sites, sizeof(struct site), sizeof(struct site_key));
	hmap_init(&w->lines, sizeof(struct line), sizeof(struct line_key));
	return w;
}

void reaches_destroy(struct reaches *w)
{
	if (!w)
		return;
	hmap_deinit(&w->sites);
	hmap_deinit(&w->lines);
	vec_deinit(&w->list);
	free(w);
}
