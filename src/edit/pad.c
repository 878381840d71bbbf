#include "edit/pad.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "edit/pad_internal.h"
#include "edit/variable.h"
#include "isa/encode.h"

enum { CANDIDATES = 6, RETURN_DEPTH = 8, SIZE_MAX_PAD = 1 << 14 };

/* A try to put the gap at a depth. */
struct trial {
	const struct depths *d;
	struct pad *pad;
	bool anchored; /* it is open as soon as rbp points there */
	const char *why;
};

static void refuse(struct trial *t, const char *why)
{
	if (!t->why)
		t->why = why;
}

static bool is_open(const struct trial *t, struct spot s)
{
	int32_t gap = (int32_t)t->pad->gap;

	if (s.depth == DEPTH_UNSEEN)
		return false;
	return s.depth == DEPTH_UNKNOWN || s.depth > gap ||
	       (t->anchored && s.depth == gap && s.anchor == gap);
}

static void change(struct trial *t, uint32_t insn, enum pad_kind kind, int64_t by)
{
	if (t->pad->changes.n && t->pad->changes.p[t->pad->changes.n - 1].insn == insn)
		refuse(t, "an instruction that would change in two ways");
	*vec_add(&t->pad->changes) = (struct pad_change){insn, (uint8_t)kind, (int32_t)by};
}

/* ---- the stack pointer ---- */

/* push and pop that open or close it: beside them, where rsp is at the gap. */
static void judge_push(struct trial *t, uint32_t insn, struct spot before, struct spot after)
{
	const struct form *f = &t->d->views[insn].form;
	int32_t gap = (int32_t)t->pad->gap;
	int64_t size = t->pad->size;

	if (f->op == FORM_PUSH && before.depth == gap)
		change(t, insn, PAD_BEFORE, -size);
	else if (f->op == FORM_POP && before.depth > gap && after.depth == gap)
		change(t, insn, PAD_AFTER, size);
	else if (f->op == FORM_POP && before.depth == gap)
		change(t, insn, PAD_BEFORE, size);
	else
		refuse(t, "a push or pop over the gap");
}

/* rsp is set from rbp, which may lie on the other side of the gap. */
static void judge_anchored(struct trial *t, uint32_t insn, struct spot before, bool open_after)
{
	const struct form *f = &t->d->views[insn].form;
	int64_t size = t->pad->size;

	if (before.anchor <= 0) {
		refuse(t, "a stack pointer that is set to what is not known");
		return;
	}
	int64_t by = ((before.anchor > (int32_t)t->pad->gap) - open_after) * size;
	if (f->op == FORM_LEAVE && by)
		refuse(t, "a frame pointer below the gap");
	else if (by)
		change(t, insn, f->op == FORM_MOVE ? PAD_LEA : PAD_DISPLACE, by);
}

static void judge_stack(struct trial *t, uint32_t insn, struct spot before, struct spot after)
{
	const struct form *f = &t->d->views[insn].form;
	bool open = is_open(t, before), open_after = is_open(t, after);
	int64_t size = t->pad->size;

	if (moves_to_anchor(f) || f->op == FORM_LEAVE)
		judge_anchored(t, insn, before, open_after);
	else if (after.depth == DEPTH_UNKNOWN && !open)
		refuse(t, "a stack pointer that is set to what is not known");
	else if (open == open_after)
		return;
	else if (moves_by_constant(f))
		change(t, insn, PAD_DISPLACE, (open - open_after) * size);
	else if (f->op == FORM_PUSH || f->op == FORM_POP)
		judge_push(t, insn, before, after);
	else if (sets_anchor(f))
		change(t, insn, PAD_AFTER, -size);
	else
		refuse(t, "a frame pointer that is lost");
}

/* ---- memory ---- */

/* Functions with a variable number of arguments ask at once how many vector registers have some. */
static bool is_variadic(const struct depths *d)
{
	const struct flow *f = d->flow;
	uint32_t i = 0;

	while (i < f->ninsns && f->insns[i].address != f->entry)
		i++;
	for (; i < f->ninsns && f->insns[i].kind == INSN_PLAIN; i++) {
		const uint8_t *code = edit_code(d->e, f->insns[i].address, f->insns[i].length);

		if (f->insns[i].length == 2 && code && !memcmp(code, "\x84\xc0", 2))
			return true; /* test %al, %al */
	}
	return false;
}

/*
 * The end of what lies below the gap belongs to that, and so may addresses beyond the frame: loops
 * over the rows of an array end where one more row would. What else is there is an argument.
 */
static bool judge_taken(struct trial *t, int64_t from_cfa)
{
	bool more = !from_cfa && is_variadic(t->d);

	if (from_cfa > -(int64_t)t->pad->gap && from_cfa < 0)
		refuse(t, "the address of a saved register");
	if (from_cfa >= 0 && !more)
		refuse(t, "an address beyond the frame, whose is not known");
	return more;
}

/* What an address relative to a place at this depth means when a gap is made. */
static void judge_address(struct trial *t, uint32_t insn, int32_t depth, bool open)
{
	const struct view *v = &t->d->views[insn];
	int64_t gap = t->pad->gap, from_cfa = v->memory.displacement - depth;
	bool lea = v->form.op == FORM_ADDRESS, above;

	if (v->memory.index != REG_NONE) {
		above = false;
		if (from_cfa >= -gap)
			refuse(t, "an index over the gap");
	} else if (lea) {
		above = judge_taken(t, from_cfa);
	} else {
		above = from_cfa >= -gap;
	}
	if (open && above)
		change(t, insn, PAD_DISPLACE, t->pad->size);
	else if (!open && !above && v->memory.base == REG_RSP)
		refuse(t, "something below the stack pointer");
	else if (!open && !above)
		change(t, insn, PAD_DISPLACE, -(int64_t)t->pad->size);
}

/* rbp was set from rsp above the gap, on some path at least. */
static bool is_frame_pointer(const struct trial *t, struct spot s)
{
	return s.anchor && abs(s.anchor) <= (int32_t)t->pad->gap;
}

static void judge_memory(struct trial *t, uint32_t insn, struct spot before)
{
	const struct isa_memory *m = &t->d->views[insn].memory;
	const struct form *f = &t->d->views[insn].form;

	if (!m->present || moves_by_constant(f) || moves_to_anchor(f))
		return;
	if (m->other_space && (m->base == REG_RSP || is_frame_pointer(t, before)))
		refuse(t, "a stack pointer that is computed with");
	if (m->index == REG_RBP && is_frame_pointer(t, before))
		refuse(t, "a frame pointer as an index");
	if (m->base == REG_RSP && f->op == FORM_POP)
		refuse(t, "a pop to the stack");
	if (m->base == REG_RSP && before.depth >= 0)
		judge_address(t, insn, before.depth, is_open(t, before));
	if (m->base != REG_RBP)
		return;
	if (before.anchor > 0)
		judge_address(t, insn, before.anchor, before.anchor > (int32_t)t->pad->gap);
	else if (is_frame_pointer(t, before) || t->d->rules[insn].base == REG_RBP)
		refuse(t, "a frame pointer on some paths only");
}

/* rsp and rbp as values: what is made of them must be addresses below the gap. */
static void judge_values(struct trial *t, uint32_t insn, struct spot before)
{
	const struct view *v = &t->d->views[insn];
	const struct form *f = &v->form;
	bool rsp = v->memory.operands >> REG_RSP & 1, rbp = v->memory.operands >> REG_RBP & 1;
	bool writes_rsp = f->writes >> REG_RSP & 1;

	if (rsp && !sets_anchor(f) && !moves_by_constant(f) && !moves_to_anchor(f)) {
		if (!is_open(t, before))
			refuse(t, "a copy of the stack pointer from above the gap");
		else if (f->op != FORM_MOVE && !writes_rsp)
			refuse(t, "a stack pointer that is computed with");
	}
	bool reads_rbp = f->reads >> REG_RBP & 1;
	if (rbp && reads_rbp && is_frame_pointer(t, before) && !moves_to_anchor(f) &&
		f->op != FORM_LEAVE)
		refuse(t, "a copy of the frame pointer");
}

/* ---- a function ---- */

static void judge_transfer(struct trial *t, uint32_t insn, struct spot before)
{
	const struct flow_insn *i = &t->d->flow->insns[insn];
	bool open = is_open(t, before);

	if (i->kind == INSN_CALL || i->kind == INSN_CALL_INDIRECT) {
		bool bare = before.depth == RETURN_DEPTH && t->pad->gap == RETURN_DEPTH;
		if (!open && bare) /* so nothing is passed on the stack */
			change(t, insn, PAD_AROUND, -(int64_t)t->pad->size);
		else if (!open)
			refuse(t, "a call before the frame is made");
	} else if (i->end == FLOW_RETURNS || i->end == FLOW_TAIL || i->end == FLOW_TAIL_INDIRECT) {
		if (open || before.depth != RETURN_DEPTH)
			refuse(t, "an end with the frame still there");
	}
}

static void judge_rule(struct trial *t, uint32_t insn, struct spot before)
{
	const struct frame_rule *r = &t->d->rules[insn];

	if (r->base == REG_RSP && before.depth != r->offset)
		refuse(t, "unwind rows that do not fit the code");
	if (r->base == REG_RBP && (before.anchor > (int32_t)t->pad->gap ||
					  (before.anchor > 0 && before.anchor != r->offset)))
		refuse(t, "a frame pointer below the gap");
}

static void judge_insn(struct trial *t, uint32_t insn)
{
	const struct view *v = &t->d->views[insn];
	struct spot before = t->d->spots[insn];

	if (before.depth == DEPTH_UNSEEN)
		return;
	t->pad->open[insn] = is_open(t, before);
	judge_rule(t, insn, before);
	judge_transfer(t, insn, before);
	if (!v->touches || v->form.op == FORM_TRANSFER) {
		if (v->touches)
			judge_memory(t, insn, before);
		return;
	}
	judge_stack(t, insn, before, depths_step(v, before));
	judge_memory(t, insn, before);
	judge_values(t, insn, before);
}

/* The gap is open or not in a block, wherever control comes from. */
static void judge_edges(struct trial *t, uint32_t k)
{
	const struct depths *d = t->d;
	const struct flow_block *b = &d->flow->blocks[k];
	uint32_t last = b->first + b->count - 1;

	if (d->spots[last].depth == DEPTH_UNSEEN)
		return;
	struct spot s = depths_step(&d->views[last], d->spots[last]);
	graph_each_out (edge, &d->flow->graph, k) {
		uint32_t to = d->flow->graph.edge[*edge].to;
		if (to == d->flow->exit_node)
			continue;
		struct spot there = d->spots[d->flow->blocks[to].first];
		bool differs = s.depth != there.depth && there.depth != DEPTH_UNKNOWN;
		bool ends = b->end == FLOW_CALLS || d->flow->insns[last].flags & FLOW_INSN_FILLER;
		if (differs && !ends) /* calls that do not come back, what fills the gap behind */
			refuse(t, "unwind rows that do not fit the code");
		if (!differs && is_open(t, s) != is_open(t, there))
			refuse(t, "paths with different frames");
	}
}

static bool try_gap(struct trial *t)
{
	const struct flow *flow = t->d->flow;

	t->pad->changes.n = 0;
	t->why = NULL;
	memset(t->pad->open, 0, flow->ninsns * sizeof *t->pad->open);
	for (uint32_t i = 0; i < flow->ninsns && !t->why; i++)
		judge_insn(t, i);
	for (uint32_t k = 0; k < flow->nblocks && !t->why; k++)
		judge_edges(t, k);
	return !t->why;
}

/* ---- where a gap may be ---- */

struct candidates {
	int32_t depth[CANDIDATES];
	unsigned n;
	int32_t anchor; /* the lowest depth of a frame pointer, 0: there is none */
	bool calls;
};

static void note_depth(struct candidates *c, int32_t depth)
{
	for (unsigned i = 0; i < c->n; i++)
		if (c->depth[i] == depth)
			return;
	if (c->n < CANDIDATES && depth >= RETURN_DEPTH)
		c->depth[c->n++] = depth;
}

/* Where the stack pointer moves at once, a larger number is all it takes. */
static void find_candidates(const struct depths *d, struct candidates *c)
{
	for (uint32_t i = 0; i < d->flow->ninsns; i++) {
		const struct view *v = &d->views[i];
		struct spot s = d->spots[i];
		uint8_t kind = d->flow->insns[i].kind;
		if (s.depth == DEPTH_UNSEEN)
			continue;
		c->calls = c->calls || kind == INSN_CALL || kind == INSN_CALL_INDIRECT;
		if (!v->touches || v->form.op == FORM_TRANSFER)
			continue;
		struct spot next = depths_step(v, s);
		if (sets_anchor(&v->form) && s.depth > 0 && (!c->anchor || s.depth < c->anchor))
			c->anchor = s.depth;
		if (moves_by_constant(&v->form) && next.depth > s.depth)
			note_depth(c, s.depth);
	}
}

/*
 * Without such a place: below the frame pointer, which must stay beside the return address; or
 * right below that. Never below what may be an argument that is pushed for a call.
 */
static bool find_gap(struct trial *t)
{
	struct candidates c = {0};
	const char *first = NULL;

	find_candidates(t->d, &c);
	for (unsigned i = 0; i < c.n; i++) {
		t->pad->gap = (uint32_t)c.depth[i];
		if (try_gap(t))
			return true;
		first = first ? first : t->why;
	}
	t->why = "it has no frame and calls nothing";
	if (!c.calls && !c.n)
		return false;
	t->anchored = c.anchor > 0;
	t->pad->gap = c.anchor > 0 ? (uint32_t)c.anchor : RETURN_DEPTH;
	if (try_gap(t))
		return true;
	t->why = first ? first : t->why;
	return false;
}

struct pad *pad_create(struct edit *e, struct function *f, uint32_t size, const char **why)
{
	struct depths d;
	struct trial t = {.d = &d, .pad = xcalloc(1, sizeof *t.pad)};

	t.pad->size = size;
	t.pad->open = xcalloc(f->public.flow->ninsns, sizeof *t.pad->open);
	*why = depths_find(e, f->public.flow, &d);
	bool found = !*why && find_gap(&t);
	depths_deinit(&d);
	if (found)
		return t.pad;
	*why = *why ? *why : t.why;
	pad_destroy(t.pad);
	return NULL;
}

struct pad *pad_create_none(const struct flow *flow)
{
	struct pad *p = xcalloc(1, sizeof *p);

	p->open = xcalloc(flow->ninsns, sizeof *p->open);
	return p;
}

void pad_destroy(struct pad *p)
{
	if (!p)
		return;
	free(p->open);
	vec_deinit(&p->changes);
	vec_deinit(&p->words);
	free(p);
}

bool edit_pad_frame(struct edit *e, struct edit_function *public, uint32_t bytes, const char **why)
{
	struct function *f = (struct function *)public;

	f = f->original ? f->original : f;
	*why = public->refused;
	vec_each (v, &f->variables)
		if (v->by_insn && !f->pad && !*why)
			*why = "a variable lies below its frame";
	if (!*why && (f->pad || !bytes || bytes % 16 || bytes > SIZE_MAX_PAD))
		*why = "it is larger already, or the size is no multiple of 16 up to 16384";
	if (!*why)
		f->pad = pad_create(e, f, bytes, why);
	return f->pad && !*why;
}

bool pad_keeps_labels(const struct edit *e, const struct flow *flow)
{
	for (uint32_t k = 0; k < flow->nblocks; k++)
		if (flow->blocks[k].marks & FLOW_ENTERED && flow->blocks[k].start != flow->entry &&
			!depths_is_landing_pad(e, flow->blocks[k].start))
			return true;
	return false;
}

bool edit_pad_copy(struct edit *e, struct edit_function *public, uint32_t bytes, const char **why)
{
	struct function *f = (struct function *)public;

	*why = NULL;
	if (f->pad || !f->original || bytes % 16 || bytes > SIZE_MAX_PAD)
		*why = "it is no second copy, or the size is no multiple of 16 up to 16384";
	else if (f->original->variables.n)
		*why = "a variable lies in its frame";
	else if (pad_keeps_labels(e, public->flow))
		*why = "something else goes into its middle";
	else
		f->pad = bytes ? pad_create(e, f, bytes, why) : pad_create_none(public->flow);
	return f->pad && !*why;
}

/* ---- writing ---- */

static int by_insn(const void *a, const void *b)
{
	const struct pad_change *x = a, *y = b;

	return x->insn < y->insn ? -1 : x->insn > y->insn;
}

const struct pad_change *pad_change_at(const struct pad *p, uint32_t insn)
{
	const struct pad_change key = {.insn = insn};

	if (!p->changes.n)
		return NULL;
	return bsearch(&key, p->changes.p, p->changes.n, sizeof *p->changes.p, by_insn);
}

static void put_lea(struct buf *out, uint8_t base, int32_t by)
{
	const struct encode_memory m = {
		.base = base, .index = REG_NONE, .scale = 1, .displacement = by};

	encode_memory(out, ENCODE_ADDRESS, REG_RSP, &m);
}

void pad_write(const struct edit *e, const struct flow_insn *i, const struct pad_change *c,
	struct buf *out)
{
	const uint8_t *code = edit_code(e, i->address, i->length);
	uint8_t bytes[ISA_DISPLACED_MAX];
	struct form f;

	if (c->kind != PAD_DISPLACE) {
		put_lea(out, c->kind == PAD_LEA ? REG_RBP : REG_RSP, c->by);
		return;
	}
	isa_form(code, i->length, i->address, &f);
	if (moves_by_constant(&f) && f.op != FORM_ADDRESS) {
		bool down = f.op == FORM_SUBTRACT;
		encode_register_immediate(out, down ? ENCODE_SUB : ENCODE_ADD, REG_RSP,
			(int32_t)(f.immediate + (down ? -c->by : c->by)));
		return;
	}
	buf_put(out, bytes, isa_displace(code, i->length, c->by, bytes));
}
