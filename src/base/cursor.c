#include "base/cursor.h"

#include <string.h>

struct cursor cursor_over(const void *p, size_t n)
{
	const uint8_t *start = p;
	return (struct cursor){.start = start, .at = start, .end = n ? start + n : start};
}

size_t cursor_left(const struct cursor *c)
{
	return c->failed ? 0 : (size_t)(c->end - c->at);
}

size_t cursor_offset(const struct cursor *c)
{
	return (size_t)(c->at - c->start);
}

const void *cursor_bytes(struct cursor *c, size_t n)
{
	if (n > cursor_left(c) || c->failed) {
		c->failed = true;
		return NULL;
	}
	const uint8_t *p = c->at;
	if (n)
		c->at += n;
	return p;
}

void cursor_seek(struct cursor *c, size_t offset)
{
	if (offset > (size_t)(c->end - c->start))
		c->failed = true;
	else if (!c->failed && offset)
		c->at = c->start + offset;
	else if (!c->failed)
		c->at = c->start;
}

void cursor_skip(struct cursor *c, size_t n)
{
	cursor_bytes(c, n);
}

struct cursor cursor_slice(struct cursor *c, size_t n)
{
	const void *p = cursor_bytes(c, n);
	struct cursor slice = cursor_over(p, c->failed ? 0 : n);
	slice.failed = c->failed;
	return slice;
}

static void read_int(struct cursor *c, void *to, size_t n)
{
	const void *p = cursor_bytes(c, n);
	if (p)
		memcpy(to, p, n);
}

uint8_t cursor_u8(struct cursor *c)
{
	uint8_t v = 0;
	read_int(c, &v, sizeof v);
	return v;
}

uint16_t cursor_u16(struct cursor *c)
{
	uint16_t v = 0;
	read_int(c, &v, sizeof v);
	return v;
}

uint32_t cursor_u32(struct cursor *c)
{
	uint32_t v = 0;
	read_int(c, &v, sizeof v);
	return v;
}

uint64_t cursor_u64(struct cursor *c)
{
	uint64_t v = 0;
	read_int(c, &v, sizeof v);
	return v;
}

/* Of the tenth byte only one bit fits, and nothing may follow it. */
uint64_t cursor_uleb(struct cursor *c)
{
	uint64_t v = 0;
	for (unsigned shift = 0; shift < 64; shift += 7) {
		uint8_t byte = cursor_u8(c);
		if (c->failed)
			return 0;
		if (shift == 63 && byte > 1)
			break;
		v |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return v;
	}
	c->failed = true;
	return 0;
}

/* The tenth byte can only repeat the sign. */
int64_t cursor_sleb(struct cursor *c)
{
	uint64_t v = 0;
	for (unsigned shift = 0; shift < 64; shift += 7) {
		uint8_t byte = cursor_u8(c);
		if (c->failed)
			return 0;
		if (shift == 63 && byte != 0 && byte != 0x7f)
			break;
		v |= (uint64_t)(byte & 0x7f) << shift;
		if (byte & 0x80)
			continue;
		if (byte & 0x40 && shift + 7 < 64)
			v |= ~(uint64_t)0 << (shift + 7);
		return (int64_t)v;
	}
	c->failed = true;
	return 0;
}

const char *cursor_str(struct cursor *c)
{
	size_t left = cursor_left(c);
	const uint8_t *nul = left ? memchr(c->at, 0, left) : NULL;
	if (!nul) {
		c->failed = true;
		return "";
	}
	const char *s = (const char *)c->at;
	c->at = nul + 1;
	return s;
}
