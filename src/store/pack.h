/*
 * The bytes inside the database's blobs: integers as LEB128, sorted keys as differences, the whole
 * packed with zstd when that is shorter. Unpacking trusts nothing.
 */
#ifndef CULPRIT_STORE_PACK_H
#define CULPRIT_STORE_PACK_H

#include <stddef.h>
#include <stdint.h>

struct buf;
struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;

#define PACK_LIMIT (256u << 20) /* unpacked bytes of one blob */

/* zstd behind a header that says whether it is compressed and the unpacked size. */
int pack_compress(const void *p, size_t n, struct buf *out); /* -EFBIG past PACK_LIMIT */
int pack_expand(const void *p, size_t n, struct buf *out);   /* -EBADMSG */

/* The same for many calls, with zstd's working memory kept by the caller. */
int pack_compress_with(struct ZSTD_CCtx_s *c, const void *p, size_t n, struct buf *out);
int pack_expand_with(struct ZSTD_DCtx_s *d, const void *p, size_t n, struct buf *out);

/* A PC profile: (offset, count) sorted by offset, no offset twice, no count 0. */
struct pc_count {
	uint64_t offset, count;
};
void pack_pcs(const struct pc_count *list, size_t n, struct buf *out);

struct pc_reader {
	const uint8_t *at, *end;
	uint64_t left, offset; /* the least offset that the next pair may have */
};
int pc_reader_init(struct pc_reader *r, const void *p, size_t n); /* -EBADMSG */
/* 1 and the next pair, 0 at the end, -EBADMSG. */
int pc_reader_next(struct pc_reader *r, struct pc_count *out);

/* For blobs that are a number of parts and then the parts: appends those of both, as one. */
void parts_join(const void *a, size_t na, const void *b, size_t nb, struct buf *out);

#endif
