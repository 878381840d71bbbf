/*
 * Wrapped calls: the stack pointer goes down before a call and up again behind it, so that what is
 * called lies deeper (Mytkowicz, Coughlin and Diwan, OOPSLA 09, section 5.2). For that the callee
 * must find nothing by its distance from its caller's frame.
 */
#ifndef CULPRIT_EDIT_WRAP_H
#define CULPRIT_EDIT_WRAP_H

#include "edit/edit.h"

/* Why a call cannot be wrapped, constant words; NULL: it can. */
const char *wrap_refused(const struct edit *e, const struct edit_function *f, uint32_t insn);

#endif
