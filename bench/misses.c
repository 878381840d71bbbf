/*
 * Cache misses by procedure, as callgrind simulates them.
 *
 *   misses CALLGRIND.OUT
 *
 * Prints for each procedure that was executed: image, start, misses of the first instruction cache,
 * the first data cache, and of the last cache for instructions and for data. Made with callgrind's
 * --cache-sim=yes, which is cachegrind's simulation, but by instruction: cachegrind itself knows
 * only names, and stripped programs have none.
 */
#include "base/vec.h"
#include "callgrind.h"
#include "image/image.h"

struct sum {
	uint64_t start;
	uint64_t count[CALLGRIND_EVENTS];
};

static void add_insn(struct hmap *sums, struct image *im, const struct callgrind_insn *i)
{
	const struct procedure *p = image_procedure_at(im, i->address);
	struct sum *s = p ? hmap_put(sums, &p->start, NULL) : NULL;

	for (int k = 0; s && k < CALLGRIND_EVENTS; k++)
		s->count[k] += i->count[k];
}

static void print_object(const struct callgrind *c, uint32_t object)
{
	struct hmap sums;
	struct image *im;

	if (image_open_path(c->objects.strings[object], &im, NULL) < 0)
		return;
	hmap_init(&sums, sizeof(struct sum), offsetof(struct sum, count));
	for (struct callgrind_insn *i = NULL; (i = hmap_next(&c->insns, i));)
		if (i->object == object)
			add_insn(&sums, im, i);
	for (struct sum *s = NULL; (s = hmap_next(&sums, s));)
		printf("%s 0x%" PRIx64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
			c->objects.strings[object], s->start, s->count[CALLGRIND_I1],
			s->count[CALLGRIND_D1], s->count[CALLGRIND_IL], s->count[CALLGRIND_DL]);
	hmap_deinit(&sums);
	image_destroy(im);
}

int main(int argc, char **argv)
{
	struct callgrind c;

	if (argc != 2)
		errx(2, "usage: misses CALLGRIND.OUT");
	callgrind_open(&c, argv[1]);
	for (uint32_t i = 0; i < c.objects.n; i++)
		print_object(&c, i);
	callgrind_deinit(&c);
	return ferror(stdout) || fflush(stdout) ? 1 : 0;
}
