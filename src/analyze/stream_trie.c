#include "analyze/stream_trie.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/vec.h"

/* From a node by a terminal to the next, in a table of open addressing; to 0: free. */
struct step {
	uint64_t key;
	uint32_t to;
};

struct stream_trie {
	VEC(uint32_t) first; /* by terminal: where texts that begin with it go on; 0: none does */
	VEC(uint32_t) text;  /* by node: the one that ends there; 0: none does */
	struct step *steps;
	size_t n, places;
	unsigned shift;
};

static struct step *find_step(const struct stream_trie *t, uint64_t key)
{
	size_t at = (size_t)(key * 0x9e3779b97f4a7c15u >> t->shift);

	while (t->steps[at].to && t->steps[at].key != key)
		at = (at + 1) & (t->places - 1);
	return &t->steps[at];
}

static void grow(struct stream_trie *t)
{
	struct step *old = t->steps;
	size_t n = t->places;

	t->places = n ? 2 * n : 1024;
	t->shift = (unsigned)(64 - __builtin_ctzll(t->places));
	t->steps = xcalloc(t->places, sizeof *t->steps);
	for (size_t i = 0; i < n; i++)
		if (old[i].to)
			*find_step(t, old[i].key) = old[i];
	free(old);
}

static uint64_t key_of(uint32_t node, uint32_t terminal)
{
	return (uint64_t)node << 32 | terminal;
}

static uint32_t new_node(struct stream_trie *t)
{
	*vec_add(&t->text) = 0;
	return (uint32_t)t->text.n - 1;
}

static uint32_t begin_with(struct stream_trie *t, uint32_t terminal)
{
	while (terminal >= t->first.n)
		*vec_add(&t->first) = 0;
	if (!t->first.p[terminal])
		t->first.p[terminal] = new_node(t);
	return t->first.p[terminal];
}

static uint32_t go_on(struct stream_trie *t, uint32_t node, uint32_t terminal)
{
	uint64_t key = key_of(node, terminal);
	struct step *s = find_step(t, key);

	if (s->to)
		return s->to;
	*s = (struct step){key, new_node(t)};
	node = s->to;
	if (++t->n * 2 >= t->places)
		grow(t);
	return node;
}

uint32_t stream_trie_add(struct stream_trie *t, const uint32_t *text, uint32_t n, uint32_t number)
{
	uint32_t node = begin_with(t, text[0]);

	for (uint32_t i = 1; i < n; i++)
		node = go_on(t, node, text[i]);
	if (!t->text.p[node])
		t->text.p[node] = number;
	return t->text.p[node];
}

static uint32_t next_node(const struct stream_trie *t, uint32_t node, uint32_t terminal)
{
	return find_step(t, key_of(node, terminal))->to;
}

static uint32_t first_node(const struct stream_trie *t, const uint32_t *sequence, size_t n)
{
	return n && sequence[0] < t->first.n ? t->first.p[sequence[0]] : 0;
}

unsigned stream_trie_find(
	const struct stream_trie *t, const uint32_t *sequence, size_t n, struct stream_match *out)
{
	uint32_t node = first_node(t, sequence, n);
	unsigned found = 0;

	for (size_t i = 1; node; i++) {
		if (t->text.p[node])
			out[found++] = (struct stream_match){t->text.p[node], (uint32_t)i};
		node = i < n ? next_node(t, node, sequence[i]) : 0;
	}
	return found;
}

struct stream_trie *stream_trie_create(void)
{
	struct stream_trie *t = xcalloc(1, sizeof *t);

	grow(t);
	new_node(t); /* nobody's */
	return t;
}

void stream_trie_destroy(struct stream_trie *t)
{
	if (!t)
		return;
	vec_deinit(&t->first);
	vec_deinit(&t->text);
	free(t->steps);
	free(t);
}
