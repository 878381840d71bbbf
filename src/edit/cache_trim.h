/*
 * Keeps the folder of edited copies (cache.h) small: ROOT/BUILD/COPY, each a folder of files, whose
 * time of change says when it was last used.
 */
#ifndef CULPRIT_EDIT_CACHE_TRIM_H
#define CULPRIT_EDIT_CACHE_TRIM_H

#include <stdint.h>
#include <time.h>

/* Copies that were used lately stay: somebody may be about to run them. */
#define CACHE_TRIM_SPARES 3600 /* seconds */

/* Removes copies, those first that were not used for the longest, until all take so many bytes of
 * disk at most. Folders of builds that are empty then go, too. */
void cache_trim(const char *root, uint64_t most, time_t now);

/* A folder and all in it. */
void cache_remove(const char *path);

#endif
