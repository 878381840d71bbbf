#include "base/vec.h"

#include <stdint.h>

#include "base/mem.h"

void vec_grow(void **p, size_t *space, size_t need, size_t size)
{
	size_t n = *space < SIZE_MAX / 2 ? *space * 2 : SIZE_MAX;
	if (n < need)
		n = need;
	if (n < 8)
		n = 8;

	size_t bytes;
	if (__builtin_mul_overflow(n, size, &bytes))
		bytes = SIZE_MAX; /* which ends in out of memory */
	*p = xrealloc(*p, bytes);
	*space = n;
}
