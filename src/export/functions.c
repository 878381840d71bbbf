#include "export/functions.h"

#include "base/hmap.h"
#include "export/stacks.h"

#include <stdlib.h>
#include <string.h>

struct function_key {
	const struct selected_image *image;
	uint32_t name, file;
	int64_t line;
};

struct function_record {
	struct function_key key;
	uint64_t number;
};

struct functions {
	const struct stacks *stacks;
	struct strtab texts;
	struct hmap index;
	VEC(struct function) list;
	VEC(uint32_t) of_frames; /* innermost first, as lines are */
	VEC(size_t) first;       /* by frame, and the end */
	VEC(uint32_t) way;       /* from a node to its root */
};

static uint32_t number_of(struct functions *f, const struct function *one)
{
	struct function_key key = {.image = one->image,
		.name = strtab_add(&f->texts, one->name),
		.file = strtab_add(&f->texts, one->file ? one->file : ""),
		.line = one->line};
	bool fresh;
	struct function_record *r = hmap_put(&f->index, &key, &fresh);

	if (fresh) {
		r->number = f->list.n;
		*vec_add(&f->list) = *one;
	}
	return (uint32_t)r->number;
}

static void take_frame(struct functions *f, const struct stack_frame *frame)
{
	const struct inlined_line *lines;

	stacks_lines(f->stacks, &lines);
	for (uint32_t i = 0; i + 1 < frame->nlines; i++)
		*vec_add(&f->of_frames) =
			number_of(f, &(struct function){.name = lines[frame->line + i].function,
					     .file = lines[frame->line + i].file,
					     .image = frame->image});
	*vec_add(&f->of_frames) = number_of(f, &(struct function){.name = frame->name,
						       .file = frame->file,
						       .line = frame->start_line,
						       .image = frame->image});
}

struct functions *functions_create(const struct stacks *s)
{
	struct functions *f = xcalloc(1, sizeof *f);
	const struct stack_frame *frames;
	size_t n = stacks_frames(s, &frames);

	f->stacks = s;
	hmap_init(&f->index, sizeof(struct function_record), sizeof(struct function_key));
	for (size_t i = 0; i < n; i++) {
		*vec_add(&f->first) = f->of_frames.n;
		take_frame(f, &frames[i]);
	}
	*vec_add(&f->first) = f->of_frames.n;
	return f;
}

void functions_destroy(struct functions *f)
{
	if (!f)
		return;
	strtab_deinit(&f->texts);
	hmap_deinit(&f->index);
	vec_deinit(&f->list);
	vec_deinit(&f->of_frames);
	vec_deinit(&f->first);
	vec_deinit(&f->way);
	free(f);
}

size_t functions_all(const struct functions *f, const struct function **out)
{
	*out = f->list.p;
	return f->list.n;
}

void functions_of_frame(const struct functions *f, uint32_t frame, function_list *out)
{
	for (size_t i = f->first.p[frame + 1]; i-- > f->first.p[frame];)
		*vec_add(out) = f->of_frames.p[i];
}

void functions_of_node(struct functions *f, uint32_t node, function_list *out)
{
	const struct stack_node *nodes;

	stacks_nodes(f->stacks, &nodes);
	out->n = f->way.n = 0;
	*vec_add(&f->way) = nodes[node].frame;
	for (; nodes[node].parent != STACK_NONE; node = nodes[node].parent)
		*vec_add(&f->way) = nodes[node].caller;
	for (size_t i = f->way.n; i--;)
		functions_of_frame(f, f->way.p[i], out);
}
