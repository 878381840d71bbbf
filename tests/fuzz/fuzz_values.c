/*
 * Value profiles from any bytes: what decodes survives packing again, tells consistent bounds,
 * merges without losing a value, and is a profile still when values are added to it.
 */
#include "base/buf.h"
#include "values/values_pack.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

static int check_list(void *arg, const struct value_key *key, const struct hotlist *h)
{
	struct value_profile *p = arg;
	struct hot_value list[HOTLIST_CAPACITY_MAX];
	size_t n = value_profile_read(p, h, list);

	require(h->total && value_profile_find(p, key) == h);
	require(value_profile_absent(p, h) <= h->total);
	for (size_t i = 0; i < n; i++)
		require(list[i].low <= list[i].count && list[i].count <= list[i].high &&
			list[i].high <= h->total && list[i].error >= 0 &&
			(!i || list[i].count <= list[i - 1].count));
	return 0;
}

/* Packed anew, or NULL when the bytes are no profile; capacities may differ from theirs. */
static struct value_profile *read_profile(
	const uint8_t *p, size_t n, struct value_options *o, struct buf *packed)
{
	struct value_profile *profile;
	uint64_t weight, again;

	if (blob_value.weight(p, n, &weight))
		return NULL;
	o->algorithm = p[0] == HOTLIST_COUNTING ? HOTLIST_COUNTING : HOTLIST_SPACE_SAVING;
	profile = value_profile_create(o);
	if (value_profile_unpack(profile, p, n)) { /* a number written longer than it need be */
		value_profile_destroy(profile);
		return NULL;
	}
	value_profile_each(profile, check_list, profile);
	value_profile_pack(profile, packed);
	require(!blob_value.weight(packed->p, packed->n, &again) && again == weight);
	return profile;
}

static void merge_both_ways(const struct buf *a, const struct buf *b)
{
	struct buf ab = {0}, ba = {0};
	uint64_t wa = 0, wb = 0, sum = 0;

	if (!blob_value.merge(a->p, a->n, b->p, b->n, &ab)) {
		require(!blob_value.merge(b->p, b->n, a->p, a->n, &ba));
		require(!blob_value.weight(a->p, a->n, &wa) && !blob_value.weight(b->p, b->n, &wb));
		require(!blob_value.weight(ab.p, ab.n, &sum) && sum == hotlist_sum(wa, wb));
		/* Counting samples toss coins in another order. */
		if (a->p[0] == HOTLIST_SPACE_SAVING)
			require(ab.n == ba.n && !memcmp(ab.p, ba.p, ab.n));
	} else {
		require(a->p[0] != b->p[0]);
	}
	buf_deinit(&ab);
	buf_deinit(&ba);
}

static void go_on(struct value_profile *p, const uint8_t *bytes, size_t n)
{
	struct buf packed = {0};

	for (size_t i = 0; i + 2 < n; i++)
		value_profile_add(p, &(struct value_key){.offset = bytes[i] % 8}, bytes[i + 1] % 32,
			bytes[i + 2] == 255 ? UINT64_MAX : bytes[i + 2]);
	value_profile_each(p, check_list, p);
	value_profile_pack(p, &packed);
	require(!blob_value.check(packed.p, packed.n));
	buf_deinit(&packed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct value_options one = {.capacity = 4}, other = {.keys = 5};
	struct buf a = {0}, b = {0};
	struct value_profile *pa, *pb;
	size_t half;

	if (!size)
		return 0;
	half = 1 + (size - 1) * data[0] / 255;
	pa = read_profile(data + 1, half - 1, &one, &a);
	pb = read_profile(data + half, size - half, &other, &b);
	if (pa && pb)
		merge_both_ways(&a, &b);
	if (pa)
		go_on(pa, data, size);
	value_profile_destroy(pa);
	value_profile_destroy(pb);
	buf_deinit(&a);
	buf_deinit(&b);
	return 0;
}
