#include "values/values_pack.h"

#include "base/buf.h"
#include "base/cursor.h"
#include "base/hmap.h"
#include "values/values_internal.h"

#include <errno.h>

/*
 * A value profile:
 *
 *   uleb    algorithm, capacity of the lists
 *   uleb    weight of refused values
 *   uleb    number of keys
 *   keys, by offset, kind and context, each:
 *     uleb    offset less that of the key before
 *     uleb    kind * 2, + 1 when there is a context other than 0
 *     u64     context; only then
 *     list    see hotlist_pack.c
 *
 *  1. Algorithm and capacity are possible ones; kinds are 16 bits.
 *  2. No key is there twice.
 *  3. The last list ends the profile.
 */
#define KEY_BYTES 5 /* of the shortest key with its list */

/* ---- packing ---- */

struct packing {
	const struct value_profile *p;
	struct buf *out;
	uint64_t offset; /* of the key before */
};

static int pack_key(void *arg, const struct value_key *key, const struct hotlist *h)
{
	struct packing *k = arg;

	buf_uleb(k->out, key->offset - k->offset);
	buf_uleb(k->out, (uint64_t)key->kind << 1 | (key->context != 0));
	if (key->context)
		buf_u64(k->out, key->context);
	hotlist_pack(k->p->pool, h, k->out);
	k->offset = key->offset;
	return 0;
}

void value_profile_pack(const struct value_profile *p, struct buf *out)
{
	struct packing k = {.p = p, .out = out};

	buf_uleb(out, hotlist_pool_algorithm(p->pool));
	buf_uleb(out, hotlist_pool_capacity(p->pool));
	buf_uleb(out, p->refused);
	buf_uleb(out, p->n);
	value_profile_each(p, pack_key, &k);
}

/* ---- unpacking ---- */

struct value_reader {
	struct cursor c;
	struct hotlist_pool *pool; /* as the packed lists were made */
	struct value_key key;      /* the one read last */
	uint64_t refused, keys, left;
};

static int reader_init(struct value_reader *r, const void *data, size_t n)
{
	uint64_t algorithm, capacity;

	*r = (struct value_reader){.c = cursor_over(data, n)};
	algorithm = cursor_uleb(&r->c);
	capacity = cursor_uleb(&r->c);
	r->refused = cursor_uleb(&r->c);
	r->keys = r->left = cursor_uleb(&r->c);
	if (r->c.failed || algorithm >= HOTLIST_ALGORITHMS || capacity < 2 ||
		capacity > HOTLIST_CAPACITY_MAX || r->keys > cursor_left(&r->c) / KEY_BYTES)
		return -EBADMSG;
	/* The lists themselves are packed; nothing random happens in this pool. */
	r->pool = hotlist_pool_create((enum hotlist_algorithm)algorithm, (unsigned)capacity, 0);
	return 0;
}

static void reader_deinit(struct value_reader *r)
{
	hotlist_pool_destroy(r->pool);
	r->pool = NULL;
}

static bool take_key(struct value_reader *r)
{
	struct value_key before = r->key, *key = &r->key;
	bool first = r->left == r->keys;
	uint64_t head;

	if (__builtin_add_overflow(before.offset, cursor_uleb(&r->c), &key->offset))
		return false;
	head = cursor_uleb(&r->c);
	key->kind = (uint16_t)(head >> 1);
	key->context = head & 1 ? cursor_u64(&r->c) : 0;
	if (r->c.failed || head >> 17 || (head & 1 && !key->context))
		return false;
	return first || key->offset > before.offset || key->kind > before.kind ||
	       (key->kind == before.kind && key->context > before.context);
}

/* 1 and the next key and its list (to be released), 0 at the end, -EBADMSG. */
static int reader_next(struct value_reader *r, struct hotlist *h)
{
	*h = (struct hotlist){0};
	if (!r->left)
		return cursor_left(&r->c) ? -EBADMSG : 0;
	if (!take_key(r) || hotlist_unpack(r->pool, h, &r->c))
		return -EBADMSG;
	r->left--;
	return 1;
}

static int value_weight(const void *data, size_t n, uint64_t *samples)
{
	struct value_reader r;
	struct hotlist h;
	uint64_t sum;
	int got;

	if (reader_init(&r, data, n))
		return -EBADMSG;
	sum = r.refused;
	while ((got = reader_next(&r, &h)) > 0) {
		sum = hotlist_sum(sum, h.total);
		hotlist_release(r.pool, &h);
	}
	reader_deinit(&r);
	if (!got)
		*samples = sum;
	return got;
}

static int value_check(const void *data, size_t n)
{
	uint64_t samples;

	return value_weight(data, n, &samples);
}

/* Of bytes that were checked. */
static void add_all(struct value_profile *p, struct value_reader *r)
{
	struct hotlist h, *into;

	p->refused = hotlist_sum(p->refused, r->refused);
	while (reader_next(r, &h) > 0) {
		into = value_profile_put(p, &r->key);
		if (into)
			hotlist_merge(p->pool, into, &h);
		else
			p->refused = hotlist_sum(p->refused, h.total);
		hotlist_release(r->pool, &h);
	}
}

int value_profile_unpack(struct value_profile *p, const void *data, size_t n)
{
	struct value_reader r;
	int result = -EINVAL;

	if (value_check(data, n) || reader_init(&r, data, n))
		return -EBADMSG;
	if (hotlist_pool_algorithm(r.pool) == hotlist_pool_algorithm(p->pool)) {
		add_all(p, &r);
		result = 0;
	}
	reader_deinit(&r);
	return result;
}

/* ---- as a type of blob ---- */

static int options_of(const void *data, size_t n, struct value_options *o)
{
	struct value_reader r;

	if (reader_init(&r, data, n))
		return -EBADMSG;
	o->algorithm = hotlist_pool_algorithm(r.pool);
	if (o->capacity < hotlist_pool_capacity(r.pool))
		o->capacity = hotlist_pool_capacity(r.pool);
	reader_deinit(&r);
	return 0;
}

static int value_merge(const void *a, size_t na, const void *b, size_t nb, struct buf *out)
{
	struct value_options o = {.keys = SIZE_MAX};
	struct value_profile *p;
	int r;

	if (options_of(a, na, &o) || options_of(b, nb, &o))
		return -EBADMSG;
	/* Merging again is to give the same bytes, merging others other random numbers. */
	o.seed = hash_bytes(a, na) + hash_bytes(b, nb);
	p = value_profile_create(&o);
	r = value_profile_unpack(p, a, na);
	if (!r)
		r = value_profile_unpack(p, b, nb);
	if (!r)
		value_profile_pack(p, out);
	value_profile_destroy(p);
	return r;
}

const struct blob_type blob_value = {
	.name = "value",
	.merge = value_merge,
	.check = value_check,
	.weight = value_weight,
};

int value_store_open(const char *path, enum store_mode mode, struct store **out, struct err *e)
{
	int r = store_open(path, mode, out, e);

	if (r == 0)
		store_register(*out, &blob_value);
	return r;
}
