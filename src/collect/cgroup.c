#include "collect/cgroup.h"

#include "base/buf.h"
#include "base/hmap.h"
#include "base/io.h"
#include "base/mem.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	CGROUPS_MOST = 8192,
	WALK_DEPTH = 32,
	FILE_MOST = 1 << 20,
};

struct id_entry {
	uint32_t id, number;
};

struct cgroups {
	char *mount; /* of the v2 tree, NULL without one */
	bool mixed;  /* v1 hierarchies beside it */
	bool walked; /* since the last turn */
	struct strtab paths;
	struct hmap ids; /* struct id_entry */
	size_t bytes;
};

static uint32_t intern(struct cgroups *c, const char *path)
{
	size_t n = c->paths.n;
	uint32_t number = strtab_add(&c->paths, path);

	if (c->paths.n > n)
		c->bytes += strlen(path) + 1;
	return number;
}

static void set_id(struct cgroups *c, uint32_t id, uint32_t number)
{
	struct id_entry *e = hmap_put(&c->ids, &id, NULL);

	e->number = number;
}

/*
 * Fields of /proc/self/mountinfo: the fifth is the mount point, the type follows " - ". Spaces in
 * it are escaped; nobody mounts cgroups there.
 */
static void find_mounts(struct cgroups *c)
{
	struct buf text = {0};
	char *line, *rest;

	if (io_read_file(-1, "/proc/self/mountinfo", FILE_MOST, &text) < 0)
		return;
	buf_cstr(&text);
	rest = (char *)text.p;
	while ((line = strsep(&rest, "\n"))) {
		const char *type = strstr(line, " - ");
		char *point = line;

		if (!type)
			continue;
		for (int i = 0; i < 4 && point; i++) {
			point = strchr(point, ' ');
			point = point ? point + 1 : NULL;
		}
		if (!point)
			continue;
		if (!strncmp(type, " - cgroup2 ", 11) && !c->mount)
			c->mount = xstrndup(point, strcspn(point, " "));
		if (!strncmp(type, " - cgroup ", 10))
			c->mixed = true;
	}
	buf_deinit(&text);
}

struct cgroups *cgroups_create(const char *mount)
{
	struct cgroups *c = xcalloc(1, sizeof *c);

	hmap_init(&c->ids, sizeof(struct id_entry), sizeof(uint32_t));
	intern(c, "");
	if (!mount)
		find_mounts(c);
	else if (*mount)
		c->mount = xstrdup(mount);
	return c;
}

void cgroups_destroy(struct cgroups *c)
{
	if (!c)
		return;
	free(c->mount);
	strtab_deinit(&c->paths);
	hmap_deinit(&c->ids);
	free(c);
}

const char *cgroups_path(const struct cgroups *c, uint32_t n)
{
	return n < c->paths.n ? c->paths.strings[n] : "";
}

/* Lines are "NUMBER:CONTROLLERS:PATH"; v2's is "0::PATH". Paths may hold colons. */
const char *cgroups_choose(char *text)
{
	const char *v2 = "", *v1 = "";
	char *line;

	while ((line = strsep(&text, "\n"))) {
		char *controllers = strchr(line, ':');
		char *path = controllers ? strchr(controllers + 1, ':') : NULL;

		if (!path || path[1] != '/')
			continue;
		path++;
		if (controllers[1] == ':')
			v2 = path;
		else if (strlen(path) > strlen(v1))
			v1 = path;
	}
	return strlen(v2) > 1 || strlen(v1) <= 1 ? (*v2 ? v2 : v1) : v1;
}

uint32_t cgroups_of_process(struct cgroups *c, pid_t pid)
{
	struct buf text = {0};
	uint32_t number = CGROUP_NONE;
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/cgroup", pid);
	if (io_read_file(-1, path, FILE_MOST, &text) == 0) {
		buf_cstr(&text);
		number = intern(c, cgroups_choose((char *)text.p));
	}
	buf_deinit(&text);
	return number;
}

/* Learns the id of every directory below fd, which is closed; the path is c->mount's plus `path`.
 */
static void walk(struct cgroups *c, int fd, struct buf *path, int depth)
{
	DIR *d = fdopendir(fd);
	struct dirent *entry;
	struct stat st;
	size_t length = path->n;

	if (!d) {
		close(fd);
		return;
	}
	if (fstat(fd, &st) == 0)
		set_id(c, (uint32_t)st.st_ino, intern(c, length ? buf_cstr(path) : "/"));
	while (depth < WALK_DEPTH && !cgroups_full(c) && (entry = readdir(d))) {
		int sub;

		if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
			continue;
		sub = openat(fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (sub < 0)
			continue;
		buf_printf(path, "/%s", entry->d_name);
		walk(c, sub, path, depth + 1);
		path->n = length;
	}
	closedir(d);
}

/* Whether the process is in the cgroup with this id: short of reading the whole tree. */
static bool learn_at(struct cgroups *c, uint32_t id, pid_t pid)
{
	struct buf text = {0};
	char path[64], *line, *rest;
	bool found = false;

	snprintf(path, sizeof path, "/proc/%d/cgroup", pid);
	if (pid <= 0 || io_read_file(-1, path, FILE_MOST, &text) < 0)
		return false;
	buf_cstr(&text);
	rest = (char *)text.p;
	while (!found && (line = strsep(&rest, "\n"))) {
		_cleanup_free_ char *directory = NULL;
		struct stat st;

		if (strncmp(line, "0::/", 4))
			continue;
		directory = xasprintf("%s%s", c->mount, line + 3);
		found = stat(directory, &st) == 0 && (uint32_t)st.st_ino == id;
		if (found)
			set_id(c, id, intern(c, line + 3));
	}
	buf_deinit(&text);
	return found;
}

static void walk_all(struct cgroups *c)
{
	struct buf path = {0};
	int fd = open(c->mount, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	c->walked = true;
	if (fd >= 0)
		walk(c, fd, &path, 0);
	buf_deinit(&path);
}

uint32_t cgroups_by_id(struct cgroups *c, uint32_t id, pid_t pid)
{
	const struct id_entry *e;

	if (!id)
		return CGROUP_NONE;
	e = hmap_get(&c->ids, &id);
	if (!e && c->mount && !cgroups_full(c)) {
		if (!learn_at(c, id, pid) && !c->walked)
			walk_all(c);
		e = hmap_get(&c->ids, &id);
		if (!e)
			set_id(c, id, CGROUP_NONE);
	}
	if (!e || (c->mixed && !strcmp(cgroups_path(c, e->number), "/")))
		return CGROUP_NONE;
	return e->number;
}

void cgroups_learn(struct cgroups *c, uint64_t id, const char *path)
{
	/* Beside v1 hierarchies the kernel's records speak of one of those. */
	if (!c->mixed && !cgroups_full(c))
		set_id(c, (uint32_t)id, intern(c, path));
}

void cgroups_turn(struct cgroups *c)
{
	c->walked = false;
}

bool cgroups_full(const struct cgroups *c)
{
	return c->paths.n >= CGROUPS_MOST || c->ids.n >= 2 * CGROUPS_MOST;
}

void cgroups_clear(struct cgroups *c)
{
	strtab_deinit(&c->paths);
	hmap_deinit(&c->ids);
	c->bytes = 0;
	intern(c, "");
}

size_t cgroups_memory(const struct cgroups *c)
{
	return c->bytes + c->paths.space * sizeof(char *) + c->paths.nslots * sizeof(uint32_t) +
	       c->ids.slots * (sizeof(struct id_entry) + sizeof(uint32_t));
}
