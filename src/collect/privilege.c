#include "collect/privilege.h"

#include "base/err.h"

#include <errno.h>
#include <stddef.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <unistd.h>

static const cap_value_t kept[] = {
	CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH, CAP_SYSLOG, CAP_CHECKPOINT_RESTORE};

/* Of those to be kept, the ones that this process has. */
static int kept_subset(cap_value_t *list)
{
	cap_t now = cap_get_proc();
	int n = 0;

	for (size_t i = 0; now && i < sizeof kept / sizeof *kept; i++) {
		cap_flag_value_t has;

		if (cap_get_flag(now, kept[i], CAP_PERMITTED, &has) == 0 && has == CAP_SET)
			list[n++] = kept[i];
	}
	cap_free(now);
	return n;
}

static void drop_bounding_set(const cap_value_t *list, int n)
{
	for (int cap = 0; cap_get_bound(cap) >= 0; cap++) {
		int i = 0;

		while (i < n && list[i] != cap)
			i++;
		if (i == n)
			cap_drop_bound(cap);
	}
}

int privilege_drop(struct err *e)
{
	cap_value_t list[sizeof kept / sizeof *kept];
	int n = kept_subset(list);
	cap_t caps = cap_init();
	int code = 0;

	if (!caps)
		return err_errno(e, -errno, "cannot drop privileges");
	if (geteuid() == 0)
		drop_bounding_set(list, n);
	if ((n && cap_set_flag(caps, CAP_PERMITTED, n, list, CAP_SET) < 0) || /* none: EINVAL */
		(n && cap_set_flag(caps, CAP_EFFECTIVE, n, list, CAP_SET) < 0) ||
		cap_set_proc(caps) < 0 ||
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		code = err_errno(e, -errno, "cannot drop privileges");
	cap_free(caps);
	return code;
}
