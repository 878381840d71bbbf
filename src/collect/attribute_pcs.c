#include "collect/attribute_pcs.h"

#include "base/mem.h"

#include <stdlib.h>

enum { SLOTS_FIRST = 8 };

void pcs_init(struct pcs *p)
{
	*p = (struct pcs){0};
	hmap_init(&p->groups, sizeof(struct pc_group), offsetof(struct pc_group, n));
}

void pcs_clear(struct pcs *p)
{
	for (struct pc_group *g = NULL; (g = hmap_next(&p->groups, g));)
		free(g->entries);
	hmap_clear(&p->groups);
	p->last = NULL;
	p->n = p->slots = 0;
}

void pcs_deinit(struct pcs *p)
{
	pcs_clear(p);
	hmap_deinit(&p->groups);
}

/* The entry of an offset, or the free one where it belongs (Fibonacci hashing). */
static struct pc_entry *find_entry(const struct pc_group *g, uint32_t offset)
{
	uint32_t i = (uint32_t)((uint64_t)(offset * 0x9e3779b1u) * g->slots >> 32);

	while (g->entries[i].samples && g->entries[i].offset != offset)
		i = (i + 1) & (g->slots - 1);
	return &g->entries[i];
}

static void grow(struct pcs *p, struct pc_group *g)
{
	struct pc_group old = *g;

	g->slots = old.slots ? old.slots * 2 : SLOTS_FIRST;
	g->entries = xcalloc(g->slots, sizeof *g->entries);
	for (uint32_t i = 0; i < old.slots; i++) {
		if (old.entries[i].samples)
			*find_entry(g, old.entries[i].offset) = old.entries[i];
	}
	p->slots += g->slots - old.slots;
	free(old.entries);
}

static struct pc_group *find_group(
	struct pcs *p, uint32_t image, uint32_t who, uint32_t high, size_t most)
{
	struct pc_group key = {.image = image, .who = who, .high = high};

	if (p->last && p->last->image == image && p->last->who == who && p->last->high == high)
		return p->last;
	p->last = p->n < most ? hmap_put(&p->groups, &key, NULL) : hmap_get(&p->groups, &key);
	return p->last;
}

bool pcs_add(
	struct pcs *p, uint32_t image, uint32_t who, uint64_t offset, uint32_t samples, size_t most)
{
	struct pc_group *g;
	struct pc_entry *e;

	g = samples ? find_group(p, image, who, (uint32_t)(offset >> 32), most) : NULL;
	if (!g)
		return false;
	e = g->slots ? find_entry(g, (uint32_t)offset) : NULL;
	if (e && e->samples > UINT32_MAX - samples)
		return false;
	if (!e || !e->samples) {
		if (p->n >= most)
			return false;
		if ((g->n + 1) * 4 > g->slots * 3) {
			grow(p, g);
			e = find_entry(g, (uint32_t)offset);
		}
		e->offset = (uint32_t)offset;
		g->n++;
		p->n++;
	}
	e->samples += samples;
	return true;
}

static int compare_groups(const void *a, const void *b)
{
	const struct pc_group *x = *(const struct pc_group *const *)a;
	const struct pc_group *y = *(const struct pc_group *const *)b;

	if (x->image != y->image)
		return x->image < y->image ? -1 : 1;
	if (x->who != y->who)
		return x->who < y->who ? -1 : 1;
	return x->high < y->high ? -1 : x->high > y->high;
}

const struct pc_group **pcs_sorted(const struct pcs *p)
{
	const struct pc_group **list = xcalloc(p->groups.n + 1, sizeof *list);
	size_t n = 0;

	for (const struct pc_group *g = NULL; (g = hmap_next(&p->groups, g));)
		list[n++] = g;
	qsort(list, n, sizeof *list, compare_groups);
	return list;
}

static int compare_counts(const void *a, const void *b)
{
	const struct pc_count *x = a, *y = b;

	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

void pc_group_list(const struct pc_group *g, struct pc_count *out)
{
	size_t n = 0;

	for (uint32_t i = 0; i < g->slots; i++) {
		if (g->entries[i].samples)
			out[n++] = (struct pc_count){
				.offset = (uint64_t)g->high << 32 | g->entries[i].offset,
				.count = g->entries[i].samples};
	}
	if (n)
		qsort(out, n, sizeof *out, compare_counts);
}

size_t pcs_memory(const struct pcs *p)
{
	return p->groups.slots * (sizeof(struct pc_group) + sizeof(uint32_t)) +
	       p->slots * sizeof(struct pc_entry);
}
