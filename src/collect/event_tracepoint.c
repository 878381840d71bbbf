#include "collect/event_tracepoint.h"

#include "base/err.h"
#include "base/io.h"
#include "base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

static const char *const roots[] = {
	"/sys/kernel/tracing/events", "/sys/kernel/debug/tracing/events"};
#define NROOTS (sizeof roots / sizeof *roots)

static bool is_plain(const char *s)
{
	return *s && *s != '.' && !strchr(s, '/');
}

/* The directory of events, or NULL with the reason in errno. */
static const char *find_root(void)
{
	int reason = ENOENT;

	for (size_t i = 0; i < NROOTS; i++) {
		if (access(roots[i], R_OK | X_OK) == 0)
			return roots[i];
		if (errno == EACCES)
			reason = EACCES;
	}
	errno = reason;
	return NULL;
}

static int no_root(const char *system, const char *name, struct err *e)
{
	if (errno == EACCES)
		return err_set(e, -EACCES,
			"event %s:%s: tracefs may not be read; tracepoints take root", system,
			name);
	return err_set(e, -EACCES,
		"event %s:%s: tracefs is not mounted (mount -t tracefs nodev /sys/kernel/tracing)",
		system, name);
}

int event_tracepoint_id(const char *system, const char *name, uint64_t *id, struct err *e)
{
	const char *root = find_root();
	_cleanup_free_ char *path = NULL;
	long value;
	int r;

	if (!root)
		return no_root(system, name, e);
	path = xasprintf("%s/%s/%s/id", root, system, name);
	r = is_plain(system) && is_plain(name) ? io_read_long(path, &value) : -ENOENT;
	if (r == -EACCES)
		return err_set(e, r, "event %s:%s: %s may not be read; tracepoints take root",
			system, name, path);
	if (r < 0)
		return err_set(e, -EINVAL, "event %s:%s: there is no such event or tracepoint",
			system, name);
	*id = value;
	return 0;
}

static void each_in(
	const char *root, const char *system, void (*fn)(void *arg, const char *name), void *arg)
{
	_cleanup_free_ char *path = xasprintf("%s/%s", root, system);
	DIR *dir = opendir(path);
	struct dirent *d;

	while (dir && (d = readdir(dir))) {
		_cleanup_free_ char *id = xasprintf("%s/%s/id", path, d->d_name);
		_cleanup_free_ char *name = xasprintf("%s:%s", system, d->d_name);

		if (is_plain(d->d_name) && access(id, F_OK) == 0)
			fn(arg, name);
	}
	if (dir)
		closedir(dir);
}

void event_tracepoint_each(void (*fn)(void *arg, const char *name), void *arg)
{
	const char *root = find_root();
	DIR *dir = root ? opendir(root) : NULL;
	struct dirent *d;

	while (dir && (d = readdir(dir))) {
		if (is_plain(d->d_name))
			each_in(root, d->d_name, fn, arg);
	}
	if (dir)
		closedir(dir);
}
