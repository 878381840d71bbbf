/* Stacks of one instruction, and source lines. */
#include "export/stacks_internal.h"

#include "analyze/pcpool.h"
#include "base/err.h"
#include "base/mem.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INLINED_MOST 64

/* ---- instructions ---- */

/* The samples of a process in an image. */
struct pool_key {
	uint64_t group;
	struct selected_image *image;
};

struct pool_record {
	struct pool_key key;
	struct pc_pool *pcs;
};

struct pc_walk {
	struct stacks *s;
	struct hmap pools;
	uint64_t samples;
	bool only_count;
	struct err *e;
};

static struct pc_pool *pool_of(struct pc_walk *w, size_t group, struct selected_image *im)
{
	struct pool_key key = {group, im};
	bool fresh;
	struct pool_record *r = hmap_put(&w->pools, &key, &fresh);

	if (fresh)
		r->pcs = xcalloc(1, sizeof *r->pcs);
	return r->pcs;
}

static int take_pcs(void *arg, const struct store_profile *p)
{
	struct pc_walk *w = arg;
	struct selected_image *im = selection_image(w->s->sel, p->image);
	struct pc_pool *pool = NULL;
	struct code_walk walk;
	struct pc_reader pcs;
	struct pc_count pc;
	uint64_t vaddr;
	int rc;

	if (!im || selection_event(w->s->sel, p->event) != w->s->event)
		return 0;
	rc = selection_load(w->s->sel, im, w->e);
	if (!rc && !w->only_count)
		pool = pool_of(w, stacks_group(w->s, p->process), im);
	if (!rc && pc_reader_init(&pcs, p->data, p->size))
		rc = -EBADMSG;
	walk = code_walk_start(&im->map, im->segments, im->nsegments);
	while (!rc && (rc = pc_reader_next(&pcs, &pc)) > 0) {
		rc = 0;
		w->samples += pc.count;
		if (!pool)
			continue;
		code_walk_to(&walk, pc.offset, &vaddr);
		pc_pool_add(pool, vaddr, 0, pc.count);
	}
	return rc == -EBADMSG ? err_set(w->e, rc,
					"a profile of %s is damaged; 'culprit db check' tells more",
					im->path)
			      : rc;
}

static void frame_of_pc(
	struct stacks *s, const struct selected_image *im, uint64_t vaddr, struct stack_frame *out)
{
	const struct procedure *p = store_procedure_at(&im->procedures, vaddr);
	char label[512];

	*out = (struct stack_frame){.image = im->kind == IMAGE_UNKNOWN ? NULL : im,
		.start = p ? p->start : 0,
		.address = vaddr,
		.exact = true};
	if (im->kind == IMAGE_UNKNOWN)
		snprintf(label, sizeof label, "[unknown]");
	else if (!p)
		snprintf(label, sizeof label, "%s (no procedure)", selected_image_name(im));
	else
		procedure_label(p, im->path, label, sizeof label);
	out->name = stacks_keep(s, label);
}

static void take_pool(struct stacks *s, const struct selected_image *im, struct pc_pool *pcs)
{
	const char *pattern = s->options.procedure;

	pc_pool_settle(pcs);
	vec_each (pc, &pcs->list) {
		struct stack_frame f;

		frame_of_pc(s, im, pc->vaddr, &f);
		if (pattern && strcmp(pattern, f.name) && fnmatch(pattern, f.name, 0))
			continue;
		*vec_add(&s->nodes) = (struct stack_node){.parent = STACK_NONE,
			.frame = stacks_frame(s, &f),
			.caller = STACK_NONE,
			.value = {(double)pc->count}};
	}
}

static int compare_pools(const void *a, const void *b)
{
	const struct pool_key *x = &(*(struct pool_record *const *)a)->key;
	const struct pool_key *y = &(*(struct pool_record *const *)b)->key;

	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	return x->image->id < y->image->id ? -1 : x->image->id > y->image->id;
}

static void take_pools(struct stacks *s, const struct hmap *pools)
{
	VEC(struct pool_record *) order = {0};
	size_t at = 0;

	for (struct pool_record *r = NULL; (r = hmap_next(pools, r));)
		*vec_add(&order) = r;
	vec_sort(&order, compare_pools);
	for (size_t i = 0; i < s->groups.n; i++) {
		s->groups.p[i].first = (uint32_t)s->nodes.n;
		for (; at < order.n && order.p[at]->key.group == i; at++)
			take_pool(s, order.p[at]->key.image, order.p[at]->pcs);
		s->groups.p[i].end = (uint32_t)s->nodes.n;
	}
	vec_deinit(&order);
}

int stacks_count_samples(struct stacks *s, uint64_t *out, struct err *e)
{
	struct pc_walk w = {.s = s, .e = e, .only_count = true};
	int rc = store_profiles(selection_store(s->sel), selection_filter(s->sel), take_pcs, &w, e);

	*out = w.samples;
	return rc;
}

int stacks_take_instructions(struct stacks *s, struct err *e)
{
	struct pc_walk w = {.s = s, .e = e};
	int rc;

	hmap_init(&w.pools, sizeof(struct pool_record), sizeof(struct pool_key));
	rc = store_profiles(selection_store(s->sel), selection_filter(s->sel), take_pcs, &w, e);
	if (!rc)
		take_pools(s, &w.pools);
	for (struct pool_record *r = NULL; (r = hmap_next(&w.pools, r));) {
		pc_pool_deinit(r->pcs);
		free(r->pcs);
	}
	hmap_deinit(&w.pools);
	return rc;
}

/* ---- lines ---- */

static int compare_frames(const void *a, const void *b)
{
	const struct stack_frame *x = *(struct stack_frame *const *)a;
	const struct stack_frame *y = *(struct stack_frame *const *)b;

	if (x->image != y->image)
		return x->image->id < y->image->id ? -1 : 1;
	return x->address < y->address ? -1 : x->address > y->address;
}

static void find_lines_of(struct stacks *s, struct lines *l, struct stack_frame *f)
{
	struct inlined_line list[INLINED_MOST];
	struct line at;
	size_t n = f->exact ? lines_inlined(l, f->address, list, INLINED_MOST) : 0;

	f->line = (uint32_t)s->lines.n;
	f->nlines = (uint32_t)n;
	for (size_t i = 0; i < n; i++) {
		bool own = i + 1 == n || !list[i].function;

		*vec_add(&s->lines) = (struct inlined_line){
			.function = own ? f->name : stacks_keep(s, list[i].function),
			.file = stacks_keep(s, list[i].file),
			.line = list[i].line};
	}
	if (f->start && !lines_at(l, f->start, &at)) {
		f->file = stacks_keep(s, at.file);
		f->start_line = at.line;
	}
}

/* By image and address, so that each file is opened once and each function looked at once. */
void stacks_find_lines(struct stacks *s)
{
	VEC(struct stack_frame *) order = {0};
	const struct selected_image *open = NULL;
	struct lines *l = NULL;

	vec_each (f, &s->frames)
		if (f->image && f->image->kind == IMAGE_ELF)
			*vec_add(&order) = f;
	vec_sort(&order, compare_frames);
	vec_each (f, &order) {
		if ((*f)->image != open) {
			lines_destroy(l);
			l = NULL;
			open = (*f)->image;
			if (lines_open(open->path, &open->identity, &l, NULL))
				l = NULL;
		}
		if (l)
			find_lines_of(s, l, *f);
	}
	lines_destroy(l);
	vec_deinit(&order);
}
