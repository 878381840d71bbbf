#include "analyze/streams.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/grammar.h"
#include "analyze/repair.h"
#include "analyze/sequitur.h"
#include "analyze/stream_count.h"
#include "analyze/stream_cut.h"
#include "analyze/stream_numbers.h"
#include "analyze/stream_trie.h"
#include "base/err.h"
#include "base/hmap.h"
#include "base/mem.h"
#include "base/vec.h"

#define LINE 64

typedef VEC(struct stream) stream_list;
typedef VEC(uint32_t *) text_list;

struct streams {
	struct selection *sel;
	struct streams_options options;
	struct stream_numbers *numbers;
	struct sequitur *online; /* or */
	VEC(uint32_t) whole;     /* the trace, with cuts */
	struct grammar grammar;
	struct hmap pieces;
	struct stream_trie *trie; /* what is looked for: streams, + 1 */
	stream_list all;
	/* As they were counted last: the trie then, and what became of its texts, + 1, or 0. */
	struct stream_trie *counted;
	VEC(uint32_t) became;
	text_list texts;      /* by stream: its terminals */
	VEC(uint32_t) window; /* a burst */
	struct streams_summary summary;
	struct arena arena;
};

/* ---- bursts ---- */

struct each {
	streams_burst_fn *fn;
	void *arg;
	uint32_t part;
	uint64_t *lost;
};

static int take_profile(void *arg, const struct store_profile *p)
{
	struct each *each = arg;
	struct trace_reader r;
	struct trace_burst b;
	int rc = trace_reader_init(&r, p->data, p->size);

	while (!rc && (rc = trace_reader_part(&r)) > 0) {
		*each->lost += r.lost;
		while ((rc = trace_reader_next(&r, &b)) > 0)
			if ((rc = each->fn(each->arg, r.sites.p, each->part, &b)) < 0)
				break;
		each->part++;
	}
	trace_reader_deinit(&r);
	return rc;
}

int streams_each_burst(
	struct selection *sel, streams_burst_fn *fn, void *arg, uint64_t *lost, struct err *e)
{
	struct store_filter filter = *selection_filter(sel);
	struct each each = {.fn = fn, .arg = arg, .lost = lost};
	int rc;

	*lost = 0;
	filter.type = &blob_trace;
	filter.event = NULL;
	rc = store_profiles(selection_store(sel), &filter, take_profile, &each, e);
	if (rc == -EBADMSG)
		return err_set(e, rc, "bursts are damaged: 'culprit db check' says which");
	if (!rc && !each.part)
		return err_set(e, -ENOENT,
			"no bursts in what was selected; 'culprit record --bursts -- COMMAND' "
			"takes them");
	return rc;
}

static int learn_window(struct streams *s)
{
	if (!s->options.offline) {
		sequitur_add_all(s->online, s->window.p, s->window.n);
		sequitur_cut(s->online);
		return 0;
	}
	if (s->whole.n + s->window.n + 1 >= UINT32_MAX)
		return -EFBIG;
	vec_each (x, &s->window)
		*vec_add(&s->whole) = *x;
	*vec_add(&s->whole) = GRAMMAR_CUT;
	return 0;
}

static int learn_burst(
	void *arg, const struct trace_site *sites, uint32_t part, const struct trace_burst *b)
{
	struct streams *s = arg;

	s->window.n = 0;
	for (size_t i = 0; i < b->n; i++) {
		uint32_t number;

		if (!trace_is_reference(sites[b->references[i].site].kind))
			continue;
		number = stream_number(s->numbers, sites, part, b, i);
		if (number >= GRAMMAR_RULE)
			return -EFBIG;
		*vec_add(&s->window) = number;
	}
	if (learn_window(s))
		return -EFBIG;
	s->summary.bursts++;
	s->summary.references += s->window.n;
	s->window.n = 0;
	return 0;
}

/* ---- pieces ---- */

/* What a stream must have to be hot. */
static double least_heat(const struct streams *s)
{
	return s->options.least * (double)s->summary.references;
}

static void add_candidate(struct streams *s, const uint32_t *text, uint32_t n, uint64_t times)
{
	uint32_t number = (uint32_t)s->all.n + 1, *own;

	if (stream_trie_add(s->trie, text, n, number) != number)
		return;
	own = xmalloc(n * sizeof *own);
	memcpy(own, text, n * sizeof *own);
	*vec_add(&s->texts) = own;
	*vec_add(&s->all) = (struct stream){.length = n, .occurrences = times, .heat = n * times};
}

/* A piece by a hash of it: how often the trace is cut into it. */
struct piece {
	uint64_t key;
	uint64_t times;
};

static uint64_t piece_key(const uint32_t *text, uint32_t n)
{
	return hash_bytes(text, n * sizeof *text);
}

static void count_piece(void *arg, const uint32_t *text, uint32_t n)
{
	struct streams *s = arg;
	struct piece *p = hmap_put(&s->pieces, &(uint64_t){piece_key(text, n)}, NULL);

	p->times++;
}

/* Cutting loses what is at the ends of bursts, so half of the heat is enough here. */
static void take_piece(void *arg, const uint32_t *text, uint32_t n)
{
	struct streams *s = arg;
	const struct piece *p = hmap_get(&s->pieces, &(uint64_t){piece_key(text, n)});

	if (p && p->times > 1 && 2 * (double)(n * p->times) >= least_heat(s))
		add_candidate(s, text, n, p->times);
}

static void cut_symbol(void *arg, uint32_t symbol)
{
	stream_cut_add(arg, symbol);
}

static void cut_trace(struct streams *s, const bool *joints, stream_piece_fn *fn)
{
	struct stream_cut *c =
		stream_cut_create(s->numbers, s->options.shortest, s->options.longest, fn, s);

	grammar_each(&s->grammar, joints, cut_symbol, c);
	stream_cut_add(c, GRAMMAR_CUT);
	stream_cut_destroy(c);
}

/* Who follows another less often than the longest of hot streams occurs is in none with it. */
static void find_candidates(struct streams *s)
{
	double rarest = ceil(least_heat(s) / s->options.longest);
	bool *joints = grammar_joints(&s->grammar, rarest > 2 ? (uint64_t)rarest : 2);

	hmap_init(&s->pieces, sizeof(struct piece), sizeof(uint64_t));
	cut_trace(s, joints, count_piece);
	cut_trace(s, joints, take_piece);
	hmap_deinit(&s->pieces);
	free(joints);
}

/* ---- the hot ones ---- */

static void count_symbol(void *arg, uint32_t symbol)
{
	stream_count_add(arg, symbol);
}

/* In the trace again, from its grammar: that needs no numbers for references. */
static void count(struct streams *s)
{
	struct stream_count *c =
		stream_count_create(s->trie, (uint32_t)s->all.n, s->options.longest);
	const uint64_t *counts;

	grammar_each(&s->grammar, NULL, count_symbol, c);
	counts = stream_count_end(c);
	for (size_t i = 0; i < s->all.n; i++) {
		s->all.p[i].occurrences = counts[i + 1];
		s->all.p[i].heat = s->all.p[i].length * counts[i + 1];
	}
	stream_count_destroy(c);
}

/* By the instruction, which runs have in common, then by the address. */
static int compare_references(const struct streams *s, uint32_t a, uint32_t b)
{
	const struct stream_reference *x = stream_numbers_at(s->numbers, a),
				      *y = stream_numbers_at(s->numbers, b);

	if (x->site.image != y->site.image)
		return x->site.image < y->site.image ? -1 : 1;
	if (x->site.at != y->site.at)
		return x->site.at < y->site.at ? -1 : 1;
	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return a < b ? -1 : a > b;
}

/* By heat, then the longer; else by what is the same in another run. */
static int by_heat(const void *a, const void *b, void *arg)
{
	const struct streams *s = arg;
	uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
	const struct stream *x = &s->all.p[i], *y = &s->all.p[j];
	int order = 0;

	if (x->heat != y->heat)
		return x->heat > y->heat ? -1 : 1;
	if (x->length != y->length)
		return x->length > y->length ? -1 : 1;
	for (uint32_t k = 0; !order && k < x->length; k++)
		order = compare_references(s, s->texts.p[i][k], s->texts.p[j][k]);
	return order;
}

/* Keeps streams, the hottest first, until they have the wanted share; others are not looked for. */
static void keep_hottest(struct streams *s, double least, double coverage)
{
	uint32_t *order = xcalloc(s->all.n + 1, sizeof *order);
	double most = coverage * (double)s->summary.references, sum = 0;
	stream_list all = {0};
	text_list texts = {0};

	for (uint32_t i = 0; i < s->all.n; i++)
		order[i] = i;
	qsort_r(order, s->all.n, sizeof *order, by_heat, s);
	stream_trie_destroy(s->counted);
	s->counted = s->trie;
	s->trie = stream_trie_create();
	vec_reserve(&s->became, s->all.n + 1);
	s->became.n = s->all.n;
	for (size_t i = 0; i < s->all.n; i++) {
		const struct stream *x = &s->all.p[order[i]];
		uint32_t *text = s->texts.p[order[i]];

		s->became.p[order[i]] = 0;
		if (x->occurrences < 2 || (double)x->heat < least || sum >= most) {
			free(text);
			continue;
		}
		sum += (double)x->heat;
		*vec_add(&texts) = text;
		*vec_add(&all) = *x;
		s->became.p[order[i]] = (uint32_t)all.n;
		stream_trie_add(s->trie, text, x->length, (uint32_t)all.n);
	}
	free(order);
	vec_deinit(&s->all);
	vec_deinit(&s->texts);
	s->all = all;
	s->texts = texts;
}

/* In the order in which pieces are hot; then in that of what was counted, and only what is hot. */
static void find_hottest(struct streams *s)
{
	s->summary.candidates = s->all.n;
	keep_hottest(s, 0, INFINITY);
	count(s);
	keep_hottest(s, least_heat(s), s->options.coverage);
	count(s);
	keep_hottest(s, least_heat(s), INFINITY);
}

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Lines that are touched, and the least that as many different bytes would need. */
static void count_lines(struct stream *x)
{
	VEC(uint64_t) words = {0};
	uint64_t last = UINT64_MAX, last_line = UINT64_MAX, bytes = 0;

	for (uint32_t i = 0; i < x->length; i++) {
		const struct stream_reference *r = &x->references[i];

		for (uint64_t w = r->address >> 3; w <= (r->address + r->site.size - 1) >> 3; w++)
			*vec_add(&words) = w;
	}
	vec_sort(&words, by_number);
	vec_each (w, &words) {
		if (*w == last)
			continue;
		bytes += 8;
		x->lines += *w >> 3 != last_line;
		last = *w;
		last_line = *w >> 3;
	}
	x->least = (uint32_t)((bytes + LINE - 1) / LINE);
	vec_deinit(&words);
}

static void describe(struct streams *s)
{
	for (size_t i = 0; i < s->all.n; i++) {
		struct stream *x = &s->all.p[i];
		struct stream_reference *list = arena_alloc(&s->arena, x->length * sizeof *list);

		for (uint32_t k = 0; k < x->length; k++)
			list[k] = *stream_numbers_at(s->numbers, s->texts.p[i][k]);
		x->references = list;
		s->summary.hot += x->heat;
		count_lines(x);
	}
}

/* ---- occurrences ---- */

struct occurring {
	struct streams *streams;
	struct stream_count *count;
	VEC(size_t) events; /* of the burst: its references */
	VEC(struct streams_occurrence) list;
	streams_occurrences_fn *fn;
	void *arg;
};

static void note_occurrence(void *arg, uint32_t text, uint64_t at, uint32_t length)
{
	struct occurring *o = arg;
	uint32_t stream = o->streams->became.p[text - 1];

	if (stream)
		*vec_add(&o->list) = (struct streams_occurrence){
			stream - 1, o->events.p[at], o->events.p[at + length - 1]};
}

static int find_occurrences(
	void *arg, const struct trace_site *sites, uint32_t part, const struct trace_burst *b)
{
	struct occurring *o = arg;

	o->events.n = o->list.n = 0;
	for (size_t i = 0; i < b->n; i++)
		if (trace_is_reference(sites[b->references[i].site].kind))
			*vec_add(&o->events) = i;
	vec_each (i, &o->events)
		stream_count_add(o->count, stream_number(o->streams->numbers, sites, part, b, *i));
	stream_count_add(o->count, GRAMMAR_CUT);
	return o->fn(o->arg, sites, b, o->list.p, o->list.n);
}

int streams_each_occurrence(struct streams *s, streams_occurrences_fn *fn, void *arg, struct err *e)
{
	struct occurring o = {.streams = s, .fn = fn, .arg = arg};
	uint64_t lost;
	int rc;

	o.count = stream_count_create(s->counted, (uint32_t)s->became.n, s->options.longest);
	stream_count_tell(o.count, note_occurrence, &o);
	rc = streams_each_burst(s->sel, find_occurrences, &o, &lost, e);
	stream_count_destroy(o.count);
	vec_deinit(&o.events);
	vec_deinit(&o.list);
	return rc;
}

/* ---- from outside ---- */

/* What it was made from is not needed any more. */
static void make_grammar(struct streams *s)
{
	if (s->options.offline)
		repair_grammar(s->whole.p, s->whole.n, &s->grammar);
	else
		sequitur_grammar(s->online, &s->grammar);
	vec_deinit(&s->whole);
	sequitur_destroy(s->online);
	s->online = NULL;
	s->summary.rules = grammar_rules(&s->grammar);
	s->summary.symbols = s->grammar.symbols.n;
}

static int find_streams(struct streams *s, struct err *e)
{
	int rc = streams_each_burst(s->sel, learn_burst, s, &s->summary.lost, e);

	if (rc == -EFBIG)
		return err_set(e, rc,
			"more different references than can be looked at: select "
			"less (--epoch, --time)");
	if (rc)
		return rc;
	make_grammar(s);
	find_candidates(s);
	find_hottest(s);
	describe(s);
	return 0;
}

int streams_create(
	struct selection *sel, const struct streams_options *o, struct streams **out, struct err *e)
{
	struct streams *s = xcalloc(1, sizeof *s);
	int rc;

	s->sel = sel;
	s->options = *o;
	s->online = sequitur_create();
	s->numbers = stream_numbers_create();
	s->trie = stream_trie_create();
	rc = find_streams(s, e);
	if (rc)
		streams_destroy(s);
	else
		*out = s;
	return rc;
}

void streams_destroy(struct streams *s)
{
	if (!s)
		return;
	vec_each (t, &s->texts)
		free(*t);
	sequitur_destroy(s->online);
	vec_deinit(&s->whole);
	grammar_deinit(&s->grammar);
	stream_numbers_destroy(s->numbers);
	stream_trie_destroy(s->trie);
	stream_trie_destroy(s->counted);
	vec_deinit(&s->became);
	vec_deinit(&s->all);
	vec_deinit(&s->texts);
	vec_deinit(&s->window);
	arena_deinit(&s->arena);
	free(s);
}

size_t streams_all(const struct streams *s, const struct stream **out)
{
	*out = s->all.p;
	return s->all.n;
}

const struct streams_summary *streams_summary(const struct streams *s)
{
	return &s->summary;
}
