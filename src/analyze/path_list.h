/*
 * The paths that a selection holds, heaviest first, and how they are spread (Ammons, Ball and
 * Larus, PLDI 97, section 6.4: hot, cold, dense and sparse paths and procedures).
 *
 * A path's weight is what it has of the metric that is asked for: one that was measured, or its
 * executions, or executions times its instructions. Hot is what has at least a share of all. A hot
 * path is dense when it has more of the metric an instruction than the whole program, else sparse;
 * for executions and instructions that says nothing, and all hot ones are dense.
 */
#ifndef CULPRIT_ANALYZE_PATH_LIST_H
#define CULPRIT_ANALYZE_PATH_LIST_H

#include "analyze/selection.h"
#include "store/paths.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct path_codes;
struct path_list;

#define PATH_BY_COUNT        "executions"
#define PATH_BY_INSTRUCTIONS "instructions"

enum path_class {
	PATH_DENSE,
	PATH_SPARSE,
	PATH_COLD,
	PATH_CLASSES,
};

struct path_procedure {
	struct selected_image *image;
	const struct procedure *procedure; /* NULL: the database does not know it */
	const char *name;
	uint64_t start, potential, cuts, off;
	uint8_t how; /* enum path_how */
	enum path_class class;
	size_t first, n; /* its paths: path_list_all()[first], heaviest first */
	uint64_t count;  /* executions of its paths */
	double weight, instructions;
};

struct path_entry {
	uint32_t procedure; /* number */
	uint32_t rank;      /* among the paths of its procedure, the heaviest is 1 */
	struct path_shape shape;
	uint64_t count, metrics[METRICS_MOST];
	uint64_t length; /* instructions, 0 unknown */
	enum path_class class;
	double weight;
};

struct path_share {
	uint64_t paths, procedures;
	uint64_t in_procedures;      /* paths that ran in procedures of this class */
	double weight, instructions; /* of the paths */
	double procedures_weight;
};

struct path_summary {
	const char *metric;
	bool measured;       /* the metric is one of the profile's */
	uint64_t paths, hot; /* how many ran; how many are hot */
	double potential;    /* of the procedures that ran */
	double weight, instructions;
	uint64_t metrics[METRICS_MOST]; /* of all paths */
	struct path_share of[PATH_CLASSES];
	uint64_t without_code; /* procedures whose instructions are not known */
};

struct path_list_options {
	const char *metric; /* NULL: the first that was measured, else instructions */
	double hot;         /* share of the whole; 0: all are */
};

/*
 * -ENOENT when nothing of the selection has paths, -EINVAL for a metric that is not there (the
 * message names those that are).
 */
int path_list_create(struct selection *sel, const struct path_list_options *o,
	struct path_list **out, struct err *e);
void path_list_destroy(struct path_list *l); /* takes NULL */

const struct path_summary *path_list_summary(const struct path_list *l);
const struct metric_names *path_list_metrics(const struct path_list *l);
size_t path_list_procedures(const struct path_list *l, const struct path_procedure **out);
size_t path_list_all(const struct path_list *l, const struct path_entry **out); /* by procedure */
struct path_codes *path_list_codes(const struct path_list *l);                  /* of its images */
/* All, heaviest first. */
size_t path_list_ranked(const struct path_list *l, const struct path_entry *const **out);

#endif
