/* What the files behind contexts.h share. */
#ifndef CULPRIT_COLLECT_CONTEXTS_INTERNAL_H
#define CULPRIT_COLLECT_CONTEXTS_INTERNAL_H

#include "base/hmap.h"
#include "calls/callers.h"
#include "calls/training.h"
#include "collect/contexts.h"
#include "collect/stack_roots.h"

enum {
	CONTEXTS_SAMPLES = 1 << 18, /* different ones between two flushes */
	CONTEXTS_FRAMES = 1024,     /* of a stack */
};

struct pending {
	struct context_sample sample;
	uint64_t count;
	uint32_t heights; /* what the map had when its path was last looked for, + 1 */
	uint32_t wishes;  /* for more, since the last flush */
};

/* Samples whose own stacks were walked. Compared as bytes up to the count. */
struct walked {
	uint64_t kernel_offset;
	uint32_t program, who, kernel; /* as of context_sample */
	uint32_t node;                 /* the path, of its program's map */
	uint64_t count;
};

/* Rows of an image, by its key; NULL: it has none. */
struct image_frames {
	uint64_t key;
	struct frames *frames;
	uint64_t used; /* the turn when it was last looked at */
};

/* How far the frame of an instruction without rows is above the stack pointer: a walk found it. */
struct bare_frame {
	uint64_t image, vaddr, size;
};

struct program {
	uint64_t key;
	struct call_map *known;       /* all that was ever learned */
	struct call_map *fresh;       /* since the last flush; NULL: nothing */
	struct call_trainer *trainer; /* what was counted of it; NULL: nothing */
	uint64_t used;                /* as of image_frames */
	uint32_t number;              /* of its image, since the last flush */
};

/* A walked path that waits for what the map says of it. */
struct judgement {
	struct context_sample sample;
	uint32_t node, pad; /* of its program's map */
};

struct contexts {
	enum contexts_how how;
	uint64_t turn; /* flushes */
	struct image_cache *images;
	const struct process_table *processes;
	struct hmap pending;    /* struct pending */
	struct hmap walked;     /* struct walked */
	struct hmap frames;     /* struct image_frames */
	struct hmap bare;       /* struct bare_frame, by image and address */
	struct hmap programs;   /* struct program */
	struct hmap procedures; /* struct called_procedure, all of it key */
	struct stack_roots roots;
	struct call_sites *sites; /* of programs that were counted */
	struct call_callers
		*callers; /* of images with paths that nobody has seen; NULL: none yet */
	VEC(struct judgement) judgements;
	struct contexts_settled settled;
	struct contexts_statistics statistics, told; /* told: of the samples that are settled */
};

uint64_t contexts_key(const struct contexts *c, uint32_t image);
/* By the key of its image. */
struct program *contexts_program(struct contexts *c, uint64_t key);

/* A place in a path, whose name the store must know. */
struct call_frame contexts_frame(
	struct contexts *c, uint32_t image, uint64_t offset, int64_t height);

/*
 * The path to the sample's frame, which is given as well; CALL_NONE: it is not known. Whether it
 * was seen at this height, and how many others were.
 */
uint32_t contexts_find(struct contexts *c, const struct context_sample *s, struct call_frame *f,
	bool *seen, uint32_t *others);

/* The unwind rows of an image; NULL: it has none. */
const struct frames *contexts_rows(struct contexts *c, uint32_t image);

/* The sample has this path, a node of its program's map. */
void contexts_count(struct contexts *c, const struct context_sample *s, uint32_t node);

/* A path that does not come to the root, below a node of its own; there is room for one more. */
uint32_t contexts_rootless(struct program *p, struct call_frame *frames, size_t n);

/* Whether threads begin there: frame pointers lead no further, since this code has none. */
bool contexts_begins_threads(struct contexts *c, uint32_t image, uint64_t offset);

/* A path that the code allows, where none is known; CALL_NONE. */
uint32_t contexts_derive(
	struct contexts *c, const struct context_sample *s, const struct call_frame *f);

/* Threads of the kernel have no program that called it. */
bool contexts_in_kernel_thread(const struct context_sample *s);

/* What is known now of the sample's path, which was walked. */
void contexts_judge(struct contexts *c, const struct judgement *j);

void contexts_clear_settled(struct contexts *c);

#endif
