#include "edit/cache.h"

#include "base/err.h"
#include "base/io.h"
#include "base/mem.h"
#include "edit/cache_trim.h"
#include "edit/returns.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MAP_MOST ((size_t)1 << 30)
#define PAGE     4096
#define OLD_DAYS 7 /* of copies that another build of culprit made */
#define ALL_MOST ((uint64_t)2 << 30)

/* ---- folders ---- */

static char *root_folder(void)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");

	if (cache && cache[0] == '/')
		return xasprintf("%s/culprit/edited", cache);
	if (home && home[0] == '/')
		return xasprintf("%s/.cache/culprit/edited", home);
	return xasprintf("/tmp/culprit-cache-%d/edited", (int)getuid());
}

static int make_folders(const char *path, struct err *e)
{
	_cleanup_free_ char *part = xstrdup(path);

	for (char *at = part + 1; (at = strchr(at, '/')); at++) {
		*at = 0;
		if (mkdir(part, 0700) < 0 && errno != EEXIST)
			return err_errno(e, -errno, "%s: cannot be made", part);
		*at = '/';
	}
	if (mkdir(part, 0700) < 0 && errno != EEXIST)
		return err_errno(e, -errno, "%s: cannot be made", part);
	return 0;
}

/* What other builds made and have not touched for a while. */
static void remove_old(const char *root, const char *keep)
{
	DIR *d = opendir(root);

	for (struct dirent *entry; d && (entry = readdir(d));) {
		_cleanup_free_ char *inner = xasprintf("%s/%s", root, entry->d_name);
		struct stat st;

		if (entry->d_name[0] != '.' && strcmp(inner, keep) && !lstat(inner, &st) &&
			S_ISDIR(st.st_mode) && time(NULL) - st.st_mtime > OLD_DAYS * 86400)
			cache_remove(inner);
	}
	if (d)
		closedir(d);
}

/* The folder of this build of culprit, and in it that of the original. */
static int folder_of(const char *path, const struct edit_tool *tool, char **out, struct err *e)
{
	_cleanup_free_ char *root = root_folder(), *build = NULL;
	_cleanup_close_ int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct image_id own = {0}, id;
	char text[IMAGE_ID_TEXT];
	int rc;

	if (fd < 0)
		return err_errno(e, -errno, "%s: cannot be read", path);
	rc = image_identify(fd, &id, e);
	if (rc)
		return rc;
	if (self >= 0)
		image_identify(self, &own, NULL);
	build = xasprintf("%s/%.16s", root, own.size ? image_id_text(&own, text) : "unknown");
	rc = make_folders(build, e);
	if (rc)
		return rc;
	remove_old(root, build);
	*out = xasprintf("%s/%s-%s", build, image_id_text(&id, text), tool->name);
	return 0;
}

/* ---- making ---- */

static int write_bytes(const char *folder, const char *name, const void *p, size_t n, struct err *e)
{
	_cleanup_free_ char *path = xasprintf("%s/%s", folder, name);
	FILE *f = fopen(path, "we");
	bool fine = f && fwrite(p, 1, n, f) == n;

	if (f && fclose(f))
		fine = false;
	return fine ? 0 : err_errno(e, -(errno ? errno : EIO), "%s: cannot be written", path);
}

static int write_edit(struct edit *edit, const char *folder, const struct edit_tool *tool,
	const char *counts, struct err *e)
{
	_cleanup_free_ char *image = xasprintf("%s/image", folder);
	void *state = NULL;
	struct buf map = {0}, returns = {0};
	int rc = tool->apply(tool->options, edit, counts, &state, &map, e);

	if (!rc)
		rc = edit_write(edit, image, e);
	if (!rc) {
		returns_put(edit, &returns);
		rc = write_bytes(folder, "returns", returns.p, returns.n, e);
	}
	if (!rc)
		rc = write_bytes(folder, "map", map.p, map.n, e);
	if (!rc)
		rc = write_bytes(folder, "counts", "", 0, e);
	tool->release(state);
	buf_deinit(&map);
	buf_deinit(&returns);
	return rc;
}

/* Made under another name, so that nobody finds half of it. */
static int make(const char *path, const char *folder, const struct edit_tool *tool, struct err *e)
{
	_cleanup_free_ char *fresh = xasprintf("%s.XXXXXX", folder);
	_cleanup_free_ char *counts = xasprintf("%s/counts", folder);
	struct edit *edit = NULL;
	int rc = edit_open(path, &(struct edit_options){0}, &edit, e);

	if (rc)
		return rc;
	if (!mkdtemp(fresh))
		rc = err_errno(e, -errno, "%s: cannot be made", fresh);
	if (!rc)
		rc = write_edit(edit, fresh, tool, counts, e);
	if (!rc && rename(fresh, folder) < 0 && errno != EEXIST && errno != ENOTEMPTY)
		rc = err_errno(e, -errno, "%s: cannot be made", folder);
	cache_remove(fresh); /* nothing there when all went well */
	edit_destroy(edit);
	return rc;
}

/* Those that are used longest ago go when a new one makes them too many. */
static void make_room(void)
{
	_cleanup_free_ char *root = root_folder();

	cache_trim(root, ALL_MOST, time(NULL));
}

static int read_map(const char *path, const struct edit_tool *tool, struct cached_edit *out,
	struct edit_outline *outline, const char *remedy, struct err *e)
{
	int rc = io_read_file(AT_FDCWD, path, MAP_MOST, &out->map);

	if (!rc && (rc = tool->outline(&out->map, outline)))
		return err_set(e, rc, "%s: %s", path, remedy);
	if (rc)
		return err_errno(e, rc, "%s: cannot be read", path);
	out->bytes = (outline->bytes + PAGE - 1) / PAGE * PAGE;
	return 0;
}

int cache_copy(
	const char *path, const struct edit_tool *tool, struct cached_edit *out, struct err *e)
{
	_cleanup_free_ char *folder = NULL, *map = NULL;
	struct edit_outline outline;
	int rc = folder_of(path, tool, &folder, e);

	*out = (struct cached_edit){0};
	if (rc)
		return rc;
	map = xasprintf("%s/map", folder);
	if (utimensat(AT_FDCWD, folder, NULL, 0) < 0 || access(map, R_OK) < 0) {
		rc = make(path, folder, tool, e);
		make_room();
	}
	if (!rc)
		rc = read_map(map, tool, out, &outline,
			"is damaged: remove it, and what lies beside it", e);
	if (!rc && !out->bytes)
		rc = err_set(e, -ENODATA, "%s: has nothing that can be counted", path);
	out->image = xasprintf("%s/image", folder);
	out->counts = xasprintf("%s/counts", folder);
	out->returns = xasprintf("%s/returns", folder);
	if (rc)
		cached_edit_deinit(out);
	return rc;
}

int cache_edited(const char *path, const struct edit_tool *tool, struct cached_edit *out,
	char **original, struct err *e)
{
	_cleanup_free_ char *map = xasprintf("%s.map", path);
	struct edit_outline outline;
	int rc;

	*out = (struct cached_edit){0};
	rc = read_map(map, tool, out, &outline,
		"is damaged, or of a copy that counts something else: say --paths or --context as "
		"when it was made",
		e);
	if (rc) {
		cached_edit_deinit(out);
		return rc;
	}
	out->image = xstrdup(path);
	out->counts = xasprintf("%s.counts", path);
	*original = xstrdup(outline.original);
	return 0;
}

void cached_edit_deinit(struct cached_edit *c)
{
	free(c->image);
	free(c->counts);
	free(c->returns);
	buf_deinit(&c->map);
	*c = (struct cached_edit){0};
}
