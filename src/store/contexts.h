/*
 * Calling contexts: the tree of who was called from where, how often, and what was measured there,
 * as an edited program kept it (Ammons, Ball and Larus, PLDI 97, section 4).
 *
 * A profile belongs to the program's image; its tree goes through all images, which are named by
 * their keys (edges.h). It is a list of rows in preorder. A call that recursion closed is a row
 * below its caller with `recursive`, and has nothing below it: the record is that of the next
 * ancestor with the same procedure. Behind a node and before its children come the paths that were
 * counted in that context, if any were. Two profiles add up. Reading trusts nothing.
 */
#ifndef CULPRIT_STORE_CONTEXTS_H
#define CULPRIT_STORE_CONTEXTS_H

#include "base/cursor.h"
#include "store/keys.h"
#include "store/metrics.h"
#include "store/shape.h"
#include "store/store.h"

#include <stddef.h>
#include <stdint.h>

struct buf;

struct context_row {
	uint32_t depth; /* 0: called by nobody; a path is one deeper than its node */
	bool is_path;
	/* Of a node: */
	bool recursive;
	uint64_t image;     /* key, 0: unknown */
	uint64_t procedure; /* its start; of a path, that of its node */
	uint64_t site;      /* the call instruction, in the caller; 0: unknown */
	/* Of a path: */
	struct path_shape shape;
	/* Of both. Recursive calls are not in the ancestor's count. Metrics are without callees. */
	uint64_t count;
	uint64_t metrics[METRICS_MOST];
};

/*
 * The site of a procedure that is on no stack: it was called, and jumped to the one below. Only
 * where contexts were sampled, which know no other sites.
 */
#define CONTEXT_SITE_JUMPED 1

/*
 * Where contexts were sampled (calls/map.h), counts are samples, and these are metrics: samples
 * whose path is the likeliest of several; whose path nobody knows, which are below a root without
 * image and procedure.
 */
#define CONTEXT_METRIC_RANKED  "ranked"
#define CONTEXT_METRIC_UNKNOWN "unknown"
#define CONTEXT_METRIC_WALKED  "walked"

/* The event of contexts that were counted. */
#define CONTEXT_EVENT_COUNTED "context"

/* Registered by the store; its weight is the sum of the nodes' counts. */
extern const struct blob_type blob_context;
/* What names call paths by heights of the stack (calls/map.h) has the same form. */
extern const struct blob_type blob_pathmap;

/* The order among rows of one parent: paths by shape, then by image, procedure, site, recursive. */
int context_row_compare(const struct context_row *a, const struct context_row *b);

/* Writes a profile row by row, in order. Keys are all that rows will name. */
struct context_writer {
	const struct metric_names *names;
	struct key_list keys;
	struct buf *out;
	VEC(struct context_row) above; /* from the root to the last node */
	uint64_t last;                 /* its procedure */
};
/* keys is taken over, and settled here. */
void context_writer_init(struct context_writer *w, const struct metric_names *names,
	struct key_list *keys, uint64_t rows, struct buf *out);
void context_writer_put(struct context_writer *w, const struct context_row *row);
void context_writer_deinit(struct context_writer *w);

struct context_reader {
	struct metric_names names;
	/* Inside: */
	struct cursor at;
	struct key_table keys;
	uint64_t left;
	bool begun, closed;            /* the last node is recursive */
	uint64_t last;                 /* procedure of the last node */
	VEC(struct context_row) above; /* from the root to the last node, and the path behind it */
	block_list blocks[2];
	unsigned turn;
};
int context_reader_init(struct context_reader *r, const void *p, size_t n); /* -EBADMSG */
/* 1 and the next row (a path's blocks until the next call), 0 at the end, -EBADMSG. */
int context_reader_next(struct context_reader *r, struct context_row *out);
void context_reader_deinit(struct context_reader *r);

#endif
