/*
 * Moves all code of a file without looking at it, writes its unwind tables, and compares what both
 * tables say at every place.
 */
#ifndef CULPRIT_TESTS_EDIT_UNWIND_RIG_H
#define CULPRIT_TESTS_EDIT_UNWIND_RIG_H

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/vec.h"
#include "edit/unwind.h"
#include "image/cfi.h"
#include "image/eh_entry.h"

/* ---- what a section says ---- */

struct page {
	struct eh_fde fde;
	struct eh_cie cie;
};

struct book {
	VEC(struct page) pages; /* by start */
};

struct book_row {
	uint64_t pc;
	struct cfi_row row;
};

struct book_rows {
	VEC(struct book_row) list;
	uint64_t start, end; /* of the entry they are from */
};

static inline int page_by_start(const void *a, const void *b)
{
	const struct page *x = a, *y = b;
	return x->fde.start < y->fde.start ? -1 : x->fde.start > y->fde.start;
}

static inline struct book book_read(const void *p, size_t n, uint64_t vaddr, bool terminated)
{
	struct book b = {0};
	struct eh_reader r;
	struct eh_fde fde;

	eh_reader_init(&r, p, n, vaddr, terminated);
	while (eh_reader_next(&r, &fde))
		*vec_add(&b.pages) = (struct page){.fde = fde, .cie = r.cie};
	vec_sort(&b.pages, page_by_start);
	return b;
}

static inline const struct page *book_find(const struct book *b, uint64_t pc)
{
	size_t low = 0, high = b->pages.n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (b->pages.p[middle].fde.start <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	const struct page *p = low ? &b->pages.p[low - 1] : NULL;
	return p && pc - p->fde.start < p->fde.size ? p : NULL;
}

/* The row at an address and where the next one begins; NULL when there is none. */
static inline const struct cfi_row *book_row(
	const struct book *b, struct book_rows *rows, uint64_t pc, uint64_t *until)
{
	if (pc < rows->start || pc >= rows->end) {
		const struct page *p = book_find(b, pc);
		struct cfi_row initial;
		struct cfi c;
		if (!p)
			return NULL;
		rows->list.n = 0;
		cfi_initial(&p->cie, &initial);
		cfi_init(&c, &p->cie, &initial, &p->fde);
		while (cfi_next(&c))
			*vec_add(&rows->list) = (struct book_row){.pc = c.pc, .row = c.row};
		cfi_deinit(&c);
		rows->start = p->fde.start;
		rows->end = p->fde.start + p->fde.size;
	}
	*until = rows->end;
	for (size_t i = rows->list.n; i > 0; i--) {
		if (rows->list.p[i - 1].pc <= pc)
			return &rows->list.p[i - 1].row;
		*until = rows->list.p[i - 1].pc;
	}
	return NULL;
}

/* The same frame, with rsp `pushed` lower; expressions are only compared where it is not. */
static inline bool rows_agree(const struct cfi_row *a, const struct cfi_row *b, uint32_t pushed)
{
	bool expression = a->cfa.kind == CFI_VAL_EXPRESSION;
	bool lower = !expression && a->cfa.value == CFI_RSP;

	if (a->args_size != b->args_size || a->cfa.kind != b->cfa.kind)
		return false;
	if (!(expression && pushed) && !cfi_rule_equal(&a->cfa, &b->cfa))
		return false;
	if (!expression && a->cfa_offset + (lower ? (int64_t)pushed : 0) != b->cfa_offset)
		return false;
	for (size_t i = 0; i < CFI_REGISTERS; i++) {
		const struct cfi_rule *x = &a->registers[i], *y = &b->registers[i];
		bool either = x->kind == CFI_EXPRESSION || x->kind == CFI_VAL_EXPRESSION;
		if (!(either && pushed) && !cfi_rule_equal(x, y))
			return false;
	}
	return true;
}

/* ---- moving ---- */

struct move {
	struct book old;
	VEC(struct edit_fragment) fragments;
	VEC(struct edit_span *) spans; /* by fragment */
	struct buf out;
	struct unwind_layout where;
	struct book fresh;
};

/* Cuts [start, start + size) into spans for code at `at`; returns how many. */
typedef size_t cut_fn(uint64_t start, uint64_t size, uint64_t at, struct edit_span **out);

/* Where pads are in the new code; fragments are in the order of the old. */
static inline uint64_t move_address(void *arg, uint64_t old, bool twin __attribute__((unused)))
{
	const struct move *m = arg;

	size_t low = 0, high = m->fragments.n;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;
		if (m->fragments.p[middle].old_start <= old)
			low = middle;
		else
			high = middle;
	}
	const struct edit_fragment *f = &m->fragments.p[low];
	for (size_t i = 0; low < m->fragments.n && i < f->nspans; i++) {
		const struct edit_span *s = &f->spans[i];
		if (s->copied ? old - s->old < s->size : !s->pushed && s->old == old)
			return s->at + (old - s->old);
	}
	return 0;
}

/* Everything that is not refused, one fragment for each entry. */
static inline void move_all(struct move *m, const struct unwind *u, uint64_t to, cut_fn *cut)
{
	uint64_t last = 0;

	vec_each (p, &m->old.pages) {
		struct edit_span *spans;
		if (unwind_refusal(u, p->fde.start) || p->fde.start < last)
			continue;
		last = p->fde.start + p->fde.size;
		size_t n = cut(p->fde.start, p->fde.size, to, &spans);
		uint64_t end = spans[n - 1].at + spans[n - 1].size;
		*vec_add(&m->spans) = spans;
		*vec_add(&m->fragments) = (struct edit_fragment){.start = to,
			.size = end - to,
			.old_start = p->fde.start,
			.spans = spans,
			.nspans = n};
		to = (end + 15) & ~UINT64_C(15);
	}
}

static inline void move_deinit(struct move *m)
{
	vec_each (s, &m->spans)
		free(*s);
	vec_deinit(&m->spans);
	vec_deinit(&m->fragments);
	vec_deinit(&m->old.pages);
	vec_deinit(&m->fresh.pages);
	buf_deinit(&m->out);
}

/* One span that holds all. */
static inline size_t cut_whole(uint64_t start, uint64_t size, uint64_t at, struct edit_span **out)
{
	struct edit_span s = {.at = at, .old = start, .size = (uint32_t)size, .copied = true};

	*out = xmemdup(&s, sizeof s);
	return 1;
}

/* The first place where the tables disagree about the new code, 0: there is none. */
static inline uint64_t move_disagreement(const struct move *m)
{
	struct book_rows a = {0}, b = {0};
	uint64_t found = 0;

	vec_each (f, &m->fragments) {
		for (size_t i = 0; i < f->nspans && !found; i++) {
			const struct edit_span *s = &f->spans[i];
			for (uint64_t at = s->at, next; at < s->at + s->size && !found; at = next) {
				uint64_t old = s->copied ? s->old + (at - s->at) : s->old;
				uint64_t x = 0, y = 0;
				const struct cfi_row *r = book_row(&m->old, &a, old, &x);
				const struct cfi_row *n = book_row(&m->fresh, &b, at, &y);
				if (!r || !n || !rows_agree(r, n, s->pushed))
					found = at;
				next = s->copied && x - old < y - at ? at + (x - old) : y;
			}
		}
	}
	vec_deinit(&a.list);
	vec_deinit(&b.list);
	return found;
}

#endif
