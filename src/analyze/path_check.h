/*
 * How right call paths are that a database names by the height of the stack: its path maps against
 * the paths of another database, program by program (calls/compare.h).
 */
#ifndef CULPRIT_ANALYZE_PATH_CHECK_H
#define CULPRIT_ANALYZE_PATH_CHECK_H

#include "analyze/selection.h"
#include "base/vec.h"
#include "calls/compare.h"
#include "calls/training.h"

struct err;

struct checked_program {
	const struct selected_image *image; /* of the truth's */
	struct call_score score[CALL_KEYS], by_site[CALL_KEYS];
};

/* A path that was not named right when its caller was told. */
struct checked_path {
	enum call_verdict verdict;
	char *path, *named; /* named: NULL when nothing was */
	uint64_t weight;
};

struct path_check {
	VEC(struct checked_program) programs; /* by weight */
	VEC(struct checked_path) wrong;       /* the same */
	struct call_score all[CALL_KEYS];
	struct call_score by_site[CALL_KEYS]; /* with call sites, if they were counted */
	bool counted;                         /* the truth's contexts were: weights are calls */
	struct call_training training;
};

/*
 * The truth is contexts that were counted, or else what its path maps learned from stacks. Counted
 * ones begin where the program does, at the heights that the maps know. -ENOENT when either has
 * none.
 */
int path_check(
	struct selection *sel, struct selection *truth, struct path_check *out, struct err *e);
void path_check_deinit(struct path_check *c);

/* Paths that were named first, as a share of all; 0 when there are none. */
double call_score_right(const struct call_score *s, bool weighted);

#endif
