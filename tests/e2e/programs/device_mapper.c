/*
 * Programs that could notice somebody reading along, with an outcome that is the same every time.
 * Usage: device_mapper ring|unmap|fork|exec|threads
 *
 *   ring     loads from the ring buffer of a perf event, which is not the program's own memory
 *   unmap    maps memory, fills it and unmaps it again, over and over, in four threads
 *   fork     children that change what they share with their parent
 *   exec     a chain of programs that call each other
 *   threads  threads that count together
 */
#include "burn.h"

#include <err.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, PAGES = 16, BYTES = PAGES * 4096 };

static uint64_t mix(uint64_t sum, uint64_t word)
{
	sum = (sum ^ word) * 0x9e3779b97f4a7c15;
	return sum ^ sum >> 29;
}

static void *map(int flags, int fd, size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, fd, 0);

	if (p == MAP_FAILED)
		err(1, "mmap");
	return p;
}

/* The part of the control page that says how large the buffer is, which stays as it is. */
static __attribute__((noinline)) uint64_t load_ring(void)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.size = sizeof attr,
		.disabled = 1,
		.exclude_kernel = 1};
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
	uint64_t sum = 0;

	if (fd < 0)
		err(1, "perf_event_open");
	volatile const struct perf_event_mmap_page *ring = map(MAP_SHARED, fd, 2 * 4096);
	for (int i = 0; i < 200000000; i++)
		sum = mix(sum, ring->data_size);
	return sum;
}

static void *churn(void *arg)
{
	uint64_t sum = (uintptr_t)arg;

	for (int round = 0; round < 1500; round++) {
		uint64_t *p = map(MAP_PRIVATE | MAP_ANONYMOUS, -1, BYTES);
		for (size_t i = 0; i < BYTES / 8; i += 16)
			p[i] = i + (uint64_t)round;
		for (size_t i = 0; i < BYTES / 8; i += 16)
			sum = mix(sum, p[i]);
		munmap(p, BYTES);
	}
	return (void *)(uintptr_t)sum;
}

static atomic_ulong shared_count;

static void *count(void *arg)
{
	uint64_t sum = (uintptr_t)arg;

	for (int i = 0; i < 40000000; i++) {
		sum = mix(sum, (uint64_t)i);
		if (!(i & 15))
			atomic_fetch_add(&shared_count, 1);
	}
	return (void *)(uintptr_t)sum;
}

static uint64_t in_threads(void *(*work)(void *))
{
	pthread_t thread[THREADS];
	uint64_t sum = 0;
	void *part;

	for (uintptr_t i = 0; i < THREADS; i++) {
		if (pthread_create(&thread[i], NULL, work, (void *)i))
			errx(1, "pthread_create");
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(thread[i], &part);
		sum = mix(sum, (uintptr_t)part);
	}
	return mix(sum, shared_count);
}

static uint64_t fork_children(void)
{
	uint64_t *own = map(MAP_PRIVATE | MAP_ANONYMOUS, -1, BYTES);
	uint64_t *common = map(MAP_SHARED | MAP_ANONYMOUS, -1, BYTES), sum = 0;

	for (uint64_t round = 0; round < 1500; round++) {
		for (size_t i = 0; i < BYTES / 8; i++)
			own[i] = i * round;
		pid_t pid = fork();
		if (pid < 0)
			err(1, "fork");
		for (size_t i = 0; i < BYTES / 8; i++)
			own[i] += pid ? 1 : 2;
		if (!pid) {
			for (size_t i = 0; i < BYTES / 8; i++)
				common[i] = mix(common[i], own[i]);
			_exit(0);
		}
		waitpid(pid, NULL, 0);
		for (size_t i = 0; i < BYTES / 8; i++)
			sum = mix(sum, own[i]);
	}
	for (size_t i = 0; i < BYTES / 8; i++)
		sum = mix(sum, common[i]);
	return sum;
}

/* Works a little, then becomes the next of the chain. */
static uint64_t exec_chain(int left, uint64_t sum)
{
	char number[32], carried[32];

	for (int i = 0; i < 1000000; i++)
		sum = mix(sum, (uint64_t)i);
	if (!left)
		return sum;
	snprintf(number, sizeof number, "%d", left - 1);
	snprintf(carried, sizeof carried, "%lu", sum);
	execl("/proc/self/exe", "device_mapper", "exec", number, carried, (char *)NULL);
	err(1, "exec");
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	uint64_t sum;

	if (!strcmp(what, "ring"))
		sum = load_ring();
	else if (!strcmp(what, "unmap"))
		sum = in_threads(churn);
	else if (!strcmp(what, "fork"))
		sum = fork_children();
	else if (!strcmp(what, "exec"))
		sum = exec_chain(
			argc > 2 ? atoi(argv[2]) : 100, argc > 3 ? strtoull(argv[3], NULL, 10) : 0);
	else if (!strcmp(what, "threads"))
		sum = in_threads(count);
	else
		errx(2, "usage: device_mapper ring|unmap|fork|exec|threads");
	printf("%s %016lx\n", what, sum);
	return 0;
}
