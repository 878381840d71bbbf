#include "collect/forks.h"

#include "base/err.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void *nothing(void *arg)
{
	return arg;
}

/* What the watched process does: so many threads and processes, one after the other. */
static _Noreturn void act(int go, int threads, int processes)
{
	char byte;

	if (read(go, &byte, 1) != 1)
		_exit(1);
	for (int i = 0; i < threads; i++) {
		pthread_t t;

		pthread_create(&t, NULL, nothing, NULL);
		pthread_join(t, NULL);
	}
	for (int i = 0; i < processes; i++) {
		pid_t child = fork();

		if (!child)
			_exit(0);
		waitpid(child, NULL, 0);
	}
	_exit(0);
}

static void assert_seen(int threads, int processes)
{
	struct forks *f;
	struct forks_seen seen;
	struct err e = {0};
	int go[2];
	pid_t child;

	assert_int_equal(pipe(go), 0);
	child = fork();
	if (!child)
		act(go[0], threads, processes);
	if (forks_watch(child, &f, &e)) {
		close(go[1]);
		waitpid(child, NULL, 0);
		skip(); /* not allowed here */
	}
	assert_int_equal(write(go[1], "", 1), 1);
	waitpid(child, NULL, 0);
	forks_read(f, &seen);
	assert_int_equal(seen.threads, threads);
	assert_int_equal(seen.processes, processes);
	forks_destroy(f);
	close(go[0]);
	close(go[1]);
}

static void counts_them(void **state)
{
	(void)state;
	assert_seen(0, 0);
	assert_seen(3, 0);
	assert_seen(0, 2);
	assert_seen(2, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(counts_them)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
