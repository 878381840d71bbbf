#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/vec.h"

/* ASan would rather abort than let malloc fail. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}

static void ask_malloc(size_t size)
{
	free(xmalloc(size));
}

static void ask_calloc(size_t size)
{
	free(xcalloc(size, 16)); /* the product overflows */
}

static void ask_realloc(size_t size)
{
	free(xrealloc(NULL, size));
}

static void ask_arena(size_t size)
{
	struct arena a = {0};
	arena_alloc(&a, size);
	arena_deinit(&a);
}

static void ask_vec(size_t size)
{
	VEC(uint64_t) v = {0};
	vec_reserve(&v, size);
	vec_deinit(&v);
}

/* What a child says on standard error while it dies of the wish. */
static void assert_dies(void (*ask)(size_t), size_t size)
{
	int ends[2], status;
	char said[4096];
	size_t n = 0;
	assert_int_equal(pipe(ends), 0);
	pid_t pid = fork();
	if (pid == 0) {
		dup2(ends[1], STDERR_FILENO);
		ask(size);
		_exit(0);
	}
	close(ends[1]);
	for (ssize_t got; (got = read(ends[0], said + n, sizeof said - 1 - n)) > 0;)
		n += (size_t)got;
	said[n] = 0;
	close(ends[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), EXIT_MACHINE);
	assert_non_null(strstr(said, "culprit: out of memory (asked for "));
	assert_non_null(strstr(said, " bytes)\n"));
}

static void test_out_of_memory(void **state)
{
	(void)state;
	size_t huge = SIZE_MAX / 4;
	assert_dies(ask_malloc, huge);
	assert_dies(ask_calloc, huge);
	assert_dies(ask_realloc, huge);
	assert_dies(ask_arena, huge);
	assert_dies(ask_arena, SIZE_MAX - 3);
	assert_dies(ask_vec, huge);
}

static void test_copies(void **state)
{
	(void)state;
	static const char bytes[] = {1, 0, 2};
	_cleanup_free_ char *whole = xstrdup("culprit");
	_cleanup_free_ char *part = xstrndup("culprit", 3);
	_cleanup_free_ char *more = xstrndup("ab", 9);
	_cleanup_free_ char *printed = xasprintf("%d-%s", 5, "x");
	_cleanup_free_ char *copy = xmemdup(bytes, sizeof bytes);
	_cleanup_free_ char *nothing = xmemdup(NULL, 0);
	assert_string_equal(whole, "culprit");
	assert_string_equal(part, "cul");
	assert_string_equal(more, "ab");
	assert_string_equal(printed, "5-x");
	assert_memory_equal(copy, bytes, sizeof bytes);
	assert_non_null(nothing);
}

static void test_cleanup_closes(void **state)
{
	(void)state;
	int seen;
	{
		_cleanup_close_ int fd = open("/dev/null", O_RDONLY);
		_cleanup_close_ int none = -1;
		_cleanup_close_ int gone = dup(fd);
		seen = fd;
		assert_true(fd >= 0);
		assert_int_equal(close(gone), 0); /* closing it again fails with EBADF */
		(void)none;
		errno = EXDEV;
	}
	assert_int_equal(errno, EXDEV);
	assert_int_equal(fcntl(seen, F_GETFD), -1);
}

static void test_arena(void **state)
{
	(void)state;
	struct arena a = {0};
	unsigned char *before = NULL;
	for (size_t size = 0; size < 3000; size += 7) {
		unsigned char *p = arena_alloc(&a, size);
		assert_int_equal((uintptr_t)p % 16, 0);
		for (size_t i = 0; i < size; i++)
			assert_int_equal(p[i], 0);
		memset(p, 0xee, size);
		if (before) /* the piece before is still whole */
			assert_int_equal(before[size - 8], 0xee);
		before = size ? p : NULL;
	}
	unsigned char *large = arena_alloc(&a, 5 << 20), *next = arena_alloc(&a, 8);
	large[(5 << 20) - 1] = 1;
	*next = 1;
	assert_string_equal(arena_strdup(&a, "name"), "name");
	assert_true(a.used >= 5 << 20);
	arena_deinit(&a);
	assert_null(a.head);
	assert_int_equal(a.used, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_out_of_memory),
		cmocka_unit_test(test_copies),
		cmocka_unit_test(test_cleanup_closes),
		cmocka_unit_test(test_arena),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
