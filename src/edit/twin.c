/*
 * Second copies of functions. The first copy has the old jump tables, which are rewritten where
 * they are; the second needs tables of its own, and must say their addresses where the first says
 * the old ones. Where a table's address is used for something else, nobody knows which of the two
 * is meant: such a function has no second copy.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "edit/edit_internal.h"
#include "edit/pad.h"
#include "flow/program.h"
#include "image/data.h"
#include "isa/form.h"

enum { STEPS_MAX = 1 << 20 }; /* of one function */

/* ---- where an address goes ---- */

struct step {
	uint32_t insn;
	uint16_t regs;
};

/* Follows registers that hold the address of a table. */
struct follower {
	const struct edit *e;
	const struct flow *flow;
	uint16_t *seen; /* registers, by instruction */
	VEC(struct step) steps;
	unsigned stride, budget;
	bool used; /* for a jump through the table */
};

static void follow(struct follower *w, uint32_t insn, uint16_t regs)
{
	regs &= (uint16_t)~w->seen[insn];
	if (!regs)
		return;
	w->seen[insn] |= regs;
	*vec_add(&w->steps) = (struct step){insn, regs};
}

static void follow_behind(struct follower *w, uint32_t insn, uint16_t regs)
{
	const struct flow *flow = w->flow;
	uint32_t k = flow_block_at(flow, flow->insns[insn].address);
	const struct flow_block *b = &flow->blocks[k];

	if (insn + 1 < b->first + b->count) {
		follow(w, insn + 1, regs);
		return;
	}
	graph_each_out (edge, &flow->graph, k) {
		uint32_t to = flow->graph.edge[*edge].to;
		if (to != flow->exit_node)
			follow(w, flow->blocks[to].first, regs);
	}
}

static bool holds(uint16_t regs, uint8_t reg)
{
	return reg < 16 && regs >> reg & 1;
}

/* A word is read by a number that is scaled. */
static bool is_lookup(const struct follower *w, const struct form *f, uint16_t regs)
{
	return f->from.type == FORM_MEMORY && holds(regs, f->base) && f->index != REG_NONE &&
	       !holds(regs, f->index) && f->scale == w->stride;
}

/* An entry and the address are added. */
static bool is_sum(const struct form *f, uint16_t regs)
{
	if (f->op == FORM_ADD)
		return f->to.type == FORM_REGISTER && f->from.type == FORM_REGISTER &&
		       f->to.size == 8 && holds(regs, f->to.reg) != holds(regs, f->from.reg);
	return f->op == FORM_ADDRESS && f->base != REG_NONE && f->index != REG_NONE &&
	       f->scale == 1 && !f->displacement && holds(regs, f->base) != holds(regs, f->index);
}

/* Whether the address is used for nothing but jumps; adds registers that get it. */
static bool is_use(struct follower *w, const struct form *f, uint16_t regs, uint16_t *copies)
{
	if (!(f->reads & regs))
		return true;
	if ((f->op == FORM_MOVE || f->op == FORM_MOVE_SIGNED || f->op == FORM_TRANSFER) &&
		is_lookup(w, f, regs)) {
		w->used = true;
		return true;
	}
	if (is_sum(f, regs))
		return true;
	if (f->op != FORM_MOVE || f->from.type != FORM_REGISTER || f->to.type != FORM_REGISTER ||
		f->to.size != 8)
		return false;
	*copies |= (uint16_t)(1u << f->to.reg);
	return true;
}

/* or $-1: what was in the register before does not matter. */
static bool sets_all_bits(const uint8_t *code, unsigned n)
{
	if (n == 4 && (code[0] & 0xf0) == 0x40) {
		code++;
		n--;
	}
	return n == 3 && code[0] == 0x83 && (code[1] & 0xf8) == 0xc8 && code[2] == 0xff;
}

/* From an instruction that loads the address to all that has it. */
static bool goes_to_jumps(struct follower *w, uint32_t insn, uint8_t reg)
{
	w->steps.n = 0;
	w->used = false;
	follow_behind(w, insn, (uint16_t)(1u << reg));
	while (w->steps.n) {
		struct step s = w->steps.p[--w->steps.n];
		const struct flow_insn *i = &w->flow->insns[s.insn];
		const uint8_t *code = edit_code(w->e, i->address, i->length);
		uint16_t copies = 0;
		struct form f;
		if (!w->budget || isa_form(code, i->length, i->address, &f))
			return false;
		w->budget--;
		bool calls = i->kind == INSN_CALL || i->kind == INSN_CALL_INDIRECT;
		if (!sets_all_bits(code, i->length) && !is_use(w, &f, s.regs, &copies))
			return false;
		uint16_t left = (uint16_t)((s.regs & ~f.writes) | copies);
		if (calls)
			left &= REGS_KEPT;
		if (left)
			follow_behind(w, s.insn, left);
	}
	return w->used;
}

/* ---- tables ---- */

struct cloner {
	struct edit *e;
	struct function *twin;
	struct follower follower;
	const char *why;
};

/* The address that code says to jump through a table, and whether its entries are relative to it.
 */
static struct clone describe(const struct edit *e, const struct flow_jump *j)
{
	bool moves_base = j->relative && !edit_home(e, j->base);

	return (struct clone){.name = moves_base ? j->base : j->table,
		.from = j->table,
		.end = j->table + (uint64_t)j->entries * j->stride,
		.moves_base = moves_base};
}

static bool is_loaded_anywhere(const struct edit *e)
{
	return !image_data_is_fixed(program_data(e->program));
}

static struct clone *find_clone(struct function *twin, uint64_t name)
{
	vec_each (c, &twin->clones)
		if (c->name == name)
			return c;
	return NULL;
}

static void add_clone(struct cloner *c, const struct flow_jump *j)
{
	struct clone fresh = describe(c->e, j);
	struct clone *old = find_clone(c->twin, fresh.name);

	if (j->width == 8 && !j->relative && is_loaded_anywhere(c->e))
		c->why = "a table of addresses that are relocated";
	if (!old) {
		*vec_add(&c->twin->clones) = fresh;
		return;
	}
	if (old->moves_base != fresh.moves_base)
		c->why = "a jump table that is used in two ways";
	old->from = fresh.from < old->from ? fresh.from : old->from;
	old->end = fresh.end > old->end ? fresh.end : old->end;
}

static void add_naming(struct cloner *c, uint32_t insn, const struct clone *clone)
{
	*vec_add(&c->twin->namings) = (struct naming){insn, (uint32_t)(clone - c->twin->clones.p)};
}

/* An instruction that says the address of a table, as lea or as a displacement of 32 bits. */
static void judge_naming(struct cloner *c, uint32_t insn, unsigned stride)
{
	const struct flow_insn *i = &c->follower.flow->insns[insn];
	struct form f;

	if (isa_form(edit_code(c->e, i->address, i->length), i->length, i->address, &f))
		return;
	bool relative = i->flags & FLOW_INSN_MEMORY;
	const struct clone *clone = find_clone(c->twin, f.displacement);
	if (!clone)
		return;
	if (!relative && f.base == REG_NONE && f.index != REG_NONE && f.scale == stride &&
		f.from.type == FORM_MEMORY &&
		(f.op == FORM_MOVE || f.op == FORM_MOVE_SIGNED || f.op == FORM_TRANSFER)) {
		add_naming(c, insn, clone);
		return;
	}
	c->follower.stride = stride;
	memset(c->follower.seen, 0, c->follower.flow->ninsns * sizeof *c->follower.seen);
	if (relative && f.op == FORM_ADDRESS && f.to.size == 8 &&
		goes_to_jumps(&c->follower, insn, f.to.reg))
		add_naming(c, insn, clone);
	else
		c->why = "a jump table whose address is used otherwise";
}

/* Only instructions that end in four bytes of a table's address. */
static bool may_name(const struct cloner *c, const struct flow_insn *i)
{
	const uint8_t *code = edit_code(c->e, i->address, i->length);
	int32_t value;

	if (i->flags & FLOW_INSN_MEMORY)
		return find_clone(c->twin, flow_target(i));
	if (i->length < 5 || i->kind == INSN_JUMP || i->kind == INSN_BRANCH || i->kind == INSN_CALL)
		return false;
	memcpy(&value, code + i->length - 4, sizeof value);
	return find_clone(c->twin, (uint64_t)(int64_t)value);
}

static bool are_all_named(const struct function *twin)
{
	for (uint32_t k = 0; k < twin->clones.n; k++) {
		bool named = false;
		vec_each (n, &twin->namings)
			named = named || n->clone == k;
		if (!named)
			return false;
	}
	return true;
}

static void clone_tables(struct cloner *c)
{
	const struct flow *flow = c->follower.flow;
	unsigned stride = 0;

	for (uint32_t i = 0; i < flow->njumps; i++) {
		const struct flow_jump *j = &flow->jumps[i];
		if (!patch_is_table(j))
			continue;
		if (stride && stride != j->stride)
			c->why = "jump tables of several kinds";
		stride = j->stride;
		add_clone(c, j);
	}
	for (uint32_t i = 0; c->twin->clones.n && !c->why && i < flow->ninsns; i++)
		if (may_name(c, &flow->insns[i]))
			judge_naming(c, i, stride);
	if (!c->why && !are_all_named(c->twin))
		c->why = "a jump table whose address nothing says";
	vec_each (clone, &c->twin->clones) {
		clone->offset = (c->e->tables_size + 7) & ~(uint64_t)7;
		c->e->tables_size = clone->offset + (clone->end - clone->from);
	}
}

static int by_insn(const void *a, const void *b)
{
	const struct naming *x = a, *y = b;

	return x->insn < y->insn ? -1 : x->insn > y->insn;
}

const struct naming *twin_naming(const struct function *f, uint32_t insn)
{
	const struct naming key = {.insn = insn};

	return f->namings.n
		       ? bsearch(&key, f->namings.p, f->namings.n, sizeof *f->namings.p, by_insn)
		       : NULL;
}

int64_t twin_moves_table(const struct edit *e, const struct function *f, uint32_t insn)
{
	const struct naming *n = twin_naming(f, insn);

	if (!n)
		return 0;
	const struct clone *c = &f->clones.p[n->clone];
	return (int64_t)(e->tables + c->offset - c->from);
}

/* ---- writing tables ---- */

static int put_entry(const struct edit *e, const struct flow_jump *j, uint64_t base,
	uint64_t target, uint8_t *slot, struct err *err)
{
	int64_t value = (int64_t)(target - (j->relative ? base : 0));

	if (j->width == 4 && value != (int32_t)value)
		return err_set(err, -EFBIG, "%s: the new code is too far from the table at 0x%llx",
			image_path(e->image), (unsigned long long)j->table);
	memcpy(slot, &value, j->width);
	return 0;
}

static int write_clone(const struct edit *e, const struct function *f, const struct flow_jump *j,
	struct buf *out, struct err *err)
{
	const struct clone key = describe(e, j), *c = find_clone((struct function *)f, key.name);
	uint64_t by = e->tables + c->offset - c->from;

	for (uint32_t i = 0; i < j->entries; i++) {
		uint64_t slot = j->table + (uint64_t)i * j->stride, target;
		if (!patch_table_target(e, j, slot, &target))
			continue;
		uint32_t k = flow_block_at(f->public.flow, target);
		if (k != GRAPH_NONE)
			target = body_table_entry(f, j, k);
		int r = put_entry(e, j, c->moves_base ? j->base + by : j->base, target,
			out->p + (slot + by - e->tables), err);
		if (r < 0)
			return r;
	}
	return 0;
}

int twin_write_tables(const struct edit *e, struct buf *out, struct err *err)
{
	size_t size = (e->tables_size + 7) & ~(size_t)7;
	int r = 0;

	buf_reserve(out, size + 1);
	memset(out->p, 0, size);
	out->n = size;
	vec_each (f, &e->twins) {
		const struct flow *flow = (*f)->public.flow;
		for (uint32_t i = 0; (*f)->body && i < flow->njumps && !r; i++)
			if (patch_is_table(&flow->jumps[i]))
				r = write_clone(e, *f, &flow->jumps[i], out, err);
	}
	return r;
}

/* ---- copies ---- */

size_t twin_copies(const struct edit *e)
{
	return e->nfunctions + e->twins.n;
}

struct function *twin_copy(const struct edit *e, size_t i)
{
	return i < e->nfunctions ? &e->functions[i] : e->twins.p[i - e->nfunctions];
}

static void destroy(struct function *twin)
{
	body_destroy(twin->body);
	vec_deinit(&twin->insertions);
	vec_deinit(&twin->redirects);
	vec_deinit(&twin->clones);
	vec_deinit(&twin->namings);
	free(twin->others);
	pad_destroy(twin->pad);
	free(twin);
}

void twin_destroy_all(struct edit *e)
{
	vec_each (f, &e->twins)
		destroy(*f);
	vec_deinit(&e->twins);
}

/* Not yet one of the edit's. NULL and why when it cannot be had. */
static struct function *make_twin(struct edit *e, struct function *original, const char **why)
{
	struct edit_function *f = &original->public;
	struct function *twin;

	if (f->refused || !f->chosen || original->original || original->twin) {
		*why = f->refused ? f->refused : "it is not moved, or has a second copy";
		return NULL;
	}
	twin = xcalloc(1, sizeof *twin);
	twin->public = *f;
	twin->group = original->group;
	twin->original = original;
	struct cloner c = {.e = e,
		.twin = twin,
		.follower = {.e = e,
			.flow = f->flow,
			.budget = STEPS_MAX,
			.seen = xcalloc(f->flow->ninsns, sizeof *c.follower.seen)}};
	uint64_t tables = e->tables_size;
	clone_tables(&c);
	free(c.follower.seen);
	vec_deinit(&c.follower.steps);
	if (c.why) {
		e->tables_size = tables;
		destroy(twin);
		*why = c.why;
		return NULL;
	}
	vec_sort(&twin->namings, by_insn);
	return twin;
}

const char *twin_refused(struct edit *e, struct edit_function *f)
{
	uint64_t tables = e->tables_size;
	const char *why = NULL;
	struct function *twin = make_twin(e, (struct function *)f, &why);

	e->tables_size = tables;
	if (twin)
		destroy(twin);
	return why;
}

struct edit_function *edit_duplicate(struct edit *e, struct edit_function *f, const char **why)
{
	struct function *original = (struct function *)f;
	struct function *twin = make_twin(e, original, why);

	if (!twin)
		return NULL;
	original->twin = twin;
	*vec_add(&e->twins) = twin;
	if (twin->clones.n)
		bridge_find(e, twin);
	return &twin->public;
}
