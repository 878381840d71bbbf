#include "collect/sampler_places.h"

#include "base/err.h"
#include "base/io.h"
#include "base/mem.h"
#include "collect/sampler.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <mntent.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CPU_MAX 65536

int sampler_parse_cpus(const char *text, struct sampler_places *out)
{
	while (*text) {
		char *end;
		long first = strtol(text, &end, 10), last = first;

		if (end == text)
			return -EINVAL;
		if (*end == '-') {
			text = end + 1;
			last = strtol(text, &end, 10);
			if (end == text)
				return -EINVAL;
		}
		if (first < 0 || last < first || last >= CPU_MAX || (*end && *end != ','))
			return -EINVAL;
		for (long i = first; i <= last; i++)
			*vec_add(&out->cpus) = (int)i;
		text = *end ? end + 1 : end;
	}
	return out->cpus.n ? 0 : -EINVAL;
}

/* Those on line, or the caller's choice of them. */
static int find_cpus(const struct sampler_target *t, struct sampler_places *out, struct err *e)
{
	static const char path[] = "/sys/devices/system/cpu/online";
	struct sampler_places online = {.cgroup = -1};
	char line[4096];
	int r = io_read_line(AT_FDCWD, path, line, sizeof line);

	if (r == 0)
		r = sampler_parse_cpus(line, t->ncpus ? &online : out);
	if (r < 0)
		r = err_errno(e, r, "%s", path);
	for (size_t i = 0; i < t->ncpus && r == 0; i++) {
		bool there = false;

		vec_each (cpu, &online.cpus)
			there |= *cpu == t->cpus[i];
		if (!there)
			r = err_set(e, -EINVAL, "CPU %d is not on line (%s)", t->cpus[i], line);
		*vec_add(&out->cpus) = t->cpus[i];
	}
	sampler_places_deinit(&online);
	return r;
}

static void add_task(struct sampler_places *out, pid_t id, pid_t asked, bool inherit, bool threads)
{
	*vec_add(&out->tasks) = (struct sampler_task){
		.id = id, .asked = asked, .inherit = inherit, .threads = threads};
}

/* All threads of a process; those to come are inherited. */
static int find_threads(pid_t pid, bool inherit, struct sampler_places *out, struct err *e)
{
	_cleanup_free_ char *path = xasprintf("/proc/%d/task", pid);
	DIR *dir = opendir(path);
	size_t before = out->tasks.n;
	struct dirent *d;

	if (!dir && errno != ENOENT)
		return err_errno(e, -errno, "%s", path);
	while (dir && (d = readdir(dir))) {
		pid_t tid = atoi(d->d_name);

		if (tid > 0)
			add_task(out, tid, pid, true, !inherit);
	}
	if (dir)
		closedir(dir);
	if (out->tasks.n == before)
		return err_set(e, -ESRCH, "process %d: there is no such process", pid);
	return 0;
}

static int find_tasks(const struct sampler_target *t, struct sampler_places *out, struct err *e)
{
	for (size_t i = 0; i < t->npids; i++) {
		int r = find_threads(t->pids[i], t->inherit, out, e);

		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < t->ntids; i++) {
		_cleanup_free_ char *path = xasprintf("/proc/%d", t->tids[i]);

		if (access(path, F_OK) < 0)
			return err_set(e, -ESRCH, "thread %d: there is no such thread", t->tids[i]);
		add_task(out, t->tids[i], t->tids[i], t->inherit, false);
	}
	return 0;
}

/* The hierarchy that perf events follow: a v1 one with that controller, else v2. */
static char *cgroup_mount(void)
{
	FILE *f = setmntent("/proc/self/mounts", "r");
	char *v1 = NULL, *v2 = NULL;
	struct mntent *m;

	while (f && (m = getmntent(f))) {
		if (!v1 && !strcmp(m->mnt_type, "cgroup") && hasmntopt(m, "perf_event"))
			v1 = xstrdup(m->mnt_dir);
		if (!v2 && !strcmp(m->mnt_type, "cgroup2"))
			v2 = xstrdup(m->mnt_dir);
	}
	if (f)
		endmntent(f);
	if (!v1)
		return v2;
	free(v2);
	return v1;
}

static bool is_below(const char *path, const char *mount)
{
	size_t n = strlen(mount);

	return !strncmp(path, mount, n) && (path[n] == '/' || !path[n]);
}

static int find_cgroup(const char *name, struct sampler_places *out, struct err *e)
{
	_cleanup_free_ char *mount = cgroup_mount();
	_cleanup_free_ char *path = NULL;

	if (!mount)
		return err_set(e, -EOPNOTSUPP,
			"cgroup %s: no cgroup file system is mounted (mount -t cgroup2 none "
			"/sys/fs/cgroup)",
			name);
	path = is_below(name, mount) ? xstrdup(name) : xasprintf("%s/%s", mount, name);
	out->cgroup = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (out->cgroup < 0)
		return err_errno(e, -errno, "cgroup %s", path);
	add_task(out, -1, -1, false, false);
	return 0;
}

int sampler_places_find(const struct sampler_target *t, struct sampler_places *out, struct err *e)
{
	struct sampler_places p = {.cgroup = -1};
	int r = find_cpus(t, &p, e);

	if (r == 0 && t->cgroup)
		r = find_cgroup(t->cgroup, &p, e);
	else if (r == 0 && t->all)
		add_task(&p, -1, -1, false, false);
	else if (r == 0)
		r = find_tasks(t, &p, e);
	if (r == 0 && !p.tasks.n)
		r = err_set(e, -EINVAL, "nothing to sample was named");
	if (r < 0) {
		sampler_places_deinit(&p);
		return r;
	}
	*out = p;
	return 0;
}

void sampler_places_deinit(struct sampler_places *p)
{
	vec_deinit(&p->cpus);
	vec_deinit(&p->tasks);
	if (p->cgroup >= 0)
		close(p->cgroup);
	p->cgroup = -1;
}
