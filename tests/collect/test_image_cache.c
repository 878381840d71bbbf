#include "base/buf.h"
#include "base/io.h"
#include "base/mem.h"
#include "collect/cgroup.h"
#include "collect/image_cache.h"
#include "collect/image_cache_file.h"
#include "collect/process.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "collect/records.h"

static char folder[] = "/tmp/culprit-images-XXXXXX";
static struct buf self; /* the bytes of this program, the file that all tests map */
static struct image_id self_id;
static struct cgroups *cgroups;
static struct process_table *t;
static struct image_cache *c;

static int set_up_all(void **state)
{
	_cleanup_close_ int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	(void)state;
	if (!mkdtemp(folder) || fd < 0 || image_identify(fd, &self_id, NULL) < 0)
		return -1;
	return io_read_file(-1, "/proc/self/exe", 1 << 28, &self);
}

static int tear_down_all(void **state)
{
	(void)state;
	buf_deinit(&self);
	return rmdir(folder);
}

static int set_up(void **state)
{
	(void)state;
	cgroups = cgroups_create("");
	t = process_table_create(cgroups, false);
	c = image_cache_create("", false);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	image_cache_destroy(c);
	process_table_destroy(t);
	cgroups_destroy(cgroups);
	return 0;
}

static char *in_folder(const char *name)
{
	return xasprintf("%s/%s", folder, name);
}

static void write_bytes(const char *path, const void *p, size_t n)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, p, n), (ssize_t)n);
	close(fd);
}

/* This program with another build-id, or (kind 0) with its build-id made unreadable. */
static void write_variant(const char *path, uint8_t kind)
{
	uint8_t *copy = xmemdup(self.p, self.n);
	uint8_t *at = memmem(copy, self.n, self_id.bytes, self_id.size);

	assert_non_null(at);
	if (kind)
		at[0] ^= kind;
	else
		at[-8] = 0x55; /* the type of the note */
	write_bytes(path, copy, self.n);
	free(copy);
}

static uint32_t tell_map(pid_t pid, const char *path, const struct image_id *id)
{
	struct record r = record_map(
		io_clock_ns(CLOCK_MONOTONIC) / US, pid, 0x10000, TEXT_SIZE, 0x1000, path);

	if (id)
		r.mmap.build_id = *id;
	return process_table_record(t, &r);
}

static uint32_t tell_generation(
	pid_t pid, const char *path, const struct stat *st, uint32_t generation)
{
	struct record r = record_map(
		io_clock_ns(CLOCK_MONOTONIC) / US, pid, 0x10000, TEXT_SIZE, 0x1000, path);

	r.mmap.inode = st->st_ino;
	r.mmap.inode_generation = generation;
	r.mmap.major = major(st->st_dev);
	r.mmap.minor = minor(st->st_dev);
	return process_table_record(t, &r);
}

static uint32_t tell_inode(pid_t pid, const char *path, const struct stat *st)
{
	return tell_generation(pid, path, st, 0);
}

/* Times of files are coarse: lets them become older than what happens next. */
static void wait_a_little(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
}

static struct cached_image *image_of(uint32_t file)
{
	return image_cache_use(c, image_cache_of_file(c, t, file));
}

static void assert_opened(const struct cached_image *img)
{
	assert_true(img->nsegments > 0);
	assert_true(img->id.size > 0);
}

static void assert_not_opened(const struct cached_image *img)
{
	assert_int_equal(img->nsegments, 0);
	assert_null(img->im);
}

static void test_by_build_id(void **state)
{
	_cleanup_free_ char *path = in_folder("a"), *other = in_folder("b");
	struct cached_image *img;
	uint32_t first, second;

	(void)state;
	write_bytes(path, self.p, self.n);
	write_bytes(other, self.p, self.n);
	first = image_cache_of_file(c, t, tell_map(PID(1), path, &self_id));
	img = image_cache_use(c, first);
	assert_opened(img);
	assert_true(image_id_equal(&img->id, &self_id));
	assert_string_equal(img->path, path);
	/* The same build under another name is the same image. */
	second = image_cache_of_file(c, t, tell_map(PID(1), other, &self_id));
	assert_int_equal(first, second);
	unlink(path);
	unlink(other);
}

static void test_functions_and_code_outlive_the_file(void **state)
{
	_cleanup_free_ char *path = in_folder("a");
	struct cached_image *img;
	const struct procedure *list;
	struct image *im;
	struct buf code = {0};
	uint32_t n;

	(void)state;
	write_bytes(path, self.p, self.n);
	n = image_cache_of_file(c, t, tell_map(PID(1), path, &self_id));
	unlink(path);
	im = image_cache_functions(c, t, n);
	assert_non_null(im);
	assert_true(image_procedures(im, &list) > 10);
	img = image_cache_use(c, n);
	assert_int_equal(
		image_cache_code(c, t, n,
			&(struct range){.start = img->segments[0].vaddr, .size = 16}, &code),
		0);
	assert_memory_equal(code.p, self.p + img->segments[0].offset, 16);
	buf_deinit(&code);
	/* Its functions stay after the flush, its bytes do not. */
	image_cache_flushed(c, t);
	assert_non_null(image_cache_functions(c, t, n));
	assert_int_equal(
		image_cache_code(c, t, n,
			&(struct range){.start = img->segments[0].vaddr, .size = 16}, &code),
		-EAGAIN);
}

static void test_replaced_before_it_was_opened(void **state)
{
	_cleanup_free_ char *path = in_folder("a");
	struct cached_image *img;
	uint32_t file;

	(void)state;
	write_bytes(path, self.p, self.n);
	file = tell_map(PID(1), path, &self_id);
	unlink(path);
	write_variant(path, 0xff);
	img = image_of(file);
	assert_not_opened(img);
	assert_true(image_id_equal(&img->id, &self_id));
	assert_string_equal(img->path, path);
	assert_null(image_cache_functions(c, t, image_cache_of_file(c, t, file)));
	/* When the right file turns up it is taken, in the next turn. */
	write_bytes(path, self.p, self.n);
	image_cache_turn(c);
	assert_non_null(image_cache_functions(c, t, image_cache_of_file(c, t, file)));
	assert_opened(img);
	unlink(path);
}

static void test_by_inode(void **state)
{
	_cleanup_free_ char *path = in_folder("a");
	struct cached_image *img;
	struct stat st;

	(void)state;
	write_bytes(path, self.p, self.n);
	assert_int_equal(stat(path, &st), 0);
	wait_a_little();
	img = image_of(tell_inode(PID(1), path, &st));
	assert_opened(img);
	assert_true(image_id_equal(&img->id, &self_id));
	/* Another inode of that name is another file. */
	st.st_ino++;
	img = image_of(tell_inode(PID(1), path, &st));
	assert_not_opened(img);
	assert_int_equal(img->id.size, 0);
	unlink(path);
}

/* A program that runs as soon as it is made; of an inode that is given again only the number is
 * the same. */
static void test_by_generation(void **state)
{
	_cleanup_free_ char *path = in_folder("a");
	_cleanup_close_ int fd = -1;
	const struct cached_image *img = NULL;
	struct stat st;
	int generation;

	(void)state;
	write_bytes(path, self.p, self.n);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(fstat(fd, &st), 0);
	if (ioctl(fd, FS_IOC_GETVERSION, &generation) < 0 || !generation) {
		unlink(path);
		skip(); /* this file system does not tell */
	}
	assert_opened(image_of(tell_generation(PID(1), path, &st, (uint32_t)generation)));
	/* What was changed long before it was mapped is taken all the same: we must be quick. */
	for (uint32_t i = 1; i <= 50; i++) {
		write_bytes(path, self.p, self.n);
		img = image_of(tell_generation(PID(1), path, &st, (uint32_t)generation + i));
		if (!img->nsegments)
			break;
	}
	assert_not_opened(img);
	unlink(path);
}

static void test_changed_after_it_was_mapped(void **state)
{
	_cleanup_free_ char *path = in_folder("a");
	struct stat st;
	uint32_t file;

	(void)state;
	write_bytes(path, self.p, self.n);
	assert_int_equal(stat(path, &st), 0);
	wait_a_little();
	file = tell_inode(PID(1), path, &st);
	wait_a_little();
	write_variant(path, 0xff); /* in place: the inode is the same */
	assert_not_opened(image_of(file));
	unlink(path);
}

static void test_identity_of_a_file_without_build_id(void **state)
{
	_cleanup_free_ char *path = in_folder("a");
	struct cached_image *img;
	struct stat st;

	(void)state;
	write_variant(path, 0);
	assert_int_equal(stat(path, &st), 0);
	wait_a_little();
	img = image_of(tell_inode(PID(1), path, &st));
	assert_opened(img);
	assert_true(img->id.is_hash);
	unlink(path);
}

/* None of these may block or be read, and what is no plain file not even be opened. */
static void test_what_is_no_plain_file(void **state)
{
	_cleanup_free_ char *fifo = in_folder("fifo"), *text = in_folder("text");
	_cleanup_close_ int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	char event[256];

	(void)state;
	assert_int_equal(mkfifo(fifo, 0600), 0);
	assert_true(inotify_add_watch(watch, fifo, IN_OPEN) >= 0);
	write_bytes(text, "hello", 5);
	assert_not_opened(image_of(tell_map(PID(1), fifo, &self_id)));
	assert_not_opened(image_of(tell_map(PID(1), text, &self_id)));
	assert_not_opened(image_of(tell_map(PID(1), folder, &self_id)));
	assert_not_opened(image_of(tell_map(PID(1), "/dev/full", &self_id)));
	assert_not_opened(image_of(tell_map(PID(1), "/no/such/file", &self_id)));
	assert_int_equal(read(watch, event, sizeof event), -1);
	unlink(fifo);
	unlink(text);
}

static void test_held_files_are_few(void **state)
{
	size_t before = 0, after = 0;
	struct image *first = NULL;
	char path[64];

	(void)state;
	for (int fd = 0; fd < 1024; fd++)
		before += fcntl(fd, F_GETFD) >= 0;
	for (uint8_t i = 1; i <= 60; i++) {
		struct image_id id = self_id;

		snprintf(path, sizeof path, "%s/v%d", folder, i);
		write_variant(path, i);
		id.bytes[0] ^= i;
		assert_opened(image_of(tell_map(PID(1), path, &id)));
		if (i == 1)
			first = image_cache_functions(c, t, IMAGE_NUMBERS);
	}
	for (int fd = 0; fd < 1024; fd++)
		after += fcntl(fd, F_GETFD) >= 0;
	assert_true(after - before <= 32);
	/* One that was let go of is opened again, but not if its functions were read before. */
	assert_non_null(image_cache_functions(c, t, IMAGE_NUMBERS + 1));
	snprintf(path, sizeof path, "%s/v1", folder);
	unlink(path);
	assert_non_null(first);
	assert_ptr_equal(image_cache_functions(c, t, IMAGE_NUMBERS), first);
	image_cache_keep_tables(c, 0);
	image_cache_turn(c);
	assert_null(image_cache_functions(c, t, IMAGE_NUMBERS));
	for (int i = 1; i <= 60; i++) {
		snprintf(path, sizeof path, "%s/v%d", folder, i);
		unlink(path);
	}
}

static void test_idle_images_are_forgotten(void **state)
{
	struct image_id id = self_id;
	size_t memory = 0;
	char path[64];

	(void)state;
	for (int i = 0; i < 4000; i++) {
		snprintf(path, sizeof path, "/no/such/file%04d", i);
		id.bytes[0] = (uint8_t)i;
		id.bytes[1] = (uint8_t)(i >> 8);
		image_of(tell_map(PID(1), path, &id));
		if (i % 20 == 0)
			image_cache_flushed(c, t);
		if (i == 2000)
			memory = image_cache_memory(c);
	}
	assert_true(image_cache_memory(c) < memory + memory / 4);
}

/* ---- files of other processes ---- */

/* A process that calls `prepare`, says so, and waits to be killed. */
static pid_t start(void (*prepare)(const char *path), const char *path)
{
	int out[2];
	pid_t pid;
	char byte;

	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prepare(path);
		if (write(out[1], "x", 1) == 1)
			pause();
		_exit(1);
	}
	close(out[1]);
	assert_int_equal(read(out[0], &byte, 1), 1);
	close(out[0]);
	return pid;
}

static void finish(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void map_text(const char *path)
{
	int fd = open(path, O_RDONLY);

	if (fd < 0 || mmap(NULL, 0x1000, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		_exit(1);
	close(fd);
}

/* A file system of its own over the folder, with the file in it. */
static void map_in_namespace(const char *path)
{
	int fd;

	if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		mount("none", folder, "tmpfs", 0, NULL) < 0)
		_exit(1);
	fd = open(path, O_WRONLY | O_CREAT, 0700);
	if (fd < 0 || write(fd, self.p, self.n) != (ssize_t)self.n)
		_exit(1);
	close(fd);
	map_text(path);
}

static void test_mount_namespace(void **state)
{
	_cleanup_free_ char *path = in_folder("inside");
	pid_t pid;
	struct cached_image *img;

	(void)state;
	if (geteuid() != 0)
		skip();
	/* In our eyes another file has that name. */
	write_variant(path, 0xff);
	pid = start(map_in_namespace, path);
	img = image_of(tell_map(pid, path, &self_id));
	assert_opened(img);
	assert_true(image_id_equal(&img->id, &self_id));
	finish(pid);
	unlink(path);
}

static uint32_t file_named(pid_t pid, const char *path)
{
	struct mapping m;

	for (uint32_t file = 1; file < 64; file++) {
		if (process_maps_file(t, pid, file, &m) &&
			!strcmp(mapped_file(t, file)->path, path))
			return file;
	}
	fail_msg("%s is not mapped", path);
	return FILE_ANON;
}

static void test_deleted_file(void **state)
{
	_cleanup_free_ char *path = in_folder("doomed"), *deleted = in_folder("doomed (deleted)");
	pid_t pid;
	struct cached_image *img;

	(void)state;
	if (geteuid() != 0)
		skip();
	write_bytes(path, self.p, self.n);
	pid = start(map_text, path);
	unlink(path);
	write_variant(path, 0xff); /* and another one in its place */
	process_table_scan(t, pid);
	img = image_of(file_named(pid, deleted));
	assert_opened(img);
	assert_true(image_id_equal(&img->id, &self_id));
	assert_string_equal(img->path, path);
	finish(pid);
	unlink(path);
}

/* ---- code without a file ---- */

static void test_jit_map(void **state)
{
	uint64_t now = io_clock_ns(CLOCK_MONOTONIC);
	struct process *p;
	char path[64];
	uint32_t n;

	(void)state;
	snprintf(path, sizeof path, "/tmp/perf-%d.map", getpid());
	unlink(path);
	process_table_scan(t, getpid());
	p = process_at(t, getpid(), now);
	assert_int_equal(image_cache_of_memory(c, p, 0x7000010), IMAGE_NUMBER_ANON);
	write_bytes(path, "7000000 20 hot\n", 15);
	/* Looked for once a turn. */
	assert_int_equal(image_cache_of_memory(c, p, 0x7000010), IMAGE_NUMBER_ANON);
	image_cache_turn(c);
	n = image_cache_of_memory(c, p, 0x7000010);
	assert_int_equal(image_cache_use(c, n)->kind, IMAGE_JIT);
	assert_string_equal(
		image_procedure_at(image_cache_functions(c, t, n), 0x7000010)->name, "hot");
	write_bytes(path, "7000000 20 hot\n7000040 20 new\n", 30);
	assert_int_equal(image_cache_of_memory(c, p, 0x7000050), IMAGE_NUMBER_ANON);
	image_cache_turn(c);
	assert_int_equal(image_cache_of_memory(c, p, 0x7000050), n);
	assert_int_equal(image_cache_of_memory(c, p, 0x7000010), n);
	assert_int_equal(image_cache_of_memory(c, p, 0x8000000), IMAGE_NUMBER_ANON);
	unlink(path);
}

static void test_vdso_and_memory(void **state)
{
	uint64_t now = io_clock_ns(CLOCK_MONOTONIC) / US;
	struct record r = record_map(now, PID(1), 0x7ff000, 0x2000, 0, "[vdso]");
	struct cached_image *img;

	(void)state;
	img = image_of(process_table_record(t, &r));
	assert_int_equal(img->kind, IMAGE_VDSO);
	assert_non_null(img->im);
	assert_int_equal(image_cache_of_file(c, t, FILE_ANON), IMAGE_NUMBER_ANON);
}

static void test_kernel_without_symbols(void **state)
{
	uint64_t offset;

	(void)state;
	assert_int_equal(
		image_cache_of_kernel(c, 0xffffffff81234567, &offset), IMAGE_NUMBER_KERNEL);
	assert_int_equal(offset, 0xffffffff81234567);
	assert_false(image_cache_kernel_hidden(c));
}

/* ---- footprints ---- */

static void test_footprint(void **state)
{
	struct footprint f = {0};

	(void)state;
	/* Added in no order, each with a fragment far away. */
	for (uint64_t i = 0; i < 500; i++) {
		uint64_t start = 0x1000 + i * 7919 % 500 * 0x100;
		struct range ranges[] = {{start, 0x80}, {start + 0x100000, 0x10}};
		struct procedure p = {.start = start, .ranges = ranges, .nranges = 2, .name = "f"};

		assert_int_equal(footprint_find(&f, start), -1);
		assert_int_equal(footprint_add(&f, &p), i);
		assert_int_equal(footprint_find(&f, start + 0x7f), i);
	}
	for (uint64_t i = 0; i < 500; i++) {
		uint64_t start = 0x1000 + i * 7919 % 500 * 0x100;

		assert_int_equal(footprint_find(&f, start), i);
		assert_int_equal(footprint_find(&f, start + 0x10000f), i);
		assert_int_equal(footprint_find(&f, start + 0x80), -1);
		assert_int_equal(footprint_find(&f, start + 0x100010), -1);
	}
	f.procedures.p[3].fresh = 5;
	f.procedures.p[3].storing = true;
	footprint_begin(&f);
	footprint_flushed(&f);
	assert_false(f.procedures.p[3].stored);
	assert_int_equal(f.procedures.p[3].samples, 0);
	f.procedures.p[3].fresh = 5;
	f.procedures.p[3].storing = true;
	footprint_flushed(&f);
	assert_true(f.procedures.p[3].stored);
	assert_int_equal(f.procedures.p[3].samples, 5);
	footprint_deinit(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_by_build_id, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_functions_and_code_outlive_the_file, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_replaced_before_it_was_opened, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_by_inode, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_by_generation, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_changed_after_it_was_mapped, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_identity_of_a_file_without_build_id, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_what_is_no_plain_file, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_held_files_are_few, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_idle_images_are_forgotten, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_mount_namespace, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_deleted_file, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_jit_map, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_vdso_and_memory, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_kernel_without_symbols, set_up, tear_down),
		cmocka_unit_test(test_footprint),
	};

	return cmocka_run_group_tests(tests, set_up_all, tear_down_all);
}
