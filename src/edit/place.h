/*
 * Files in the place of others, for one process and what it starts: bind mounts in a mount
 * namespace of its own. Whoever opens, executes or loads the original gets the other file, and sees
 * the original's name. Nobody else sees anything. Without the right to mount a user namespace is
 * made as well, in which the user stays who he is.
 */
#ifndef CULPRIT_EDIT_PLACE_H
#define CULPRIT_EDIT_PLACE_H

#include <stddef.h>

struct err;

struct placement {
	const char *over, *with; /* paths of files; both must exist */
};

/* For the calling process, which must have one thread: between fork and exec. */
int place_files(const struct placement *list, size_t n, struct err *e);

#endif
