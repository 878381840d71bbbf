/*
 * Paths: how often the acyclic paths inside procedures ran, and what was measured on them, as an
 * edited program counted (Ammons, Ball and Larus, PLDI 97, sections 2 and 3).
 *
 * A profile belongs to an image. For each procedure there is a row of its own, then a row for each
 * path that ran, by shape. Procedures that did not run are not there. Two profiles of an image add
 * up, also when they cut paths differently: the shapes differ then, and both are kept. Reading
 * trusts nothing.
 */
#ifndef CULPRIT_STORE_PATHS_H
#define CULPRIT_STORE_PATHS_H

#include "base/cursor.h"
#include "store/metrics.h"
#include "store/shape.h"
#include "store/store.h"

#include <stddef.h>
#include <stdint.h>

struct buf;

enum path_how {
	PATH_HOW_ONE,   /* it has only one */
	PATH_HOW_ARRAY, /* a counter for each potential path */
	PATH_HOW_HASH,  /* counters for those that ran */
	PATH_HOW_SHORT, /* pieces that need no register: there was none */
	PATH_HOWS,
};

struct path_row {
	uint64_t procedure; /* its start */
	bool is_path;       /* false: of the procedure itself */
	/* Of the procedure: */
	uint8_t how;        /* enum path_how */
	uint64_t potential; /* paths; UINT64_MAX: more than that */
	uint64_t cuts; /* edges that end a path beside the loops': it had too many, or they are cold
			*/
	uint64_t off;  /* by how much counts may be off, 0: exact */
	/* Of a path: */
	struct path_shape shape;
	uint64_t count;
	uint64_t metrics[METRICS_MOST]; /* sums, without those of callees */
};

/* Registered by the store; its weight is the sum of the paths' counts. */
extern const struct blob_type blob_path;

/* The order in a profile: procedures ascend, each before its paths, those by shape. For qsort. */
int path_row_compare(const void *a, const void *b);

/* Appends a profile. Rows must ascend, each once, paths behind the row of their procedure. */
void paths_pack(
	const struct metric_names *names, const struct path_row *rows, size_t n, struct buf *out);

struct path_reader {
	struct metric_names names;
	/* Inside: */
	struct cursor at;
	uint64_t left;
	bool begun;
	struct path_row last;
	block_list blocks[2]; /* of the last row and the one before, by turns */
	unsigned turn;
};
int path_reader_init(struct path_reader *r, const void *p, size_t n); /* -EBADMSG */
/* 1 and the next row (its blocks until the next call), 0 at the end, -EBADMSG. */
int path_reader_next(struct path_reader *r, struct path_row *out);
void path_reader_deinit(struct path_reader *r);

#endif
