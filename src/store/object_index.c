#include "store/object_index.h"

#include "base/mem.h"

#include <stdlib.h>

#define PAGE_BITS   12
#define PAGES_LARGE 16 /* what lies on more is in a list of its own */

struct page_key {
	uint64_t page;
	uint32_t process, none;
};

/* Objects on a page, linked. */
struct page {
	struct page_key key;
	uint32_t first; /* link + 1 */
};

struct link {
	uint32_t object, next; /* next: link + 1 */
};

struct object_index {
	const struct object_set *set;
	struct hmap pages;
	VEC(struct link) links;
	VEC(uint32_t) large;
};

static bool holds(const struct object *o, uint32_t process, uint64_t time, uint64_t address)
{
	return o->process == process && o->born <= time && address - o->address < o->size;
}

static void add(struct object_index *x, uint32_t number)
{
	const struct object *o = &x->set->objects.p[number];
	uint64_t first = o->address >> PAGE_BITS, last;

	if (!o->size || o->address + o->size < o->address)
		return;
	last = (o->address + o->size - 1) >> PAGE_BITS;
	if (last - first >= PAGES_LARGE) {
		*vec_add(&x->large) = number;
		return;
	}
	for (uint64_t at = first; at <= last; at++) {
		struct page_key key = {at, o->process, 0};
		struct page *p = hmap_put(&x->pages, &key, NULL);

		*vec_add(&x->links) = (struct link){number, p->first};
		p->first = (uint32_t)x->links.n;
	}
}

struct object_index *object_index_create(const struct object_set *s)
{
	struct object_index *x = xcalloc(1, sizeof *x);

	x->set = s;
	hmap_init(&x->pages, sizeof(struct page), sizeof(struct page_key));
	for (size_t i = 0; i < s->objects.n; i++)
		add(x, (uint32_t)i);
	return x;
}

void object_index_destroy(struct object_index *x)
{
	if (!x)
		return;
	hmap_deinit(&x->pages);
	vec_deinit(&x->links);
	vec_deinit(&x->large);
	free(x);
}

uint32_t object_index_find(
	const struct object_index *x, uint32_t process, uint64_t time, uint64_t address)
{
	const struct object *list = x->set->objects.p;
	struct page_key key = {address >> PAGE_BITS, process, 0};
	const struct page *p = hmap_get(&x->pages, &key);
	uint32_t best = OBJECT_NONE;

	for (uint32_t at = p ? p->first : 0; at; at = x->links.p[at - 1].next) {
		uint32_t o = x->links.p[at - 1].object;

		if (holds(&list[o], process, time, address) &&
			(best == OBJECT_NONE || list[o].born > list[best].born))
			best = o;
	}
	vec_each (o, &x->large)
		if (holds(&list[*o], process, time, address) &&
			(best == OBJECT_NONE || list[*o].born > list[best].born))
			best = *o;
	return best;
}
