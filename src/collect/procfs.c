#include "collect/procfs.h"

#include "base/buf.h"
#include "base/io.h"
#include "base/mem.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
	MAPS_MOST = 16 << 20, /* 65,530 mappings, the kernel's own limit, take about half of it */
	STAT_MOST = 4096,
};

/* A hexadecimal number that ends with the given character; moves *p behind it. */
static bool take_hex(char **p, char end, uint64_t *out)
{
	char *stop;

	if (!isxdigit((unsigned char)**p))
		return false;
	errno = 0;
	*out = strtoull(*p, &stop, 16);
	if (errno || *stop != end)
		return false;
	*p = stop + 1;
	return true;
}

/* The kernel writes a newline inside a path as \012 and nothing else in this way. */
static void unescape(char *path)
{
	char *from, *to = strstr(path, "\\012");

	if (!to)
		return;
	for (from = to; *from; to++) {
		if (!strncmp(from, "\\012", 4)) {
			*to = '\n';
			from += 4;
		} else {
			*to = *from++;
		}
	}
	*to = '\0';
}

/* "55d0c0a00000-55d0c0a02000 r-xp 00002000 fe:00 1234     /usr/bin/x" */
int procfs_map_parse(char *line, struct procfs_map *out)
{
	struct procfs_map m = {0};
	uint64_t end, major, minor;
	char *p = line, *permissions, *stop;

	if (!take_hex(&p, '-', &m.start) || !take_hex(&p, ' ', &end) || end <= m.start)
		return -EBADMSG;
	permissions = p;
	if (strnlen(p, 5) < 5 || p[4] != ' ')
		return -EBADMSG;
	p += 5;
	if (!take_hex(&p, ' ', &m.offset) || !take_hex(&p, ':', &major) ||
		!take_hex(&p, ' ', &minor))
		return -EBADMSG;
	if (!isdigit((unsigned char)*p))
		return -EBADMSG;
	errno = 0;
	m.inode = strtoull(p, &stop, 10);
	if (errno || (*stop && *stop != ' ') || major > UINT32_MAX || minor > UINT32_MAX)
		return -EBADMSG;
	m.size = end - m.start;
	m.major = (uint32_t)major;
	m.minor = (uint32_t)minor;
	m.executable = permissions[2] == 'x';
	p = stop + strspn(stop, " ");
	unescape(p);
	m.path = p;
	*out = m;
	return 0;
}

int procfs_maps(pid_t pid, procfs_map_fn *fn, void *arg)
{
	struct buf text = {0};
	char path[64], *line, *next;
	int r;

	snprintf(path, sizeof path, "/proc/%d/maps", pid);
	r = io_read_file(-1, path, MAPS_MOST, &text);
	if (r == -ENOENT)
		r = -ESRCH;
	buf_cstr(&text);
	for (line = (char *)text.p; r == 0 && line && *line; line = next) {
		struct procfs_map map;
		char *end = strchrnul(line, '\n');

		next = *end ? end + 1 : end;
		*end = '\0';
		if (procfs_map_parse(line, &map) == 0 && map.executable)
			fn(arg, &map);
	}
	buf_deinit(&text);
	return r;
}

/* "1 (name (may be) anything) S PPID ...": the name ends at the last bracket. */
int procfs_stat_parse(const char *text, struct procfs_stat *out)
{
	const char *open = strchr(text, '('), *close = strrchr(text, ')');
	struct procfs_stat s = {0};
	long parent, threads;

	if (!open || !close || close < open)
		return -EBADMSG;
	/* Fields 4, 20, 22 and 28. */
	if (sscanf(close + 1,
		    " %*c %ld %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %ld "
		    "%*s %" SCNu64 " %*s %*s %*s %*s %*s %" SCNu64,
		    &parent, &threads, &s.started, &s.stack) < 3)
		return -EBADMSG;
	snprintf(s.comm, sizeof s.comm, "%.*s", (int)(close - open - 1), open + 1);
	s.parent = (pid_t)parent;
	s.threads = threads > 0 && threads < INT32_MAX ? (uint32_t)threads : 1;
	*out = s;
	return 0;
}

int procfs_stat(pid_t pid, struct procfs_stat *out)
{
	struct buf text = {0};
	struct procfs_stat s;
	char path[64];
	uint64_t asleep, tick = 1000000000ull / (uint64_t)sysconf(_SC_CLK_TCK);
	int r;

	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	r = io_read_file(-1, path, STAT_MOST, &text);
	if (r == 0)
		r = procfs_stat_parse(buf_cstr(&text), &s);
	buf_deinit(&text);
	if (r < 0)
		return r == -ENOENT ? -ESRCH : r;
	/* The kernel counts from boot, sleep included; whole ticks come out the same every time. */
	asleep = io_clock_ns(CLOCK_BOOTTIME) - io_clock_ns(CLOCK_MONOTONIC);
	asleep -= asleep % tick;
	s.started *= tick;
	s.started = s.started > asleep ? s.started - asleep : 1;
	*out = s;
	return 0;
}

pid_t procfs_leader(pid_t tid)
{
	struct buf text = {0};
	const char *line = NULL;
	char path[64];
	int leader = 0;

	snprintf(path, sizeof path, "/proc/%d/status", tid);
	if (io_read_file(-1, path, 1 << 16, &text) == 0)
		line = strstr(buf_cstr(&text), "\nTgid:");
	if (line)
		sscanf(line, "\nTgid: %d", &leader);
	buf_deinit(&text);
	return leader > 0 ? leader : tid;
}

int procfs_each(const char *directory, procfs_number_fn *fn, void *arg)
{
	DIR *d = opendir(directory);
	struct dirent *entry;

	if (!d)
		return -errno;
	while ((entry = readdir(d))) {
		char *end;
		long n = strtol(entry->d_name, &end, 10);

		if (isdigit((unsigned char)entry->d_name[0]) && !*end && n > 0 && n <= INT32_MAX)
			fn(arg, (pid_t)n);
	}
	closedir(d);
	return 0;
}
