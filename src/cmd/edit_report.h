/*
 * How much of a program can be edited, and why the rest cannot.
 */
#ifndef CULPRIT_CMD_EDIT_REPORT_H
#define CULPRIT_CMD_EDIT_REPORT_H

#include <stdbool.h>

struct edit;

/* What is said of it when edit_debug_left has a reason, which is the argument. */
#define EDIT_DEBUG_LEFT                                                                          \
	"its debug information %s and is left as it was: debuggers show no lines of the edited " \
	"code"

/* On standard output: tables, or JSON with every function that is refused. */
void edit_report(struct edit *edit, const char *path, bool json);

#endif
