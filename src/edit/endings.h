/*
 * Which functions of an edit never come back: all ways through them end in traps, endless loops, or
 * calls that do not come back. Unlike the flow, which must be right whatever happens, who counts
 * may ask: calls of them are counted on their own.
 */
#ifndef CULPRIT_EDIT_ENDINGS_H
#define CULPRIT_EDIT_ENDINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "edit/edit.h"

/* By function, as edit_functions lists them; to be freed. Functions without a flow come back. */
bool *endings_find(struct edit_function *const *functions, size_t n);

/* The number of the function that starts there, or n. */
size_t endings_number(struct edit_function *const *functions, size_t n, uint64_t start);

#endif
