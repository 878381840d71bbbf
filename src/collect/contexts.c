#include "collect/contexts.h"

#include "base/err.h"
#include "base/hmap.h"
#include "base/mem.h"
#include "collect/driver.h"
#include "collect/image_cache.h"
#include "image/frames.h"
#include "store/contexts.h"
#include "store/edges.h"
#include "store/store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	MOST_SAMPLES = 1 << 18,    /* different ones between two flushes */
	MOST_FRAMES = 1024,        /* of a stack */
	FIRST_FRAME = 256,         /* bytes between the base and who was called first */
	MOST_JUDGEMENTS = 1 << 20, /* that wait for a flush */
};

struct pending {
	struct context_sample sample;
	uint64_t count;
};

/* Rows of an image, by its key; NULL: it has none. */
struct image_frames {
	uint64_t key;
	struct frames *frames;
};

struct program {
	uint64_t key;
	struct call_map *known; /* all that was ever learned */
	struct call_map *fresh; /* since the last flush; NULL: nothing */
	uint32_t number;        /* of its image, since the last flush */
};

/* A walked path that waits for what the map says of it. */
struct judgement {
	struct context_sample sample;
	uint32_t node, pad; /* of its program's map */
};

struct contexts {
	enum contexts_how how;
	struct image_cache *images;
	const struct process_table *processes;
	struct hmap pending;    /* struct pending */
	struct hmap frames;     /* struct image_frames */
	struct hmap programs;   /* struct program */
	struct hmap procedures; /* struct called_procedure, all of it key */
	VEC(struct judgement) judgements;
	struct contexts_settled settled;
	struct contexts_statistics statistics, told; /* told: of the samples that are settled */
};

struct contexts *contexts_create(
	struct image_cache *images, const struct process_table *processes, enum contexts_how how)
{
	struct contexts *c = xcalloc(1, sizeof *c);

	c->images = images;
	c->processes = processes;
	c->how = how;
	hmap_init(&c->pending, sizeof(struct pending), sizeof(struct context_sample));
	hmap_init(&c->frames, sizeof(struct image_frames), sizeof(uint64_t));
	hmap_init(&c->programs, sizeof(struct program), sizeof(uint64_t));
	hmap_init(&c->procedures, sizeof(struct called_procedure), sizeof(struct called_procedure));
	return c;
}

static void clear_settled(struct contexts *c)
{
	vec_each (p, &c->settled.profiles)
		call_tree_destroy(p->tree);
	c->settled.profiles.n = c->settled.procedures.n = c->settled.lessons.n = 0;
	c->told = (struct contexts_statistics){0};
}

void contexts_destroy(struct contexts *c)
{
	if (!c)
		return;
	clear_settled(c);
	for (struct image_frames *f = NULL; (f = hmap_next(&c->frames, f));)
		frames_destroy(f->frames);
	for (struct program *p = NULL; (p = hmap_next(&c->programs, p));) {
		call_map_destroy(p->known);
		call_map_destroy(p->fresh);
	}
	hmap_deinit(&c->pending);
	hmap_deinit(&c->frames);
	hmap_deinit(&c->programs);
	hmap_deinit(&c->procedures);
	vec_deinit(&c->judgements);
	vec_deinit(&c->settled.profiles);
	vec_deinit(&c->settled.procedures);
	vec_deinit(&c->settled.lessons);
	free(c);
}

/* ---- images ---- */

static uint64_t key_of(const struct contexts *c, uint32_t image)
{
	const struct cached_image *img = image_cache_get(c->images, image);

	return edge_image_key(img->kind, &img->id, img->path);
}

static const struct frames *frames_of(struct contexts *c, uint32_t image)
{
	uint64_t key = key_of(c, image);
	struct image_frames *f = hmap_get(&c->frames, &key);
	struct image *im;

	if (f)
		return f->frames;
	im = image_cache_functions(c->images, c->processes, image);
	f = hmap_put(&c->frames, &key, NULL);
	if (im && frames_open(im, &f->frames) < 0)
		f->frames = NULL;
	return f->frames;
}

/* The procedure at an address, 0 when there is none. */
static uint64_t procedure_at(struct contexts *c, uint32_t image, uint64_t vaddr)
{
	const struct cached_image *img = image_cache_get(c->images, image);
	ssize_t found = footprint_find(&img->footprint, vaddr);
	const struct procedure *p;
	struct image *im;

	if (found >= 0)
		return img->footprint.procedures.p[found].start;
	im = image_cache_functions(c->images, c->processes, image);
	p = im ? image_procedure_at(im, vaddr) : NULL;
	return p ? p->start : 0;
}

static struct program *program_of(struct contexts *c, uint64_t key)
{
	bool fresh;
	struct program *p = hmap_put(&c->programs, &key, &fresh);

	if (fresh)
		p->known = call_map_create();
	return p;
}

/* A place in a path, whose name the store must know. */
static struct call_frame frame_at(
	struct contexts *c, uint32_t image, uint64_t offset, int64_t height)
{
	const struct cached_image *img = image_cache_get(c->images, image);
	struct call_frame f = {.image = key_of(c, image), .height = height};
	struct called_procedure seen = {.image = image};
	uint64_t vaddr;

	if (image == IMAGE_NUMBER_UNKNOWN || !cached_image_address(img, offset, &vaddr))
		return f;
	f.procedure = procedure_at(c, image, vaddr);
	seen.vaddr = f.procedure;
	if (f.procedure)
		hmap_put(&c->procedures, &seen, NULL);
	return f;
}

/* ---- paths of samples ---- */

/*
 * The height of the frame's address; false when the rows do not tell it from what was sampled.
 * Where the stack is matters to no rule, so it is put anywhere.
 */
static bool height_of(struct contexts *c, const struct context_sample *s, int64_t *height)
{
	const uint64_t base = 1ull << 46;
	const struct cached_image *img = image_cache_get(c->images, s->image);
	const struct frames *f = frames_of(c, s->image);
	uint64_t frame = s->where >> WHERE_FRAME_SHIFT & WHERE_FRAME, cfa;
	uint64_t registers[FRAME_REGISTERS] = {0};
	uint32_t known = 1u << FRAME_RSP | 1u << FRAME_RIP | (frame ? 1u << FRAME_RBP : 0);
	const struct frame_rule *r;

	if (!f || !cached_image_address(img, s->offset, &registers[FRAME_RIP]))
		return false;
	registers[FRAME_RSP] = base - 8 * (s->where & WHERE_HEIGHT);
	registers[FRAME_RBP] = registers[FRAME_RSP] + 8 * frame;
	r = frames_at(f, registers[FRAME_RIP]);
	if (!r || !walk_cfa(f, r, registers, known, &cfa))
		return false;
	*height = (int64_t)(base - cfa);
	return true;
}

static enum stack_kind kind_of(uint64_t where)
{
	return (enum stack_kind)(where >> WHERE_KIND_SHIFT);
}

/* The sample's frame, and its caller if that was told; false when the height is not known. */
static bool frames_of_sample(struct contexts *c, const struct context_sample *s,
	struct call_frame *frame, struct call_frame *caller)
{
	int64_t height = 0;
	bool told = kind_of(s->where) != STACK_OTHER && height_of(c, s, &height);

	*frame = frame_at(c, s->image, s->offset, height);
	if (told && s->caller)
		*caller = frame_at(c, s->caller - 1, s->caller_offset, 0);
	return told;
}

/*
 * The path to the sample's frame, which is given as well; CALL_NONE: it is not known. Whether it
 * was seen at this height, and how many others were.
 */
static uint32_t find_path(struct contexts *c, const struct context_sample *s, struct call_frame *f,
	bool *seen, uint32_t *others)
{
	const struct program *program = program_of(c, key_of(c, s->program));
	enum stack_kind kind = kind_of(s->where);
	struct call_frame caller;
	uint32_t path;

	*others = 0;
	*seen = false;
	if (!frames_of_sample(c, s, f, &caller))
		return CALL_NONE;
	if (s->caller)
		path = call_map_find_called(program->known, kind, f, &caller, others);
	else
		path = call_map_find(program->known, kind, f, others);
	*seen = path != CALL_NONE;
	return *seen ? path : call_map_guess(program->known, kind, f);
}

/* ---- stacks ---- */

struct journey {
	struct contexts *c;
	context_place_fn *place;
	void *arg;
};

static const struct frames *find_rows(void *arg, uint64_t pc, uint64_t *bias)
{
	struct journey *j = arg;
	uint64_t offset, vaddr;
	uint32_t image = j->place(j->arg, pc, &offset);

	if (image == IMAGE_NUMBER_UNKNOWN ||
		!cached_image_address(image_cache_get(j->c->images, image), offset, &vaddr))
		return NULL;
	*bias = pc - vaddr;
	return frames_of(j->c, image);
}

/* From machine code's numbers to DWARF's. */
static struct walk_start start_of(const struct driver_stack *s, const uint8_t *bytes)
{
	static const uint8_t order[16] = {0, 2, 1, 3, 6, 7, 5, 4, 8, 9, 10, 11, 12, 13, 14, 15};
	struct walk_start w = {
		.known = (1u << FRAME_REGISTERS) - 1, .stack = bytes, .size = s->size};

	for (unsigned i = 0; i < 16; i++)
		w.registers[i] = s->r[order[i]];
	w.registers[FRAME_RIP] = s->rip;
	return w;
}

/* `n` frames below a path that is known, or from the root on. */
static void learn(struct program *p, enum stack_kind kind, const struct call_prefix *prefix,
	const struct call_frame *frames, size_t n)
{
	if (!p->fresh)
		p->fresh = call_map_create();
	call_map_learn(p->fresh, prefix, kind, frames, n);
	call_map_learn(p->known, prefix, kind, frames, n);
}

/* What is known now of the sample's path, which was walked. */
static void judge(struct contexts *c, const struct judgement *j)
{
	struct program *p = program_of(c, key_of(c, j->sample.program));
	enum call_verdict verdict = PATH_MISSING;
	struct call_frame frame, caller;
	struct call_answer answer;

	if (frames_of_sample(c, &j->sample, &frame, &caller))
		verdict = call_map_judge(p->known, kind_of(j->sample.where), &frame,
			j->sample.caller ? &caller : NULL, j->node, &answer);
	if (!p->fresh)
		p->fresh = call_map_create();
	p->number = j->sample.program;
	c->statistics.verdicts[verdict]++;
	call_map_count(p->fresh, verdict);
}

/* The sample that a stack was copied for, as far as its path is concerned. */
static struct context_sample sample_of(
	const struct journey *j, uint32_t program, const struct driver_stack *s)
{
	struct context_sample out = {.program = program, .where = s->context.where};

	out.image = j->place(j->arg, s->rip, &out.offset);
	if (s->context.caller)
		out.caller = 1 + j->place(j->arg, s->context.caller - 1, &out.caller_offset);
	return out;
}

/*
 * Whether the last frame is the outermost. Of the code that programs begin with, some has no rows;
 * but then the stack is at its end.
 */
static bool is_whole(
	const struct driver_stack *s, const struct walk_frame *frames, size_t n, enum walk_end end)
{
	return end == WALK_ROOT ||
	       (end == WALK_STRANGE && n > 1 && s->base - frames[n - 2].cfa <= FIRST_FRAME);
}

static bool is_lesson(const struct contexts *c, const struct driver_stack *s)
{
	return s->learn || c->how == CONTEXTS_COPIED;
}

/*
 * A stack that is learned from would speak for itself, so it is judged before. Those that are only
 * looked at say how right the report is, which tells what is known when it is made.
 */
static void take_whole(struct contexts *c, const struct journey *j, uint32_t program,
	const struct driver_stack *s, const struct call_frame *frames, size_t n)
{
	struct program *p = program_of(c, key_of(c, program));
	struct judgement judgement = {.sample = sample_of(j, program, s)};

	judgement.node = call_map_path(p->known, NULL, frames, n);
	if (s->judge && c->how != CONTEXTS_JUDGED)
		judge(c, &judgement);
	else if (s->judge && c->judgements.n < MOST_JUDGEMENTS)
		*vec_add(&c->judgements) = judgement;
	if (is_lesson(c, s))
		learn(p, kind_of(s->context.where), NULL, frames, n);
}

void contexts_stack(struct contexts *c, uint32_t program, const struct driver_stack *s,
	const uint8_t *bytes, context_place_fn *place, void *arg)
{
	struct journey j = {c, place, arg};
	struct walk_start start = start_of(s, bytes);
	struct walk_frame walked[MOST_FRAMES];
	struct call_frame frames[MOST_FRAMES];
	struct program *p = program_of(c, key_of(c, program));
	enum stack_kind kind = kind_of(s->context.where);
	struct call_prefix prefix = {call_map_tree(p->known), CALL_NONE};
	enum walk_end end;
	size_t n;

	end = walk_stack(&start, find_rows, &j, walked, MOST_FRAMES, &n);
	p->number = program;
	for (size_t i = 0; i < n; i++) {
		uint64_t offset;
		uint32_t image = place(arg, walked[i].pc - !walked[i].exact, &offset);

		frames[i] = frame_at(c, image, offset, (int64_t)(s->base - walked[i].cfa));
	}
	if (is_whole(s, walked, n, end)) {
		c->statistics.ends[WALK_ROOT]++;
		take_whole(c, &j, program, s, frames, n);
		return;
	}
	/* The last one has no address; those before it may be known, and who called them. */
	if (kind == STACK_OTHER || !is_lesson(c, s))
		n = 0;
	else
		n = call_map_join(p->known, kind, frames, n - 1, &prefix.node);
	if (n)
		learn(p, kind, &prefix, frames, n);
	c->statistics.ends[end]++;
	c->statistics.joined += n > 0;
}

/* ---- samples ---- */

static bool is_kernel_thread(const struct context_sample *s)
{
	return s->kernel && s->image == IMAGE_NUMBER_UNKNOWN && !s->offset;
}

enum context_wish contexts_sample(
	struct contexts *c, const struct context_sample *s, uint64_t count, uint64_t *back)
{
	struct pending *p = hmap_get(&c->pending, s);
	struct call_frame f;
	uint32_t others;
	bool seen;

	if (p) {
		p->count += count;
		return CONTEXT_WISH_NOTHING;
	}
	if (c->pending.n >= MOST_SAMPLES) {
		c->statistics.refused += count;
		return CONTEXT_WISH_NOTHING;
	}
	p = hmap_put(&c->pending, s, NULL);
	p->count = count;
	if (is_kernel_thread(s))
		return CONTEXT_WISH_NOTHING;
	find_path(c, s, &f, &seen, &others);
	if (!seen)
		return CONTEXT_WISH_STACK;
	*back = (uint64_t)f.height + 8;
	return others && !s->caller ? CONTEXT_WISH_CALLER : CONTEXT_WISH_NOTHING;
}

static struct call_tree *tree_of(struct contexts *c, uint32_t program, uint32_t who)
{
	struct metric_names names = {0};
	struct context_profile *p;

	vec_each (known, &c->settled.profiles)
		if (known->program == program && known->who == who)
			return known->tree;
	metric_add(&names, CONTEXT_METRIC_RANKED);
	metric_add(&names, CONTEXT_METRIC_UNKNOWN);
	p = vec_add(&c->settled.profiles);
	*p = (struct context_profile){program, who, call_tree_create(&names)};
	return p->tree;
}

static uint32_t child(struct call_tree *t, uint32_t parent, const struct call_frame *f)
{
	return call_tree_child(
		t, parent, &(struct call_place){.image = f->image, .procedure = f->procedure});
}

/* Below a node of its own: nobody knows who called it. */
static uint32_t unknown_path(struct call_tree *t, const struct call_frame *f)
{
	return child(t, child(t, CALL_NONE, &(struct call_frame){0}), f);
}

static void settle_sample(struct contexts *c, const struct pending *p)
{
	const struct context_sample *s = &p->sample;
	struct call_tree *t = tree_of(c, s->program, s->who);
	uint32_t node = CALL_NONE, others = 0;
	bool known = is_kernel_thread(s), seen = known;
	struct call_frame f;

	if (!known) {
		uint32_t path = find_path(c, s, &f, &seen, &others);

		known = path != CALL_NONE;
		node = known ? call_tree_copy_path(t,
				       call_map_tree(program_of(c, key_of(c, s->program))->known),
				       path)
			     : unknown_path(t, &f);
	}
	if (s->kernel) {
		f = frame_at(c, s->kernel - 1, s->kernel_offset, 0);
		node = child(t, node, &f);
	}
	call_tree_node(t, node)->count += p->count;
	if (!known)
		call_tree_node(t, node)->metrics[1] += p->count;
	else if (others || !seen)
		call_tree_node(t, node)->metrics[0] += p->count;
	*(!known                  ? &c->told.unknown
		: others || !seen ? &c->told.ranked
				  : &c->told.unique) += p->count;
}

static int by_image(const void *a, const void *b)
{
	const struct called_procedure *x = a, *y = b;

	return x->image < y->image ? -1 : x->image > y->image;
}

const struct contexts_settled *contexts_settle(struct contexts *c)
{
	clear_settled(c);
	vec_each (j, &c->judgements)
		judge(c, j);
	c->judgements.n = 0;
	for (const struct pending *p = NULL; (p = hmap_next(&c->pending, p));)
		settle_sample(c, p);
	for (const struct called_procedure *p = NULL; (p = hmap_next(&c->procedures, p));)
		*vec_add(&c->settled.procedures) = *p;
	vec_sort(&c->settled.procedures, by_image);
	for (const struct program *p = NULL; (p = hmap_next(&c->programs, p));)
		if (p->fresh)
			*vec_add(&c->settled.lessons) =
				(struct context_lesson){.program = p->number, .map = p->fresh};
	return &c->settled;
}

void contexts_flushed(struct contexts *c)
{
	c->statistics.unique += c->told.unique;
	c->statistics.ranked += c->told.ranked;
	c->statistics.unknown += c->told.unknown;
	clear_settled(c);
	hmap_clear(&c->pending);
	hmap_clear(&c->procedures);
	for (struct program *p = NULL; (p = hmap_next(&c->programs, p));) {
		call_map_destroy(p->fresh);
		p->fresh = NULL;
	}
}

/* ---- from the database ---- */

struct loading {
	struct contexts *c;
	struct store *store;
	struct err *e;
	uint64_t program; /* key */
};

static int take_image(void *arg, const struct store_image *im)
{
	((struct loading *)arg)->program = edge_image_key(im->kind, &im->identity, im->path);
	return 0;
}

static int take_map(void *arg, const struct store_profile *p)
{
	struct loading *l = arg;
	int r = store_image_get(l->store, p->image, take_image, l, l->e);

	if (r == 0 && call_map_add(program_of(l->c, l->program)->known, p->data, p->size) < 0)
		r = err_set(l->e, -EBADMSG,
			"a path map in the database is damaged: see 'culprit db check'");
	return r;
}

int contexts_load(struct contexts *c, struct store *s, struct err *e)
{
	struct loading l = {.c = c, .store = s, .e = e};

	return store_profiles(s, &(struct store_filter){.type = &blob_pathmap}, take_map, &l, e);
}

void contexts_statistics(const struct contexts *c, struct contexts_statistics *out)
{
	*out = c->statistics;
	for (const struct program *p = NULL; (p = hmap_next(&c->programs, p));)
		out->heights += call_map_size(p->known);
}

size_t contexts_memory(const struct contexts *c)
{
	size_t sum = c->pending.slots * sizeof(struct pending);

	for (const struct image_frames *f = NULL; (f = hmap_next(&c->frames, f));)
		sum += f->frames ? frames_memory(f->frames) : 0;
	return sum;
}
