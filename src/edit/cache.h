/*
 * Edited copies that are kept, so that a program is edited once: under culprit/edited in the user's
 * cache folder ($XDG_CACHE_HOME, ~/.cache), by the build of culprit, the identity of the original
 * and the kind of edit. All together take 2 GiB of disk; those that were not used for the longest
 * go.
 *
 * A copy counts into the file `counts` beside it. It is only a place: whoever runs the copy mounts
 * a file of his own over it (place.h), so that runs do not disturb each other.
 */
#ifndef CULPRIT_EDIT_CACHE_H
#define CULPRIT_EDIT_CACHE_H

#include <stdint.h>

#include "base/buf.h"
#include "edit/tool.h"

struct err;

struct cached_edit {
	char *image, *counts; /* paths */
	char *returns;        /* path of what edit/returns.h reads; NULL: not kept */
	struct buf map;       /* the tool's */
	uint64_t bytes;       /* of counters, whole pages */
};

/*
 * The copy of a program or library that a tool makes; made when there is none. Errors of edit_open,
 * of the tool and of files; -ENODATA when nothing of it can be counted.
 */
int cache_copy(
	const char *path, const struct edit_tool *tool, struct cached_edit *out, struct err *e);
/*
 * A copy that `culprit edit` made: its map and counts are files beside it, with ".map" and
 * ".counts" behind its name. *original is to be freed.
 */
int cache_edited(const char *path, const struct edit_tool *tool, struct cached_edit *out,
	char **original, struct err *e);
void cached_edit_deinit(struct cached_edit *c);

#endif
