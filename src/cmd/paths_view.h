/* What `culprit paths` was asked, and what it found: for its halves (paths.c, paths_text.c). */
#ifndef CULPRIT_CMD_PATHS_VIEW_H
#define CULPRIT_CMD_PATHS_VIEW_H

#include "analyze/path_list.h"
#include "analyze/path_predict.h"
#include "cmd/cmd.h"
#include "cmd/path_format.h"

struct paths_view {
	struct report report;
	const char *what;   /* the procedure, NULL: all */
	const char *metric; /* as asked */
	bool by_procedure, compare;
	double hot; /* share */
	struct path_list *list;
	struct path_prediction prediction;
	struct path_lines *lines;
};

/* Whether it is shown: by name, and by weight. */
bool paths_shows(const struct paths_view *v, const struct path_procedure *p);
bool paths_shows_path(const struct paths_view *v, const struct path_entry *p);
const struct path_procedure *paths_procedure(
	const struct paths_view *v, const struct path_entry *p);
double paths_predicted(const struct paths_view *v, const struct path_entry *p);
const char *path_how_name(uint8_t how);

void paths_print_text(struct paths_view *v);

#endif
