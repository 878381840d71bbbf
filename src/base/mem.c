#include "base/mem.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"

enum {
	ARENA_ALIGN = 16,
	CHUNK_FIRST = 4096 - 64, /* small arenas stay within a page with malloc's own header */
	CHUNK_MOST = 1 << 20,
};

struct arena_chunk {
	struct arena_chunk *next;
	size_t used, size;
	_Alignas(ARENA_ALIGN) unsigned char bytes[];
};

void out_of_memory(size_t size)
{
	dprintf(STDERR_FILENO, "culprit: out of memory (asked for %zu bytes)\n", size);
	_exit(EXIT_MACHINE);
}

void *xmalloc(size_t size)
{
	void *p = malloc(size ? size : 1);
	if (!p)
		out_of_memory(size);
	return p;
}

void *xcalloc(size_t n, size_t size)
{
	size_t total;
	if (__builtin_mul_overflow(n, size, &total))
		out_of_memory(SIZE_MAX);
	void *p = calloc(1, total ? total : 1);
	if (!p)
		out_of_memory(total);
	return p;
}

void *xrealloc(void *p, size_t size)
{
	p = realloc(p, size ? size : 1);
	if (!p)
		out_of_memory(size);
	return p;
}

char *xstrdup(const char *s)
{
	return xmemdup(s, strlen(s) + 1);
}

char *xstrndup(const char *s, size_t n)
{
	n = strnlen(s, n);
	char *copy = xmalloc(n + 1);
	memcpy(copy, s, n);
	copy[n] = 0;
	return copy;
}

void *xmemdup(const void *p, size_t n)
{
	void *copy = xmalloc(n);
	if (n)
		memcpy(copy, p, n);
	return copy;
}

char *xvasprintf(const char *fmt, va_list args)
{
	char *s;
	if (vasprintf(&s, fmt, args) < 0)
		out_of_memory(strlen(fmt));
	return s;
}

char *xasprintf(const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	char *s = xvasprintf(fmt, args);
	va_end(args);
	return s;
}

void freep(void *p)
{
	free(*(void **)p);
}

/* Clean-up must not disturb the errno of the failure that is being reported. */
void closep(int *fd)
{
	int saved = errno;
	if (*fd >= 0)
		close(*fd);
	errno = saved;
}

static struct arena_chunk *chunk_create(size_t size)
{
	struct arena_chunk *c = xcalloc(1, sizeof *c + size);
	c->size = size;
	return c;
}

/* Chunks double; a piece too large for the next one gets its own, behind the one being filled. */
static struct arena_chunk *arena_add_chunk(struct arena *a, size_t size)
{
	size_t next = a->head ? a->head->size * 2 : CHUNK_FIRST;
	if (next > CHUNK_MOST)
		next = CHUNK_MOST;
	struct arena_chunk *c = chunk_create(size > next ? size : next);
	if (size > next && a->head) {
		c->next = a->head->next;
		a->head->next = c;
	} else {
		c->next = a->head;
		a->head = c;
	}
	return c;
}

void *arena_alloc(struct arena *a, size_t size)
{
	if (size > SIZE_MAX / 2)
		out_of_memory(size);
	size = (size + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1);

	struct arena_chunk *c = a->head;
	if (!c || c->size - c->used < size)
		c = arena_add_chunk(a, size);
	void *p = c->bytes + c->used;
	c->used += size;
	a->used += size;
	return p;
}

char *arena_strdup(struct arena *a, const char *s)
{
	size_t n = strlen(s) + 1;
	return memcpy(arena_alloc(a, n), s, n);
}

void arena_deinit(struct arena *a)
{
	for (struct arena_chunk *c = a->head, *next; c; c = next) {
		next = c->next;
		free(c);
	}
	*a = (struct arena){0};
}
