/*
 * How a profiler edits files, for whoever makes, keeps and runs edited copies without knowing what
 * they count.
 */
#ifndef CULPRIT_EDIT_TOOL_H
#define CULPRIT_EDIT_TOOL_H

#include <stdint.h>

#include "base/buf.h"
#include "edit/edit.h"

struct err;

#define EDIT_TOOL_NAME 96

/* What a map tells without being read. */
struct edit_outline {
	uint64_t bytes;       /* of counters; 0: nothing of the file is counted */
	const char *original; /* path, in the map */
};

struct edit_tool {
	char name[EDIT_TOOL_NAME]; /* with all that the edit depends on; part of a file's name */
	const void *options;       /* the tool's own; they outlive it */
	/*
	 * Puts its code into the edit, which counts into the file `counts`, and appends the map
	 * that tells what counters mean. *state is released when the edit is written.
	 */
	int (*apply)(const void *options, struct edit *edit, const char *counts, void **state,
		struct buf *map, struct err *e);
	void (*release)(void *state);                                    /* takes NULL */
	int (*outline)(const struct buf *map, struct edit_outline *out); /* -EBADMSG */
};

#endif
