/*
 * Loaded into programs whose bursts are recorded (rt/objects.h): allocations go on to whoever would
 * have had them, and are written down with where they came from.
 *
 * Who called is found without unwinding: the frame that a return address belongs to is as large
 * every time, so sizes are learned once for each (by unwinding), and then a path of calls is a few
 * loads. A path that was not seen before is checked by unwinding; frames whose size changes end it.
 */
#include "objects/log.h"

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PUBLIC __attribute__((visibility("default"), noinline))

/* Before the others are found: the C library's own, which dlsym may ask for. */
extern void *__libc_malloc(size_t n) __attribute__((weak));
extern void *__libc_calloc(size_t n, size_t size) __attribute__((weak));
extern void *__libc_realloc(void *p, size_t n) __attribute__((weak));

static struct {
	void *(*malloc)(size_t);
	void *(*calloc)(size_t, size_t);
	void *(*realloc)(void *, size_t);
	void *(*memalign)(size_t, size_t);
	void *(*aligned_alloc)(size_t, size_t);
	int (*posix_memalign)(void **, size_t, size_t);
} next;

static bool finding;

static void find_next(void)
{
	finding = true;
	next.calloc = dlsym(RTLD_NEXT, "calloc");
	next.realloc = dlsym(RTLD_NEXT, "realloc");
	next.memalign = dlsym(RTLD_NEXT, "memalign");
	next.aligned_alloc = dlsym(RTLD_NEXT, "aligned_alloc");
	next.posix_memalign = dlsym(RTLD_NEXT, "posix_memalign");
	__atomic_store_n(&next.malloc, dlsym(RTLD_NEXT, "malloc"), __ATOMIC_RELEASE);
	finding = false;
}

static bool is_ready(void)
{
	if (__builtin_expect(!next.malloc, 0) && !finding)
		find_next();
	return next.malloc && !finding;
}

/* The frame of the function at hand has a pointer: its caller's address and stack are known. */
#define KEEP(address, size)                                                              \
	do {                                                                             \
		void *keep_ = (address);                                                 \
		if (keep_)                                                               \
			log_object((uint64_t)keep_, (size), __builtin_frame_address(0)); \
	} while (0)

PUBLIC void *malloc(size_t n)
{
	void *p = is_ready() ? next.malloc(n) : __libc_malloc(n);

	KEEP(p, n);
	return p;
}

PUBLIC void *calloc(size_t n, size_t size)
{
	void *p = is_ready() ? next.calloc(n, size) : __libc_calloc(n, size);

	KEEP(p, n * size);
	return p;
}

PUBLIC void *realloc(void *old, size_t n)
{
	void *p = is_ready() ? next.realloc(old, n) : __libc_realloc(old, n);

	KEEP(p, n);
	return p;
}

PUBLIC void *memalign(size_t align, size_t n)
{
	void *p = is_ready() && next.memalign ? next.memalign(align, n) : NULL;

	KEEP(p, n);
	return p;
}

PUBLIC void *aligned_alloc(size_t align, size_t n)
{
	void *p = is_ready() && next.aligned_alloc ? next.aligned_alloc(align, n) : NULL;

	KEEP(p, n);
	return p;
}

PUBLIC int posix_memalign(void **p, size_t align, size_t n)
{
	int rc = is_ready() && next.posix_memalign ? next.posix_memalign(p, align, n) : ENOMEM;

	if (!rc)
		KEEP(*p, n);
	return rc;
}

/* Memory of the kernel's; what allocators take for themselves does not come this way. */
PUBLIC void *mmap(void *at, size_t n, int protection, int flags, int fd, off_t offset)
{
	void *p = (void *)syscall(SYS_mmap, at, n, protection, flags, fd, offset);

	if (p != MAP_FAILED && protection & PROT_WRITE)
		KEEP(p, n);
	return p;
}

PUBLIC void *mmap64(void *at, size_t n, int protection, int flags, int fd, off_t offset)
{
	void *p = (void *)syscall(SYS_mmap, at, n, protection, flags, fd, offset);

	if (p != MAP_FAILED && protection & PROT_WRITE)
		KEEP(p, n);
	return p;
}

static __attribute__((constructor)) void start(void)
{
	is_ready();
	log_start();
}
