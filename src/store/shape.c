#include "store/shape.h"

#include "base/buf.h"

#include <assert.h>
#include <errno.h>

int path_shape_compare(const struct path_shape *a, const struct path_shape *b)
{
	for (uint32_t i = 0; i < a->n && i < b->n; i++)
		if (a->blocks[i] != b->blocks[i])
			return a->blocks[i] < b->blocks[i] ? -1 : 1;
	if (a->n != b->n)
		return a->n < b->n ? -1 : 1;
	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	if (a->end != b->end)
		return a->end < b->end ? -1 : 1;
	return a->next < b->next ? -1 : a->next > b->next;
}

void path_shape_put(const struct path_shape *s, uint64_t procedure, struct buf *out)
{
	uint64_t last = procedure;

	assert(s->n && s->start < PATH_STARTS && s->end < PATH_ENDS);
	assert(s->end == PATH_NEXT || !s->next);
	buf_u8(out, s->start);
	buf_u8(out, s->end);
	buf_uleb(out, s->n);
	for (uint32_t i = 0; i < s->n; i++) {
		buf_sleb(out, (int64_t)(s->blocks[i] - last));
		last = s->blocks[i];
	}
	if (s->end == PATH_NEXT)
		buf_sleb(out, (int64_t)(s->next - last));
}

int path_shape_read(struct path_shape *s, uint64_t procedure, struct cursor *c, block_list *blocks)
{
	uint64_t last = procedure, n;

	*s = (struct path_shape){.start = cursor_u8(c), .end = cursor_u8(c)};
	n = cursor_uleb(c);
	if (s->start >= PATH_STARTS || s->end >= PATH_ENDS || !n || n > UINT32_MAX ||
		n > cursor_left(c))
		return -EBADMSG;
	blocks->n = 0;
	for (uint64_t i = 0; i < n; i++)
		*vec_add(blocks) = last += (uint64_t)cursor_sleb(c);
	if (s->end == PATH_NEXT)
		s->next = last + (uint64_t)cursor_sleb(c);
	s->n = (uint32_t)n;
	s->blocks = blocks->p;
	return c->failed ? -EBADMSG : 0;
}
