#include "analyze/foresight.h"

#include "base/err.h"
#include "base/hmap.h"
#include "base/mem.h"
#include "base/vec.h"
#include "store/edges.h"
#include "store/walks.h"

#include <math.h>
#include <stdlib.h>

#define STEPS_MOST  ((size_t)1 << 19) /* that are looked at; beyond, walks are thinned */
#define SEEN_LEAST  24                /* times that a branch must have been seen */
#define ALIKE_LEAST 4                 /* others with the same history that a prediction needs */

/* Branches that histories hold. */
static const unsigned lengths[] = {0, 2, 4, 8, 14};
#define LENGTHS (sizeof lengths / sizeof *lengths)

struct branch {
	uint64_t image; /* its key */
	uint64_t from;
	uint32_t number; /* from 1 */
	/* With histories of at most a length: times that it was seen with enough to be told
	   apart by, and of these were wrong. */
	uint32_t seen[LENGTHS];
	double wrong[LENGTHS];
};

struct step {
	uint32_t branch; /* 0: a walk begins */
	uint32_t way;    /* stands for where it went */
};

/* A branch with a history, and where it went: the ways that came first. */
#define WAYS 3
struct context {
	uint64_t history;
	uint64_t branch;
	uint32_t seen, pad;
	uint32_t way[WAYS], times[WAYS];
};

/*
 * A branch with the shortest history. Walks that reach a branch with a long history may be of
 * another kind than those that begin just before it (those end, say, where the interpreter cannot
 * follow, and what comes behind is seen from there on only); by this they are told apart.
 */
struct kind {
	uint64_t history;
	uint64_t branch;
	/* By length: times that had so much history, and wrong ones of them, in halves. */
	uint32_t seen[LENGTHS], wrong[LENGTHS];
};

struct foresight {
	struct hmap branches;
	VEC(struct step) steps;
	uint64_t key; /* of the image whose walks are read */
	uint64_t walks;
	unsigned thinned; /* one walk of 2^thinned is kept */
};

/* ---- reading ---- */

static struct branch *branch_of(struct foresight *f, uint64_t image, uint64_t from)
{
	struct branch key = {.image = image, .from = from}, *b;
	bool fresh;

	b = hmap_put(&f->branches, &key, &fresh);
	if (fresh)
		b->number = (uint32_t)f->branches.n;
	return b;
}

static void add_walk(struct foresight *f, const struct walk *walk)
{
	uint64_t image = f->key, turn = f->walks++;

	if (hash_bytes(&turn, sizeof turn) & (((uint64_t)1 << f->thinned) - 1))
		return;
	*vec_add(&f->steps) = (struct step){0, 0};
	for (uint32_t i = 0; i < walk->nsteps; i++) {
		const struct walk_step *s = &walk->steps[i];
		struct branch *b = branch_of(f, image, s->from);
		uint64_t to[2] = {s->target, s->to};

		*vec_add(&f->steps) =
			(struct step){b->number, (uint32_t)hash_bytes(to, sizeof to) | 1};
		if (s->target)
			image = s->target;
	}
	if (f->steps.n > STEPS_MOST << f->thinned && f->thinned < 20)
		f->thinned++;
}

static int read_walks(void *arg, const struct store_profile *p)
{
	struct foresight *f = arg;
	struct walk_reader *r = xmalloc(sizeof *r);
	struct walk walk;
	int rc = walk_reader_init(r, p->data, p->size);

	while (!rc && (rc = walk_reader_next(r, &walk)) > 0) {
		add_walk(f, &walk);
		rc = 0;
	}
	free(r);
	return rc;
}

/* ---- predicting ---- */

/* Histories are those of one walk; a shorter one than asked for is none. */
struct history {
	uint32_t ways[16];
	uint32_t n;
};

static bool history_hash(const struct history *h, unsigned length, uint64_t *hash)
{
	uint32_t last[16];

	if (h->n < length)
		return false;
	for (unsigned i = 0; i < length; i++)
		last[i] = h->ways[(h->n - 1 - i) % 16];
	*hash = length ? hash_bytes(last, length * sizeof *last) : 0;
	return true;
}

static void count_way(struct context *c, uint32_t way)
{
	c->seen++;
	for (unsigned i = 0; i < WAYS; i++)
		if (!c->times[i] || c->way[i] == way) {
			c->way[i] = way;
			c->times[i]++;
			return;
		}
}

/* How wrong it is to expect what came most often the other times, in halves. */
static unsigned judge(const struct context *c, uint32_t way)
{
	uint32_t own = 0, other = 0;

	for (unsigned i = 0; i < WAYS; i++) {
		if (c->way[i] == way && c->times[i])
			own = c->times[i] - 1;
		else if (c->times[i] > other)
			other = c->times[i];
	}
	return own > other ? 0 : own == other ? 1 : 2;
}

typedef void visit_fn(void *arg, size_t step, uint64_t history);

/* Every step that has a history of the length. */
static void each_step(const struct foresight *f, unsigned length, visit_fn *fn, void *arg)
{
	struct history h = {.n = 0};
	uint64_t hash;

	for (size_t i = 0; i < f->steps.n; i++) {
		if (!f->steps.p[i].branch) {
			h.n = 0;
			continue;
		}
		if (history_hash(&h, length, &hash))
			fn(arg, i, hash);
		h.ways[h.n++ % 16] = f->steps.p[i].way;
	}
}

struct prediction {
	const struct foresight *foresight;
	struct hmap contexts;
	struct hmap kinds;
	unsigned length; /* that is looked at, by its place in the list */
	uint8_t *wrong;  /* by step, in halves: with the longest history that is known so far */
	uint64_t *kind;  /* by step: its shortest history */
};

static void learn(void *arg, size_t step, uint64_t history)
{
	struct prediction *p = arg;
	const struct step *s = &p->foresight->steps.p[step];
	struct context key = {.history = history, .branch = s->branch};

	count_way(hmap_put(&p->contexts, &key, NULL), s->way);
}

/* The wrong ones are counted by kind; without any history all are of one. */
static void predict(void *arg, size_t step, uint64_t history)
{
	struct prediction *p = arg;
	const struct step *s = &p->foresight->steps.p[step];
	struct context key = {.history = history, .branch = s->branch};
	const struct context *c = hmap_get(&p->contexts, &key);
	struct kind of = {.branch = s->branch}, *kind;

	if (c->seen > ALIKE_LEAST)
		p->wrong[step] = (uint8_t)judge(c, s->way);
	if (p->length == 1)
		p->kind[step] = history;
	of.history = p->length ? p->kind[step] : 0;
	kind = hmap_put(&p->kinds, &of, NULL);
	kind->seen[p->length]++;
	kind->wrong[p->length] += p->wrong[step];
}

/* As often as a kind was seen at all, it is wrong as often as where there was so much history. */
static void add_kind(struct branch *b, const struct kind *k)
{
	uint32_t all = k->seen[1];
	double rate = 0;

	b->seen[0] += k->seen[0];
	b->wrong[0] += k->wrong[0] / 2.0;
	for (unsigned i = 1; i < LENGTHS && all; i++) {
		if (k->seen[i] >= ALIKE_LEAST || i == 1)
			rate = k->wrong[i] / 2.0 / k->seen[i];
		b->seen[i] += all;
		b->wrong[i] += rate * all;
	}
}

static void predict_all(struct foresight *f)
{
	struct prediction p = {.foresight = f,
		.wrong = xmalloc(f->steps.n + 1),
		.kind = xcalloc(f->steps.n + 1, sizeof *p.kind)};
	struct branch **by_number = xcalloc(f->branches.n + 1, sizeof *by_number);

	for (struct branch *b = NULL; (b = hmap_next(&f->branches, b));)
		by_number[b->number] = b;
	for (size_t i = 0; i < f->steps.n; i++)
		p.wrong[i] = 2;
	hmap_init(&p.kinds, sizeof(struct kind), offsetof(struct kind, seen));
	for (p.length = 0; p.length < LENGTHS; p.length++) {
		hmap_init(&p.contexts, sizeof(struct context), offsetof(struct context, seen));
		each_step(f, lengths[p.length], learn, &p);
		each_step(f, lengths[p.length], predict, &p);
		hmap_deinit(&p.contexts);
	}
	for (struct kind *k = NULL; (k = hmap_next(&p.kinds, k));)
		add_kind(by_number[k->branch], k);
	hmap_deinit(&p.kinds);
	free(by_number);
	free(p.wrong);
	free(p.kind);
}

/* ---- life ---- */

int foresight_create(struct selection *sel, struct foresight **out, struct err *e)
{
	struct foresight *f = xcalloc(1, sizeof *f);
	struct selected_image *images;
	size_t n = selection_images(sel, &images);
	int rc = 0;

	hmap_init(&f->branches, sizeof(struct branch), offsetof(struct branch, number));
	for (size_t i = 0; i < n && !rc; i++) {
		f->key = edge_image_key(images[i].kind, &images[i].identity, images[i].path);
		rc = selection_blobs_of(sel, &images[i], &blob_walk, read_walks, f, e);
	}
	if (rc) {
		foresight_destroy(f);
		return rc;
	}
	predict_all(f);
	vec_deinit(&f->steps);
	*out = f;
	return 0;
}

void foresight_destroy(struct foresight *f)
{
	if (!f)
		return;
	hmap_deinit(&f->branches);
	vec_deinit(&f->steps);
	free(f);
}

bool foresight_misses(
	const struct foresight *f, const struct selected_image *im, uint64_t offset, double *share)
{
	struct branch key = {.from = offset};
	const struct branch *b;
	double least = 1;

	key.image = edge_image_key(im->kind, &im->identity, im->path);
	b = hmap_get(&f->branches, &key);
	if (!b || b->seen[0] < SEEN_LEAST)
		return false;
	for (unsigned k = 0; k < LENGTHS; k++)
		if (b->seen[k] >= SEEN_LEAST)
			least = fmin(least, b->wrong[k] / b->seen[k]);
	*share = least;
	return true;
}
