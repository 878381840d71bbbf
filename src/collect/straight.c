#include "collect/straight.h"

#include "base/buf.h"
#include "collect/attribute_bursts.h"
#include "collect/image_cache.h"
#include "isa/decode.h"

#include <stddef.h>

enum {
	LONGEST = 4096, /* bytes without a taken branch: more is a gap in what was remembered */
	STRAIGHTS_MANY = 1 << 18,
};

struct straight {
	uint64_t from, to;
	uint32_t image, who;
	uint64_t count;
};

void straights_init(struct straights *s)
{
	hmap_init(&s->list, sizeof(struct straight), offsetof(struct straight, count));
}

void straights_deinit(struct straights *s)
{
	hmap_deinit(&s->list);
}

void straights_add(struct straights *s, uint32_t image, uint32_t who, uint64_t from, uint64_t to)
{
	struct straight key = {.from = from, .to = to, .image = image, .who = who}, *found;

	if (to < from || to - from > LONGEST)
		return;
	found = hmap_put(&s->list, &key, NULL);
	found->count++;
}

bool straights_full(const struct straights *s)
{
	return s->list.n >= STRAIGHTS_MANY;
}

/* The code up to the branch at the end. */
static bool read_code(const struct straight *s, struct image_cache *images,
	const struct process_table *processes, uint64_t vaddr, struct buf *code)
{
	code->n = 0;
	return image_cache_functions(images, processes, s->image) &&
	       image_cache_code(images, processes, s->image,
		       &(struct range){vaddr, s->to - s->from}, code) == 0;
}

/*
 * Instructions follow each other from the target of a branch on. Where they do not come to the
 * branch at the end the code is not what ran, and says nothing.
 */
static void take_edges(const struct straight *s, uint64_t vaddr, const struct buf *code,
	struct burst_group *g, struct bursts *out)
{
	uint64_t last = s->to - s->from;
	struct insn insn;

	for (int round = 0; round < 2; round++) {
		uint64_t at = 0;

		while (at < last) {
			if (isa_decode(code->p + at, code->n - at, vaddr + at, &insn) < 0)
				return;
			if (round && insn.kind == INSN_BRANCH)
				bursts_edges(out, g, s->from + at, 0, s->from + at + insn.length,
					s->count);
			at += insn.length;
		}
		if (at != last)
			return;
	}
}

void straights_settle(struct straights *s, struct image_cache *images,
	const struct process_table *processes, struct bursts *out)
{
	struct buf code = {0};

	for (const struct straight *it = NULL; (it = hmap_next(&s->list, it));) {
		uint64_t vaddr;

		if (cached_image_address(image_cache_get(images, it->image), it->from, &vaddr) &&
			read_code(it, images, processes, vaddr, &code))
			take_edges(it, vaddr, &code, bursts_group(out, it->image, it->who), out);
	}
	buf_deinit(&code);
	hmap_clear(&s->list);
}
