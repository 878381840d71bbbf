#include "base/buf.h"
#include "base/err.h"
#include "collect/control.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/culprit-control-XXXXXX";
static char database[64];

static int make_folder(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(database, sizeof database, "%s/p.db", folder);
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	return rmdir(folder);
}

/* Answers one request in a child and leaves. */
static pid_t serve_one(int fd, const char *answer)
{
	pid_t pid = fork();

	if (pid == 0) {
		char request[64];
		int client;

		while ((client = control_accept(fd, request, sizeof request)) < 0)
			usleep(1000);
		if (answer)
			send(client, answer, strlen(answer), MSG_NOSIGNAL);
		_exit(strcmp(request, "status") != 0);
	}
	return pid;
}

static int ask(const char *answer, struct buf *out, struct err *e)
{
	int fd, status, code;
	pid_t pid;

	assert_int_equal(control_listen(database, &fd, e), 0);
	pid = serve_one(fd, answer);
	code = control_ask(database, "status", out, e);
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	control_close(database, fd);
	return code;
}

static void answers_come_back(void **state)
{
	struct buf out = {0};
	struct err e = {0};

	(void)state;
	assert_int_equal(ask("ok\npid 7\nrate 99\n", &out, &e), 0);
	assert_string_equal(buf_cstr(&out), "pid 7\nrate 99\n");
	buf_deinit(&out);
}

static void failures_come_back_with_their_code(void **state)
{
	struct buf out = {0};
	struct err e = {0};

	(void)state;
	assert_int_equal(ask("error -28 p.db: no space left\n", &out, &e), -ENOSPC);
	assert_string_equal(e.text, "p.db: no space left");
	out.n = 0;
	assert_int_equal(ask(NULL, &out, &e), -EPIPE);
	buf_deinit(&out);
}

static void nobody_there(void **state)
{
	struct buf out = {0};
	struct err e = {0};

	(void)state;
	assert_int_equal(control_ask(database, "status", &out, &e), -ENOTCONN);
	assert_non_null(strstr(e.text, "daemon start"));
	buf_deinit(&out);
}

static void one_daemon_a_database(void **state)
{
	struct err e = {0};
	int first, second;

	(void)state;
	assert_int_equal(control_listen(database, &first, &e), 0);
	assert_int_equal(control_listen(database, &second, &e), -EADDRINUSE);
	/* A daemon that was killed leaves its socket behind. */
	close(first);
	assert_int_equal(control_listen(database, &second, &e), 0);
	control_close(database, second);
}

static void the_socket_is_private(void **state)
{
	struct err e = {0};
	struct stat st;
	char path[80];
	int fd;

	(void)state;
	assert_int_equal(control_listen(database, &fd, &e), 0);
	snprintf(path, sizeof path, "%s.sock", database);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	control_close(database, fd);
	assert_int_equal(stat(path, &st), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_come_back),
		cmocka_unit_test(failures_come_back_with_their_code),
		cmocka_unit_test(nobody_there),
		cmocka_unit_test(one_daemon_a_database),
		cmocka_unit_test(the_socket_is_private),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
