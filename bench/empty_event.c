/*
 * The floor that every sampler pays: a cpu-clock event on each CPU whose interrupt does nothing. A
 * BPF program that returns 0 keeps perf from writing a sample; with --plain there is no program and
 * no buffer to write to.
 *
 *   empty_event [--plain] [-F HZ] [-t SECONDS]
 *
 * Runs until SECONDS are over or SIGINT or SIGTERM comes; prints
 *   seconds=10.0 count=.. samples=.. run_ns=.. runs=..
 * count is the events' own count divided by the period; run_ns and runs are those of the program
 * (0 unless kernel.bpf_stats_enabled).
 */
#include <err.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MAX_CPUS 256

static int load_empty_program(void)
{
	struct bpf_insn code[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	union bpf_attr a = {
		.prog_type = BPF_PROG_TYPE_PERF_EVENT,
		.insns = (uintptr_t)code,
		.insn_cnt = sizeof code / sizeof *code,
		.license = (uintptr_t) "Dual BSD/GPL",
	};
	strcpy(a.prog_name, "empty");
	int fd = syscall(SYS_bpf, BPF_PROG_LOAD, &a, sizeof a);
	if (fd < 0)
		err(3, "BPF is not allowed (run as root)");
	return fd;
}

static int open_event(int cpu, uint64_t period, int program)
{
	struct perf_event_attr a = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof a,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = period,
		.sample_type = PERF_SAMPLE_IP,
		.disabled = 1,
	};
	int fd = syscall(SYS_perf_event_open, &a, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		err(3, "perf_event_open on CPU %d", cpu);
	if (program >= 0 && ioctl(fd, PERF_EVENT_IOC_SET_BPF, program) < 0)
		err(3, "PERF_EVENT_IOC_SET_BPF");
	if (ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) < 0)
		err(3, "PERF_EVENT_IOC_ENABLE");
	return fd;
}

static struct bpf_prog_info program_info(int fd)
{
	struct bpf_prog_info info = {0};
	union bpf_attr a = {
		.info = {.bpf_fd = fd, .info_len = sizeof info, .info = (uintptr_t)&info}};
	if (fd >= 0 && syscall(SYS_bpf, BPF_OBJ_GET_INFO_BY_FD, &a, sizeof a) < 0)
		warn("BPF_OBJ_GET_INFO_BY_FD");
	return info;
}

int main(int argc, char **argv)
{
	double hz = 5200, seconds = 1e6;
	bool plain = argc > 1 && !strcmp(argv[1], "--plain");
	optind = plain ? 2 : 1;
	for (int c; (c = getopt(argc, argv, "F:t:")) != -1;) {
		switch (c) {
		case 'F':
			hz = atof(optarg);
			break;
		case 't':
			seconds = atof(optarg);
			break;
		default:
			errx(2, "usage: empty_event [--plain] [-F HZ] [-t SECONDS]");
		}
	}
	sigset_t end;
	sigemptyset(&end);
	sigaddset(&end, SIGINT);
	sigaddset(&end, SIGTERM);
	sigprocmask(SIG_BLOCK, &end, NULL);

	int program = plain ? -1 : load_empty_program();
	int n = sysconf(_SC_NPROCESSORS_ONLN), fd[MAX_CPUS];
	uint64_t period = 1e9 / hz, count = 0;
	struct timespec wait = {seconds, 0}, t0, t1;
	wait.tv_nsec = (seconds - wait.tv_sec) * 1e9;
	clock_gettime(CLOCK_MONOTONIC, &t0);
	for (int i = 0; i < n && i < MAX_CPUS; i++)
		fd[i] = open_event(i, period, program);
	sigtimedwait(&end, NULL, &wait);
	for (int i = 0; i < n && i < MAX_CPUS; i++) {
		uint64_t value = 0;
		if (read(fd[i], &value, sizeof value) != sizeof value)
			warn("read");
		count += value;
	}
	clock_gettime(CLOCK_MONOTONIC, &t1);
	struct bpf_prog_info info = program_info(program);
	printf("seconds=%.3f count=%.0f run_ns=%llu runs=%llu\n",
		t1.tv_sec - t0.tv_sec + (t1.tv_nsec - t0.tv_nsec) * 1e-9, (double)count / period,
		(unsigned long long)info.run_time_ns, (unsigned long long)info.run_cnt);
	return 0;
}
