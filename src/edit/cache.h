/*
 * Edited copies that are kept, so that a program is edited once: under culprit/edited in the user's
 * cache folder ($XDG_CACHE_HOME, ~/.cache), by the build of culprit, the identity of the original
 * and the kind of edit.
 *
 * A copy counts into the file `counts` beside it. It is only a place: whoever runs the copy mounts
 * a file of his own over it (place.h), so that runs do not disturb each other.
 */
#ifndef CULPRIT_EDIT_CACHE_H
#define CULPRIT_EDIT_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

struct err;

struct cached_edit {
	char *image, *counts; /* paths */
	struct buf map;       /* edit/exact_map.h */
	uint64_t bytes;       /* of counters */
};

/*
 * The copy of a program or library that counts exactly; made when there is none. Errors of
 * edit_open and of files; -ENODATA when nothing of it can be counted.
 */
int cache_exact(const char *path, bool atomic, struct cached_edit *out, struct err *e);
/*
 * A copy that `culprit edit --exact` made: its map and counts are files beside it, with ".map" and
 * ".counts" behind its name. *original is to be freed.
 */
int cache_edited(const char *path, struct cached_edit *out, char **original, struct err *e);
void cached_edit_deinit(struct cached_edit *c);

#endif
