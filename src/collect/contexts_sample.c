/*
 * Samples that wait for their paths. One path is looked for once for all samples of a frame,
 * wherever in the procedure they fell: there are few frames, and many instructions.
 */
#include "base/mem.h"
#include "collect/contexts_internal.h"
#include "collect/driver.h"
#include "collect/image_cache.h"
#include "image/frames.h"

#include <string.h>

enum {
	MOST_WISHES = 8,   /* for stacks of one frame, between two flushes */
	MOST_ASKS = 4096,  /* for callers, from different places in it */
	GROWN = 16,        /* the part by which a map grows until callers are asked for again, */
	GROWN_PATHS = 128, /* and until it is seen whether there are other paths */
};

/* ---- code ---- */

/* Whether code from one address up to another, of which one row speaks, is of one procedure. */
static bool is_one_procedure(
	struct contexts *c, uint32_t image, uint64_t from, uint64_t to, uint64_t procedure)
{
	const struct footprint *f = &image_cache_get(c->images, image)->footprint;
	ssize_t found = footprint_find(f, from);
	const struct seen_procedure *p = found >= 0 ? &f->procedures.p[found] : NULL;
	struct range only;
	uint64_t first, last;

	if (p && p->nranges == 1) {
		const struct range *r = seen_ranges(p, &only);

		if (to - r->start <= r->size)
			return p->start == procedure;
	}
	return contexts_procedure(c, image, from, &first) &&
	       contexts_procedure(c, image, to - 1, &last) && first == procedure &&
	       last == procedure;
}

/* The code around an address of which one row and one procedure speak, as far as that is asked. */
static void measure(
	struct contexts *c, uint32_t image, uint64_t vaddr, uint64_t offset, struct stretch *s)
{
	enum image_kind kind = (enum image_kind)image_cache_get(c->images, image)->kind;
	const struct frames *f =
		kind == IMAGE_ELF || kind == IMAGE_VDSO ? contexts_rows(c, image) : NULL;
	uint64_t piece = offset - offset % CONTEXTS_STRETCH_MOST;
	uint64_t low = piece, high = piece + CONTEXTS_STRETCH_MOST;
	uint64_t start, end;
	const struct frame_rule *r = f ? frames_around(f, vaddr, &start, &end) : NULL;

	s->base = !r                     ? BASE_NONE
		  : r->base == FRAME_RSP ? BASE_RSP
		  : r->base == FRAME_RBP ? BASE_RBP
					 : BASE_OTHER;
	s->size = r ? r->offset : 0;
	s->low = (uint8_t)(offset - piece);
	s->high = s->low + 1;
	if (f && !r)
		return;
	if (r && vaddr - start < offset - low)
		low = offset - (vaddr - start);
	if (r && end - vaddr < high - offset)
		high = offset + (end - vaddr);
	if (is_one_procedure(
		    c, image, vaddr - (offset - low), vaddr + (high - offset), s->procedure)) {
		s->low = (uint8_t)(low - piece);
		s->high = (uint8_t)(high - piece);
	}
}

struct stretch *contexts_stretch(struct contexts *c, uint32_t image, uint64_t offset)
{
	const struct cached_image *img = image_cache_get(c->images, image);
	uint64_t piece = offset / CONTEXTS_STRETCH_MOST, vaddr;
	uint8_t at = offset % CONTEXTS_STRETCH_MOST;
	uint64_t h = (piece ^ img->key) * 0x9e3779b97f4a7c15;
	struct stretch *s = &c->stretches[(h >> 40) % CONTEXTS_STRETCHES];

	if (s->image == img->key && s->piece == piece && at >= s->low && at < s->high)
		return s;
	if (piece > UINT32_MAX || image == IMAGE_NUMBER_UNKNOWN || img->kind == IMAGE_JIT ||
		img->kind == IMAGE_ANON || !cached_image_address(img, offset, &vaddr))
		return NULL;
	*s = (struct stretch){.piece = (uint32_t)piece};
	if (!contexts_procedure(c, image, vaddr, &s->procedure))
		return NULL;
	measure(c, image, vaddr, offset, s);
	s->image = image_cache_get(c->images, image)->key;
	return s;
}

/* Files stay as they are; code of the kernel comes and goes, and has no rows. */
void contexts_forget_stretches(struct contexts *c)
{
	for (size_t i = 0; i < CONTEXTS_STRETCHES; i++)
		if (c->stretches[i].base == BASE_NONE)
			c->stretches[i] = (struct stretch){0};
}

/* ---- frames ---- */

/* Where the stack is matters to no rule, so it is put anywhere. */
static bool size_by_rule(const struct frames *f, const struct frame_rule *r, uint64_t vaddr,
	uint64_t frame, uint64_t *size)
{
	uint64_t registers[FRAME_REGISTERS] = {[FRAME_RSP] = 1ull << 46, [FRAME_RIP] = vaddr};
	uint32_t known = 1u << FRAME_RSP | 1u << FRAME_RIP | (frame ? 1u << FRAME_RBP : 0);
	uint64_t cfa;

	registers[FRAME_RBP] = registers[FRAME_RSP] + 8 * frame;
	if (!walk_cfa(f, r, registers, known, &cfa))
		return false;
	*size = cfa - registers[FRAME_RSP];
	return true;
}

static bool bare_frame_size(
	const struct contexts *c, uint32_t image, uint64_t vaddr, uint64_t *size)
{
	struct bare_frame key = {.image = contexts_key(c, image), .vaddr = vaddr};
	const struct bare_frame *known = hmap_get(&c->bare, &key);

	*size = known ? known->size : 0;
	return known;
}

static uint64_t frame_of(uint64_t where)
{
	return where >> WHERE_FRAME_SHIFT & WHERE_FRAME;
}

/*
 * How far the frame's address is above the stack pointer; false when the rows do not tell it from
 * what was sampled.
 */
static bool frame_size(struct contexts *c, const struct context_sample *s, uint64_t *size)
{
	const struct cached_image *img = image_cache_get(c->images, s->image);
	const struct frames *f = contexts_rows(c, s->image);
	uint64_t frame = frame_of(s->where), vaddr;
	const struct frame_rule *r;

	/* Code made at run time is walked by frame pointers (calls/walk.c). */
	if (!f && (img->kind == IMAGE_JIT || img->kind == IMAGE_ANON)) {
		*size = 8 * frame + 16;
		return frame;
	}
	if (!f || !cached_image_address(img, s->offset, &vaddr))
		return false;
	r = frames_at(f, vaddr);
	return r ? size_by_rule(f, r, vaddr, frame, size)
		 : bare_frame_size(c, s->image, vaddr, size);
}

/* How far the stack pointer is below which base; false when nobody knows the stack. */
static bool find_stack(const struct contexts *c, const struct context_sample *s,
	enum stack_kind *kind, uint64_t *depth)
{
	const struct stack_root *root;

	*kind = contexts_stack_kind(s->where);
	*depth = 8 * (s->where & WHERE_HEIGHT);
	if (*kind != STACK_OTHER)
		return true;
	root = stack_roots_find(&c->roots, s->owner, s->sp);
	if (!root)
		return false;
	*kind = root->kind;
	*depth = root->base - s->sp;
	return true;
}

bool contexts_frames(struct contexts *c, const struct context_sample *s, enum stack_kind *kind,
	struct call_frame *frame, struct call_told *told)
{
	uint64_t depth = 0, size = 0;
	bool known = find_stack(c, s, kind, &depth);

	/* Who begins the stack need have no rows. */
	if (known && !frame_size(c, s, &size)) {
		known = depth <= CONTEXTS_FIRST_FRAME;
		size = depth;
	}
	*frame = contexts_frame(c, s->image, s->offset, known ? (int64_t)(depth - size) : 0);
	*told = (struct call_told){0};
	told->near = known && s->where & WHERE_NEAR;
	for (; known && told->n < CALL_TOLD && s->callers[told->n].at; told->n++) {
		const struct context_caller *by = &s->callers[told->n];

		told->callers[told->n] = contexts_frame(
			c, by->image, by->offset, (int64_t)depth - 8 * (int64_t)by->at);
	}
	return known;
}

uint64_t contexts_kernel_procedure(struct contexts *c, const struct context_sample *s)
{
	const struct stretch *at =
		s->kernel ? contexts_stretch(c, s->kernel - 1, s->kernel_offset) : NULL;

	return at ? at->procedure : 0;
}

/* Threads of the kernel have no program that called it. */
static bool is_in_kernel_thread(const struct context_sample *s)
{
	return s->kernel && s->image == IMAGE_NUMBER_UNKNOWN && !s->offset;
}

/* frame_size, where a row says it. */
static bool size_by(struct contexts *c, const struct context_sample *s, const struct stretch *at,
	uint64_t *size)
{
	uint64_t frame = frame_of(s->where);

	if (at->base == BASE_NONE)
		return false;
	if (at->base == BASE_OTHER)
		return frame_size(c, s, size);
	*size = (uint64_t)at->size + (at->base == BASE_RBP ? 8 * frame : 0);
	return at->base == BASE_RSP || frame;
}

uint32_t contexts_telling(struct contexts *c, const struct call_told *told)
{
	struct told_callers *t;
	bool fresh;

	if (!told->n)
		return 0;
	t = hmap_put(&c->callers_told, told, &fresh);
	if (fresh) {
		*vec_add(&c->tellings) = *told;
		t->number = (uint32_t)c->tellings.n;
	}
	return t->number;
}

struct call_told contexts_told(const struct contexts *c, const struct placed *p)
{
	return p->told ? c->tellings.p[p->told - 1] : (struct call_told){0};
}

/* What the sample told; false when that is not known yet. */
static bool place_callers(
	struct contexts *c, const struct context_sample *s, uint64_t depth, struct placed *out)
{
	struct call_told told = {.near = !!(s->where & WHERE_NEAR)};

	for (; told.n < CALL_TOLD && s->callers[told.n].at; told.n++) {
		const struct context_caller *by = &s->callers[told.n];
		const struct stretch *at = contexts_stretch(c, by->image, by->offset);

		if (!at)
			return false;
		told.callers[told.n] = (struct call_frame){contexts_key(c, by->image),
			at->procedure, (int64_t)depth - 8 * (int64_t)by->at};
	}
	out->told = contexts_telling(c, &told);
	return true;
}

/* The same as contexts_frames for most, in less time; false for the others. */
static bool place(struct contexts *c, const struct context_sample *s, struct placed *out)
{
	uint64_t depth = 8 * (s->where & WHERE_HEIGHT), size;
	const struct stretch *at;

	*out = (struct placed){.kernel_procedure = contexts_kernel_procedure(c, s),
		.image = s->image,
		.kernel = s->kernel,
		.program = s->program,
		.who = s->who,
		.kind = contexts_stack_kind(s->where),
		.doubtful = contexts_is_doubtful(s->where)};
	if (is_in_kernel_thread(s)) {
		out->kind = CONTEXTS_NO_STACK;
		return true;
	}
	at = out->kind == STACK_OTHER ? NULL : contexts_stretch(c, s->image, s->offset);
	if (!at || !size_by(c, s, at, &size))
		return false;
	out->frame = (struct call_frame){
		contexts_key(c, s->image), at->procedure, (int64_t)(depth - size)};
	return !s->callers[0].at || place_callers(c, s, depth, out);
}

/* ---- what would tell more ---- */

uint64_t contexts_ask(const int64_t *heights, size_t n, uint64_t depth)
{
	uint64_t ask = 0;
	unsigned to = 0;

	for (size_t i = 0; i < n; i++) {
		int64_t at = ((int64_t)depth - heights[i]) / 8;

		if (at > 0 && at <= 0xffff)
			ask |= (uint64_t)at << 16 * to++;
	}
	return ask;
}

/*
 * True when it is another answer than it may have been. Where there is one path, nothing is asked
 * when it is met for the first time: most are not met again.
 */
static bool look(struct look *l, const struct call_map *known, enum stack_kind kind,
	const struct call_frame *f, const struct call_told *told)
{
	uint32_t heights = (uint32_t)call_map_size(known) + 1;
	uint32_t rivals, others;
	int64_t ask[CALL_TOLD];

	if (l->heights > 1 && heights - l->seen <= l->seen / GROWN_PATHS)
		return false;
	l->seen = heights;
	rivals = call_map_paths_at(known, kind, f);
	if (!l->heights && rivals == 1 && !told->n) {
		l->heights = 1;
		return false;
	}
	if (l->rivals && rivals == l->rivals && heights - l->heights <= l->heights / GROWN)
		return false;
	l->heights = heights;
	l->rivals = rivals;
	l->asks = (uint8_t)call_map_ask(known, kind, f, ask);
	for (unsigned i = 0; i < l->asks; i++)
		l->ask[i] = (int32_t)ask[i];
	call_map_find_called(known, kind, f, told, &others);
	/* None of those that are known was called like this. */
	l->strange = others && told->n && !call_map_has_callers(known, kind, f, told);
	return true;
}

/* Whether the sample has told what is asked for. */
static bool has_told(const struct context_sample *s, uint64_t ask)
{
	for (unsigned i = 0; i < DRIVER_CALLERS; i++)
		if (s->callers[i].at != ASK_AT(ask, i))
			return false;
	return true;
}

static enum context_wish wish_of(
	struct look *l, const struct context_sample *s, bool changed, uint64_t *ask)
{
	bool based = contexts_stack_kind(s->where) != STACK_OTHER;
	int64_t heights[CALL_TOLD];

	for (unsigned i = 0; i < l->asks; i++)
		heights[i] = l->ask[i];
	*ask = based ? contexts_ask(heights, l->asks, 8 * (s->where & WHERE_HEIGHT)) : 0;
	/* The slot of one whose stack was not taken is another's. */
	if (l->rivals && !(s->where & WHERE_HELD) && !has_told(s, *ask)) {
		l->asked += l->asked < MOST_ASKS;
		return l->asked < MOST_ASKS ? CONTEXT_WISH_CALLERS : CONTEXT_WISH_NOTHING;
	}
	if ((!l->rivals || l->strange) && changed && l->wishes < MOST_WISHES) {
		l->wishes++;
		return CONTEXT_WISH_STACK;
	}
	return CONTEXT_WISH_NOTHING;
}

/* ---- samples ---- */

static void *waiting(struct contexts *c, struct hmap *m, const void *key, uint64_t count)
{
	void *found = hmap_get(m, key);

	if (found || c->pending.n + c->unplaced.n < CONTEXTS_SAMPLES)
		return found ? found : hmap_put(m, key, NULL);
	c->statistics.refused += count;
	return NULL;
}

static enum context_wish take_unplaced(struct contexts *c, const struct context_sample *s,
	const struct call_map *known, uint64_t count, uint64_t *ask)
{
	struct unplaced *u = waiting(c, &c->unplaced, s, count);
	enum stack_kind kind;
	struct call_frame f;
	struct call_told told;

	if (!u)
		return CONTEXT_WISH_NOTHING;
	u->count += count;
	if (u->look.heights == call_map_size(known) + 1)
		return CONTEXT_WISH_NOTHING;
	if (!contexts_frames(c, s, &kind, &f, &told)) {
		u->look = (struct look){
			.heights = (uint32_t)call_map_size(known) + 1, .wishes = u->look.wishes};
		return wish_of(&u->look, s, true, ask);
	}
	return wish_of(&u->look, s, look(&u->look, known, kind, &f, &told), ask);
}

enum context_wish contexts_sample(
	struct contexts *c, const struct context_sample *s, uint64_t count, uint64_t *ask)
{
	const struct call_map *known = contexts_program(c, contexts_key(c, s->program))->known;
	struct placed key;
	struct pending *p;
	struct call_told told;
	bool changed;

	if (!place(c, s, &key))
		return take_unplaced(c, s, known, count, ask);
	p = waiting(c, &c->pending, &key, count);
	if (!p)
		return CONTEXT_WISH_NOTHING;
	if (!p->count)
		contexts_name(c, key.image, key.frame.procedure);
	p->count += count;
	if (key.kind == CONTEXTS_NO_STACK)
		return CONTEXT_WISH_NOTHING;
	told = contexts_told(c, &key);
	changed = look(&p->look, known, (enum stack_kind)key.kind, &p->key.frame, &told);
	return wish_of(&p->look, s, changed, ask);
}
