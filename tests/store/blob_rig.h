/*
 * What every type of blob that comes beside PC profiles must do, whatever is in it: refuse bytes
 * that are cut or make no sense, and live in a database without being samples of its own.
 */
#ifndef CULPRIT_TESTS_STORE_BLOB_RIG_H
#define CULPRIT_TESTS_STORE_BLOB_RIG_H

#include "store/fixture.h"

#define NINE_FF "\xff\xff\xff\xff\xff\xff\xff\xff\xff"

/* No profile: what is wrong with it, and its bytes. */
struct bad_blob {
	const char *why, *bytes;
	size_t n;
};

static inline void assert_refused(
	const struct blob_type *type, const struct bad_blob *bad, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (type->check(bad[i].bytes, bad[i].n) != -EBADMSG) {
			print_error("not refused: %s\n", bad[i].why);
			fail();
		}
	}
}

/* It is good, and nothing shorter is. */
static inline void assert_whole(const struct blob_type *type, const struct buf *b)
{
	assert_int_equal(type->check(b->p, b->n), 0);
	for (size_t cut = 0; cut < b->n; cut++)
		assert_int_equal(type->check(b->p, cut), -EBADMSG);
}

static inline void assert_bytes(const struct buf *b, const uint8_t *want, size_t n)
{
	assert_int_equal(b->n, n);
	assert_memory_equal(b->p, want, n);
}

static inline uint64_t blob_weight(const struct blob_type *type, const struct buf *b)
{
	uint64_t weight = 0;

	assert_int_equal(type->weight(b->p, b->n, &weight), 0);
	return weight;
}

/* Merges, the same both ways, and nothing where one of them is damaged. */
static inline void blob_merge(
	const struct blob_type *type, const struct buf *a, const struct buf *b, struct buf *out)
{
	struct buf other = {0};

	out->n = 0;
	assert_int_equal(type->merge(a->p, a->n, b->p, b->n, out), 0);
	assert_int_equal(type->merge(b->p, b->n, a->p, a->n, &other), 0);
	assert_bytes(out, other.p, other.n);
	other.n = 0;
	assert_int_equal(type->merge(a->p, a->n - 1, b->p, b->n, &other), -EBADMSG);
	assert_int_equal(type->merge(a->p, a->n, b->p, b->n - 1, &other), -EBADMSG);
	assert_int_equal(other.n, 0);
	buf_deinit(&other);
}

/* ---- in a database ---- */

static inline int add_blob(
	struct fixture *f, const struct blob_type *type, int minute, const void *data, size_t n)
{
	return store_profile_add(f->s,
		&(struct store_profile){.epoch = f->epoch,
			.event = f->event.id,
			.image = f->image,
			.process = f->process,
			.t0 = T0 + minute * MINUTE,
			.t1 = T0 + (minute + 1) * MINUTE,
			.type = type,
			.data = data,
			.size = n},
		&f->e);
}

/* Two flushes with PC profiles and these two; returns the samples. */
static inline uint64_t add_two_flushes(struct fixture *f, const struct blob_type *type,
	const struct buf *first, const struct buf *second)
{
	uint64_t samples;

	ok(f, store_begin(f->s, &f->e));
	samples = add_flush(f, 0, 40);
	ok(f, add_blob(f, type, 0, first->p, first->n));
	samples += add_flush(f, 1, 40);
	ok(f, add_blob(f, type, 1, second->p, second->n));
	ok(f, store_commit(f->s, &f->e));
	return samples;
}

static inline int sum_epochs(void *arg, const struct store_epoch *epoch)
{
	*(uint64_t *)arg += epoch->samples;
	return 0;
}

static inline uint64_t epoch_samples(struct fixture *f)
{
	uint64_t samples = 0;

	ok(f, store_epochs(f->s, sum_epochs, &samples, &f->e));
	return samples;
}

/* Compaction leaves one of each, with the same weight. */
static inline void assert_no_samples_of_their_own(struct fixture *f, const struct blob_type *type,
	const struct buf *first, const struct buf *second)
{
	const struct store_filter only = {.type = type}, only_pcs = {.type = &blob_pc};
	uint64_t samples = add_two_flushes(f, type, first, second);
	uint64_t weight = blob_weight(type, first) + blob_weight(type, second);

	for (int compacted = 0; compacted < 2; compacted++) {
		assert_int_equal(profile_samples(f, &only_pcs), samples);
		assert_int_equal(epoch_samples(f), samples);
		assert_int_equal(profile_samples(f, &only), weight);
		assert_sound(f);
		if (!compacted)
			ok(f, store_compact(f->s, INT64_MAX, INT64_MAX, &f->e));
	}
	assert_int_equal(profile_rows(f, NULL), 2);
}

static inline void assert_come_along_and_expire(struct fixture *f, const struct blob_type *type,
	const struct buf *first, const struct buf *second)
{
	const struct store_filter only = {.type = type};
	uint64_t rest = blob_weight(type, second), weight = blob_weight(type, first) + rest;
	struct fixture other = {0};

	add_two_flushes(f, type, first, second);
	snprintf(other.path, sizeof other.path, "%s/other.db", f->dir);
	ok(&other, store_open(other.path, STORE_WRITE, &other.s, &other.e));
	ok(&other, store_merge(other.s, f->s, &other.e));
	assert_int_equal(profile_samples(&other, &only), weight);
	assert_sound(&other);
	ok(&other, store_expire(other.s, T0 + MINUTE, 0, &other.e));
	assert_int_equal(profile_samples(&other, &only), rest);
	assert_sound(&other);
	store_close(other.s);
}

static inline void assert_damaged_stay_out(
	struct fixture *f, const struct blob_type *type, const void *bytes, size_t n)
{
	ok(f, store_begin(f->s, &f->e));
	fails(f, add_blob(f, type, 0, bytes, n), -EBADMSG, type->name);
	store_rollback(f->s);
	assert_int_equal(profile_rows(f, NULL), 0);
}

#endif
