#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "edit/edit_internal.h"
#include "edit/pad.h"
#include "edit/variable.h"
#include "isa/reference.h"

/* Code that is to be put behind the piece. */
struct stub {
	uint32_t edge, label;
};

/* And parts of snippets that lie apart. */
struct part {
	struct item item;
	uint32_t from; /* item with the rest of the snippet */
};

struct maker {
	struct edit *e;
	struct function *f;
	const struct flow *flow;
	struct body *b;
	const struct pad *pad; /* NULL: the frame is as it was */
	size_t next_before;    /* the first insertion before an instruction that is still to come */
	size_t nedges;         /* insertions on edges, which come first */
	VEC(struct stub) stubs;
	VEC(struct part) parts;
	uint32_t *stub_on; /* by edge: the label of its stub, GRAPH_NONE */
	struct snippet_code code;
	struct err *err;
	int failed;
};

/* ---- insertions ---- */

static int by_place(const void *a, const void *b)
{
	const struct insertion *x = a, *y = b;

	if (x->on_edge != y->on_edge)
		return x->on_edge ? -1 : 1;
	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* The first insertion on an edge, or NULL. */
static const struct insertion *on_edge(const struct maker *m, uint32_t edge)
{
	const struct insertion *list = m->f->insertions.p;
	size_t low = 0, high = m->nedges;

	while (low < high) {
		size_t middle = (low + high) / 2;
		if (list[middle].number < edge)
			low = middle + 1;
		else
			high = middle;
	}
	return low < m->nedges && list[low].number == edge ? &list[low] : NULL;
}

/* ---- items ---- */

static struct item new_item(const struct maker *m, enum item_kind kind, uint32_t insn)
{
	struct item i = {.kind = (uint8_t)kind, .insn = insn, .label = LABEL_OUTSIDE};

	if (m->pad && m->pad->open[insn])
		i.pushed = (uint16_t)m->pad->size;
	return i;
}

static struct item *add_item(struct maker *m, enum item_kind kind, uint32_t insn)
{
	struct item *i = vec_add(&m->b->items);

	*i = new_item(m, kind, insn);
	return i;
}

static void add_run(struct maker *m, uint32_t first, uint32_t end)
{
	const struct flow_insn *insns = m->flow->insns;

	if (first == end)
		return;
	struct item *i = add_item(m, ITEM_COPY, first);
	i->count = end - first;
	i->size = (uint32_t)(insns[end - 1].address + insns[end - 1].length - insns[first].address);
}

static void add_changed(struct maker *m, enum item_kind kind, uint32_t insn,
	const struct pad_change *c, uint16_t pushed)
{
	struct body *b = m->b;
	size_t start = b->bytes.n;

	pad_write(m->e, &m->flow->insns[c->insn], c, &b->bytes);
	struct item *i = add_item(m, kind, insn);
	i->count = (uint32_t)b->codes.n;
	i->size = (uint32_t)(b->bytes.n - start);
	i->pushed = pushed;
	*vec_add(&b->codes) =
		(struct code){.offset = (uint32_t)start, .size = i->size, .edge = GRAPH_NONE};
}

/* An instruction that is not as it was in a larger frame. */
static void add_padded(struct maker *m, const struct pad_change *c)
{
	uint16_t pushed = m->pad->open[c->insn] ? (uint16_t)m->pad->size : 0;

	if (c->kind == PAD_DISPLACE || c->kind == PAD_LEA) {
		add_changed(m, ITEM_CHANGED, c->insn, c, pushed);
		return;
	}
	if (c->kind != PAD_AFTER) {
		add_changed(m, ITEM_CODE, c->insn, c, pushed);
		pushed = (uint16_t)(pushed - c->by);
	}
	add_run(m, c->insn, c->insn + 1);
	m->b->items.p[m->b->items.n - 1].pushed = pushed;
	if (c->kind == PAD_BEFORE)
		return;
	/* What comes behind stands for the next one. */
	struct pad_change behind = *c;
	behind.by = c->kind == PAD_AROUND ? -c->by : c->by;
	uint32_t next = c->insn + 1 < m->flow->ninsns ? c->insn + 1 : c->insn;
	add_changed(m, ITEM_CODE, next, &behind, pushed);
}

static void add_copy(struct maker *m, uint32_t first, uint32_t end)
{
	const struct pad *p = m->pad;

	for (uint32_t i = first; p && i < end; i++) {
		const struct pad_change *c = pad_change_at(p, i);
		if (!c && p->open[i] == p->open[first])
			continue;
		add_run(m, first, i);
		first = i;
		if (!c)
			continue;
		add_padded(m, c);
		first = i + 1;
	}
	add_run(m, first, end);
}

/* The instruction that code on an edge stands for. */
static uint32_t insn_of(const struct maker *m, uint32_t edge)
{
	const struct graph_edge *ends = &m->flow->graph.edge[edge];
	const struct flow *flow = m->flow;

	if (ends->from == flow->entry_node || edge_place(m->e, m->f, edge) == PLACE_FALL ||
		edge_place(m->e, m->f, edge) == PLACE_TARGET)
		return flow->blocks[ends->to].first;
	return flow->blocks[ends->from].first + flow->blocks[ends->from].count - 1;
}

/* A part of what was just lowered. */
static void keep_code(
	struct maker *m, const struct insertion *in, struct item *i, size_t from, size_t to)
{
	i->count = body_keep_code(m->b, &m->code, from, to);
	i->size = (uint32_t)(to - from);
	m->b->codes.p[i->count].edge = in->on_edge ? in->number : GRAPH_NONE;
}

/* The instruction before which control is behind the snippet. */
static uint32_t goes_on(const struct maker *m, const struct insertion *in)
{
	uint32_t to = in->on_edge ? m->flow->graph.edge[in->number].to : GRAPH_NONE;

	return !in->on_edge               ? in->number
	       : to == m->flow->exit_node ? insn_of(m, in->number)
					  : m->flow->blocks[to].first;
}

/* One snippet; it stands for an instruction. */
static void add_code(struct maker *m, const struct insertion *in, const struct snippet_place *place,
	uint32_t insn)
{
	int r = snippet_lower(in->snippet, m->e->arguments.p + in->arguments, place, &m->code);

	if (r < 0 && !m->failed)
		m->failed = err_errno(m->err, r, "%s: code for 0x%llx", image_path(m->e->image),
			(unsigned long long)m->flow->insns[insn].address);
	if (r < 0 || !m->code.bytes.n)
		return;
	bridge_add(m->e, m->f, goes_on(m, in), &m->code);
	if (m->code.apart < m->code.bytes.n) {
		struct part *p = vec_add(&m->parts);
		*p = (struct part){new_item(m, ITEM_CODE, insn), (uint32_t)m->b->items.n};
		keep_code(m, in, &p->item, m->code.apart, m->code.bytes.n);
	}
	keep_code(m, in, add_item(m, ITEM_CODE, insn), 0, m->code.apart);
}

/* Behind a branch only what the target needs is live. */
static struct snippet_place scratch_on(const struct maker *m, uint32_t edge)
{
	const struct graph_edge *ends = &m->flow->graph.edge[edge];
	uint32_t insn = insn_of(m, edge);
	struct snippet_place place;

	if (ends->to == m->flow->exit_node || edge_place(m->e, m->f, edge) == PLACE_BEFORE)
		place = scratch_before(m->e, m->f, insn);
	else
		place = scratch_into(m->e, m->f, ends->to);
	variables_at(m->f, insn, ends->from, ends->to, &place);
	return place;
}

static void add_edge_code(struct maker *m, uint32_t edge)
{
	const struct insertion *in = on_edge(m, edge);

	if (!in)
		return;
	const struct insertion *end = m->f->insertions.p + m->nedges;
	struct snippet_place place = scratch_on(m, edge);
	for (; in < end && in->number == edge && !m->failed; in++)
		add_code(m, in, &place, insn_of(m, edge));
}

/* ---- labels ---- */

static uint32_t new_label(struct maker *m, uint32_t edge)
{
	uint32_t label = (uint32_t)m->b->labels.n;

	*vec_add(&m->b->labels) = (uint32_t)m->b->items.n;
	*vec_add(&m->b->ways) = (struct way){edge, label};
	return label;
}

#define NOT_YET UINT32_MAX /* where a stub is */

static uint32_t add_stub(struct maker *m, uint32_t edge)
{
	uint32_t label = new_label(m, edge);

	m->b->labels.p[label] = NOT_YET;
	m->stub_on[edge] = label;
	*vec_add(&m->stubs) = (struct stub){edge, label};
	return label;
}

/* The label that an edge goes to; a stub is ordered where one is needed. */
static uint32_t label_of(struct maker *m, uint32_t edge)
{
	uint32_t to = m->flow->graph.edge[edge].to;

	if (edge_place(m->e, m->f, edge) != PLACE_STUB || !on_edge(m, edge))
		return to == m->flow->exit_node ? LABEL_OUTSIDE : to;
	return add_stub(m, edge);
}

static void finish_stubs(struct maker *m)
{
	vec_each (s, &m->stubs) {
		uint32_t to = m->flow->graph.edge[s->edge].to;
		if (m->b->labels.p[s->label] != NOT_YET)
			continue;
		m->b->labels.p[s->label] = (uint32_t)m->b->items.n;
		add_edge_code(m, s->edge);
		if (to == m->flow->exit_node)
			add_item(m, ITEM_LEAVE, insn_of(m, s->edge));
		else
			add_item(m, ITEM_JUMP, insn_of(m, s->edge))->label = to;
	}
	m->stubs.n = 0;
}

/* Behind everything: also stubs may have such parts. */
static void finish_parts(struct maker *m)
{
	struct body *b = m->b;

	vec_each (p, &m->parts) {
		b->codes.p[p->item.count].other = p->from;
		b->codes.p[b->items.p[p->from].count].other = (uint32_t)b->items.n;
		*vec_add(&b->items) = p->item;
	}
	m->parts.n = 0;
}

/* ---- blocks ---- */

/* One of the stubs for a block that nobody falls into lies before it, and needs no jump. */
static void place_stub(struct maker *m, uint32_t k)
{
	graph_each_in (edge, &m->flow->graph, k) {
		uint32_t label = m->stub_on[*edge];
		if (label == GRAPH_NONE || m->b->labels.p[label] != NOT_YET)
			continue;
		m->b->labels.p[label] = (uint32_t)m->b->items.n;
		add_edge_code(m, *edge);
		return;
	}
}

/* Ways in that carry code and do not come from the procedure's own branches. */
static void enter_block(struct maker *m, uint32_t k, bool fallen_into)
{
	bool inline_taken = fallen_into;

	graph_each_in (it, &m->flow->graph, k) {
		uint32_t edge = *it, group = edit_edge_group(&m->f->public, edge);
		enum edge_place place = edge_place(m->e, m->f, edge);
		if (!on_edge(m, edge))
			continue;
		if (place == PLACE_ENTER && !inline_taken) {
			new_label(m, edge);
			add_edge_code(m, edge);
			inline_taken = true;
		} else if (place == PLACE_ENTER) {
			add_stub(m, edge);
		} else if (place == PLACE_STUB && group == edge &&
			   m->flow->edge_kind[edge] == FLOW_EDGE_TABLE) {
			label_of(m, edge);
		}
	}
	if (!inline_taken)
		place_stub(m, k);
}

static void start_block(struct maker *m, uint32_t k)
{
	m->b->labels.p[k] = (uint32_t)m->b->items.n;
	if (!m->nedges)
		return;
	graph_each_in (edge, &m->flow->graph, k)
		if (edge_place(m->e, m->f, *edge) == PLACE_TARGET)
			add_edge_code(m, *edge);
}

static void leave_block(struct maker *m, uint32_t k)
{
	graph_each_out (edge, &m->flow->graph, k)
		if (edge_place(m->e, m->f, *edge) == PLACE_BEFORE)
			add_edge_code(m, *edge);
}

/* The instructions of a block but the last, and the snippets before each. */
static uint32_t copy_insns(struct maker *m, uint32_t k)
{
	const struct flow_block *b = &m->flow->blocks[k];
	uint32_t first = b->first, end = b->first + b->count;
	const struct insertion *list = m->f->insertions.p;

	for (; m->next_before < m->f->insertions.n; m->next_before++) {
		const struct insertion *in = &list[m->next_before];
		if (in->number < first)
			continue;
		if (in->number >= end)
			break;
		add_copy(m, first, in->number);
		first = in->number;
		struct snippet_place place = scratch_before(m->e, m->f, in->number);
		struct reference memory[SNIPPET_NAMED];
		variables_at(m->f, in->number, k, k, &place);
		if (snippet_asks_memory(in->snippet) && !in->memory)
			edit_references(m->e, &m->f->public, in->number, memory);
		place.memory = in->memory ? m->e->memory.p + in->memory - 1 : memory;
		add_code(m, in, &place, in->number);
	}
	return first;
}

static bool is_branch(const struct flow_insn *i)
{
	return i->kind == INSN_JUMP || i->kind == INSN_BRANCH;
}

/* What is on the edge comes behind the branch, which goes past it where it was not taken. */
static void turn_around(struct maker *m, uint32_t edge, uint32_t insn)
{
	uint32_t past = (uint32_t)m->b->labels.n;

	*vec_add(&m->b->labels) = NOT_YET;
	add_item(m, ITEM_UNLESS, insn)->label = past;
	add_edge_code(m, edge);
	add_item(m, ITEM_JUMP, insn)->label = m->flow->graph.edge[edge].to;
	m->b->labels.p[past] = (uint32_t)m->b->items.n;
}

static void add_branch(struct maker *m, uint32_t k, uint32_t insn)
{
	uint32_t label = LABEL_OUTSIDE;

	graph_each_out (edge, &m->flow->graph, k) {
		uint8_t kind = m->flow->edge_kind[*edge];
		if (kind != FLOW_EDGE_JUMP && kind != FLOW_EDGE_TAIL)
			continue;
		if (edge_place(m->e, m->f, *edge) == PLACE_AROUND && on_edge(m, *edge)) {
			turn_around(m, *edge, insn);
			return;
		}
		label = label_of(m, *edge);
	}
	add_item(m, ITEM_BRANCH, insn)->label = label;
}

/* The way to the next block, which is where it was unless the function ends here. */
static void fall(struct maker *m, uint32_t k, uint32_t next, uint32_t last)
{
	uint32_t to = GRAPH_NONE;

	graph_each_out (edge, &m->flow->graph, k) {
		if (m->flow->edge_kind[*edge] != FLOW_EDGE_FALL)
			continue;
		to = m->flow->graph.edge[*edge].to;
		add_edge_code(m, *edge);
	}
	if (to == GRAPH_NONE)
		add_item(m, ITEM_FALL, last);
	else if (to != next)
		add_item(m, ITEM_JUMP, last)->label = to;
}

static void make_block(struct maker *m, uint32_t k, uint32_t next)
{
	const struct flow_block *b = &m->flow->blocks[k];
	uint32_t last = b->first + b->count - 1, from;

	start_block(m, k);
	from = copy_insns(m, k);
	if (m->nedges) {
		add_copy(m, from, last);
		from = last;
		leave_block(m, k);
	}
	if (is_branch(&m->flow->insns[last])) {
		add_copy(m, from, last);
		add_branch(m, k, last);
	} else {
		add_copy(m, from, last + 1);
	}
	if (edge_falls(b))
		fall(m, k, next, last);
}

/* ---- pieces ---- */

static void make_piece(struct maker *m, const struct range *range, struct piece *p)
{
	const struct flow *flow = m->flow;
	bool falls = false;
	uint32_t k = 0, high = flow->nblocks;

	while (k < high) {
		uint32_t middle = (k + high) / 2;
		if (flow->blocks[middle].start < range->start)
			k = middle + 1;
		else
			high = middle;
	}
	*p = (struct piece){.old_start = range->start, .first = (uint32_t)m->b->items.n};
	for (; k < flow->nblocks && flow->blocks[k].start - range->start < range->size; k++) {
		bool ends = k + 1 == flow->nblocks ||
			    flow->blocks[k + 1].start - range->start >= range->size;
		if (m->nedges)
			enter_block(m, k, falls);
		make_block(m, k, ends ? GRAPH_NONE : k + 1);
		falls = edge_falls(&flow->blocks[k]);
	}
	finish_stubs(m);
	finish_parts(m);
	p->items = (uint32_t)m->b->items.n - p->first;
}

static int by_edge(const void *a, const void *b)
{
	const struct way *x = a, *y = b;

	return x->edge < y->edge ? -1 : x->edge > y->edge;
}

static void sort_insertions(struct maker *m)
{
	struct function *f = m->f;

	vec_sort(&f->insertions, by_place);
	while (m->nedges < f->insertions.n && f->insertions.p[m->nedges].on_edge)
		m->nedges++;
}

/* Instructions of blocks come by address, and so must the snippets before them. */
int body_create(struct edit *e, struct function *f, struct body **out, struct err *err)
{
	const struct procedure *p = f->public.procedure;
	struct body *b = xcalloc(1, sizeof *b);
	struct maker m = {.e = e, .f = f, .flow = f->public.flow, .b = b, .err = err};

	m.pad = pad_of(f);

	sort_insertions(&m);
	m.b->labels.n = 0;
	vec_reserve(&b->labels, m.flow->nblocks);
	b->labels.n = m.flow->nblocks;
	b->pieces = xcalloc(p->nranges, sizeof *b->pieces);
	b->npieces = p->nranges;
	m.stub_on = m.nedges ? graph_numbers(m.flow->graph.edges, GRAPH_NONE) : NULL;
	vec_reserve(&b->items, (size_t)m.flow->nblocks * 2);
	for (uint32_t r = 0; r < p->nranges && !m.failed; r++) {
		m.next_before = m.nedges;
		make_piece(&m, &p->ranges[r], &b->pieces[r]);
	}
	vec_sort(&b->ways, by_edge);
	vec_deinit(&m.stubs);
	vec_deinit(&m.parts);
	free(m.stub_on);
	snippet_code_deinit(&m.code);
	if (m.failed) {
		body_destroy(b);
		return m.failed;
	}
	*out = b;
	return 0;
}

void body_destroy(struct body *b)
{
	if (!b)
		return;
	vec_deinit(&b->items);
	vec_deinit(&b->labels);
	vec_deinit(&b->ways);
	vec_deinit(&b->codes);
	vec_deinit(&b->fixups);
	vec_deinit(&b->shifts);
	buf_deinit(&b->bytes);
	free(b->pieces);
	free(b);
}

/* ---- addresses ---- */

uint64_t body_label(const struct body *b, uint32_t label)
{
	uint32_t item = b->labels.p[label], i = 0;

	while (item - b->pieces[i].first >= b->pieces[i].items)
		i++;
	return b->pieces[i].at + b->items.p[item].offset;
}

static uint32_t way_label(const struct body *b, uint32_t edge, uint32_t otherwise)
{
	const struct way key = {.edge = edge};
	const struct way *w =
		b->ways.n ? bsearch(&key, b->ways.p, b->ways.n, sizeof *b->ways.p, by_edge) : NULL;

	return w ? w->label : otherwise;
}

uint64_t body_entered(const struct function *f, uint32_t block)
{
	const struct flow *flow = f->public.flow;
	bool is_entry = flow->blocks[block].start == flow->entry;
	uint32_t label = block;

	if (!f->body->ways.n)
		return body_label(f->body, block);
	graph_each_in (edge, &flow->graph, block) {
		uint8_t kind = flow->edge_kind[*edge];
		if (kind == (is_entry ? FLOW_EDGE_ENTRY : FLOW_EDGE_UNSEEN))
			label = way_label(f->body, *edge, block);
	}
	return body_label(f->body, label);
}

uint64_t body_table_entry(const struct function *f, const struct flow_jump *j, uint32_t block)
{
	const struct flow *flow = f->public.flow;
	uint32_t label = block;

	if (!f->body->ways.n)
		return body_label(f->body, block);
	graph_each_out (edge, &flow->graph, j->block)
		if (flow->graph.edge[*edge].to == block)
			label = way_label(f->body, edit_edge_group(&f->public, *edge), block);
	return body_label(f->body, label);
}
