#include "burst/map.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cursor.h"
#include "base/hmap.h"
#include "base/mem.h"
#include "store/edges.h"

/*
 * A map:
 *
 *   u64     MAP_MAGIC
 *   text    path of the original, with a NUL
 *   text    its identity (image_id_text), with a NUL
 *   uleb    procedures that exist twice
 *   uleb    how many places there are, each:
 *     sleb    start of its procedure - that of the one before
 *     sleb    address - start of its procedure
 *     u8      kind
 *     uleb    bytes
 */
#define MAP_MAGIC  0x317470614d737242
#define SITE_LEAST 4                   /* bytes */
#define NUMBERS    (UINT64_C(1) << 32) /* of one image's places */

uint64_t burst_map_first(const struct image_id *id)
{
	return (hash_bytes(id->bytes, id->size) >> 1 | 1) / NUMBERS * NUMBERS + NUMBERS;
}

uint64_t burst_map_key(const struct burst_map *m)
{
	return edge_image_key(IMAGE_ELF, &m->id, m->path);
}

void burst_map_put(const struct burst_map *m, struct buf *out)
{
	char id[IMAGE_ID_TEXT];
	uint64_t last = 0;

	buf_u64(out, MAP_MAGIC);
	buf_str(out, m->path);
	buf_str(out, image_id_text(&m->id, id));
	buf_uleb(out, m->procedures);
	buf_uleb(out, m->sites.n);
	vec_each (s, &m->sites) {
		buf_sleb(out, (int64_t)(s->procedure - last));
		buf_sleb(out, (int64_t)(s->at - s->procedure));
		buf_u8(out, s->kind);
		buf_uleb(out, s->size);
		last = s->procedure;
	}
}

static void read_sites(struct burst_map *m, uint64_t n, struct cursor *at)
{
	uint64_t last = 0;

	if (n > cursor_left(at) / SITE_LEAST)
		at->failed = true;
	for (uint64_t i = 0; i < n && !at->failed; i++) {
		struct burst_site *s = vec_add(&m->sites);

		*s = (struct burst_site){.procedure = last + (uint64_t)cursor_sleb(at)};
		s->at = s->procedure + (uint64_t)cursor_sleb(at);
		s->kind = cursor_u8(at) & (BURST_LOAD | BURST_STORE);
		s->size = (uint16_t)cursor_uleb(at);
		last = s->procedure;
	}
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
	read_sites(m, cursor_uleb(&at), &at);
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
	vec_deinit(&m->sites);
	m->path = NULL;
}
