/*
 * The log that allocations are written to (rt/objects.h), in the program. Nothing here allocates by
 * way of the program's allocator; whoever comes here while he is here is not written down.
 */
#ifndef CULPRIT_OBJECTS_LOG_H
#define CULPRIT_OBJECTS_LOG_H

#include "rt/objects.h"

/* Once the environment can be asked; what is allocated before is not written down. */
void log_start(void);

/* Called from a function that was called for memory, with its frame address. */
void log_object(uint64_t address, uint64_t size, const void *frame);

/* ---- where calls come from (sites.c) ---- */

/* The number of the path that leads to a frame; *ordinal how often it came before. */
uint32_t sites_find(const void *frame, uint32_t *ordinal);
/* Forgets all: in a child, whose notes are its own. */
void sites_forget(void);

/* Appends to the process's notes; false when there is no room. */
int log_note(uint32_t kind, const uint64_t *words, uint32_t n);
/* Images that came since the last time are noted. */
void log_images(void);

#endif
