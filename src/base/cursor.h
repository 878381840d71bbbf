/*
 * A bounds-checked reader of bytes that nobody vouches for.
 *
 * The first read past the end sets `failed` and yields zeros from then on, so a parser reads a
 * whole structure and tests once. Integers are little-endian.
 */
#ifndef CULPRIT_BASE_CURSOR_H
#define CULPRIT_BASE_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cursor {
	const uint8_t *start, *at, *end;
	bool failed;
};

struct cursor cursor_over(const void *p, size_t n);
size_t cursor_left(const struct cursor *c);
size_t cursor_offset(const struct cursor *c);
void cursor_seek(struct cursor *c, size_t offset); /* from start */
void cursor_skip(struct cursor *c, size_t n);
struct cursor cursor_slice(struct cursor *c, size_t n); /* takes n bytes as a cursor of their own */

uint8_t cursor_u8(struct cursor *c);
uint16_t cursor_u16(struct cursor *c);
uint32_t cursor_u32(struct cursor *c);
uint64_t cursor_u64(struct cursor *c);
uint64_t cursor_uleb(struct cursor *c); /* fails on more than 64 bits */
int64_t cursor_sleb(struct cursor *c);
const void *cursor_bytes(struct cursor *c, size_t n); /* NULL when not there */
const char *cursor_str(struct cursor *c);             /* NUL-terminated within bounds, or "" */

#endif
