#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "edit/edit_internal.h"
#include "edit/elf_out.h"
#include "flow/program.h"
#include "image/data.h"

enum { JUMP_SIZE = 5, ENDBR_SIZE = 4, INT3 = 0xcc };

/* ---- where old code leads to new ---- */

static bool is_endbr(const struct edit *e, uint64_t address)
{
	const uint8_t *p = edit_code(e, address, ENDBR_SIZE);

	return p && !memcmp(p, "\xf3\x0f\x1e\xfa", ENDBR_SIZE);
}

static bool holds(const uint64_t *list, size_t n, uint64_t address)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t middle = (low + high) / 2;
		if (list[middle] < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < n && list[low] == address;
}

/* Landing pads are entered by the new tables of exceptions, and need no jump. */
static bool is_only_pad(const struct edit *e, uint64_t address)
{
	const struct image_data *d = program_data(e->program);
	const uint64_t *pads;

	if (!d)
		return false;
	size_t npads = image_data_landing_pads(d, &pads);
	return holds(pads, npads, address) && !image_data_has_code_slot(d, address);
}

static void find_points(const struct edit *e, struct function *f)
{
	const struct flow *flow = f->public.flow;

	for (uint32_t k = 0; k < flow->nblocks; k++) {
		const struct flow_block *b = &flow->blocks[k];
		bool pointer = b->marks & FLOW_ENTERED_POINTER && !is_only_pad(e, b->start);
		if (b->start == flow->entry || pointer)
			*vec_add(&f->points) = (struct point){.old = b->start};
	}
}

/* Whether a jump can be written: over the function's own bytes or what fills the gap behind. */
static bool has_room(const struct edit *e, const struct function *f, uint64_t at, uint64_t limit)
{
	if (at + JUMP_SIZE > limit || !edit_code(e, at, JUMP_SIZE))
		return false;
	for (uint64_t a = at; a < at + JUMP_SIZE; a++) {
		const struct home *h = edit_home(e, a);
		if (h && h->function != f)
			return false;
	}
	return true;
}

static bool place_point(
	const struct edit *e, const struct function *f, struct point *p, uint64_t limit)
{
	p->patch = p->old + (is_endbr(e, p->old) ? ENDBR_SIZE : 0);
	if (has_room(e, f, p->patch, limit))
		return true;
	p->patch = p->old;
	return has_room(e, f, p->patch, limit);
}

static void drop_point(struct function *f, size_t i)
{
	memmove(&f->points.p[i], &f->points.p[i + 1], (f->points.n - i - 1) * sizeof *f->points.p);
	f->points.n--;
}

/*
 * In files at a fixed address what looks like a pointer may be a number. Where such a label is in
 * the way it gets no jump: if somebody goes there after all, it is to the old code.
 */
static void drop_guesses(const struct edit *e, struct function *f)
{
	const struct image_data *d = program_data(e->program);

	if (!d || !image_data_is_fixed(d))
		return;
	for (size_t i = 0; i < f->points.n;) {
		struct point *p = &f->points.p[i];
		bool last = i + 1 == f->points.n;
		if (place_point(e, f, p, last ? UINT64_MAX : p[1].old))
			i++;
		else if (p->old != f->public.flow->entry)
			drop_point(f, i);
		else if (!last)
			drop_point(f, i + 1);
		else
			return;
	}
}

static void place_points(struct edit *e, struct function *f)
{
	drop_guesses(e, f);
	for (size_t i = 0; i < f->points.n; i++) {
		struct point *p = &f->points.p[i];
		if (place_point(e, f, p, i + 1 < f->points.n ? p[1].old : UINT64_MAX))
			continue;
		edit_refuse(f,
			p->old == f->public.flow->entry ? "too short for a jump at its entry"
							: "no room for a jump at a label",
			p->old);
	}
}

/* ---- jump tables ---- */

/* A table of a function, in the order of addresses. */
struct table {
	uint64_t start, end;
	struct function *function;
	const struct flow_jump *jump;
	uint32_t group; /* tables that overlap */
};

struct tables {
	VEC(struct table) list;
};

bool patch_is_table(const struct flow_jump *j)
{
	return j->table && (j->state == FLOW_JUMP_PROVED || j->state == FLOW_JUMP_UNPROVED);
}

bool patch_table_target(
	const struct edit *e, const struct flow_jump *j, uint64_t slot, uint64_t *target)
{
	uint64_t wide;
	int32_t narrow;
	uint32_t word;

	if (j->width == 8 && !j->relative)
		return !image_data_read(program_data(e->program), slot, target, 8);
	if (j->width == 8) {
		if (image_data_read(program_data(e->program), slot, &wide, 8))
			return false;
		*target = j->base + wide;
		return true;
	}
	if (j->width != 4 || image_data_read(program_data(e->program), slot, &narrow, 4))
		return false;
	word = (uint32_t)narrow;
	*target = j->relative ? j->base + (uint64_t)(int64_t)narrow : word;
	return true;
}

/* All entries must lead to blocks in the way that their shape says; addresses may go elsewhere. */
static bool is_sound(const struct edit *e, const struct function *f, const struct flow_jump *j)
{
	const struct procedure *p = f->public.procedure;
	const struct flow *flow = f->public.flow;

	if (j->stride < j->width || (j->width != 4 && j->width != 8))
		return false;
	for (uint32_t i = 0; i < j->entries; i++) {
		uint64_t target;
		bool known = patch_table_target(e, j, j->table + (uint64_t)i * j->stride, &target);
		uint32_t k = known ? flow_block_at(flow, target) : GRAPH_NONE;
		if (k == GRAPH_NONE &&
			((j->width == 8 && !j->relative) ||
				(known && ranges_end_at(p->ranges, p->nranges, target))))
			continue;
		if (k == GRAPH_NONE || flow->blocks[k].start != target)
			return false;
	}
	return true;
}

/* A jump to one place that no table tells is right when that place gets a jump. */
static bool is_patched(const struct flow *flow, const struct flow_jump *j)
{
	for (uint32_t i = 0; i < j->targets; i++)
		if (!(flow->blocks[flow->targets[j->first_target + i]].marks &
			    FLOW_ENTERED_POINTER))
			return false;
	return true;
}

static void list_tables(struct edit *e, struct function *f, struct tables *t)
{
	const struct flow *flow = f->public.flow;

	for (uint32_t i = 0; i < flow->njumps; i++) {
		const struct flow_jump *j = &flow->jumps[i];
		uint64_t at = flow->insns[j->insn].address;
		if (patch_is_table(j)) {
			*vec_add(&t->list) = (struct table){.start = j->table,
				.end = j->table + (uint64_t)j->entries * j->stride,
				.function = f,
				.jump = j};
			if (!f->public.refused && !is_sound(e, f, j))
				edit_refuse(f, "a jump table of unusual form", at);
		} else if (j->state == FLOW_JUMP_PROVED && !is_patched(flow, j)) {
			edit_refuse(f, "a jump to a computed place", at);
		}
	}
}

static int by_start(const void *a, const void *b)
{
	const struct table *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* Tables are rewritten where they are, so two functions must not use the same words. */
static void group_tables(struct tables *t)
{
	uint64_t end = 0;
	uint32_t group = 0;

	vec_sort(&t->list, by_start);
	for (size_t i = 0; i < t->list.n; i++) {
		struct table *table = &t->list.p[i];
		if (i && table->start >= end)
			group++;
		table->group = group;
		if (table->end > end)
			end = table->end;
		if (!i || table[-1].group != group || table[-1].function == table->function)
			continue;
		edit_refuse(table->function, "a jump table that two functions use", table->start);
		edit_refuse(
			table[-1].function, "a jump table that two functions use", table->start);
	}
}

/* ---- edges that share a table ---- */

struct shared {
	uint32_t group, to, edge;
};

static int by_group(const void *a, const void *b)
{
	const struct shared *x = a, *y = b;

	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	if (x->to != y->to)
		return x->to < y->to ? -1 : 1;
	return x->edge < y->edge ? -1 : x->edge > y->edge;
}

static void group_edges(struct function *f, const struct table *tables, size_t n)
{
	const struct flow *flow = f->public.flow;
	VEC(struct shared) edges = {0};

	for (size_t i = 0; i < n; i++)
		graph_each_out (edge, &flow->graph, tables[i].jump->block)
			*vec_add(&edges) =
				(struct shared){tables[i].group, flow->graph.edge[*edge].to, *edge};
	vec_sort(&edges, by_group);
	f->group = graph_numbers(flow->graph.edges, 0);
	for (uint32_t i = 0; i < flow->graph.edges; i++)
		f->group[i] = i;
	for (size_t i = 1; i < edges.n; i++) {
		const struct shared *s = &edges.p[i];
		if (s->group == s[-1].group && s->to == s[-1].to)
			f->group[s->edge] = f->group[s[-1].edge];
	}
	vec_deinit(&edges);
}

static int by_function(const void *a, const void *b)
{
	const struct table *x = a, *y = b;

	if (x->function != y->function)
		return x->function < y->function ? -1 : 1;
	return x->group < y->group ? -1 : x->group > y->group;
}

static void find_shared(struct tables *t)
{
	vec_sort(&t->list, by_function);
	for (size_t i = 0, n; i < t->list.n; i += n) {
		const struct table *first = &t->list.p[i];
		bool shared = false;
		for (n = 1; i + n < t->list.n && first[n].function == first->function; n++)
			shared = shared || first[n].group == first[n - 1].group;
		if (shared)
			group_edges(first->function, first, n);
	}
}

void patch_plan(struct edit *e)
{
	struct tables t = {0};

	for (size_t i = 0; i < e->nfunctions; i++) {
		struct function *f = &e->functions[i];
		if (!f->public.flow)
			continue;
		list_tables(e, f, &t);
		if (f->public.refused)
			continue;
		find_points(e, f);
		place_points(e, f);
	}
	group_tables(&t);
	find_shared(&t);
	vec_deinit(&t.list);
}

/* ---- writing ---- */

static int fill_old(struct edit *e, const struct function *f, struct err *err)
{
	const struct procedure *p = f->public.procedure;

	for (uint32_t r = 0; r < p->nranges; r++) {
		void *old = elf_out_patchable(e->out, p->ranges[r].start, p->ranges[r].size);
		if (!old)
			return err_set(err, -EBADMSG, "%s: no code at 0x%llx", image_path(e->image),
				(unsigned long long)p->ranges[r].start);
		memset(old, INT3, p->ranges[r].size);
	}
	return 0;
}

static int write_points(struct edit *e, const struct function *f, struct err *err)
{
	vec_each (p, &f->points) {
		uint32_t k = flow_block_at(f->public.flow, p->old);
		uint8_t jump[ENDBR_SIZE + JUMP_SIZE] = {0xf3, 0x0f, 0x1e, 0xfa};
		size_t skip = p->patch - p->old;
		jump_write(true, p->patch, body_entered(f, k), jump + skip);
		int r = elf_out_patch(e->out, p->old, jump, skip + JUMP_SIZE, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int write_entry(
	struct edit *e, const struct flow_jump *j, uint64_t slot, uint64_t target, struct err *err)
{
	uint64_t value = target - (j->relative ? j->base : 0);
	uint32_t narrow = (uint32_t)value;

	if (j->width == 8 && !j->relative)
		return elf_out_pointer(e->out, slot, target, err);
	if (j->width == 8)
		return elf_out_patch(e->out, slot, &value, 8, err);
	if (value > INT32_MAX)
		return err_set(err, -EFBIG, "%s: the new code is too far from the table at 0x%llx",
			image_path(e->image), (unsigned long long)j->table);
	return elf_out_patch(e->out, slot, &narrow, 4, err);
}

static int write_table(
	struct edit *e, const struct function *f, const struct flow_jump *j, struct err *err)
{
	for (uint32_t i = 0; i < j->entries; i++) {
		uint64_t slot = j->table + (uint64_t)i * j->stride, target;
		if (!patch_table_target(e, j, slot, &target))
			continue;
		uint32_t k = flow_block_at(f->public.flow, target);
		if (k == GRAPH_NONE)
			continue;
		int r = write_entry(e, j, slot, body_table_entry(f, j, k), err);
		if (r < 0)
			return r;
	}
	return 0;
}

int patch_write(struct edit *e, struct err *err)
{
	for (size_t i = 0; i < e->nfunctions; i++) {
		const struct function *f = &e->functions[i];
		int r;
		if (!f->body)
			continue;
		if (e->options.strict && (r = fill_old(e, f, err)) < 0)
			return r;
		if ((r = write_points(e, f, err)) < 0)
			return r;
		for (uint32_t k = 0; k < f->public.flow->njumps; k++)
			if (patch_is_table(&f->public.flow->jumps[k]) &&
				(r = write_table(e, f, &f->public.flow->jumps[k], err)) < 0)
				return r;
	}
	return 0;
}
