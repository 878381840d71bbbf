/*
 * Files that come with the program: beside it as it is built, or in its library folder as it is
 * installed.
 */
#ifndef CULPRIT_BASE_BESIDE_H
#define CULPRIT_BASE_BESIDE_H

#include <limits.h>
#include <stdbool.h>

/* The path of the file of that name; false when it is not there. */
bool beside_find(const char *name, char path[static PATH_MAX]);

#endif
