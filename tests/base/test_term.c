#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/table.h"
#include "base/term.h"

/* Runs f in a child whose terminal is ours; returns its exit status, its output in `said`. */
static int on_terminal(void (*f)(void), char *said, size_t size)
{
	struct winsize window = {.ws_row = 24, .ws_col = 66};
	int terminal, status;
	size_t n = 0;
	pid_t pid = forkpty(&terminal, NULL, NULL, &window);
	if (pid == 0) {
		setenv("TERM", "xterm", 1);
		unsetenv("NO_COLOR");
		f();
		fflush(stdout);
		_exit(7);
	}
	assert_true(pid > 0);
	for (ssize_t got; n < size - 1; n += (size_t)got) {
		got = read(terminal, said + n, size - 1 - n);
		if (got <= 0) /* EIO when the other side is closed */
			break;
	}
	said[n] = 0;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	close(terminal);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void show_all(void)
{
	printf("%d %d %sb%sd%sr%s\n", term_is_tty(), term_width(), term_bold(), term_dim(),
		term_red(), term_reset());
}

static void show_without_color(void)
{
	setenv("NO_COLOR", "1", 1);
	show_all();
}

static void show_dumb(void)
{
	setenv("TERM", "dumb", 1);
	show_all();
}

static void test_terminal(void **state)
{
	(void)state;
	char said[256];
	assert_int_equal(on_terminal(show_all, said, sizeof said), 7);
	assert_string_equal(said, "1 66 \033[1mb\033[2md\033[31mr\033[0m\r\n");
	on_terminal(show_without_color, said, sizeof said);
	assert_string_equal(said, "1 66 bdr\r\n");
	on_terminal(show_dumb, said, sizeof said);
	assert_string_equal(said, "1 66 bdr\r\n");
}

static void test_no_terminal(void **state)
{
	(void)state;
	int ends[2];
	char said[64] = "";
	assert_int_equal(pipe(ends), 0);
	pid_t pid = fork();
	if (pid == 0) {
		dup2(ends[1], STDOUT_FILENO);
		setenv("CULPRIT_PAGER", "sed s/^/pager/", 1);
		term_pager_start();
		show_all();
		term_pager_end();
		_exit(0);
	}
	close(ends[1]);
	assert_true(read(ends[0], said, sizeof said - 1) > 0);
	assert_string_equal(said, "0 0 bdr\n");
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	close(ends[0]);
}

static void page_something(void)
{
	setenv("CULPRIT_PAGER", "sed s/^/pager:/", 1);
	printf("before\n");
	term_pager_start();
	show_all(); /* still a terminal, behind the pager */
	term_pager_end();
	printf("after\n");
}

static void page_with_nothing(void)
{
	setenv("CULPRIT_PAGER", "", 1);
	setenv("PAGER", "sed s/^/wrong/", 1);
	term_pager_start();
	printf("plain\n");
	term_pager_end();
}

static void page_by_pager(void)
{
	unsetenv("CULPRIT_PAGER");
	setenv("PAGER", "echo $LESS; cat", 1);
	unsetenv("LESS");
	term_pager_start();
	printf("text\n");
	term_pager_end();
}

static void test_pager(void **state)
{
	(void)state;
	char said[256];
	assert_int_equal(on_terminal(page_something, said, sizeof said), 7);
	assert_string_equal(
		said, "before\r\npager:1 66 \033[1mb\033[2md\033[31mr\033[0m\r\nafter\r\n");
	assert_int_equal(on_terminal(page_with_nothing, said, sizeof said), 7);
	assert_string_equal(said, "plain\r\n");
	assert_int_equal(on_terminal(page_by_pager, said, sizeof said), 7);
	assert_string_equal(said, "FRX\r\ntext\r\n");
}

static void page_too_much(void)
{
	setenv("CULPRIT_PAGER", "head -n 1", 1);
	term_pager_start();
	for (int i = 0; i < 100000; i++)
		printf("line %d\n", i);
	term_pager_end();
}

static void interrupt_pager(void)
{
	setenv("CULPRIT_PAGER", "cat >/dev/null; echo pager done", 1);
	term_pager_start();
	printf("line\n");
	raise(SIGINT);
	printf("never\n");
	term_pager_end();
}

static void interrupt_at_end(void)
{
	setenv("CULPRIT_PAGER", "cat; kill -INT $PPID", 1);
	term_pager_start();
	printf("all of it\n");
	term_pager_end();
	printf("after\n");
}

/* Leaving the pager is no failure; an interrupt waits for the pager first. */
static void test_pager_ends_early(void **state)
{
	(void)state;
	char said[256];
	assert_int_equal(on_terminal(page_too_much, said, sizeof said), 0);
	assert_string_equal(said, "line 0\r\n");
	assert_int_equal(on_terminal(interrupt_pager, said, sizeof said), 128 + SIGINT);
	assert_string_equal(said, "pager done\r\n");
	assert_int_equal(on_terminal(interrupt_at_end, said, sizeof said), 7);
	assert_string_equal(said, "all of it\r\nafter\r\n");
}

static void show_table(void)
{
	struct table *t = table_create("<");
	table_cell(t, "head");
	table_row(t);
	table_header(t);
	table_cell(t, "body");
	table_row(t);
	table_print(t, stdout, term_width());
	table_destroy(t);
}

static void test_heading_is_bold(void **state)
{
	(void)state;
	char said[256];
	on_terminal(show_table, said, sizeof said);
	assert_string_equal(said, "\033[1mhead\033[0m\r\nbody\r\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_terminal),
		cmocka_unit_test(test_no_terminal),
		cmocka_unit_test(test_pager),
		cmocka_unit_test(test_pager_ends_early),
		cmocka_unit_test(test_heading_is_bold),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
