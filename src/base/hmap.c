#include "base/hmap.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/vec.h"

enum {
	SLOTS_FIRST = 16,
	SLOTS_KEEP = 4096, /* hmap_clear never gives back less than this */
};

static uint64_t load64(const unsigned char *p)
{
	uint64_t v;
	memcpy(&v, p, sizeof v);
	return v;
}

static uint64_t load32(const unsigned char *p)
{
	uint32_t v;
	memcpy(&v, p, sizeof v);
	return v;
}

/* One widening multiplication spreads every input bit over both halves; folding keeps them all. */
static uint64_t mix(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;
	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/*
 * Sixteen bytes a step by folded multiplication; the last step reads the last sixteen bytes again
 * rather than a tail. The constants are the fractions of the square roots of 2, 3 and 5, odd.
 */
uint64_t hash_bytes(const void *data, size_t n)
{
	const uint64_t k1 = 0x6a09e667f3bcc909, k2 = 0xbb67ae8584caa73b, k3 = 0x3c6ef372fe94f82b;
	const unsigned char *p = data;
	uint64_t a = 0, b = 0, h = k3 ^ n;

	if (n >= 8) {
		for (; n > 16; n -= 16, p += 16)
			h = mix(load64(p) ^ k1, load64(p + 8) ^ h);
		if (n >= 8) {
			a = load64(p);
			b = load64(p + n - 8);
		} else { /* there are at least nine bytes in front of p */
			a = load64(p + n - 16);
			b = load64(p + n - 8);
		}
	} else if (n >= 4) {
		a = load32(p);
		b = load32(p + n - 4);
	} else if (n) {
		a = p[0] | (uint64_t)p[n / 2] << 8 | (uint64_t)p[n - 1] << 16;
	}
	return mix(k3, mix(a ^ k1, b ^ k2 ^ h) ^ h);
}

/* ---- hash tables ---- */

static uint32_t key_hash(const struct hmap *m, const void *key)
{
	uint64_t h = hash_bytes(key, m->key_size);
	uint32_t folded = (uint32_t)(h ^ h >> 32);
	return folded ? folded : 1;
}

static unsigned char *record_at(const struct hmap *m, size_t slot)
{
	return m->records + slot * m->record_size;
}

/* The slot that holds the key, or the free one where it belongs. */
static size_t find_slot(const struct hmap *m, const void *key, uint32_t hash)
{
	size_t mask = m->slots - 1, i = hash & mask;

	/* Mostly the record is here: it is under way while the hash still arrives. */
	__builtin_prefetch(record_at(m, i));
	while (m->hashes[i] && (m->hashes[i] != hash || memcmp(record_at(m, i), key, m->key_size)))
		i = (i + 1) & mask;
	return i;
}

static void allocate(struct hmap *m, size_t slots)
{
	m->records = xcalloc(slots, m->record_size);
	m->hashes = xcalloc(slots, sizeof *m->hashes);
	m->slots = slots;
}

static void grow(struct hmap *m)
{
	struct hmap old = *m;
	allocate(m, old.slots ? old.slots * 2 : SLOTS_FIRST);
	for (size_t i = 0; i < old.slots; i++) {
		if (!old.hashes[i])
			continue;
		size_t to = old.hashes[i] & (m->slots - 1);
		while (m->hashes[to])
			to = (to + 1) & (m->slots - 1);
		m->hashes[to] = old.hashes[i];
		memcpy(record_at(m, to), record_at(&old, i), m->record_size);
	}
	free(old.records);
	free(old.hashes);
}

void hmap_init(struct hmap *m, size_t record_size, size_t key_size)
{
	*m = (struct hmap){.record_size = (uint32_t)record_size, .key_size = (uint32_t)key_size};
}

void hmap_deinit(struct hmap *m)
{
	free(m->records);
	free(m->hashes);
	hmap_init(m, m->record_size, m->key_size);
}

void hmap_clear(struct hmap *m)
{
	if (m->slots > SLOTS_KEEP && m->n < m->slots / 16)
		hmap_deinit(m);
	else if (m->n)
		memset(m->hashes, 0, m->slots * sizeof *m->hashes);
	m->n = 0;
}

void *hmap_get(const struct hmap *m, const void *key)
{
	if (!m->n)
		return NULL;
	size_t i = find_slot(m, key, key_hash(m, key));
	return m->hashes[i] ? record_at(m, i) : NULL;
}

void *hmap_put(struct hmap *m, const void *key, bool *fresh)
{
	uint32_t hash = key_hash(m, key);
	size_t i = m->slots ? find_slot(m, key, hash) : 0;
	bool absent = !m->slots || !m->hashes[i];

	if (fresh)
		*fresh = absent;
	if (!absent)
		return record_at(m, i);
	if ((m->n + 1) * 4 > m->slots * 3) {
		grow(m);
		i = find_slot(m, key, hash);
	}
	m->hashes[i] = hash;
	m->n++;
	unsigned char *r = record_at(m, i);
	memcpy(r, key, m->key_size);
	memset(r + m->key_size, 0, m->record_size - m->key_size);
	return r;
}

/*
 * Knuth's algorithm R (TAOCP 6.4): a record behind the hole moves into it unless its home lies
 * between the two, so that no tombstones are needed.
 */
bool hmap_delete(struct hmap *m, const void *key)
{
	if (!m->n)
		return false;
	size_t mask = m->slots - 1, hole = find_slot(m, key, key_hash(m, key));
	if (!m->hashes[hole])
		return false;

	for (size_t i = (hole + 1) & mask; m->hashes[i]; i = (i + 1) & mask) {
		size_t home = m->hashes[i] & mask;
		if (((i - home) & mask) < ((i - hole) & mask))
			continue;
		m->hashes[hole] = m->hashes[i];
		memcpy(record_at(m, hole), record_at(m, i), m->record_size);
		hole = i;
	}
	m->hashes[hole] = 0;
	m->n--;
	return true;
}

void *hmap_next(const struct hmap *m, const void *after)
{
	size_t i = 0;
	if (after)
		i = ((const unsigned char *)after - m->records) / m->record_size + 1;
	for (; i < m->slots; i++) {
		if (m->hashes[i])
			return record_at(m, i);
	}
	return NULL;
}

/* ---- numbered strings ---- */

/* The slot of the string, or the free one where it belongs; slots hold numbers plus one. */
static size_t find_string(const struct strtab *t, const char *s, size_t n)
{
	size_t mask = t->nslots - 1, i = hash_bytes(s, n) & mask;
	while (t->slots[i] && strcmp(t->strings[t->slots[i] - 1], s))
		i = (i + 1) & mask;
	return i;
}

static void strtab_grow(struct strtab *t)
{
	free(t->slots);
	t->nslots = t->nslots ? t->nslots * 2 : SLOTS_FIRST;
	t->slots = xcalloc(t->nslots, sizeof *t->slots);
	for (size_t i = 0; i < t->n; i++) {
		const char *s = t->strings[i];
		t->slots[find_string(t, s, strlen(s))] = (uint32_t)i + 1;
	}
}

uint32_t strtab_add(struct strtab *t, const char *s)
{
	if ((t->n + 1) * 4 > t->nslots * 3)
		strtab_grow(t);
	size_t slot = find_string(t, s, strlen(s));
	if (!t->slots[slot]) {
		if (t->n == t->space)
			vec_grow((void **)&t->strings, &t->space, t->n + 1, sizeof *t->strings);
		t->strings[t->n++] = xstrdup(s);
		t->slots[slot] = (uint32_t)t->n;
	}
	return t->slots[slot] - 1;
}

void strtab_deinit(struct strtab *t)
{
	for (size_t i = 0; i < t->n; i++)
		free(t->strings[i]);
	free(t->strings);
	free(t->slots);
	*t = (struct strtab){0};
}
