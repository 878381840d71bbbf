/*
 * A growable run of bytes; also the string builder.
 */
#ifndef CULPRIT_BASE_BUF_H
#define CULPRIT_BASE_BUF_H

#include <stddef.h>
#include <stdint.h>

struct buf {
	uint8_t *p;
	size_t n, space;
};

void buf_deinit(struct buf *b);
void buf_reserve(struct buf *b, size_t more);
void buf_put(struct buf *b, const void *p, size_t n);
void buf_u8(struct buf *b, uint8_t v);
void buf_u32(struct buf *b, uint32_t v); /* little-endian */
void buf_u64(struct buf *b, uint64_t v);
void buf_uleb(struct buf *b, uint64_t v);
void buf_sleb(struct buf *b, int64_t v);
void buf_str(struct buf *b, const char *s); /* with its NUL */
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
const char *buf_cstr(struct buf *b); /* as a NUL-terminated string; the NUL is not counted in n */

#endif
