/*
 * Runs a command and adds a line to FILE: the user and system time that it and the children it
 * waited for took, in seconds. Exits as the command does.
 *
 *	cputime FILE COMMAND...
 */
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static double seconds(const struct timeval *t)
{
	return (double)t->tv_sec + (double)t->tv_usec * 1e-6;
}

int main(int argc, char **argv)
{
	struct rusage took;
	FILE *to;
	int status;
	pid_t child;

	if (argc < 3) {
		fprintf(stderr, "usage: cputime FILE COMMAND...\n");
		return 2;
	}
	child = fork();
	if (child == 0) {
		execvp(argv[2], argv + 2);
		perror(argv[2]);
		_exit(127);
	}
	if (child < 0 || wait4(child, &status, 0, &took) != child) {
		perror("cputime");
		return 3;
	}
	to = fopen(argv[1], "a");
	if (!to || fprintf(to, "%.6f\n", seconds(&took.ru_utime) + seconds(&took.ru_stime)) < 0 ||
		fclose(to)) {
		perror(argv[1]);
		return 3;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
