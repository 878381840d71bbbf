/* Counters of threads: the blob itself is run, in this process and its children. */
#include "rt/rt.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
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

#include "rt/routines.h"

static const uint8_t blob[] = {
#include "rt/blob.h"
};

enum { PAGE = 4096, SIZE = PAGE, TURNS = 20000 };

/* An image that was loaded at another address than it says: code, data, then the counters. */
static struct scene {
	char path[64];
	uint8_t *code;
	size_t mapped;
	struct rt_header *header;
	struct rt_threads *threads;
	uint64_t *counters;
} s;

static int set_up(void **state)
{
	size_t code = (sizeof blob + PAGE - 1) / PAGE * PAGE;
	int fd;

	(void)state;
	strcpy(s.path, "/tmp/culprit-test-thread-XXXXXX");
	fd = mkstemp(s.path);
	s.mapped = code + PAGE + SIZE;
	s.code = mmap(NULL, s.mapped, PROT_READ | PROT_WRITE | PROT_EXEC,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (fd < 0 || s.code == MAP_FAILED)
		return -1;
	close(fd);
	memcpy(s.code, blob, sizeof blob);
	s.header = (struct rt_header *)s.code;
	s.threads = (struct rt_threads *)(s.code + code);
	s.counters = (uint64_t *)(s.code + code + PAGE);
	s.header->address = 0x1000;
	s.header->threads = 0x1000 + code;
	s.header->counters = 0x1000 + code + PAGE;
	s.header->size = SIZE;
	s.header->blocks = 100;
	s.header->block = SIZE;
	strcpy(s.header->path, s.path);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	munmap(s.code, s.mapped);
	unlink(s.path);
	return 0;
}

static void start(void)
{
	((void (*)(void))(uintptr_t)(s.code + RT_START))();
}

/* As a snippet does it. */
static uint64_t call_routine(uint64_t at)
{
	uint64_t result;

	__asm__ volatile("lea -144(%%rsp), %%rsp\n call *%1\n mov (%%rsp), %0\n"
			 "lea 144(%%rsp), %%rsp\n"
			 : "=&r"(result)
			 : "r"(s.code + at)
			 : "memory");
	return result;
}

static uint64_t *word(void)
{
	return (uint64_t *)((uint8_t *)__builtin_thread_pointer() + RT_WORD(RT_WORD_NONE) +
			    s.threads->word);
}

static void count(unsigned counter)
{
	uint64_t by = *word();

	if (!by)
		by = call_routine(RT_CALL_THREAD_BLOCK);
	++*(volatile uint64_t *)((uint8_t *)&s.counters[counter] + by);
}

/* ---- what the file has ---- */

static struct rt_directory *directory(uint8_t **file, size_t *size)
{
	int fd = open(s.path, O_RDONLY);
	struct stat st;

	assert_true(fd >= 0 && !fstat(fd, &st));
	*size = (size_t)st.st_size;
	*file = mmap(NULL, *size, PROT_READ, MAP_SHARED, fd, 0);
	assert_true(*file != MAP_FAILED);
	close(fd);
	return (struct rt_directory *)(*file + SIZE);
}

static uint32_t blocks(void)
{
	uint8_t *file;
	size_t size;
	uint32_t used = directory(&file, &size)->used;

	munmap(file, size);
	return used;
}

/* Of a counter, over the shared ones and all blocks. */
static uint64_t total(unsigned counter)
{
	uint64_t sum;
	uint8_t *file;
	size_t size;

	assert_int_equal(directory(&file, &size)->magic, RT_DIRECTORY_MAGIC);
	memcpy(&sum, file + 8 * counter, 8);
	for (size_t at = SIZE + RT_DIRECTORY; at + SIZE <= size; at += SIZE) {
		uint64_t one;
		memcpy(&one, file + at + 8 * counter, 8);
		sum += one;
	}
	munmap(file, size);
	return sum;
}

/* ---- threads ---- */

static pthread_barrier_t all;

static void *work(void *arg)
{
	if (arg)
		pthread_barrier_wait(arg);
	for (unsigned i = 0; i < TURNS; i++)
		count(0);
	return NULL;
}

static void run_threads(unsigned n)
{
	pthread_t list[64];

	pthread_barrier_init(&all, NULL, n);
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(pthread_create(&list[i], NULL, work, &all), 0);
	for (unsigned i = 0; i < n; i++)
		pthread_join(list[i], NULL);
	pthread_barrier_destroy(&all);
}

static void threads_lose_nothing(void **state)
{
	(void)state;
	s.counters[0] = 5; /* before it was started */
	start();
	assert_true(s.threads->word && s.threads->region);
	run_threads(64);
	work(NULL);
	assert_int_equal(total(0), 5 + 65 * TURNS);
	assert_true(blocks() <= 65);
}

/* Stacks are used again, with what is left in their words. */
static void generations_share_blocks(void **state)
{
	(void)state;
	start();
	for (unsigned i = 0; i < 60; i++)
		run_threads(4);
	assert_int_equal(total(0), 60 * 4 * TURNS);
	assert_true(blocks() <= 12);
}

/* Threads whose control block is elsewhere each time: what they leave is taken over. */
static void blocks_of_ended_threads_are_taken_over(void **state)
{
	size_t size = 1 << 16;
	pthread_attr_t attributes;
	pthread_t thread;

	(void)state;
	start();
	for (unsigned i = 0; i < 300; i++) {
		uint8_t *stack = mmap(
			NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		uint8_t *hole = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		assert_true(stack != MAP_FAILED && hole != MAP_FAILED);
		pthread_attr_init(&attributes);
		pthread_attr_setstack(&attributes, stack, size);
		assert_int_equal(pthread_create(&thread, &attributes, work, NULL), 0);
		pthread_join(thread, NULL);
		pthread_attr_destroy(&attributes);
		munmap(stack, size);
		mmap(stack, size / 2, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	}
	assert_int_equal(total(0), 300 * TURNS);
	assert_true(blocks() < 100);
}

/* The blocks are few: the others count together, and that is told. */
static void without_room_they_count_together(void **state)
{
	uint8_t *file;
	size_t size;

	(void)state;
	s.header->blocks = 1;
	start();
	count(1); /* the only one */
	run_threads(1);
	assert_int_equal(total(0), TURNS);
	assert_int_equal(total(1), 1);
	assert_int_equal(s.counters[0], TURNS);
	assert_int_equal(directory(&file, &size)->short_of, 1);
	munmap(file, size);
}

static void processes_have_blocks_of_their_own(void **state)
{
	pid_t child[3];

	(void)state;
	start();
	for (unsigned i = 0; i < 3; i++) {
		child[i] = fork(); /* nothing was counted yet, so no word is inherited */
		if (!child[i]) {
			run_threads(4);
			_exit(0);
		}
	}
	for (unsigned i = 0; i < 3; i++)
		waitpid(child[i], NULL, 0);
	run_threads(4); /* takes over what they left */
	assert_int_equal(total(0), 16 * TURNS);
	assert_true(blocks() <= 16);
}

/* Somebody else has the page, and lets nobody read it. */
static void without_a_word_they_count_together(void **state)
{
	uint8_t *file;
	size_t size;
	pid_t child = fork();
	int status;

	(void)state;
	if (!child) {
		mmap((void *)RT_PROCESS, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
			-1, 0);
		start();
		_exit(s.threads->word || call_routine(RT_CALL_THREAD_BLOCK));
	}
	waitpid(child, &status, 0);
	assert_int_equal(status, 0);
	assert_int_equal(directory(&file, &size)->short_of, 1);
	munmap(file, size);
}

static void a_library_that_comes_back_has_its_word(void **state)
{
	uint64_t first;

	(void)state;
	start();
	count(0);
	first = s.threads->word;
	memset(s.threads, 0, sizeof *s.threads);
	start();
	assert_int_equal(s.threads->word, first);
	count(0);
	assert_int_equal(total(0), 2);
	assert_int_equal(blocks(), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
		TEST(threads_lose_nothing),
		TEST(generations_share_blocks),
		TEST(blocks_of_ended_threads_are_taken_over),
		TEST(without_room_they_count_together),
		TEST(processes_have_blocks_of_their_own),
		TEST(without_a_word_they_count_together),
		TEST(a_library_that_comes_back_has_its_word),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
