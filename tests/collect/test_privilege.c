#include "base/err.h"
#include "collect/privilege.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static bool has(cap_value_t cap)
{
	cap_flag_value_t set = CAP_CLEAR;
	cap_t caps = cap_get_proc();

	cap_get_flag(caps, cap, CAP_PERMITTED, &set);
	cap_free(caps);
	return set == CAP_SET;
}

/* Dropping is for good, so it happens in a child, whose exit code says what it saw. */
static int dropped_in_child(void)
{
	bool could_trace = has(CAP_SYS_PTRACE);
	struct err e = {0};

	if (privilege_drop(&e) < 0)
		return 1;
	if (has(CAP_SYS_ADMIN) || has(CAP_BPF) || has(CAP_NET_ADMIN) || has(CAP_DAC_OVERRIDE))
		return 2;
	if (has(CAP_SYS_PTRACE) != could_trace)
		return 3;
	if (cap_get_bound(CAP_SYS_ADMIN) > 0 && geteuid() == 0)
		return 4;
	return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? 0 : 5;
}

static void expect_in_child(int (*what)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(what());
	waitpid(pid, &status, 0);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void only_what_attribution_needs_is_left(void **state)
{
	(void)state;
	expect_in_child(dropped_in_child);
}

static int dropped_of_nothing(void)
{
	cap_t none = cap_init();

	if ((geteuid() == 0 && setuid(65534) < 0) || cap_set_proc(none) < 0)
		return 10;
	cap_free(none);
	return dropped_in_child();
}

static void who_has_no_rights_has_none_then(void **state)
{
	(void)state;
	expect_in_child(dropped_of_nothing);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_what_attribution_needs_is_left),
		cmocka_unit_test(who_has_no_rights_has_none_then),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
