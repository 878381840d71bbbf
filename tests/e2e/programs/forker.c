/*
 * A storm of short processes: each is forked and executes this program again, which works for two
 * milliseconds and ends. Prints how many there were. Usage: forker SECONDS
 */
#include "burn.h"

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

BURNER(child_work)

static double seconds_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "child")) {
		child_work(0.002);
		return 0;
	}
	double end = seconds_now() + (argc > 1 ? atof(argv[1]) : 1);
	int n = 0;
	for (; seconds_now() < end; n++) {
		pid_t pid = fork();
		if (pid < 0)
			err(1, "fork");
		if (pid == 0) {
			execl("/proc/self/exe", "forker", "child", (char *)NULL);
			_exit(127);
		}
		int status;
		if (waitpid(pid, &status, 0) != pid || status)
			errx(1, "a child failed");
	}
	printf("%d\n", n);
	return 0;
}
