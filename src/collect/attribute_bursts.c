#include "collect/attribute_bursts.h"

#include "base/mem.h"
#include "values/values.h"

#include <stdlib.h>

enum {
	EDGES_MOST = 256 << 10,
	STAYS_MOST = 256 << 10,
	KEYS_MOST = 32 << 10, /* of a group's values */
};

void bursts_init(struct bursts *b)
{
	*b = (struct bursts){0};
	hmap_init(&b->groups, sizeof(struct burst_group), offsetof(struct burst_group, edges));
}

void bursts_clear(struct bursts *b)
{
	for (struct burst_group *g = NULL; (g = hmap_next(&b->groups, g));) {
		hmap_deinit(&g->edges);
		hmap_deinit(&g->stays);
		value_profile_destroy(g->values);
	}
	hmap_clear(&b->groups);
	b->edges = b->stays = 0;
	b->refused = 0;
}

void bursts_deinit(struct bursts *b)
{
	bursts_clear(b);
	hmap_deinit(&b->groups);
}

struct burst_group *bursts_group(struct bursts *b, uint32_t image, uint32_t who)
{
	struct burst_group key = {.image = image, .who = who}, *g;
	bool fresh;

	g = hmap_put(&b->groups, &key, &fresh);
	if (fresh) {
		hmap_init(&g->edges, sizeof(struct burst_edge), offsetof(struct burst_edge, count));
		hmap_init(&g->stays, sizeof(struct stay), offsetof(struct stay, kept));
	}
	return g;
}

void bursts_edge(
	struct bursts *b, struct burst_group *g, uint64_t from, uint32_t target, uint64_t to)
{
	bursts_edges(b, g, from, target, to, 1);
}

void bursts_edges(struct bursts *b, struct burst_group *g, uint64_t from, uint32_t target,
	uint64_t to, uint64_t count)
{
	struct burst_edge key = {.from = from, .to = to, .target = target}, *edge;
	bool fresh = false;

	edge = b->edges < EDGES_MOST ? hmap_put(&g->edges, &key, &fresh)
				     : hmap_get(&g->edges, &key);
	if (edge)
		edge->count += count;
	else
		b->refused += count;
	b->edges += fresh;
}

void bursts_stay(struct bursts *b, struct burst_group *g, const struct stay *s)
{
	struct stay *sum;
	bool fresh = false;

	sum = b->stays < STAYS_MOST ? hmap_put(&g->stays, s, &fresh) : hmap_get(&g->stays, s);
	b->stays += fresh;
	if (!sum)
		return;
	sum->kept += s->kept;
	sum->gone += s->gone;
}

struct value_profile *bursts_values(struct burst_group *g)
{
	if (!g->values)
		g->values = value_profile_create(&(struct value_options){.keys = KEYS_MOST});
	return g->values;
}

static int compare_groups(const void *a, const void *b)
{
	const struct burst_group *x = *(struct burst_group *const *)a;
	const struct burst_group *y = *(struct burst_group *const *)b;

	if (x->image != y->image)
		return x->image < y->image ? -1 : 1;
	return x->who < y->who ? -1 : x->who > y->who;
}

struct burst_group **bursts_sorted(const struct bursts *b)
{
	struct burst_group **list = xcalloc(b->groups.n + 1, sizeof *list);
	size_t n = 0;

	for (struct burst_group *g = NULL; (g = hmap_next(&b->groups, g));)
		list[n++] = g;
	qsort(list, n, sizeof *list, compare_groups);
	return list;
}

static int add_offset(void *arg, const struct value_key *key, const struct hotlist *h)
{
	struct offsets *out = arg;

	(void)h;
	if (!out->list.n || out->list.p[out->list.n - 1].offset != key->offset)
		*vec_add(&out->list) = (struct pc_count){.offset = key->offset, .count = 1};
	return 0;
}

void burst_group_offsets(const struct burst_group *g, struct offsets *out)
{
	for (const struct burst_edge *e = NULL; (e = hmap_next(&g->edges, e));)
		*vec_add(&out->list) = (struct pc_count){.offset = e->from, .count = 1};
	if (g->values)
		value_profile_each(g->values, add_offset, out);
}

size_t bursts_memory(const struct bursts *b)
{
	size_t bytes = b->groups.slots * (sizeof(struct burst_group) + sizeof(uint32_t));

	for (const struct burst_group *g = NULL; (g = hmap_next(&b->groups, g));) {
		bytes += g->edges.slots * (sizeof(struct burst_edge) + sizeof(uint32_t));
		bytes += g->stays.slots * (sizeof(struct stay) + sizeof(uint32_t));
		bytes += g->values ? value_profile_bytes(g->values) : 0;
	}
	return bytes;
}
