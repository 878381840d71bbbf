#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "web/query.h"

#include <errno.h>

static const char *const files[] = {"/tmp/a.db", "b.db"};

/* The command as words with blanks between; NULL when it is refused. */
static const char *command(const char *endpoint, const struct query_parameter *p, size_t n)
{
	static struct buf text;
	query_line line = {0};
	struct err e = {0};
	int rc = query_command(endpoint, p, n, files, 2, &line, &e);

	text.n = 0;
	vec_each (word, &line)
		buf_printf(&text, text.n ? " %s" : "%s", *word);
	query_free(&line);
	if (rc)
		assert_true(*e.text);
	return rc ? NULL : buf_cstr(&text);
}

#define COMMAND(endpoint, ...)                                           \
	command(endpoint, (const struct query_parameter[]){__VA_ARGS__}, \
		sizeof((const struct query_parameter[]){__VA_ARGS__}) /  \
			sizeof(struct query_parameter))

static void verbs_get_their_options(void **state)
{
	(void)state;
	assert_string_equal(COMMAND("top", {"by", "image"}, {"children", "1"}, {"rows", ""}),
		"top --json --input=/tmp/a.db --by=image --children --");
	assert_string_equal(COMMAND("list", {"procedure", "main"}, {"db", "1"}),
		"list --json --input=b.db -- main");
	assert_string_equal(COMMAND("epochs", {"db", "1"}), "db ls --json -- b.db");
	assert_string_equal(COMMAND("diff", {"before", "0"}, {"after", "1"}, {"after-epochs", "2"}),
		"diff --json -- /tmp/a.db b.db:2");
	assert_string_equal(
		COMMAND("bursts", {"burst", "7"}), "bursts --json --input=/tmp/a.db -- 7");
}

static void nothing_becomes_an_option(void **state)
{
	(void)state;
	assert_string_equal(COMMAND("list", {"procedure", "--input=/etc/shadow"}),
		"list --json --input=/tmp/a.db -- --input=/etc/shadow");
	assert_string_equal(COMMAND("top", {"comm", "--by=x"}),
		"top --json --input=/tmp/a.db --comm=--by=x --");
	assert_null(COMMAND("top", {"input", "/etc/shadow"}));
	assert_null(COMMAND("top", {"output", "x"}));
	assert_null(COMMAND("top", {"", "x"}));
	assert_null(COMMAND("top", {"by= ", "x"}));
	assert_null(COMMAND("cfg", {"procedure", "f"}, {"output", "/tmp/x.svg"}));
}

static void only_what_is_served_is_read(void **state)
{
	(void)state;
	assert_null(COMMAND("top", {"db", "2"}));
	assert_null(COMMAND("top", {"db", "-1"}));
	assert_null(COMMAND("top", {"db", "x"}));
	assert_null(COMMAND("top", {"db", "/etc/shadow"}));
	assert_null(COMMAND("diff", {"before", "0"}));
	assert_null(COMMAND("diff", {"before", "0"}, {"after", "2"}));
}

static void unknown_reports_are_refused(void **state)
{
	(void)state;
	assert_null(COMMAND("record", {"db", "0"}));
	assert_null(COMMAND("edit", {"db", "0"}));
	assert_null(COMMAND("", {"db", "0"}));
	assert_null(COMMAND("list", {"db", "0"}));
	assert_string_equal(query_content_type("cfg"), "image/svg+xml");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(verbs_get_their_options),
		cmocka_unit_test(nothing_becomes_an_option),
		cmocka_unit_test(only_what_is_served_is_read),
		cmocka_unit_test(unknown_reports_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
