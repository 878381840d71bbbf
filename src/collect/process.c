#include "collect/process.h"

#include "base/hmap.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/vec.h"
#include "collect/cgroup.h"
#include "collect/process_threads.h"
#include "collect/record.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
	READS_MOST = 32,    /* of /proc between two reaps: a repair, not a habit */
	FILES_FIRST = 1024, /* files up to here are never swept */
};

/* A user pc this soon after an exec that the new space does not explain may be of the old one. */
#define HAIR_NS 100000ull
/* How long a process must have run before reading its /proc can pay, and must wait to be read
 * again. */
#define SETTLED_NS 1000000000ull
#define REREAD_NS  30000000000ull

struct era {
	struct process p;
	uint64_t from;     /* 0: before us */
	uint64_t replaced; /* when the next era of this pid began */
	uint64_t read;     /* when its mappings were read from /proc, 0 never */
	struct space *space;
	struct era *older; /* of the same pid */
	int32_t threads;
	bool ended, cgroup_read;
};

struct pid_entry {
	int32_t pid, pad;
	struct era *newest;
};

/* What is over and waits to be reaped: an era, or the name of a thread. */
struct over {
	uint64_t time;
	struct era *era;
	pid_t tid;
};

struct process_table {
	struct cgroups *cgroups;
	struct file_table files;
	struct hmap pids; /* struct pid_entry */
	struct thread_names threads;
	VEC(struct over) over;
	struct era *last; /* where the last look-up ended */
	uint64_t now;     /* latest time met */
	uint64_t reaped;
	size_t eras, files_limit;
	uint32_t serial, reads;
	bool recorded; /* /proc knows nothing of it */
};

/* ---- eras ---- */

static struct era *newest(const struct process_table *t, pid_t pid)
{
	struct pid_entry key = {.pid = pid};
	const struct pid_entry *e = hmap_get(&t->pids, &key);

	return e ? e->newest : NULL;
}

static void set_comm(struct era *e, const char *name)
{
	snprintf(e->p.comm, sizeof e->p.comm, "%.*s", PROCFS_COMM - 1, name);
	e->p.filed_turn = 0;
}

static struct era *era_create(struct process_table *t, pid_t pid, const char *comm)
{
	struct era *e = xcalloc(1, sizeof *e);

	e->p.pid = pid;
	e->p.serial = ++t->serial;
	e->replaced = UINT64_MAX;
	e->threads = 1;
	set_comm(e, comm);
	t->eras++;
	return e;
}

static void era_destroy(struct process_table *t, struct era *e)
{
	space_drop(e->space);
	if (t->last == e)
		t->last = NULL;
	t->eras--;
	free(e);
}

static void end_era(struct process_table *t, struct era *e, uint64_t time)
{
	if (e->ended)
		return;
	e->ended = true;
	*vec_add(&t->over) = (struct over){.time = time, .era = e};
}

/* Begins an era on top of those that the pid had. */
static void push_era(struct process_table *t, struct era *e, uint64_t time)
{
	struct pid_entry key = {.pid = e->p.pid}, *entry = hmap_put(&t->pids, &key, NULL);

	e->from = time;
	e->older = entry->newest;
	entry->newest = e;
	if (e->older) {
		e->older->replaced = time;
		end_era(t, e->older, time);
	}
}

/* Puts an era underneath all others of its pid. */
static void push_oldest(struct process_table *t, struct era *e)
{
	struct pid_entry key = {.pid = e->p.pid}, *entry = hmap_put(&t->pids, &key, NULL);
	struct era **at = &entry->newest;

	while (*at) {
		e->replaced = (*at)->from;
		at = &(*at)->older;
	}
	*at = e;
	if (e->replaced != UINT64_MAX)
		end_era(t, e, e->replaced);
}

static void unlink_era(struct process_table *t, struct era *e)
{
	struct pid_entry key = {.pid = e->p.pid}, *entry = hmap_get(&t->pids, &key);
	struct era **at = &entry->newest;

	while (*at != e)
		at = &(*at)->older;
	*at = e->older;
	if (!entry->newest)
		hmap_delete(&t->pids, &key);
	era_destroy(t, e);
}

static const char *thread_name(const struct process_table *t, const struct era *e, pid_t tid)
{
	const char *name = tid != e->p.pid ? thread_names_get(&t->threads, e->p.pid, tid) : NULL;

	return name ? name : e->p.comm;
}

/* ---- /proc ---- */

struct reading {
	struct process_table *t;
	struct era *era;
	uint64_t since; /* of mappings */
	uint64_t time;
	pid_t pid;
};

/* Where there is no file, the place in it is the address; the vDSO is mapped as a whole. */
static void map_file(
	struct process_table *t, struct era *e, struct mapping *m, enum mapped_kind kind)
{
	if (kind == MAPPED_ANON)
		m->offset = m->start;
	else if (kind == MAPPED_VDSO)
		m->offset = 0;
	space_map(&e->space, m, t->reaped);
}

static void add_map(void *arg, const struct procfs_map *map)
{
	struct reading *r = arg;
	struct mapped_file key = {.path = (char *)map->path,
		.inode = map->inode,
		.major = map->major,
		.minor = map->minor,
		.seen = r->time};
	struct mapping m = {
		.start = map->start, .size = map->size, .offset = map->offset, .since = r->since};

	m.file = file_table_add(&r->t->files, &key, r->pid, NULL);
	map_file(r->t, r->era, &m, file_table_get(&r->t->files, m.file)->kind);
}

static void add_thread(void *arg, pid_t tid)
{
	struct reading *r = arg;
	char path[64], name[PROCFS_COMM];

	snprintf(path, sizeof path, "/proc/%d/task/%d/comm", r->pid, tid);
	if (tid != r->pid && io_read_line(-1, path, name, sizeof name) == 0 &&
		strcmp(name, r->era->p.comm) != 0)
		thread_names_set(&r->t->threads, r->pid, tid, name, r->time);
}

/* Fills an era from /proc, unless its process began only after `until`. */
static void read_process(struct process_table *t, struct era *e, uint64_t until)
{
	struct reading r = {.t = t, .era = e, .pid = e->p.pid};
	struct procfs_stat stat;
	char tasks[64];

	r.time = e->read = io_clock_ns(CLOCK_MONOTONIC);
	if (procfs_stat(e->p.pid, &stat) < 0 || stat.started > until)
		return;
	set_comm(e, stat.comm);
	e->p.parent = stat.parent;
	e->p.started = stat.started;
	e->p.cgroup = cgroups_of_process(t->cgroups, e->p.pid);
	e->cgroup_read = true;
	e->threads = (int32_t)stat.threads;
	procfs_maps(e->p.pid, add_map, &r);
	if (stat.threads > 1) {
		snprintf(tasks, sizeof tasks, "/proc/%d/task", e->p.pid);
		procfs_each(tasks, add_thread, &r);
	}
}

/* Reads the mappings of a running process again: what records missed is there now. */
static bool reread_maps(struct process_table *t, struct era *e, uint64_t time)
{
	struct reading r = {.t = t, .era = e, .pid = e->p.pid};

	if (e->p.pid <= 0 || e->ended || e->replaced != UINT64_MAX || t->reads >= READS_MOST ||
		time < e->from + SETTLED_NS || (e->read && time < e->read + REREAD_NS))
		return false;
	t->reads++;
	r.since = r.time = e->read = io_clock_ns(CLOCK_MONOTONIC);
	return procfs_maps(e->p.pid, add_map, &r) == 0;
}

/* A process that nobody announced. */
static struct era *stranger(struct process_table *t, pid_t pid, uint64_t time)
{
	struct era *e = era_create(t, pid, pid < 0 ? PROCESS_EXITING : PROCESS_NAMELESS);

	push_oldest(t, e);
	if (pid > 0 && e->replaced == UINT64_MAX && t->reads < READS_MOST) {
		t->reads++;
		read_process(t, e, time + SPACE_SLACK_NS);
	}
	return e;
}

static void scan_one(void *arg, pid_t pid)
{
	struct process_table *t = arg;
	struct era *e;

	if (newest(t, pid))
		return;
	e = era_create(t, pid, PROCESS_NAMELESS);
	push_oldest(t, e);
	read_process(t, e, UINT64_MAX);
}

/* ---- records ---- */

static struct era *era_at(struct process_table *t, pid_t pid, uint64_t time)
{
	struct era *e = t->last;

	if (e && e->p.pid == pid && e->from <= time && time < e->replaced)
		return e;
	e = newest(t, pid);
	while (e && e->from > time + SPACE_SLACK_NS)
		e = e->older;
	if (!e)
		e = stranger(t, pid, time);
	t->last = e;
	return e;
}

static void record_fork(struct process_table *t, const struct record *r)
{
	struct era *parent = era_at(t, r->task.parent_pid, r->time), *e;
	const char *name = thread_name(t, parent, r->task.parent_tid);

	if (r->pid == r->task.parent_pid) {
		parent->threads++;
		if (name != parent->p.comm)
			thread_names_set(&t->threads, r->pid, r->tid, name, r->time);
		return;
	}
	e = era_create(t, r->pid, name);
	e->p.parent = r->task.parent_pid;
	e->p.started = r->time;
	e->p.cgroup = parent->p.cgroup;
	if (!r->task.exec)
		e->space = space_share(parent->space);
	push_era(t, e, r->time);
}

static void record_exec(struct process_table *t, const struct record *r)
{
	struct era *before = newest(t, r->pid), *e = era_create(t, r->pid, r->comm.name);

	if (before) {
		e->p.parent = before->p.parent;
		e->p.started = before->p.started;
		e->p.cgroup = before->p.cgroup;
		e->cgroup_read = before->cgroup_read;
	}
	push_era(t, e, r->time);
}

static void record_comm(struct process_table *t, const struct record *r)
{
	if (r->comm.exec)
		record_exec(t, r);
	else if (r->pid == r->tid)
		set_comm(era_at(t, r->pid, r->time), r->comm.name);
	else
		thread_names_set(&t->threads, r->pid, r->tid, r->comm.name, r->time);
}

static void record_exit(struct process_table *t, const struct record *r)
{
	struct era *e = newest(t, r->pid);

	if (r->tid != r->pid)
		*vec_add(&t->over) = (struct over){.time = r->time, .tid = r->tid};
	if (e && e->from <= r->time && --e->threads <= 0)
		end_era(t, e, r->time);
}

static uint32_t record_mmap(struct process_table *t, const struct record *r)
{
	struct era *e = era_at(t, r->pid, r->time);
	struct mapped_file key = {.path = (char *)r->mmap.path,
		.build_id = r->mmap.build_id,
		.inode = r->mmap.inode,
		.generation = r->mmap.inode_generation,
		.major = r->mmap.major,
		.minor = r->mmap.minor,
		.seen = r->time};
	struct mapping m = {.start = r->mmap.start,
		.size = r->mmap.size,
		.offset = r->mmap.offset,
		.since = r->time};
	bool fresh;

	m.file = file_table_add(&t->files, &key, r->pid, &fresh);
	map_file(t, e, &m, file_table_get(&t->files, m.file)->kind);
	return fresh ? m.file : FILE_ANON;
}

uint32_t process_table_record(struct process_table *t, const struct record *r)
{
	if (r->time > t->now)
		t->now = r->time;
	switch (r->kind) {
	case RECORD_FORK:
		record_fork(t, r);
		break;
	case RECORD_COMM:
		record_comm(t, r);
		break;
	case RECORD_EXIT:
		record_exit(t, r);
		break;
	case RECORD_MMAP:
		return r->mmap.kernel ? FILE_ANON : record_mmap(t, r);
	case RECORD_CGROUP:
		cgroups_learn(t->cgroups, r->cgroup.id, r->cgroup.path);
		break;
	default:
		break;
	}
	return FILE_ANON;
}

/* ---- the table ---- */

struct process_table *process_table_create(struct cgroups *cgroups, bool recorded)
{
	struct process_table *t = xcalloc(1, sizeof *t);

	t->cgroups = cgroups;
	t->recorded = recorded;
	t->reads = recorded ? READS_MOST : 0;
	t->files_limit = FILES_FIRST;
	file_table_init(&t->files);
	hmap_init(&t->pids, sizeof(struct pid_entry), 2 * sizeof(int32_t));
	thread_names_init(&t->threads);
	push_oldest(t, era_create(t, 0, "swapper"));
	return t;
}

void process_table_destroy(struct process_table *t)
{
	if (!t)
		return;
	for (struct pid_entry *entry = NULL; (entry = hmap_next(&t->pids, entry));) {
		while (entry->newest) {
			struct era *e = entry->newest;

			entry->newest = e->older;
			era_destroy(t, e);
		}
	}
	hmap_deinit(&t->pids);
	thread_names_deinit(&t->threads);
	vec_deinit(&t->over);
	file_table_deinit(&t->files);
	free(t);
}

void process_table_scan(struct process_table *t, pid_t only_pid)
{
	if (only_pid)
		scan_one(t, procfs_leader(only_pid));
	else
		procfs_each("/proc", scan_one, t);
}

struct process *process_at(struct process_table *t, pid_t pid, uint64_t time)
{
	if (time > t->now)
		t->now = time;
	return &era_at(t, pid, time)->p;
}

const struct mapping *process_mapping(
	struct process_table *t, struct process *p, uint64_t pc, uint64_t time)
{
	struct era *e = (struct era *)p;
	const struct mapping *m = space_find(e->space, pc, time);

	if (!m && e->older && time < e->from + HAIR_NS)
		m = space_find(e->older->space, pc, time);
	if (!m && reread_maps(t, e, time))
		m = space_find(e->space, pc, time);
	return m;
}

size_t process_mappings(const struct process *p, const struct mapping **out)
{
	return space_mappings(((const struct era *)p)->space, out);
}

const struct mapped_file *mapped_file(const struct process_table *t, uint32_t file)
{
	return file_table_get(&t->files, file);
}

bool process_maps_file(const struct process_table *t, pid_t pid, uint32_t file, struct mapping *out)
{
	const struct era *e = newest(t, pid);
	const struct mapping *m;
	size_t n = e ? space_mappings(e->space, &m) : 0;

	for (size_t i = 0; i < n; i++) {
		if (m[i].file == file) {
			*out = m[i];
			return true;
		}
	}
	return false;
}

bool process_ended(const struct process_table *t, pid_t pid, uint32_t serial)
{
	const struct era *e = newest(t, pid);

	return !e || e->p.serial != serial || e->ended;
}

const char *process_thread_name(const struct process_table *t, const struct process *p, pid_t tid)
{
	return thread_name(t, (const struct era *)p, tid);
}

const char *process_cgroup(struct process_table *t, struct process *p, uint32_t cgroup_id)
{
	struct era *e = (struct era *)p;
	uint32_t n = cgroups_by_id(t->cgroups, cgroup_id, p->pid);

	if (n != CGROUP_NONE)
		return cgroups_path(t->cgroups, n);
	/* Service managers move a process between fork and exec: what was inherited is read once.
	 */
	if (p->pid > 0 && !e->cgroup_read && !e->ended && t->reads < READS_MOST &&
		t->now > p->started + SETTLED_NS) {
		t->reads++;
		e->cgroup_read = true;
		n = cgroups_of_process(t->cgroups, p->pid);
		if (n != CGROUP_NONE)
			p->cgroup = n;
	}
	return cgroups_path(t->cgroups, p->cgroup);
}

/* ---- forgetting ---- */

static void mark_files(struct process_table *t, const struct era *e)
{
	const struct mapping *m;
	size_t n = space_mappings(e->space, &m);

	for (size_t i = 0; i < n; i++)
		file_table_mark(&t->files, m[i].file);
	n = space_past(e->space, &m);
	for (size_t i = 0; i < n; i++)
		file_table_mark(&t->files, m[i].file);
}

/* Drops what a long run has gathered and nobody uses any more. */
static void tidy(struct process_table *t)
{
	bool cgroups = cgroups_full(t->cgroups),
	     files = file_table_count(&t->files) > t->files_limit;

	if (!cgroups && !files)
		return;
	for (struct pid_entry *entry = NULL; (entry = hmap_next(&t->pids, entry));) {
		for (struct era *e = entry->newest; e; e = e->older) {
			if (files)
				mark_files(t, e);
			if (cgroups) {
				e->p.cgroup = CGROUP_NONE;
				e->cgroup_read = false;
			}
		}
	}
	if (cgroups)
		cgroups_clear(t->cgroups);
	if (files) {
		file_table_sweep(&t->files);
		t->files_limit = 2 * file_table_count(&t->files);
		if (t->files_limit < FILES_FIRST)
			t->files_limit = FILES_FIRST;
	}
}

void process_table_reap(struct process_table *t, uint64_t time)
{
	size_t n = 0;

	vec_each (o, &t->over) {
		if (o->time >= time)
			break;
		if (o->era)
			unlink_era(t, o->era);
		else
			thread_names_forget(&t->threads, o->tid, o->time);
		n++;
	}
	if (n) {
		t->over.n -= n;
		memmove(t->over.p, t->over.p + n, t->over.n * sizeof *t->over.p);
	}
	t->reaped = time;
	t->reads = t->recorded ? READS_MOST : 0;
	cgroups_turn(t->cgroups);
	tidy(t);
}

void process_table_sweep(struct process_table *t, uint64_t now)
{
	for (struct pid_entry *entry = NULL; (entry = hmap_next(&t->pids, entry));) {
		struct era *e = entry->newest;

		if (!t->recorded && entry->pid > 0 && !e->ended && kill(entry->pid, 0) < 0 &&
			errno == ESRCH)
			end_era(t, e, now);
	}
}

size_t process_table_count(const struct process_table *t)
{
	return t->eras;
}

size_t process_table_memory(const struct process_table *t)
{
	size_t bytes = sizeof *t + file_table_memory(&t->files) +
		       t->pids.slots * (sizeof(struct pid_entry) + sizeof(uint32_t)) +
		       thread_names_memory(&t->threads) + t->over.space * sizeof *t->over.p +
		       t->eras * sizeof(struct era);

	for (struct pid_entry *entry = NULL; (entry = hmap_next(&t->pids, entry));) {
		for (const struct era *e = entry->newest; e; e = e->older)
			bytes += space_memory(e->space);
	}
	return bytes;
}
