#include "burst/map.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cursor.h"
#include "base/hmap.h"
#include "base/mem.h"
#include "rt/burst.h"
#include "store/edges.h"
#include "store/traces.h"

/*
 * A map:
 *
 *   u64     MAP_MAGIC
 *   text    path of the original, with a NUL
 *   text    its identity (image_id_text), with a NUL
 *   uleb    procedures that exist twice
 *   uleb    how many points there are, each:
 *     sleb    start of its procedure - that of the one before
 *     u8      words
 *     uleb    how many events it has, each:
 *       sleb    address - start of the procedure
 *       u8      kind
 *       u8      word, + 128 if the thread pointer is added
 *       sleb    what is added
 *       uleb    bytes
 *   uleb    bytes of the map of paths, which follows
 */
#define MAP_MAGIC   0x337470614d737242
#define POINT_LEAST 3 /* bytes */
#define EVENT_LEAST 5
#define NUMBERS     (UINT64_C(1) << 32) /* of one image's points */
#define WITH_THREAD 0x80

uint64_t burst_map_first(const struct image_id *id)
{
	return (hash_bytes(id->bytes, id->size) / NUMBERS * NUMBERS) | BURST_NUMBER;
}

uint64_t burst_map_key(const struct burst_map *m)
{
	return edge_image_key(IMAGE_ELF, &m->id, m->path);
}

static void put_events(const struct burst_map *m, const struct burst_point *p, struct buf *out)
{
	for (uint32_t i = p->first; i < p->first + p->n; i++) {
		const struct burst_event *e = &m->events.p[i];

		buf_sleb(out, (int64_t)(e->at - p->procedure));
		buf_u8(out, e->kind);
		buf_u8(out, (uint8_t)(e->word | (e->thread ? WITH_THREAD : 0)));
		buf_sleb(out, e->by);
		buf_uleb(out, e->size);
	}
}

void burst_map_put(const struct burst_map *m, struct buf *out)
{
	char id[IMAGE_ID_TEXT];
	uint64_t last = 0;

	buf_u64(out, MAP_MAGIC);
	buf_str(out, m->path);
	buf_str(out, image_id_text(&m->id, id));
	buf_uleb(out, m->procedures);
	buf_uleb(out, m->points.n);
	vec_each (p, &m->points) {
		buf_sleb(out, (int64_t)(p->procedure - last));
		buf_u8(out, p->words);
		buf_uleb(out, p->n);
		put_events(m, p, out);
		last = p->procedure;
	}
	buf_uleb(out, m->paths.n);
	buf_put(out, m->paths.p, m->paths.n);
}

static void read_events(struct burst_map *m, struct burst_point *p, struct cursor *at)
{
	uint64_t n = cursor_uleb(at);

	p->first = (uint32_t)m->events.n;
	p->n = (uint32_t)n;
	if (n > cursor_left(at) / EVENT_LEAST)
		at->failed = true;
	for (uint64_t i = 0; i < n && !at->failed; i++) {
		struct burst_event *e = vec_add(&m->events);
		uint8_t word;

		*e = (struct burst_event){.at = p->procedure + (uint64_t)cursor_sleb(at)};
		e->kind = cursor_u8(at);
		word = cursor_u8(at);
		e->word = word & ~WITH_THREAD;
		e->thread = word & WITH_THREAD;
		e->by = cursor_sleb(at);
		e->size = (uint16_t)cursor_uleb(at);
		if (!trace_kind_name(e->kind) || (e->word >= p->words && e->word != BURST_NO_WORD))
			at->failed = true;
	}
}

static void read_points(struct burst_map *m, uint64_t n, struct cursor *at)
{
	uint64_t last = 0;

	if (n > cursor_left(at) / POINT_LEAST)
		at->failed = true;
	for (uint64_t i = 0; i < n && !at->failed; i++) {
		struct burst_point p = {.procedure = last + (uint64_t)cursor_sleb(at)};

		p.words = cursor_u8(at);
		if (p.words > BURST_WORDS)
			at->failed = true;
		read_events(m, &p, at);
		*vec_add(&m->points) = p;
		last = p.procedure;
	}
}

static void read_paths(struct burst_map *m, struct cursor *at)
{
	struct cursor paths = cursor_slice(at, cursor_uleb(at));

	if (!at->failed)
		buf_put(&m->paths, paths.at, cursor_left(&paths));
}

int burst_map_read(struct burst_map *m, const void *p, size_t n)
{
	struct cursor at = cursor_over(p, n);
	uint64_t magic = cursor_u64(&at);

	*m = (struct burst_map){.path = xstrdup(cursor_str(&at))};
	if (magic != MAP_MAGIC || !image_id_parse(cursor_str(&at), &m->id))
		at.failed = true;
	m->first = burst_map_first(&m->id);
	m->procedures = cursor_uleb(&at);
	read_points(m, cursor_uleb(&at), &at);
	read_paths(m, &at);
	if (!at.failed && !cursor_left(&at))
		return 0;
	burst_map_deinit(m);
	return -EBADMSG;
}

const char *burst_map_path(const void *p, size_t n)
{
	struct cursor at = cursor_over(p, n);

	cursor_u64(&at);
	return cursor_str(&at);
}

void burst_map_deinit(struct burst_map *m)
{
	free(m->path);
	vec_deinit(&m->points);
	vec_deinit(&m->events);
	buf_deinit(&m->paths);
	m->path = NULL;
}
