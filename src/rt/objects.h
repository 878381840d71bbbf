/*
 * The log of a program's allocations: what the library that is loaded into programs
 * (objects/library.c) writes, and burst/objects.h reads.
 *
 * The file: a page with struct objects_file, then chunks. Chunks of objects are a thread's and have
 * struct objects_record, one for each address that was allocated; one that was allocated again is
 * overwritten as long as no burst of the thread came between. Chunks of notes are a process's and
 * have, one after the other, notes of words: where images lie, and paths of calls by which
 * allocations came. All survives the process, however that ends.
 */
#ifndef CULPRIT_RT_OBJECTS_H
#define CULPRIT_RT_OBJECTS_H

#include <stdint.h>

#define OBJECTS_ENVIRONMENT "CULPRIT_OBJECTS"  /* the path of the file */
#define OBJECTS_MAGIC       0x316a626f707c7563 /* the bytes "cu|pobj1" */
#define OBJECTS_PAGE        4096
#define OBJECTS_CHUNK       ((uint64_t)256 << 10)
#define OBJECTS_DEPTH       8 /* frames of a path, at most */

struct objects_file {
	uint64_t magic;
	uint64_t most;   /* chunks there may be */
	uint64_t chunks; /* that were given out, or asked for beyond that */
	uint64_t lost;   /* objects that found no room */
};

enum { OBJECTS_OBJECTS = 1, OBJECTS_NOTES = 2 };

struct objects_chunk {
	uint32_t process, thread;
	uint64_t kind;
	uint64_t stack; /* the thread's ends below this address */
	uint64_t used;  /* bytes behind this head */
};

struct objects_record {
	uint64_t address, size;
	uint64_t time;    /* the time stamp counter when it was had */
	uint32_t path;    /* number in the process; 0: not known */
	uint32_t ordinal; /* how many came by this path before */
};

/* A note: this, then as many words. */
struct objects_note {
	uint32_t kind, words;
};
enum {
	OBJECTS_PATH = 1, /* number, then return addresses, the innermost first */
	OBJECTS_IMAGE = 2 /* bias, first and last address, then the path in 8 bytes each */
};

#define OBJECTS_CHUNK_ROOM (OBJECTS_CHUNK - sizeof(struct objects_chunk))

#endif
