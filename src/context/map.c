#include "context/map.h"

#include <errno.h>
#include <string.h>

#include "base/cursor.h"
#include "base/hmap.h"
#include "base/mem.h"
#include "rt/context.h"
#include "store/edges.h"

/*
 * A map:
 *
 *   u64     MAP_MAGIC
 *   u8      size of the identity, with bit 7 when it is a hash; its bytes
 *   text    path of the original, with a NUL
 *   uleb    number of the first procedure
 *   uleb    how many there are, by start, each:
 *     uleb    start - that of the one before
 *     uleb    counts, uleb slots
 *     counts: sleb address - start of the procedure, uleb number of the callee
 *     slots:  sleb address - start of the procedure
 */
#define MAP_MAGIC       0x317470614d784343
#define MAP_FLAG        0x80
#define PROCEDURE_LEAST 3 /* bytes */
#define NUMBERS         (UINT64_C(1) << 31)

uint32_t context_map_first(const struct image_id *id, uint32_t procedures)
{
	uint64_t space = NUMBERS - CONTEXT_PROCEDURES - procedures;

	return (uint32_t)(CONTEXT_PROCEDURES + hash_bytes(id->bytes, id->size) % space);
}

uint64_t context_map_key(const struct context_map *m)
{
	return edge_image_key(IMAGE_ELF, &m->id, m->path);
}

static int by_start(const void *key, const void *entry)
{
	uint64_t start = *(const uint64_t *)key;
	const struct context_procedure *p = entry;

	return start < p->start ? -1 : start > p->start;
}

size_t context_map_find(const struct context_map *m, uint64_t start)
{
	const struct context_procedure *p =
		bsearch(&start, m->procedures.p, m->procedures.n, sizeof *p, by_start);

	return p ? (size_t)(p - m->procedures.p) : m->procedures.n;
}

/* ---- writing ---- */

static void put_procedure(const struct context_map *m, const struct context_procedure *p,
	uint64_t last, struct buf *out)
{
	const struct context_site *site = m->sites.p + p->site;

	buf_uleb(out, p->start - last);
	buf_uleb(out, p->counts);
	buf_uleb(out, p->slots);
	for (uint32_t i = 0; i < (uint32_t)p->counts + p->slots; i++) {
		buf_sleb(out, (int64_t)(site[i].at - p->start));
		if (i < p->counts)
			buf_uleb(out, site[i].callee);
	}
}

void context_map_put(const struct context_map *m, struct buf *out)
{
	uint64_t last = 0;

	buf_u64(out, MAP_MAGIC);
	buf_u8(out, m->id.size | (m->id.is_hash ? MAP_FLAG : 0));
	buf_put(out, m->id.bytes, m->id.size);
	buf_str(out, m->path);
	buf_uleb(out, m->first);
	metric_names_put(&m->metrics, out);
	buf_uleb(out, m->procedures.n);
	vec_each (p, &m->procedures) {
		put_procedure(m, p, last, out);
		last = p->start;
	}
}

/* ---- reading ---- */

static void read_identity(struct cursor *at, struct image_id *id)
{
	uint8_t size = cursor_u8(at);
	const void *bytes;

	*id = (struct image_id){.size = size & ~MAP_FLAG, .is_hash = size & MAP_FLAG};
	if (id->size > sizeof id->bytes || !(bytes = cursor_bytes(at, id->size))) {
		id->size = 0;
		at->failed = true;
	} else {
		memcpy(id->bytes, bytes, id->size);
	}
}

static void read_sites(struct context_map *m, const struct context_procedure *p, struct cursor *at)
{
	for (uint32_t i = 0; i < (uint32_t)p->counts + p->slots && !at->failed; i++) {
		struct context_site *s = vec_add(&m->sites);

		*s = (struct context_site){.at = p->start + (uint64_t)cursor_sleb(at)};
		if (i < p->counts)
			s->callee = (uint32_t)cursor_uleb(at);
	}
}

static void read_procedure(struct context_map *m, uint64_t last, struct cursor *at)
{
	struct context_procedure p = {
		.start = last + cursor_uleb(at), .site = (uint32_t)m->sites.n};
	uint64_t counts = cursor_uleb(at), slots = cursor_uleb(at);

	if (p.start < last || counts > CONTEXT_COUNTS_MAX || slots > CONTEXT_SLOTS_MAX ||
		counts + slots > cursor_left(at)) {
		at->failed = true;
		return;
	}
	p.counts = (uint16_t)counts;
	p.slots = (uint16_t)slots;
	read_sites(m, &p, at);
	*vec_add(&m->procedures) = p;
}

static bool callees_exist(const struct context_map *m)
{
	vec_each (s, &m->sites)
		if (s->callee >= m->procedures.n)
			return false;
	return true;
}

int context_map_read(struct context_map *m, const void *p, size_t n)
{
	struct cursor at = cursor_over(p, n);
	uint64_t magic = cursor_u64(&at), first, procedures, last = 0;

	*m = (struct context_map){0};
	read_identity(&at, &m->id);
	m->path = xstrdup(cursor_str(&at));
	first = cursor_uleb(&at);
	if (metric_names_read(&m->metrics, &at) || m->metrics.n > RT_METRICS)
		at.failed = true;
	procedures = cursor_uleb(&at);
	if (magic != MAP_MAGIC || first < CONTEXT_PROCEDURES || first >= NUMBERS ||
		procedures > cursor_left(&at) / PROCEDURE_LEAST || procedures > NUMBERS - first)
		at.failed = true;
	m->first = (uint32_t)first;
	for (uint64_t i = 0; i < procedures && !at.failed; i++) {
		read_procedure(m, last, &at);
		last = m->procedures.n ? m->procedures.p[m->procedures.n - 1].start : 0;
	}
	if (!at.failed && !cursor_left(&at) && callees_exist(m))
		return 0;
	context_map_deinit(m);
	return -EBADMSG;
}

const char *context_map_path(const void *p, size_t n)
{
	struct cursor at = cursor_over(p, n);
	struct image_id id;

	cursor_u64(&at);
	read_identity(&at, &id);
	return cursor_str(&at);
}

void context_map_deinit(struct context_map *m)
{
	free(m->path);
	vec_deinit(&m->procedures);
	vec_deinit(&m->sites);
	m->path = NULL;
}
