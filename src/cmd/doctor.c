/*
 * culprit doctor: what this machine allows, and the remedy for what it does not.
 */
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/json.h"
#include "base/term.h"
#include "cmd/cmd.h"
#include "collect/control.h"
#include "collect/event.h"
#include "collect/excursion.h"
#include "collect/shadow_user.h"
#include "values/values_pack.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* What a check found; without a remedy it is well. */
struct finding {
	bool ok;
	char found[256], remedy[512];
};

static void __attribute__((format(printf, 2, 3))) found(struct finding *f, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(f->found, sizeof f->found, fmt, ap);
	va_end(ap);
}

static void __attribute__((format(printf, 2, 3))) remedy(struct finding *f, const char *fmt, ...)
{
	va_list ap;

	f->ok = false;
	va_start(ap, fmt);
	vsnprintf(f->remedy, sizeof f->remedy, fmt, ap);
	va_end(ap);
}

static bool has_capability(cap_value_t which)
{
	cap_t caps = cap_get_proc();
	cap_flag_value_t value = CAP_CLEAR;
	bool failed = !caps || cap_get_flag(caps, which, CAP_EFFECTIVE, &value);

	cap_free(caps);
	return !failed && value == CAP_SET;
}

/* The command that gives the program its rights for every user. */
static void remedy_setcap(struct finding *f)
{
	char self[256] = "culprit";
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

	if (n > 0)
		self[n] = 0;
	remedy(f,
		"sudo setcap cap_perfmon,cap_bpf,cap_sys_ptrace,cap_dac_read_search,cap_syslog=ep "
		"%s  # or run as root",
		self);
}

/* ---- sampling ---- */

static int try_event(uint32_t type, uint64_t config, pid_t pid, int cpu, bool user_only)
{
	struct perf_event_attr attr = {
		.type = type,
		.size = sizeof attr,
		.config = config,
		.sample_period = 1000003,
		.disabled = 1,
		.exclude_kernel = user_only,
		.exclude_hv = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

static void check_pmu(struct finding *f)
{
	int rc = try_event(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 0, -1, true);

	if (!rc) {
		found(f, "the cycles event opens");
		return;
	}
	if (rc == -EACCES || rc == -EPERM) {
		found(f, "not allowed to open the cycles event (%s)", strerror(-rc));
		remedy(f, "sudo sysctl kernel.perf_event_paranoid=2");
		return;
	}
	found(f, "no cycle counter (%s): cpu-clock is sampled instead of cycles", strerror(-rc));
	remedy(f, "# run on metal, or give the virtual machine a PMU (qemu: -cpu host,pmu=on)");
}

static void check_whole_machine(struct finding *f)
{
	int rc = try_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, -1, 0, false);

	if (!rc) {
		found(f, "every process, kernel included, can be sampled");
		return;
	}
	rc = try_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, 0, -1, true);
	found(f, rc ? "not even own processes can be sampled"
		    : "only own processes can be sampled (record COMMAND, record -p)");
	remedy_setcap(f);
}

static void check_paranoid(struct finding *f)
{
	static const char *const meaning[] = {"everything is allowed", "no raw tracepoints",
		"no whole machine", "own processes in user mode only", "nothing without rights"};
	long level;
	int index;

	if (io_read_long("/proc/sys/kernel/perf_event_paranoid", &level)) {
		found(f, "the kernel has no perf events");
		remedy(f, "# boot a kernel with CONFIG_PERF_EVENTS=y");
		return;
	}
	index = level < -1 ? 0 : level > 3 ? 4 : (int)level + 1;
	found(f, "kernel.perf_event_paranoid is %ld: %s%s", level, meaning[index],
		has_capability(CAP_PERFMON) ? " (not for us: we have CAP_PERFMON)" : "");
	if (level > 0 && !has_capability(CAP_PERFMON))
		remedy(f, "sudo sysctl kernel.perf_event_paranoid=0");
}

static void check_sample_rate(struct finding *f)
{
	long rate, percent;

	if (io_read_long("/proc/sys/kernel/perf_event_max_sample_rate", &rate) ||
		io_read_long("/proc/sys/kernel/perf_cpu_time_max_percent", &percent)) {
		found(f, "the kernel has no perf events");
		remedy(f, "# boot a kernel with CONFIG_PERF_EVENTS=y");
		return;
	}
	found(f, "at most %ld samples a second and CPU, %ld%% of CPU time", rate, percent);
	/* The kernel lowers the first when interrupts take more than the second (0: no limit). */
	if (rate < 10000)
		remedy(f, "sudo sysctl kernel.perf_event_max_sample_rate=100000");
	if (percent && percent < 25)
		remedy(f, "sudo sysctl kernel.perf_cpu_time_max_percent=25 "
			  "kernel.perf_event_max_sample_rate=100000");
}

/* ---- BPF ---- */

static int load_nothing(void)
{
	struct bpf_insn code[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_PERF_EVENT,
		.insns = (uintptr_t)code,
		.insn_cnt = 2,
		.license = (uintptr_t) "GPL",
	};
	int fd = (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof attr);

	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

static void check_bpf(struct finding *f)
{
	long unprivileged = -1;
	int rc = load_nothing();

	io_read_long("/proc/sys/kernel/unprivileged_bpf_disabled", &unprivileged);
	if (!rc) {
		found(f, "programs for perf events load");
		return;
	}
	if (rc == -ENOSYS || rc == -EINVAL) {
		found(f, "the kernel has no BPF programs for perf events (%s)", strerror(-rc));
		remedy(f,
			"# boot a kernel with CONFIG_BPF_SYSCALL=y and CONFIG_BPF_EVENTS=y; until "
			"then samples are read from perf's ring buffers");
		return;
	}
	found(f,
		"loading is not allowed (%s; CAP_BPF %s, CAP_PERFMON %s, unprivileged_bpf_disabled "
		"%ld): samples are read from perf's ring buffers",
		strerror(-rc), has_capability(CAP_BPF) ? "yes" : "no",
		has_capability(CAP_PERFMON) ? "yes" : "no", unprivileged);
	remedy_setcap(f);
}

static void check_btf(struct finding *f)
{
	if (!access("/sys/kernel/btf/vmlinux", R_OK)) {
		found(f, "/sys/kernel/btf/vmlinux");
		return;
	}
	found(f, "/sys/kernel/btf/vmlinux: %s", strerror(errno));
	remedy(f, "sudo apt install linux-image-amd64  # or any kernel with "
		  "CONFIG_DEBUG_INFO_BTF=y; then reboot");
}

static void check_interpreter(struct finding *f)
{
	struct shadow *s = NULL;
	struct err e = {0};
	int rc = shadow_create(&(struct shadow_options){.steps = 16}, 1, &s, &e);

	shadow_destroy(s);
	if (!rc) {
		found(f, "edge samples and values can be had");
		return;
	}
	found(f, "no edge samples, no values: %s", e.text);
	if (rc == -EPERM)
		remedy_setcap(f);
	else
		remedy(f, "# boot a kernel of version 6.2 or later with BPF and its type "
			  "information");
}

/* ---- excursions ---- */

/* Waits for the end of a child; what it exited with, or negative. */
static int exit_of(pid_t child)
{
	int status = 0;

	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return child > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* As the scout does it: not to a child, but to a child of the same parent. 0 or the errno. */
static int try_to_hold(void)
{
	pid_t held = fork(), scout;
	int code;

	if (!held) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	scout = held > 0 ? fork() : -1;
	if (!scout)
		_exit(ptrace(PTRACE_SEIZE, held, 0, 0) < 0 ? errno : 0);
	code = exit_of(scout);
	if (held > 0) {
		kill(held, SIGKILL);
		exit_of(held);
	}
	return code < 0 ? EAGAIN : code;
}

static void remedy_hold(struct finding *f, long scope)
{
	if (scope >= 3)
		remedy(f, "# boot without kernel.yama.ptrace_scope=3");
	else if (has_capability(CAP_SYS_PTRACE))
		remedy(f, "# allow ptrace where this runs (containers: --security-opt "
			  "seccomp=unconfined)");
	else if (scope >= 1)
		remedy(f, "sudo sysctl kernel.yama.ptrace_scope=0  # or run as root");
	else
		remedy_setcap(f);
}

static void check_excursions(struct finding *f)
{
	static const char path[] = "/proc/sys/kernel/yama/ptrace_scope";
	struct excursion *x = NULL;
	struct err e = {0};
	long scope = 0;
	int code = try_to_hold();

	io_read_long(path, &scope);
	if (code) {
		found(f,
			"threads cannot be held (%s; kernel.yama.ptrace_scope is %ld): no record "
			"--excursions",
			strerror(code), scope);
		remedy_hold(f, scope);
		return;
	}
	if (excursion_create(&x, &e)) {
		found(f, "no record --excursions: %s", e.text);
		remedy(f, "# allow memory that is written and executed where this runs");
		return;
	}
	excursion_destroy(x);
	found(f, "threads can be held%s",
		has_capability(CAP_SYS_PTRACE) ? "" : ", those of own programs");
}

/* ---- names ---- */

/* Whether /proc/kallsyms shows addresses; the first lines of it may truly be zero. */
static int kernel_addresses(bool *shown)
{
	FILE *in = fopen("/proc/kallsyms", "re");
	char line[512];

	if (!in)
		return -errno;
	*shown = false;
	while (!*shown && fgets(line, sizeof line, in))
		*shown = strtoull(line, NULL, 16) != 0 && strstr(line, " _text");
	fclose(in);
	return 0;
}

static void check_kernel_symbols(struct finding *f)
{
	long restricted = 0;
	bool shown = false;
	int rc = kernel_addresses(&shown);

	io_read_long("/proc/sys/kernel/kptr_restrict", &restricted);
	if (shown) {
		found(f, "/proc/kallsyms shows addresses (kernel.kptr_restrict is %ld)",
			restricted);
		return;
	}
	if (rc) {
		found(f, "/proc/kallsyms: %s", strerror(-rc));
		remedy(f, "# boot a kernel with CONFIG_KALLSYMS=y");
		return;
	}
	found(f,
		"/proc/kallsyms hides addresses (kernel.kptr_restrict is %ld): the kernel is one "
		"row",
		restricted);
	if (restricted > 0 && has_capability(CAP_SYSLOG))
		remedy(f, "sudo sysctl kernel.kptr_restrict=1");
	else
		remedy(f, "sudo sysctl kernel.kptr_restrict=0 kernel.perf_event_paranoid=1  "
			  "# or run as root");
}

static void check_tracefs(struct finding *f)
{
	static const char *const places[] = {
		"/sys/kernel/tracing/events", "/sys/kernel/debug/tracing/events"};

	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		if (!access(places[i], R_OK | X_OK)) {
			found(f, "tracepoints are in %s", places[i]);
			return;
		}
	}
	if (errno == EACCES) {
		found(f, "tracefs cannot be read: tracepoints are not for this user");
		remedy(f, "sudo mount -o remount,mode=755 /sys/kernel/tracing  # or run as root");
		return;
	}
	found(f, "tracefs is not mounted: no tracepoints");
	remedy(f, "sudo mount -t tracefs tracefs /sys/kernel/tracing");
}

static const char *debuginfod_server(void)
{
	static const char *const servers[][2] = {
		{"ID=debian", "https://debuginfod.debian.net"},
		{"ID=ubuntu", "https://debuginfod.ubuntu.com"},
		{"ID=fedora", "https://debuginfod.fedoraproject.org"},
		{"ID=arch", "https://debuginfod.archlinux.org"},
	};
	struct buf text = {0};
	const char *server = "https://debuginfod.elfutils.org";

	if (!io_read_file(AT_FDCWD, "/etc/os-release", 65536, &text))
		for (size_t i = 0; i < sizeof servers / sizeof *servers; i++) {
			const char *at = strstr(buf_cstr(&text), servers[i][0]);
			if (at && (at == buf_cstr(&text) || at[-1] == '\n'))
				server = servers[i][1];
		}
	buf_deinit(&text);
	return server;
}

static void check_debug_symbols(struct finding *f)
{
	const char *urls = getenv("DEBUGINFOD_URLS");
	bool local = !access("/usr/lib/debug/.build-id", R_OK);

	if (urls && *urls) {
		found(f, "DEBUGINFOD_URLS is %s%s", urls,
			local ? ", and /usr/lib/debug has files" : "");
		return;
	}
	if (local) {
		found(f, "/usr/lib/debug has files");
		return;
	}
	found(f, "no separate debug files: stripped programs have no source lines and few names");
	remedy(f, "export DEBUGINFOD_URLS=%s  # or: sudo apt install PACKAGE-dbgsym",
		debuginfod_server());
}

/* ---- where profiles go ---- */

static void check_space(struct finding *f)
{
	enum { LEAST_MB = 256 };
	static const char *const places[] = {"/var/lib/culprit", "/var/lib"};
	const char *place = !access(places[0], F_OK) ? places[0] : places[1];
	struct statvfs here, daemon;
	uint64_t mb[2];

	if (statvfs(".", &here) || statvfs(place, &daemon)) {
		found(f, "cannot tell the free space: %s", strerror(errno));
		remedy(f, "cd  # to a directory that exists");
		return;
	}
	mb[0] = here.f_bavail * here.f_frsize >> 20;
	mb[1] = daemon.f_bavail * daemon.f_frsize >> 20;
	found(f, "%" PRIu64 " MB free here, %" PRIu64 " MB in %s", mb[0], mb[1], place);
	if (mb[0] < LEAST_MB)
		remedy(f, "culprit record -o FILE  # on another disk");
	if (mb[1] < LEAST_MB)
		remedy(f, "sudo culprit db expire -i %s --size 100M", CULPRIT_SYSTEM_DB);
}

static void check_database(struct finding *f)
{
	const char *path = report_default_input();
	struct store *s;
	struct err e = {0};
	int rc;

	if (access(path, F_OK)) {
		found(f, "none yet; record would make ./%s", CULPRIT_LOCAL_DB);
		if (access(".", W_OK))
			remedy(f, "culprit record -o FILE  # in a directory that you may write to");
		return;
	}
	rc = value_store_open(path, STORE_READ, &s, &e);
	if (!rc) {
		found(f, "%s can be read", path);
		store_close(s);
		return;
	}
	found(f, "%s", e.text);
	if (rc == -EACCES)
		remedy(f,
			"sudo groupadd -f culprit; sudo chgrp culprit %s; sudo chmod 640 %s; sudo "
			"usermod -aG culprit $USER  # then log in anew",
			path, path);
	else
		remedy(f, "mv %s %s.bad", path, path);
}

static void check_daemon(struct finding *f)
{
	struct buf answer = {0};
	struct err e = {0};
	int rc = control_ask(CULPRIT_SYSTEM_DB, "status", &answer, &e);

	buf_deinit(&answer);
	if (!rc || rc == -EACCES || rc == -EPERM) {
		found(f, "runs");
		return;
	}
	found(f, "does not run");
	remedy(f, "sudo culprit daemon start  # or: sudo systemctl enable --now culprit");
}

/* ---- the machine ---- */

static void check_cgroups(struct finding *f)
{
	if (!access("/sys/fs/cgroup/cgroup.controllers", F_OK)) {
		found(f, "version 2");
	} else if (!access("/sys/fs/cgroup/unified/cgroup.procs", F_OK)) {
		found(f, "versions 1 and 2; the version 2 hierarchy is used");
	} else {
		found(f, "no version 2 hierarchy: samples have no cgroup by id");
		remedy(f, "sudo mkdir -p /sys/fs/cgroup/unified && sudo mount -t cgroup2 cgroup2 "
			  "/sys/fs/cgroup/unified");
	}
}

/* Share of CPU time since boot that the hypervisor gave to others; negative when unknown. */
static double stolen_share(void)
{
	enum { STEAL = 7, GUEST = 8 };
	char line[512], *at, *end;
	double sum = 0, steal = 0;

	if (io_read_line(AT_FDCWD, "/proc/stat", line, sizeof line) || strncmp(line, "cpu ", 4))
		return -1;
	/* Guest time is in user time already. */
	at = line + 4;
	for (int i = 0; i < GUEST; i++, at = end) {
		double v = strtod(at, &end);
		if (end == at)
			return -1;
		sum += v;
		if (i == STEAL)
			steal = v;
	}
	return sum > 0 ? steal / sum : 0;
}

static bool is_virtual(void)
{
	struct buf text = {0};
	bool yes = !io_read_file(AT_FDCWD, "/proc/cpuinfo", 16 << 20, &text) &&
		   strstr(buf_cstr(&text), " hypervisor");

	buf_deinit(&text);
	return yes;
}

static void check_steal(struct finding *f)
{
	double share = stolen_share();

	found(f, "%s, %.2f%% of CPU time stolen since boot",
		is_virtual() ? "a virtual machine" : "no hypervisor", share > 0 ? 100 * share : 0);
	if (share > 0.01)
		remedy(f, "# reserve CPUs for this virtual machine: stolen time is charged to "
			  "whatever "
			  "was running");
}

/* Whether a child can have a mount namespace of its own, with rights over it. */
static bool can_mount(int flags)
{
	pid_t child = fork();

	if (!child)
		_exit(unshare(flags) < 0 ||
			(!(flags & CLONE_NEWUSER) && !has_capability(CAP_SYS_ADMIN)));
	return exit_of(child) == 0;
}

/* Edited copies are put over the originals by bind mounts that only the command sees. */
static void check_mounts(struct finding *f)
{
	if (can_mount(CLONE_NEWNS)) {
		found(f, "edited programs and libraries can be put in place of the originals");
	} else if (can_mount(CLONE_NEWUSER | CLONE_NEWNS)) {
		found(f, "edited programs and libraries can be put in place, in a user namespace");
	} else {
		found(f, "no mount namespaces: edited libraries cannot be put in place");
		remedy(f, "sudo sysctl user.max_user_namespaces=10000 "
			  "kernel.unprivileged_userns_clone=1  # or run as root");
	}
}

static const struct check {
	const char *name;
	void (*run)(struct finding *f);
} checks[] = {
	{"pmu", check_pmu},
	{"whole-machine", check_whole_machine},
	{"paranoid", check_paranoid},
	{"sample-rate", check_sample_rate},
	{"bpf", check_bpf},
	{"btf", check_btf},
	{"interpreter", check_interpreter},
	{"excursions", check_excursions},
	{"kernel-symbols", check_kernel_symbols},
	{"tracefs", check_tracefs},
	{"debug-symbols", check_debug_symbols},
	{"mounts", check_mounts},
	{"cgroups", check_cgroups},
	{"steal", check_steal},
	{"space", check_space},
	{"database", check_database},
	{"daemon", check_daemon},
};
enum { NCHECKS = sizeof checks / sizeof *checks };

static void print_json(const struct finding *list)
{
	struct json j;

	json_init(&j, stdout);
	json_open(&j, '{');
	json_key(&j, "checks");
	json_open(&j, '[');
	for (int i = 0; i < NCHECKS; i++) {
		json_open(&j, '{');
		json_kstr(&j, "name", checks[i].name);
		json_kbool(&j, "ok", list[i].ok);
		json_kstr(&j, "found", list[i].found);
		json_kstr(&j, "remedy", list[i].ok ? NULL : list[i].remedy);
		json_close(&j);
	}
	json_close(&j);
	json_close(&j);
}

static void print_text(const struct finding *list)
{
	for (int i = 0; i < NCHECKS; i++) {
		printf("%s%s%s  %-14s  %s\n", list[i].ok ? "" : term_red(),
			list[i].ok ? "ok" : "no", list[i].ok ? "" : term_reset(), checks[i].name,
			list[i].found);
		if (!list[i].ok)
			printf("    %-14s  %s-> %s%s\n", "", term_bold(), list[i].remedy,
				term_reset());
	}
}

static void print_event(void *arg, const char *name)
{
	cmd_put(arg, name);
	fputc('\n', arg);
}

static void diagnose(bool json)
{
	struct finding list[NCHECKS];

	for (int i = 0; i < NCHECKS; i++) {
		list[i] = (struct finding){.ok = true};
		checks[i].run(&list[i]);
	}
	if (json)
		print_json(list);
	else
		print_text(list);
}

int cmd_doctor(int argc, char **argv)
{
	static const struct option options[] = {{"json", no_argument, NULL, 'j'},
		{"events", no_argument, NULL, 'e'}, {"help", no_argument, NULL, 'h'}, {0}};
	bool json = false, events = false;
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
		if (c == 'h')
			return cmd_help_text("doctor");
		if (c != 'j' && c != 'e')
			return cmd_bad_option("doctor", c, argv);
		json |= c == 'j';
		events |= c == 'e';
	}
	if (optind < argc)
		return cmd_usage("doctor", "takes no '%s'", argv[optind]);
	if (json && events)
		return cmd_usage("doctor", "--events goes without --json");
	if (events)
		event_each(print_event, stdout);
	else
		diagnose(json);
	return EXIT_DONE;
}
