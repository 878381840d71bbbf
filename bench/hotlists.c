/*
 * What hot lists get wrong, and what they cost.
 *
 *   hotlists errors ROUNDS    a line for each stream, length, algorithm and number of pieces that
 *                             the stream is cut into (a list each, merged at the end)
 *   hotlists cost ADDS        a line for each algorithm
 *
 * Errors are of values with a true share over 10%, in points: |estimate - true share| of the
 * stream, where a value that is not in the list is estimated as 0. `outside` counts values of any
 * share whose true count is not within the printed bounds. Fields are separated by tabs.
 */
#include "base/buf.h"
#include "base/hmap.h"
#include "base/io.h"
#include "streams.h"
#include "values/values_pack.h"

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TYPES (sizeof stream_types / sizeof *stream_types)

static const char *const algorithm_name[HOTLIST_ALGORITHMS] = {
	[HOTLIST_SPACE_SAVING] = "space-saving",
	[HOTLIST_COUNTING] = "counting",
};

struct exact {
	uint64_t value, count;
};

/* Of the estimate, and of the bounds' low, middle and high had they been it. */
enum { ESTIMATE, LOW, MIDDLE, HIGH, GUESSES };
struct errors {
	double sum[GUESSES], max[GUESSES];
	uint64_t hot, missing, values, outside;
};

static void count_error(struct errors *e, int guess, double error)
{
	error = fabs(error);
	e->sum[guess] += error;
	if (error > e->max[guess])
		e->max[guess] = error;
}

static const struct hot_value *find(const struct hot_value *list, size_t n, uint64_t value)
{
	for (size_t i = 0; i < n; i++)
		if (list[i].value == value)
			return &list[i];
	return NULL;
}

static void compare(struct errors *e, const struct hotlist_pool *pool, const struct hotlist *h,
	const struct hmap *truth)
{
	struct hot_value list[HOTLIST_CAPACITY_MAX];
	size_t n = hotlist_read(pool, h, list);
	uint64_t absent = hotlist_absent(pool, h);

	for (const struct exact *x = NULL; (x = hmap_next(truth, x));) {
		const struct hot_value *v = find(list, n, x->value);
		struct hot_value none = {.high = absent};
		double share = (double)x->count / (double)h->total;

		e->missing += !v && share > 0.1;
		v = v ? v : &none;
		e->values++;
		e->outside += x->count < v->low || x->count > v->high;
		if (share <= 0.1)
			continue;
		e->hot++;
		/* What is not in the list is taken for 0, whatever its bounds. */
		count_error(e, ESTIMATE, v->share - share);
		count_error(e, LOW, (double)v->low / (double)h->total - share);
		count_error(e, MIDDLE,
			v == &none ? share : ((double)v->low + v->high) / 2 / h->total - share);
		count_error(e, HIGH, v == &none ? share : (double)v->high / h->total - share);
	}
}

/* One stream, in pieces with a list each. */
static void measure(struct errors *e, const struct stream_type *type, uint64_t n, uint64_t seed,
	enum hotlist_algorithm algorithm, uint64_t pieces)
{
	struct hotlist_pool *pool = hotlist_pool_create(algorithm, HOTLIST_CAPACITY, seed);
	struct stream s = {.n = n, .random = seed * 1000};
	struct hotlist all = {0}, piece = {0};
	struct hmap truth;

	hmap_init(&truth, sizeof(struct exact), offsetof(struct exact, count));
	for (; s.i < n; s.i++) {
		uint64_t value = type->next(&s);
		struct exact *x = hmap_put(&truth, &value, NULL);

		x->count++;
		hotlist_add(pool, &piece, value, 1);
		if ((s.i + 1) * pieces / n != s.i * pieces / n) {
			hotlist_merge(pool, &all, &piece);
			hotlist_release(pool, &piece);
		}
	}
	compare(e, pool, &all, &truth);
	hmap_deinit(&truth);
	hotlist_pool_destroy(pool);
}

static void print_errors(const struct stream_type *type, uint64_t n,
	enum hotlist_algorithm algorithm, uint64_t pieces, const struct errors *e)
{
	printf("%s\t%llu\t%s\t%llu\t%llu\t%llu", type->name, (unsigned long long)n,
		algorithm_name[algorithm], (unsigned long long)pieces, (unsigned long long)e->hot,
		(unsigned long long)e->missing);
	for (int i = 0; i < GUESSES; i++)
		printf("\t%.4f\t%.4f", e->hot ? 100 * e->sum[i] / (double)e->hot : 0,
			100 * e->max[i]);
	printf("\t%llu\t%llu\n", (unsigned long long)e->values, (unsigned long long)e->outside);
}

static void measure_errors(uint64_t rounds)
{
	static const uint64_t lengths[] = {200, 2000, 50000}, cuts[] = {1, 20};

	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
		for (size_t k = 0; k < sizeof cuts / sizeof *cuts; k++)
			for (size_t t = 0; t < TYPES; t++)
				for (int a = 0; a < HOTLIST_ALGORITHMS; a++) {
					struct errors e = {0};

					for (uint64_t r = 1; r <= rounds; r++)
						measure(&e, &stream_types[t], lengths[i], r,
							(enum hotlist_algorithm)a, cuts[k]);
					print_errors(&stream_types[t], lengths[i],
						(enum hotlist_algorithm)a, cuts[k], &e);
				}
}

/* ---- cost ---- */

enum {
	KEYS = 20000,
	BATCH = 1 << 16,
};

struct tuple {
	struct value_key key;
	uint64_t value;
};

/* Half of the keys have a constant, a third a handful of values, the others new addresses. */
static uint64_t tuple_value(struct stream *s, uint64_t key)
{
	uint64_t variety = key * 2654435761u % 6;

	return variety < 3 ? key : variety < 5 ? stream_below(s, 10) : stream_noise(s);
}

/* Bursts of 32 tuples from loops of 4 to 32 keys; few loops are hot, many are seen now and then. */
static void make_tuples(struct tuple *t, struct stream *s)
{
	uint64_t start = 0, length = 1;

	for (unsigned i = 0; i < BATCH; i++, s->i++) {
		if (i % 32 == 0) {
			double u = (double)(stream_random(s) >> 11) * 0x1p-53;

			start = (uint64_t)(KEYS * u * u * u);
			length = 4 + start * 2654435761u % 29;
		}
		uint64_t k = start + i % length;

		t[i].key = (struct value_key){.offset = 0x1000 + k / 2 * 4, .kind = k % 2};
		t[i].value = tuple_value(s, k);
	}
}

static void measure_cost(enum hotlist_algorithm algorithm, uint64_t adds)
{
	struct value_options o = {.algorithm = algorithm};
	struct value_profile *p = value_profile_create(&o);
	struct tuple *tuples = calloc(BATCH, sizeof *tuples);
	struct stream s = {.random = 1};
	struct buf packed = {0};
	uint64_t spent = 0, done = 0, t;

	if (!tuples)
		err(1, "memory");
	while (done < adds) {
		make_tuples(tuples, &s);
		t = io_clock_ns(CLOCK_THREAD_CPUTIME_ID);
		for (unsigned i = 0; i < BATCH; i++)
			value_profile_add(p, &tuples[i].key, tuples[i].value, 1);
		spent += io_clock_ns(CLOCK_THREAD_CPUTIME_ID) - t;
		done += BATCH;
	}
	t = io_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	value_profile_pack(p, &packed);
	t = io_clock_ns(CLOCK_THREAD_CPUTIME_ID) - t;
	printf("%s\t%llu\t%.2f\t%zu\t%.1f\t%zu\t%.3f\n", algorithm_name[algorithm],
		(unsigned long long)done, (double)spent / (double)done, value_profile_keys(p),
		(double)value_profile_bytes(p) / 1e6, packed.n, (double)t / 1e6);
	buf_deinit(&packed);
	free(tuples);
	value_profile_destroy(p);
}

int main(int argc, char **argv)
{
	char *end;
	uint64_t n = argc == 3 ? strtoull(argv[2], &end, 10) : 0;

	if (!n || *end || (strcmp(argv[1], "errors") && strcmp(argv[1], "cost")))
		errx(2, "usage: hotlists errors ROUNDS | hotlists cost ADDS");
	if (!strcmp(argv[1], "errors"))
		measure_errors(n);
	else
		for (int a = 0; a < HOTLIST_ALGORITHMS; a++)
			measure_cost((enum hotlist_algorithm)a, n);
	return 0;
}
