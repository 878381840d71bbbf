#include "flow/tables.h"

#include <stdlib.h>

#include "flow/trace.h"

enum {
	ENTRIES_MAX = 1 << 16,  /* of a table */
	UNPROVED_MAX = 1 << 12, /* of one whose bound is not known */
	UNPROVED_MIN = 2,       /* fewer are chance */
	PARTS_MAX = 64,         /* of the expression of a target */
	ROUNDS_MAX = 32,
	TRIES_MAX = 4,
	BUDGET = 1 << 22, /* entries read for one procedure: what is made to have more gets no
			     tables */
};

struct resolver {
	struct builder *b;
	struct trace trace;
	enum trace_ways ways; /* of this round; that with everything only confirms */
	bool changed;
	uint32_t budget;
	VEC(uint32_t) found; /* instructions that a jump goes to */
};

/* What a jump turned out to be. */
struct finding {
	struct flow_jump jump;
	uint32_t expr, index; /* the target, and the part that varies */
	bool begins;          /* entries are relative to the place of number 0 */
};

/* ---- the parts of a target's expression ---- */

static uint32_t collect(const struct exprs *x, uint32_t e, uint32_t *parts)
{
	uint32_t n = 0, next = 0;

	parts[n++] = e;
	while (next < n) {
		const struct expr *expr = expr_get(x, parts[next++]);
		if (expr->op == EXPR_CONST || expr->op == EXPR_VARIABLE)
			continue;
		if (n + 2 > PARTS_MAX)
			break;
		parts[n++] = expr->a;
		if (expr->op == EXPR_SUM)
			parts[n++] = expr->b;
	}
	return n;
}

/* The part with the fewest values that decides all; false when none is bounded. */
static bool find_index(const struct resolver *r, const struct state *s, uint32_t target,
	uint32_t *index, struct bounds *bounds)
{
	const struct exprs *x = &r->trace.m.exprs;
	uint32_t parts[PARTS_MAX], n = collect(x, target, parts);
	uint64_t least = ENTRIES_MAX;

	for (uint32_t i = 1; i < n; i++) {
		if (expr_is_const(x, parts[i]) || !expr_closed(x, target, parts[i]))
			continue;
		struct bounds b = expr_bounds(x, s->facts, s->nfacts, parts[i]);
		if (b.max - b.min >= least)
			continue;
		least = b.max - b.min;
		*index = parts[i];
		*bounds = b;
	}
	return least < ENTRIES_MAX;
}

static bool find_load(const struct exprs *x, uint32_t target, uint32_t *load)
{
	uint32_t parts[PARTS_MAX], n = collect(x, target, parts);

	for (uint32_t i = 0; i < n; i++) {
		if (expr_get(x, parts[i])->op != EXPR_LOAD)
			continue;
		*load = parts[i];
		return true;
	}
	return false;
}

/* Without a bound: what is scaled and added to the address of a table. */
static bool find_scaled(const struct exprs *x, uint32_t target, uint32_t *index)
{
	uint32_t load;

	if (!find_load(x, target, &load))
		return false;
	const struct expr *e = expr_get(x, expr_get(x, load)->a);
	if (e->op == EXPR_OFFSET)
		e = expr_get(x, e->a);
	if (e->op != EXPR_LEFT && e->op != EXPR_TIMES)
		return false;
	*index = e->a;
	return expr_closed(x, target, *index);
}

/* ---- entries ---- */

static bool entry_of(struct resolver *r, const struct finding *f, uint64_t index, uint64_t *target)
{
	const struct flow_source *s = r->b->source;

	return expr_value(&r->trace.m.exprs, f->expr, f->index, index, s->read, s->arg, target);
}

/* How many entries from the first on lie in the procedure or at its end; the first are found. */
static uint32_t take_entries(
	struct resolver *r, const struct finding *f, uint64_t first, uint64_t count)
{
	r->found.n = 0;
	for (uint64_t i = 0; i < count; i++) {
		uint64_t target;
		if (!r->budget)
			return (uint32_t)i;
		r->budget--;
		if (!entry_of(r, f, first + i, &target))
			return (uint32_t)i;
		uint32_t insn = builder_insn_at(r->b, target);
		if (insn != GRAPH_NONE)
			*vec_add(&r->found) = insn;
		else if (!ranges_end_at(r->b->source->ranges, r->b->source->nranges, target))
			return (uint32_t)i;
	}
	return (uint32_t)count;
}

/* Where the table is and what its entries look like, for those who copy it. */
static void describe(struct resolver *r, struct finding *f, uint64_t first)
{
	const struct exprs *x = &r->trace.m.exprs;
	const struct flow_source *s = r->b->source;
	const struct expr *target = expr_get(x, f->expr);
	uint64_t address = 0, next = 0;
	uint32_t load;

	if (!find_load(x, f->expr, &load))
		return;
	const struct expr *e = expr_get(x, load);
	if (!expr_value(x, e->a, f->index, first, s->read, s->arg, &address) ||
		!expr_value(x, e->a, f->index, first + 1, s->read, s->arg, &next))
		return;
	f->jump.table = address;
	f->jump.width = e->width;
	f->jump.stride = (uint8_t)(next - address);
	f->jump.relative = target->op == EXPR_OFFSET;
	f->jump.base = f->jump.relative ? target->value : 0;
	f->begins = f->jump.relative && f->jump.table == f->jump.base + first * f->jump.stride;
}

/*
 * Where compilers know more about the index than its code says, there is no check of its bound. The
 * table then ends where its entries make no sense any more, or other data begins.
 */
static void end_table(struct resolver *r, struct finding *f, uint64_t first)
{
	const struct flow_source *s = r->b->source;
	struct flow_jump *j = &f->jump;

	if (!s->next_data || !f->begins || j->width != 4 || j->stride != 4)
		return;
	uint64_t room = (s->next_data(s->arg, j->table) - j->table) / 4;
	if (room < j->entries)
		j->entries = take_entries(r, f, first, room);
	if (r->found.n)
		j->state = FLOW_JUMP_PROVED;
}

/* ---- deciding ---- */

/* The stack and the registers that a callee keeps are as they were at the entry. */
static bool is_at_entry(const struct resolver *r, const struct state *s)
{
	struct state entry;

	state_entry((struct machine *)&r->trace.m, &entry);
	for (unsigned reg = 0; reg < 16; reg++)
		if (REGS_KEPT >> reg & 1 && s->reg[reg] != entry.reg[reg])
			return false;
	return true;
}

/* jmp *address, as stubs of the linkage table have it. */
static bool is_stub(const struct form *f)
{
	return f->from.type == FORM_MEMORY && f->base == REG_NONE && f->index == REG_NONE;
}

/* Whether a word of data holds it, as far as that is known. */
static bool is_slot(const struct flow_source *s, uint64_t target)
{
	size_t low = 0, high = s->nslots;

	while (low < high) {
		size_t middle = (low + high) / 2;
		if (s->slots[middle].target < target)
			low = middle + 1;
		else
			high = middle;
	}
	return low < s->nslots && s->slots[low].target == target;
}

/*
 * A table of addresses needs no proof of its bound: entries that are no code are never used, and a
 * function that begins elsewhere is not jumped to from the middle of another. Without a bound it
 * ends at the first word that is no code.
 */
static bool take_addresses(struct resolver *r, struct finding *f, uint64_t first, uint64_t count)
{
	const struct flow_source *s = r->b->source;
	uint64_t end = 0;

	r->found.n = 0;
	for (uint64_t i = 0; i < count && r->budget; i++, r->budget--) {
		uint64_t target;
		bool read = entry_of(r, f, first + i, &target);
		uint32_t insn = read ? builder_insn_at(r->b, target) : GRAPH_NONE;
		bool code = read && (insn != GRAPH_NONE || is_slot(s, target));
		if (!code && count == UNPROVED_MAX)
			break;
		if (insn != GRAPH_NONE) {
			*vec_add(&r->found) = insn;
			end = i + 1;
		} else if (code && s->starts && !s->starts(s->arg, target)) {
			f->jump.leaves = true;
		}
	}
	if (r->found.n < UNPROVED_MIN || !r->budget)
		return false;
	f->jump.entries = (uint32_t)end;
	f->jump.state = FLOW_JUMP_PROVED;
	describe(r, f, first);
	return true;
}

static bool is_address_table(struct resolver *r, const struct state *s, struct finding *f)
{
	const struct exprs *x = &r->trace.m.exprs;
	const struct expr *e = expr_get(x, f->expr);

	if (!r->b->source->nslots || e->op != EXPR_LOAD || e->width != 8 ||
		!find_scaled(x, f->expr, &f->index))
		return false;
	struct bounds b = expr_bounds(x, s->facts, s->nfacts, f->index);
	if (b.max - b.min < ENTRIES_MAX)
		return take_addresses(r, f, b.min, b.max - b.min + 1);
	return take_addresses(r, f, 0, UNPROVED_MAX);
}

static bool is_bounded_table(struct resolver *r, const struct state *s, struct finding *f)
{
	struct bounds b;

	if (!find_index(r, s, f->expr, &f->index, &b))
		return false;
	uint64_t count = b.max - b.min + 1;
	uint32_t n = take_entries(r, f, b.min, count);
	if (!r->found.n || (n < count && r->found.n < UNPROVED_MIN))
		return false;
	f->jump.entries = n;
	f->jump.state = n == count ? FLOW_JUMP_PROVED : FLOW_JUMP_UNPROVED;
	describe(r, f, b.min);
	if (n < count)
		end_table(r, f, b.min);
	return true;
}

static bool is_unbounded_table(struct resolver *r, struct finding *f)
{
	if (!find_scaled(&r->trace.m.exprs, f->expr, &f->index))
		return false;
	uint32_t n = take_entries(r, f, 0, UNPROVED_MAX);
	if (r->found.n < UNPROVED_MIN)
		return false;
	f->jump.entries = n;
	f->jump.state = FLOW_JUMP_UNPROVED;
	describe(r, f, 0);
	if (n < UNPROVED_MAX)
		end_table(r, f, 0);
	return true;
}

static bool is_constant(struct resolver *r, struct finding *f)
{
	f->index = GRAPH_NONE;
	if (!expr_closed(&r->trace.m.exprs, f->expr, GRAPH_NONE) || take_entries(r, f, 0, 1) != 1 ||
		!r->found.n)
		return false;
	f->jump.entries = 1;
	f->jump.state = FLOW_JUMP_PROVED;
	return true;
}

/*
 * A table that could not be understood, but some of whose entries lie in the procedure or cannot be
 * read: whoever jumps through it does not leave, though the stack is as at the entry.
 */
static bool may_stay(struct resolver *r, const struct state *s, struct finding *f)
{
	struct bounds b = {0, UNPROVED_MAX - 1};

	if (expr_get(&r->trace.m.exprs, f->expr)->op == EXPR_SUM) /* pointers are not made so */
		return true;
	if (!find_index(r, s, f->expr, &f->index, &b) &&
		!find_scaled(&r->trace.m.exprs, f->expr, &f->index))
		return false;
	for (uint64_t i = b.min; i <= b.max && i - b.min < UNPROVED_MAX; i++) {
		uint64_t target;
		if (!entry_of(r, f, i, &target))
			return i == b.min;
		if (builder_insn_at(r->b, target) != GRAPH_NONE)
			return true;
	}
	return false;
}

/*
 * Only the address of a table and what the entry's registers held are kept in memory that others
 * may reach. No variable of the program holds an address that offsets of its own code are relative
 * to, so that one is as good as proved.
 */
static void decide(struct resolver *r, struct state *s, uint32_t insn, struct finding *f)
{
	const struct flow_source *source = r->b->source;
	const struct flow_insn *i = &r->b->insns.p[insn];
	const struct form *form = trace_form(&r->trace, insn);
	bool weak = false;

	if (i->kind == INSN_JUMP) { /* to a retpoline */
		int reg = source->thunk(source->arg, flow_target(i));
		f->expr = s->reg[reg & 15];
		weak = s->weak >> (reg & 15) & 1;
	} else {
		f->expr = state_operand(&r->trace.m, s, form, insn, &weak);
	}
	r->found.n = 0;
	if (is_constant(r, f) || is_address_table(r, s, f) || is_bounded_table(r, s, f) ||
		is_unbounded_table(r, f)) {
		if (weak && !f->begins)
			f->jump.state = FLOW_JUMP_UNPROVED;
		return;
	}
	r->found.n = 0;
	if (is_stub(form) || (is_at_entry(r, s) && !may_stay(r, s, f)))
		f->jump.state = FLOW_JUMP_TAIL;
}

/* ---- findings become jumps ---- */

static int by_number(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static size_t unique(uint32_t *list, size_t n)
{
	size_t kept = 0;

	qsort(list, n, sizeof *list, by_number);
	for (size_t i = 0; i < n; i++)
		if (!kept || list[i] != list[kept - 1])
			list[kept++] = list[i];
	return kept;
}

/* Targets that were found once stay, so that this comes to an end. True when found has them all. */
static bool add_old(struct resolver *r, const struct flow_jump *old)
{
	size_t n = r->found.n;

	for (uint32_t i = 0; i < old->targets; i++)
		*vec_add(&r->found) = r->b->targets.p[old->first_target + i];
	if (!r->found.n)
		return true;
	r->found.n = unique(r->found.p, r->found.n);
	return r->found.n == n;
}

static uint8_t end_of(enum flow_jump_state state)
{
	switch (state) {
	case FLOW_JUMP_TAIL:
		return FLOW_TAIL_INDIRECT;
	case FLOW_JUMP_UNRESOLVED:
		return FLOW_UNRESOLVED;
	default:
		return FLOW_TABLE;
	}
}

static void append_targets(struct resolver *r, struct flow_jump *j)
{
	j->first_target = (uint32_t)r->b->targets.n;
	j->targets = (uint32_t)r->found.n;
	vec_each (t, &r->found) {
		r->b->insns.p[*t].flags |= FLOW_INSN_LEADER;
		*vec_add(&r->b->targets) = *t;
	}
}

static bool is_table(const struct flow_jump *j)
{
	return j->state == FLOW_JUMP_PROVED || j->state == FLOW_JUMP_UNPROVED;
}

/* Both are proved and of one table: of which the jump uses what either says. */
static bool unite(struct flow_jump *j, const struct flow_jump *old)
{
	if (old->state != FLOW_JUMP_PROVED || j->state != FLOW_JUMP_PROVED || !old->table ||
		!j->table || old->stride != j->stride || old->base != j->base ||
		old->width != j->width || (old->table - j->table) % j->stride)
		return false;
	uint64_t end = j->table + (uint64_t)j->entries * j->stride;
	uint64_t old_end = old->table + (uint64_t)old->entries * old->stride;
	j->table = old->table < j->table ? old->table : j->table;
	j->entries = (uint32_t)(((old_end > end ? old_end : end) - j->table) / j->stride);
	j->leaves = j->leaves || old->leaves;
	return true;
}

/* A table that is seen no more, now that more paths are known, is not proved. */
static struct flow_jump reconcile(
	struct resolver *r, const struct flow_jump *old, const struct finding *f)
{
	struct flow_jump j = is_table(old) && !is_table(&f->jump) ? *old : f->jump;

	if (r->ways == TRACE_EVERYTHING && old->state == FLOW_JUMP_TAIL && !is_table(&j))
		return *old;
	if (r->found.n)
		r->found.n = unique(r->found.p, r->found.n);
	bool more = !add_old(r, old);
	if (is_table(&j) && (!is_table(&f->jump) || (more && !unite(&j, old))))
		j.state = FLOW_JUMP_UNPROVED;
	j.insn = old->insn;
	j.first_target = old->first_target;
	j.targets = old->targets;
	return j;
}

static void update(struct resolver *r, struct flow_jump *j, const struct finding *f)
{
	struct flow_jump old = *j;

	*j = reconcile(r, &old, f);
	r->b->insns.p[j->insn].end = end_of((enum flow_jump_state)j->state);
	if (r->found.n > old.targets) {
		append_targets(r, j);
		r->changed = true;
	}
	if ((old.state == FLOW_JUMP_TAIL) != (j->state == FLOW_JUMP_TAIL) && r->ways != TRACE_KNOWN)
		r->changed = true;
}

static void visit(void *arg, struct state *s, uint32_t insn)
{
	struct resolver *r = arg;
	struct finding f = {.jump = {.insn = insn}};

	for (size_t low = 0, high = r->b->jumps.n; low < high;) {
		size_t middle = (low + high) / 2;
		struct flow_jump *j = &r->b->jumps.p[middle];
		if (j->insn == insn) {
			decide(r, s, insn, &f);
			update(r, j, &f);
			return;
		}
		if (j->insn < insn)
			low = middle + 1;
		else
			high = middle;
	}
}

static void run_round(struct resolver *r, enum trace_ways ways)
{
	r->ways = ways;
	r->changed = false;
	trace_run(&r->trace, ways, visit, r);
}

/* Where every jump is resolved, likely ways are those that are known. */
static bool is_all_known(const struct resolver *r)
{
	vec_each (j, &r->b->jumps) {
		if (j->state == FLOW_JUMP_UNRESOLVED)
			return false;
	}
	return true;
}

/* Until no more is found. */
static bool run_rounds(struct resolver *r, enum trace_ways ways)
{
	int round = 0;

	r->changed = false;
	do {
		if (ways == TRACE_KNOWN || r->changed || !is_all_known(r))
			run_round(r, ways);
		if (!r->changed && ways != TRACE_KNOWN)
			run_round(r, TRACE_EVERYTHING);
		builder_make_blocks(r->b);
	} while (r->changed && ++round < ROUNDS_MAX);
	return round < ROUNDS_MAX;
}

static uint32_t count_proved(const struct builder *b)
{
	uint32_t n = 0;

	vec_each (j, &b->jumps)
		n += j->state == FLOW_JUMP_PROVED;
	return n;
}

/*
 * What holds on the ways that are known so far only ever grows, so tables are found there first.
 * Words of tables that are proved then no longer count as pointers that anybody may follow, which
 * must be taken back if a table is not proved in the end.
 */
void tables_resolve(struct builder *b)
{
	struct resolver r = {.b = b, .budget = BUDGET};
	uint32_t before, tries = 0;

	trace_init(&r.trace, b);
	bool ended = run_rounds(&r, TRACE_KNOWN);
	do {
		before = count_proved(b);
		builder_mark_pointers(b);
		builder_make_blocks(b);
		ended = run_rounds(&r, TRACE_LIKELY) && ended;
	} while (count_proved(b) != before && ++tries < TRIES_MAX);
	vec_each (j, &b->jumps) {
		if ((!ended || tries == TRIES_MAX) && j->state == FLOW_JUMP_PROVED)
			j->state = FLOW_JUMP_UNPROVED;
	}
	builder_mark_pointers(b);
	builder_make_blocks(b);
	trace_deinit(&r.trace);
	vec_deinit(&r.found);
}
