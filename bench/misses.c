/*
 * Cache misses by procedure, as callgrind simulates them.
 *
 *   misses CALLGRIND.OUT
 *
 * Prints for each procedure that was executed: image, start, misses of the first instruction cache,
 * the first data cache, of the last cache for instructions and for data, and how many instructions
 * were executed that prefetch, which the simulation does not. Made with callgrind's
 * --cache-sim=yes, which is cachegrind's simulation, but by instruction: cachegrind itself knows
 * only names, and stripped programs have none. Of data these are the misses of loads. What loads
 * from a place and stores there again ("add $1,(%rax)") waits for it like any load, but the
 * simulation counts it as a store: such misses are taken from there.
 */
#include "base/buf.h"
#include "base/vec.h"
#include "callgrind.h"
#include "image/image.h"
#include "isa/model.h"

struct sum {
	uint64_t start;
	uint64_t count[CALLGRIND_EVENTS], prefetches;
};

struct code {
	struct buf bytes; /* of one instruction, and behind it */
	struct model_insn insn;
};

static bool read_code(struct image *im, uint64_t address, struct code *c)
{
	struct range r = {.start = address, .size = 15};
	int rc;

	c->bytes.n = 0;
	do /* the last of a section is short */
		rc = image_code(im, &r, &c->bytes);
	while (rc < 0 && --r.size);
	return !rc && !model_insn(model_at(0), c->bytes.p, c->bytes.n, &c->insn);
}

static bool changes_memory(const struct model_insn *in)
{
	for (unsigned i = 0; i < in->nplaces; i++)
		if (in->place[i].loads && in->place[i].stores)
			return true;
	return false;
}

/* prefetcht0 and the like, and prefetchw: behind a REX prefix, perhaps. */
static bool prefetches(const struct buf *b)
{
	size_t at = b->n && b->p[0] >= 0x40 && b->p[0] <= 0x4f;

	return b->n > at + 1 && b->p[at] == 0x0f && (b->p[at + 1] == 0x18 || b->p[at + 1] == 0x0d);
}

static void add_insn(
	struct hmap *sums, struct image *im, const struct callgrind_insn *i, struct code *code)
{
	const struct procedure *p = image_procedure_at(im, i->address);
	struct sum *s = p ? hmap_put(sums, &p->start, NULL) : NULL;

	if (!s)
		return;
	for (int k = 0; k < CALLGRIND_EVENTS; k++)
		s->count[k] += i->count[k];
	if (!read_code(im, i->address, code))
		return;
	if (prefetches(&code->bytes))
		s->prefetches += i->count[CALLGRIND_EXECUTIONS];
	if (changes_memory(&code->insn)) {
		s->count[CALLGRIND_D1] += i->count[CALLGRIND_D1_WRITE];
		s->count[CALLGRIND_DL] += i->count[CALLGRIND_DL_WRITE];
	}
}

static void print_object(const struct callgrind *c, uint32_t object)
{
	struct code code = {0};
	struct hmap sums;
	struct image *im;

	if (image_open_path(c->objects.strings[object], &im, NULL) < 0)
		return;
	hmap_init(&sums, sizeof(struct sum), offsetof(struct sum, count));
	for (struct callgrind_insn *i = NULL; (i = hmap_next(&c->insns, i));)
		if (i->object == object)
			add_insn(&sums, im, i, &code);
	for (struct sum *s = NULL; (s = hmap_next(&sums, s));)
		printf("%s 0x%" PRIx64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
		       "\n",
			c->objects.strings[object], s->start, s->count[CALLGRIND_I1],
			s->count[CALLGRIND_D1], s->count[CALLGRIND_IL], s->count[CALLGRIND_DL],
			s->prefetches);
	buf_deinit(&code.bytes);
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
