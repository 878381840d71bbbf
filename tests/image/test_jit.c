#include "image/jit.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/err.h"
#include "image/image.h"
#include "image/workshop.h"

static struct image *parse(const char *text, size_t bad)
{
	struct image *im;
	size_t found;
	assert_int_equal(jit_map_parse("map", text, strlen(text), &im, &found, NULL), 0);
	assert_int_equal(found, bad);
	assert_int_equal(image_kind(im), IMAGE_JIT);
	return im;
}

static const char *name_at(struct image *im, uint64_t vaddr)
{
	const struct procedure *p = image_procedure_at(im, vaddr);
	return p ? p->name : NULL;
}

static void test_lines(void **state)
{
	(void)state;
	struct image *im = parse("7f0000002000 40 b::run (x.js:1) [opt]\n"
				 "7f0000001000 100 LazyCompile:~a@2 /x.js\n"
				 "0x7f0000003000 0x10 c\n"
				 "nonsense\n"
				 "7f0000004000 0 empty\n"
				 "7f0000004000 10\n"
				 "7f0000004000 10 \n"
				 "-1 10 negative\n"
				 "12345678123456781 10 long\n"
				 "ffffffffffffffff 10 wraps\n"
				 "\n"
				 "7f0000005000 8 last",
		7);
	uint64_t vaddr;
	const struct segment *segments;
	size_t n = image_segments(im, &segments);
	assert_true(segments_vaddr(segments, n, 0x7f0000001000, &vaddr));
	assert_int_equal(vaddr, 0x7f0000001000);
	assert_string_equal(name_at(im, 0x7f00000010ff), "LazyCompile:~a@2 /x.js");
	assert_string_equal(name_at(im, 0x7f0000002000), "b::run (x.js:1) [opt]");
	assert_string_equal(name_at(im, 0x7f000000300f), "c");
	assert_string_equal(name_at(im, 0x7f0000005007), "last");
	assert_null(name_at(im, 0x7f0000005008));
	assert_null(name_at(im, 0x7f0000004000));
	image_destroy(im);
}

static void test_later_lines_win(void **state)
{
	(void)state;
	struct image *im = parse("1000 100 old\n"
				 "1040 20 inside\n"
				 "3000 10 same\n"
				 "3000 10 newer\n"
				 "5010 10 under\n"
				 "5000 100 over\n",
		0);
	assert_string_equal(name_at(im, 0x103f), "old");
	assert_string_equal(name_at(im, 0x1040), "inside");
	assert_string_equal(name_at(im, 0x105f), "inside");
	assert_string_equal(name_at(im, 0x1060), "old");
	const struct procedure *old = image_procedure_at(im, 0x10ff);
	assert_int_equal(old->start, 0x1000);
	assert_int_equal(old->nranges, 2);
	assert_int_equal(old->ranges[0].size, 0x40);
	assert_int_equal(old->ranges[1].start, 0x1060);
	assert_int_equal(old->ranges[1].size, 0xa0);
	assert_string_equal(name_at(im, 0x3000), "newer");
	assert_string_equal(name_at(im, 0x5010), "over");
	assert_int_equal(image_procedure_at(im, 0x50ff)->nranges, 1);

	const struct procedure *all;
	assert_int_equal(image_procedures(im, &all), 4);
	image_destroy(im);
}

/* Every address belongs to the last line that covers it, whatever the order of the lines. */
static void test_overlaps_by_brute_force(void **state)
{
	(void)state;
	unsigned seed = 1;
	for (int round = 0; round < 50; round++) {
		char text[4096];
		int owner[256], n = 0;
		memset(owner, 0xff, sizeof owner);
		for (int line = 0; line < 20; line++) {
			unsigned start = (unsigned)rand_r(&seed) % 200,
				 size = 1 + (unsigned)rand_r(&seed) % 50;
			n += sprintf(text + n, "%x %x f%d\n", start, size, line);
			for (unsigned i = start; i < start + size; i++)
				owner[i] = line;
		}
		struct image *im = parse(text, 0);
		for (unsigned i = 0; i < 256; i++) {
			char expected[16];
			snprintf(expected, sizeof expected, "f%d", owner[i]);
			const char *found = name_at(im, i);
			if (owner[i] < 0)
				assert_null(found);
			else
				assert_string_equal(found, expected);
		}
		image_destroy(im);
	}
}

static void test_too_large(void **state)
{
	(void)state;
	struct image *im;
	struct err e;
	size_t bad;
	assert_int_equal(jit_map_parse("map", "", (64 << 20) + 1, &im, &bad, &e), -EFBIG);
	assert_non_null(strstr(e.text, "map"));
}

static void map_path(char *path, size_t size)
{
	snprintf(path, size, "/tmp/perf-%d.map", (int)getpid());
}

static void write_map(const char *text)
{
	char path[64];
	map_path(path, sizeof path);
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void remove_map(void)
{
	char path[64];
	map_path(path, sizeof path);
	unlink(path);
}

static void test_own_process(void **state)
{
	(void)state;
	struct image *im;
	struct err e;
	remove_map();
	assert_int_equal(jit_map_open(getpid(), &im, &e), -ENOENT);
	write_map("1000 10 mine\n");
	assert_int_equal(jit_map_open(getpid(), &im, &e), 0);
	assert_string_equal(name_at(im, 0x1008), "mine");
	image_destroy(im);
	remove_map();
	assert_int_equal(jit_map_open(0x7ffffff0, &im, &e), -ENOENT);
}

static void test_what_is_no_plain_file_of_the_user(void **state)
{
	(void)state;
	struct image *im;
	struct err e;
	char path[64];
	map_path(path, sizeof path);
	remove_map();
	write_text("elsewhere", "1000 10 planted\n");
	assert_int_equal(symlink(in_workshop("elsewhere"), path), 0);
	assert_int_equal(jit_map_open(getpid(), &im, &e), -EPERM);
	remove_map();
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(
		jit_map_open(getpid(), &im, &e), -EPERM); /* and does not wait for a writer */
	remove_map();
	if (getuid() == 0) {
		write_map("1000 10 planted\n");
		assert_int_equal(chown(path, 12345, 12345), 0);
		assert_int_equal(jit_map_open(getpid(), &im, &e), -EPERM);
		assert_non_null(strstr(e.text, "12345"));
		remove_map();
	}
}

/* Runs in a pid namespace and a root of its own; its map has the number that it knows. */
static _Noreturn void be_inner(int ready, int done)
{
	char byte;
	if (chroot(in_workshop("root")) < 0 || chdir("/") < 0)
		_exit(1);
	FILE *f = fopen("/tmp/perf-1.map", "w");
	fputs("1000 10 inner\n", f);
	fclose(f);
	_exit(write(ready, "x", 1) == 1 && read(done, &byte, 1) == 1 ? 0 : 1);
}

static void test_namespaces(void **state)
{
	(void)state;
	int pids[2], ready[2], done[2], status;
	char byte;
	pid_t inner;
	if (getuid() != 0)
		skip();
	assert_int_equal(pipe(pids) | pipe(ready) | pipe(done), 0);
	shell("mkdir -p root/tmp");
	pid_t outer = fork();
	if (!outer) {
		close(ready[0]);
		if (unshare(CLONE_NEWPID) < 0)
			_exit(77);
		inner = fork();
		if (!inner)
			be_inner(ready[1], done[0]);
		if (write(pids[1], &inner, sizeof inner) != sizeof inner)
			_exit(1);
		waitpid(inner, &status, 0);
		_exit(WEXITSTATUS(status));
	}
	close(pids[1]);
	close(ready[1]);
	if (read(pids[0], &inner, sizeof inner) != sizeof inner) { /* not allowed here */
		waitpid(outer, NULL, 0);
		skip();
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	struct image *im;
	struct err e;
	assert_int_equal(jit_map_open(inner, &im, &e), 0);
	assert_string_equal(image_path(im), "/tmp/perf-1.map");
	assert_string_equal(name_at(im, 0x1000), "inner");
	image_destroy(im);
	assert_int_equal(write(done[1], "x", 1), 1);
	waitpid(outer, &status, 0);
	assert_int_equal(status, 0);
}

static void test_vdso(void **state)
{
	(void)state;
	struct image *im;
	struct err e;
	int r = vdso_open(&im, &e);
	if (r == -ENOENT)
		skip();
	assert_int_equal(r, 0);
	assert_string_equal(image_path(im), "[vdso]");
	assert_int_equal(image_kind(im), IMAGE_VDSO);
	const struct procedure *all;
	size_t n = image_procedures(im, &all), i = 0;
	while (i < n && (!all[i].name || strcmp(all[i].name, "__vdso_clock_gettime")))
		i++;
	assert_true(i < n);
	struct buf code = {0};
	assert_int_equal(image_code(im, all[i].ranges, &code), 0);
	assert_int_equal(code.n, all[i].ranges[0].size);
	buf_deinit(&code);
	image_destroy(im);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_later_lines_win),
		cmocka_unit_test(test_overlaps_by_brute_force),
		cmocka_unit_test(test_too_large),
		cmocka_unit_test(test_own_process),
		cmocka_unit_test(test_what_is_no_plain_file_of_the_user),
		cmocka_unit_test(test_namespaces),
		cmocka_unit_test(test_vdso),
	};
	return cmocka_run_group_tests(tests, open_workshop, close_workshop);
}
