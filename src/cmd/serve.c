/*
 * culprit serve: all reports in a browser.
 */
#include "base/err.h"
#include "base/io.h"
#include "base/mem.h"
#include "cmd/cmd.h"
#include "store/store.h"
#include "web/access.h"
#include "web/web.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>
#include <unistd.h>

struct serving {
	struct web_options web;
	const char *token_file;
	name_list databases, hosts;
	char token[256], program[PATH_MAX];
};

/* ---- options ---- */

enum { SERVE_LISTEN = 1000, SERVE_TOKEN, SERVE_HOST };

static int take_option(struct serving *s, int c, const char *value)
{
	uint64_t port;

	switch (c) {
	case 'i':
		*vec_add(&s->databases) = value;
		return 0;
	case 'P':
		if (parse_uint(value, 0, UINT16_MAX, &port))
			return cmd_usage(
				"serve", "--port takes a number up to 65535, not '%s'", value);
		s->web.port = (uint16_t)port;
		return 0;
	case SERVE_LISTEN:
		s->web.address = value;
		return 0;
	case SERVE_TOKEN:
		s->token_file = value;
		return 0;
	default:
		*vec_add(&s->hosts) = value;
		return 0;
	}
}

static int parse(struct serving *s, int argc, char **argv)
{
	static const struct option options[] = {{"input", required_argument, NULL, 'i'},
		{"port", required_argument, NULL, 'P'},
		{"listen", required_argument, NULL, SERVE_LISTEN},
		{"token-file", required_argument, NULL, SERVE_TOKEN},
		{"host", required_argument, NULL, SERVE_HOST}, {"help", no_argument, NULL, 'h'},
		{0}};
	int c, rc;

	opterr = 0;
	while ((c = getopt_long(argc, argv, ":i:P:h", options, NULL)) != -1) {
		if (c == 'h')
			return -1;
		if (c == '?' || c == ':')
			return cmd_bad_option("serve", c, argv);
		rc = take_option(s, c, optarg);
		if (rc)
			return rc;
	}
	for (; optind < argc; optind++)
		*vec_add(&s->databases) = argv[optind];
	if (!s->databases.n)
		*vec_add(&s->databases) = report_default_input();
	if (!access_is_loopback(s->web.address) && !s->token_file)
		return cmd_usage("serve",
			"--listen %s lets other machines in: --token-file must name a file with a "
			"token",
			s->web.address);
	return 0;
}

/* ---- what must be there first ---- */

static int read_token(struct serving *s, struct err *e)
{
	int rc;

	if (!s->token_file) {
		rc = access_new_token(s->token);
		return rc ? err_errno(e, rc, "no random numbers for a token") : 0;
	}
	rc = io_read_line(AT_FDCWD, s->token_file, s->token, sizeof s->token);
	if (rc)
		return err_errno(e, rc, "%s", s->token_file);
	if (strlen(s->token) < WEB_TOKEN_LEAST ||
		strspn(s->token, "0123456789abcdefghijklmnopqrstuvwxyz"
				 "ABCDEFGHIJKLMNOPQRSTUVWXYZ-_.") != strlen(s->token))
		return err_set(e, -EINVAL,
			"%s: a token has %d or more letters, digits, '-', '_' and '.' on the first "
			"line",
			s->token_file, WEB_TOKEN_LEAST);
	return 0;
}

/* What cannot be read is told now, not in the browser. */
static int try_databases(const struct serving *s, struct err *e)
{
	vec_each (file, &s->databases) {
		struct report r = {.input = *file};
		int rc = report_open(&r, &r.store, e);

		report_deinit(&r);
		if (rc)
			return rc;
	}
	return 0;
}

/* Reading needs none: a fault in here is then nobody's way to more. */
static void drop_capabilities(void)
{
	cap_t none = cap_init();

	if (none)
		cap_set_proc(none);
	cap_free(none);
}

static int find_program(struct serving *s, struct err *e)
{
	ssize_t n = readlink("/proc/self/exe", s->program, sizeof s->program - 1);

	if (n < 0)
		return err_errno(e, -errno, "/proc/self/exe");
	s->web.program = s->program;
	return 0;
}

/* ---- the whole ---- */

static void print_address(const struct serving *s, const struct web *w)
{
	bool six = strchr(s->web.address, ':');

	printf("Open http://%s%s%s:%u/?token=%s\n", six ? "[" : "", s->web.address, six ? "]" : "",
		web_port(w), s->token);
	fflush(stdout);
	cmd_note("serving %s%s; Ctrl-C ends it", *s->databases.p,
		s->databases.n > 1 ? " and others" : "");
}

static int serve(struct serving *s, struct err *e)
{
	struct web *w;
	sigset_t ends;
	int which, rc = read_token(s, e);

	if (!rc)
		rc = try_databases(s, e);
	if (!rc)
		rc = find_program(s, e);
	if (rc)
		return rc;
	drop_capabilities();
	s->web.token = s->token;
	s->web.databases = s->databases.p;
	s->web.ndatabases = s->databases.n;
	s->web.hosts = s->hosts.p;
	s->web.nhosts = s->hosts.n;
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &ends, NULL); /* its threads inherit that */
	rc = web_start(&s->web, &w, e);
	if (rc)
		return rc;
	print_address(s, w);
	sigwait(&ends, &which);
	web_stop(w);
	return 0;
}

int cmd_serve(int argc, char **argv)
{
	struct serving s = {.web = {.address = "127.0.0.1", .port = 0}};
	struct err e = {0};
	int code = parse(&s, argc, argv);

	if (code < 0)
		code = cmd_help_text("serve");
	else if (!code && serve(&s, &e))
		code = cmd_fail(&e);
	vec_deinit(&s.databases);
	vec_deinit(&s.hosts);
	return code;
}
