/* culprit daemon: the same collection as record, always on. */

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "cmd/cmd.h"
#include "cmd/daemon_status.h"
#include "cmd/target.h"
#include "collect/control.h"
#include "collect/privilege.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <libgen.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

struct daemon {
	struct target target;
	bool foreground, json, help;
	const char *label;
	struct collector *collector;
	int control, signals;
	int stopper; /* who asked to stop, and waits until it is done */
	int ready;   /* the starter waits here for "" or the reason of a failure */
};

enum { DAEMON_DRAIN = 0x300, DAEMON_FLUSH, DAEMON_KEEP, DAEMON_SIZE, DAEMON_JSON };

static const struct option long_options[] = {
	TARGET_LONG,
	{"foreground", no_argument, NULL, 'f'},
	{"drain", required_argument, NULL, DAEMON_DRAIN},
	{"flush", required_argument, NULL, DAEMON_FLUSH},
	{"keep-days", required_argument, NULL, DAEMON_KEEP},
	{"keep-size", required_argument, NULL, DAEMON_SIZE},
	{"json", no_argument, NULL, DAEMON_JSON},
	{"help", no_argument, NULL, 'h'},
	{0},
};

static int own_option(struct daemon *d, int option, char **argv)
{
	struct collector_options *o = &d->target.options;

	switch (option) {
	case 'f':
		d->foreground = true;
		return 0;
	case DAEMON_DRAIN:
		if (parse_real(optarg, 0.1, 3600, &o->drain_s) < 0)
			return cmd_usage("daemon", "--drain: '%s' is no time in seconds", optarg);
		return 0;
	case DAEMON_FLUSH:
		if (parse_real(optarg, 0.1, 86400, &o->flush_s) < 0)
			return cmd_usage("daemon", "--flush: '%s' is no time in seconds", optarg);
		return 0;
	case DAEMON_KEEP:
		if (parse_real(optarg, 0, 36500, &o->keep_days) < 0)
			return cmd_usage(
				"daemon", "--keep-days: '%s' is no number of days", optarg);
		return 0;
	case DAEMON_SIZE:
		if (parse_size(optarg, &o->keep_bytes) < 0)
			return cmd_usage(
				"daemon", "--keep-size: '%s' is no size (512M, 2G)", optarg);
		return 0;
	case DAEMON_JSON:
		d->json = true;
		return 0;
	case 'h':
		d->help = true;
		return 0;
	}
	return cmd_bad_option("daemon", option, argv);
}

static int parse(struct daemon *d, int argc, char **argv)
{
	struct target *t = &d->target;
	int option;

	t->verb = "daemon";
	t->prices = 12; /* it runs for weeks at what they say */
	t->database = CULPRIT_SYSTEM_DB;
	t->options = (struct collector_options){
		.drain_s = 5, .flush_s = 60, .keep_days = 30, .keep_bytes = 1ull << 30};
	opterr = 0;
	while ((option = getopt_long(argc, argv, ":" TARGET_SHORT "fh", long_options, NULL)) !=
		-1) {
		int status = target_option(t, option, optarg);

		if (status < 0)
			status = own_option(d, option, argv);
		if (status > 0)
			return status;
	}
	if (t->upcall)
		return cmd_usage("daemon", "--values=upcall is for commands: use record");
	if (t->pids.n || t->tids.n)
		return cmd_usage(
			"daemon", "the daemon samples the machine: for -p and -t use record");
	return 0;
}

/* ---- answering ---- */

/* Of samples, how their call paths are known; of stacks, what became of them. */
static void put_paths(const struct collector_status *s, struct buf *b)
{
	const struct contexts_statistics *p = &s->paths;
	uint64_t all = p->unique + p->ranked + p->walked + p->unknown + p->refused;
	double precision = call_map_precision(p->verdicts);
	unsigned long long judged = 0;

	for (unsigned i = 0; i < PATH_VERDICTS; i++)
		judged += p->verdicts[i];
	buf_printf(b, "paths_unique %llu\npaths_ranked %llu\npaths_walked %llu\n",
		(unsigned long long)p->unique, (unsigned long long)p->ranked,
		(unsigned long long)p->walked);
	buf_printf(b, "paths_unknown %llu\npaths_unknown_share %.17g\n",
		(unsigned long long)(p->unknown + p->refused),
		all ? (double)(p->unknown + p->refused) / (double)all : 0);
	buf_printf(b, "paths_judged %llu\n", judged);
	if (precision >= 0)
		buf_printf(b, "paths_precision %.17g\n", precision);
	buf_printf(b,
		"stacks %llu\ntrails %llu\nstacks_held %llu\nstacks_lost %llu\nstacks_gone %llu\nheights "
		"%llu\nmap_bytes %zu\n",
		(unsigned long long)s->driver.stacks, (unsigned long long)s->driver.trails,
		(unsigned long long)s->driver.stacks_held,
		(unsigned long long)s->driver.stacks_lost,
		(unsigned long long)s->driver.stacks_gone, (unsigned long long)p->heights,
		p->bytes);
}

static void put_status(struct daemon *d, struct buf *b)
{
	struct collector_status s;

	collector_status(d->collector, &s);
	buf_printf(b, "pid %d\nsince %.6f\nrate %.17g\nbudget %.17g\ncost %.17g\nshare %.17g\n",
		getpid(), s.since / 1e6, s.rate, s.budget, s.cost, s.share);
	buf_printf(b, "samples %llu\nunknown %llu\nlost %llu\nthrottled %llu\nmissed %llu\n",
		(unsigned long long)s.total.samples, (unsigned long long)s.total.unknown,
		(unsigned long long)s.total.lost, (unsigned long long)s.total.throttled,
		(unsigned long long)s.total.missed);
	buf_printf(b, "rss %zu\nmaps %zu\nbpf %d\n", s.rss, s.maps, s.bpf);
	buf_printf(b, "hits %llu\nevictions %llu\ndropped %llu\nbpf_runs %llu\nbpf_run_ns %llu\n",
		(unsigned long long)s.driver.hits, (unsigned long long)s.driver.evictions,
		(unsigned long long)s.driver.dropped, (unsigned long long)s.driver.bpf_runs,
		(unsigned long long)s.driver.bpf_run_ns);
	buf_printf(b, "bursts %llu\ninterpreted %llu\ninterpreting %.17g\nwithheld %llu\n",
		(unsigned long long)s.driver.shadow.bursts,
		(unsigned long long)s.driver.shadow.steps, s.interpreting,
		(unsigned long long)s.driver.shadow.withheld);
	buf_printf(b, "bursts_dropped %llu\nbursts_wrong %llu\nvalues %d\nno_bursts %s\n",
		(unsigned long long)s.driver.shadow.dropped, (unsigned long long)s.wrong,
		d->target.values, s.no_bursts);
	buf_printf(b, "anchors_begun %llu\nanchors_lapsed %llu\nanchors_dropped %llu\n",
		(unsigned long long)s.driver.pairs_begun, (unsigned long long)s.driver.pairs_lapsed,
		(unsigned long long)s.driver.pairs_dropped);
	buf_printf(b, "anchors_seen %llu\nanchors_kept %llu\n", (unsigned long long)s.anchors_seen,
		(unsigned long long)s.anchors_kept);
	if (s.has_paths)
		put_paths(&s, b);
	buf_printf(b, "flushes %llu\nfailed_flushes %llu\nfailure %s\n",
		(unsigned long long)s.flushes, (unsigned long long)s.failed_flushes,
		s.last_failure);
}

static void answer_and_close(int client, const struct buf *text, const struct err *e)
{
	struct buf answer = {0};

	if (e->code < 0)
		buf_printf(&answer, "error %d %s\n", e->code, e->text);
	else
		buf_printf(&answer, "ok\n");
	if (e->code == 0 && text)
		buf_put(&answer, text->p, text->n);
	send(client, answer.p, answer.n, MSG_NOSIGNAL);
	close(client);
	buf_deinit(&answer);
}

/* Serves one request; true when it is the last, which is answered when all is done. */
static bool serve(struct daemon *d)
{
	char request[256];
	int client = control_accept(d->control, request, sizeof request);
	struct err e = {0};
	struct buf text = {0};

	if (client < 0)
		return false;
	if (strcmp(request, "stop") == 0) {
		d->stopper = client;
		return true;
	}
	if (strcmp(request, "status") == 0)
		put_status(d, &text);
	else if (strcmp(request, "flush") == 0)
		collector_flush(d->collector, &e);
	else if (strncmp(request, "epoch", 5) == 0)
		collector_epoch(d->collector, request[5] == ' ' ? request + 6 : NULL, &e);
	else
		err_set(&e, -EINVAL, "the daemon does not know '%s'", request);
	answer_and_close(client, &text, &e);
	buf_deinit(&text);
	return false;
}

/* ---- running ---- */

/* A group "culprit", where an administrator made one, may read. */
static void share_with_group(const char *path, mode_t mode)
{
	struct group *g = geteuid() == 0 ? getgrnam("culprit") : NULL;

	if (g && chown(path, -1, g->gr_gid) == 0)
		chmod(path, mode);
}

/* The default database's folder is made on first use; systemd may have made it, without the group. */
static int make_folder(const char *database, struct err *e)
{
	_cleanup_free_ char *copy = xstrdup(database);
	const char *folder = dirname(copy);
	bool made = mkdir(folder, 0700) == 0;

	if (!made && errno != EEXIST)
		return err_errno(e, -errno, "cannot make the folder %s", folder);
	if (made || strcmp(database, CULPRIT_SYSTEM_DB) == 0)
		share_with_group(folder, 0750);
	return 0;
}

/* The log's files take their modes from the database, but these may be there already. */
static void share_database(const char *database)
{
	static const char *const parts[] = {"", "-wal", "-shm"};

	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		_cleanup_free_ char *path = xasprintf("%s%s", database, parts[i]);

		share_with_group(path, 0640);
	}
}

static int set_up(struct daemon *d, struct err *e)
{
	struct target *t = &d->target;
	sigset_t set;
	int code;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	d->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (d->signals < 0)
		return err_errno(e, -errno, "cannot wait for signals");
	code = make_folder(t->database, e);
	if (code == 0)
		code = control_listen(t->database, &d->control, e);
	if (code == 0)
		code = collector_create(&t->options, &d->collector, e);
	if (code == 0)
		code = collector_start(d->collector, e);
	if (code == 0)
		share_database(t->database);
	if (code == 0)
		target_say_limits(t, d->collector);
	if (code == 0)
		code = privilege_drop(e);
	return code;
}

/* SIGHUP asks for a flush, as an administrator expects of a daemon; the others end it. */
static bool signalled(struct daemon *d)
{
	struct signalfd_siginfo info;
	bool stop = false;

	while (read(d->signals, &info, sizeof info) == sizeof info) {
		if (info.ssi_signo == SIGHUP)
			collector_flush(d->collector, NULL);
		else
			stop = true;
	}
	return stop;
}

static int loop(struct daemon *d, struct err *e)
{
	struct pollfd fds[] = {{.fd = collector_fd(d->collector), .events = POLLIN},
		{.fd = d->signals, .events = POLLIN}, {.fd = d->control, .events = POLLIN}};

	for (;;) {
		if (poll(fds, 3, -1) < 0 && errno != EINTR)
			return err_errno(e, -errno, "cannot wait for samples");
		if (fds[0].revents)
			collector_turn(d->collector);
		if ((fds[1].revents && signalled(d)) || (fds[2].revents && serve(d)))
			return collector_finish(d->collector, e);
	}
}

/* Tells the starter how set-up went, and lets go of its terminal. */
static void report_ready(struct daemon *d, const struct err *e)
{
	int null;

	if (d->ready < 0)
		return;
	if (e->code && write(d->ready, e, sizeof *e) < 0)
		_exit(EXIT_MACHINE);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	dup2(null, 0);
	dup2(null, 1);
	dup2(null, 2);
	close(d->ready);
	d->ready = -1;
}

/*
 * Leaves the starter's session. The grandchild returns 0; the starter learns how set-up went and
 * returns -1 with *status filled.
 */
static int detach(struct daemon *d, int *status)
{
	int p[2];
	struct err e = {0};

	if (pipe2(p, O_CLOEXEC) < 0) {
		err_errno(&e, -errno, "cannot start the daemon");
		*status = cmd_fail(&e);
		return -1;
	}
	if (fork() > 0) {
		close(p[1]);
		*status = read(p[0], &e, sizeof e) == sizeof e ? cmd_fail(&e) : EXIT_DONE;
		if (*status == EXIT_DONE)
			cmd_note("the daemon runs; 'culprit daemon status' shows how");
		return -1;
	}
	setsid();
	if (fork() > 0)
		_exit(0);
	close(p[0]);
	d->ready = p[1];
	return chdir("/");
}

static void make_absolute(struct daemon *d)
{
	if (d->target.database[0] != '/')
		d->target.database = xasprintf("%s/%s", get_current_dir_name(), d->target.database);
	d->target.options.database = d->target.database;
}

static int start(struct daemon *d)
{
	struct target *t = &d->target;
	struct buf answer = {0};
	struct err e = {0};
	int status, code;

	code = control_ask(t->database, "status", &answer, NULL);
	buf_deinit(&answer);
	if (code == 0) {
		err_set(&e, -EADDRINUSE,
			"a daemon for %s runs already; 'culprit daemon stop' ends it", t->database);
		return cmd_fail(&e);
	}
	t->all = !t->cgroup;
	status = target_finish(t);
	if (status)
		return status;
	t->options.label = d->label;
	make_absolute(d);
	if (!d->foreground && detach(d, &status) < 0)
		return status;
	code = set_up(d, &e);
	report_ready(d, &e);
	if (code == 0)
		code = loop(d, &e);
	control_close(t->database, d->control);
	collector_destroy(d->collector);
	if (d->stopper >= 0)
		answer_and_close(d->stopper, NULL, &e);
	return code < 0 ? cmd_fail(&e) : EXIT_DONE;
}

/* ---- asking ---- */

static int ask(struct daemon *d, const char *request)
{
	struct buf answer = {0};
	struct err e = {0};
	int code = control_ask(d->target.database, request, &answer, &e);

	buf_deinit(&answer);
	return code < 0 ? cmd_fail(&e) : EXIT_DONE;
}

static int ask_epoch(struct daemon *d)
{
	_cleanup_free_ char *request =
		d->label ? xasprintf("epoch %s", d->label) : xstrdup("epoch");

	return ask(d, request);
}

int cmd_daemon(int argc, char **argv)
{
	struct daemon d = {.control = -1, .signals = -1, .ready = -1, .stopper = -1};
	int status = parse(&d, argc, argv);
	const char *what = optind < argc ? argv[optind] : NULL;

	if (d.help)
		return cmd_help_text("daemon");
	if (status)
		return status;
	if (what && optind + 1 < argc)
		d.label = argv[optind + 1];
	if (!what)
		status = cmd_usage("daemon", "say what: start, stop, status, flush or epoch");
	else if (strcmp(what, "start") == 0)
		status = start(&d);
	else if (strcmp(what, "status") == 0)
		status = daemon_show_status(d.target.database, d.json);
	else if (strcmp(what, "stop") == 0 || strcmp(what, "flush") == 0)
		status = ask(&d, what);
	else if (strcmp(what, "epoch") == 0)
		status = ask_epoch(&d);
	else
		status = cmd_usage(
			"daemon", "'%s' is none of start, stop, status, flush, epoch", what);
	target_deinit(&d.target);
	return status;
}
