/*
 * Many short processes: forks and executes small, dynamically linked programs at a steady rate and
 * waits for them.
 *
 *   storm RATE SECONDS [PROGRAM...]
 *
 * Starts that fall behind are caught up with at most MAX_ALIVE children at a time. Prints how many
 * were started and the rate that was reached. SIGTERM ends it early.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_ALIVE 32

static volatile sig_atomic_t stop;

static void on_term(int signal_number)
{
	(void)signal_number;
	stop = 1;
}

static double seconds_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

static void start(char *const *programs, int n, unsigned long i)
{
	pid_t pid = fork();
	if (pid < 0)
		err(1, "fork");
	if (pid)
		return;
	char *name = programs[i % n];
	int null = open("/dev/null", O_RDWR);
	dup2(null, 0);
	dup2(null, 1);
	dup2(null, 2);
	execl(name, name, "17", (char *)NULL);
	_exit(127);
}

/* Waits for children, for one at least when `block`; counts those that could not be executed. */
static int reap(int block, unsigned long *failed)
{
	int n = 0, status;
	while (waitpid(-1, &status, block && !n ? 0 : WNOHANG) > 0) {
		n++;
		*failed += WIFEXITED(status) && WEXITSTATUS(status) == 127;
	}
	return n;
}

int main(int argc, char **argv)
{
	static char *small[] = {"/bin/true", "/bin/echo", "/usr/bin/basename", "/usr/bin/expr",
		"/usr/bin/seq", "/usr/bin/id", "/bin/uname"};
	if (argc < 3)
		errx(2, "usage: storm RATE SECONDS [PROGRAM...]");
	double rate = atof(argv[1]), begin = seconds_now(), end = begin + atof(argv[2]);
	char *const *programs = argc > 3 ? argv + 3 : small;
	int n = argc > 3 ? argc - 3 : (int)(sizeof small / sizeof *small), alive = 0;
	unsigned long started = 0, failed = 0;
	signal(SIGTERM, on_term);
	signal(SIGINT, on_term);
	while (!stop && rate > 0) {
		double now = seconds_now(), due = begin + started / rate;
		if (now >= end)
			break;
		alive -= reap(alive >= MAX_ALIVE, &failed);
		if (due > now) {
			struct timespec t = {0, (due - now) * 1e9};
			nanosleep(&t, NULL);
			continue;
		}
		start(programs, n, started++);
		alive++;
	}
	double took = seconds_now() - begin;
	while (alive > 0)
		alive -= reap(1, &failed);
	printf("started=%lu failed=%lu seconds=%.2f rate=%.1f\n", started, failed, took,
		started / took);
	return 0;
}
