#include "collect/space.h"

#include "base/mem.h"
#include "base/vec.h"

#include <stdbool.h>
#include <string.h>

enum {
	MAPPINGS_MOST = 8192, /* inserting is linear: nobody shall make it dear */
	PAST_MOST = 64,
};

struct space {
	uint32_t owners;
	VEC(struct mapping) now;  /* disjoint, by start */
	VEC(struct mapping) past; /* in order of their end */
	VEC(uint64_t) past_until; /* of each of them */
};

static uint64_t mapping_end(const struct mapping *m)
{
	return m->start + m->size;
}

static bool covers(const struct mapping *m, uint64_t pc)
{
	return pc - m->start < m->size;
}

/* Whether both map the same bytes of the same file to the same addresses. */
static bool continues(const struct mapping *a, const struct mapping *b)
{
	return a->file == b->file && a->offset - a->start == b->offset - b->start;
}

struct space *space_share(struct space *s)
{
	if (s)
		s->owners++;
	return s;
}

void space_drop(struct space *s)
{
	if (!s || --s->owners)
		return;
	vec_deinit(&s->now);
	vec_deinit(&s->past);
	vec_deinit(&s->past_until);
	free(s);
}

static struct space *space_copy(const struct space *s)
{
	struct space *copy = xcalloc(1, sizeof *copy);

	copy->owners = 1;
	if (!s)
		return copy;
	vec_reserve(&copy->now, s->now.n + 1);
	memcpy(copy->now.p, s->now.p, s->now.n * sizeof *s->now.p);
	copy->now.n = s->now.n;
	for (size_t i = 0; i < s->past.n; i++) {
		*vec_add(&copy->past) = s->past.p[i];
		*vec_add(&copy->past_until) = s->past_until.p[i];
	}
	return copy;
}

static void drop_past(struct space *s, size_t n)
{
	s->past.n -= n;
	s->past_until.n -= n;
	memmove(s->past.p, s->past.p + n, s->past.n * sizeof *s->past.p);
	memmove(s->past_until.p, s->past_until.p + n, s->past_until.n * sizeof *s->past_until.p);
}

static void forget_past(struct space *s, uint64_t horizon)
{
	size_t n = 0;

	while (n < s->past.n && s->past_until.p[n] < horizon)
		n++;
	if (n)
		drop_past(s, n);
}

static void keep_past(struct space *s, const struct mapping *m, uint64_t until)
{
	if (s->past.n == PAST_MOST)
		drop_past(s, 1);
	*vec_add(&s->past) = *m;
	*vec_add(&s->past_until) = until;
}

/* The first current mapping that ends behind the address. */
static size_t first_behind(const struct space *s, uint64_t address)
{
	size_t low = 0, high = s->now.n;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (mapping_end(&s->now.p[middle]) > address)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* Replaces the current mappings [from, to) by the n given ones. */
static void splice(struct space *s, size_t from, size_t to, const struct mapping *m, size_t n)
{
	size_t tail = s->now.n - to;

	vec_reserve(&s->now, from + n + tail);
	memmove(s->now.p + from + n, s->now.p + to, tail * sizeof *m);
	memcpy(s->now.p + from, m, n * sizeof *m);
	s->now.n = from + n + tail;
}

/*
 * The current mappings [*from, *to) that m touches: those it overlaps, and on either side one that
 * only borders on it if the two continue each other.
 */
static void touched(const struct space *s, const struct mapping *m, size_t *from, size_t *to)
{
	*from = first_behind(s, m->start ? m->start - 1 : 0);
	if (*from < s->now.n && mapping_end(&s->now.p[*from]) == m->start &&
		!continues(&s->now.p[*from], m))
		++*from;
	*to = *from;
	while (*to < s->now.n && s->now.p[*to].start < mapping_end(m))
		++*to;
	if (*to < s->now.n && s->now.p[*to].start == mapping_end(m) && continues(&s->now.p[*to], m))
		++*to;
}

/* Two that continue each other become one: JITs change their mappings by the thousand. */
static void absorb(struct mapping *m, const struct mapping *other)
{
	uint64_t end = mapping_end(m);

	if (mapping_end(other) > end)
		end = mapping_end(other);
	if (other->start < m->start) {
		m->start = other->start;
		m->offset = other->offset;
	}
	if (other->since < m->since)
		m->since = other->since;
	m->size = end - m->start;
}

/* Puts m in the place of what it touches; of others' mappings the parts outside m stay. */
static void replace(struct space *s, const struct mapping *m)
{
	struct mapping whole = *m, part[3];
	size_t from, to, n = 0;

	touched(s, m, &from, &to);
	for (size_t i = from; i < to; i++) {
		if (continues(&s->now.p[i], m))
			absorb(&whole, &s->now.p[i]);
		else
			keep_past(s, &s->now.p[i], m->since);
	}
	if (from < to && s->now.p[from].start < whole.start) {
		part[n] = s->now.p[from];
		part[n++].size = whole.start - s->now.p[from].start;
	}
	part[n++] = whole;
	if (from < to && mapping_end(&s->now.p[to - 1]) > mapping_end(&whole)) {
		const struct mapping *last = &s->now.p[to - 1];

		part[n] = *last;
		part[n].start = mapping_end(&whole);
		part[n].offset += part[n].start - last->start;
		part[n++].size = mapping_end(last) - mapping_end(&whole);
	}
	splice(s, from, to, part, n);
}

void space_map(struct space **space, const struct mapping *m, uint64_t horizon)
{
	struct space *s = *space;

	if (!m->size || m->start + m->size < m->start)
		return;
	if (s) {
		size_t i = first_behind(s, m->start);

		if (i < s->now.n && continues(&s->now.p[i], m) && s->now.p[i].start <= m->start &&
			mapping_end(&s->now.p[i]) >= mapping_end(m))
			return;
		if (s->now.n >= MAPPINGS_MOST)
			return;
	}
	if (!s || s->owners > 1) {
		s = space_copy(*space);
		space_drop(*space);
		*space = s;
	}
	forget_past(s, horizon);
	replace(s, m);
}

const struct mapping *space_find(const struct space *s, uint64_t pc, uint64_t time)
{
	const struct mapping *m = NULL;
	size_t i;

	if (!s)
		return NULL;
	i = first_behind(s, pc);
	if (i < s->now.n && covers(&s->now.p[i], pc))
		m = &s->now.p[i];
	if (!s->past.n || (m && m->since <= time + SPACE_SLACK_NS))
		return m;
	for (i = s->past.n; i-- > 0;) {
		const struct mapping *old = &s->past.p[i];

		if (covers(old, pc) && old->since <= time + SPACE_SLACK_NS &&
			time < s->past_until.p[i])
			return old;
	}
	return m;
}

size_t space_mappings(const struct space *s, const struct mapping **out)
{
	*out = s ? s->now.p : NULL;
	return s ? s->now.n : 0;
}

size_t space_past(const struct space *s, const struct mapping **out)
{
	*out = s ? s->past.p : NULL;
	return s ? s->past.n : 0;
}

size_t space_memory(const struct space *s)
{
	if (!s)
		return 0;
	return sizeof *s + s->now.space * sizeof *s->now.p + s->past.space * sizeof *s->past.p +
	       s->past_until.space * sizeof *s->past_until.p;
}
