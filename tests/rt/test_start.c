/* The run time as it is placed into programs: the blob itself is run, in this process. */
#include "rt/rt.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static const uint8_t blob[] = {
#include "rt/blob.h"
};

enum { PAGE = 4096, SIZE = 70 * PAGE };

/* A file that was loaded at another address than it says: header, code, then the counters. */
struct scene {
	char folder[64], path[128];
	uint8_t *code;
	uint64_t *counters;
	struct rt_header *header;
};

static int set_up(void **state)
{
	struct scene *s = calloc(1, sizeof *s);
	size_t code = (sizeof blob + PAGE - 1) / PAGE * PAGE;

	strcpy(s->folder, "/tmp/culprit-test-rt-XXXXXX");
	if (!mkdtemp(s->folder))
		return -1;
	snprintf(s->path, sizeof s->path, "%s/counts", s->folder);
	s->code = mmap(NULL, code + SIZE, PROT_READ | PROT_WRITE | PROT_EXEC,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (s->code == MAP_FAILED)
		return -1;
	memcpy(s->code, blob, sizeof blob);
	s->counters = (uint64_t *)(s->code + code);
	s->header = (struct rt_header *)s->code;
	s->header->address = 0x1000;
	s->header->counters = 0x1000 + code;
	s->header->size = SIZE;
	strcpy(s->header->path, s->path);
	*state = s;
	return 0;
}

static int tear_down(void **state)
{
	struct scene *s = *state;

	munmap(s->code, (size_t)((uint8_t *)s->counters - s->code) + SIZE);
	unlink(s->path);
	rmdir(s->folder);
	free(s);
	return 0;
}

static void start(struct scene *s)
{
	((void (*)(void))(uintptr_t)(s->code + RT_START))();
}

static void read_counts(const struct scene *s, uint64_t *out)
{
	int fd = open(s->path, O_RDONLY);

	assert_true(fd >= 0);
	assert_int_equal(pread(fd, out, SIZE, 0), SIZE);
	assert_int_equal(pread(fd, out, 1, SIZE), 0);
	close(fd);
}

static void counts_reach_the_file(void **state)
{
	struct scene *s = *state;
	uint64_t counts[SIZE / 8];

	s->counters[3] = 7; /* before it was started */
	s->counters[67 * PAGE / 8] = 9;
	start(s);
	assert_int_equal(s->counters[3], 7);
	assert_int_equal(s->counters[67 * PAGE / 8], 9);
	s->counters[3]++;
	s->counters[SIZE / 8 - 1] = 5;
	read_counts(s, counts);
	assert_int_equal(counts[0], 0);
	assert_int_equal(counts[3], 8);
	assert_int_equal(counts[SIZE / 8 - 1], 5);
}

static void is_private(struct scene *s)
{
	assert_ptr_equal(mmap(s->counters, SIZE, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
		s->counters);
}

static void another_process_adds_to_it(void **state)
{
	struct scene *s = *state;
	uint64_t counts[SIZE / 8];

	start(s);
	s->counters[1] = 40;
	is_private(s);
	s->counters[1] = 2;
	start(s);
	assert_int_equal(s->counters[1], 42);
	read_counts(s, counts);
	assert_int_equal(counts[1], 42);
}

static void children_count_and_sigkill_loses_nothing(void **state)
{
	struct scene *s = *state;
	uint64_t counts[SIZE / 8];
	pid_t child;

	start(s);
	s->counters[0]++;
	child = fork();
	if (!child) {
		s->counters[0]++;
		kill(getpid(), SIGKILL);
	}
	waitpid(child, NULL, 0);
	read_counts(s, counts);
	assert_int_equal(counts[0], 2);
}

/* Standard error goes to a file meanwhile. */
static void start_and_listen(struct scene *s, char *said, size_t size)
{
	char name[] = "/tmp/culprit-test-rt-XXXXXX";
	int saved = dup(2), fd = mkstemp(name);
	ssize_t n;

	dup2(fd, 2);
	start(s);
	dup2(saved, 2);
	n = pread(fd, said, size - 1, 0);
	said[n < 0 ? 0 : n] = 0;
	close(saved);
	close(fd);
	unlink(name);
}

static void says_why_it_cannot_and_goes_on(void **state)
{
	struct scene *s = *state;
	char said[2 * RT_PATH], expected[2 * RT_PATH];

	snprintf(s->header->path, RT_PATH, "%s/absent/counts", s->folder);
	start_and_listen(s, said, sizeof said);
	snprintf(expected, sizeof expected,
		"culprit: cannot count into %s (error %d); this process runs on without\n",
		s->header->path, ENOENT);
	assert_string_equal(said, expected);
	s->counters[9] = 1; /* still memory */
	assert_int_equal(s->counters[9], 1);
}

static void a_short_file_grows_and_keeps_its_counts(void **state)
{
	struct scene *s = *state;
	uint64_t counts[SIZE / 8], one = 11;
	int fd = open(s->path, O_RDWR | O_CREAT, 0600);

	assert_int_equal(pwrite(fd, &one, sizeof one, 0), (ssize_t)sizeof one);
	close(fd);
	start(s);
	s->counters[0]++;
	read_counts(s, counts);
	assert_int_equal(counts[0], 12);
	assert_int_equal(counts[1], 0);
}

/* Goes on to `next` with everything as it was. */
struct registers {
	uint64_t r[15], flags;
};

static void run_with(struct scene *s, struct registers *in, struct registers *out)
{
	__asm__ volatile("push %%rbp\n push %%rbx\n push %[out]\n push %[code]\n"
			 "pushq 120(%[in])\n popfq\n"
			 "mov 0(%[in]), %%rax\n mov 8(%[in]), %%rbx\n mov 16(%[in]), %%rcx\n"
			 "mov 24(%[in]), %%rdx\n mov 32(%[in]), %%rsi\n mov 40(%[in]), %%rbp\n"
			 "mov 48(%[in]), %%r8\n mov 56(%[in]), %%r9\n mov 64(%[in]), %%r10\n"
			 "mov 72(%[in]), %%r11\n mov 80(%[in]), %%r12\n mov 88(%[in]), %%r13\n"
			 "mov 96(%[in]), %%r14\n mov 104(%[in]), %%r15\n mov 112(%[in]), %%rdi\n"
			 "call *(%%rsp)\n"
			 "push %%rdi\n pushfq\n mov 24(%%rsp), %%rdi\n"
			 "popq 120(%%rdi)\n popq 112(%%rdi)\n"
			 "mov %%rax, 0(%%rdi)\n mov %%rbx, 8(%%rdi)\n mov %%rcx, 16(%%rdi)\n"
			 "mov %%rdx, 24(%%rdi)\n mov %%rsi, 32(%%rdi)\n mov %%rbp, 40(%%rdi)\n"
			 "mov %%r8, 48(%%rdi)\n mov %%r9, 56(%%rdi)\n mov %%r10, 64(%%rdi)\n"
			 "mov %%r11, 72(%%rdi)\n mov %%r12, 80(%%rdi)\n mov %%r13, 88(%%rdi)\n"
			 "mov %%r14, 96(%%rdi)\n mov %%r15, 104(%%rdi)\n"
			 "add $16, %%rsp\n pop %%rbx\n pop %%rbp\n"
			 :
			 : [code] "a"(s->code + RT_START), [in] "D"(in), [out] "S"(out)
			 : "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
			 "memory", "cc");
}

static void registers_are_as_they_were(void **state)
{
	struct scene *s = *state;
	struct registers in, out = {0};

	for (size_t i = 0; i < 15; i++)
		in.r[i] = 0x0123456789abcdef * (i + 1);
	in.flags = 0x8d7; /* all arithmetic flags and interrupts */
	in.flags |= 0x202;
	run_with(s, &in, &out);
	assert_memory_equal(in.r, out.r, sizeof in.r);
	assert_int_equal(in.flags & 0x8d5, out.flags & 0x8d5);
}

static void goes_on_to_what_ran_first(void **state)
{
	struct scene *s = *state;
	static const uint8_t code[] = {0x48, 0xff, 0xc0, 0xc3}; /* inc %rax; ret */
	struct registers in = {.r = {41}, .flags = 0x202}, out;

	memcpy(s->code + sizeof blob, code, sizeof code);
	s->header->next = s->header->address + sizeof blob;
	run_with(s, &in, &out);
	assert_int_equal(out.r[0], 42);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
		TEST(counts_reach_the_file),
		TEST(another_process_adds_to_it),
		TEST(children_count_and_sigkill_loses_nothing),
		TEST(says_why_it_cannot_and_goes_on),
		TEST(a_short_file_grows_and_keeps_its_counts),
		TEST(registers_are_as_they_were),
		TEST(goes_on_to_what_ran_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
