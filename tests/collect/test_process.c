#include "base/io.h"
#include "base/mem.h"
#include "collect/cgroup.h"
#include "collect/process.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "collect/records.h"

static struct cgroups *cgroups;
static struct process_table *t;

static int set_up(void **state)
{
	(void)state;
	cgroups = cgroups_create("");
	t = process_table_create(cgroups, false);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	process_table_destroy(t);
	cgroups_destroy(cgroups);
	return 0;
}

static void tell(struct record r)
{
	process_table_record(t, &r);
}

static void map(uint64_t us, pid_t pid, uint64_t start, const char *path)
{
	tell(record_map(us, pid, start, TEXT_SIZE, 0x1000, path));
}

/* The path that a sample falls into, "" for none. */
static const char *path_at(uint64_t us, pid_t pid, uint64_t pc)
{
	struct process *p = process_at(t, pid, us * US);
	const struct mapping *m = process_mapping(t, p, pc, us * US);

	return m ? mapped_file(t, m->file)->path : "";
}

static const char *name_at(uint64_t us, pid_t pid)
{
	return process_at(t, pid, us * US)->comm;
}

/* A process that runs "sh" with its text at 0x10000. */
static void shell(uint64_t us, pid_t pid)
{
	tell(record_exec(us, pid, "sh"));
	map(us + 1, pid, 0x10000, "/bin/sh");
}

static void test_fork_exec_exit(void **state)
{
	pid_t child = PID(2);

	(void)state;
	shell(10, PID(1));
	tell(record_fork(100, PID(1), child));
	tell(record_exec(200, child, "gzip"));
	map(201, child, 0x10000, "/bin/gzip");
	tell(record_exit(300, child, child));

	assert_string_equal(name_at(150, child), "sh");
	assert_string_equal(path_at(150, child, 0x10010), "/bin/sh");
	assert_string_equal(name_at(250, child), "gzip");
	assert_string_equal(path_at(250, child, 0x10010), "/bin/gzip");
	assert_int_equal(process_at(t, child, 250 * US)->parent, PID(1));
	assert_int_equal(process_at(t, child, 250 * US)->started, 100 * US);
	assert_int_not_equal(
		process_at(t, child, 150 * US)->serial, process_at(t, child, 250 * US)->serial);
	/* The tail of an exit still belongs to the process. */
	assert_string_equal(name_at(301, child), "gzip");
	assert_string_equal(name_at(400, PID(1)), "sh");
}

static void test_offset_in_file(void **state)
{
	const struct mapping *m;

	(void)state;
	shell(10, PID(1));
	m = process_mapping(t, process_at(t, PID(1), 20 * US), 0x10010, 20 * US);
	assert_int_equal(0x10010 - m->start + m->offset, 0x1010);
	assert_string_equal(path_at(20, PID(1), 0xffff), "");
	assert_string_equal(path_at(20, PID(1), 0x10000 + TEXT_SIZE - 1), "/bin/sh");
	assert_string_equal(path_at(20, PID(1), 0x10000 + TEXT_SIZE), "");
}

static void test_pid_reused_in_one_drain(void **state)
{
	pid_t pid = PID(2);

	(void)state;
	shell(10, PID(1));
	for (int i = 0; i < 3; i++) {
		char name[16], path[32];

		snprintf(name, sizeof name, "tool%d", i);
		snprintf(path, sizeof path, "/bin/tool%d", i);
		tell(record_fork(100 + 100 * i, PID(1), pid));
		tell(record_exec(120 + 100 * i, pid, name));
		map(130 + 100 * i, pid, 0x40000, path);
		tell(record_exit(190 + 100 * i, pid, pid));
	}
	assert_string_equal(name_at(150, pid), "tool0");
	assert_string_equal(path_at(150, pid, 0x40000), "/bin/tool0");
	assert_string_equal(name_at(210, pid), "sh");
	assert_string_equal(name_at(250, pid), "tool1");
	assert_string_equal(path_at(250, pid, 0x40000), "/bin/tool1");
	assert_string_equal(name_at(195, pid), "tool0");
	assert_string_equal(name_at(350, pid), "tool2");
	assert_string_equal(path_at(350, pid, 0x40000), "/bin/tool2");
}

static void test_dlopen_after_fork(void **state)
{
	(void)state;
	shell(10, PID(1));
	tell(record_fork(100, PID(1), PID(2)));
	map(200, PID(1), 0x50000, "/lib/parent.so");
	map(210, PID(2), 0x50000, "/lib/child.so");
	tell(record_fork(300, PID(1), PID(3)));

	assert_string_equal(path_at(250, PID(1), 0x50000), "/lib/parent.so");
	assert_string_equal(path_at(250, PID(2), 0x50000), "/lib/child.so");
	assert_string_equal(path_at(350, PID(3), 0x50000), "/lib/parent.so");
	assert_string_equal(path_at(350, PID(3), 0x10000), "/bin/sh");
	assert_string_equal(path_at(350, PID(2), 0x10000), "/bin/sh");
}

static void test_exit_of_parent_leaves_shared_space(void **state)
{
	(void)state;
	shell(10, PID(1));
	tell(record_fork(100, PID(1), PID(2)));
	tell(record_exit(200, PID(1), PID(1)));
	process_table_reap(t, 1000 * US);
	assert_string_equal(path_at(2000, PID(2), 0x10000), "/bin/sh");
}

static void test_mapping_replaced(void **state)
{
	(void)state;
	shell(10, PID(1));
	map(100, PID(1), 0x50000, "/lib/old.so");
	/* The new one covers the old one's middle. */
	tell(record_map(200, PID(1), 0x54000, 0x4000, 0, "/lib/new.so"));

	assert_string_equal(path_at(150, PID(1), 0x55000), "/lib/old.so");
	assert_string_equal(path_at(250, PID(1), 0x55000), "/lib/new.so");
	assert_string_equal(path_at(250, PID(1), 0x50000), "/lib/old.so");
	assert_string_equal(path_at(250, PID(1), 0x58000), "/lib/old.so");
	/* What lies right of the hole keeps its place in the file. */
	const struct mapping *m =
		process_mapping(t, process_at(t, PID(1), 250 * US), 0x58000, 250 * US);
	assert_int_equal(0x58000 - m->start + m->offset, 0x1000 + 0x8000);
	/* Code that runs a hair before its mapping was recorded is still its own. */
	assert_string_equal(path_at(199, PID(1), 0x55000), "/lib/new.so");
}

static void test_mapping_replaced_and_back(void **state)
{
	(void)state;
	shell(10, PID(1));
	map(100, PID(1), 0x50000, "/lib/a.so");
	map(200, PID(1), 0x50000, "/lib/b.so");
	map(300, PID(1), 0x50000, "/lib/a.so");
	assert_string_equal(path_at(150, PID(1), 0x50000), "/lib/a.so");
	assert_string_equal(path_at(250, PID(1), 0x50000), "/lib/b.so");
	assert_string_equal(path_at(350, PID(1), 0x50000), "/lib/a.so");
	/* What was replaced long ago is forgotten with the next change. */
	process_table_reap(t, 1000 * US);
	map(2000, PID(1), 0x50000, "/lib/c.so");
	assert_string_equal(path_at(1500, PID(1), 0x50000), "/lib/a.so");
	assert_string_not_equal(path_at(250, PID(1), 0x50000), "/lib/b.so");
}

static void test_jit_mappings_grow_together(void **state)
{
	const struct mapping *m;
	size_t before;

	(void)state;
	shell(10, PID(1));
	for (uint64_t i = 0; i < 1000; i++)
		tell(record_map(100 + i, PID(1), 0x700000 + i % 200 * 0x1000, 0x1000, 0, "//anon"));
	m = process_mapping(t, process_at(t, PID(1), 2000 * US), 0x7c7fff, 2000 * US);
	assert_non_null(m);
	assert_int_equal(m->file, FILE_ANON);
	assert_int_equal(m->start, 0x700000);
	assert_int_equal(m->size, 200 * 0x1000);
	/* Without a file the place is the address. */
	assert_int_equal(0x7c7fff - m->start + m->offset, 0x7c7fff);
	before = process_table_memory(t);
	for (uint64_t i = 0; i < 1000; i++)
		tell(record_map(
			3000 + i, PID(1), 0x700000 + i % 200 * 0x1000, 0x1000, 0, "[heap]"));
	assert_int_equal(process_table_memory(t), before);
}

static void test_kinds_of_memory(void **state)
{
	static const char *const memory[] = {"//anon", "[heap]", "[stack]", "[anon:js]",
		"/memfd:jit (deleted)", "/dev/zero (deleted)", "/SYSV00000000 (deleted)", "",
		"anon_inode:[perf_event]"};
	struct record r;

	(void)state;
	shell(10, PID(1));
	for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) {
		uint64_t start = 0x1000000 + i * 0x100000;

		tell(record_map(20, PID(1), start, TEXT_SIZE, 0, memory[i]));
		assert_int_equal(
			process_mapping(t, process_at(t, PID(1), 30 * US), start, 30 * US)->file,
			FILE_ANON);
	}
	tell(record_map(20, PID(1), 0x7ff000, 0x2000, 0x7ff000, "[vdso]"));
	assert_string_equal(path_at(30, PID(1), 0x7ff010), "[vdso]");
	assert_int_equal(
		process_mapping(t, process_at(t, PID(1), 30 * US), 0x7ff010, 30 * US)->offset, 0);
	/* A memfd with a build-id is an executable that was never on disk. */
	r = record_map(20, PID(1), 0x900000, TEXT_SIZE, 0, "/memfd:runc (deleted)");
	r.mmap.build_id = (struct image_id){.size = 20, .bytes = {1, 2, 3}};
	tell(r);
	assert_string_equal(path_at(30, PID(1), 0x900000), "/memfd:runc (deleted)");
}

static void test_threads(void **state)
{
	pid_t pid = PID(1);
	struct process *p;

	(void)state;
	shell(10, pid);
	tell(record_thread(100, pid, pid, PID(11)));
	tell(record_rename(110, pid, PID(11), "worker"));
	tell(record_thread(120, pid, PID(11), PID(12)));
	tell(record_thread(130, pid, pid, PID(13)));
	p = process_at(t, pid, 200 * US);
	assert_string_equal(process_thread_name(t, p, PID(11)), "worker");
	assert_string_equal(process_thread_name(t, p, PID(12)), "worker");
	assert_string_equal(process_thread_name(t, p, PID(13)), "sh");
	assert_string_equal(process_thread_name(t, p, pid), "sh");

	/* The process lives on in its threads when the leader has gone. */
	tell(record_exit(300, pid, pid));
	process_table_reap(t, 1000 * US);
	assert_string_equal(path_at(1500, pid, 0x10000), "/bin/sh");
	tell(record_exit(2000, pid, PID(11)));
	tell(record_exit(2001, pid, PID(12)));
	assert_false(process_ended(t, pid, process_at(t, pid, 2000 * US)->serial));
	tell(record_exit(2002, pid, PID(13)));
	assert_true(process_ended(t, pid, process_at(t, pid, 2003 * US)->serial));
	process_table_reap(t, 3000 * US);
	/* A number that is given again has not the old name. */
	shell(3500, pid);
	tell(record_thread(3510, pid, pid, PID(11)));
	p = process_at(t, pid, 3600 * US);
	assert_string_equal(process_thread_name(t, p, PID(11)), "sh");
	tell(record_exit(3700, pid, PID(11)));
	tell(record_exit(3700, pid, pid));
	process_table_reap(t, 3800 * US);
	assert_string_equal(name_at(4000, pid), PROCESS_NAMELESS);
}

static void test_rename(void **state)
{
	struct process *p;

	(void)state;
	shell(10, PID(1));
	p = process_at(t, PID(1), 20 * US);
	p->filed_turn = 7;
	tell(record_rename(30, PID(1), PID(1), "a name that is far too long"));
	assert_string_equal(p->comm, "a name that is ");
	assert_int_equal(p->filed_turn, 0);
}

static void test_reap_bounds_history(void **state)
{
	size_t eras, memory = 0;

	(void)state;
	shell(10, PID(0));
	eras = process_table_count(t);
	for (int round = 0; round < 20; round++) {
		for (int i = 1; i <= 500; i++) {
			uint64_t us = 1000 + round * 100000 + i * 100;

			tell(record_fork(us, PID(0), PID(i)));
			tell(record_thread(us + 1, PID(i), PID(i), PID(1000 + i)));
			tell(record_rename(us + 2, PID(i), PID(1000 + i), "t"));
			tell(record_exit(us + 3, PID(i), PID(1000 + i)));
			tell(record_exec(us + 4, PID(i), "true"));
			map(us + 5, PID(i), 0x10000, "/bin/true");
			map(us + 6, PID(i), 0x50000, "/lib/libc.so");
			tell(record_exit(us + 7, PID(i), PID(i)));
		}
		process_table_reap(t, 1000 + (round + 1) * 100000 * US);
		if (round == 1)
			memory = process_table_memory(t);
	}
	process_table_reap(t, UINT64_MAX);
	assert_int_equal(process_table_count(t), eras);
	assert_true(process_table_memory(t) <= memory);
}

static void test_files_are_forgotten(void **state)
{
	char path[64];
	size_t memory = 0;

	(void)state;
	shell(10, PID(0));
	for (int i = 1; i <= 40000; i++) {
		uint64_t us = 1000 + i * 10;

		tell(record_fork(us, PID(0), PID(1)));
		tell(record_exec(us + 1, PID(1), "conftest"));
		snprintf(path, sizeof path, "/tmp/build/conftest%05d", i);
		map(us + 2, PID(1), 0x10000, path);
		tell(record_exit(us + 3, PID(1), PID(1)));
		if (i % 1000 == 0)
			process_table_reap(t, us * US);
		if (i == 8000)
			memory = process_table_memory(t);
	}
	assert_true(process_table_memory(t) <= memory);
	assert_string_equal(path_at(500000, PID(0), 0x10000), "/bin/sh");
}

static void test_fresh_files_are_announced(void **state)
{
	struct record r = record_map(20, PID(1), 0x50000, TEXT_SIZE, 0, "/lib/x.so");
	uint32_t first;

	(void)state;
	shell(10, PID(1));
	first = process_table_record(t, &r);
	assert_int_not_equal(first, FILE_ANON);
	assert_int_equal(process_table_record(t, &r), FILE_ANON);
	/* The same name with another identity or inode is another file. */
	r.mmap.build_id = (struct image_id){.size = 20, .bytes = {1}};
	assert_int_not_equal(process_table_record(t, &r), FILE_ANON);
	r.mmap.build_id = (struct image_id){0};
	r.mmap.inode = 7;
	assert_int_not_equal(process_table_record(t, &r), FILE_ANON);
	r.mmap.inode_generation = 8;
	assert_int_not_equal(process_table_record(t, &r), FILE_ANON);
	assert_int_equal(mapped_file(t, first)->openers[0], PID(1));
}

static void test_latest_openers(void **state)
{
	struct record r = record_map(20, PID(1), 0x50000, TEXT_SIZE, 0, "/lib/x.so");
	uint32_t file;

	(void)state;
	file = process_table_record(t, &r);
	for (int i = 2; i <= 6; i++) {
		r.pid = PID(i);
		process_table_record(t, &r);
	}
	r.pid = PID(4);
	process_table_record(t, &r);
	assert_int_equal(mapped_file(t, file)->openers[0], PID(4));
	assert_int_equal(mapped_file(t, file)->openers[1], PID(6));
	assert_int_equal(mapped_file(t, file)->openers[2], PID(5));
	assert_int_equal(mapped_file(t, file)->openers[3], PID(3));
}

static void test_nobody_saw_it(void **state)
{
	struct process *p;

	(void)state;
	p = process_at(t, PID(9), 50 * US);
	assert_string_equal(p->comm, PROCESS_NAMELESS);
	assert_null(process_mapping(t, p, 0x1000, 50 * US));
	assert_string_equal(process_at(t, -1, 50 * US)->comm, PROCESS_EXITING);
	assert_string_equal(process_at(t, 0, 50 * US)->comm, "swapper");
	/* Before the first record of a pid somebody else had it. */
	tell(record_fork(1000, PID(1), PID(2)));
	tell(record_exec(1001, PID(2), "new"));
	assert_string_equal(name_at(500, PID(2)), PROCESS_NAMELESS);
	assert_string_equal(name_at(1002, PID(2)), "new");
}

/* ---- against the real /proc ---- */

static void test_scan_of_itself(void **state)
{
	uint64_t now = io_clock_ns(CLOCK_MONOTONIC);
	const struct mapping *m;
	struct process *p;
	char exe[4096] = "", comm[16];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);

	(void)state;
	assert_true(n > 0);
	assert_int_equal(io_read_line(-1, "/proc/self/comm", comm, sizeof comm), 0);
	process_table_scan(t, getpid());
	p = process_at(t, getpid(), now);
	assert_string_equal(p->comm, comm);
	assert_int_equal(p->parent, getppid());
	assert_true(p->started > 0 && p->started <= now);
	m = process_mapping(t, p, (uint64_t)(uintptr_t)&test_scan_of_itself, now);
	assert_non_null(m);
	assert_string_equal(mapped_file(t, m->file)->path, exe);
	assert_true(mapped_file(t, m->file)->inode != 0);
}

/* Records are of later than the scan and win. */
static void test_exec_after_scan(void **state)
{
	uint64_t now = io_clock_ns(CLOCK_MONOTONIC) / US;

	(void)state;
	process_table_scan(t, getpid());
	tell(record_exec(now + 10, getpid(), "other"));
	map(now + 11, getpid(), 0x10000, "/bin/other");
	assert_string_equal(name_at(now + 20, getpid()), "other");
	assert_string_equal(path_at(now + 20, getpid(), 0x10000), "/bin/other");
	assert_string_not_equal(name_at(now, getpid()), "other");
}

/* What records missed is read from /proc when a sample shows it. */
static void test_lost_records_are_made_good(void **state)
{
	uint64_t now = io_clock_ns(CLOCK_MONOTONIC) / US;
	uint64_t pc = (uint64_t)(uintptr_t)&test_lost_records_are_made_good;

	(void)state;
	assert_string_not_equal(name_at(now, getpid()), PROCESS_NAMELESS);
	assert_string_not_equal(path_at(now, getpid(), pc), "");
	/* A mapping that no record told of: found once the process has run for a while. */
	tell(record_exec(1, getpid(), "x"));
	assert_string_equal(path_at(1000, getpid(), pc), "");
	assert_string_not_equal(path_at(now, getpid(), pc), "");
}

static void test_sweep_ends_the_dead(void **state)
{
	pid_t pid = fork();
	uint32_t serial;

	(void)state;
	if (!pid)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	tell(record_fork(10, PID(1), pid));
	process_table_scan(t, getpid());
	serial = process_at(t, pid, 20 * US)->serial;
	process_table_sweep(t, 100 * US);
	assert_true(process_ended(t, pid, serial));
	assert_false(process_ended(t, getpid(), process_at(t, getpid(), 100 * US)->serial));
}

static void test_scan_of_everything(void **state)
{
	(void)state;
	process_table_scan(t, 0);
	assert_true(process_table_count(t) > 2);
	assert_string_not_equal(
		process_at(t, getpid(), io_clock_ns(CLOCK_MONOTONIC))->comm, PROCESS_NAMELESS);
}

/* ---- cgroups ---- */

static void test_cgroup_choice(void **state)
{
	char unified[] = "0::/user.slice/a b\n";
	char mixed[] = "4:memory:/docker/abc\n1:name=systemd:/x\n0::/\n";
	char both[] = "4:memory:/docker/abc\n0::/system.slice\n";
	char root[] = "0::/\n";
	char none[] = "rubbish\n:\n";

	(void)state;
	assert_string_equal(cgroups_choose(unified), "/user.slice/a b");
	assert_string_equal(cgroups_choose(mixed), "/docker/abc");
	assert_string_equal(cgroups_choose(both), "/system.slice");
	assert_string_equal(cgroups_choose(root), "/");
	assert_string_equal(cgroups_choose(none), "");
}

static void test_cgroup_by_id(void **state)
{
	char folder[] = "/tmp/culprit-cgroup-XXXXXX", path[64];
	struct cgroups *c;
	struct stat st;
	uint32_t n;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/a", folder);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof path, "%s/a/b", folder);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(stat(path, &st), 0);
	c = cgroups_create(folder);
	n = cgroups_by_id(c, (uint32_t)st.st_ino, 0);
	assert_string_equal(cgroups_path(c, n), "/a/b");
	assert_int_equal(cgroups_by_id(c, 0, 0), CGROUP_NONE);
	/* One that is made later is found in the next turn, one whose record came at once. */
	snprintf(path, sizeof path, "%s/late", folder);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(stat(path, &st), 0);
	cgroups_turn(c);
	n = cgroups_by_id(c, (uint32_t)st.st_ino, 0);
	assert_string_equal(cgroups_path(c, n), "/late");
	cgroups_learn(c, 0x123456789, "/told");
	assert_string_equal(cgroups_path(c, cgroups_by_id(c, 0x23456789, 0)), "/told");
	cgroups_destroy(c);
	rmdir(path);
	snprintf(path, sizeof path, "%s/a/b", folder);
	rmdir(path);
	snprintf(path, sizeof path, "%s/a", folder);
	rmdir(path);
	rmdir(folder);
}

static void test_cgroup_of_process(void **state)
{
	struct process *p;

	(void)state;
	process_table_scan(t, getpid());
	p = process_at(t, getpid(), io_clock_ns(CLOCK_MONOTONIC));
	assert_string_not_equal(process_cgroup(t, p, 0), "");
	tell(record_fork(io_clock_ns(CLOCK_MONOTONIC) / US, getpid(), PID(1)));
	assert_string_equal(
		process_cgroup(t, process_at(t, PID(1), io_clock_ns(CLOCK_MONOTONIC)), 0),
		process_cgroup(t, p, 0));
}

static void test_cgroup_record(void **state)
{
	struct cgroups *c = cgroups_create("/nowhere");
	struct process_table *table = process_table_create(c, false);
	struct record r = {
		.kind = RECORD_CGROUP, .time = 5 * US, .cgroup = {.id = 0x77, .path = "/told"}};

	(void)state;
	process_table_record(table, &r);
	assert_string_equal(
		process_cgroup(table, process_at(table, PID(1), 10 * US), 0x77), "/told");
	process_table_destroy(table);
	cgroups_destroy(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_fork_exec_exit, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_offset_in_file, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_pid_reused_in_one_drain, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_dlopen_after_fork, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_exit_of_parent_leaves_shared_space, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_mapping_replaced, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_mapping_replaced_and_back, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_jit_mappings_grow_together, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_kinds_of_memory, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_threads, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_rename, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_reap_bounds_history, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_files_are_forgotten, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_fresh_files_are_announced, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_latest_openers, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_nobody_saw_it, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_scan_of_itself, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_exec_after_scan, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_lost_records_are_made_good, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_sweep_ends_the_dead, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_scan_of_everything, set_up, tear_down),
		cmocka_unit_test(test_cgroup_choice),
		cmocka_unit_test(test_cgroup_by_id),
		cmocka_unit_test_setup_teardown(test_cgroup_of_process, set_up, tear_down),
		cmocka_unit_test(test_cgroup_record),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
