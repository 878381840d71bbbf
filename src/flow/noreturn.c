#include "flow/noreturn.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* In the order of strcmp. Names that programs use for functions of their own are not here. */
static const char *const names[] = {
	"_Exit",
	"_Unwind_Resume",
	"_ZSt9terminatev",
	"__assert",
	"__assert_fail",
	"__assert_perror_fail",
	"__chk_fail",
	"__cxa_bad_cast",
	"__cxa_bad_typeid",
	"__cxa_call_terminate",
	"__cxa_call_unexpected",
	"__cxa_deleted_virtual",
	"__cxa_pure_virtual",
	"__cxa_rethrow",
	"__cxa_throw",
	"__cxa_throw_bad_array_new_length",
	"__fortify_fail",
	"__libc_fatal",
	"__libc_start_call_main",
	"__libc_start_main",
	"__longjmp",
	"__longjmp_chk",
	"__pthread_unwind_next",
	"__stack_chk_fail",
	"__stack_chk_fail_local",
	"_exit",
	"_longjmp",
	"abort",
	"err",
	"errx",
	"exit",
	"longjmp",
	"pthread_exit",
	"quick_exit",
	"siglongjmp",
	"std::terminate()",
	"std::unexpected()",
	"thrd_exit",
	"verr",
	"verrx",
};

static const char *const prefixes[] = {
	"core::panicking::panic",
	"std::__throw_",
	"std::rethrow_exception(",
};

static int compare(const void *key, const void *name)
{
	const char *const *n = name;

	return strcmp(key, *n);
}

bool noreturn_name(const char *name)
{
	static const char stub[] = "@plt";
	_cleanup_free_ char *bare = NULL;

	if (!name)
		return false;
	for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
		if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
			return true;
	size_t n = strlen(name), tail = strlen(stub);
	if (n > tail && !strcmp(name + n - tail, stub))
		n -= tail;
	bare = xstrndup(name, n);
	return bsearch(bare, names, sizeof names / sizeof *names, sizeof *names, compare);
}
