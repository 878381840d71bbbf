#include "collect/contexts_internal.h"
#include "collect/image_cache.h"
#include "image/frames.h"

/* A path as it comes together, innermost first, with room for what stands above all roots. */
struct gathering {
	struct contexts *c;
	const struct context_path *p;
	struct call_frame frames[CONTEXTS_FRAMES + 1];
	size_t n;
	uint32_t image; /* of the last one, and where in it */
	uint64_t offset;
};

static void add(struct gathering *g, uint64_t pc, bool exact)
{
	if (g->n == CONTEXTS_FRAMES)
		return;
	g->image = g->p->place(g->p->arg, pc - !exact, &g->offset);
	g->frames[g->n++] = contexts_frame(g->c, g->image, g->offset, 0);
}

/* Whether the last one begins its thread. Those of the kernel have nothing else. */
static bool is_whole(const struct gathering *g)
{
	const struct cached_image *img = image_cache_get(g->c->images, g->image);

	if (!g->n || g->n == CONTEXTS_FRAMES || g->image == IMAGE_NUMBER_UNKNOWN)
		return false;
	if (img->kind == IMAGE_KERNEL || img->kind == IMAGE_MODULE)
		return g->image == g->p->program;
	return contexts_begins_threads(g->c, g->image, g->offset);
}

static const struct frames *find_rows(void *arg, uint64_t pc, uint64_t *bias)
{
	struct gathering *g = arg;
	uint64_t offset, vaddr;
	uint32_t image = g->p->place(g->p->arg, pc, &offset);

	if (image == IMAGE_NUMBER_UNKNOWN ||
		!cached_image_address(image_cache_get(g->c->images, image), offset, &vaddr))
		return NULL;
	*bias = pc - vaddr;
	return contexts_rows(g->c, image);
}

/* True when the walk has come to the root. */
static bool walk(struct gathering *g)
{
	struct walk_frame walked[CONTEXTS_FRAMES];
	size_t n;
	enum walk_end end = walk_stack(g->p->stack, find_rows, g, walked, CONTEXTS_FRAMES, &n);

	g->c->statistics.ends[end]++;
	for (size_t i = 0; i < n; i++)
		add(g, walked[i].pc, walked[i].exact);
	return end == WALK_ROOT;
}

void contexts_path(struct contexts *c, const struct context_path *p)
{
	struct program *program = contexts_program(c, contexts_key(c, p->program));
	struct context_sample s = {.program = p->program, .who = p->who};
	struct gathering g = {.c = c, .p = p, .image = IMAGE_NUMBER_UNKNOWN};
	bool whole = false;

	program->number = p->program;
	for (size_t i = 0; i < p->n; i++)
		/* Where the kernel was entered is no call, and comes back nowhere else. */
		add(&g, p->pcs[i], !i || ((int64_t)p->pcs[i - 1] < 0 && (int64_t)p->pcs[i] >= 0));
	if (p->stack)
		whole = walk(&g);
	whole |= is_whole(&g);
	if (!p->stack)
		c->statistics.ends[whole ? WALK_ROOT : WALK_CUT]++;
	contexts_count(c, &s,
		whole ? call_map_path(program->known, NULL, g.frames, g.n)
		      : contexts_rootless(program, g.frames, g.n));
}

bool contexts_full(const struct contexts *c)
{
	return c->pending.n + c->unplaced.n > CONTEXTS_SAMPLES / 4 * 3 ||
	       c->walked.n > CONTEXTS_SAMPLES / 4 * 3;
}
