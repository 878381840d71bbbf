/*
 * Runs a command on a machine that allows less: with a seccomp filter that lets system calls fail
 * with the error a stricter kernel gives. Usage: deny CALL=ERRNO... -- COMMAND...
 * CALL is perf_event_open or bpf, ERRNO a number (1 EPERM, 13 EACCES, 38 ENOSYS).
 */
#include <err.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static void deny(long number, int code)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | code),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
		err(1, "seccomp");
}

int main(int argc, char **argv)
{
	int i = 1;
	for (; i < argc && strcmp(argv[i], "--"); i++) {
		char *equals = strchr(argv[i], '=');
		if (equals && !strncmp(argv[i], "perf_event_open", equals - argv[i]))
			deny(SYS_perf_event_open, atoi(equals + 1));
		else if (equals && !strncmp(argv[i], "bpf", equals - argv[i]))
			deny(SYS_bpf, atoi(equals + 1));
		else
			errx(2, "usage: deny CALL=ERRNO... -- COMMAND...");
	}
	if (i + 1 >= argc)
		errx(2, "usage: deny CALL=ERRNO... -- COMMAND...");
	execvp(argv[i + 1], argv + i + 1);
	err(127, "%s", argv[i + 1]);
}
