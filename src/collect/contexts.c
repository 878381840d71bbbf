#include "collect/contexts.h"

#include "base/io.h"
#include "base/mem.h"
#include "collect/contexts_internal.h"
#include "collect/driver.h"
#include "collect/image_cache.h"
#include "image/frames.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Bytes of functions: stacks go through the same ones again and again. */
#define MOST_TABLES ((size_t)16 << 20)

enum {
	MOST_JUDGEMENTS = 1 << 20, /* that wait for a flush */
	MAIN_STACK = 64 << 20,     /* bytes of a program's own stack, at most */
	COROUTINE = 1 << 20,       /* bytes of a stack whose size nobody knows, at most */
	MOST_BARE = 1 << 16,       /* instructions without rows whose frames are known */
	STACK_REGISTER = 4,        /* rsp, as machine code numbers it */
};

_Static_assert(CALL_TOLD == DRIVER_CALLERS, "as much is told as is asked for");

struct contexts *contexts_create(
	struct image_cache *images, const struct process_table *processes, enum contexts_how how)
{
	struct contexts *c = xcalloc(1, sizeof *c);

	c->images = images;
	c->processes = processes;
	c->how = how;
	c->settled_ns = io_clock_ns(CLOCK_MONOTONIC);
	c->stretches = xcalloc(CONTEXTS_STRETCHES, sizeof *c->stretches);
	hmap_init(&c->pending, sizeof(struct pending), sizeof(struct placed));
	hmap_init(&c->unplaced, sizeof(struct unplaced), sizeof(struct context_sample));
	hmap_init(&c->callers_told, sizeof(struct told_callers), sizeof(struct call_told));
	hmap_init(&c->walked, sizeof(struct walked), offsetof(struct walked, count));
	hmap_init(&c->frames, sizeof(struct image_frames), sizeof(uint64_t));
	hmap_init(&c->bare, sizeof(struct bare_frame), offsetof(struct bare_frame, size));
	hmap_init(&c->programs, sizeof(struct program), sizeof(uint64_t));
	hmap_init(&c->procedures, sizeof(struct called_procedure), sizeof(struct called_procedure));
	contexts_init_tails(c);
	stack_roots_init(&c->roots);
	image_cache_keep_tables(images, MOST_TABLES);
	return c;
}

void contexts_destroy(struct contexts *c)
{
	if (!c)
		return;
	contexts_clear_settled(c);
	for (struct image_frames *f = NULL; (f = hmap_next(&c->frames, f));)
		frames_destroy(f->frames);
	for (struct program *p = NULL; (p = hmap_next(&c->programs, p));) {
		call_map_destroy(p->known);
		call_trainer_destroy(p->trainer);
	}
	call_sites_destroy(c->sites);
	call_callers_destroy(c->callers);
	free(c->stretches);
	hmap_deinit(&c->pending);
	hmap_deinit(&c->unplaced);
	hmap_deinit(&c->callers_told);
	vec_deinit(&c->tellings);
	hmap_deinit(&c->walked);
	hmap_deinit(&c->frames);
	hmap_deinit(&c->bare);
	hmap_deinit(&c->programs);
	hmap_deinit(&c->procedures);
	contexts_deinit_tails(c);
	for (unsigned i = 0; i < CONTEXTS_LAST; i++) {
		vec_deinit(&c->last[i].walked);
		vec_deinit(&c->last[i].frames);
	}
	stack_roots_deinit(&c->roots);
	vec_deinit(&c->judgements);
	vec_deinit(&c->steps);
	vec_deinit(&c->settled.profiles);
	vec_deinit(&c->settled.procedures);
	vec_deinit(&c->settled.lessons);
	free(c);
}

/* ---- images ---- */

uint64_t contexts_key(const struct contexts *c, uint32_t image)
{
	return image_cache_get(c->images, image)->key;
}

const struct frames *contexts_rows(struct contexts *c, uint32_t image)
{
	uint64_t key = contexts_key(c, image);
	struct image_frames *f = hmap_get(&c->frames, &key);
	struct image *im;

	if (f) {
		f->used = c->turn;
		return f->frames;
	}
	im = image_cache_functions(c->images, c->processes, image);
	f = hmap_put(&c->frames, &key, NULL);
	f->used = c->turn;
	if (im && frames_open(im, &f->frames) < 0)
		f->frames = NULL;
	return f->frames;
}

bool contexts_procedure(struct contexts *c, uint32_t image, uint64_t vaddr, uint64_t *start)
{
	const struct cached_image *img = image_cache_get(c->images, image);
	ssize_t found = footprint_find(&img->footprint, vaddr);
	struct image *im;

	*start = 0;
	if (found >= 0) {
		*start = img->footprint.procedures.p[found].start;
		return true;
	}
	im = image_cache_functions(c->images, c->processes, image);
	if (im && !image_procedure_start(im, vaddr, start))
		*start = 0;
	return im;
}

void contexts_name(struct contexts *c, uint32_t image, uint64_t procedure)
{
	struct called_procedure seen = {.vaddr = procedure, .image = image};

	if (procedure)
		hmap_put(&c->procedures, &seen, NULL);
}

struct program *contexts_program(struct contexts *c, uint64_t key)
{
	bool fresh;
	struct program *p = hmap_put(&c->programs, &key, &fresh);

	if (fresh)
		p->known = call_map_create();
	p->used = c->turn;
	return p;
}

struct call_frame contexts_frame(
	struct contexts *c, uint32_t image, uint64_t offset, int64_t height)
{
	const struct cached_image *img = image_cache_get(c->images, image);
	struct call_frame f = {.image = contexts_key(c, image), .height = height};
	struct stretch *at = contexts_stretch(c, image, offset);
	uint64_t vaddr;

	if (at) {
		f.procedure = at->procedure;
		if (at->named != (uint32_t)c->turn + 1)
			contexts_name(c, image, f.procedure);
		at->named = (uint32_t)c->turn + 1;
		return f;
	}
	if (image == IMAGE_NUMBER_UNKNOWN || !cached_image_address(img, offset, &vaddr))
		return f;
	contexts_procedure(c, image, vaddr, &f.procedure);
	contexts_name(c, image, f.procedure);
	return f;
}

/* ---- stacks ---- */

struct journey {
	struct contexts *c;
	const struct context_stack *s;
};

static const struct frames *find_rows(void *arg, uint64_t pc, uint64_t *bias)
{
	struct journey *j = arg;
	uint64_t offset, vaddr;
	uint32_t image;

	/* Words that are looked at in search of a caller may be anything; the kernel is no caller,
	 * and would be asked for code that it seems to have loaded anew. */
	if ((int64_t)pc < 0)
		return NULL;
	image = j->s->place(j->s->arg, pc, &offset);
	if (image == IMAGE_NUMBER_UNKNOWN ||
		!cached_image_address(image_cache_get(j->c->images, image), offset, &vaddr))
		return NULL;
	*bias = pc - vaddr;
	return contexts_rows(j->c, image);
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
static uint32_t learn(struct program *p, enum stack_kind kind, const struct call_prefix *prefix,
	const struct call_frame *frames, size_t n)
{
	uint32_t node = call_map_learn(p->known, prefix, kind, frames, n);

	if (p->trainer && !prefix)
		call_trainer_meet(p->trainer, p->known, kind, frames, n);
	return node;
}

static void count_verdict(
	struct contexts *c, struct program *p, uint32_t number, enum call_verdict verdict)
{
	p->number = number;
	c->statistics.verdicts[verdict]++;
	call_map_count(p->known, verdict);
}

void contexts_judge(struct contexts *c, const struct judgement *j)
{
	struct program *p = contexts_program(c, contexts_key(c, j->sample.program));
	enum call_verdict verdict = PATH_MISSING;
	struct call_frame frame;
	struct call_told told;
	struct call_answer answer;
	enum stack_kind kind;

	if (contexts_frames(c, &j->sample, &kind, &frame, &told)) {
		verdict = call_map_judge(p->known, kind, &frame, &told, j->node, &answer);
		if (answer.ranked || contexts_is_doubtful(j->sample.where))
			verdict = call_verdict_ranked(verdict);
	}
	count_verdict(c, p, j->sample.program, verdict);
}

/*
 * Whether the last frame is the outermost. Of the code that programs begin with, some has no rows;
 * but then the stack is at its end.
 */
static bool is_whole(const struct context_stack *s, uint64_t base, const struct walk_frame *frames,
	size_t n, enum walk_end end)
{
	uint64_t last = n > 1 ? frames[n - 2].cfa : s->stack->r[STACK_REGISTER];

	return end == WALK_ROOT || (end == WALK_STRANGE && base - last <= CONTEXTS_FIRST_FRAME);
}

void contexts_count(struct contexts *c, const struct context_sample *s, uint32_t node)
{
	struct walked key = {.kernel_procedure = contexts_kernel_procedure(c, s),
		.program = s->program,
		.who = s->who,
		.kernel = s->kernel,
		.node = node};
	struct walked *w = hmap_get(&c->walked, &key);

	if (!w && c->walked.n >= CONTEXTS_SAMPLES) {
		c->statistics.refused++;
		return;
	}
	w = w ? w : hmap_put(&c->walked, &key, NULL);
	w->count++;
}

/*
 * A stack that is learned from would speak for itself, so it is judged before. Those that are only
 * looked at say how right the report is, which tells what is known when it is made; and of a sample
 * whose stack was learned from, that path and no other.
 */
static uint32_t take_whole(struct contexts *c, const struct context_stack *s, enum stack_kind kind,
	const struct call_frame *frames, size_t n)
{
	struct program *p = contexts_program(c, contexts_key(c, s->sample.program));
	struct judgement judgement = {.sample = s->sample};

	if (s->stack->judge || !s->stack->learn)
		judgement.node = call_map_path(p->known, NULL, frames, n);
	if (s->stack->judge && c->how != CONTEXTS_JUDGED)
		contexts_judge(c, &judgement);
	else if (s->stack->judge && s->stack->learn)
		count_verdict(c, p, s->sample.program, PATH_PRECISE);
	else if (s->stack->judge && c->judgements.n < MOST_JUDGEMENTS)
		*vec_add(&c->judgements) = judgement;
	return s->stack->learn ? learn(p, kind, NULL, frames, n) : judgement.node;
}

/*
 * Where stacks end that have a root of their own. A handler's stack ends with the frame that it
 * returns to: who was interrupted is on another. A coroutine's ends with code that nobody
 * describes (glibc's __start_context). Such a root has no address.
 */
static enum walk_end find_root(
	const struct context_stack *s, struct walk_frame *walked, size_t *n, enum walk_end end)
{
	enum stack_kind kind = contexts_stack_kind(s->sample.where);
	uint64_t offset;

	if (end == WALK_ROOT || (kind != STACK_SIGNAL && kind != STACK_OTHER))
		return end;
	for (size_t i = 1; i < *n; i++)
		if (walked[i].exact) {
			*n = i;
			walked[i - 1].cfa = 0;
			return WALK_ROOT;
		}
	return kind == STACK_OTHER && end == WALK_STRANGE && *n > 1 &&
			       s->place(s->arg, walked[*n - 1].pc, &offset) != IMAGE_NUMBER_UNKNOWN
		       ? WALK_ROOT
		       : end;
}

static bool is_same_frame(const struct walk_frame *a, const struct walk_frame *b)
{
	return a->pc == b->pc && a->cfa == b->cfa && a->exact == b->exact;
}

/* What heights of the stack's frames count from. One that nobody knew begins with its root. */
static bool find_base(struct contexts *c, const struct context_stack *s,
	const struct walk_frame *walked, size_t n, enum walk_end end, struct stack_root *out)
{
	uint64_t first = walked[n - 1].cfa || n == 1 ? walked[n - 1].cfa : walked[n - 2].cfa;
	const struct stack_root *root;

	*out = (struct stack_root){
		.base = s->stack->base, .kind = contexts_stack_kind(s->sample.where)};
	if (out->kind != STACK_OTHER)
		return true;
	root = stack_roots_find(&c->roots, s->sample.owner, s->sample.sp);
	if (end == WALK_ROOT && first > s->sample.sp && !(root && root->kind == STACK_MAIN)) {
		stack_roots_add(&c->roots, s->sample.owner,
			&(struct stack_root){first, COROUTINE, STACK_OTHER});
		root = stack_roots_find(&c->roots, s->sample.owner, s->sample.sp);
	}
	if (root)
		*out = *root;
	return root;
}

static struct last_stack *last_of(struct contexts *c, const struct context_stack *s)
{
	return &c->last[s->stack->pid % CONTEXTS_LAST];
}

static bool is_last_of(const struct last_stack *l, const struct context_stack *s, uint64_t base)
{
	return l->pid == s->stack->pid && l->base == base && l->program == s->sample.program;
}

static void keep_last(struct last_stack *l, const struct context_stack *s, uint64_t base,
	const struct walk_frame *walked, const struct call_frame *frames, size_t n)
{
	l->pid = s->stack->pid;
	l->base = base;
	l->program = s->sample.program;
	l->whole = false;
	l->walked.n = l->frames.n = 0;
	for (size_t i = 0; i < n; i++) {
		*vec_add(&l->walked) = walked[i];
		*vec_add(&l->frames) = frames[i];
	}
}

/* How many frames a stack does not have in common with the last one, from the root on. */
static size_t own_frames(struct contexts *c, const struct context_stack *s, uint64_t base,
	const struct walk_frame *walked, size_t n)
{
	const struct last_stack *l = last_of(c, s);
	size_t there = is_last_of(l, s, base) ? l->walked.n : 0;

	for (; n && there && is_same_frame(&l->walked.p[there - 1], &walked[n - 1]); n--)
		there--;
	return n;
}

/* The others are placed already. Returns how many were not. */
static size_t place_frames(struct contexts *c, const struct context_stack *s, uint64_t base,
	const struct walk_frame *walked, size_t n, struct call_frame *out)
{
	struct last_stack *l = last_of(c, s);
	size_t own = own_frames(c, s, base, walked, n);

	for (size_t i = own; i < n; i++)
		out[i] = l->frames.p[l->frames.n - n + i];
	for (size_t i = 0; i < own; i++) {
		uint64_t offset;
		uint32_t image = s->place(s->arg, walked[i].pc - !walked[i].exact, &offset);

		out[i] = contexts_frame(
			c, image, offset, walked[i].cfa ? (int64_t)(base - walked[i].cfa) : 0);
	}
	keep_last(l, s, base, walked, out, n);
	return own;
}

uint32_t contexts_rootless(struct program *p, struct call_frame *frames, size_t n)
{
	frames[n] = (struct call_frame){0};
	return call_map_path(p->known, NULL, frames, n + 1);
}

/* The sample is counted with its stack; when that tells nothing, as if there were none. */
static void count_sample(struct contexts *c, const struct context_sample *s, uint32_t node)
{
	uint64_t ask;

	if (node == CALL_NONE)
		contexts_sample(c, s, 1, &ask);
	else
		contexts_count(c, s, node);
}

static void note_bare_frame(
	struct contexts *c, const struct context_stack *s, const struct walk_frame *first)
{
	const struct cached_image *img = image_cache_get(c->images, s->sample.image);
	struct bare_frame key = {.image = contexts_key(c, s->sample.image)}, *known;

	if (!cached_image_address(img, s->sample.offset, &key.vaddr))
		return;
	if (c->bare.n >= MOST_BARE)
		hmap_clear(&c->bare);
	known = hmap_put(&c->bare, &key, NULL);
	known->size = first->cfa - s->stack->r[STACK_REGISTER];
}

/*
 * What samples of a place should tell, from the first one on: nobody looks at the next one, and
 * where others may call as well, every fifth was called by another.
 */
static uint64_t ask_of(const struct call_map *known, enum stack_kind kind,
	const struct call_frame *f, uint64_t depth)
{
	int64_t heights[CALL_TOLD];
	size_t n = 0;

	if (kind != STACK_OTHER)
		n = call_map_ask(known, kind, f, heights);
	return contexts_ask(heights, n, depth);
}

static uint64_t take_walk(struct contexts *c, const struct context_stack *s,
	struct walk_frame *walked, size_t n, enum walk_end end)
{
	struct program *p = contexts_program(c, contexts_key(c, s->sample.program));
	struct call_prefix prefix = {call_map_tree(p->known), CALL_NONE};
	struct call_frame frames[CONTEXTS_FRAMES + 1];
	uint32_t node = CALL_NONE;
	size_t below = 0, own;
	struct stack_root root;
	bool based, whole;

	end = find_root(s, walked, &n, end);
	based = find_base(c, s, walked, n, end, &root);
	p->number = s->sample.program;
	own = place_frames(c, s, root.base, walked, n, frames);
	if (s->stack->learn)
		contexts_note_tails(c, s, walked, frames, own < n ? own + 1 : n);
	whole = based && is_whole(s, root.base, walked, n, end);
	last_of(c, s)->whole = whole && root.kind < STACK_SIGNAL;
	if (root.kind < STACK_SIGNAL && based && !s->stack->trail)
		contexts_note_steps(c, s, walked, n, own, whole);
	if (root.kind < STACK_SIGNAL && based && s->stack->learn)
		contexts_note_calls(c, walked, own < n ? own + 1 : n, root.base);
	if (whole) {
		end = WALK_ROOT;
		node = take_whole(c, s, root.kind, frames, n);
		if (walked[0].guessed)
			note_bare_frame(c, s, &walked[0]);
	} else if (based && s->stack->learn) {
		/* The last one has no address; those before it may be known, and who called them.
		 */
		below = call_map_join(p->known, root.kind, frames, n - 1, &prefix.node);
		if (below)
			node = learn(p, root.kind, &prefix, frames, below);
	}
	c->statistics.ends[end]++;
	c->statistics.joined += below > 0;
	if (node == CALL_NONE && !based && n > 1)
		node = contexts_rootless(p, frames, n);
	if (s->stack->learn && !s->stack->alone)
		count_sample(c, &s->sample, node);
	if (!based || !s->stack->learn || node == CALL_NONE)
		return 0;
	return ask_of(p->known, root.kind, &frames[0], root.base - s->stack->r[STACK_REGISTER]);
}

bool contexts_begins_threads(struct contexts *c, uint32_t image, uint64_t offset)
{
	static const char *const names[] = {
		"__libc_start_call_main", "start_thread", "_start", "__libc_start_main", "clone3"};
	struct image *im = image_cache_functions(c->images, c->processes, image);
	const struct procedure *p = NULL;
	uint64_t vaddr;

	if (im && cached_image_address(image_cache_get(c->images, image), offset, &vaddr))
		p = image_procedure_at(im, vaddr);
	for (size_t i = 0; p && p->name && i < sizeof names / sizeof *names; i++)
		if (!strcmp(p->name, names[i]))
			return true;
	return false;
}

/* Return addresses are taken as they come. */
static void take_chain(struct contexts *c, const struct context_stack *s)
{
	struct program *p = contexts_program(c, contexts_key(c, s->sample.program));
	struct call_frame frames[DRIVER_CHAIN_MOST + 1];
	size_t n = s->stack->size / sizeof(uint64_t), i;
	uint32_t image = IMAGE_NUMBER_UNKNOWN;
	uint64_t pc, offset;
	bool whole;

	for (i = 0; i < n && i < DRIVER_CHAIN_MOST; i++) {
		memcpy(&pc, s->bytes + i * sizeof pc, sizeof pc);
		image = s->place(s->arg, pc - (i > 0), &offset);
		frames[i] = contexts_frame(c, image, offset, 0);
	}
	whole = image != IMAGE_NUMBER_UNKNOWN && contexts_begins_threads(c, image, offset);
	p->number = s->sample.program;
	c->statistics.ends[whole ? WALK_ROOT : WALK_CUT]++;
	contexts_count(c, &s->sample,
		whole ? call_map_path(p->known, NULL, frames, i) : contexts_rootless(p, frames, i));
}

uint64_t contexts_stack(struct contexts *c, const struct context_stack *s)
{
	struct journey j = {c, s};
	struct walk_frame walked[CONTEXTS_FRAMES];
	struct walk_start start;
	enum walk_end end;
	size_t n;

	c->steps.n = 0;
	if (s->stack->chain) {
		take_chain(c, s);
		return 0;
	}
	if (s->stack->trail) {
		n = contexts_trail(s, walked);
		if (n && contexts_trail_fits(
				 c, s, walked, own_frames(c, s, s->stack->base, walked, n)))
			return take_walk(c, s, walked, n, WALK_ROOT);
		c->statistics.ends[WALK_BROKEN]++;
		if (s->stack->learn && !s->stack->alone)
			count_sample(c, &s->sample, CALL_NONE);
		return 0;
	}
	start = start_of(s->stack, s->bytes);
	if (last_of(c, s)->whole && is_last_of(last_of(c, s), s, s->stack->base)) {
		start.last = last_of(c, s)->walked.p;
		start.nlast = last_of(c, s)->walked.n;
	}
	end = walk_stack(&start, find_rows, &j, walked, CONTEXTS_FRAMES, &n);
	return take_walk(c, s, walked, n, end);
}

bool contexts_knows_stacks(const struct contexts *c, uint64_t owner)
{
	return stack_roots_knows(&c->roots, owner);
}

void contexts_main_stack(struct contexts *c, uint64_t owner, uint64_t start)
{
	stack_roots_add(&c->roots, owner, &(struct stack_root){start, MAIN_STACK, STACK_MAIN});
}
