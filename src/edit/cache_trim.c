#include "edit/cache_trim.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/vec.h"

struct copy {
	char *path;
	uint64_t bytes;
	time_t used;
};

typedef VEC(struct copy) copies;

/* The next entry of a folder, its path to be freed; NULL at the end. */
static char *next(DIR *d, const char *folder, struct stat *st)
{
	for (struct dirent *entry; d && (entry = readdir(d));) {
		char *path;

		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		path = xasprintf("%s/%s", folder, entry->d_name);
		if (!lstat(path, st))
			return path;
		free(path);
	}
	return NULL;
}

static void finish(DIR *d)
{
	if (d)
		closedir(d);
}

void cache_remove(const char *path)
{
	DIR *d = opendir(path);
	struct stat st;

	for (char *inner; (inner = next(d, path, &st)); free(inner)) {
		if (S_ISDIR(st.st_mode))
			cache_remove(inner);
		else
			unlink(inner);
	}
	finish(d);
	rmdir(path);
}

static uint64_t size_of(const char *folder)
{
	DIR *d = opendir(folder);
	uint64_t bytes = 0;
	struct stat st;

	for (char *path; (path = next(d, folder, &st)); free(path))
		bytes += (uint64_t)st.st_blocks * 512;
	finish(d);
	return bytes;
}

static void list_build(const char *build, copies *out)
{
	DIR *d = opendir(build);
	struct stat st;

	for (char *path; (path = next(d, build, &st));) {
		if (S_ISDIR(st.st_mode))
			*vec_add(out) = (struct copy){path, size_of(path), st.st_mtime};
		else
			free(path);
	}
	finish(d);
}

static int by_use(const void *a, const void *b)
{
	const struct copy *x = a, *y = b;

	return x->used < y->used ? -1 : x->used > y->used;
}

void cache_trim(const char *root, uint64_t most, time_t now)
{
	DIR *d = opendir(root);
	copies list = {0};
	uint64_t total = 0;
	struct stat st;

	for (char *build; (build = next(d, root, &st)); free(build))
		if (S_ISDIR(st.st_mode))
			list_build(build, &list);
	finish(d);
	vec_each (c, &list)
		total += c->bytes;
	vec_sort(&list, by_use);
	vec_each (c, &list) {
		if (total > most && now - c->used > CACHE_TRIM_SPARES) {
			cache_remove(c->path);
			total -= c->bytes;
			*strrchr(c->path, '/') = 0;
			rmdir(c->path);
		}
		free(c->path);
	}
	vec_deinit(&list);
}
