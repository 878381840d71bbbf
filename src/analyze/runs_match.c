/*
 * Which procedures of different builds are the same one. Builds are taken in the order of the runs;
 * each continues a lineage of earlier builds or begins one, and its procedures continue rows of the
 * lineage or begin new ones.
 */
#include "analyze/runs_internal.h"
#include "base/buf.h"
#include "base/err.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct lineage {
	enum image_kind kind;
	const char *path; /* of the last build */
	double samples;
	size_t first_run;
	bool *in_run;
};

/* Beside each row. */
struct subject {
	uint32_t lineage;
	size_t item; /* the last that continued it */
	bool taken;  /* has an item of the build at hand */
};

typedef VEC(size_t) index_list;

struct matcher {
	struct runs *r;
	VEC(struct lineage) lineages;
	VEC(struct subject) subjects;
	size_t *by_build, *first; /* items by build; where those of a build begin */
	bool *in_run;             /* by build and run */
	uint32_t *row_of;
	struct fingerprint **prints; /* by item, once made */
};

#define NO_ROW UINT32_MAX

/* ---- names ---- */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static bool same_path(const char *a, const char *b)
{
	return !strcmp(a, b);
}

static bool same_base(const char *a, const char *b)
{
	return !strcmp(base_name(a), base_name(b));
}

/* "libz.so.1.2.13" continues "libz.so.1.2.11". */
static bool same_library(const char *a, const char *b)
{
	const char *x = base_name(a), *y = base_name(b), *so = strstr(x, ".so");

	return so && !strncmp(x, y, (size_t)(so - x) + strlen(".so"));
}

/* What code that no procedure covers goes by: one row for each image. */
static const char *exact_name(const struct item *it)
{
	return it->known ? it->name : "\001";
}

/* Compilers that split and clone functions put a suffix to the name, and number it. */
static size_t plain_length(const char *name)
{
	static const char *const suffixes[] = {" [clone ", ".constprop.", ".isra.", ".part.",
		".cold", ".lto_priv.", ".llvm.", ".localalias"};
	size_t n = strlen(name);

	for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
		const char *at = strstr(name, suffixes[i]);

		if (at && at > name && (size_t)(at - name) < n)
			n = (size_t)(at - name);
	}
	return n;
}

/* ---- lineages ---- */

static const size_t *items_of(const struct matcher *m, size_t build, size_t *n)
{
	*n = m->first[build + 1] - m->first[build];
	return m->by_build + m->first[build];
}

/*
 * Two builds in one run are two images, unless one took the other's place. Processes each make
 * their own code at run time.
 */
static bool may_continue(const struct matcher *m, const struct lineage *l, size_t build)
{
	const struct build *b = &m->r->builds.p[build];
	size_t nruns = m->r->list.n;

	if (l->kind != b->kind)
		return false;
	if (l->kind == IMAGE_JIT || (b->first_run > l->first_run && !strcmp(l->path, b->path)))
		return true;
	for (size_t i = 0; i < nruns; i++)
		if (l->in_run[i] && m->in_run[build * nruns + i])
			return false;
	return true;
}

/* Most of the time on both sides is in procedures of the same names: a program that was renamed. */
static bool same_names(const struct matcher *m, uint32_t lineage, size_t build)
{
	struct strtab names = {0};
	size_t n, known;
	const size_t *items = items_of(m, build, &n);
	_cleanup_free_ bool *shared = xcalloc(n + 1, sizeof *shared);
	_cleanup_free_ double *samples = xcalloc(n + 1, sizeof *samples);
	double here = 0, there = 0, all = 0;

	for (size_t i = 0; i < n; i++) {
		const struct item *it = &m->r->items.p[items[i]];

		if (it->name)
			samples[strtab_add(&names, it->name)] += it->samples;
	}
	known = names.n;
	vec_each (s, &m->subjects) {
		const struct item *it = &m->r->items.p[s->item];
		uint32_t name;

		if (s->lineage != lineage)
			continue;
		all += it->samples;
		if (!it->name)
			continue;
		name = strtab_add(&names, it->name);
		if (name >= known)
			continue;
		there += it->samples;
		here += shared[name] ? 0 : samples[name];
		shared[name] = true;
	}
	strtab_deinit(&names);
	return here > m->r->builds.p[build].samples / 2 && there > all / 2;
}

static uint32_t find_lineage(const struct matcher *m, size_t build)
{
	static bool (*const ways[])(const char *, const char *) = {
		same_path, same_base, same_library, NULL};
	const struct build *b = &m->r->builds.p[build];
	uint32_t best = NO_ROW;

	for (size_t way = 0; way < sizeof ways / sizeof *ways && best == NO_ROW; way++)
		for (uint32_t i = 0; i < m->lineages.n; i++) {
			const struct lineage *l = &m->lineages.p[i];

			if (!may_continue(m, l, build) ||
				(best != NO_ROW && l->samples <= m->lineages.p[best].samples))
				continue;
			if (b->kind == IMAGE_JIT || (ways[way] && ways[way](l->path, b->path)) ||
				(!ways[way] && b->kind == IMAGE_ELF && same_names(m, i, build)))
				best = i;
		}
	return best;
}

static uint32_t lineage_of(struct matcher *m, size_t build)
{
	const struct build *b = &m->r->builds.p[build];
	size_t nruns = m->r->list.n;
	uint32_t found = find_lineage(m, build);
	struct lineage *l;

	if (found == NO_ROW) {
		found = (uint32_t)m->lineages.n;
		*vec_add(&m->lineages) = (struct lineage){.kind = b->kind,
			.first_run = b->first_run,
			.in_run = xcalloc(nruns + 1, sizeof(bool))};
	}
	l = &m->lineages.p[found];
	l->path = b->path;
	l->samples += b->samples;
	for (size_t i = 0; i < nruns; i++)
		l->in_run[i] |= m->in_run[build * nruns + i];
	return found;
}

/* ---- rows ---- */

static void begin_row(struct matcher *m, uint32_t lineage, size_t item)
{
	const struct item *it = &m->r->items.p[item];

	m->row_of[item] = (uint32_t)m->r->rows.n;
	*vec_add(&m->subjects) = (struct subject){lineage, item, true};
	*vec_add(&m->r->rows) = (struct run_row){.name = it->label,
		.image = m->r->builds.p[it->build].path,
		.start = it->start,
		.known = it->known};
}

static void continue_row(struct matcher *m, uint32_t row, size_t item, enum run_match how)
{
	const struct item *it = &m->r->items.p[item];
	struct run_row *to = &m->r->rows.p[row];

	m->row_of[item] = row;
	m->subjects.p[row].item = item;
	m->subjects.p[row].taken = true;
	if (strcmp(to->name, it->label) && !to->was)
		to->was = to->name;
	to->name = it->label;
	to->image = m->r->builds.p[it->build].path;
	to->start = it->start;
	if (how > to->match)
		to->match = how;
}

/* What is not matched yet: items of the build and rows of the lineage. */
struct open_ends {
	index_list items, rows;
};

static void find_open(struct matcher *m, size_t build, uint32_t lineage, struct open_ends *o)
{
	size_t n;
	const size_t *items = items_of(m, build, &n);

	o->items.n = o->rows.n = 0;
	for (size_t i = 0; i < n; i++)
		if (m->row_of[items[i]] == NO_ROW)
			*vec_add(&o->items) = items[i];
	for (size_t i = 0; i < m->subjects.n; i++)
		if (m->subjects.p[i].lineage == lineage && !m->subjects.p[i].taken)
			*vec_add(&o->rows) = i;
}

/* ---- by name ---- */

/* How often a name is there on both sides, and where. */
struct named {
	uint32_t items, rows;
	size_t item, row;
};

static uint32_t intern(struct strtab *names, const struct item *it, bool plain)
{
	const char *name = exact_name(it);
	_cleanup_free_ char *cut = NULL;

	if (!name)
		return NO_ROW;
	cut = xstrndup(name, plain ? plain_length(name) : strlen(name));
	return strtab_add(names, cut);
}

static void match_names(struct matcher *m, const struct open_ends *o, bool plain)
{
	size_t most = o->items.n + o->rows.n;
	_cleanup_free_ struct named *found = xcalloc(most + 1, sizeof *found);
	struct strtab names = {0};

	vec_each (i, &o->items) {
		uint32_t name = intern(&names, &m->r->items.p[*i], plain);

		if (name != NO_ROW) {
			found[name].items++;
			found[name].item = *i;
		}
	}
	vec_each (i, &o->rows) {
		uint32_t name = intern(&names, &m->r->items.p[m->subjects.p[*i].item], plain);

		if (name != NO_ROW) {
			found[name].rows++;
			found[name].row = *i;
		}
	}
	for (size_t i = 0; i < names.n; i++)
		if (found[i].items == 1 && found[i].rows == 1)
			continue_row(m, (uint32_t)found[i].row, found[i].item, MATCH_NAME);
	strtab_deinit(&names);
}

/* ---- by code ---- */

/* Code is the same from LIKE on, when nothing else comes within MARGIN of it. */
static const double LIKE = 0.5, MARGIN = 0.1;
enum { LEAST_INSNS = 8, MOST_OPEN = 2000 };

static int fingerprint_of(struct matcher *m, size_t item, struct err *e)
{
	const struct item *it = &m->r->items.p[item];
	const struct build *b = &m->r->builds.p[it->build];
	struct buf code = {0};
	int rc = 0;

	if (m->prints[item])
		return 0;
	m->prints[item] = xcalloc(1, sizeof *m->prints[item]);
	if (it->known)
		rc = store_code(b->store, b->image, it->start, &code, e);
	if (!rc && code.n)
		fingerprint_make(code.p, code.n, m->prints[item]);
	buf_deinit(&code);
	return rc == -ENOENT ? 0 : rc;
}

static double likeness(const struct matcher *m, size_t item, size_t row)
{
	size_t other = m->subjects.p[row].item;
	const struct fingerprint *a = m->prints[item], *b = m->prints[other];
	const char *x = m->r->items.p[item].name, *y = m->r->items.p[other].name;
	bool same = x && y && !strcmp(x, y);
	double alike;

	if (same && (!a->insns || !b->insns))
		return LIKE;
	if (a->insns < LEAST_INSNS || b->insns < LEAST_INSNS || a->insns > 3 * b->insns ||
		b->insns > 3 * a->insns)
		return 0;
	alike = fingerprint_likeness(a, b);
	/* Of several functions that share a name, rather than others. */
	return same ? alike + 2 * MARGIN : alike;
}

/* The best and the second best of a row of the matrix, or of a column. */
struct best {
	double first, second;
	size_t at;
};

static struct best best_of(const float *values, size_t n, size_t step)
{
	struct best b = {0};

	for (size_t i = 0; i < n; i++) {
		double v = values[i * step];

		if (v > b.first) {
			b.second = b.first;
			b.first = v;
			b.at = i;
		} else if (v > b.second) {
			b.second = v;
		}
	}
	return b;
}

static bool is_clear(const struct best *b)
{
	return b->first >= LIKE && b->first >= b->second + MARGIN;
}

/* Pairs that are each other's best by a margin; their rows and columns are empty afterwards. */
static bool match_clear(struct matcher *m, const struct open_ends *o, float *like)
{
	size_t ni = o->items.n, nr = o->rows.n;
	bool any = false;

	for (size_t i = 0; i < ni; i++) {
		struct best mine = best_of(like + i * nr, nr, 1), its;

		if (!is_clear(&mine))
			continue;
		its = best_of(like + mine.at, ni, nr);
		if (!is_clear(&its) || its.at != i)
			continue;
		continue_row(m, (uint32_t)o->rows.p[mine.at], o->items.p[i], MATCH_CODE);
		for (size_t j = 0; j < nr; j++)
			like[i * nr + j] = 0;
		for (size_t j = 0; j < ni; j++)
			like[j * nr + mine.at] = 0;
		any = true;
	}
	return any;
}

static void mark_ambiguous(struct matcher *m, const struct open_ends *o, const float *like,
	index_list *ambiguous_items)
{
	size_t ni = o->items.n, nr = o->rows.n;

	for (size_t i = 0; i < ni; i++)
		if (best_of(like + i * nr, nr, 1).first >= LIKE)
			*vec_add(ambiguous_items) = o->items.p[i];
	for (size_t j = 0; j < nr; j++)
		if (best_of(like + j, ni, nr).first >= LIKE)
			m->r->rows.p[o->rows.p[j]].ambiguous = true;
}

static int make_fingerprints(struct matcher *m, struct open_ends *o, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < o->items.n && !rc; i++)
		rc = fingerprint_of(m, o->items.p[i], e);
	for (size_t i = 0; i < o->rows.n && !rc; i++)
		rc = fingerprint_of(m, m->subjects.p[o->rows.p[i]].item, e);
	return rc;
}

static int match_code(struct matcher *m, struct open_ends *o, index_list *ambiguous, struct err *e)
{
	_cleanup_free_ float *like = NULL;
	size_t nr;
	int rc;

	/* Items come by samples: what is cut off hardly ran. */
	o->items.n = o->items.n < MOST_OPEN ? o->items.n : MOST_OPEN;
	o->rows.n = nr = o->rows.n < MOST_OPEN ? o->rows.n : MOST_OPEN;
	if (!o->items.n || !nr || (rc = make_fingerprints(m, o, e)))
		return o->items.n && nr ? rc : 0;
	like = xmalloc(o->items.n * nr * sizeof *like);
	for (size_t i = 0; i < o->items.n; i++)
		for (size_t j = 0; j < nr; j++)
			like[i * nr + j] = (float)likeness(m, o->items.p[i], o->rows.p[j]);
	while (match_clear(m, o, like))
		;
	mark_ambiguous(m, o, like, ambiguous);
	return 0;
}

/* ---- a build ---- */

static int match_build(struct matcher *m, size_t build, struct err *e)
{
	uint32_t lineage = lineage_of(m, build);
	struct open_ends o = {0};
	index_list ambiguous = {0};
	int rc;

	vec_each (s, &m->subjects)
		s->taken = false;
	find_open(m, build, lineage, &o);
	match_names(m, &o, false);
	find_open(m, build, lineage, &o);
	match_names(m, &o, true);
	find_open(m, build, lineage, &o);
	rc = match_code(m, &o, &ambiguous, e);
	find_open(m, build, lineage, &o);
	vec_each (i, &o.items)
		begin_row(m, lineage, *i);
	vec_each (i, &ambiguous)
		m->r->rows.p[m->row_of[*i]].ambiguous = true;
	vec_deinit(&o.items);
	vec_deinit(&o.rows);
	vec_deinit(&ambiguous);
	return rc;
}

/* ---- the whole ---- */

/* What belongs together side by side, in it the one with more samples first. */
struct rank {
	size_t group, number;
	double samples;
};

static int compare_ranks(const struct rank *x, const struct rank *y)
{
	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	if (x->samples != y->samples)
		return x->samples > y->samples ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

static struct rank item_rank(const struct runs *r, size_t i)
{
	return (struct rank){r->items.p[i].build, i, r->items.p[i].samples};
}

static struct rank build_rank(const struct runs *r, size_t i)
{
	return (struct rank){r->builds.p[i].first_run, i, r->builds.p[i].samples};
}

static int compare_items(const void *a, const void *b, void *runs)
{
	struct rank x = item_rank(runs, *(const size_t *)a),
		    y = item_rank(runs, *(const size_t *)b);

	return compare_ranks(&x, &y);
}

static int compare_builds(const void *a, const void *b, void *runs)
{
	struct rank x = build_rank(runs, *(const size_t *)a),
		    y = build_rank(runs, *(const size_t *)b);

	return compare_ranks(&x, &y);
}

static void matcher_init(struct matcher *m, struct runs *r)
{
	size_t nitems = r->items.n, nbuilds = r->builds.n;

	*m = (struct matcher){.r = r};
	m->by_build = xcalloc(nitems + 1, sizeof *m->by_build);
	m->first = xcalloc(nbuilds + 2, sizeof *m->first);
	m->in_run = xcalloc(nbuilds * r->list.n + 1, sizeof *m->in_run);
	m->row_of = xmalloc((nitems + 1) * sizeof *m->row_of);
	m->prints = xcalloc(nitems + 1, sizeof *m->prints);
	for (size_t i = 0; i < nitems; i++) {
		m->by_build[i] = i;
		m->row_of[i] = NO_ROW;
		m->first[r->items.p[i].build + 1]++;
	}
	for (size_t i = 0; i < nbuilds; i++)
		m->first[i + 1] += m->first[i];
	qsort_r(m->by_build, nitems, sizeof *m->by_build, compare_items, r);
	vec_each (c, &r->counts)
		m->in_run[r->items.p[c->item].build * r->list.n + c->run] = true;
}

static void matcher_deinit(struct matcher *m)
{
	for (size_t i = 0; i < m->r->items.n; i++)
		free(m->prints[i]);
	vec_each (l, &m->lineages)
		free(l->in_run);
	vec_deinit(&m->lineages);
	vec_deinit(&m->subjects);
	free(m->prints);
	free(m->in_run);
	free(m->first);
	free(m->by_build);
}

int runs_match_items(struct runs *r, uint32_t **row_of, struct err *e)
{
	_cleanup_free_ size_t *order = xcalloc(r->builds.n + 1, sizeof *order);
	struct matcher m;
	int rc = 0;

	matcher_init(&m, r);
	for (size_t i = 0; i < r->builds.n; i++)
		order[i] = i;
	qsort_r(order, r->builds.n, sizeof *order, compare_builds, r);
	for (size_t i = 0; i < r->builds.n && !rc; i++)
		rc = match_build(&m, order[i], e);
	matcher_deinit(&m);
	*row_of = m.row_of;
	return rc;
}
