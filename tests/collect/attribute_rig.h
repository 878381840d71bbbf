/*
 * Attribution between what a test tells it and a store of its own. The program it is told of is
 * this one, at another address.
 */
#ifndef CULPRIT_TESTS_COLLECT_ATTRIBUTE_RIG_H
#define CULPRIT_TESTS_COLLECT_ATTRIBUTE_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/mem.h"
#include "collect/attribute.h"
#include "collect/records.h"
#include "collect/sampler.h"
#include "store/store.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/culprit-attribute-XXXXXX";
static char database[64], self_path[4096];
static struct image_id self_id;
static uint64_t self_start, self_offset; /* of this program's text */
static struct attribution *a;
static struct store *store;
static int64_t epoch, events[2];

/* The text of this program as it is mapped, from /proc/self/maps. */
static inline int find_self(void)
{
	struct buf text = {0};
	uint64_t here = (uint64_t)(uintptr_t)&find_self;
	int r = io_read_file(-1, "/proc/self/maps", 1 << 24, &text);
	char *save, *line = r < 0 ? NULL : strtok_r((char *)buf_cstr(&text), "\n", &save);

	for (; line; line = strtok_r(NULL, "\n", &save)) {
		unsigned long long start, end, offset;

		if (sscanf(line, "%llx-%llx r-xp %llx", &start, &end, &offset) == 3 &&
			here >= start && here < end) {
			self_start = start;
			self_offset = offset;
		}
	}
	buf_deinit(&text);
	return self_start ? 0 : -1;
}

static inline int set_up_all(void **state)
{
	_cleanup_close_ int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	(void)state;
	if (!mkdtemp(folder) || fd < 0 || image_identify(fd, &self_id, NULL) < 0 ||
		readlink("/proc/self/exe", self_path, sizeof self_path - 1) < 0)
		return -1;
	snprintf(database, sizeof database, "%s/p.db", folder);
	return find_self();
}

static inline int tear_down_all(void **state)
{
	(void)state;
	return rmdir(folder);
}

static inline void open_store(void)
{
	struct store_host h = {
		.name = "h", .machine_id = "m", .cpu = "c", .kernel = "k", .cpus = 2};
	struct store_event ev = {.name = "cpu-clock", .unit = "ns", .period = 1};
	struct store_event other = {.name = "page-faults", .unit = "events", .period = 1};
	struct err e = {0};
	int64_t host;

	if (store_open(database, STORE_WRITE, &store, &e) || store_begin(store, &e) ||
		store_host(store, &h, &host, &e) ||
		store_epoch_start(store, host, 1000, "", &epoch, &e))
		fail_msg("%s", e.text);
	ev.epoch = other.epoch = epoch;
	if (store_event(store, &ev, &e) || store_event(store, &other, &e) ||
		store_commit(store, &e))
		fail_msg("%s", e.text);
	events[0] = ev.id;
	events[1] = other.id;
}

static inline void create(bool per_process, bool kernel)
{
	const struct attribution_options o = {
		.nevents = 2, .per_process = per_process, .kernel = kernel};

	attribution_destroy(a);
	assert_int_equal(attribution_create(&o, &a, NULL), 0);
}

static inline int set_up(void **state)
{
	(void)state;
	create(false, false);
	open_store();
	return 0;
}

static inline int tear_down(void **state)
{
	static const char *const parts[] = {"", "-wal", "-shm"};

	(void)state;
	attribution_destroy(a);
	a = NULL;
	store_close(store);
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		_cleanup_free_ char *path = xasprintf("%s%s", database, parts[i]);

		unlink(path);
	}
	return 0;
}

/* ---- telling ---- */

static inline void tell(struct record r)
{
	attribution_record(a, &r);
}

/* A process with this program's own text at 0x400000. */
static inline void tell_program(uint64_t us, pid_t pid, const char *comm)
{
	struct record r = record_map(us + 1, pid, 0x400000, 0x1000000, self_offset, self_path);

	r.mmap.build_id = self_id;
	tell(record_exec(us, pid, comm));
	tell(r);
}

/* Where that process has the code that this one has at `p`. */
static inline uint64_t pc_of(const void *p)
{
	return (uint64_t)(uintptr_t)p - self_start + 0x400000;
}

static inline uint64_t offset_of(const void *p)
{
	return (uint64_t)(uintptr_t)p - self_start + self_offset;
}

static inline void tell_sample(uint64_t us, pid_t pid, uint64_t pc, uint32_t count)
{
	attribution_sample(a,
		&(struct sample){.pc = pc, .time = us * US, .pid = pid, .tid = pid, .count = count},
		NULL);
}

static inline int try_flush(int64_t t0, struct err *e)
{
	assert_int_equal(store_begin(store, e), 0);
	return attribution_flush(a, store, epoch, events, t0, t0 + 1000, e);
}

static inline void flush(int64_t t0)
{
	struct err e = {0};

	if (try_flush(t0, &e) || store_commit(store, &e))
		fail_msg("%s", e.text);
	attribution_flushed(a);
}

#endif
