/*
 * What addresses in bursts were: an object that was allocated, by which calls; a variable; a place
 * in a function's frame. With types where DWARF tells them.
 *
 * Things of one kind are a group: all objects that were allocated at one place in the code
 * (wrappers of allocators are looked through), or one variable, or the frames of one function. The
 * type of objects is not written down anywhere: of the types that the code which allocates and uses
 * them has pointers to, it is the one whose size and members fit what was allocated and touched.
 */
#ifndef CULPRIT_ANALYZE_THINGS_H
#define CULPRIT_ANALYZE_THINGS_H

#include "analyze/selection.h"
#include "image/types.h"
#include "store/objects.h"
#include "store/traces.h"

#include <stdbool.h>
#include <stdint.h>

struct buf;
struct things;

enum thing_kind { THING_UNKNOWN, THING_HEAP, THING_GLOBAL, THING_STACK, THING_THREAD };

struct thing_group {
	enum thing_kind kind;
	uint64_t image;          /* key */
	uint64_t procedure;      /* of code: who allocates, or whose frame it is */
	uint64_t at;             /* where the call comes back; of a variable, its address */
	const char *name;        /* of the procedure or variable */
	const char *where;       /* "list.c:12", of an allocation; "" */
	const struct type *type; /* NULL: not known */
	uint64_t references;     /* to it, in all bursts */
	uint64_t objects;        /* of the heap: that were touched; else 1 */
	uint64_t size;           /* of the largest of them */
	uint32_t path;           /* of the first object (OBJECT_NONE): how it came to be */
};

struct thing {
	enum thing_kind kind;
	uint32_t group;  /* OBJECT_NONE: nothing is known */
	uint32_t object; /* of the heap: its number in the set; else OBJECT_NONE */
	uint64_t base;   /* address where the object or variable begins; of a frame, its CFA */
	uint64_t offset; /* from there; of a frame modulo 2^64, since it is below */
};

/* Looks at all bursts of the selection once. */
int things_create(struct selection *sel, struct things **out, struct err *e);
void things_destroy(struct things *t); /* takes NULL */

/* One burst after the other, and its references in their order: frames are told by those before. */
void things_begin(struct things *t, const struct trace_burst *b);
void things_at(
	struct things *t, const struct trace_site *site, uint64_t address, struct thing *out);

size_t things_groups(const struct things *t, const struct thing_group **out);
const struct object_set *things_set(const struct things *t);
bool things_has_objects(const struct things *t); /* whether allocations were written down */

/* The type of a thing, and where in it an offset is: those of arrays are of their elements. */
const struct type *thing_type(const struct things *t, const struct thing *x, uint64_t *offset);

/* Whether the address that an instruction touches came from memory shortly before: a pointer that
 * was followed. By its procedure's code. */
bool things_is_chased(struct things *t, const struct trace_site *s);

/* "make_node: node.next", "totals[3]", "walk's frame -0x28". */
void things_text(struct things *t, const struct thing *x, struct buf *out);
/* "make_node (list.c:12)", "totals". */
void things_group_text(const struct things *t, uint32_t group, struct buf *out);
/* "main > build > make_node", the calls that an object came by; "" where nothing is known. */
void things_path_text(struct things *t, uint32_t path, struct buf *out);

#endif
