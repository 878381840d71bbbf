/*
 * The call paths that led to a place in a program at a height of its stack, by path maps: a stack
 * trace for who has only two registers (the paper's section 10, debugging support).
 */
#ifndef CULPRIT_ANALYZE_PATH_AT_H
#define CULPRIT_ANALYZE_PATH_AT_H

#include "analyze/path_maps.h"

struct err;

struct path_place {
	const char *where; /* "gzip+0x4330", "deflate+0x20", "gzip!0x4330" */
	uint64_t sp, base; /* of its stack */
	uint64_t bp;       /* 0: not known */
	enum stack_kind kind;
};

struct path_named {
	const struct path_map *program;
	uint32_t node; /* of its tree */
	uint64_t weight;
	bool guessed; /* never seen at this height */
};

struct path_answer {
	struct call_frame frame;
	VEC(struct path_named) paths; /* likeliest first */
};

/*
 * -EINVAL when the place is none, or its height cannot be told; -ENOENT when no path is known for
 * it.
 */
int path_at(struct selection *sel, const struct path_maps *maps, const struct path_place *place,
	struct path_answer *out, struct err *e);
void path_answer_deinit(struct path_answer *a);

#endif
