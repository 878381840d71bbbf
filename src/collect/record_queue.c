#include "collect/record_queue.h"

#include "collect/record.h"

#include <string.h>

void record_queue_deinit(struct record_queue *q)
{
	buf_deinit(&q->bytes);
	vec_deinit(&q->places);
}

void record_queue_put(struct record_queue *q, uint64_t time, const void *bytes, size_t size)
{
	*vec_add(&q->places) =
		(struct record_place){.time = time, .offset = q->bytes.n, .size = size};
	buf_put(&q->bytes, bytes, size);
}

void record_queue_add(struct record_queue *q, const void *record, size_t size)
{
	struct record r;
	size_t length;

	if (record_parse(record, size, q->build_ids, &r, &length) < 0 || r.kind == RECORD_OTHER)
		return;
	record_queue_put(q, r.time, record, length);
}

static int by_time(const void *a, const void *b)
{
	const struct record_place *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static int by_offset(const void *a, const void *b)
{
	const struct record_place *x = a, *y = b;

	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Closes the gaps that the first n places leave; the others keep their order of arrival. */
static void forget(struct record_queue *q, size_t n)
{
	size_t left = q->places.n - n, to = 0;

	if (!n)
		return;
	memmove(q->places.p, q->places.p + n, left * sizeof *q->places.p);
	q->places.n = left;
	vec_sort(&q->places, by_offset);
	vec_each (p, &q->places) {
		memmove(q->bytes.p + to, q->bytes.p + p->offset, p->size);
		p->offset = to;
		to += p->size;
	}
	q->bytes.n = to;
}

void record_queue_take(struct record_queue *q, uint64_t until, record_bytes_fn *fn, void *arg)
{
	size_t n = 0;

	vec_sort(&q->places, by_time);
	for (; n < q->places.n && q->places.p[n].time <= until; n++) {
		const struct record_place *p = &q->places.p[n];

		fn(arg, p->time, q->bytes.p + p->offset, p->size);
	}
	forget(q, n);
}

struct delivery {
	const struct record_queue *q;
	void (*fn)(void *arg, const struct record *r);
	void *arg;
};

static void deliver(void *arg, uint64_t time, const uint8_t *bytes, size_t size)
{
	const struct delivery *d = arg;
	struct record r;
	size_t length;

	(void)time;
	if (record_parse(bytes, size, d->q->build_ids, &r, &length) == 0)
		d->fn(d->arg, &r);
}

void record_queue_deliver(struct record_queue *q, uint64_t until,
	void (*fn)(void *arg, const struct record *r), void *arg)
{
	struct delivery d = {q, fn, arg};

	record_queue_take(q, until, deliver, &d);
}
