/*
 * A database in a directory of its own, with a host, an epoch, an event, an image and a process;
 * and flushes whose contents follow from their number.
 */
#ifndef CULPRIT_TESTS_STORE_FIXTURE_H
#define CULPRIT_TESTS_STORE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "store/pack.h"
#include "store/store.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define T0     1700000000000000 /* when epochs start */
#define MINUTE 60000000ll

struct fixture {
	char dir[64], path[96];
	struct store *s;
	struct err e;
	int64_t host, epoch, image, process;
	struct store_event event;
};

/* The call must succeed; its message is shown when it does not. */
#define ok(f, call)                                                          \
	do {                                                                 \
		(f)->e = (struct err){0};                                    \
		int r_ = (call);                                             \
		if (r_)                                                      \
			print_error("%s: %d: %s\n", #call, r_, (f)->e.text); \
		assert_int_equal(r_, 0);                                     \
	} while (0)

/* The call must fail with this code and one line that holds `words`. */
#define fails(f, call, code_, words)                                         \
	do {                                                                 \
		(f)->e = (struct err){0};                                    \
		assert_int_equal(call, code_);                               \
		assert_int_equal((f)->e.code, code_);                        \
		assert_null(strchr((f)->e.text, '\n'));                      \
		if (!strstr((f)->e.text, words))                             \
			print_error("no '%s' in: %s\n", words, (f)->e.text); \
		assert_non_null(strstr((f)->e.text, words));                 \
	} while (0)

static inline void remove_directory(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *entry;

	while (d && (entry = readdir(d))) {
		char path[512];

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof path, "%s/%s", dir, entry->d_name);
		unlink(path);
	}
	if (d)
		closedir(d);
	rmdir(dir);
}

static inline void fixture_paths(struct fixture *f)
{
	/* In memory where possible: the tests write much and no power will be cut. */
	const char *tmp = access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm";

	snprintf(f->dir, sizeof f->dir, "%s/culprit-store-XXXXXX", tmp);
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->path, sizeof f->path, "%s/t.db", f->dir);
}

static inline struct store_image sample_image(const char *path, uint8_t seed)
{
	static const struct segment segments[] = {
		{0x1000, 0x9000, 0x401000}, {0xb000, 16, 0x60b000}};
	struct store_image im = {.kind = IMAGE_ELF, .path = path};

	if (seed) {
		im.identity.size = 20;
		memset(im.identity.bytes, seed, 20);
		im.segments = segments;
		im.nsegments = 2;
	}
	return im;
}

/* A host, an epoch that starts at T0, and one of each other thing; in the open transaction. */
static inline void fixture_fill(struct fixture *f)
{
	const struct store_host host = {"box", "0123abcd", "Zen 4", "6.18", 2};
	struct store_image im = sample_image("/usr/bin/gzip", 7);

	ok(f, store_host(f->s, &host, &f->host, &f->e));
	ok(f, store_epoch_start(f->s, f->host, T0, "", &f->epoch, &f->e));
	f->event = (struct store_event){
		.epoch = f->epoch, .name = "cpu-clock", .unit = "ns", .period = 1e6, .rate = 1000};
	ok(f, store_event(f->s, &f->event, &f->e));
	ok(f, store_image(f->s, &im, &f->image, &f->e));
	ok(f, store_process(f->s,
		      &(struct store_process){.epoch = f->epoch, .comm = "gzip", .cgroup = "/a"},
		      &f->process, &f->e));
}

/* The PC profile of flush `number`: `n` PCs; returns the samples. */
static inline uint64_t sample_pcs(uint64_t number, size_t n, struct buf *out)
{
	struct pc_count *list = xcalloc(n, sizeof *list);
	uint64_t samples = 0, offset = 0x1000;

	for (size_t i = 0; i < n; i++) {
		offset += 1 + (i * 7 + number * 3) % 40;
		list[i] = (struct pc_count){offset, 1 + (i + number) % 5};
		samples += list[i].count;
	}
	pack_pcs(list, n, out);
	free(list);
	return samples;
}

/* One flush of a minute into the open transaction; returns the samples. */
static inline uint64_t add_flush(struct fixture *f, uint64_t number, size_t n)
{
	int64_t t0 = T0 + (int64_t)number * MINUTE, t1 = t0 + MINUTE;
	struct buf data = {0};
	uint64_t samples = sample_pcs(number, n, &data);
	struct store_profile profile = {
		.epoch = f->epoch,
		.event = f->event.id,
		.image = f->image,
		.process = f->process,
		.t0 = t0,
		.t1 = t1,
		.type = &blob_pc,
		.data = data.p,
		.size = data.n,
	};
	const struct store_total rows[] = {
		{1000, 1000, T0 - 5, "gzip", "gzip", "/a", 0, f->image, f->event.id, samples - 2},
		{1000, 1001, T0 - 5, "gzip", "worker", "/a", 1, f->image, f->event.id, 2},
	};
	const struct store_account account = {
		.attributed = samples - 1, .unknown = 1, .lost = 2, .expected = 100, .scale = 1};

	ok(f, store_profile_add(f->s, &profile, &f->e));
	ok(f, store_totals_add(f->s, f->epoch, t0, t1, rows, 2, &f->e));
	ok(f, store_account_add(f->s, f->event.id, t0, t1, &account, &f->e));
	buf_deinit(&data);
	return samples;
}

static inline int setup(void **state)
{
	struct fixture *f = xcalloc(1, sizeof *f);

	fixture_paths(f);
	*state = f;
	ok(f, store_open(f->path, STORE_WRITE, &f->s, &f->e));
	ok(f, store_begin(f->s, &f->e));
	fixture_fill(f);
	ok(f, store_commit(f->s, &f->e));
	return 0;
}

static inline int teardown(void **state)
{
	struct fixture *f = *state;

	store_close(f->s);
	remove_directory(f->dir);
	free(f);
	return 0;
}

/* ---- sums over what a database holds ---- */

static inline int add_profile_samples(void *arg, const struct store_profile *p)
{
	uint64_t n = 0;

	if (p->type->weight && p->type->weight(p->data, p->size, &n))
		return -EBADMSG;
	*(uint64_t *)arg += n;
	return 0;
}

static inline uint64_t profile_samples(struct fixture *f, const struct store_filter *filter)
{
	uint64_t sum = 0;

	ok(f, store_profiles(f->s, filter, add_profile_samples, &sum, &f->e));
	return sum;
}

static inline int add_total_samples(
	void *arg, const struct store_total *row, int64_t t0, int64_t t1)
{
	(void)t0;
	(void)t1;
	*(uint64_t *)arg += row->samples;
	return 0;
}

static inline uint64_t total_samples(struct fixture *f, const struct store_filter *filter)
{
	uint64_t sum = 0;

	ok(f, store_totals(f->s, filter, add_total_samples, &sum, &f->e));
	return sum;
}

static inline int count_profile(void *arg, const struct store_profile *p)
{
	(void)p;
	++*(int *)arg;
	return 0;
}

static inline int profile_rows(struct fixture *f, const struct store_filter *filter)
{
	int n = 0;

	ok(f, store_profiles(f->s, filter, count_profile, &n, &f->e));
	return n;
}

static inline void count_fault(void *arg, const char *text)
{
	if (!arg)
		print_error("fault: %s\n", text);
	else
		++*(int *)arg;
}

/* Faults of the open database; unexpected ones are shown when `quiet` is not set. */
static inline int count_faults(struct fixture *f)
{
	int n = 0;

	ok(f, store_check(f->s, count_fault, &n, &f->e));
	return n;
}

static inline void assert_sound(struct fixture *f)
{
	if (count_faults(f)) {
		store_check(f->s, count_fault, NULL, &f->e);
		fail();
	}
}

#endif
