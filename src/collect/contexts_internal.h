/* What the files behind contexts.h share. */
#ifndef CULPRIT_COLLECT_CONTEXTS_INTERNAL_H
#define CULPRIT_COLLECT_CONTEXTS_INTERNAL_H

#include "base/hmap.h"
#include "calls/callers.h"
#include "calls/training.h"
#include "collect/contexts.h"
#include "collect/driver.h"
#include "collect/stack_roots.h"

enum {
	CONTEXTS_SAMPLES = 1 << 17, /* different ones between two flushes */
	CONTEXTS_FRAMES = 1024,     /* of a stack */
};

/*
 * What is known of some code of files; of the kernel's, until the next flush. Small, as samples and
 * stacks go through more of them than first caches hold.
 */
struct stretch {
	uint64_t image; /* key */
	uint64_t procedure;
	uint32_t piece;    /* of CONTEXTS_STRETCH_MOST bytes, by its number, */
	uint8_t low, high; /* and in it from here to there */
	uint8_t base;      /* what its frames are found by */
	uint8_t pad;
	int32_t size;   /* bytes from there to the frame's address */
	uint32_t named; /* the turn + 1 in which the store was last to know its name */
};
#define CONTEXTS_STRETCHES    32768
#define CONTEXTS_STRETCH_MOST 128 /* bytes */

enum stretch_base {
	BASE_NONE, /* there is no row */
	BASE_RSP,
	BASE_RBP,
	BASE_OTHER,
};

/* What the map last said of a frame, and what was wished for since the last flush. */
struct look {
	uint32_t heights; /* what the map had then, + 1, */
	uint32_t seen;    /* and when it was last seen how many paths have the height */
	uint32_t rivals;  /* paths that have its height */
	int32_t ask[CALL_TOLD];
	uint8_t asks;
	bool strange; /* it was called by others than those that are known */
	uint8_t wishes;
	uint16_t asked;
};

/* Samples of one frame. Compared as bytes. */
struct placed {
	struct call_frame frame;
	uint64_t kernel_procedure;
	uint32_t image, kernel, program, who; /* as of context_sample */
	uint16_t kind;                        /* of the stack, or CONTEXTS_NO_STACK */
	uint16_t doubtful;                    /* as contexts_is_doubtful */
	uint32_t told;                        /* one of contexts.tellings, + 1; 0: nothing */
};
#define CONTEXTS_NO_STACK STACK_KINDS

/* Callers that samples told, which few do. Compared as bytes. */
struct told_callers {
	struct call_told told;
	uint32_t number, pad;
};

struct pending {
	struct placed key;
	uint64_t count;
	struct look look;
};

/* Samples whose frames are not known yet. */
struct unplaced {
	struct context_sample sample;
	uint64_t count;
	struct look look;
};

/* Samples whose own stacks were walked. Compared as bytes up to the count. */
struct walked {
	uint64_t kernel_procedure;
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
	struct call_trainer *trainer; /* what was counted of it; NULL: nothing */
	uint64_t used;                /* as of image_frames */
	uint32_t number;              /* of its image, since the last flush */
};

/* A walked path that waits for what the map says of it. */
struct judgement {
	struct context_sample sample;
	uint32_t node, pad; /* of its program's map */
};

/* The last stack of a process: the next one mostly begins like it. */
struct last_stack {
	uint64_t base;
	uint32_t pid, program;
	bool whole; /* it came to the root */
	VEC(struct walk_frame) walked;
	VEC(struct call_frame) frames;
};
#define CONTEXTS_LAST 8 /* by a part of their numbers */

/* A call whose code is looked at when samples are settled: who is called there may have jumped on.
 */
struct tail_call {
	uint32_t image, pad;
	uint64_t back; /* where it comes back to */
	struct call_frame caller, callee;
};

struct contexts {
	enum contexts_how how;
	uint64_t turn;       /* flushes */
	uint64_t settled_ns; /* when that was last done */
	int64_t derive_ns;   /* left for what nobody has seen */
	struct image_cache *images;
	const struct process_table *processes;
	struct stretch *stretches;      /* by a part of a hash */
	struct hmap pending;            /* struct pending */
	struct hmap unplaced;           /* struct unplaced */
	struct hmap callers_told;       /* struct told_callers */
	VEC(struct call_told) tellings; /* by number */
	struct hmap walked;             /* struct walked */
	struct hmap frames;             /* struct image_frames */
	struct hmap bare;               /* struct bare_frame, by image and address */
	struct hmap programs;           /* struct program */
	struct hmap procedures;         /* struct called_procedure, all of it key */
	struct stack_roots roots;
	struct call_sites *sites; /* of programs that were counted */
	struct call_callers
		*callers;       /* of images with paths that nobody has seen; NULL: none yet */
	uint32_t *tail_sites;   /* contexts_tails.c */
	struct hmap tail_edges; /* the same */
	VEC(struct tail_call) tail_calls; /* since the last flush */
	struct last_stack last[CONTEXTS_LAST];
	VEC(struct judgement) judgements;
	VEC(struct stack_step) steps; /* of the last stack */
	struct contexts_settled settled;
	struct contexts_statistics statistics, told; /* told: of the samples that are settled */
};

uint64_t contexts_key(const struct contexts *c, uint32_t image);
/* By the key of its image. */
struct program *contexts_program(struct contexts *c, uint64_t key);

/* A place in a path, whose name the store must know. */
struct call_frame contexts_frame(
	struct contexts *c, uint32_t image, uint64_t offset, int64_t height);

/* Where its procedure begins, 0 when there is none; false when its file is out of reach. */
bool contexts_procedure(struct contexts *c, uint32_t image, uint64_t vaddr, uint64_t *start);
/* The store must know its name, if it is one. */
void contexts_name(struct contexts *c, uint32_t image, uint64_t procedure);

static inline enum stack_kind contexts_stack_kind(uint64_t where)
{
	return (enum stack_kind)(where >> WHERE_KIND_SHIFT & WHERE_KIND);
}

/* Its stack should have been taken, and it does not even tell who called. */
static inline bool contexts_is_doubtful(uint64_t where)
{
	return where & WHERE_HELD && !(where & WHERE_NEAR);
}

/* Bytes between the base and who was called first, at most. */
#define CONTEXTS_FIRST_FRAME 256

/*
 * What is known of the code around. NULL: nothing, or what may change any time, as that of code
 * made at run time does.
 */
struct stretch *contexts_stretch(struct contexts *c, uint32_t image, uint64_t offset);
void contexts_forget_stretches(struct contexts *c);

/* The sample's frame, and callers if they were told; false when the height is not known. */
bool contexts_frames(struct contexts *c, const struct context_sample *s, enum stack_kind *kind,
	struct call_frame *frame, struct call_told *told);
/* What samples told; its number is for struct placed. */
struct call_told contexts_told(const struct contexts *c, const struct placed *p);
uint32_t contexts_telling(struct contexts *c, const struct call_told *told);
uint64_t contexts_kernel_procedure(struct contexts *c, const struct context_sample *s);

/* The frames at these heights, so far above the stack pointer as the driver wants them. */
uint64_t contexts_ask(const int64_t *heights, size_t n, uint64_t depth);

/* The unwind rows of an image; NULL: it has none. */
const struct frames *contexts_rows(struct contexts *c, uint32_t image);

/* The sample has this path, a node of its program's map. */
void contexts_count(struct contexts *c, const struct context_sample *s, uint32_t node);

/* A path that does not come to the root, below a node of its own; there is room for one more. */
uint32_t contexts_rootless(struct program *p, struct call_frame *frames, size_t n);

/* Whether threads begin there: frame pointers lead no further, since this code has none. */
bool contexts_begins_threads(struct contexts *c, uint32_t image, uint64_t offset);

/* A path that the code allows, where none is known; CALL_NONE. */
uint32_t contexts_derive(struct contexts *c, uint32_t program, uint32_t image, enum stack_kind kind,
	const struct call_frame *f);

/* What is known now of the sample's path, which was walked. */
void contexts_judge(struct contexts *c, const struct judgement *j);

/* What a walked stack teaches (contexts_steps), and the frames of one that needed no walk. */
void contexts_note_steps(struct contexts *c, const struct context_stack *s,
	const struct walk_frame *walked, size_t n, size_t own, bool whole);
void contexts_note_calls(
	struct contexts *c, const struct walk_frame *walked, size_t n, uint64_t base);
bool contexts_trail_fits(struct contexts *c, const struct context_stack *s,
	const struct walk_frame *walked, size_t n);
size_t contexts_trail(const struct context_stack *s, struct walk_frame *out);

/* Procedures that jumped in place of a call: stacks tell of them, paths have them again. */
void contexts_init_tails(struct contexts *c);
void contexts_deinit_tails(struct contexts *c);
void contexts_note_tails(struct contexts *c, const struct context_stack *s,
	const struct walk_frame *walked, const struct call_frame *frames, size_t n);
void contexts_learn_tails(struct contexts *c);

/* A tree that paths of another one are copied to. */
struct path_copies {
	struct call_tree *tree;
	struct hmap copies; /* struct node_copy */
};
struct node_copy {
	uint32_t node, copy;
};
uint32_t contexts_copy_path(const struct contexts *c, struct path_copies *to,
	const struct call_tree *from, uint32_t node);

void contexts_clear_settled(struct contexts *c);

#endif
