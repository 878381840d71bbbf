/*
 * Which functions of an edit may be called by others than its moved functions: those that the file
 * exports, whose address is taken, or that code calls which stays where it is. Where it is not
 * certain, they may.
 */
#ifndef CULPRIT_EDIT_CALLERS_H
#define CULPRIT_EDIT_CALLERS_H

#include <stdbool.h>

#include "edit/edit.h"

/* By function, as edit_functions lists them, once it is settled which are chosen; to be freed. */
bool *callers_outside(struct edit *e);

#endif
