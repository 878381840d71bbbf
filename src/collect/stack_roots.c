#include "collect/stack_roots.h"

#include "base/vec.h"

#include <string.h>

/* Of a process, and processes with any: when there are more, all are learned again. */
enum { MOST_ROOTS = 1024, MOST_OWNERS = 1024 };

struct owner {
	uint64_t key;
	VEC(struct stack_root) roots; /* by base */
};

void stack_roots_init(struct stack_roots *r)
{
	hmap_init(&r->owners, sizeof(struct owner), sizeof(uint64_t));
}

static void forget_all(struct stack_roots *r)
{
	for (struct owner *o = NULL; (o = hmap_next(&r->owners, o));)
		vec_deinit(&o->roots);
	hmap_clear(&r->owners);
}

void stack_roots_deinit(struct stack_roots *r)
{
	forget_all(r);
	hmap_deinit(&r->owners);
}

/* The first root above the address, or their number. */
static size_t above(const struct owner *o, uint64_t address)
{
	size_t low = 0, high = o->roots.n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (o->roots.p[middle].base <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void stack_roots_add(struct stack_roots *r, uint64_t owner, const struct stack_root *root)
{
	struct owner *o;
	size_t at;

	if (r->owners.n >= MOST_OWNERS && !hmap_get(&r->owners, &owner))
		forget_all(r);
	o = hmap_put(&r->owners, &owner, NULL);
	if (o->roots.n >= MOST_ROOTS)
		o->roots.n = 0;
	at = above(o, root->base - 1);
	if (at == o->roots.n || o->roots.p[at].base != root->base) {
		(void)vec_add(&o->roots);
		memmove(&o->roots.p[at + 1], &o->roots.p[at],
			(o->roots.n - 1 - at) * sizeof *o->roots.p);
	}
	o->roots.p[at] = *root;
}

const struct stack_root *stack_roots_find(
	const struct stack_roots *r, uint64_t owner, uint64_t address)
{
	const struct owner *o = hmap_get(&r->owners, &owner);
	size_t at = o ? above(o, address) : 0;

	if (!o || at == o->roots.n || o->roots.p[at].base - address > o->roots.p[at].size)
		return NULL;
	return &o->roots.p[at];
}

bool stack_roots_knows(const struct stack_roots *r, uint64_t owner)
{
	return hmap_get(&r->owners, &owner);
}

size_t stack_roots_memory(const struct stack_roots *r)
{
	size_t sum = r->owners.slots * sizeof(struct owner);

	for (const struct owner *o = NULL; (o = hmap_next(&r->owners, o));)
		sum += o->roots.n * sizeof *o->roots.p;
	return sum;
}
