#include "analyze/streams_overlap.h"

#include <stdlib.h>

#include "base/hmap.h"
#include "base/mem.h"

/* A signature by two hashes of it: the instructions, and those without the first. */
struct signature {
	uint64_t hash[2];
};

struct shares {
	struct signature key;
	double of[2];
};

static struct signature signature_of(const struct stream *s)
{
	uint64_t *places = xcalloc(2 * s->length + 1, sizeof *places);
	struct signature key;

	for (uint32_t i = 0; i < s->length; i++) {
		places[2 * i] = s->references[i].site.image;
		places[2 * i + 1] = s->references[i].site.at;
	}
	key.hash[0] = hash_bytes(places, 2 * s->length * sizeof *places);
	key.hash[1] = hash_bytes(places + 1, (2 * s->length - 1) * sizeof *places);
	free(places);
	return key;
}

static void add(struct hmap *all, const struct streams *s, int which)
{
	uint64_t whole = streams_summary(s)->hot;
	const struct stream *list;
	size_t n = streams_all(s, &list);

	for (size_t i = 0; i < n; i++) {
		struct signature key = signature_of(&list[i]);
		struct shares *r = hmap_put(all, &key, NULL);

		r->of[which] += (double)list[i].heat / (double)whole;
	}
}

double streams_overlap(const struct streams *a, const struct streams *b)
{
	struct hmap all;
	double sum = 0;

	hmap_init(&all, sizeof(struct shares), sizeof(struct signature));
	add(&all, a, 0);
	add(&all, b, 1);
	for (const struct shares *r = NULL; (r = hmap_next(&all, r));)
		sum += r->of[0] < r->of[1] ? r->of[0] : r->of[1];
	hmap_deinit(&all);
	return sum;
}
