/*
 * What tests of the editor share: finding functions.
 */
#ifndef CULPRIT_TESTS_EDIT_EDIT_RIG_H
#define CULPRIT_TESTS_EDIT_EDIT_RIG_H

#include "image/workshop.h"

#include "edit/edit.h"

/* By name; it must be there and not be refused. */
static inline struct edit_function *find_function(struct edit *e, const char *name)
{
	struct edit_function **list;
	size_t n = edit_functions(e, &list);

	for (size_t i = 0; i < n; i++) {
		if (!list[i]->procedure->name || strcmp(list[i]->procedure->name, name))
			continue;
		if (list[i]->refused)
			fail_msg("%s: %s", name, list[i]->refused);
		return list[i];
	}
	fail_msg("no %s", name);
	return NULL;
}

#endif
