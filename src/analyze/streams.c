#include "analyze/streams.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/sequitur.h"
#include "base/err.h"
#include "base/hmap.h"
#include "base/mem.h"
#include "base/vec.h"

#define LINE       64
#define ROUND_PART 20 /* of a round: so much of it must come again for it to be one */

/* What makes two references the same; numbered as they come. */
struct reference_key {
	uint64_t image, at, address;
	uint32_t part, process;
};

struct reference_record {
	struct reference_key key;
	uint32_t number;
};

/* Streams as a trie: from a node by a terminal to the next. */
struct step_key {
	uint32_t node, terminal;
};

struct step {
	struct step_key key;
	uint32_t to;
};

struct node {
	uint32_t stream; /* that ends here, + 1; 0: none does */
};

typedef VEC(struct stream) stream_list;
typedef VEC(uint32_t *) text_list;

struct streams {
	struct selection *sel;
	struct streams_options options;
	struct hmap numbers;                     /* struct reference_record */
	VEC(struct stream_reference) references; /* by number */
	struct sequitur *grammar;
	struct hmap steps;
	VEC(struct node) nodes;
	stream_list all;
	text_list texts;     /* by stream: its terminals */
	VEC(uint32_t) burst; /* terminals of the one at hand */
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

static uint32_t number_of(struct streams *s, const struct trace_site *site, uint32_t part,
	const struct trace_burst *b, uint64_t address)
{
	struct reference_key key = {site->image, site->at, address, part, b->process};
	struct reference_record *r;
	bool fresh;

	r = hmap_put(&s->numbers, &key, &fresh);
	if (fresh) {
		r->number = (uint32_t)s->references.n;
		*vec_add(&s->references) = (struct stream_reference){*site, address, b->process, b->time};
	}
	return r->number;
}

static int learn_burst(
	void *arg, const struct trace_site *sites, uint32_t part, const struct trace_burst *b)
{
	struct streams *s = arg;

	for (size_t i = 0; i < b->n; i++) {
		const struct trace_reference *r = &b->references[i];
		uint32_t number;

		if (!trace_is_reference(sites[r->site].kind))
			continue;
		number = number_of(s, &sites[r->site], part, b, r->address);

		if (number >= SEQUITUR_TERMINALS)
			return -EFBIG;
		sequitur_add(s->grammar, number);
		s->summary.references++;
	}
	sequitur_cut(s->grammar);
	s->summary.bursts++;
	return 0;
}

/* ---- rules ---- */

/* How long what a rule stands for is, for all that are no longer than wanted; else UINT32_MAX. */
static uint32_t *find_lengths(const struct streams *s)
{
	uint32_t n = sequitur_rules(s->grammar), *length = xcalloc(n + 1, sizeof *length);
	VEC(uint32_t) open = {0};

	for (uint32_t rule = 0; rule < n; rule++) {
		*vec_add(&open) = rule;
		while (open.n) {
			uint32_t r = open.p[open.n - 1], at = 0;
			struct sequitur_symbol x;
			uint64_t sum = 0;
			bool waits = false;

			while (!length[r] && sequitur_next(s->grammar, r, &at, &x)) {
				if (x.kind == SEQUITUR_RULE && !length[x.number]) {
					*vec_add(&open) = x.number;
					waits = true;
				}
				sum += x.kind == SEQUITUR_RULE ? length[x.number] : 1;
			}
			if (waits)
				continue;
			if (!length[r])
				length[r] = sum > s->options.longest ? UINT32_MAX
					    : sum                    ? (uint32_t)sum
								     : UINT32_MAX;
			open.n--;
		}
	}
	vec_deinit(&open);
	return length;
}

/* What is no longer than wanted is not nested deeper than that. */
static void expand(const struct streams *s, uint32_t rule, uint32_t **to)
{
	struct sequitur_symbol x;
	uint32_t at = 0;

	while (sequitur_next(s->grammar, rule, &at, &x)) {
		if (x.kind == SEQUITUR_RULE)
			expand(s, x.number, to);
		else
			*(*to)++ = x.number;
	}
}

/* The shortest beginning that a text repeats: by the borders of Knuth, Morris and Pratt. */
static uint32_t period_of(const uint32_t *text, uint32_t n)
{
	uint32_t *border = xcalloc(n + 1, sizeof *border), k = 0, period;

	for (uint32_t i = 1; i < n; i++) {
		while (k && text[i] != text[k])
			k = border[k];
		k += text[i] == text[k];
		border[i + 1] = k;
	}
	period = n - border[n];
	free(border);
	return period;
}

/* By the instruction, which runs have in common, then by the address. */
static int compare_references(const struct streams *s, uint32_t a, uint32_t b)
{
	const struct stream_reference *x = &s->references.p[a], *y = &s->references.p[b];

	if (x->site.image != y->site.image)
		return x->site.image < y->site.image ? -1 : 1;
	if (x->site.at != y->site.at)
		return x->site.at < y->site.at ? -1 : 1;
	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return a < b ? -1 : a > b;
}

/* Where the least rotation of a text begins (Booth 1980, in the form with two candidates). */
static uint32_t least_rotation(const struct streams *s, const uint32_t *text, uint32_t n)
{
	uint32_t i = 0, j = 1, k = 0;

	while (i < n && j < n && k < n) {
		int order = compare_references(s, text[(i + k) % n], text[(j + k) % n]);

		if (!order) {
			k++;
			continue;
		}
		if (order > 0)
			i += k + 1;
		else
			j += k + 1;
		j += i == j;
		k = 0;
	}
	return i < j ? i : j;
}

/* ---- the trie ---- */

static uint32_t step_to(struct streams *s, uint32_t node, uint32_t terminal, bool make)
{
	struct step_key key = {node, terminal};
	struct step *step = make ? NULL : hmap_get(&s->steps, &key);
	bool fresh;

	if (!make)
		return step ? step->to : 0;
	step = hmap_put(&s->steps, &key, &fresh);
	if (fresh) {
		step->to = (uint32_t)s->nodes.n;
		*vec_add(&s->nodes) = (struct node){0};
	}
	return step->to;
}

static uint32_t find_node(struct streams *s, const uint32_t *text, uint32_t n)
{
	uint32_t node = 0;

	for (uint32_t i = 0; i < n; i++)
		node = step_to(s, node, text[i], true);
	return node;
}

/*
 * What goes round is one stream, wherever bursts happened to begin in it: once around, from the
 * least of its references on.
 */
static void add_candidate(struct streams *s, const uint32_t *text, uint32_t n)
{
	uint32_t period = period_of(text, n), from = 0, node;
	bool round = period >= s->options.shortest && (n - period) * ROUND_PART >= period;
	uint32_t *own = xmalloc(n * sizeof *own);

	if (round) {
		n = period;
		from = least_rotation(s, text, n);
	}
	for (uint32_t i = 0; i < n; i++)
		own[i] = text[(from + i) % n];
	node = find_node(s, own, n);
	if (s->nodes.p[node].stream) {
		free(own);
		return;
	}
	*vec_add(&s->texts) = own;
	*vec_add(&s->all) = (struct stream){.length = n};
	s->nodes.p[node].stream = (uint32_t)s->all.n;
}

static void find_candidates(struct streams *s)
{
	uint32_t *length = find_lengths(s), *text = xcalloc(s->options.longest + 1, sizeof *text);

	*vec_add(&s->nodes) = (struct node){0};
	for (uint32_t rule = 1; rule < sequitur_rules(s->grammar); rule++) {
		uint32_t *end = text;

		if (length[rule] < s->options.shortest || length[rule] == UINT32_MAX)
			continue;
		expand(s, rule, &end);
		add_candidate(s, text, length[rule]);
	}
	free(text);
	free(length);
}

/* ---- counting ---- */

/* The longest stream that begins there, and how long; 0: none does. */
static uint32_t match_at(struct streams *s, size_t at, uint32_t *length)
{
	uint32_t node = 0, found = 0;

	for (size_t i = at; i < s->burst.n; i++) {
		node = step_to(s, node, s->burst.p[i], false);
		if (!node)
			break;
		if (s->nodes.p[node].stream) {
			found = s->nodes.p[node].stream;
			*length = (uint32_t)(i + 1 - at);
		}
	}
	return found;
}

static int count_burst(
	void *arg, const struct trace_site *sites, uint32_t part, const struct trace_burst *b)
{
	struct streams *s = arg;
	uint32_t length;

	s->burst.n = 0;
	for (size_t i = 0; i < b->n; i++)
		if (trace_is_reference(sites[b->references[i].site].kind))
			*vec_add(&s->burst) = number_of(s, &sites[b->references[i].site], part, b,
				b->references[i].address);
	for (size_t i = 0; i < s->burst.n;) {
		uint32_t stream = match_at(s, i, &length);

		if (stream)
			s->all.p[stream - 1].occurrences++;
		i += stream ? length : 1;
	}
	return 0;
}

static int count(struct streams *s, struct err *e)
{
	uint64_t lost;

	vec_each (x, &s->all)
		x->occurrences = 0;
	return streams_each_burst(s->sel, count_burst, s, &lost, e);
}

/* ---- the hot ones ---- */

struct ranked {
	uint64_t heat;
	uint32_t stream;
};

static int by_heat(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->heat != y->heat)
		return x->heat > y->heat ? -1 : 1;
	return x->stream < y->stream ? -1 : x->stream > y->stream;
}

/* Keeps streams, the hottest first, until they have the wanted share; others are not looked for. */
static void keep_hottest(struct streams *s, double coverage)
{
	VEC(struct ranked) order = {0};
	stream_list all = {0};
	text_list texts = {0};
	uint64_t sum = 0;

	for (uint32_t i = 0; i < s->all.n; i++)
		*vec_add(&order) = (struct ranked){s->all.p[i].length * s->all.p[i].occurrences, i};
	vec_sort(&order, by_heat);
	hmap_clear(&s->steps);
	s->nodes.n = 1;
	vec_each (r, &order) {
		bool keeps = s->all.p[r->stream].occurrences > 1 &&
			     (double)sum < coverage * (double)s->summary.references;

		if (!keeps) {
			free(s->texts.p[r->stream]);
			continue;
		}
		sum += r->heat;
		*vec_add(&texts) = s->texts.p[r->stream];
		*vec_add(&all) = s->all.p[r->stream];
		all.p[all.n - 1].heat = r->heat;
		uint32_t node = find_node(s, texts.p[all.n - 1], all.p[all.n - 1].length);
		s->nodes.p[node].stream = (uint32_t)all.n;
	}
	vec_deinit(&order);
	vec_deinit(&s->all);
	vec_deinit(&s->texts);
	s->all = all;
	s->texts = texts;
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
			list[k] = s->references.p[s->texts.p[i][k]];
		x->references = list;
		x->heat = x->length * x->occurrences;
		s->summary.hot += x->heat;
		count_lines(x);
	}
}

/* ---- from outside ---- */

static int find_streams(struct streams *s, struct err *e)
{
	int rc = streams_each_burst(s->sel, learn_burst, s, &s->summary.lost, e);

	if (rc == -EFBIG)
		return err_set(e, rc,
			"more different references than can be looked at: select "
			"less (--epoch, --time)");
	if (rc)
		return rc;
	s->summary.rules = sequitur_rules(s->grammar);
	s->summary.symbols = sequitur_symbols(s->grammar);
	find_candidates(s);
	rc = count(s, e);
	if (rc)
		return rc;
	vec_each (x, &s->all)
		s->summary.candidates += x->occurrences > 1;
	keep_hottest(s, s->options.coverage);
	rc = count(s, e);
	if (rc)
		return rc;
	keep_hottest(s, 1); /* in the order of their final heat */
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
	s->grammar = sequitur_create();
	hmap_init(&s->numbers, sizeof(struct reference_record), sizeof(struct reference_key));
	hmap_init(&s->steps, sizeof(struct step), sizeof(struct step_key));
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
	sequitur_destroy(s->grammar);
	hmap_deinit(&s->numbers);
	hmap_deinit(&s->steps);
	vec_deinit(&s->references);
	vec_deinit(&s->nodes);
	vec_deinit(&s->all);
	vec_deinit(&s->texts);
	vec_deinit(&s->burst);
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
