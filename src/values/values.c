#include "values/values_internal.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

enum {
	LINE = 64,
	SLOTS_FIRST = 64,
	SLOTS_KEEP = 4096, /* clear never gives back less than this */
};

/* ---- kinds ---- */

const char *value_kind_name(unsigned kind)
{
	static const char *const names[VALUE_KINDS] = {
		[VALUE_RESULT] = "result",
		[VALUE_SOURCE] = "source",
		[VALUE_ADDRESS] = "address",
		[VALUE_STRIDE] = "stride",
		[VALUE_LATENCY] = "latency",
		[VALUE_CONFLICT] = "conflict",
		[VALUE_FLOAT] = "float",
		[VALUE_LENGTH] = "length",
		[VALUE_ENTRY0] = "entry 0",
		[VALUE_ENTRY1] = "entry 1",
		[VALUE_ENTRY2] = "entry 2",
		[VALUE_ENTRY3] = "entry 3",
		[VALUE_ENTRY4] = "entry 4",
		[VALUE_ENTRY5] = "entry 5",
	};

	if (kind < VALUE_KINDS)
		return names[kind];
	return kind >= VALUE_PLUGIN0 && kind <= UINT16_MAX ? "plugin" : NULL;
}

/* ---- the table ---- */

/* Offsets of instructions differ in few low bits: a widening multiplication spreads them. */
static size_t hash(uint64_t offset, uint64_t context, uint16_t kind)
{
	uint64_t low = offset ^ 0x6a09e667f3bcc909;
	uint64_t high = (context + kind * 0x9e3779b97f4a7c15) ^ 0xbb67ae8584caa73b;
	unsigned __int128 product = (unsigned __int128)low * high;

	return (size_t)(product ^ product >> 64);
}

static void allocate(struct value_profile *p, size_t nslots)
{
	uintptr_t start;

	p->memory = xcalloc(nslots + 1, LINE);
	start = ((uintptr_t)p->memory + LINE - 1) & ~(uintptr_t)(LINE - 1);
	p->slots = (struct value_slot *)start;
	p->nslots = nslots;
}

/* The slot that has the key, or the free one where it belongs. */
static struct value_slot *find_slot(const struct value_profile *p, const struct value_key *key)
{
	size_t mask = p->nslots - 1, i = hash(key->offset, key->context, key->kind) & mask;

	for (;; i = (i + 1) & mask) {
		struct value_slot *s = &p->slots[i];

		if (!s->list.total || (s->offset == key->offset && s->context == key->context &&
					      s->list.tag == key->kind))
			return s;
	}
}

static struct value_key slot_key(const struct value_slot *s)
{
	return (struct value_key){s->offset, s->context, s->list.tag};
}

static void grow(struct value_profile *p)
{
	struct value_profile old = *p;

	allocate(p, old.nslots ? old.nslots * 2 : SLOTS_FIRST);
	for (size_t i = 0; i < old.nslots; i++) {
		struct value_key key = slot_key(&old.slots[i]);

		if (old.slots[i].list.total)
			*find_slot(p, &key) = old.slots[i];
	}
	free(old.memory);
}

static struct hotlist *put_fresh(struct value_profile *p, const struct value_key *key)
{
	struct value_slot *s;

	if (p->n >= p->limit)
		return NULL;
	/* At most two thirds full: a probe more is a line of cache more. */
	if ((p->n + 1) * 3 > p->nslots * 2)
		grow(p);
	s = find_slot(p, key);
	*s = (struct value_slot){
		.offset = key->offset, .context = key->context, .list.tag = key->kind};
	p->n++;
	return &s->list;
}

struct hotlist *value_profile_put(struct value_profile *p, const struct value_key *key)
{
	struct value_slot *s = p->nslots ? find_slot(p, key) : NULL;

	return s && s->list.total ? &s->list : put_fresh(p, key);
}

/* ---- profiles ---- */

struct value_profile *value_profile_create(const struct value_options *o)
{
	static const struct value_options defaults;
	struct value_profile *p = xcalloc(1, sizeof *p);

	if (!o)
		o = &defaults;
	p->pool = hotlist_pool_create(
		o->algorithm, o->capacity ? o->capacity : HOTLIST_CAPACITY, o->seed);
	p->limit = o->keys ? o->keys : VALUE_KEYS;
	return p;
}

void value_profile_destroy(struct value_profile *p)
{
	if (!p)
		return;
	hotlist_pool_destroy(p->pool);
	free(p->memory);
	free(p);
}

void value_profile_clear(struct value_profile *p)
{
	hotlist_pool_clear(p->pool);
	if (p->nslots > SLOTS_KEEP && p->n < p->nslots / 16) {
		free(p->memory);
		p->memory = p->slots = NULL;
		p->nslots = 0;
	} else if (p->n) {
		memset(p->slots, 0, p->nslots * sizeof *p->slots);
	}
	p->n = 0;
	p->refused = 0;
}

void value_profile_add(
	struct value_profile *p, const struct value_key *key, uint64_t value, uint64_t weight)
{
	struct hotlist *h;

	if (!weight)
		return;
	h = value_profile_put(p, key);
	if (h)
		hotlist_add(p->pool, h, value, weight);
	else
		p->refused = hotlist_sum(p->refused, weight);
}

size_t value_profile_keys(const struct value_profile *p)
{
	return p->n;
}

uint64_t value_profile_refused(const struct value_profile *p)
{
	return p->refused;
}

size_t value_profile_bytes(const struct value_profile *p)
{
	return sizeof *p + p->nslots * sizeof *p->slots + hotlist_pool_bytes(p->pool);
}

const struct hotlist *value_profile_find(const struct value_profile *p, const struct value_key *key)
{
	const struct value_slot *s = p->n ? find_slot(p, key) : NULL;

	return s && s->list.total ? &s->list : NULL;
}

size_t value_profile_read(const struct value_profile *p, const struct hotlist *h,
	struct hot_value out[HOTLIST_CAPACITY_MAX])
{
	return hotlist_read(p->pool, h, out);
}

uint64_t value_profile_absent(const struct value_profile *p, const struct hotlist *h)
{
	return hotlist_absent(p->pool, h);
}

static int compare_slots(const void *x, const void *y)
{
	const struct value_slot *a = *(const struct value_slot *const *)x;
	const struct value_slot *b = *(const struct value_slot *const *)y;

	if (a->offset != b->offset)
		return a->offset < b->offset ? -1 : 1;
	if (a->list.tag != b->list.tag)
		return a->list.tag < b->list.tag ? -1 : 1;
	return (a->context > b->context) - (a->context < b->context);
}

int value_profile_each(const struct value_profile *p, value_fn *fn, void *arg)
{
	_cleanup_free_ const struct value_slot **sorted = xcalloc(p->n, sizeof *sorted);
	size_t n = 0;
	int r = 0;

	for (size_t i = 0; i < p->nslots; i++)
		if (p->slots[i].list.total)
			sorted[n++] = &p->slots[i];
	qsort(sorted, n, sizeof *sorted, compare_slots);
	for (size_t i = 0; i < n && !r; i++) {
		struct value_key key = slot_key(sorted[i]);

		r = fn(arg, &key, &sorted[i]->list);
	}
	return r;
}
