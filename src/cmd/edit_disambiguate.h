/*
 * What was done to tell call paths apart (edit/disambiguate.h), and what could not be done.
 */
#ifndef CULPRIT_CMD_EDIT_DISAMBIGUATE_H
#define CULPRIT_CMD_EDIT_DISAMBIGUATE_H

#include "edit/disambiguate.h"

#include <stdbool.h>

/* On standard output: tables, or JSON. */
void edit_disambiguate_report(
	struct edit *edit, const char *path, const struct disambiguated *d, bool json);

#endif
