#include "analyze/things_internal.h"

#include "base/buf.h"
#include "isa/form.h"
#include "isa/reference.h"
#include "isa/roles.h"

#include <string.h>

/* The code of the range around an address that the database keeps; where it begins. */
static bool code_around(
	struct things *t, const struct trace_site *s, struct buf *code, uint64_t *start)
{
	struct thing_file *f = things_file(t, s->image);
	const struct procedure *p = NULL;
	size_t at = 0;

	if (f->selected && !selection_load(t->sel, f->selected, NULL))
		p = store_procedure_at(&f->selected->procedures, s->procedure);
	if (!p || store_code(selection_store(t->sel), f->selected->id, p->start, code, NULL))
		return false;
	for (uint32_t i = 0; i < p->nranges; at += p->ranges[i++].size) {
		const struct range *r = &p->ranges[i];

		if (s->at - r->start >= r->size || at + r->size > code->n)
			continue;
		memmove(code->p, code->p + at, r->size);
		code->n = r->size;
		*start = r->start;
		return true;
	}
	return false;
}

/* Numbers of DWARF for the registers that frames are counted from. */
static int frame_register(uint8_t reg)
{
	return reg == REG_RSP ? FRAME_RSP : reg == REG_RBP ? FRAME_RBP : -1;
}

static void find_slot(struct things *t, const struct trace_site *s, const struct reference *r,
	struct thing_site *to)
{
	struct thing_file *f = things_file(t, s->image);
	const struct frame_rule *rule = f->frames ? frames_at(f->frames, s->at) : NULL;

	if (!rule || r->index != REG_NONE || rule->base != frame_register(r->base))
		return;
	to->slot = true;
	to->offset = (int64_t)r->displacement - rule->offset;
}

const struct thing_site *things_site(struct things *t, const struct trace_site *s)
{
	struct thing_site made = {.key = {s->image, s->at}};
	struct reference list[REFERENCES_MAX];
	struct thing_site *known = hmap_get(&t->sites, &made.key);
	struct buf code = {0};
	uint64_t start;
	unsigned n = 0;

	if (known)
		return known;
	if (code_around(t, s, &code, &start))
		n = isa_references(
			code.p + (s->at - start), code.n - (s->at - start), s->at, list, NULL);
	buf_deinit(&code);
	for (unsigned i = 0; i < n; i++) {
		if (list[i].thread)
			made.thread = true;
		else if (list[i].base == REG_RSP || list[i].base == REG_RBP)
			find_slot(t, s, &list[i], &made);
	}
	known = hmap_put(&t->sites, &made.key, NULL);
	*known = made;
	return known;
}

/* ---- where addresses come from ---- */

#define BACK  48 /* instructions that are looked through for who made an address */
#define MOVES 3  /* copies and sums that are looked through */

typedef VEC(struct step) step_list;

struct step {
	uint64_t at;
	struct roles roles;
};

/* Instructions one after the other, up to some behind the address. */
static size_t list_steps(const struct buf *code, uint64_t start, uint64_t until, step_list *out)
{
	size_t number = SIZE_MAX, behind = 0;

	for (uint64_t at = 0; at < code->n && behind < BACK;) {
		struct step *s = vec_add(out);

		s->at = start + at;
		if (isa_roles(code->p + at, code->n - at, s->at, &s->roles))
			s->roles = (struct roles){.length = 1};
		if (s->at == until)
			number = out->n - 1;
		behind += number != SIZE_MAX;
		at += s->roles.length;
	}
	return number;
}

/* The step that wrote a register before another: if none is near, in the turn before. */
static const struct step *writer_of(const step_list *l, size_t from, unsigned reg)
{
	for (size_t i = from; i-- && from - i <= BACK;)
		if (l->p[i].roles.writes >> reg & 1)
			return &l->p[i];
	for (size_t i = l->n; i-- > from;)
		if (l->p[i].roles.writes >> reg & 1)
			return &l->p[i];
	return NULL;
}

static bool comes_from_memory(const step_list *l, size_t from, unsigned reg)
{
	for (int moves = 0; moves < MOVES; moves++) {
		const struct step *w = writer_of(l, from, reg);

		if (!w || w->roles.kind != INSN_PLAIN)
			return false;
		if (w->roles.loads)
			return w->roles.operation == OPERATION_MOVE && w->roles.size == 8;
		if (__builtin_popcount(w->roles.reads) != 1)
			return false;
		reg = (unsigned)__builtin_ctz(w->roles.reads);
		from = (size_t)(w - l->p);
	}
	return false;
}

bool things_is_chased(struct things *t, const struct trace_site *s)
{
	struct reference list[REFERENCES_MAX];
	struct buf code = {0};
	step_list steps = {0};
	uint64_t start;
	bool chased = false;

	if (code_around(t, s, &code, &start) &&
		isa_references(
			code.p + (s->at - start), code.n - (s->at - start), s->at, list, NULL) &&
		list[0].base != REG_NONE && list[0].index == REG_NONE) {
		size_t at = list_steps(&code, start, s->at, &steps);

		chased = at != SIZE_MAX && comes_from_memory(&steps, at, list[0].base);
	}
	vec_deinit(&steps);
	buf_deinit(&code);
	return chased;
}
