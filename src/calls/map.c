#include "calls/map_internal.h"

#include "base/mem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SAMPLED "sampled" /* the metric of heights */

static struct call_tree *create_tree(void)
{
	struct metric_names names = {0};

	metric_add(&names, SAMPLED);
	return call_tree_create(&names);
}

struct call_map *call_map_create(void)
{
	struct call_map *m = xcalloc(1, sizeof *m);

	m->tree = create_tree();
	hmap_init(&m->places, sizeof(struct place), sizeof(struct place_key));
	hmap_init(&m->called, sizeof(struct called), sizeof(struct procedure_key));
	hmap_init(&m->hashed, sizeof(struct hashed), sizeof(uint64_t));
	hmap_init(&m->lessons, sizeof(struct lesson), sizeof(struct lesson_key));
	return m;
}

void call_map_destroy(struct call_map *m)
{
	if (!m)
		return;
	call_tree_destroy(m->tree);
	hmap_deinit(&m->places);
	hmap_deinit(&m->called);
	hmap_deinit(&m->hashed);
	hmap_deinit(&m->lessons);
	vec_deinit(&m->namesakes);
	vec_deinit(&m->candidates);
	vec_deinit(&m->steps);
	vec_deinit(&m->last);
	vec_deinit(&m->fresh);
	free(m);
}

struct call_tree *call_map_tree(const struct call_map *m)
{
	return m->tree;
}

size_t call_map_size(const struct call_map *m)
{
	return m->candidates.n;
}

size_t call_map_memory(const struct call_map *m)
{
	if (!m)
		return 0;
	return call_tree_memory(m->tree) + m->places.slots * sizeof(struct place) +
	       m->called.slots * sizeof(struct called) + m->candidates.n * sizeof *m->candidates.p +
	       m->steps.n * sizeof *m->steps.p + m->last.space * sizeof *m->last.p +
	       m->lessons.slots * sizeof(struct lesson) + m->fresh.space * sizeof *m->fresh.p;
}

void call_map_height(const struct call_map *m, size_t number, struct call_height *out)
{
	const struct candidate *c = &m->candidates.p[number];
	const struct call_node *node = call_tree_node(m->tree, c->node);
	const struct call_node *leaf = call_tree_node(m->tree, c->leaf);

	*out = (struct call_height){
		.frame = {node->at.image, node->at.procedure, (int64_t)leaf->at.procedure},
		.kind = (enum stack_kind)leaf->at.site,
		.node = c->node,
		.caller = c->caller,
		.count = leaf->count,
		.sampled = leaf->metrics[0]};
}

/* ---- looking up ---- */

/* By what was sampled, then by what was seen, then by age. */
static bool is_likelier(
	const struct call_map *m, const struct candidate *a, const struct candidate *b)
{
	const struct call_node *x = call_tree_node(m->tree, a->leaf);
	const struct call_node *y = call_tree_node(m->tree, b->leaf);

	if (x->metrics[0] != y->metrics[0])
		return x->metrics[0] > y->metrics[0];
	if (x->count != y->count)
		return x->count > y->count;
	return a->node < b->node;
}

static const struct candidate *likeliest(const struct call_map *m, const struct place *p)
{
	const struct candidate *best = NULL;

	for (uint32_t i = p ? p->first : CALL_NONE; i != CALL_NONE; i = m->candidates.p[i].next) {
		const struct candidate *c = &m->candidates.p[i];

		if (!best || is_likelier(m, c, best))
			best = c;
	}
	return best;
}

struct candidate *call_map_candidate(const struct call_map *m, const struct place *p, uint32_t node)
{
	for (uint32_t i = p ? p->first : CALL_NONE; i != CALL_NONE; i = m->candidates.p[i].next)
		if (m->candidates.p[i].node == node)
			return &m->candidates.p[i];
	return NULL;
}

/* Those that have the callers; else those that these say nothing of; else all. */
uint32_t call_map_find_called(const struct call_map *m, enum stack_kind kind,
	const struct call_frame *frame, const struct call_told *told, uint32_t *others)
{
	struct place_key key = call_map_key(kind, frame);
	const struct place *p = hmap_get(&m->places, &key);
	const struct candidate *best[CALL_MATCHES] = {NULL};
	uint32_t n[CALL_MATCHES] = {0};

	for (uint32_t i = p ? p->first : CALL_NONE; i != CALL_NONE; i = m->candidates.p[i].next) {
		const struct candidate *c = &m->candidates.p[i];
		enum call_match match = call_map_match(m, i, told);

		n[match]++;
		if (!best[match] || is_likelier(m, c, best[match]))
			best[match] = c;
	}
	for (unsigned i = 0; i < CALL_MATCH_NOT; i++)
		if (best[i]) {
			*others = n[i] - 1;
			return best[i]->node;
		}
	/* None is sure then, even if it is the only one. */
	*others = n[CALL_MATCH_NOT];
	return best[CALL_MATCH_NOT] ? best[CALL_MATCH_NOT]->node : CALL_NONE;
}

uint32_t call_map_find(const struct call_map *m, enum stack_kind kind,
	const struct call_frame *frame, uint32_t *others)
{
	struct place_key key = call_map_key(kind, frame);
	const struct place *p = hmap_get(&m->places, &key);
	const struct candidate *best = likeliest(m, p);

	*others = best ? p->n - 1 : 0;
	return best ? best->node : CALL_NONE;
}

uint32_t call_map_paths_at(
	const struct call_map *m, enum stack_kind kind, const struct call_frame *frame)
{
	struct place_key key = call_map_key(kind, frame);
	const struct place *p = hmap_get(&m->places, &key);

	return p ? p->n : 0;
}

/* ---- learning ---- */

uint32_t call_map_call(struct call_map *m, uint32_t node, const struct call_frame *f)
{
	for (uint32_t up = node; up != CALL_NONE; up = call_tree_node(m->tree, up)->parent) {
		const struct call_place *at = &call_tree_node(m->tree, up)->at;

		if (at->image == f->image && at->procedure == f->procedure)
			return up;
	}
	return call_tree_child(
		m->tree, node, &(struct call_place){.image = f->image, .procedure = f->procedure});
}

/* The candidate for the node at this height, which the index knows then. */
static uint32_t candidate_of(
	struct call_map *m, uint32_t node, enum stack_kind kind, const struct call_frame *f)
{
	struct place_key key = call_map_key(kind, f);
	struct place *p;
	struct candidate *c;
	bool fresh;

	p = hmap_put(&m->places, &key, &fresh);
	if (fresh)
		p->first = CALL_NONE;
	c = call_map_candidate(m, p, node);
	if (c)
		return (uint32_t)(c - m->candidates.p);
	c = vec_add(&m->candidates);
	*c = (struct candidate){.node = node, .next = p->first, .caller = CALL_NONE};
	c->leaf = call_tree_child(m->tree, node,
		&(struct call_place){.image = CALL_MAP_HEIGHT,
			.procedure = (uint64_t)f->height,
			.site = kind,
			.recursive = true});
	p->first = (uint32_t)m->candidates.n - 1;
	p->n++;
	return p->first;
}

uint16_t call_map_step_hash(const struct call_place *caller)
{
	struct procedure_key key = {caller->image, caller->procedure};
	uint16_t hash = (uint16_t)hash_bytes(&key, sizeof key);

	return hash ? hash : 1;
}

/* Where the caller of the frame was, which folding does not tell: the leaf that counts it. */
static uint32_t step_leaf(struct call_map *m, uint32_t node, uint32_t caller, enum stack_kind kind,
	const struct call_frame *f, int64_t down)
{
	bool folded = call_tree_node(m->tree, node)->parent != caller;
	uint16_t hash = folded ? call_map_step_hash(&call_tree_node(m->tree, caller)->at) : 0;

	return call_tree_child(m->tree, node,
		&(struct call_place){.image = CALL_MAP_STEP,
			.procedure = (uint64_t)f->height,
			.site = call_map_step_site(down, kind, hash),
			.recursive = true});
}

/* ---- judging ---- */

static struct call_place verdict_place(enum call_verdict v)
{
	return (struct call_place){.image = CALL_MAP_VERDICT, .procedure = v, .recursive = true};
}

void call_map_answer(struct call_map *m, enum stack_kind kind, const struct call_frame *frame,
	const struct call_told *told, struct call_answer *out)
{
	uint32_t near = CALL_NONE;

	*out = (struct call_answer){.degree = call_map_paths_at(m, kind, frame)};
	if (told->near && !call_map_has_callers(m, kind, frame, told))
		near = call_map_guess_near(m, kind, frame, told);
	out->others = out->ranked = true;
	out->node = near;
	if (near != CALL_NONE)
		return;
	if (!out->degree) {
		out->node = call_map_guess(m, kind, frame);
		return;
	}
	out->node = call_map_find_called(m, kind, frame, told, &out->others);
	out->ranked = out->others || call_map_wants_told(m, kind, frame, told);
}

enum call_verdict call_map_judge(struct call_map *m, enum stack_kind kind,
	const struct call_frame *frame, const struct call_told *told, uint32_t node,
	struct call_answer *answer)
{
	struct place_key key = call_map_key(kind, frame);
	const struct place *p;

	call_map_answer(m, kind, frame, told, answer);
	p = hmap_get(&m->places, &key);
	if (answer->node == CALL_NONE)
		return PATH_MISSING;
	if (answer->node == node)
		return answer->others ? PATH_FIRST : PATH_PRECISE;
	return p && call_map_candidate(m, p, node) ? PATH_AMBIGUOUS : PATH_WRONG;
}

enum call_verdict call_verdict_ranked(enum call_verdict v)
{
	return v == PATH_PRECISE ? PATH_FIRST : v == PATH_WRONG ? PATH_DOUBTED : v;
}

static uint32_t place_prefix(struct call_map *m, const struct call_prefix *prefix)
{
	if (!prefix)
		return CALL_NONE;
	return prefix->tree == m->tree ? prefix->node
				       : call_tree_copy_path(m->tree, prefix->tree, prefix->node);
}

uint32_t call_map_path(struct call_map *m, const struct call_prefix *prefix,
	const struct call_frame *frames, size_t n)
{
	uint32_t node = place_prefix(m, prefix);

	for (size_t i = n; i-- > 0;)
		node = call_map_call(m, node, &frames[i]);
	return node;
}

static void count_node(struct call_map *m, uint32_t node, bool sampled)
{
	struct call_node *n = call_tree_node(m->tree, node);

	n->count++;
	n->metrics[0] += sampled;
	while (m->fresh.n <= node)
		*vec_add(&m->fresh) = (struct fresh){0};
	m->fresh.p[node].count++;
	m->fresh.p[node].sampled += sampled;
}

/* What counts a frame that was called by the last of those before it, or by `root`. */
static void make_lesson(struct call_map *m, uint32_t root, const struct lesson *by,
	enum stack_kind kind, struct lesson *l)
{
	const struct call_frame *f = &l->key.frame;

	l->node = call_map_call(m, by ? by->node : root, f);
	l->candidate = candidate_of(m, l->node, kind, f);
	if (!by)
		return;
	l->step = call_map_learn_step(m, f, &by->key.frame, 0);
	l->leaf = step_leaf(m, l->node, by->node, kind, f, f->height - by->key.frame.height);
}

/* Below a path that is given, nothing is kept of the first frame. */
static void add_lesson(
	struct call_map *m, uint32_t root, enum stack_kind kind, const struct call_frame *f)
{
	const struct lesson *by = m->last.n ? &m->last.p[m->last.n - 1] : NULL;
	struct lesson l = {
		.key = {.frame = *f, .by = by ? by->candidate : CALL_NONE, .kind = kind}};
	bool fresh = true;
	struct lesson *known =
		by || root == CALL_NONE ? hmap_put(&m->lessons, &l.key, &fresh) : NULL;

	if (fresh)
		make_lesson(m, root, by, kind, &l);
	if (known && fresh)
		*known = l;
	*vec_add(&m->last) = known ? *known : l;
}

static void count_lesson(struct call_map *m, size_t number, bool innermost)
{
	const struct lesson *l = &m->last.p[number];
	struct candidate *c = &m->candidates.p[l->candidate];

	count_node(m, c->leaf, innermost);
	if (!number)
		return;
	c->caller = m->last.p[number - 1].candidate;
	m->steps.p[l->step].count++;
	count_node(m, l->leaf, false);
}

/* How many frames, from the outermost on, are those of the last stack. */
static size_t shared_frames(
	const struct call_map *m, enum stack_kind kind, const struct call_frame *frames, size_t n)
{
	size_t i = 0;

	if (kind != m->last_kind)
		return 0;
	while (i < n && i < m->last.n &&
		!memcmp(&m->last.p[i].key.frame, &frames[n - 1 - i], sizeof *frames))
		i++;
	return i;
}

uint32_t call_map_learn(struct call_map *m, const struct call_prefix *prefix, enum stack_kind kind,
	const struct call_frame *frames, size_t n)
{
	uint32_t root = place_prefix(m, prefix), node;
	size_t shared;

	shared = m->last.n = prefix ? 0 : shared_frames(m, kind, frames, n);
	m->last_kind = kind;
	while (m->last.n < n)
		add_lesson(m, root, kind, &frames[n - 1 - m->last.n]);
	/* Frames that are still those of the last stack were counted with it. */
	for (size_t i = shared < n ? shared : n - 1; i < n; i++)
		count_lesson(m, i, i == n - 1);
	node = n ? m->last.p[n - 1].node : root;
	if (prefix)
		m->last.n = 0;
	return node;
}

uint32_t call_map_number(const struct call_map *m, enum stack_kind kind,
	const struct call_frame *frame, uint32_t node)
{
	struct place_key key = call_map_key(kind, frame);
	const struct candidate *c = call_map_candidate(m, hmap_get(&m->places, &key), node);

	return c ? (uint32_t)(c - m->candidates.p) : CALL_NONE;
}

uint32_t call_map_teach(
	struct call_map *m, uint32_t caller, const struct call_frame *frame, uint64_t count)
{
	struct call_height above;
	struct call_node *leaf;
	uint32_t node, number, step;

	call_map_height(m, caller, &above);
	node = call_map_call(m, above.node, frame);
	number = candidate_of(m, node, above.kind, frame);
	leaf = call_tree_node(m->tree, m->candidates.p[number].leaf);
	leaf->count = metric_sum(leaf->count, count);
	if (m->candidates.p[number].caller == CALL_NONE)
		m->candidates.p[number].caller = caller;
	call_map_learn_step(m, frame, &above.frame, 1);
	step = step_leaf(
		m, node, above.node, above.kind, frame, frame->height - above.frame.height);
	call_tree_node(m->tree, step)->count++;
	return number;
}

size_t call_map_join(const struct call_map *m, enum stack_kind kind,
	const struct call_frame *frames, size_t n, uint32_t *node)
{
	while (n-- > 1) {
		uint32_t others, found = call_map_find(m, kind, &frames[n], &others);

		if (found != CALL_NONE && !others) {
			*node = found;
			return n;
		}
	}
	return 0;
}

/* ---- verdicts ---- */

const char *call_verdict_word(enum call_verdict v)
{
	static const char *const words[PATH_VERDICTS] = {[PATH_PRECISE] = "precise",
		[PATH_FIRST] = "first",
		[PATH_AMBIGUOUS] = "ambiguous",
		[PATH_WRONG] = "incorrect",
		[PATH_MISSING] = "missing",
		[PATH_DOUBTED] = "doubted"};

	return words[v];
}

void call_map_count(struct call_map *m, enum call_verdict verdict)
{
	struct call_place at = verdict_place(verdict);

	count_node(m, call_tree_child(m->tree, CALL_NONE, &at), false);
}

void call_map_verdicts(const struct call_map *m, uint64_t out[PATH_VERDICTS])
{
	for (unsigned i = 0; i < PATH_VERDICTS; i++) {
		struct call_place at = verdict_place((enum call_verdict)i);
		uint32_t node = call_tree_find(m->tree, CALL_NONE, &at);

		out[i] = node == CALL_NONE ? 0 : call_tree_node(m->tree, node)->count;
	}
}

double call_map_precision(const uint64_t verdicts[PATH_VERDICTS])
{
	uint64_t all = 0;

	for (unsigned i = 0; i < PATH_VERDICTS; i++)
		all += verdicts[i];
	return all ? (double)(verdicts[PATH_PRECISE] + verdicts[PATH_FIRST]) / (double)all : -1;
}

/* ---- as a profile ---- */

/* Addresses have less than 48 bits, and differences of two no more. */
static bool is_height(int64_t height)
{
	return height > -(1ll << 48) && height < 1ll << 48;
}

/* Takes a node that came with a stored map into the index; false when it makes no sense. */
static bool take_node(struct call_map *m, uint32_t number)
{
	const struct call_node *n = call_tree_node(m->tree, number);
	struct call_frame f = {.height = (int64_t)n->at.procedure};
	uint64_t kind = n->at.site;

	if (n->at.image == CALL_MAP_VERDICT)
		return n->at.recursive && n->parent == CALL_NONE && f.height < PATH_VERDICTS &&
		       f.height >= 0;
	if (n->at.image == CALL_MAP_STEP)
		return n->at.recursive && n->parent != CALL_NONE && is_height(f.height);
	if (n->at.image != CALL_MAP_HEIGHT) {
		call_map_name(m, &n->at);
		return !n->at.recursive;
	}
	if (!n->at.recursive || n->parent == CALL_NONE || kind >= STACK_KINDS ||
		!is_height(f.height))
		return false;
	f.image = call_tree_node(m->tree, n->parent)->at.image;
	f.procedure = call_tree_node(m->tree, n->parent)->at.procedure;
	candidate_of(m, n->parent, (enum stack_kind)kind, &f);
	return true;
}

int call_map_add(struct call_map *m, const void *p, size_t n)
{
	uint32_t before = call_tree_size(m->tree);

	if (call_tree_add(m->tree, p, n) || call_tree_metrics(m->tree)->n != 1)
		return -EBADMSG;
	/* The nodes that come with it: finding them again in the index makes no new ones. */
	for (uint32_t i = before, end = call_tree_size(m->tree); i < end; i++)
		if (!take_node(m, i))
			return -EBADMSG;
	for (uint32_t i = before, end = call_tree_size(m->tree); i < end; i++)
		if (call_tree_node(m->tree, i)->at.image == CALL_MAP_STEP)
			call_map_take_step(m, i);
	return 0;
}

void call_map_pack(struct call_map *m, struct buf *out)
{
	call_tree_pack(m->tree, out);
}

bool call_map_has_fresh(const struct call_map *m)
{
	return m->fresh.n;
}

/* Nodes with something to say, below all that they are below. */
void call_map_pack_fresh(const struct call_map *m, struct buf *out)
{
	_cleanup_free_ uint32_t *number = xcalloc(m->fresh.n + 1, sizeof *number);
	_cleanup_free_ bool *kept = xcalloc(m->fresh.n + 1, sizeof *kept);
	struct call_tree *t = create_tree();

	for (uint32_t i = (uint32_t)m->fresh.n; i-- > 0;) {
		uint32_t parent = call_tree_node(m->tree, i)->parent;

		kept[i] |= m->fresh.p[i].count > 0;
		if (kept[i] && parent != CALL_NONE)
			kept[parent] = true;
	}
	for (uint32_t i = 0; i < m->fresh.n; i++) {
		const struct call_node *n = call_tree_node(m->tree, i);
		struct call_node *to;

		if (!kept[i])
			continue;
		number[i] = call_tree_append(
			t, n->parent == CALL_NONE ? CALL_NONE : number[n->parent], &n->at);
		to = call_tree_node(t, number[i]);
		to->count = m->fresh.p[i].count;
		to->metrics[0] = m->fresh.p[i].sampled;
	}
	call_tree_pack(t, out);
	call_tree_destroy(t);
}

void call_map_settle(struct call_map *m)
{
	m->fresh.n = 0;
	/* The next one counts all of its frames: those still taken are learned anew. */
	m->last.n = 0;
}
