#include "collect/calibrate_cache.h"

#include "base/buf.h"
#include "base/io.h"
#include "base/mem.h"
#include "collect/event.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#define FILE_MAX (1 << 16)

static void make_dirs(const char *dir)
{
	_cleanup_free_ char *path = xstrdup(dir);

	for (char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
		*at = 0;
		mkdir(path, 0755);
		*at = '/';
	}
	mkdir(path, 0755);
}

static const char *next_line(const char *line)
{
	line += strcspn(line, "\n");
	return *line ? line + 1 : line;
}

static bool has_key(const char *line, const char *key)
{
	size_t n = strlen(key);

	return !strncmp(line, key, n) && line[n] == ' ';
}

static bool read_figures(const char *text, double low, double high, struct figures *out)
{
	const char *end = text + strcspn(text, "\n");

	for (out->n = 0; out->n < CALIBRATE_FIGURES; out->n++) {
		char *after;
		double v = strtod(text, &after);

		if (after == text || after > end)
			break;
		if (!(v >= low && v <= high))
			return false;
		out->p[out->n] = v;
		text = after;
	}
	return text == end;
}

char *calibrate_cache_dir(void)
{
	const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");

	if (geteuid() == 0)
		return xstrdup("/var/lib/culprit");
	if (xdg && *xdg == '/')
		return xasprintf("%s/culprit", xdg);
	return home && *home == '/' ? xasprintf("%s/.cache/culprit", home) : NULL;
}

char *calibrate_cache_key(const char *what, const struct event *ev)
{
	char boot[64] = "-";
	struct utsname u;

	uname(&u);
	io_read_line(AT_FDCWD, "/proc/sys/kernel/random/boot_id", boot, sizeof boot);
	return xasprintf("%s %s %s%s", boot, u.release, what, ev->name);
}

void calibrate_cache_get(
	const char *dir, const char *key, double low, double high, struct figures *out)
{
	_cleanup_free_ char *path = xasprintf("%s/calibration", dir);
	struct buf text = {0};
	bool found = false;

	io_read_file(AT_FDCWD, path, FILE_MAX, &text);
	for (const char *line = buf_cstr(&text); *line && !found; line = next_line(line))
		found = has_key(line, key) && read_figures(line + strlen(key), low, high, out);
	if (!found)
		out->n = 0;
	buf_deinit(&text);
}

void calibrate_cache_put(const char *dir, const char *key, const struct figures *figures)
{
	_cleanup_free_ char *path = xasprintf("%s/calibration", dir);
	struct buf text = {0}, fresh = {0};
	size_t boot = strcspn(key, " ") + 1;

	io_read_file(AT_FDCWD, path, FILE_MAX, &text);
	for (const char *line = buf_cstr(&text); *line; line = next_line(line)) {
		if (!strncmp(line, key, boot) && !has_key(line, key))
			buf_printf(&fresh, "%.*s\n", (int)strcspn(line, "\n"), line);
	}
	buf_printf(&fresh, "%s", key);
	for (int i = 0; i < figures->n; i++)
		buf_printf(&fresh, " %.6g", figures->p[i]);
	buf_printf(&fresh, "\n");
	make_dirs(dir);
	io_write_file(path, buf_cstr(&fresh));
	buf_deinit(&text);
	buf_deinit(&fresh);
}
