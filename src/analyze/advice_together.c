#include "analyze/advice_together.h"

#include "base/hmap.h"
#include "base/mem.h"
#include "base/vec.h"

#include <stdlib.h>

#define STEPS_LEAST 16
#define SAME_LEAST  0.6
#define NEAR_MOST   0.5

/* The last instance of each group that a burst touched lately. */
#define RECENT 4
struct recent {
	uint32_t group;
	uint64_t instance, last;
};

struct pair_key {
	uint32_t from, to;
};

struct pair {
	struct pair_key key;
	struct pair_advice sum;
};

struct link_key {
	uint64_t instance;
	uint32_t to, none;
};

struct link {
	struct link_key key;
	uint64_t partner;
};

struct pairs {
	struct recent recent[RECENT]; /* the latest first */
	struct hmap pairs, links;
	VEC(struct pair_advice) list;
};

static uint64_t distance(uint64_t a, uint64_t b)
{
	uint64_t x = a / TOUCH_LINE, y = b / TOUCH_LINE;

	return x < y ? y - x : x - y;
}

static void step(struct pairs *p, const struct recent *from, const struct touch *t)
{
	struct pair_key key = {from->group, t->thing.group};
	struct link_key way = {from->instance, t->thing.group, 0};
	struct pair *pair = hmap_put(&p->pairs, &key, NULL);
	struct link *link;
	bool fresh;

	pair->sum.steps++;
	pair->sum.near += distance(from->instance, t->instance) <= 1;
	link = hmap_put(&p->links, &way, &fresh);
	pair->sum.known += !fresh;
	pair->sum.same += !fresh && link->partner == t->instance;
	link->partner = t->instance;
}

/* A step is from what was touched last of each group to what is touched now for the first time. */
void pairs_take(struct pairs *p, const struct touch *t)
{
	struct recent now = {t->thing.group, t->instance, t->number + 1};
	size_t at = RECENT - 1;

	if (t->thing.kind != THING_HEAP || t->thing.group == OBJECT_NONE)
		return;
	for (size_t i = 0; i < RECENT; i++)
		if (p->recent[i].last && p->recent[i].group == now.group) {
			at = i;
			break;
		}
	if (!p->recent[at].last || p->recent[at].group != now.group ||
		p->recent[at].instance != now.instance)
		for (size_t i = 0; i < RECENT; i++)
			if (p->recent[i].last && now.last - p->recent[i].last <= TOUCH_WINDOW)
				step(p, &p->recent[i], t);
	for (; at; at--)
		p->recent[at] = p->recent[at - 1];
	p->recent[0] = now;
}

static int by_steps(const void *a, const void *b)
{
	const struct pair_advice *x = a, *y = b;

	if (x->steps != y->steps)
		return x->steps > y->steps ? -1 : 1;
	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return x->to < y->to ? -1 : x->to > y->to;
}

size_t pairs_settle(struct pairs *p, const struct pair_advice **out)
{
	for (const struct pair *r = NULL; (r = hmap_next(&p->pairs, r));) {
		struct pair_advice *a = vec_add(&p->list);

		*a = r->sum;
		a->from = r->key.from;
		a->to = r->key.to;
	}
	vec_sort(&p->list, by_steps);
	*out = p->list.p;
	return p->list.n;
}

bool pair_is_advised(const struct pair_advice *a)
{
	return a->known >= STEPS_LEAST && (double)a->same >= SAME_LEAST * (double)a->known &&
	       (double)a->near <= NEAR_MOST * (double)a->steps;
}

struct pairs *pairs_create(void)
{
	struct pairs *p = xcalloc(1, sizeof *p);

	hmap_init(&p->pairs, sizeof(struct pair), sizeof(struct pair_key));
	hmap_init(&p->links, sizeof(struct link), sizeof(struct link_key));
	return p;
}

void pairs_destroy(struct pairs *p)
{
	if (!p)
		return;
	hmap_deinit(&p->pairs);
	hmap_deinit(&p->links);
	vec_deinit(&p->list);
	free(p);
}
