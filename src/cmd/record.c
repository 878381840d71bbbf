/* culprit record: sample a command, processes or the machine into a database. */

#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/mem.h"
#include "cmd/cmd.h"
#include "cmd/record_edited.h"
#include "cmd/target.h"
#include "collect/command.h"
#include "edit/linked.h"
#include "values/upcall.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* So long a recording may end a little later for what it did not wait for when it began. */
#define LONG_NS 4000000000ull

struct recording {
	struct target target;
	struct edited_choice edited;
	struct upcall *upcall;
	double delay_s;
	bool quiet, help;
	char **command;
	pid_t child;
	int child_status;
	bool child_ended;
	bool whole; /* nothing but the command is sampled, from its exec on */
	int go;     /* closing it lets the child exec */
	int failed; /* carries the errno of an exec that failed */
	int signals;
};

enum {
	RECORD_EXACT = 0x300,
	RECORD_PATHS,
	RECORD_CONTEXT,
	RECORD_METRIC,
	RECORD_REFINE,
	RECORD_FULL,
	RECORD_LIBS,
	RECORD_BURSTS,
	RECORD_ALL_CHECKS,
	RECORD_BORING,
	RECORD_NO_OBJECTS,
	RECORD_CHECKS,
	RECORD_PAYLOAD,
	RECORD_ATOMIC,
	RECORD_PER_THREAD,
	RECORD_COUNTED,
};

static const struct option long_options[] = {
	TARGET_LONG,
	{"exact", no_argument, NULL, RECORD_EXACT},
	{"paths", no_argument, NULL, RECORD_PATHS},
	{"context", no_argument, NULL, RECORD_CONTEXT},
	{"bursts", optional_argument, NULL, RECORD_BURSTS},
	{"all-checks", no_argument, NULL, RECORD_ALL_CHECKS},
	{"boring", required_argument, NULL, RECORD_BORING},
	{"no-objects", no_argument, NULL, RECORD_NO_OBJECTS},
	{"checks", required_argument, NULL, RECORD_CHECKS},
	{"payload", required_argument, NULL, RECORD_PAYLOAD},
	{"metric", required_argument, NULL, RECORD_METRIC},
	{"refine", required_argument, NULL, RECORD_REFINE},
	{"full", no_argument, NULL, RECORD_FULL},
	{"libs", required_argument, NULL, RECORD_LIBS},
	{"atomic", no_argument, NULL, RECORD_ATOMIC},
	{"per-thread", no_argument, NULL, RECORD_PER_THREAD},
	{"counted", required_argument, NULL, RECORD_COUNTED},
	{"delay", required_argument, NULL, 'D'},
	{"quiet", no_argument, NULL, 'q'},
	{"help", no_argument, NULL, 'h'},
	{0},
};

/* Counting needs no sampling: what says how to sample makes no sense with it. */
static int check_edited(const struct recording *r)
{
	const struct target *t = &r->target;
	int status = edited_check(&r->edited, r->command);

	if (!status && (t->all || t->pids.n || t->tids.n || t->cgroup || t->values || t->upcall ||
			       t->events.n || t->excursions > 0 || r->delay_s > 0))
		return cmd_usage("record",
			"--exact, --paths, --context and --bursts do not sample: leave out -a, "
			"-p, -t, -G, -e, -D, --excursions and --values");
	return status;
}

/* 0 when it is an option about edited copies. */
static int edited_option(struct edited_choice *c, int option, const char *value)
{
	switch (option) {
	case RECORD_EXACT:
		c->exact = true;
		return 0;
	case RECORD_PATHS:
		c->paths = true;
		return 0;
	case RECORD_CONTEXT:
		c->context = true;
		return 0;
	case RECORD_BURSTS:
		c->bursts = true;
		c->rates = value;
		return 0;
	case RECORD_ALL_CHECKS:
		c->all_checks = true;
		return 0;
	case RECORD_BORING:
		c->boring = value;
		return 0;
	case RECORD_NO_OBJECTS:
		c->no_objects = true;
		return 0;
	case RECORD_CHECKS:
		c->checks = value;
		return 0;
	case RECORD_PAYLOAD:
		c->payload = value;
		return 0;
	case RECORD_METRIC:
		*vec_add(&c->metrics) = value;
		return 0;
	case RECORD_REFINE:
		c->refine = value;
		return 0;
	case RECORD_FULL:
		c->full = true;
		return 0;
	case RECORD_LIBS:
		*vec_add(&c->libs) = value;
		return 0;
	case RECORD_COUNTED:
		c->counted = value;
		return 0;
	case RECORD_ATOMIC:
		c->atomic = true;
		return 0;
	case RECORD_PER_THREAD:
		c->per_thread = true;
		return 0;
	}
	return -1;
}

static int parse(struct recording *r, int argc, char **argv)
{
	struct target *t = &r->target;
	int option, status;

	t->verb = "record";
	t->prices = 4;
	t->database = CULPRIT_LOCAL_DB;
	opterr = 0;
	/* "+": what follows the first word that is no option belongs to the command. */
	while ((option = getopt_long(argc, argv, "+:" TARGET_SHORT "D:qh", long_options, NULL)) !=
		-1) {
		double ms;

		status = target_option(t, option, optarg);
		if (status > 0)
			return status;
		if (status == 0 || !edited_option(&r->edited, option, optarg))
			continue;
		switch (option) {
		case 'D':
			if (parse_real(optarg, 0, 1e9, &ms) < 0)
				return cmd_usage("record", "-D: '%s' is no time in ms", optarg);
			r->delay_s = ms / 1000;
			break;
		case 'q':
			r->quiet = true;
			break;
		case 'h':
			r->help = true;
			return 0;
		default:
			return cmd_bad_option("record", option, argv);
		}
	}
	r->command = optind < argc ? argv + optind : NULL;
	if (edited_wanted(&r->edited))
		return check_edited(r);
	if (!r->command && !t->all && !t->pids.n && !t->tids.n && !t->cgroup)
		return cmd_usage("record", "nothing to sample: give a command, -p, -t, -G or -a");
	if (t->upcall && !r->command)
		return cmd_usage("record", "--values=upcall needs a command to load itself into");
	if (t->all && (t->pids.n || t->tids.n))
		return cmd_usage("record", "-a samples everything: leave out -p and -t");
	return 0;
}

/* Starts the command up to the moment before its exec. */
static int prepare_command(struct recording *r, struct err *e)
{
	int go[2], failed[2];

	if (pipe2(go, O_CLOEXEC) < 0 || pipe2(failed, O_CLOEXEC) < 0)
		return err_errno(e, -errno, "cannot start '%s'", r->command[0]);
	r->child = fork();
	if (r->child < 0)
		return err_errno(e, -errno, "cannot start '%s'", r->command[0]);
	if (r->child == 0) {
		sigset_t none;
		char byte;

		close(go[1]);
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		if (read(go[0], &byte, 1) != 1)
			_exit(127); /* the recorder gave up */
		if (r->upcall)
			environ = upcall_environment(r->upcall, environ);
		execvp(r->command[0], r->command);
		if (write(failed[1], &errno, sizeof errno) < 0)
			_exit(126);
		_exit(127);
	}
	close(go[0]);
	close(failed[1]);
	r->go = go[1];
	r->failed = failed[0];
	return 0;
}

/* Lets the command run; when it cannot be executed, says why. */
static int release_command(struct recording *r, struct err *e)
{
	int code = 0;

	if (write(r->go, "", 1) != 1)
		return err_errno(e, -errno, "cannot start '%s'", r->command[0]);
	if (read(r->failed, &code, sizeof code) != sizeof code)
		return 0;
	waitpid(r->child, NULL, 0);
	r->child_ended = true;
	if (code == ENOENT)
		return err_set(e, -ENOENT, "%s: no such command", r->command[0]);
	return err_errno(e, -code, "cannot run '%s'", r->command[0]);
}

/*
 * The kernel ends a user's sampling when a program is executed that he may not read (or that
 * changes its user): /proc/PID/exe is closed to him then, too.
 */
static void say_when_out_of_reach(const struct recording *r)
{
	_cleanup_free_ char *link = xasprintf("/proc/%d/exe", r->child);
	char target[1];

	if (geteuid() != 0 && readlink(link, target, sizeof target) < 0 && errno == EACCES)
		cmd_note("%s: the kernel lets nobody but root sample a program that he cannot read "
			 "or that changes its user; there will be no samples of it",
			r->command[0]);
}

static int catch_signals(struct recording *r, struct err *e)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	r->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return r->signals < 0 ? err_errno(e, -errno, "cannot wait for signals") : 0;
}

/* Whether any process or thread that was asked for by number still runs. */
static bool targets_alive(const struct target *t)
{
	if (!t->pids.n && !t->tids.n)
		return true;
	vec_each (pid, &t->pids)
		if (kill(*pid, 0) == 0 || errno == EPERM)
			return true;
	vec_each (tid, &t->tids)
		if (syscall(SYS_tkill, *tid, 0) == 0 || errno == EPERM)
			return true;
	return false;
}

/* Reads pending signals; true when it is time to stop. */
static bool told_to_stop(struct recording *r)
{
	struct signalfd_siginfo info;
	bool stop = false;

	while (read(r->signals, &info, sizeof info) == sizeof info) {
		if (info.ssi_signo != SIGCHLD) {
			stop = true;
			if (r->child > 0 && !r->child_ended && info.ssi_signo != SIGINT)
				kill(r->child, info.ssi_signo);
		}
	}
	if (r->child > 0 && !r->child_ended &&
		waitpid(r->child, &r->child_status, WNOHANG) == r->child) {
		r->child_ended = true;
		stop = true;
	}
	return stop;
}

static int run(struct recording *r, struct collector *c, struct err *e)
{
	struct pollfd fds[] = {
		{.fd = collector_fd(c), .events = POLLIN}, {.fd = r->signals, .events = POLLIN}};
	uint64_t delay_until = io_clock_ns(CLOCK_MONOTONIC) + r->delay_s * 1e9;

	for (;;) {
		bool waiting = r->delay_s > 0;
		int timeout = -1;

		if (waiting) {
			int64_t left = delay_until - io_clock_ns(CLOCK_MONOTONIC);

			if (left <= 0) {
				int code = collector_enable(c, e);

				if (code < 0)
					return code;
				r->delay_s = 0;
			} else {
				timeout = left / 1000000 + 1;
			}
		}
		if (poll(fds, 2, timeout) < 0 && errno != EINTR)
			return err_errno(e, -errno, "cannot wait for samples");
		if (told_to_stop(r))
			return 0;
		if (fds[0].revents)
			collector_turn(c);
		if (!r->child && !targets_alive(&r->target))
			return 0;
	}
}

/* A line an event: what came together, at which rate and cost, and how much of it is certain. */
static void say_accounting(const struct recording *r, const struct collector_event *ev,
	const struct collector_status *s)
{
	struct buf line = {0};
	struct stat st = {0};

	buf_printf(&line,
		"%s: %" PRIu64 " samples, %" PRIu64 " unknown, %" PRIu64 " lost, %" PRIu64
		" throttled, %" PRIu64 " missed",
		ev->name, ev->samples, ev->unknown, ev->lost, ev->throttled, ev->missed);
	if (s->rate > 0)
		buf_printf(&line, "; %.0f/s", s->rate);
	if (s->cost > 0)
		buf_printf(&line, ", %.1f us each", s->cost * 1e6);
	if (s->budget > 0)
		buf_printf(&line, ", budget %g%%", s->budget * 100);
	if (s->anchors_seen)
		buf_printf(&line, "; %" PRIu64 " pairs seen, %" PRIu64 " kept, %" PRIu64 " dropped",
			s->anchors_seen, s->anchors_kept, s->driver.pairs_dropped);
	stat(r->target.database, &st);
	cmd_note("%s -> %s (%lld KB)", buf_cstr(&line), r->target.database,
		(long long)(st.st_size + 1023) / 1024);
	buf_deinit(&line);
}

/* How many samples have a call path, and how often paths were right where that was looked at. */
static void say_paths(const struct contexts_statistics *p)
{
	double all = (double)(p->unique + p->ranked + p->walked + p->unknown + p->refused);
	double precision = call_map_precision(p->verdicts);
	uint64_t walked = 0, judged = 0;

	for (unsigned i = 0; i < WALK_ENDS; i++)
		walked += p->ends[i];
	for (unsigned i = 0; i < PATH_VERDICTS; i++)
		judged += p->verdicts[i];
	if (!(all > 0))
		return;
	if (precision >= 0)
		cmd_note("call paths: %.2f%% of the samples, %.2f%% as the likeliest of several; "
			 "%" PRIu64 " stacks looked at, %" PRIu64
			 " of them at random: %.1f%% were named right before",
			100 * (double)(p->unique + p->ranked + p->walked) / all,
			100 * (double)p->ranked / all, walked, judged, 100 * precision);
	else
		cmd_note("call paths: %.2f%% of the samples, %.2f%% as the likeliest of several; "
			 "%" PRIu64 " stacks looked at",
			100 * (double)(p->unique + p->ranked + p->walked) / all,
			100 * (double)p->ranked / all, walked);
	if (p->training.taught)
		cmd_note("call paths: %" PRIu64 " contexts that were counted are known by their "
			 "heights, %" PRIu64 " are not",
			p->training.taught, p->training.left + p->training.unmet);
}

static void say_excursions(const struct scout_statistics *x)
{
	if (x->windows || x->late)
		cmd_note("excursions: %" PRIu64 " of %.0f instructions, %.3f s of holding threads; "
			 "%" PRIu64 " came too late",
			x->windows, x->windows ? (double)x->instructions / (double)x->windows : 0,
			(double)x->held_ns / 1e9, x->late);
	if (x->refused)
		cmd_note("excursions: %" PRIu64 " refused: threads are traced by others, or need "
			 "CAP_SYS_PTRACE (kernel.yama.ptrace_scope)",
			x->refused);
	if (x->foreign)
		cmd_note("excursions: %" PRIu64 " left alone: 32-bit code", x->foreign);
	if (x->ended)
		cmd_note("excursions: the process that goes on them has ended before its time; "
			 "there were none from then on");
}

/* Closes the database before its size is told: what was written is folded in then. */
static void end_and_account(const struct recording *r, struct collector *c)
{
	const struct collector_event *live;
	size_t n = collector_events(c, &live);
	_cleanup_free_ struct collector_event *events = xmemdup(live, n * sizeof *live);
	struct collector_status s;

	collector_status(c, &s);
	target_say_missed(&r->target, c);
	collector_destroy(c);
	for (size_t i = 0; i < n && !r->quiet; i++) {
		say_accounting(r, &events[i], &s);
		s.anchors_seen = 0; /* pairs are of the first event */
	}
	if (!r->quiet)
		say_excursions(&s.excursions);
	if (s.has_paths && !r->quiet)
		say_paths(&s.paths);
}

static void say_command_status(const struct recording *r)
{
	if (!r->child_ended || r->child_status == 0)
		return;
	if (WIFSIGNALED(r->child_status))
		cmd_note("%s was ended by signal %d (%s)", r->command[0], WTERMSIG(r->child_status),
			strsignal(WTERMSIG(r->child_status)));
	else
		cmd_note("%s exited with %d", r->command[0], WEXITSTATUS(r->child_status));
}

/* The command's process is the target, unless the whole machine or others were asked for. */
static void aim_at_command(struct recording *r)
{
	struct target *t = &r->target;

	if (!r->command || t->all || t->cgroup || t->pids.n || t->tids.n)
		return;
	*vec_add(&t->pids) = r->child;
	t->options.sampling.target.pids = t->pids.p;
	t->options.sampling.target.npids = t->pids.n;
	t->options.sampling.target.enable_on_exec = r->whole = r->delay_s == 0;
}

/* What was sampled from its first instruction to its exit can be tied to runs that were counted.
 */
static void tell_command(const struct recording *r, struct collector *c, char **program)
{
	if (r->whole && r->child_ended && WIFEXITED(r->child_status) &&
		!linked_program(r->command[0], program, NULL))
		collector_ran(c, *program, command_hash(r->command));
}

static int record(struct recording *r, struct err *e)
{
	struct collector *c = NULL;
	struct collector_options *o = &r->target.options;
	uint64_t start = io_clock_ns(CLOCK_MONOTONIC);
	_cleanup_free_ char *program = NULL;
	int code = catch_signals(r, e);

	if (code == 0 && r->command)
		code = prepare_command(r, e);
	if (code < 0)
		return code;
	aim_at_command(r);
	o->delayed = r->delay_s > 0;
	code = collector_create(o, &c, e);
	if (code == 0)
		code = collector_start(c, e);
	if (code == 0 && !r->quiet)
		target_say_limits(&r->target, c);
	if (code == 0 && r->command) {
		code = release_command(r, e);
		if (code < 0)
			collector_discard(c);
		else
			say_when_out_of_reach(r);
	}
	if (code == 0)
		code = run(r, c, e);
	if (code == 0 && io_clock_ns(CLOCK_MONOTONIC) - start > LONG_NS)
		target_calibrate_skid(&r->target);
	if (code == 0)
		tell_command(r, c, &program);
	if (c && code == 0)
		code = collector_finish(c, e);
	if (code < 0) {
		collector_destroy(c);
		return code;
	}
	if (!r->quiet)
		say_command_status(r);
	end_and_account(r, c);
	return 0;
}

static int prepare_upcalls(struct recording *r, struct err *e)
{
	struct target *t = &r->target;
	int code;

	if (!t->upcall)
		return 0;
	code = upcall_prepare(
		&(struct upcall_options){.plugins = t->plugins, .nplugins = t->nplugins},
		&r->upcall, e);
	t->options.upcall = r->upcall;
	return code;
}

int cmd_record(int argc, char **argv)
{
	struct recording r = {.go = -1, .failed = -1, .signals = -1};
	struct err e = {0};
	int status = parse(&r, argc, argv);
	bool sampled = !r.help && !edited_wanted(&r.edited);

	if (r.help)
		status = cmd_help_text("record");
	else if (status == 0 && sampled)
		status = target_finish(&r.target);
	else if (status == 0)
		status = record_edited(&r.edited, r.command, r.target.database, r.quiet);
	if (status == 0 && sampled) {
		struct target *t = &r.target;

		/* By pid unless the whole machine is sampled, where short processes are too many.
		 */
		t->options.per_process |= !t->all && !t->cgroup;
		/* What is not known of call paths should be asked for while the program runs. */
		t->options.drain_s = t->contexts ? 0.5 : 5;
		t->options.flush_s = 60;
		if (prepare_upcalls(&r, &e) < 0 || record(&r, &e) < 0)
			status = cmd_fail(&e);
	}
	if (r.go >= 0)
		close(r.go);
	if (r.failed >= 0)
		close(r.failed);
	if (r.signals >= 0)
		close(r.signals);
	if (r.child > 0 && !r.child_ended) {
		if (status != 0)
			kill(r.child, SIGTERM);
		waitpid(r.child, NULL, 0);
	}
	upcall_destroy(r.upcall);
	vec_deinit(&r.edited.libs);
	vec_deinit(&r.edited.metrics);
	target_deinit(&r.target);
	return status;
}
