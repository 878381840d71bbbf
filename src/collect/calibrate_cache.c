#include "collect/calibrate_cache.h"

#include "base/buf.h"
#include "base/io.h"
#include "base/mem.h"
#include "collect/calibrate.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

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

static bool plausible(const struct calibration *c)
{
	return c->cost > 1e-8 && c->cost < 1e-2 && c->spread >= 0 && c->spread < 1 && c->rounds > 0;
}

bool calibrate_cache_get(const char *dir, const char *key, struct calibration *out)
{
	_cleanup_free_ char *path = xasprintf("%s/calibration", dir);
	struct buf text = {0};
	bool found = false;

	io_read_file(AT_FDCWD, path, FILE_MAX, &text);
	for (const char *line = buf_cstr(&text); *line && !found; line = next_line(line)) {
		struct calibration c;

		found = has_key(line, key) &&
			sscanf(line + strlen(key), "%lf %lf %d", &c.cost, &c.spread, &c.rounds) ==
				3 &&
			plausible(&c);
		if (found)
			*out = c;
	}
	buf_deinit(&text);
	return found;
}

void calibrate_cache_put(const char *dir, const char *key, const struct calibration *c)
{
	_cleanup_free_ char *path = xasprintf("%s/calibration", dir);
	struct buf text = {0}, fresh = {0};
	size_t boot = strcspn(key, " ") + 1;

	io_read_file(AT_FDCWD, path, FILE_MAX, &text);
	for (const char *line = buf_cstr(&text); *line; line = next_line(line)) {
		if (!strncmp(line, key, boot) && !has_key(line, key))
			buf_printf(&fresh, "%.*s\n", (int)strcspn(line, "\n"), line);
	}
	buf_printf(&fresh, "%s %.9g %.9g %d\n", key, c->cost, c->spread, c->rounds);
	make_dirs(dir);
	io_write_file(path, buf_cstr(&fresh));
	buf_deinit(&text);
	buf_deinit(&fresh);
}
