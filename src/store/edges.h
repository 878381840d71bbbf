/*
 * Edge samples: how often control was seen to go from a branch instruction to a target.
 *
 * An edge profile belongs to the image that holds the branches; offsets are file offsets as in PC
 * profiles. The two directions of a conditional branch are two edges. A target in another image is
 * named by that image's key, which is the same in every database; nothing keeps that image there.
 * Edges say more about samples that are in a PC profile already, so nobody adds the two up. Reading
 * trusts nothing.
 */
#ifndef CULPRIT_STORE_EDGES_H
#define CULPRIT_STORE_EDGES_H

#include "base/cursor.h"
#include "image/image.h"
#include "store/keys.h"
#include "store/store.h"

#include <stddef.h>
#include <stdint.h>

struct buf;

struct edge {
	uint64_t from;   /* the branch instruction */
	uint64_t target; /* the image that `to` is in: 0 the same one, else its key */
	uint64_t to;
	uint64_t count;
};

/* Registered by the store; its weight is the sum of the counts. */
extern const struct blob_type blob_edge;

/* What stands for an image in `target`; never 0. The path counts only where there is no id. */
uint64_t edge_image_key(enum image_kind kind, const struct image_id *id, const char *path);

/* The order of edges in a profile: by from, target, to. For qsort. */
int edge_compare(const void *a, const void *b);

/* Sorts a list and puts together what is there several times; returns how many are left. */
size_t edges_settle(struct edge *list, size_t n);

/* Appends a profile. The list must be sorted, without an edge twice or a count of 0. */
void edges_pack(const struct edge *list, size_t n, struct buf *out);

struct edge_reader {
	struct cursor at;
	struct key_table keys;
	uint64_t left;
	struct edge last; /* count 0: there was none */
};
int edge_reader_init(struct edge_reader *r, const void *p, size_t n); /* -EBADMSG */
/* 1 and the next edge, 0 at the end, -EBADMSG. */
int edge_reader_next(struct edge_reader *r, struct edge *out);

#endif
