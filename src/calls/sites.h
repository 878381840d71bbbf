/*
 * How far below its caller's frame the frame of a procedure is that was called from a place: by the
 * unwind row of that place (image/frames.h), which says how high the caller's frame is then. The
 * same in every run. Files are opened when they are first asked for.
 */
#ifndef CULPRIT_CALLS_SITES_H
#define CULPRIT_CALLS_SITES_H

#include "image/image.h"

#include <stdbool.h>
#include <stdint.h>

struct call_sites;

struct call_sites *call_sites_create(void);
void call_sites_destroy(struct call_sites *s); /* takes NULL */

/* An image that calls may be in, by its key (store/edges.h). */
void call_sites_add(
	struct call_sites *s, uint64_t key, const char *path, const struct image_id *id);

/* A call as calling context trees have it. Compared as bytes. */
struct call_link {
	uint64_t image, site; /* the call instruction, in the caller */
	uint64_t callee_image, callee;
};

struct call_site {
	bool jump;     /* the caller's frame is gone, the callee's in its place */
	uint32_t rise; /* bytes that the callee's frame address is below the caller's; 0: the row
			  does not say, since it counts from another register than rsp */
};

/*
 * False when it cannot be told: the file is not the same any more, or somebody else called (a
 * library that was given a function).
 */
bool call_sites_find(struct call_sites *s, const struct call_link *link, struct call_site *out);

#endif
