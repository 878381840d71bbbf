#include "base/buf.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

void buf_deinit(struct buf *b)
{
	free(b->p);
	*b = (struct buf){0};
}

void buf_reserve(struct buf *b, size_t more)
{
	size_t need;
	if (__builtin_add_overflow(b->n, more, &need))
		need = SIZE_MAX; /* which ends in out of memory */
	if (need > b->space)
		vec_grow((void **)&b->p, &b->space, need < 64 ? 64 : need, 1);
}

void buf_put(struct buf *b, const void *p, size_t n)
{
	if (!n)
		return;
	buf_reserve(b, n);
	memcpy(b->p + b->n, p, n);
	b->n += n;
}

void buf_u8(struct buf *b, uint8_t v)
{
	buf_put(b, &v, sizeof v);
}

void buf_u32(struct buf *b, uint32_t v)
{
	buf_put(b, &v, sizeof v);
}

void buf_u64(struct buf *b, uint64_t v)
{
	buf_put(b, &v, sizeof v);
}

void buf_uleb(struct buf *b, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		buf_u8(b, (uint8_t)(v | 0x80));
	buf_u8(b, (uint8_t)v);
}

void buf_sleb(struct buf *b, int64_t v)
{
	while (true) {
		uint8_t byte = v & 0x7f;
		v >>= 7; /* arithmetic in gcc and clang */
		if (v == (byte & 0x40 ? -1 : 0)) {
			buf_u8(b, byte);
			return;
		}
		buf_u8(b, byte | 0x80);
	}
}

void buf_str(struct buf *b, const char *s)
{
	buf_put(b, s, strlen(s) + 1);
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
	buf_reserve(b, 1);
	while (true) {
		size_t left = b->space - b->n;
		va_list args;
		va_start(args, fmt);
		int n = vsnprintf((char *)b->p + b->n, left, fmt, args);
		va_end(args);
		if (n < 0) /* a wide character outside the locale; nothing of ours prints any */
			return;
		if ((size_t)n < left) {
			b->n += (size_t)n;
			return;
		}
		buf_reserve(b, (size_t)n + 1);
	}
}

const char *buf_cstr(struct buf *b)
{
	buf_reserve(b, 1);
	b->p[b->n] = 0;
	return (const char *)b->p;
}
