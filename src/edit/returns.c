#include "edit/returns.h"

#include <errno.h>

#include "base/cursor.h"
#include "edit/edit_internal.h"

/*
 *   u64     RETURNS_MAGIC
 *   uleb    how many there are, each:
 *     uleb    new address - the one before
 *     sleb    old address - the one before
 */
#define RETURNS_MAGIC 0x31746572707c7563
#define RETURN_LEAST  2

typedef VEC(struct edit_return) return_list;

static void add_copy(
	const struct function *f, const struct piece *p, const struct item *i, return_list *out)
{
	const struct flow_insn *first = &f->public.flow->insns[i->insn];

	for (const struct flow_insn *insn = first; insn < first + i->count; insn++) {
		uint64_t into = insn->address - first->address + insn->length;

		if (insn->kind == INSN_CALL || insn->kind == INSN_CALL_INDIRECT)
			*vec_add(out) = (struct edit_return){
				p->at + i->offset + into, first->address + into};
	}
}

static void add_function(const struct function *f, return_list *out)
{
	for (uint32_t n = 0; f->body && n < f->body->npieces; n++) {
		const struct piece *p = &f->body->pieces[n];

		for (uint32_t i = p->first; i < p->first + p->items; i++)
			if (f->body->items.p[i].kind == ITEM_COPY)
				add_copy(f, p, &f->body->items.p[i], out);
	}
}

static int by_new(const void *a, const void *b)
{
	uint64_t x = ((const struct edit_return *)a)->new, y = ((const struct edit_return *)b)->new;

	return x < y ? -1 : x > y;
}

void returns_put(const struct edit *e, struct buf *out)
{
	return_list list = {0};
	struct edit_return last = {0};

	for (size_t i = 0; i < twin_copies(e); i++)
		add_function(twin_copy(e, i), &list);
	vec_sort(&list, by_new);
	buf_u64(out, RETURNS_MAGIC);
	buf_uleb(out, list.n);
	vec_each (r, &list) {
		buf_uleb(out, r->new - last.new);
		buf_sleb(out, (int64_t)(r->old - last.old));
		last = *r;
	}
	vec_deinit(&list);
}

int returns_read(struct edit_returns *r, const void *p, size_t n)
{
	struct cursor at = cursor_over(p, n);
	struct edit_return last = {0};
	uint64_t magic = cursor_u64(&at), count = cursor_uleb(&at);

	*r = (struct edit_returns){0};
	if (magic != RETURNS_MAGIC || count > cursor_left(&at) / RETURN_LEAST)
		return -EBADMSG;
	for (uint64_t i = 0; i < count; i++) {
		uint64_t by = cursor_uleb(&at);

		if (by > UINT64_MAX - last.new)
			at.failed = true;
		last.new += by;
		last.old += (uint64_t)cursor_sleb(&at);
		*vec_add(&r->list) = last;
	}
	if (!at.failed && !cursor_left(&at))
		return 0;
	returns_deinit(r);
	return -EBADMSG;
}

void returns_deinit(struct edit_returns *r)
{
	vec_deinit(&r->list);
}

uint64_t returns_old(const struct edit_returns *r, uint64_t new)
{
	size_t from = 0, to = r->list.n;

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (r->list.p[middle].new < new)
			from = middle + 1;
		else
			to = middle;
	}
	return from < r->list.n && r->list.p[from].new == new ? r->list.p[from].old : 0;
}
