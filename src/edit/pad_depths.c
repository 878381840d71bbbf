#include <stdlib.h>

#include "base/mem.h"
#include "edit/pad_internal.h"
#include "edit/unwind_internal.h"
#include "flow/program.h"
#include "image/data.h"

enum { DWARF_RBP = 6, OFFSET_MAX = 1 << 30 };

/* ---- what unwind rows say ---- */

static bool is_plain(const struct cfi_row *row)
{
	if (row->cfa.kind != CFI_REGISTER || row->cfa_offset < 0 || row->cfa_offset > OFFSET_MAX)
		return false;
	for (size_t i = 0; i < CFI_REGISTERS; i++) {
		enum cfi_kind kind = row->registers[i].kind;
		if (kind == CFI_EXPRESSION || kind == CFI_VAL_EXPRESSION ||
			kind == CFI_VAL_OFFSET || kind == CFI_REGISTER)
			return false;
	}
	return true;
}

static struct frame_rule rule_of(const struct cfi_row *row)
{
	uint8_t base = row->cfa.value == CFI_RSP     ? REG_RSP
		       : row->cfa.value == DWARF_RBP ? REG_RBP
						     : REG_NONE;

	return (struct frame_rule){base, (int32_t)row->cfa_offset};
}

static const char *read_rules(struct depths *d)
{
	struct unwind_rows rows = {0};
	const struct unwind_frame *frame = NULL;
	const char *why = NULL;
	size_t at = 0;

	for (uint32_t i = 0; i < d->flow->ninsns && !why; i++) {
		uint64_t address = d->flow->insns[i].address;
		if (!frame || address - frame->fde.start >= frame->fde.size) {
			frame = unwind_find_frame(d->e->unwind, address);
			at = 0;
			if (!frame || !unwind_read_rows(d->e->unwind, frame, &rows) || !rows.list.n)
				why = "no frame description";
		}
		if (why)
			break;
		while (at + 1 < rows.list.n && rows.list.p[at + 1].pc <= address)
			at++;
		while (at && rows.list.p[at].pc > address)
			at--;
		d->rules[i] = rule_of(&rows.list.p[at].row);
		if (!is_plain(&rows.list.p[at].row) || d->rules[i].base == REG_NONE)
			why = "a frame of unusual form";
	}
	vec_deinit(&rows.list);
	return why;
}

/* ---- what instructions do ---- */

static bool read_views(struct depths *d)
{
	for (uint32_t i = 0; i < d->flow->ninsns; i++) {
		const struct flow_insn *insn = &d->flow->insns[i];
		const uint8_t *code = edit_code(d->e, insn->address, insn->length);
		struct view *v = &d->views[i];
		if (!code || isa_form(code, insn->length, insn->address, &v->form))
			return false;
		uint16_t used = v->form.reads | v->form.writes;
		v->touches = used >> REG_RSP & 1 || used >> REG_RBP & 1;
		if (v->touches && isa_memory(code, insn->length, &v->memory))
			return false;
	}
	return true;
}

static int32_t deeper(int32_t depth, int64_t by)
{
	int64_t sum = depth + by;

	return depth < 0 || sum < 0 || sum > OFFSET_MAX ? DEPTH_UNKNOWN : (int32_t)sum;
}

static int32_t anchor_depth(struct spot s, int64_t above)
{
	return s.anchor > 0 ? deeper(s.anchor, -above) : DEPTH_UNKNOWN;
}

static int32_t depth_behind(const struct form *f, struct spot s)
{
	if (f->op == FORM_PUSH)
		return f->from.size == 2 ? DEPTH_UNKNOWN : deeper(s.depth, 8);
	if (f->op == FORM_POP)
		return f->to.size == 2 || f->to.reg == REG_RSP ? DEPTH_UNKNOWN
							       : deeper(s.depth, -8);
	if (f->op == FORM_LEAVE)
		return anchor_depth(s, 8);
	if (moves_by_constant(f)) {
		int64_t up = f->op == FORM_ADDRESS ? (int64_t)f->displacement : f->immediate;
		return deeper(s.depth, f->op == FORM_SUBTRACT ? up : -up);
	}
	if (moves_to_anchor(f))
		return anchor_depth(s, f->op == FORM_ADDRESS ? (int64_t)f->displacement : 0);
	return f->op != FORM_TRANSFER && f->writes >> REG_RSP & 1 ? DEPTH_UNKNOWN : s.depth;
}

struct spot depths_step(const struct view *v, struct spot s)
{
	const struct form *f = &v->form;
	struct spot next = s;

	if (!v->touches)
		return s;
	next.depth = depth_behind(f, s);
	if (sets_anchor(f))
		next.anchor = s.depth > 0 ? s.depth : ANCHOR_NONE;
	else if (f->op == FORM_LEAVE || (f->op != FORM_TRANSFER && f->writes >> REG_RBP & 1))
		next.anchor = ANCHOR_NONE;
	return next;
}

/* ---- along the flow ---- */

struct walk {
	struct depths *d;
	VEC(uint32_t) left; /* blocks */
};

static int32_t join_anchors(int32_t a, int32_t b)
{
	int32_t x = abs(a), y = abs(b);

	if (a == b)
		return a;
	return !x ? -y : !y ? -x : -(x < y ? x : y);
}

/*
 * Behind a call that never comes back stands code of other paths, which that call seems to reach:
 * where rows tell the depth they are right.
 */
static void arrive(struct walk *w, uint32_t block, struct spot s)
{
	uint32_t first = w->d->flow->blocks[block].first;
	struct spot *there = &w->d->spots[first];

	if (w->d->rules[first].base == REG_RSP)
		s.depth = w->d->rules[first].offset;
	struct spot joined = s;

	if (there->depth != DEPTH_UNSEEN) {
		joined.depth = there->depth == s.depth ? s.depth : DEPTH_UNKNOWN;
		joined.anchor = join_anchors(there->anchor, s.anchor);
	}
	if (joined.depth == there->depth && joined.anchor == there->anchor)
		return;
	*there = joined;
	*vec_add(&w->left) = block;
}

static void run_block(struct walk *w, uint32_t k)
{
	struct depths *d = w->d;
	const struct flow_block *b = &d->flow->blocks[k];
	struct spot s = d->spots[b->first];

	for (uint32_t i = b->first; i < b->first + b->count; i++) {
		d->spots[i] = s;
		s = depths_step(&d->views[i], s);
	}
	graph_each_out (edge, &d->flow->graph, k) {
		uint32_t to = d->flow->graph.edge[*edge].to;
		if (to != d->flow->exit_node)
			arrive(w, to, s);
	}
}

static int by_address(const void *key, const void *pad)
{
	const uint64_t *x = key, *y = pad;

	return *x < *y ? -1 : *x > *y;
}

bool depths_is_landing_pad(const struct edit *e, uint64_t address)
{
	const struct image_data *data = program_data(e->program);
	const uint64_t *pads = NULL;
	size_t n = data ? image_data_landing_pads(data, &pads) : 0;

	return n && bsearch(&address, pads, n, sizeof *pads, by_address);
}

/* Where unwinding or others go, only the rows tell what is there; and `landed`, if it is one
 * depth that all calls have: unwinding leaves rsp where it was. */
static struct spot spot_entered(const struct depths *d, const struct flow_block *b, int32_t landed)
{
	const struct frame_rule *r = &d->rules[b->first];

	if (r->base == REG_RSP)
		return (struct spot){r->offset, ANCHOR_NONE};
	return (struct spot){
		depths_is_landing_pad(d->e, b->start) ? landed : DEPTH_UNKNOWN, r->offset};
}

static void run_all(struct walk *w)
{
	while (w->left.n)
		run_block(w, w->left.p[--w->left.n]);
}

static void enter(struct walk *w, int32_t landed)
{
	const struct flow *flow = w->d->flow;

	for (uint32_t k = 0; k < flow->nblocks; k++)
		if (flow->blocks[k].start != flow->entry && flow->blocks[k].marks & FLOW_ENTERED)
			arrive(w, k, spot_entered(w->d, &flow->blocks[k], landed));
	run_all(w);
}

static void enter_at_start(struct walk *w)
{
	const struct flow *flow = w->d->flow;

	for (uint32_t i = 0; i < flow->ninsns; i++)
		w->d->spots[i] = (struct spot){DEPTH_UNSEEN, ANCHOR_NONE};
	for (uint32_t k = 0; k < flow->nblocks; k++)
		if (flow->blocks[k].start == flow->entry)
			arrive(w, k, (struct spot){8, ANCHOR_NONE});
	run_all(w);
}

/* The depth of all calls that were come to, DEPTH_UNKNOWN if there are several. */
static int32_t depth_of_calls(const struct depths *d)
{
	int32_t depth = DEPTH_UNSEEN;

	for (uint32_t i = 0; i < d->flow->ninsns; i++) {
		uint8_t kind = d->flow->insns[i].kind;
		int32_t here = d->spots[i].depth;
		if (here == DEPTH_UNSEEN || (kind != INSN_CALL && kind != INSN_CALL_INDIRECT))
			continue;
		if (depth != DEPTH_UNSEEN && here != depth)
			return DEPTH_UNKNOWN;
		depth = here;
	}
	return depth == DEPTH_UNSEEN ? DEPTH_UNKNOWN : depth;
}

static void walk_flow(struct depths *d)
{
	struct walk w = {.d = d};

	enter_at_start(&w);
	int32_t landed = depth_of_calls(d);
	enter(&w, landed);
	if (landed != DEPTH_UNKNOWN && depth_of_calls(d) != landed) {
		enter_at_start(&w);
		enter(&w, DEPTH_UNKNOWN);
	}
	vec_deinit(&w.left);
}

const char *depths_find(const struct edit *e, const struct flow *flow, struct depths *out)
{
	*out = (struct depths){.e = e,
		.flow = flow,
		.views = xcalloc(flow->ninsns, sizeof *out->views),
		.spots = xcalloc(flow->ninsns, sizeof *out->spots),
		.rules = xcalloc(flow->ninsns, sizeof *out->rules)};
	const char *why = read_rules(out);
	if (!why && !read_views(out))
		why = "bytes that are no instructions";
	if (!why)
		walk_flow(out);
	return why;
}

void depths_deinit(struct depths *d)
{
	free(d->views);
	free(d->spots);
	free(d->rules);
}
