#include "image/names.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/mem.h"

/* A number is a block and a place in it, plus one. */
enum {
	BLOCK_BITS = 14,
	BLOCK_SIZE = 1 << BLOCK_BITS,
	BLOCKS_MAX = 1 << 12, /* a file can make a million symbols share one long string */
	LEVEL = 1,
};

void names_deinit(struct names *s)
{
	ZSTD_freeCCtx(s->packer);
	buf_deinit(&s->packed);
	vec_deinit(&s->blocks);
	buf_deinit(&s->open);
	*s = (struct names){0};
}

static void close_block(struct names *s)
{
	char space[ZSTD_COMPRESSBOUND(BLOCK_SIZE)];
	size_t n;

	if (!s->packer && !(s->packer = ZSTD_createCCtx()))
		out_of_memory(sizeof space);
	n = ZSTD_compressCCtx(s->packer, space, sizeof space, s->open.p, s->open.n, LEVEL);
	if (ZSTD_isError(n)) /* only for want of memory: the space is enough for anything */
		out_of_memory(sizeof space);
	*vec_add(&s->blocks) = (uint32_t)s->packed.n;
	buf_put(&s->packed, space, n);
	s->open.n = 0;
}

uint32_t names_add(struct names *s, const char *name, size_t n)
{
	n = strnlen(name, n < BLOCK_SIZE ? n : BLOCK_SIZE - 1);
	if (s->open.n + n + 1 > BLOCK_SIZE)
		close_block(s);
	if (!n || s->blocks.n == BLOCKS_MAX)
		return 0;
	uint32_t number = ((uint32_t)s->blocks.n << BLOCK_BITS | (uint32_t)s->open.n) + 1;
	buf_put(&s->open, name, n);
	buf_u8(&s->open, 0);
	return number;
}

void names_finish(struct names *s)
{
	if (s->open.n)
		close_block(s);
	buf_deinit(&s->open);
	ZSTD_freeCCtx(s->packer);
	s->packer = NULL;
	vec_shrink(&s->packed);
	vec_shrink(&s->blocks);
}

void names_rest(struct names *s)
{
	buf_deinit(&s->open);
	s->unpacked = 0;
}

static void open_block(struct names *s, uint32_t block)
{
	size_t at = s->blocks.p[block];
	size_t end = block + 1 < s->blocks.n ? s->blocks.p[block + 1] : s->packed.n;
	size_t n;

	buf_deinit(&s->open);
	buf_reserve(&s->open, BLOCK_SIZE);
	n = ZSTD_decompress(s->open.p, BLOCK_SIZE, s->packed.p + at, end - at);
	if (ZSTD_isError(n)) /* we packed it, so only for want of memory */
		out_of_memory(BLOCK_SIZE);
	s->open.n = n;
	s->unpacked = block + 1;
}

const char *names_get(struct names *s, uint32_t number)
{
	uint32_t block = (number - 1) >> BLOCK_BITS;

	if (s->unpacked != block + 1)
		open_block(s, block);
	return (const char *)s->open.p + ((number - 1) & (BLOCK_SIZE - 1));
}

size_t names_memory(const struct names *s)
{
	return s->packed.space + s->blocks.space * sizeof *s->blocks.p + s->open.space;
}
