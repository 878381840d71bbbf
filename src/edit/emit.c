#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "edit/edit_internal.h"
#include "edit/pad.h"

enum {
	PAGE = 4096,
	LINE = 64, /* what a body's distance to its old place is a multiple of */
	SHORT_JUMP = 2,
	LONG_JUMP = 5,
	NOP = 0x90,
};

/* ---- sizes ---- */

static bool is_fixed_size(const struct item *i)
{
	return i->kind == ITEM_COPY || i->kind == ITEM_CODE || i->kind == ITEM_CHANGED;
}

static void set_size(const struct edit *e, const struct flow *flow, struct item *i)
{
	const struct flow_insn *insn = &flow->insns[i->insn];

	if (i->kind == ITEM_BRANCH)
		i->size = branch_size(edit_code(e, insn->address, insn->length), insn, i->grown);
	else if (i->kind == ITEM_UNLESS)
		i->size = branch_turned_size(i->grown);
	else if (!is_fixed_size(i))
		i->size = i->grown ? LONG_JUMP : SHORT_JUMP;
}

static void set_offsets(struct body *b, struct piece *p)
{
	uint32_t offset = 0;

	for (struct item *i = b->items.p + p->first, *end = i + p->items; i < end; i++) {
		i->offset = offset;
		offset += i->size;
	}
	p->size = offset;
}

/* Whether a branch of 8 bits reaches its label; others than its own piece may be anywhere. */
static bool reaches(const struct body *b, const struct piece *p, const struct item *i)
{
	if (i->label == LABEL_OUTSIDE)
		return false;
	uint32_t to = b->labels.p[i->label];
	if (to - p->first >= p->items)
		return false;
	int64_t distance = (int64_t)b->items.p[to].offset - (i->offset + i->size);
	return distance >= INT8_MIN && distance <= INT8_MAX;
}

static bool is_short(const struct edit *e, const struct flow *flow, const struct item *i)
{
	const struct flow_insn *insn = &flow->insns[i->insn];

	if (is_fixed_size(i) || i->grown)
		return false;
	return i->kind != ITEM_BRANCH ||
	       branch_shape(edit_code(e, insn->address, insn->length), insn) != BRANCH_LONG;
}

static bool grow(const struct edit *e, const struct flow *flow, struct body *b, struct piece *p)
{
	bool grew = false;

	for (struct item *i = b->items.p + p->first, *end = i + p->items; i < end; i++) {
		if (!is_short(e, flow, i) || reaches(b, p, i))
			continue;
		i->grown = grew = true;
		set_size(e, flow, i);
	}
	return grew;
}

/* Branches only ever grow, so this comes to an end. */
static void settle(const struct edit *e, const struct flow *flow, struct body *b)
{
	vec_each (i, &b->items)
		set_size(e, flow, i);
	for (uint32_t n = 0; n < b->npieces; n++) {
		do
			set_offsets(b, &b->pieces[n]);
		while (grow(e, flow, b, &b->pieces[n]));
	}
}

/* ---- addresses ---- */

/* Blocks stay as they were aligned when a body lies in its cache line as the old one did. */
static uint64_t place(struct piece *p, uint64_t at)
{
	p->at = at + ((p->old_start - at) & (LINE - 1));
	return p->at + p->size;
}

/* Whether the new body has room where the old one was. */
static bool fits(const struct edit *e, const struct piece *p)
{
	const struct home *h = edit_home(e, p->old_start);

	return h + 1 == e->homes.p + e->homes.n || p->old_start + p->size <= h[1].start;
}

/*
 * Where hardly anything grows, all code moves by the same distance, whole pages: then it also lies
 * in caches and predictors as it did. Returns where more code can be, 0: nothing was placed.
 */
static uint64_t place_alike(struct edit *e, uint64_t at)
{
	size_t pieces = 0, fitting = 0;
	uint64_t size = 0, low = UINT64_MAX, high = 0;

	for (size_t i = 0; i < e->nfunctions; i++) {
		struct body *b = e->functions[i].body;
		for (uint32_t n = 0; b && n < b->npieces; n++, pieces++) {
			struct piece *p = &b->pieces[n];
			if (!fits(e, p))
				continue;
			fitting++;
			size += p->size;
			low = p->old_start < low ? p->old_start : low;
			high = p->old_start + p->size > high ? p->old_start + p->size : high;
		}
	}
	if (fitting < pieces - pieces / 8 || !fitting || high - low > 2 * size + PAGE)
		return 0;
	uint64_t by = ((at + PAGE - 1) & ~(uint64_t)(PAGE - 1)) - (low & ~(uint64_t)(PAGE - 1));
	for (size_t i = 0; i < e->nfunctions; i++) {
		struct body *b = e->functions[i].body;
		for (uint32_t n = 0; b && n < b->npieces; n++)
			if (fits(e, &b->pieces[n]))
				b->pieces[n].at = b->pieces[n].old_start + by;
	}
	return high + by;
}

static uint64_t place_rest(struct body *b, uint32_t first, uint32_t end, uint64_t at)
{
	for (uint32_t n = first; b && n < end && n < b->npieces; n++)
		if (!b->pieces[n].at)
			at = place(&b->pieces[n], at);
	return at;
}

/* What holds entries, then the parts that are seldom run. */
static uint64_t place_functions(struct edit *e, bool seldom, uint64_t at)
{
	for (size_t i = 0; i < e->nfunctions; i++)
		if (e->functions[i].public.seldom == seldom)
			at = place_rest(e->functions[i].body, 0, 1, at);
	for (size_t i = 0; i < e->nfunctions; i++)
		if (e->functions[i].public.seldom == seldom)
			at = place_rest(e->functions[i].body, 1, UINT32_MAX, at);
	return at;
}

/* Second copies come last. */
static uint64_t place_all(struct edit *e, uint64_t at)
{
	uint64_t behind = place_alike(e, at);

	at = place_functions(e, false, behind ? behind : at);
	at = place_functions(e, true, at);
	vec_each (f, &e->twins)
		at = place_rest((*f)->body, 0, UINT32_MAX, at);
	return at;
}

uint64_t edit_resolve(const struct edit *e, uint64_t old, bool twin)
{
	const struct home *h = edit_home(e, old);
	const struct function *f = h ? h->function : NULL;

	if (f && twin && f->twin)
		f = f->twin;
	if (!f || !f->body)
		return old;
	uint32_t k = flow_block_at(f->public.flow, old);
	if (k == GRAPH_NONE || f->public.flow->blocks[k].start != old)
		return old;
	return body_entered(f, k);
}

/* The copy of an old instruction of a block, and the item it is in. */
static uint64_t moved_insn(
	const struct function *f, uint32_t k, uint64_t old, const struct item **item)
{
	const struct body *b = f->body;
	const struct flow_insn *insns = f->public.flow->insns;
	uint64_t block = body_label(b, k);
	const struct item *first = &b->items.p[b->labels.p[k]];

	for (const struct item *i = first; i < b->items.p + b->items.n; i++) {
		uint64_t start = insns[i->insn].address;
		bool holds =
			i->kind == ITEM_BRANCH || i->kind == ITEM_UNLESS || i->kind == ITEM_CHANGED
				? old == start
				: i->kind == ITEM_COPY && old - start < i->size;
		*item = i;
		if (holds)
			return block + i->offset - first->offset + (old - start);
	}
	return 0;
}

/* Before it, what a larger frame needs there is done yet. */
static uint64_t before_insn(const struct function *f, uint32_t insn)
{
	const struct pad *pad = pad_of(f);
	const struct pad_change *c = pad ? pad_change_at(pad, insn) : NULL;
	uint64_t old = f->public.flow->insns[insn].address;
	const struct item *item = NULL;
	uint64_t at = moved_insn(f, flow_block_at(f->public.flow, old), old, &item);

	return at && c && (c->kind == PAD_BEFORE || c->kind == PAD_AROUND) ? at - item[-1].size
									   : at;
}

uint64_t body_same_place(const struct function *f, uint32_t insn, uint32_t edge)
{
	const struct flow *flow = f->public.flow;
	const struct body *b = f->body;
	uint32_t k = edge == GRAPH_NONE ? GRAPH_NONE : flow->graph.edge[edge].to;

	if (k == GRAPH_NONE || k == flow->exit_node)
		return before_insn(f, insn);
	uint64_t at = body_label(b, k);
	for (const struct item *i = &b->items.p[b->labels.p[k]]; i->kind == ITEM_CODE; i++) {
		uint32_t on = b->codes.p[i->count].edge;
		if (on == GRAPH_NONE || flow->graph.edge[on].to != k)
			break;
		at += i->size;
	}
	return at;
}

uint64_t edit_moved(const struct edit *e, uint64_t old)
{
	const struct home *h = edit_home(e, old);
	const struct function *f = h ? h->function : NULL;
	uint32_t k = f && f->body ? flow_block_at(f->public.flow, old) : GRAPH_NONE;

	const struct item *item;

	return k == GRAPH_NONE ? 0 : moved_insn(f, k, old, &item);
}

/* ---- bytes ---- */

struct writer {
	struct edit *e;
	const struct function *f;
	const struct flow *flow;
	const struct body *b;
	uint8_t *bytes; /* of the whole new code */
};

static void put_relative(uint8_t *field, uint64_t next, uint64_t target)
{
	int32_t relative = (int32_t)(target - next);

	memcpy(field, &relative, sizeof relative);
}

/* Where control goes that leaves the function at an instruction. */
static uint64_t outside(const struct writer *w, uint32_t insn)
{
	uint64_t to = w->f->redirects.n ? redirect_find(w->e, w->f, insn) : 0;

	return to ? to : edit_resolve(w->e, flow_target(&w->flow->insns[insn]), false);
}

/* Displacements keep what they mean; calls go to new code where there is some. */
static void fix_copy(struct writer *w, const struct item *i, uint64_t at, uint8_t *out)
{
	const struct flow_insn *first = &w->flow->insns[i->insn], *insn = first;

	for (uint32_t n = 0; n < i->count; n++, insn++) {
		uint64_t into = insn->address - first->address, end = into + insn->length;
		if (insn->flags & FLOW_INSN_MEMORY)
			put_relative(out + end - flow_behind(insn) - 4, at + end,
				edit_is_lea(w->e, insn) ? entries_address(w->e, flow_target(insn))
							: flow_target(insn));
		else if (insn->kind == INSN_CALL)
			put_relative(out + end - 4, at + end, outside(w, i->insn + n));
	}
}

/* Instructions of a second copy that say the address of a table mean its own. */
static void name_tables(struct writer *w, const struct item *i, uint8_t *out)
{
	const struct flow_insn *first = &w->flow->insns[i->insn], *insn = first;

	for (uint32_t n = 0; n < i->count; n++, insn++) {
		int64_t by = twin_moves_table(w->e, w->f, i->insn + n);
		if (!by)
			continue;
		uint8_t *field = out + (insn->address - first->address) + insn->length - 4;
		int32_t value;
		memcpy(&value, field, sizeof value);
		value = (int32_t)(value + by);
		memcpy(field, &value, sizeof value);
	}
}

static void write_copy(struct writer *w, const struct item *i, uint64_t at, uint8_t *out)
{
	memcpy(out, edit_code(w->e, w->flow->insns[i->insn].address, i->size), i->size);
	fix_copy(w, i, at, out);
	if (w->f->namings.n)
		name_tables(w, i, out);
}

static const struct function *other_copy(const struct function *f)
{
	return f->twin ? f->twin : f->original ? f->original : f;
}

static void write_code(struct writer *w, const struct item *i, uint64_t at, uint8_t *out)
{
	const struct code *c = &w->b->codes.p[i->count];

	memcpy(out, w->b->bytes.p + c->offset, c->size);
	for (uint32_t n = 0; n < c->fixups; n++) {
		const struct snippet_fixup *x = &w->b->fixups.p[c->first_fixup + n];
		uint64_t target = x->target;
		if (x->jumps && target == EDIT_OTHER)
			target = body_same_place(other_copy(w->f), i->insn, c->edge);
		else if (x->table)
			target = bridge_table(w->e, other_copy(w->f), target);
		else if (x->calls)
			target += w->e->text; /* where the run time lies */
		else if (x->across)
			target += at - i->offset + w->b->items.p[c->other].offset;
		put_relative(out + x->offset, at + x->end, target);
	}
}

static uint64_t target_of(const struct writer *w, const struct item *i)
{
	const struct flow_insn *insn = &w->flow->insns[i->insn];

	if (i->label != LABEL_OUTSIDE)
		return body_label(w->b, i->label);
	if (i->kind == ITEM_FALL)
		return edit_resolve(w->e, insn->address + insn->length, false);
	return outside(w, i->insn);
}

static void write_item(struct writer *w, const struct item *i, uint64_t at, uint8_t *out)
{
	const struct flow_insn *insn = &w->flow->insns[i->insn];

	if (i->kind == ITEM_COPY)
		write_copy(w, i, at, out);
	else if (i->kind == ITEM_CODE || i->kind == ITEM_CHANGED)
		write_code(w, i, at, out);
	else if (i->kind == ITEM_BRANCH)
		branch_write(edit_code(w->e, insn->address, insn->length), insn, i->grown, at,
			target_of(w, i), out);
	else if (i->kind == ITEM_UNLESS)
		branch_write_turned(edit_code(w->e, insn->address, insn->length), insn, i->grown,
			at, target_of(w, i), out);
	else
		jump_write(i->grown, at, target_of(w, i), out);
}

/* ---- spans ---- */

static void add_span(struct edit *e, size_t first, const struct edit_span *s)
{
	struct edit_span *last = e->spans.n > first ? &e->spans.p[e->spans.n - 1] : NULL;

	if (last && last->copied && s->copied && last->old + last->size == s->old &&
		last->pushed == s->pushed)
		last->size += s->size;
	else
		*vec_add(&e->spans) = *s;
}

/* A snippet is divided where it moves the stack pointer. */
static void add_code_spans(struct edit *e, size_t first, const struct body *b, const struct item *i,
	uint64_t at, uint64_t old)
{
	const struct code *c = &b->codes.p[i->count];
	uint32_t from = 0;
	uint16_t pushed = i->pushed;

	for (uint32_t n = 0; n <= c->shifts; n++) {
		bool more = n < c->shifts;
		uint32_t to = more ? b->shifts.p[c->first_shift + n].offset : c->size;
		if (to > from)
			add_span(e, first,
				&(struct edit_span){.at = at + from,
					.old = old,
					.size = to - from,
					.pushed = pushed});
		from = to;
		if (more)
			pushed = (uint16_t)(i->pushed + b->shifts.p[c->first_shift + n].pushed);
	}
}

static void add_spans(struct writer *w, size_t first, const struct item *i, uint64_t at)
{
	uint64_t old = w->flow->insns[i->insn].address;

	if (i->kind == ITEM_CODE)
		add_code_spans(w->e, first, w->b, i, at, old);
	else
		add_span(w->e, first,
			&(struct edit_span){.at = at,
				.old = old,
				.size = i->size,
				.pushed = i->pushed,
				.copied = i->kind == ITEM_COPY ||
					  (i->kind == ITEM_BRANCH && !i->grown)});
}

static void write_piece(struct writer *w, const struct piece *p)
{
	size_t first = w->e->spans.n;
	const struct pad *pad = pad_of(w->f);

	for (uint32_t n = 0; n < p->items; n++) {
		const struct item *i = &w->b->items.p[p->first + n];
		uint64_t at = p->at + i->offset;
		write_item(w, i, at, w->bytes + (at - w->e->text));
		add_spans(w, first, i, at);
	}
	*vec_add(&w->e->fragments) = (struct fragment){.start = p->at,
		.size = p->size,
		.old = p->old_start,
		.first_span = first,
		.twin = w->f->original,
		.gap = pad ? pad->gap : 0,
		.pad = pad ? pad->size : 0};
}

int emit_all(struct edit *e, struct buf *out, struct err *err)
{
	for (size_t i = 0; i < twin_copies(e); i++) {
		struct function *f = twin_copy(e, i);
		if (f->public.refused || !f->public.chosen)
			continue;
		redirect_sort(f);
		int r = body_create(e, f, &f->body, err);
		if (r < 0)
			return r;
		settle(e, f->public.flow, f->body);
	}
	uint64_t start = e->text + out->n, end = place_all(e, start);
	if (end - e->text > INT32_MAX)
		return err_set(err, -EFBIG, "%s: more than 2 GB of new code", image_path(e->image));
	buf_reserve(out, end - start + 1); /* also when nothing moves: memory to point to */
	memset(out->p + out->n, NOP, end - start);
	out->n += end - start;
	e->tables = (end + PAGE - 1) & ~(uint64_t)(PAGE - 1);
	entries_choose(e);
	for (size_t i = 0; i < twin_copies(e); i++) {
		const struct function *f = twin_copy(e, i);
		struct writer w = {e, f, f->public.flow, f->body, out->p};
		for (uint32_t n = 0; f->body && n < f->body->npieces; n++)
			write_piece(&w, &f->body->pieces[n]);
	}
	return 0;
}
