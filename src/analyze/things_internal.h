/* Between the files of things: things.c finds groups, things_sites.c knows the code that touches
 * them, things_allocators.c who allocates, things_types.c finds types, things_text.c has words. */
#ifndef CULPRIT_ANALYZE_THINGS_INTERNAL_H
#define CULPRIT_ANALYZE_THINGS_INTERNAL_H

#include "analyze/things.h"
#include "base/hmap.h"
#include "base/mem.h"
#include "base/vec.h"
#include "image/data_symbols.h"
#include "image/frames.h"
#include "image/lines.h"
#include "store/object_index.h"

/* An image and what its file tells; files that are not the same any more tell nothing. */
struct thing_file {
	uint64_t key;
	struct selected_image *selected; /* NULL: not in the database */
	struct lines *lines;
	struct types *types;
	struct frames *frames;
	struct data_symbols symbols;
};

/* How an instruction names the memory that it touches. */
struct thing_site {
	struct {
		uint64_t image, at;
	} key;
	bool thread;    /* relative to the thread pointer */
	bool slot;      /* a place of the frame: */
	int64_t offset; /* from the CFA */
};

/* A frame that references of the burst have shown. */
struct thing_frame {
	uint64_t procedure, image, cfa;
};

/* How something of a group is touched. */
struct thing_use {
	uint64_t offset;
	uint32_t group, size;
	uint64_t count;
	uint64_t image, at; /* of the first instruction that did */
};

struct things {
	struct selection *sel;
	struct object_set set;
	struct object_index *index;
	VEC(struct thing_file) files;
	struct hmap sites;  /* struct thing_site */
	struct hmap places; /* groups by what they are */
	VEC(struct thing_group) groups;
	uint32_t *of_path; /* by path: group + 1 */
	uint32_t *site;    /* by path: which of its frames allocates */
	bool *counted;     /* by object: among its group's */
	struct hmap uses;  /* struct thing_use */
	VEC(struct thing_frame) frames;
	uint32_t process;
	uint64_t time;
	struct arena arena;
};

struct thing_file *things_file(struct things *t, uint64_t key);
const char *things_procedure_name(struct things *t, uint64_t image, uint64_t procedure);

const char *things_frame_name(struct things *t, const struct object_frame *f);

/* Finds for each path the call that allocates: that which is no wrapper's. */
void things_find_allocators(struct things *t);

const struct thing_site *things_site(struct things *t, const struct trace_site *s);

/* Finds the types of all groups of the heap, by their uses. */
void things_find_types(struct things *t);

#endif
