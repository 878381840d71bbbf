/* Answers of a shell that stands for the program: `sh -c SCRIPT`. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "web/answers.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

struct scene {
	char directory[32], *file, *count;
	const char *files[1];
	struct answers *answers;
};

static const struct answer *ask(struct scene *sc, const char *script)
{
	query_line line = {0};
	const struct answer *a;

	*vec_add(&line) = xstrdup("-c");
	*vec_add(&line) = xstrdup(script);
	a = answers_get(sc->answers, &line);
	query_free(&line);
	return a;
}

static void write_text(const char *path, const char *text)
{
	FILE *f = fopen(path, "a");

	fputs(text, f);
	fclose(f);
}

static size_t size_of(const char *path)
{
	FILE *f = fopen(path, "r");
	size_t n = 0;

	while (f && getc(f) != EOF)
		n++;
	if (f)
		fclose(f);
	return n;
}

static int set_up(void **state)
{
	struct scene *sc = xcalloc(1, sizeof *sc);

	strcpy(sc->directory, "/tmp/culprit-answers-XXXXXX");
	assert_non_null(mkdtemp(sc->directory));
	sc->file = xasprintf("%s/db", sc->directory);
	sc->count = xasprintf("%s/count", sc->directory);
	write_text(sc->file, "1");
	sc->files[0] = sc->file;
	sc->answers = answers_create("/bin/sh", sc->files, 1);
	*state = sc;
	return 0;
}

static int tear_down(void **state)
{
	struct scene *sc = *state;

	answers_destroy(sc->answers);
	unlink(sc->file);
	unlink(sc->count);
	rmdir(sc->directory);
	free(sc->file);
	free(sc->count);
	free(sc);
	return 0;
}

static void output_words_and_code_come_back(void **state)
{
	struct scene *sc = *state;
	const struct answer *a = ask(sc, "echo yes; echo no >&2; exit 3");

	assert_int_equal(a->code, 3);
	assert_int_equal(a->output.n, 4);
	assert_memory_equal(a->output.p, "yes\n", 4);
	assert_memory_equal(a->words.p, "no\n", 3);
	answers_put(sc->answers, a);
	a = ask(sc, "kill -9 $$");
	assert_true(a->code < 0);
	answers_put(sc->answers, a);
}

static void the_same_is_run_once(void **state)
{
	struct scene *sc = *state;
	_cleanup_free_ char *script = xasprintf("printf x >> %s", sc->count);

	for (int i = 0; i < 3; i++)
		answers_put(sc->answers, ask(sc, script));
	assert_int_equal(size_of(sc->count), 1);
	write_text(sc->file, "2"); /* the database grows */
	answers_put(sc->answers, ask(sc, script));
	assert_int_equal(size_of(sc->count), 2);
}

struct asking {
	struct scene *sc;
	const char *script;
};

static void *ask_beside(void *arg)
{
	struct asking *q = arg;
	const struct answer *a = ask(q->sc, q->script);
	bool right = a->code == 0 && a->output.n == 2;

	answers_put(q->sc->answers, a);
	return right ? q : NULL;
}

static void many_at_once_wait_for_one(void **state)
{
	struct scene *sc = *state;
	_cleanup_free_ char *script = xasprintf("printf x >> %s; sleep 0.2; echo k", sc->count);
	struct asking q = {sc, script};
	pthread_t threads[50];
	void *right;

	for (int i = 0; i < 50; i++)
		pthread_create(&threads[i], NULL, ask_beside, &q);
	for (int i = 0; i < 50; i++) {
		pthread_join(threads[i], &right);
		assert_ptr_equal(right, &q);
	}
	assert_int_equal(size_of(sc->count), 1);
}

static void long_output_comes_whole(void **state)
{
	struct scene *sc = *state;
	const struct answer *a = ask(sc, "head -c 3000000 /dev/zero; head -c 100000 /dev/zero >&2");

	assert_int_equal(a->code, 0);
	assert_int_equal(a->output.n, 3000000);
	answers_put(sc->answers, a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(output_words_and_code_come_back, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_same_is_run_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(many_at_once_wait_for_one, set_up, tear_down),
		cmocka_unit_test_setup_teardown(long_output_comes_whole, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
