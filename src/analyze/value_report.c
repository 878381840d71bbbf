#include "analyze/value_report.h"

#include "analyze/value_ask.h"
#include "analyze/value_internal.h"
#include "base/buf.h"
#include "base/err.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static double share_of(uint64_t part, uint64_t whole)
{
	return whole ? (double)part / (double)whole : 0;
}

/* ---- from profiles to items ---- */

struct item_walk {
	struct value_report *r;
	struct value_image *vi;
	struct code_walk walk;
	value_item_list *out;
};

static int add_list(void *arg, const struct value_key *key, const struct hotlist *h)
{
	struct item_walk *w = arg;
	struct value_item item = {.vi = w->vi,
		.kind = key->kind,
		.offset = key->offset,
		.context = key->context,
		.samples = h->total,
		.list = h};

	item.procedure = code_walk_to(&w->walk, key->offset, &item.address);
	if (!key->context)
		w->r->values = hotlist_sum(w->r->values, h->total);
	if (item.procedure != CODE_NOWHERE)
		*vec_add(w->out) = item;
	else if (!key->context)
		w->r->nowhere = hotlist_sum(w->r->nowhere, h->total);
	return 0;
}

static void add_edges(struct item_walk *w)
{
	const struct edge *edges = w->vi->edges.p;

	for (size_t i = 0, end; i < w->vi->edges.n; i = end) {
		struct value_item item = {.vi = w->vi,
			.kind = VALUE_TARGET,
			.offset = edges[i].from,
			.first_edge = i};

		for (end = i; end < w->vi->edges.n && edges[end].from == edges[i].from; end++)
			item.samples = hotlist_sum(item.samples, edges[end].count);
		item.edges = end - i;
		item.procedure = code_walk_to(&w->walk, item.offset, &item.address);
		w->r->edges = hotlist_sum(w->r->edges, item.samples);
		if (item.procedure != CODE_NOWHERE)
			*vec_add(w->out) = item;
	}
}

static int compare_items(const void *a, const void *b)
{
	const struct value_item *x = a, *y = b;

	if (x->vi != y->vi)
		return x->vi->image->id < y->vi->image->id ? -1 : 1;
	if (x->procedure != y->procedure)
		return x->procedure < y->procedure ? -1 : 1;
	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	if (x->context != y->context)
		return x->context < y->context ? -1 : 1;
	return x->kind < y->kind ? -1 : x->kind > y->kind;
}

static void make_items(struct value_report *r, value_item_list *out)
{
	vec_each (at, &r->data.images) {
		const struct selected_image *im = (*at)->image;
		struct item_walk w = {.r = r, .vi = *at, .out = out};

		w.walk = code_walk_start(&im->map, im->segments, im->nsegments);
		if ((*at)->values)
			value_profile_each((*at)->values, add_list, &w);
		w.walk = code_walk_start(&im->map, im->segments, im->nsegments);
		add_edges(&w);
	}
	vec_sort(out, compare_items);
}

/* ---- reading values ---- */

static int compare_shares(const void *a, const void *b)
{
	const struct value_share *x = a, *y = b;

	if (x->count != y->count)
		return x->count > y->count ? -1 : 1;
	return x->value < y->value ? -1 : x->value > y->value;
}

static struct value_share target_share(
	const struct value_report *r, const struct selected_image *im, const struct edge *edge)
{
	struct value_share v = {.value = edge->to,
		.count = edge->count,
		.least = edge->count,
		.most = edge->count,
		.image = im};

	if (edge->target)
		v.image = value_image_of_key(&r->data, edge->target);
	if (v.image)
		value_image_address(v.image, edge->to, &v.value);
	return v;
}

static size_t read_targets(const struct value_report *r, const struct value_image *vi, size_t first,
	size_t n, struct value_share out[HOTLIST_CAPACITY_MAX])
{
	_cleanup_free_ struct value_share *all = xcalloc(n + 1, sizeof *all);

	for (size_t i = 0; i < n; i++)
		all[i] = target_share(r, vi->image, &vi->edges.p[first + i]);
	qsort(all, n, sizeof *all, compare_shares);
	n = n < HOTLIST_CAPACITY_MAX ? n : HOTLIST_CAPACITY_MAX;
	memcpy(out, all, n * sizeof *out);
	return n;
}

size_t value_report_read(const struct value_report *r, const struct value_row *row,
	struct value_share out[HOTLIST_CAPACITY_MAX])
{
	const struct value_image *vi = row->procedure->data;
	struct hot_value hot[HOTLIST_CAPACITY_MAX];
	size_t n;

	if (row->kind == VALUE_TARGET) {
		n = read_targets(r, vi, row->first_edge, row->edges, out);
	} else {
		n = value_profile_read(vi->values, row->list, hot);
		for (size_t i = 0; i < n; i++)
			out[i] = (struct value_share){.value = hot[i].value,
				.count = hot[i].count,
				.least = hot[i].low,
				.most = hot[i].high};
	}
	for (size_t i = 0; i < n; i++)
		value_share_set(&out[i], row->samples);
	return n;
}

/* ---- one procedure ---- */

/* A procedure on its way from items to rows. */
struct building {
	struct value_report *r;
	const struct value_report_options *o;
	struct value_procedure *p;
	struct value_code *code;
	const struct value_item *items; /* of the procedure, by address */
	size_t nitems;
	uint8_t arguments;
	VEC(struct value_row *) rows;
	struct value_share values[VALUE_KINDS + 1][HOTLIST_CAPACITY_MAX];
};

static uint64_t procedure_time(const struct value_image *vi, uint32_t number)
{
	const struct procedure *p = &vi->image->procedures.p[number];
	uint64_t sum = 0;

	for (uint32_t i = 0; i < p->nranges; i++)
		sum += value_image_samples(
			vi, p->ranges[i].start, p->ranges[i].start + p->ranges[i].size);
	return sum;
}

static bool is_entry(unsigned kind)
{
	return kind >= VALUE_ENTRY0 && kind <= VALUE_ENTRY5;
}

/* How often bursts came by an instruction, as far as it has values: the most of its items. */
static uint64_t passes(const struct building *b, uint64_t address)
{
	size_t low = 0, high = b->nitems;
	uint64_t most = 0;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (b->items[middle].address < address)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < b->nitems && b->items[low].address == address; low++)
		most = b->items[low].samples > most ? b->items[low].samples : most;
	return most;
}

struct often {
	const struct building *b;
	uint64_t passes;
};

static bool is_as_often(const void *arg, uint64_t address)
{
	const struct often *o = arg;
	uint64_t n = passes(o->b, address);

	return n <= 2 * o->passes && o->passes <= 2 * n;
}

/*
 * Which of the instructions that retire together shows the samples is chance: a run of a few
 * instructions may have none, and those before and behind it have all. It has its share of both.
 */
static uint64_t run_time(
	const struct building *b, const struct value_item *item, const struct code_insn *insn)
{
	struct often often = {.b = b, .passes = passes(b, item->address)};
	struct code_group g;
	uint64_t first, end, own, shared;

	value_code_run(b->code, insn, &first, &end);
	own = value_image_samples(item->vi, first, end);
	value_code_group(b->code, insn, is_as_often, &often, &g);
	shared = value_image_samples(item->vi, g.first, g.end) * g.run / g.all;
	return own > shared ? own : shared;
}

static uint64_t item_time(
	const struct building *b, const struct value_item *item, const struct code_insn *insn)
{
	uint64_t first = item->address > VALUE_NEAR ? item->address - VALUE_NEAR : 0;
	uint64_t time;
	const struct hotlist *all;

	if (is_entry(item->kind))
		time = b->p->time;
	else if (insn)
		time = run_time(b, item, insn);
	else
		time = value_image_samples(item->vi, first, item->address + VALUE_NEAR);
	if (!item->context)
		return time;
	all = value_profile_find(
		item->vi->values, &(struct value_key){.offset = item->offset, .kind = item->kind});
	if (!all || all->total < item->samples)
		return time;
	return (uint64_t)((double)time * (double)item->samples / (double)all->total);
}

static bool is_telling(const struct building *b, const struct value_item *item,
	const struct code_insn *insn, const struct roles *r)
{
	bool stub = b->p->image->procedures.p[b->p->number].source == PROCEDURE_PLT;

	if (!r)
		return item->kind != VALUE_TARGET;
	if (insn->guards && !is_entry(item->kind))
		return false;
	switch (item->kind) {
	case VALUE_RESULT:
		return r->kind == INSN_PLAIN && !r->constant_result && !r->moves_stack &&
		       !(r->operation == OPERATION_ADDRESS && r->on_stack);
	case VALUE_SOURCE:
		return !r->constant_source;
	case VALUE_ADDRESS:
	case VALUE_STRIDE:
		return !r->fixed_address && !r->on_stack;
	case VALUE_TARGET:
		return !stub && r->kind != INSN_RETURN;
	}
	if (is_entry(item->kind))
		return b->arguments >> (item->kind - VALUE_ENTRY0) & 1;
	return true;
}

static bool is_indirect(enum insn_kind kind)
{
	return kind == INSN_CALL_INDIRECT || kind == INSN_JUMP_INDIRECT || kind == INSN_RETURN;
}

static struct value_row *make_row(struct building *b, const struct value_item *item,
	const struct code_insn *insn, struct advice_case *c)
{
	struct value_row *row = arena_alloc(&b->r->memory, sizeof *row);
	bool target = item->kind == VALUE_TARGET;
	struct value_share spare[HOTLIST_CAPACITY_MAX], *values = spare;
	struct advice_list *l = NULL;
	size_t n;

	*row = (struct value_row){.procedure = b->p,
		.address = item->address,
		.context = item->context,
		.kind = item->kind,
		.samples = item->samples,
		.time = item_time(b, item, insn),
		.telling = is_telling(b, item, insn, c->roles),
		.roles = c->roles,
		.texts = c->texts,
		.list = item->list,
		.first_edge = item->first_edge,
		.edges = item->edges};
	if (target || item->kind < VALUE_KINDS) {
		l = target ? &c->targets : &c->lists[item->kind];
		values = b->values[target ? VALUE_KINDS : item->kind];
	}
	n = value_report_read(b->r, row, values);
	if (l)
		*l = (struct advice_list){values, n, row->samples};
	row->top = values[0];
	row->time_share = share_of(row->time, b->r->data.time);
	row->score = (double)row->time * row->top.low;
	return row;
}

/* The most time that a caller has, of those in the same image; a stub itself has next to none. */
static uint64_t callers_time(const struct value_item *items, size_t n)
{
	uint64_t most = 0, vaddr, time;

	for (size_t i = 0; i < n; i++) {
		const struct selected_image *im = items[i].vi->image;
		uint32_t caller;

		if (!(items[i].context & VALUE_CONTEXT_SITE) ||
			items[i].context & VALUE_CONTEXT_FAR ||
			!value_image_address(im, VALUE_CONTEXT_OFFSET(items[i].context), &vaddr))
			continue;
		caller = value_procedure_at(im, vaddr);
		if (caller == CODE_NOWHERE)
			continue;
		time = procedure_time(items[i].vi, caller);
		most = time > most ? time : most;
	}
	return most;
}

static void set_advice(struct building *b, struct value_row **rows, size_t n,
	const struct advice *advice, size_t nadvice)
{
	for (size_t i = 0; i < n; i++) {
		struct buf text = {0};

		for (size_t k = 0; k < nadvice; k++)
			if (advice[k].kind == rows[i]->kind)
				buf_printf(&text, "%s%s: %s", text.n ? "; " : "", advice[k].rule,
					advice[k].text);
		if (text.n)
			rows[i]->advice = arena_strdup(&b->r->memory, buf_cstr(&text));
		buf_deinit(&text);
	}
}

/* Rows of one address and call site get advice together. */
static void advise_rows(struct building *b, struct value_row **rows, size_t n,
	const struct code_insn *insn, struct advice_case *c)
{
	struct advice advice[ADVICE_MOST];
	const struct advice_list *source = &c->lists[VALUE_SOURCE];
	char target[320];

	for (size_t i = 0; i < n; i++) {
		if (!is_entry(rows[i]->kind))
			c->near = rows[i]->time_share;
		else if (!c->is_stub)
			c->hot = rows[i]->time_share;
		if (rows[i]->kind != VALUE_TARGET || insn->kind == INSN_RETURN)
			continue;
		c->leaves = rows[i]->top.image != b->p->image;
		if (value_report_name(b->r, rows[i], &rows[i]->top, target, sizeof target))
			c->target = target;
	}
	c->in_code = source->n && value_code_holds(b->code, source->values[0].value);
	if (n)
		set_advice(b, rows, n, advice, advise(c, advice));
}

static void take_case(struct building *b, const struct value_item *items, size_t n,
	const struct code_insn *insn, struct advice_case c)
{
	size_t first = b->rows.n;

	if (c.is_stub && items->context)
		c.hot = share_of(callers_time(items, n), b->r->data.time);
	for (size_t i = 0; i < n; i++)
		/* Direct branches have edges too; without code nobody can tell. */
		if (items[i].kind != VALUE_TARGET || (insn && is_indirect(insn->kind)))
			*vec_add(&b->rows) = make_row(b, &items[i], insn, &c);
	advise_rows(b, b->rows.p + first, b->rows.n - first, insn, &c);
}

static void find_roles(struct building *b, const struct code_insn *insn, struct advice_case *c)
{
	struct roles *roles = arena_alloc(&b->r->memory, sizeof *roles);
	struct role_texts *texts = arena_alloc(&b->r->memory, sizeof *texts);

	if (isa_roles(insn->bytes, insn->available, insn->address, roles) ||
		isa_role_texts(insn->bytes, insn->available, texts))
		return;
	c->roles = roles;
	c->texts = texts;
	c->in_loop = insn->in_loop;
	c->loop = insn->loop;
	c->is_stored = insn->in_loop && roles->loads && value_code_stores(b->code, roles->place);
	c->waits = share_of(
		value_image_samples(b->p->data, insn->address, insn->address + insn->length + 1),
		b->p->time);
}

static void take_address(struct building *b, const struct value_item *items, size_t n)
{
	const struct procedure *p = &b->p->image->procedures.p[b->p->number];
	const struct code_insn *insn = value_code_at(b->code, items->address);
	struct advice_case c = {.procedure = b->p->name,
		.is_stub = p->source == PROCEDURE_PLT,
		.arguments = b->arguments};

	if (insn)
		find_roles(b, insn, &c);
	if (c.is_stub)
		c.hot = share_of(callers_time(items, n), b->r->data.time);
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i; end < n && items[end].context == items[i].context; end++)
			;
		take_case(b, items + i, end - i, insn, c);
	}
}

static int compare_rows(const void *a, const void *b)
{
	const struct value_row *x = *(struct value_row *const *)a;
	const struct value_row *y = *(struct value_row *const *)b;

	if (!x->advice != !y->advice)
		return x->advice ? -1 : 1;
	if (x->score != y->score)
		return x->score > y->score ? -1 : 1;
	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return x->kind < y->kind ? -1 : x->kind > y->kind;
}

static void finish_procedure(struct building *b)
{
	struct value_procedure *p = b->p;

	p->rows = arena_alloc(&b->r->memory, (b->rows.n + 1) * sizeof *p->rows);
	vec_each (at, &b->rows) {
		if (b->o->wanted && !b->o->wanted(b->o->arg, *at)) {
			b->r->left_out++;
			continue;
		}
		p->rows[p->n++] = *at;
		p->best = (*at)->score > p->best ? (*at)->score : p->best;
	}
	if (b->o->by_score)
		qsort(p->rows, p->n, sizeof *p->rows, compare_rows);
	if (p->n)
		*vec_add(&b->r->procedures) = p;
	b->r->rows += p->n;
}

/* Stubs read none, but pass all on. */
static uint8_t read_arguments(const struct building *b)
{
	enum { COPY = 0x07, ALL = 0x3f };

	if (b->p->image->procedures.p[b->p->number].source == PROCEDURE_PLT)
		return advice_is_copy(b->p->name) ? COPY : ALL;
	return value_code_arguments(b->code);
}

/* All of its items tell how often code was passed; only those that are asked for become rows. */
static int take_procedure(struct value_report *r, const struct value_report_options *o,
	const struct value_question *q, const struct value_item *items, size_t n, struct err *e)
{
	const struct selected_image *im = items->vi->image;
	const struct procedure *procedure = &im->procedures.p[items->procedure];
	struct building *b = xcalloc(1, sizeof *b);
	char label[512];
	int rc;

	b->r = r;
	b->o = o;
	b->items = items;
	b->nitems = n;
	value_narrow(q, &items, &n);
	b->p = arena_alloc(&r->memory, sizeof *b->p);
	procedure_label(procedure, im->path, label, sizeof label);
	*b->p = (struct value_procedure){.image = im,
		.number = items->procedure,
		.start = procedure->start,
		.name = arena_strdup(&r->memory, label),
		.time = procedure_time(items->vi, items->procedure),
		.data = items->vi};
	rc = value_code_create(r->data.sel, im, items->procedure, &items->vi->file, &b->code, e);
	if (!rc) {
		b->arguments = read_arguments(b);
		for (size_t i = 0, end; i < n; i = end) {
			for (end = i; end < n && items[end].address == items[i].address; end++)
				;
			take_address(b, items + i, end - i);
		}
		finish_procedure(b);
	}
	value_code_destroy(b->code);
	vec_deinit(&b->rows);
	free(b);
	return rc;
}

/* ---- all of them ---- */

static int take_items(struct value_report *r, const struct value_report_options *o,
	const struct value_question *q, const value_item_list *items, struct err *e)
{
	int rc = 0;

	for (size_t i = 0, end; i < items->n && !rc; i = end) {
		const struct value_item *first = &items->p[i];
		size_t n;

		for (end = i; end < items->n && items->p[end].vi == first->vi &&
			      items->p[end].procedure == first->procedure;
			end++)
			;
		n = end - i;
		if (!value_asked(q, first) || !value_name_fits(o->pattern, first))
			continue;
		rc = take_procedure(r, o, q, first, n, e);
	}
	return rc;
}

static int compare_procedures(const void *a, const void *b)
{
	const struct value_procedure *x = *(struct value_procedure *const *)a;
	const struct value_procedure *y = *(struct value_procedure *const *)b;
	int c;

	if (x->best != y->best)
		return x->best > y->best ? -1 : 1;
	if ((c = strcmp(x->name, y->name)))
		return c;
	if (x->image != y->image)
		return x->image->id < y->image->id ? -1 : 1;
	return x->start < y->start ? -1 : x->start > y->start;
}

static int fill(struct value_report *r, struct selection *sel, const struct value_report_options *o,
	struct err *e)
{
	value_item_list items = {0};
	struct value_question q;
	int rc = value_gather(&r->data, sel, e);

	if (rc)
		return rc;
	make_items(r, &items);
	q = value_ask(o->what, &items);
	if (q.way == VALUE_ASK_NOTHING)
		rc = err_set(e, -ENOENT,
			"no procedure or instruction '%s' has values; 'culprit values' lists those "
			"that have",
			o->what);
	else
		rc = take_items(r, o, &q, &items, e);
	vec_sort(&r->procedures, compare_procedures);
	free(q.image);
	vec_deinit(&items);
	return rc;
}

int value_report_create(struct selection *sel, const struct value_report_options *o,
	struct value_report **out, struct err *e)
{
	struct value_report *r = xcalloc(1, sizeof *r);
	int rc = fill(r, sel, o, e);

	if (rc) {
		value_report_destroy(r);
		return rc;
	}
	*out = r;
	return 0;
}

void value_report_destroy(struct value_report *r)
{
	if (!r)
		return;
	value_code_destroy(r->code);
	value_gather_deinit(&r->data);
	vec_deinit(&r->procedures);
	arena_deinit(&r->memory);
	free(r);
}

size_t value_report_procedures(const struct value_report *r, const struct value_procedure ***out)
{
	*out = r->procedures.p;
	return r->procedures.n;
}

size_t value_report_rows(const struct value_report *r)
{
	return r->rows;
}

uint64_t value_report_time(const struct value_report *r)
{
	return r->data.time;
}

uint64_t value_report_values(const struct value_report *r)
{
	return r->values;
}

uint64_t value_report_edges(const struct value_report *r)
{
	return r->edges;
}

uint64_t value_report_refused(const struct value_report *r)
{
	return r->data.refused;
}

uint64_t value_report_nowhere(const struct value_report *r)
{
	return r->nowhere;
}

uint64_t value_report_left_out(const struct value_report *r)
{
	return r->left_out;
}
