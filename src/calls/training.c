#include "calls/training.h"

#include "base/hmap.h"
#include "base/mem.h"
#include "base/vec.h"

#include <stdlib.h>

/* A procedure that the tree begins with; it may do so several times, from different sites. */
struct root {
	uint64_t image, procedure;
	uint32_t first, pad; /* of the tree's nodes, linked */
};

/* A procedure with a frame pointer, and how far from its frame those are that it calls. */
struct framed {
	uint64_t image, procedure;
	int64_t step; /* 0: not known */
};

struct call_trainer {
	struct call_tree *counted;
	struct call_sites *sites;
	const struct call_map *known; /* what frames are known by; NULL: the map that is taught */
	struct hmap roots;            /* struct root */
	struct hmap framed;           /* struct framed, of what was learned before the training */
	uint32_t *next;               /* of roots: the next of the same procedure; CALL_NONE */
	uint32_t *taught;             /* by node: the map's number; CALL_NONE */
	uint64_t ntaught, nleft;
};

struct call_trainer *call_trainer_create(struct call_tree *counted, struct call_sites *sites)
{
	struct call_trainer *t = xcalloc(1, sizeof *t);
	uint32_t n = call_tree_size(counted);

	t->counted = counted;
	t->sites = sites;
	t->next = xcalloc(n + 1, sizeof *t->next);
	t->taught = xcalloc(n + 1, sizeof *t->taught);
	hmap_init(&t->framed, sizeof(struct framed), 2 * sizeof(uint64_t));
	hmap_init(&t->roots, sizeof(struct root), 2 * sizeof(uint64_t));
	call_tree_settle(counted);
	for (uint32_t i = 0; i < n; i++) {
		const struct call_node *node = call_tree_node(counted, i);
		uint64_t key[] = {node->at.image, node->at.procedure};
		struct root *r;
		bool fresh;

		t->taught[i] = CALL_NONE;
		if (node->parent != CALL_NONE)
			continue;
		r = hmap_put(&t->roots, key, &fresh);
		t->next[i] = fresh ? CALL_NONE : r->first;
		r->first = i;
	}
	return t;
}

void call_trainer_destroy(struct call_trainer *t)
{
	if (!t)
		return;
	call_tree_destroy(t->counted);
	hmap_deinit(&t->roots);
	hmap_deinit(&t->framed);
	free(t->next);
	free(t->taught);
	free(t);
}

/*
 * Frames with a frame pointer are as large as they were seen to be; those with variables of
 * changing size are not always the same.
 */
static int64_t usual_step(
	struct call_trainer *t, const struct call_map *m, const struct call_place *caller)
{
	uint64_t key[] = {caller->image, caller->procedure};
	bool fresh;
	struct framed *f = hmap_put(&t->framed, key, &fresh);

	if (fresh)
		f->step = call_map_usual_step(
			t->known ? t->known : m, caller->image, caller->procedure);
	return f->step;
}

/* One call; false when nothing is known of it, nor of what is below. */
static bool teach_node(struct call_trainer *t, struct call_map *m, uint32_t number)
{
	const struct call_node *n = call_tree_node(t->counted, number);
	const struct call_node *caller = call_tree_node(t->counted, n->parent);
	struct call_link link = {caller->at.image, n->at.site, n->at.image, n->at.procedure};
	struct call_frame frame = {n->at.image, n->at.procedure, 0};
	uint32_t from = t->taught[n->parent];
	struct call_height above;
	struct call_site site;

	if (from == CALL_NONE || !call_sites_find(t->sites, &link, &site))
		return false;
	call_map_height(m, from, &above);
	if (site.jump)
		from = above.caller;
	if (from == CALL_NONE)
		return false;
	if (!site.jump && !site.rise) {
		int64_t usual = usual_step(t, m, &caller->at);

		if (!usual)
			return false;
		frame.height = above.frame.height + usual;
	} else {
		frame.height = above.frame.height + site.rise;
	}
	t->taught[number] = call_map_teach(m, from, &frame, n->count);
	return true;
}

static void teach_below(struct call_trainer *t, struct call_map *m, uint32_t root)
{
	for (uint32_t i = call_tree_after(t->counted, root);
		i != CALL_NONE && call_tree_node(t->counted, i)->depth > 0;
		i = call_tree_after(t->counted, i))
		*(teach_node(t, m, i) ? &t->ntaught : &t->nleft) += 1;
}

void call_trainer_meet(struct call_trainer *t, struct call_map *m, enum stack_kind kind,
	const struct call_frame *frames, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t key[] = {frames[i].image, frames[i].procedure};
		const struct root *r = hmap_get(&t->roots, key);
		uint32_t number;

		/* What the tree begins with, something else called that was not edited. */
		if (!r || t->taught[r->first] != CALL_NONE ||
			(i + 1 < n && frames[i + 1].image == frames[i].image))
			continue;
		number = call_map_number(
			m, kind, &frames[i], call_map_path(m, NULL, frames + i, n - i));
		for (uint32_t k = r->first; number != CALL_NONE && k != CALL_NONE; k = t->next[k]) {
			t->taught[k] = number;
			teach_below(t, m, k);
		}
	}
}

enum { RECALL_DEEP = 64 }; /* frames above a root */

/* The stack that a height was seen in, from there on outwards; 0 when it is not known whole. */
static size_t chain_of(const struct call_map *m, uint32_t number, struct call_frame *out)
{
	struct call_height h;
	size_t n = 0;

	for (; number != CALL_NONE; number = h.caller) {
		call_map_height(m, number, &h);
		if (n == RECALL_DEEP)
			return 0;
		out[n++] = h.frame;
	}
	return call_tree_node(call_map_tree(m), h.node)->parent == CALL_NONE ? n : 0;
}

void call_trainer_recall(struct call_trainer *t, const struct call_map *known, struct call_map *to)
{
	size_t heights = call_map_size(known);

	t->known = known;
	for (uint32_t i = 0; i < heights; i++) {
		struct call_frame frames[RECALL_DEEP];
		struct call_height h;
		uint64_t key[2];
		size_t n;

		call_map_height(known, i, &h);
		key[0] = h.frame.image;
		key[1] = h.frame.procedure;
		n = h.kind != STACK_OTHER && hmap_get(&t->roots, key) ? chain_of(known, i, frames)
								      : 0;
		if (!n)
			continue;
		if (to != known)
			call_map_learn(to, NULL, h.kind, frames, n);
		call_trainer_meet(t, to, h.kind, frames, n);
	}
	t->known = NULL;
}

/* ---- call sites ---- */

static int by_number(const void *a, const void *b)
{
	const struct call_site_path *x = a, *y = b;

	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	return x->hash < y->hash ? -1 : x->hash > y->hash;
}

void call_trainer_sites(const struct call_trainer *t, struct call_site_paths *out)
{
	uint32_t n = call_tree_size(t->counted);
	_cleanup_free_ uint64_t *hash = xcalloc(n + 1, sizeof *hash);

	for (uint32_t i = 0; i < n; i++) {
		const struct call_node *node = call_tree_node(t->counted, i);
		uint64_t key[] = {node->parent == CALL_NONE ? 0 : hash[node->parent],
			node->at.image, node->at.procedure, node->at.site};

		hash[i] = hash_bytes(key, sizeof key);
		if (t->taught[i] != CALL_NONE && node->count)
			*vec_add(&out->list) = (struct call_site_path){
				.number = t->taught[i], .hash = hash[i], .count = node->count};
	}
	vec_sort(&out->list, by_number);
}

size_t call_site_paths_at(
	const struct call_site_paths *s, uint32_t number, const struct call_site_path **out)
{
	size_t low = 0, high = s->list.n, n = 0;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (s->list.p[middle].number < number)
			low = middle + 1;
		else
			high = middle;
	}
	*out = s->list.p + low;
	while (low + n < s->list.n && s->list.p[low + n].number == number)
		n++;
	return n;
}

void call_trainer_sum(const struct call_trainer *t, struct call_training *sum)
{
	uint64_t roots = 0;

	for (uint32_t i = call_tree_root(t->counted); i != CALL_NONE;
		i = call_tree_node(t->counted, i)->next)
		roots += t->taught[i] != CALL_NONE;
	sum->taught += t->ntaught;
	sum->left += t->nleft;
	sum->unmet += call_tree_size(t->counted) - t->ntaught - t->nleft - roots;
}
