/*
 * How much of a program can be edited, and why the rest cannot.
 */
#ifndef CULPRIT_CMD_EDIT_REPORT_H
#define CULPRIT_CMD_EDIT_REPORT_H

#include <stdbool.h>

struct edit;

/* On standard output: tables, or JSON with every function that is refused. */
void edit_report(struct edit *edit, const char *path, bool json);

#endif
