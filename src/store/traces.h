/*
 * Bursts of a program's trace (Hirzel and Chilimbi 2001): what instructions touched in memory, or
 * other events (calls, paths, values), one after the other, in short stretches.
 *
 * A profile of traces belongs to the program's image; its places lie in all images, which are named
 * by their keys (edges.h). It consists of parts, one a run; two profiles add up to the parts of
 * both. Its weight is the number of events. Reading trusts nothing.
 */
#ifndef CULPRIT_STORE_TRACES_H
#define CULPRIT_STORE_TRACES_H

#include "base/buf.h"
#include "base/cursor.h"
#include "base/mem.h"
#include "base/vec.h"
#include "store/keys.h"
#include "store/shape.h"
#include "store/store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum trace_kind {
	TRACE_LOAD = 1,
	TRACE_STORE = 2,
	TRACE_CHANGE = 3, /* both: it changes what is there */
	TRACE_ENTER,      /* of a procedure: no address */
	TRACE_LEAVE,
	TRACE_CALL,  /* the address is where it goes, in the file; 0: nobody knows before */
	TRACE_PATH,  /* through the procedure, to its end; the address is its number there */
	TRACE_VALUE, /* the address is the value of a register */
	TRACE_KINDS
};
const char *trace_kind_name(uint8_t kind); /* "load" and so on; NULL: there is no such kind */
static inline bool trace_is_reference(uint8_t kind)
{
	return kind <= TRACE_CHANGE;
}

struct trace_site {
	uint64_t image;                /* key */
	uint64_t procedure;            /* its start */
	uint64_t at;                   /* the instruction; of a path its last one */
	uint8_t kind;                  /* enum trace_kind */
	uint16_t size;                 /* bytes; of a value the number of its register */
	const struct path_shape *path; /* what a path goes through; NULL: nobody knows, no path */
};

struct trace_reference {
	uint32_t site; /* number, in the part */
	uint64_t address;
};

struct trace_burst {
	uint32_t process, thread;
	uint64_t time; /* ticks of the clock when it was over */
	const struct trace_reference *references;
	size_t n;
};

/* Registered by the store. */
extern const struct blob_type blob_trace;

/* Writes a profile of one part: bursts one by one, at last the places. Zeroed at first. */
struct trace_writer {
	struct buf body;
	VEC(uint64_t) last; /* by site: the address before */
	uint64_t time, bursts;
};
void trace_writer_put(struct trace_writer *w, const struct trace_burst *b);
/* Appends the profile; nothing is left in the writer. */
void trace_writer_end(struct trace_writer *w, const struct trace_site *sites, uint32_t n,
	uint64_t lost, struct buf *out);

struct trace_reader {
	VEC(struct trace_site) sites; /* of this part, as their paths are */
	uint64_t lost;                /* bursts of it that found no room */
	uint64_t bursts;              /* of it that are still to come */
	/* Inside: */
	struct cursor at;
	uint64_t parts, time;
	struct arena shapes;
	VEC(uint64_t) last;
	VEC(struct trace_reference) references;
};
int trace_reader_init(struct trace_reader *r, const void *p, size_t n); /* -EBADMSG */
/* 1 and the next part is at its beginning, 0 at the end, -EBADMSG. */
int trace_reader_part(struct trace_reader *r);
/* 1 and the part's next burst, with references until the next call; 0, -EBADMSG. */
int trace_reader_next(struct trace_reader *r, struct trace_burst *out);
void trace_reader_deinit(struct trace_reader *r);

#endif
