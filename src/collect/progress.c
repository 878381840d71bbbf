#include "collect/progress.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	THREADS_MOST = 256, /* followed at once */
	CANDIDATES = 128,   /* words of a thread that may become watched */
	AUTHORS = 512,      /* instructions of a thread that move words */
	SEEN_ENOUGH = 3,    /* bursts that moved a word before it is watched */
	STANDS_STILL = 48,  /* reads: then it makes room for others */
	FAILURES = 24,      /* reads that make no sense, in a row */
	RETIRED_MOST = 64,  /* words of a thread that counted once, since the last flush */
};

#define TURNS_A_NS 2 /* no core does more */

/* Of what an instruction was seen to move, so much must be the word. */
#define MOST_OF 0.5

/* Where it is reset more often than that, it may be twice from one read to the next. */
#define FAILED_MOST 0.1
/* But not if it always goes round at the same value, and never half as far from read to read. */
#define ROUNDS_MOST 0.4

/*
 * Words mostly begin at nothing, so what one holds when it is first read are the turns before. That
 * is believed if it is what bursts saw of them till then, by these factors (a beginning can be far
 * faster than the rest), and no more than what was counted later.
 */
#define BEGUN_LEAST 0.25
#define BEGUN_MOST  10.0

/* Where a word is always reset at the same value, it was last read no farther below than it went at
 * most from one read to the next; which says something if that is not most of the way. */
#define SAME_TOP 1.25
/* What a word has when it was reset is little, counted from what it is reset to; that is nothing if
 * it can be, else the least seen. */
#define LITTLE      2.0
#define FROM_NOUGHT 4.0
enum { RESETS_FEWEST = 4 }; /* that tell the least */

#define CLOCKS_DIFFER 10000 /* ns, between a thread's own and everybody's */

/* An instruction that moves words, since the last flush. */
struct author {
	struct progress_place place;
	uint64_t times;          /* that it was seen to */
	uint64_t turns, covered; /* by words that were watched, and how many of these were seen */
	bool counts;             /* it moved a word again by the same step, and nobody else did */
};

/* What was seen of a word: how often it was moved, and all that its author moved meanwhile. */
struct sightings {
	struct progress_place by;
	uint64_t own, before, until; /* the author's times */
	bool shared;                 /* by several authors */
};

struct candidate {
	uint64_t address;
	int64_t step;
	uint32_t size, seen;
	bool bad; /* was moved by different steps */
	struct sightings seen_by;
};

/* Where words were read in turns, from nothing on: they always grow, but for resets. */
struct resets {
	uint64_t n, seen;     /* turns that bursts saw around them */
	double before, after; /* sums of what was read */
	double lowest;        /* before */
	double least, most;   /* after */
};

struct watched {
	uint64_t address;
	int64_t step;
	uint32_t size;
	uint32_t failures;      /* in a row */
	uint64_t reads, failed; /* since it is watched */
	bool read;              /* `last`, `before` and `wall` are there */
	uint64_t last, before, wall;
	uint64_t fresh;          /* turns that bursts have seen since then */
	uint64_t turns, covered; /* and of all turns */
	uint32_t still;          /* reads in a row */
	double top;              /* where it was read, at most */
	uint64_t stride;         /* turns from one read to the next, at most */
	bool late;               /* turns may have been counted before it was first read: */
	double begun;            /* where that was, */
	uint64_t begun_seen;     /* and turns that bursts had seen by then */
	struct resets resets;
	bool back; /* what was read last lies before what was then: a reset, if it goes on there */
	double back_from;
	uint64_t back_seen;
	struct sightings seen_by;
};

/* A thread that is followed. */
struct followed {
	uint32_t who;
	bool changed, used;
	bool flushed; /* since it is followed */
	uint32_t nwatched;
	struct watched *watched[SHADOW_WATCHED];
	VEC(struct watched *) retired;
	struct candidate *candidates; /* CANDIDATES of them */
	struct hmap authors;
};

struct follow_key {
	uint64_t id;
	struct followed *f;
};

void progress_init(struct progress *p)
{
	*p = (struct progress){0};
	hmap_init(&p->followed, sizeof(struct follow_key), offsetof(struct follow_key, f));
}

static void forget_retired(struct followed *f)
{
	vec_each (w, &f->retired)
		free(*w);
	f->retired.n = 0;
}

static void forget(struct followed *f)
{
	for (uint32_t i = 0; i < f->nwatched; i++)
		free(f->watched[i]);
	forget_retired(f);
	vec_deinit(&f->retired);
	hmap_deinit(&f->authors);
	free(f->candidates);
	free(f);
}

void progress_deinit(struct progress *p)
{
	for (struct follow_key *k = NULL; (k = hmap_next(&p->followed, k));)
		forget(k->f);
	hmap_deinit(&p->followed);
	vec_deinit(&p->paces);
}

/* ---- words that may count ---- */

static struct followed *follow(struct progress *p, const struct progress_thread *t, bool make)
{
	struct follow_key *k = hmap_get(&p->followed, &t->id);

	if (!k && make && p->followed.n < THREADS_MOST) {
		k = hmap_put(&p->followed, &t->id, NULL);
		k->f = xcalloc(1, sizeof *k->f);
		k->f->candidates = xcalloc(CANDIDATES, sizeof *k->f->candidates);
		hmap_init(&k->f->authors, sizeof(struct author), offsetof(struct author, times));
	}
	if (!k)
		return NULL;
	k->f->who = t->who; /* another number after each flush */
	k->f->used = true;
	return k->f;
}

/* NULL: there are too many. */
static struct author *count_author(
	struct followed *f, const struct progress_place *by, uint64_t times)
{
	struct author *a = f->authors.n < AUTHORS ? hmap_put(&f->authors, by, NULL)
						  : hmap_get(&f->authors, by);

	if (!a)
		return NULL;
	a->times += times;
	return a;
}

static void sight(
	struct sightings *s, const struct progress_place *by, uint64_t times, uint64_t all)
{
	if (!s->own) {
		s->by = *by;
		s->before = all - times;
	}
	s->shared |= memcmp(&s->by, by, sizeof *by) != 0;
	s->own += times;
	s->until = all;
}

static bool is_sole(const struct sightings *s)
{
	return !s->shared && (double)s->own >= MOST_OF * (double)(s->until - s->before);
}

/* Of two words that want the same place, the one that is moved more often gets it in the end. */
static struct candidate *candidate_of(struct followed *f, const struct shadow_moved *m)
{
	struct candidate *c =
		&f->candidates[(m->address * 0x9e3779b97f4a7c15ull >> 40) % CANDIDATES];

	if (c->seen && c->address != m->address && --c->seen)
		return NULL;
	if (!c->seen || c->address != m->address)
		*c = (struct candidate){.address = m->address,
			.size = m->size,
			.step = m->change / (int64_t)m->times};
	return c;
}

static struct watched *watched_at(const struct followed *f, uint64_t address)
{
	for (uint32_t i = 0; i < f->nwatched; i++)
		if (f->watched[i]->address == address)
			return f->watched[i];
	return NULL;
}

static void unwatch(struct followed *f, const struct watched *w)
{
	uint32_t i = 0;

	while (f->watched[i] != w)
		i++;
	f->watched[i] = f->watched[--f->nwatched];
	f->changed = true;
}

static void drop(struct followed *f, struct watched *w)
{
	unwatch(f, w);
	free(w);
}

/* What it has told holds. */
static void retire(struct followed *f, struct watched *w)
{
	unwatch(f, w);
	if (w->turns && f->retired.n < RETIRED_MOST)
		*vec_add(&f->retired) = w;
	else
		free(w);
}

/* What stands still makes room. */
static bool make_room(struct followed *f)
{
	for (uint32_t i = 0; i < f->nwatched && f->nwatched == SHADOW_WATCHED; i++)
		if (f->watched[i]->still >= STANDS_STILL)
			retire(f, f->watched[i]);
	return f->nwatched < SHADOW_WATCHED;
}

static void watch(struct followed *f, const struct candidate *c)
{
	struct watched *w;

	if (!make_room(f))
		return;
	w = xcalloc(1, sizeof *w);
	w->address = c->address;
	w->step = c->step;
	w->size = c->size;
	w->seen_by = c->seen_by;
	w->late = f->flushed;
	f->watched[f->nwatched++] = w;
	f->changed = true;
}

static bool moves_by(const struct shadow_moved *m, int64_t step, uint32_t size)
{
	return m->size == size && m->change == step * (int64_t)m->times;
}

void progress_moved(struct progress *p, const struct progress_thread *t,
	const struct shadow_moved *m, const struct progress_place *by)
{
	struct followed *f = m->times ? follow(p, t, true) : NULL;
	struct author *author = f ? count_author(f, by, m->times) : NULL;
	struct watched *w = f ? watched_at(f, m->address) : NULL;
	struct candidate *c = author && !w ? candidate_of(f, m) : NULL;

	if (w && author && moves_by(m, w->step, w->size)) {
		sight(&w->seen_by, by, m->times, author->times);
		w->fresh += m->times;
		author->counts = true;
	} else if (w) {
		drop(f, w);
	}
	if (!c)
		return;
	c->seen++;
	sight(&c->seen_by, by, m->times, author->times);
	c->bad |= !c->step || !moves_by(m, c->step, c->size);
	author->counts |= c->seen > 1 && !c->bad && is_sole(&c->seen_by);
	if (c->seen == SEEN_ENOUGH && !c->bad && is_sole(&c->seen_by))
		watch(f, c);
}

/* ---- what they tell ---- */

static uint64_t value_of(const struct watched *w, uint64_t word)
{
	return w->size == 8 ? word : w->address & 4 ? word >> 32 : (uint32_t)word;
}

static int64_t difference(const struct watched *w, uint64_t now)
{
	return w->size == 8 ? (int64_t)(now - w->last)
			    : (int32_t)((uint32_t)now - (uint32_t)w->last);
}

/* A thread's own time, and everybody's. */
struct moment {
	uint64_t own, wall;
};

/* Turns since the last read; -1: it cannot be. Bursts saw what was to come: if it has not, then
 * something else moves the word back. */
static int64_t turns_of(const struct watched *w, uint64_t now, uint64_t ns)
{
	int64_t moved = difference(w, now), turns = moved / w->step;

	return turns * w->step == moved && turns >= (int64_t)w->fresh &&
			       (uint64_t)turns <= ns * TURNS_A_NS
		       ? turns
		       : -1;
}

/*
 * The thread's own time since it was `before`, at most. Where it has gone on on another CPU that is
 * by another clock, and may have leapt: then it is not more than everybody's. To leave such turns
 * out would be to leave out those of the longest times, in which a thread is moved more easily.
 */
static uint64_t gap_since(const struct moment *now, uint64_t before, uint64_t wall)
{
	uint64_t own = now->own - before, passed = now->wall - wall;

	return before && own < passed + passed / 64 + CLOCKS_DIFFER ? own : passed;
}

/* What is empty may hold -1. */
static double place_of(const struct watched *w, uint64_t value)
{
	int64_t number = w->size == 8 ? (int64_t)value : (int32_t)value;

	return (double)number / (double)w->step;
}

static void note_reset(struct resets *r, double before, double after, uint64_t seen)
{
	r->lowest = r->n ? fmin(r->lowest, before) : before;
	r->least = r->n ? fmin(r->least, after) : after;
	r->most = r->n ? fmax(r->most, after) : after;
	r->before += before;
	r->after += after;
	r->seen += seen;
	r->n++;
}

static void note_turns(struct watched *w, uint64_t turns)
{
	if (w->back)
		note_reset(&w->resets, w->back_from, place_of(w, w->last), w->back_seen);
	w->back = false;
	w->turns += turns;
	w->covered += w->fresh;
	w->still = turns ? 0 : w->still + 1;
	w->stride = turns > w->stride ? turns : w->stride;
}

/* False: the word does not count any more. */
static bool take(struct watched *w, uint64_t now, const struct moment *time)
{
	uint64_t gap = w->read ? gap_since(time, w->before, w->wall) : 0;
	int64_t turns = gap ? turns_of(w, now, gap) : -1;
	double place = place_of(w, now), last = place_of(w, w->last);

	if (turns >= 0) {
		note_turns(w, (uint64_t)turns);
		w->top = fmax(w->top, place);
	} else if (!w->read) {
		w->begun = w->late ? 0 : place;
		w->begun_seen = w->late ? 0 : w->seen_by.own;
		w->top = place;
	} else if (gap) {
		w->back = place < last && !w->failures;
		w->back_from = last;
		w->back_seen = w->fresh;
	}
	w->reads += gap > 0;
	w->failed += gap && turns < 0;
	w->failures = turns >= 0 || !gap ? 0 : w->failures + 1;
	w->read = true;
	w->last = now;
	w->before = time->own;
	w->wall = time->wall;
	w->fresh = 0;
	return w->failures < FAILURES;
}

void progress_read(struct progress *p, const struct progress_thread *t,
	const struct shadow_reading *r, size_t n, uint64_t wall)
{
	const struct moment time = {.own = r->ns, .wall = wall};
	struct followed *f = follow(p, t, false);

	for (size_t i = 0; f && i < n; i++) {
		struct watched *w = watched_at(f, r->word[i][0]);

		if (w && !take(w, value_of(w, r->word[i][1]), &time)) {
			w->reads -= w->failures; /* it is something else since then */
			w->failed -= w->failures;
			retire(f, w);
		}
	}
}

bool progress_orders(struct progress *p, uint64_t thread, struct shadow_watch *out)
{
	struct follow_key *k = hmap_get(&p->followed, &thread);

	if (!k || !k->f->changed)
		return false;
	k->f->changed = false;
	*out = (struct shadow_watch){.thread = thread, .n = k->f->nwatched};
	for (uint32_t i = 0; i < k->f->nwatched; i++)
		out->address[i] = k->f->watched[i]->address;
	return true;
}

/* ---- flushing ---- */

/* What it is reset to. */
static double base_of(const struct watched *w)
{
	double least = w->resets.least;

	return least >= -1 && least <= FROM_NOUGHT * (double)w->stride ? 0 : least;
}

static bool has_same_top(const struct watched *w)
{
	double stride = (double)w->stride;

	return w->top - w->resets.lowest <= SAME_TOP * stride && 2 * stride <= w->top - base_of(w);
}

/*
 * Turns between the last read before a reset and the first one after it, over all resets. Those
 * after are what it holds. Those before are as many in the mean, for nobody chose when to read; but
 * where it is always reset at the same value, they are known. False: it goes back to anywhere.
 */
static bool count_resets(const struct watched *w, double *turns)
{
	const struct resets *r = &w->resets;
	double n = (double)r->n, after = r->after - n * base_of(w);

	if (!r->n || r->most - base_of(w) > LITTLE * (double)w->stride ||
		(base_of(w) != 0 && r->n < RESETS_FEWEST))
		return false;
	*turns = fmax(0, has_same_top(w) ? after + n * w->top - r->before : 2 * after);
	return true;
}

/* Whether it is as it was, but for what makes no sense; and never reset twice between two reads. */
static bool is_steady(const struct watched *w, bool counted)
{
	double reads = (double)w->reads, failed = (double)w->failed, resets = (double)w->resets.n;

	if (counted && has_same_top(w))
		return failed - resets <= FAILED_MOST * reads && resets <= ROUNDS_MOST * reads;
	return failed <= FAILED_MOST * reads;
}

static bool is_begun_known(const struct watched *w)
{
	double expected =
		w->covered ? (double)w->turns * (double)w->begun_seen / (double)w->covered : 0;

	return !w->resets.n && w->begun >= BEGUN_LEAST * expected && w->begun <= (double)w->turns &&
	       w->begun <= BEGUN_MOST * expected;
}

/* What a word has counted goes to who moved it. */
static void credit(struct followed *f, const struct watched *w)
{
	struct author *a = hmap_get(&f->authors, &w->seen_by.by);
	double around = 0;
	bool counted = count_resets(w, &around);

	if (!a || w->seen_by.shared || !is_steady(w, counted))
		return;
	a->turns += w->turns + (uint64_t)around;
	a->covered += w->covered + (counted ? w->resets.seen : 0);
	if (is_begun_known(w)) {
		a->turns += (uint64_t)w->begun;
		a->covered += w->begun_seen;
	}
}

static void tell(struct progress *p, const struct followed *f, const struct author *a)
{
	*vec_add(&p->paces) = (struct progress_pace){.by = a->place,
		.who = f->who,
		.turns = a->turns,
		.counted = a->covered < a->times ? a->covered : a->times,
		.seen = a->times};
}

static int compare_groups(const struct progress_pace *a, uint32_t image, uint32_t who)
{
	if (a->by.image != image)
		return a->by.image < image ? -1 : 1;
	return a->who < who ? -1 : a->who > who;
}

static int compare_paces(const void *a, const void *b)
{
	const struct progress_pace *x = a, *y = b;
	int order = compare_groups(x, y->by.image, y->who);

	if (order)
		return order;
	return x->by.offset < y->by.offset ? -1 : x->by.offset > y->by.offset;
}

static void credit_all(struct followed *f, struct hmap *told)
{
	for (struct author *a = NULL; (a = hmap_next(&f->authors, a));)
		a->turns = a->covered = 0;
	for (uint32_t i = 0; i < f->nwatched; i++)
		credit(f, f->watched[i]);
	vec_each (w, &f->retired)
		credit(f, *w);
	for (const struct author *a = NULL; (a = hmap_next(&f->authors, a));)
		if (a->turns)
			hmap_put(told, &a->place, NULL);
}

/*
 * What is known of an instruction in one thread is told of all: of others it says what was not
 * counted. So it is of all that may count, for another flush or another recording may have counted
 * them: if only those told that did, the turns of the others would be missing.
 */
void progress_settle(struct progress *p)
{
	struct hmap told;

	p->paces.n = 0;
	hmap_init(&told, sizeof(struct progress_place), sizeof(struct progress_place));
	for (struct follow_key *k = NULL; (k = hmap_next(&p->followed, k));)
		credit_all(k->f, &told);
	for (struct follow_key *k = NULL; (k = hmap_next(&p->followed, k));)
		for (const struct author *a = NULL; (a = hmap_next(&k->f->authors, a));)
			if (a->counts || hmap_get(&told, &a->place))
				tell(p, k->f, a);
	hmap_deinit(&told);
	vec_sort(&p->paces, compare_paces);
}

size_t progress_find(
	const struct progress *p, uint32_t image, uint32_t who, const struct progress_pace **first)
{
	size_t low = 0, high = p->paces.n, n = 0;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare_groups(&p->paces.p[middle], image, who) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	*first = p->paces.p + low;
	while (low + n < p->paces.n && !compare_groups(&p->paces.p[low + n], image, who))
		n++;
	return n;
}

static void begin_anew(struct followed *f)
{
	for (uint32_t i = 0; i < f->nwatched; i++) {
		struct watched *w = f->watched[i];

		w->turns = w->covered = w->reads = w->failed = 0;
		w->late = true;
		w->begun = 0;
		w->begun_seen = 0;
		w->resets = (struct resets){0};
		w->back = false;
		w->seen_by.own = 0;
	}
	forget_retired(f);
	hmap_clear(&f->authors);
	for (uint32_t i = 0; i < CANDIDATES; i++)
		f->candidates[i] = (struct candidate){0};
	f->used = false;
	f->flushed = true;
}

void progress_clear(struct progress *p)
{
	VEC(uint64_t) gone = {0};

	p->paces.n = 0;
	for (struct follow_key *k = NULL; (k = hmap_next(&p->followed, k));)
		if (k->f->used)
			begin_anew(k->f);
		else
			*vec_add(&gone) = k->id;
	vec_each (id, &gone) {
		struct follow_key *k = hmap_get(&p->followed, id);

		forget(k->f);
		hmap_delete(&p->followed, id);
	}
	vec_deinit(&gone);
}

size_t progress_memory(const struct progress *p)
{
	size_t bytes = p->paces.space * sizeof *p->paces.p;

	for (const struct follow_key *k = NULL; (k = hmap_next(&p->followed, k));) {
		bytes += sizeof *k->f + CANDIDATES * sizeof *k->f->candidates +
			 k->f->authors.slots * sizeof(struct author) +
			 (k->f->nwatched + k->f->retired.n) * sizeof(struct watched);
	}
	return bytes;
}
