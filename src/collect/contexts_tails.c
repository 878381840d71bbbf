/*
 * Procedures that jumped to another one in place of a call, and have left no frame. The return
 * address above tells of them: the call before it is of a procedure, and if the frame is another's,
 * that one jumped there, maybe by way of others. Who it was is put back into paths where all stacks
 * say the same.
 */
#include "base/buf.h"
#include "base/mem.h"
#include "collect/contexts_internal.h"
#include "collect/image_cache.h"
#include "store/contexts.h"

#include <stdlib.h>
#include <string.h>

enum {
	CALL_BYTES = 5,       /* e8 and how far it is */
	STUB_BYTES = 7,       /* that tell a linkage stub */
	SITES = 1 << 16,      /* that are remembered, by a part of a hash */
	MOST_EDGES = 1 << 16, /* then all is looked at again */
};

struct tail_site {
	uint64_t image, back; /* where the call comes back to */
	uint64_t callee_image, callee;
};

/* Compared as bytes up to `by`. */
struct tail_edge {
	struct call_frame caller, callee; /* without heights */
	uint64_t by;                      /* who was called and jumped; 0: nobody */
	bool differs;
};

void contexts_init_tails(struct contexts *c)
{
	c->tail_sites = xcalloc(SITES, sizeof *c->tail_sites);
	hmap_init(&c->tail_edges, sizeof(struct tail_edge), offsetof(struct tail_edge, by));
}

void contexts_deinit_tails(struct contexts *c)
{
	free(c->tail_sites);
	hmap_deinit(&c->tail_edges);
	vec_deinit(&c->tail_calls);
}

static struct tail_edge edge_of(const struct call_frame *caller, const struct call_frame *callee)
{
	return (struct tail_edge){.caller = {caller->image, caller->procedure, 0},
		.callee = {callee->image, callee->procedure, 0}};
}

static bool read_code(struct contexts *c, uint32_t image, uint64_t start, size_t n, struct buf *out)
{
	struct range r = {start, n};

	out->n = 0;
	return !image_cache_code(c->images, c->processes, image, &r, out) && out->n == n;
}

/* A jump by an address in memory, maybe with the marks of Intel's CET: the linker made it. */
static bool is_stub(struct contexts *c, uint32_t image, uint64_t start, struct buf *code)
{
	static const uint8_t landing[] = {0xf3, 0x0f, 0x1e, 0xfa};
	const uint8_t *p;

	if (!read_code(c, image, start, STUB_BYTES, code))
		return true;
	p = (const uint8_t *)code->p;
	p += memcmp(p, landing, sizeof landing) ? 0 : sizeof landing;
	p += *p == 0xf2;
	return p[0] == 0xff && p[1] == 0x25;
}

/* Where a call that ends at an address leads to; 0: it does not say so. */
static uint64_t target_before(struct contexts *c, uint32_t image, uint64_t back)
{
	struct buf code = {0};
	uint64_t target = 0;
	int32_t far;

	if (read_code(c, image, back - CALL_BYTES, CALL_BYTES, &code) &&
		(uint8_t)code.p[0] == 0xe8) {
		memcpy(&far, code.p + 1, sizeof far);
		target = back + (uint64_t)(int64_t)far;
	}
	buf_deinit(&code);
	return target;
}

/* Whether it is a procedure of its own. */
static bool is_procedure(struct contexts *c, uint32_t image, uint64_t target)
{
	struct buf code = {0};
	uint64_t start = 0;
	bool is = contexts_procedure(c, image, target, &start) && start == target &&
		  !is_stub(c, image, target, &code);

	buf_deinit(&code);
	return is;
}

/* Who leads from one image to another may be a stub of another kind. */
static bool is_in_one_image(const struct tail_call *t)
{
	return t->caller.image == t->callee.image;
}

/* `target` is that of the call. */
static void learn_tail(struct contexts *c, const struct tail_call *t, uint64_t target)
{
	struct tail_edge key = edge_of(&t->caller, &t->callee), *e;
	uint64_t by = 0;
	bool fresh;

	if (target && target != t->callee.procedure && is_in_one_image(t) &&
		is_procedure(c, t->image, target))
		by = target;
	e = hmap_put(&c->tail_edges, &key, &fresh);
	e->differs |= !fresh && e->by != by;
	e->by = by;
	if (by)
		contexts_name(c, t->image, by);
}

static int by_image(const void *a, const void *b)
{
	const struct tail_call *x = a, *y = b;

	if (x->image != y->image)
		return x->image < y->image ? -1 : 1;
	return x->back < y->back ? -1 : x->back > y->back;
}

/* One image after the other: opening its file takes longer than reading code. */
void contexts_learn_tails(struct contexts *c)
{
	const struct tail_call *last = NULL; /* whose code was read */
	uint64_t target = 0;

	vec_sort(&c->tail_calls, by_image);
	vec_each (t, &c->tail_calls) {
		if (is_in_one_image(t) &&
			(!last || last->image != t->image || last->back != t->back)) {
			target = target_before(c, t->image, t->back);
			last = t;
		}
		learn_tail(c, t, target);
	}
	c->tail_calls.n = 0;
}

/*
 * Whether the site is none of those seen lately: each has a place for its hash, as that is one
 * load, and looking at code again does no harm.
 */
static bool is_new_site(struct contexts *c, const struct tail_site *site)
{
	uint64_t hash = hash_bytes(site, sizeof *site);
	uint32_t mark = (uint32_t)hash | 1, *known = &c->tail_sites[(hash >> 32) % SITES];
	bool fresh = *known != mark;

	*known = mark;
	return fresh;
}

void contexts_note_tails(struct contexts *c, const struct context_stack *s,
	const struct walk_frame *walked, const struct call_frame *frames, size_t n)
{
	if (c->tail_edges.n > MOST_EDGES) {
		memset(c->tail_sites, 0, SITES * sizeof *c->tail_sites);
		hmap_clear(&c->tail_edges);
	}
	for (size_t i = 1; i < n; i++) {
		struct tail_site site = {.image = frames[i].image,
			.callee_image = frames[i - 1].image,
			.callee = frames[i - 1].procedure};
		uint64_t offset;
		uint32_t image;

		if (walked[i].exact || !frames[i].procedure || !frames[i - 1].procedure)
			continue;
		image = s->place(s->arg, walked[i].pc - 1, &offset);
		if (!cached_image_address(image_cache_get(c->images, image), offset, &site.back))
			continue;
		if (is_new_site(c, &site))
			*vec_add(&c->tail_calls) = (struct tail_call){.image = image,
				.back = site.back + 1,
				.caller = frames[i],
				.callee = frames[i - 1]};
	}
}

/* ---- paths ---- */

static bool is_on(const struct call_tree *t, uint32_t node, uint64_t image, uint64_t procedure)
{
	for (; node != CALL_NONE; node = call_tree_node(t, node)->parent) {
		const struct call_place *at = &call_tree_node(t, node)->at;

		if (at->image == image && at->procedure == procedure)
			return true;
	}
	return false;
}

/* Who was called and jumped on to `node`; 0: nobody, or it is on the path anyway. */
static uint64_t jumped_to(const struct contexts *c, const struct call_tree *from, uint32_t node)
{
	const struct call_node *n = call_tree_node(from, node);
	const struct call_place *up;
	const struct tail_edge *e;
	struct tail_edge key;

	if (n->parent == CALL_NONE)
		return 0;
	up = &call_tree_node(from, n->parent)->at;
	key = edge_of(&(struct call_frame){up->image, up->procedure, 0},
		&(struct call_frame){n->at.image, n->at.procedure, 0});
	e = hmap_get(&c->tail_edges, &key);
	return e && !e->differs && e->by && !is_on(from, node, up->image, e->by) ? e->by : 0;
}

uint32_t contexts_copy_path(const struct contexts *c, struct path_copies *to,
	const struct call_tree *from, uint32_t node)
{
	struct node_copy *known = node == CALL_NONE ? NULL : hmap_get(&to->copies, &node);
	struct call_place at;
	uint32_t parent;
	uint64_t by;

	if (node == CALL_NONE || known)
		return known ? known->copy : CALL_NONE;
	at = call_tree_node(from, node)->at;
	parent = contexts_copy_path(c, to, from, call_tree_node(from, node)->parent);
	by = jumped_to(c, from, node);
	if (by)
		parent = call_tree_child(to->tree, parent,
			&(struct call_place){
				.image = at.image, .procedure = by, .site = CONTEXT_SITE_JUMPED});
	known = hmap_put(&to->copies, &node, NULL);
	return known->copy = call_tree_child(to->tree, parent, &at);
}
