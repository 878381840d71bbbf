/*
 * Memory.
 *
 * Running out of memory ends the program with one line and EXIT_MACHINE: no caller could do better.
 * A size that comes from a file or the kernel is therefore checked against what is plausible before
 * it is allocated. Locals are released by cleanup attributes, graphs that live and die together by
 * an arena.
 */
#ifndef CULPRIT_BASE_MEM_H
#define CULPRIT_BASE_MEM_H

#include <stdarg.h>
#include <stddef.h>

_Noreturn void out_of_memory(size_t size); /* how it ends */
void *xmalloc(size_t size);
void *xcalloc(size_t n, size_t size);
void *xrealloc(void *p, size_t size);
char *xstrdup(const char *s);
char *xstrndup(const char *s, size_t n);
void *xmemdup(const void *p, size_t n);
char *xasprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
char *xvasprintf(const char *fmt, va_list args) __attribute__((format(printf, 1, 0)));

/* `_cleanup_(thing_destroyp) struct thing *t = NULL;` */
#define _cleanup_(f)    __attribute__((cleanup(f)))
#define _cleanup_free_  _cleanup_(freep)
#define _cleanup_close_ _cleanup_(closep)
void freep(void *p);  /* frees *(void **)p */
void closep(int *fd); /* closes *fd when >= 0 */

/* Defines typep(type **), for _cleanup_. */
#define DEFINE_CLEANUP(type, destroy)           \
	static inline void destroy##p(type **p) \
	{                                       \
		destroy(*p);                    \
	}

/* Chunks of memory freed all at once; alignment 16. */
struct arena {
	struct arena_chunk *head;
	size_t used; /* bytes handed out, for accounting */
};
void *arena_alloc(struct arena *a, size_t size); /* zeroed */
char *arena_strdup(struct arena *a, const char *s);
void arena_deinit(struct arena *a);

#endif
