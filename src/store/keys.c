#include "store/keys.h"

#include "base/buf.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

static int compare_keys(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

void key_list_settle(struct key_list *k)
{
	uint64_t *p = k->list.p;
	size_t kept = 0;

	vec_sort(&k->list, compare_keys);
	for (size_t i = 0; i < k->list.n; i++)
		if (!kept || p[kept - 1] != p[i])
			p[kept++] = p[i];
	k->list.n = kept;
}

void key_list_put(const struct key_list *k, struct buf *out)
{
	buf_uleb(out, k->list.n);
	vec_each (key, &k->list)
		buf_u64(out, *key);
}

uint64_t key_list_number(const struct key_list *k, uint64_t key)
{
	const uint64_t *found = bsearch(&key, k->list.p, k->list.n, sizeof key, compare_keys);

	assert(found);
	return (uint64_t)(found - k->list.p);
}

void key_list_deinit(struct key_list *k)
{
	vec_deinit(&k->list);
}

uint64_t key_table_at(const struct key_table *t, uint64_t number)
{
	struct cursor c = cursor_over(t->bytes + number * sizeof(uint64_t), sizeof(uint64_t));

	return cursor_u64(&c);
}

int key_table_read(struct key_table *t, struct cursor *c)
{
	uint64_t last = 0;

	t->n = cursor_uleb(c);
	if (t->n > cursor_left(c) / sizeof(uint64_t))
		return -EBADMSG;
	t->bytes = cursor_bytes(c, t->n * sizeof(uint64_t));
	if (c->failed)
		return -EBADMSG;
	for (uint64_t i = 0; i < t->n; i++) {
		uint64_t key = key_table_at(t, i);

		if (key <= last)
			return -EBADMSG;
		last = key;
	}
	return 0;
}
