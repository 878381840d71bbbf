/*
 * Totals of several flushes as one. A machine that starts hundreds of processes a second would
 * otherwise keep each of them for ever, so processes with less than 1/SMALL_SHARE of an event's
 * samples in a blob lose their pid and become one row of their comm. Nothing else is given up:
 * comm, thread name, cgroup, CPU, image and event keep their samples.
 */
#include "store/store_internal.h"

#include <errno.h>

#define SMALL_SHARE 1000

struct sum_key {
	int64_t started, image, event;
	int32_t pid, tid, cpu;
	uint32_t comm, thread, cgroup;
};

struct sum {
	struct sum_key key;
	uint64_t samples;
};

struct totals_sum {
	struct hmap sums;  /* struct sum */
	struct hmap share; /* struct share, of the blob that is being added */
	struct strtab strings;
	VEC(struct store_total) rows;
};

/* Samples of a process by event; the process 0, 0 stands for all. */
struct share {
	int64_t started, event;
	int64_t pid;
	uint64_t samples;
};

struct totals_sum *totals_sum_create(void)
{
	struct totals_sum *t = xcalloc(1, sizeof *t);

	hmap_init(&t->sums, sizeof(struct sum), sizeof(struct sum_key));
	hmap_init(&t->share, sizeof(struct share), offsetof(struct share, samples));
	return t;
}

void totals_sum_destroy(struct totals_sum *t)
{
	if (!t)
		return;
	hmap_deinit(&t->sums);
	hmap_deinit(&t->share);
	strtab_deinit(&t->strings);
	vec_deinit(&t->rows);
	free(t);
}

static void add_share(struct totals_sum *t, int64_t pid, int64_t started, int64_t event, uint64_t n)
{
	struct share key = {.started = started, .event = event, .pid = pid};
	struct share *share = hmap_put(&t->share, &key, NULL);

	share->samples += n;
}

static uint64_t get_share(struct totals_sum *t, int64_t pid, int64_t started, int64_t event)
{
	struct share key = {.started = started, .event = event, .pid = pid};
	const struct share *share = hmap_get(&t->share, &key);

	return share ? share->samples : 0;
}

static int count_row(void *arg, const struct store_total *row)
{
	add_share(arg, 0, 0, row->event, row->samples);
	if (row->pid)
		add_share(arg, row->pid, row->started, row->event, row->samples);
	return 0;
}

static int add_row(void *arg, const struct store_total *row)
{
	struct totals_sum *t = arg;
	struct sum_key key = {
		.started = row->started,
		.image = row->image,
		.event = row->event,
		.pid = row->pid,
		.tid = row->tid,
		.cpu = row->cpu,
		.comm = strtab_add(&t->strings, row->comm),
		.thread = strtab_add(&t->strings, row->thread),
		.cgroup = strtab_add(&t->strings, row->cgroup),
	};
	uint64_t own = get_share(t, row->pid, row->started, row->event);
	struct sum *sum;

	if (row->pid && own < get_share(t, 0, 0, row->event) / SMALL_SHARE)
		key.started = key.pid = key.tid = 0;
	sum = hmap_put(&t->sums, &key, NULL);
	if (__builtin_add_overflow(sum->samples, row->samples, &sum->samples))
		sum->samples = UINT64_MAX;
	return 0;
}

int totals_sum_add(struct totals_sum *t, const void *p, size_t n)
{
	int r;

	hmap_clear(&t->share);
	r = totals_decode(p, n, count_row, t);
	return r ? r : totals_decode(p, n, add_row, t);
}

size_t totals_sum_rows(struct totals_sum *t, const struct store_total **rows)
{
	t->rows.n = 0;
	for (const struct sum *sum = NULL; (sum = hmap_next(&t->sums, sum));)
		*vec_add(&t->rows) = (struct store_total){
			.pid = sum->key.pid,
			.tid = sum->key.tid,
			.started = sum->key.started,
			.comm = t->strings.strings[sum->key.comm],
			.thread = t->strings.strings[sum->key.thread],
			.cgroup = t->strings.strings[sum->key.cgroup],
			.cpu = sum->key.cpu,
			.image = sum->key.image,
			.event = sum->key.event,
			.samples = sum->samples,
		};
	*rows = t->rows.p;
	return t->rows.n;
}
