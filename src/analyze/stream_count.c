#include "analyze/stream_count.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/grammar.h"
#include "base/mem.h"
#include "base/vec.h"

#define WINDOW 65536

struct occurrence {
	uint32_t at, length;
	uint32_t next; /* of the same text, + 1 */
};

struct stream_count {
	const struct stream_trie *trie;
	uint32_t longest;
	uint64_t *counts; /* by text */
	VEC(uint32_t) window;
	struct stream_match *matches;
	uint8_t *given;  /* of the window: who has a text already */
	uint32_t *first; /* by text: its occurrences there, + 1 */
	VEC(struct occurrence) occurrences;
	VEC(uint32_t) texts;
	stream_found_fn *found;
	void *arg;
	uint64_t before; /* symbols before the window */
};

/* From the last on, so that the lists begin with the first. */
static void list_occurrences(struct stream_count *c, size_t starts)
{
	c->occurrences.n = c->texts.n = 0;
	for (size_t i = starts; i-- > 0;) {
		unsigned n =
			stream_trie_find(c->trie, c->window.p + i, c->window.n - i, c->matches);

		for (unsigned k = 0; k < n; k++) {
			const struct stream_match *m = &c->matches[k];

			if (!c->first[m->text])
				*vec_add(&c->texts) = m->text;
			*vec_add(&c->occurrences) =
				(struct occurrence){(uint32_t)i, m->length, c->first[m->text]};
			c->first[m->text] = (uint32_t)c->occurrences.n;
		}
	}
}

static int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static void count_occurrences(struct stream_count *c, size_t starts)
{
	list_occurrences(c, starts);
	vec_sort(&c->texts, by_number);
	vec_each (text, &c->texts) {
		for (uint32_t i = c->first[*text]; i; i = c->occurrences.p[i - 1].next) {
			const struct occurrence *o = &c->occurrences.p[i - 1];

			if (memchr(c->given + o->at, true, o->length))
				continue;
			memset(c->given + o->at, true, o->length);
			c->counts[*text]++;
			if (c->found)
				c->found(c->arg, *text, c->before + o->at, o->length);
		}
		c->first[*text] = 0;
	}
}

/* ---- the sequence ---- */

/* What may go on behind the window's end stays for the next one, unless the sequence is cut. */
static void count_window(struct stream_count *c, bool cut)
{
	size_t n = c->window.n, starts = n;

	if (!cut)
		starts = n > c->longest ? n - c->longest : 0;
	count_occurrences(c, starts);
	c->window.n = n - starts;
	memmove(c->window.p, c->window.p + starts, c->window.n * sizeof *c->window.p);
	memmove(c->given, c->given + starts, c->window.n);
	memset(c->given + c->window.n, false, starts);
	c->before = cut ? 0 : c->before + starts;
}

void stream_count_tell(struct stream_count *c, stream_found_fn *fn, void *arg)
{
	c->found = fn;
	c->arg = arg;
}

void stream_count_add(struct stream_count *c, uint32_t symbol)
{
	if (symbol != GRAMMAR_CUT)
		*vec_add(&c->window) = symbol;
	if (symbol == GRAMMAR_CUT || c->window.n >= WINDOW + c->longest)
		count_window(c, symbol == GRAMMAR_CUT);
}

const uint64_t *stream_count_end(struct stream_count *c)
{
	count_window(c, true);
	return c->counts;
}

struct stream_count *stream_count_create(
	const struct stream_trie *trie, uint32_t texts, uint32_t longest)
{
	struct stream_count *c = xcalloc(1, sizeof *c);

	c->trie = trie;
	c->longest = longest;
	c->counts = xcalloc((size_t)texts + 1, sizeof *c->counts);
	c->matches = xcalloc((size_t)longest + 1, sizeof *c->matches);
	vec_reserve(&c->window, (size_t)WINDOW + longest);
	c->given = xcalloc((size_t)WINDOW + longest, sizeof *c->given);
	c->first = xcalloc((size_t)texts + 1, sizeof *c->first);
	return c;
}

void stream_count_destroy(struct stream_count *c)
{
	if (!c)
		return;
	free(c->counts);
	free(c->matches);
	free(c->given);
	free(c->first);
	vec_deinit(&c->window);
	vec_deinit(&c->occurrences);
	vec_deinit(&c->texts);
	free(c);
}
