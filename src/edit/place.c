#include "edit/place.h"

#include "base/err.h"
#include "base/io.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

static int write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), rc = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		rc = -errno;
	close(fd);
	return rc;
}

/* Users and groups are what they were: only ours has to be there. */
static int keep_identity(uid_t uid, gid_t gid)
{
	char text[64];
	int rc;

	write_text("/proc/self/setgroups", "deny");
	snprintf(text, sizeof text, "%u %u 1", uid, uid);
	rc = write_text("/proc/self/uid_map", text);
	snprintf(text, sizeof text, "%u %u 1", gid, gid);
	return rc ? rc : write_text("/proc/self/gid_map", text);
}

static int enter_namespace(struct err *e)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	int rc;

	if (!unshare(CLONE_NEWNS))
		return 0;
	if (errno != EPERM)
		return err_errno(e, -errno, "cannot make a mount namespace");
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return err_errno(e, -errno,
			"cannot put edited files in place: mounting needs root, or user namespaces "
			"(sysctl kernel.unprivileged_userns_clone=1, user.max_user_namespaces)");
	rc = keep_identity(uid, gid);
	return rc ? err_errno(e, rc, "cannot stay the same user in a user namespace") : 0;
}

/* ---- mounts that nobody else sees ---- */

static int keep_private(void)
{
	return mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ? -errno : 0;
}

/* To the root of the namespace: a folder that is not below our root has parents up to there. */
static int climb(void)
{
	struct stat here, above;

	for (int depth = 0; depth < PATH_MAX; depth++) {
		if (stat(".", &here) < 0 || chdir("..") < 0 || stat(".", &above) < 0)
			return -errno;
		if (here.st_dev == above.st_dev && here.st_ino == above.st_ino)
			return chroot(".") < 0 ? -errno : 0;
	}
	return -ELOOP;
}

/*
 * In a chroot whose root is no mount point the mount that it is on has no name. So we look at it
 * from outside, in the namespace that is ours alone, and come back.
 */
static int keep_private_from_outside(const char *file)
{
	_cleanup_close_ int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	_cleanup_close_ int folder = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	_cleanup_free_ char *below = xstrdup(file);
	int rc;

	*strrchr(below, '/') = 0;
	if (root < 0 || folder < 0 || chroot(below) < 0 || fchdir(root) < 0)
		return -errno;
	rc = climb();
	if (!rc)
		rc = keep_private();
	if (fchdir(root) < 0 || chroot(".") < 0 || fchdir(folder) < 0)
		return -errno;
	return rc;
}

int place_files(const struct placement *list, size_t n, struct err *e)
{
	int rc = enter_namespace(e);

	if (rc)
		return rc;
	rc = keep_private();
	if (rc == -EINVAL && n && strchr(list[0].over, '/'))
		rc = keep_private_from_outside(list[0].over);
	if (rc)
		return err_errno(e, rc, "cannot keep mounts to ourselves");
	for (size_t i = 0; i < n; i++)
		if (mount(list[i].with, list[i].over, NULL, MS_BIND, NULL) < 0)
			return err_errno(e, -errno, "cannot put %s in the place of %s",
				list[i].with, list[i].over);
	return 0;
}
