/*
 * What addresses in bursts (traces.h) were: objects that a program allocated, where its images and
 * stacks lay.
 *
 * A profile of objects belongs to the program's image, as that of its bursts. It consists of parts,
 * one a run; two profiles add up to the parts of both. Objects are told apart by process and time
 * (ticks of the clock), as bursts are. Its weight is the number of objects. Reading trusts nothing.
 */
#ifndef CULPRIT_STORE_OBJECTS_H
#define CULPRIT_STORE_OBJECTS_H

#include "base/hmap.h"
#include "base/vec.h"
#include "store/store.h"

#include <stddef.h>
#include <stdint.h>

struct buf;

#define OBJECT_NONE UINT32_MAX

/* A call on the way to an allocation. */
struct object_frame {
	uint64_t image;     /* key (edges.h); 0: not one that is known here, but by its name */
	uint64_t procedure; /* its start */
	uint64_t at;        /* where the call comes back */
	uint32_t name;      /* of names: the procedure's, where the image has no key */
};

struct object_path {
	uint32_t first, n; /* frames, the innermost first */
};

/* Where an image lay in a process. */
struct object_image {
	uint32_t process;
	uint64_t image; /* key; 0: only the name is known */
	uint64_t bias, start, end;
	uint32_t name; /* its path */
};

struct object_stack {
	uint32_t process, thread;
	uint64_t end;
};

struct object {
	uint32_t process;
	uint32_t path; /* OBJECT_NONE: not known */
	uint32_t ordinal;
	uint64_t address, size, born;
};

struct object_set {
	VEC(struct object_frame) frames;
	VEC(struct object_path) paths;
	VEC(struct object_image) images;
	VEC(struct object_stack) stacks;
	VEC(struct object) objects;
	struct strtab names;
};

/* Appends it as a profile of one part. */
void object_set_put(const struct object_set *s, struct buf *out);
/* Adds a profile; -EBADMSG, and the set is of no use any more. */
int object_set_add(struct object_set *s, const void *p, size_t n);
void object_set_deinit(struct object_set *s);

/* Registered by the store. */
extern const struct blob_type blob_objects;

#endif
