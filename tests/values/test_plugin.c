#include "base/err.h"
#include "values/plugin_host.h"
#include "values/step.h"
#include "values/values.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[64], header[PATH_MAX];

/* The sources stand two folders above this file. */
static int make_folder(void **state)
{
	char *end;

	(void)state;
	if (!realpath(__FILE__, header))
		return -1;
	end = strstr(header, "/tests/values/");
	if (!end)
		return -1;
	strcpy(end, "/src/values/plugin.h");
	strcpy(folder, "/tmp/culprit-plugins.XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof command, "rm -rf %s", folder);
	return system(command);
}

/* Builds FOLDER/name.so from what stands behind the include. */
static void build(const char *name, const char *text, char path[PATH_MAX])
{
	char command[PATH_MAX + 256];
	FILE *f;

	snprintf(path, PATH_MAX, "%s/%s.c", folder, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fprintf(f, "#include \"%s\"\n%s\n", header, text);
	fclose(f);
	snprintf(path, PATH_MAX, "%s/%s.so", folder, name);
	snprintf(command, sizeof command, "cc -Wall -Werror -shared -fPIC -o %s %s/%s.c", path,
		folder, name);
	assert_int_equal(system(command), 0);
}

#define QUIET                                                                                     \
	"static void burst(void *s, const unsigned char *c, const struct culprit_burst *b,"       \
	" culprit_emit *emit, void *arg) { (void)s, (void)c, (void)b, (void)emit, (void)arg; }\n" \
	"const struct culprit_plugin culprit_plugin = "

/* What a file that cannot be used is said to be, in one line that names it. */
static void refused(const char *path, int code, const char *words)
{
	static struct plugin p;
	struct err e = {0};

	assert_int_equal(plugin_load(&p, path, NULL, 0, &e), code);
	assert_non_null(strstr(e.text, words));
	assert_null(strchr(e.text, '\n'));
	assert_null(p.handle);
}

static void files_that_are_none(void **state)
{
	char path[PATH_MAX];
	FILE *f;

	(void)state;
	refused("/nowhere/plugin.so", -ENOENT, "/nowhere/plugin.so");
	refused("nosuchplugin", -ENOENT, "nosuchplugin");
	refused("", -EINVAL, "name of a file");
	snprintf(path, sizeof path, "%s/text.so", folder);
	f = fopen(path, "w");
	fputs("not an object", f);
	fclose(f);
	refused(path, -ENOEXEC, "cannot be loaded");
	build("other", "int something;", path);
	refused(path, -ENOEXEC, "does not define culprit_plugin");
}

static void versions(void **state)
{
	char path[PATH_MAX];

	(void)state;
	build("newer", QUIET "{.version = 7, .size = sizeof culprit_plugin, .burst = burst};",
		path);
	refused(path, -EPROTO, "interface 7, this culprit has 1");
	build("smaller", QUIET "{.version = 1, .size = 8, .burst = burst};", path);
	refused(path, -EPROTO, "8 bytes");
}

static void nonsense(void **state)
{
	char path[PATH_MAX];

	(void)state;
	build("nameless", QUIET "{CULPRIT_PLUGIN(.burst = burst)};", path);
	refused(path, -EINVAL, "proper name");
	build("shouts", QUIET "{CULPRIT_PLUGIN(.name = \"Shouts!\", .burst = burst)};", path);
	refused(path, -EINVAL, "proper name");
	build("idle",
		"const struct culprit_plugin culprit_plugin = {CULPRIT_PLUGIN(.name = \"idle\")};",
		path);
	refused(path, -EINVAL, "no function for bursts");
	build("greedy",
		QUIET
		"{CULPRIT_PLUGIN(.name = \"greedy\", .burst = burst, .state_size = 1 << 20)};",
		path);
	refused(path, -EINVAL, "1048576 bytes a thread");
	build("unsure",
		"static const char *prepare(const char *a, unsigned char *c) { return c ? \"is not "
		"in the "
		"mood\" : a; }\n" QUIET
		"{CULPRIT_PLUGIN(.name = \"unsure\", .burst = burst, .prepare = prepare)};",
		path);
	refused(path, -EINVAL, "plug-in unsure: is not in the mood");
}

/* Loads are counted by thread; the configuration is the first letter of the arguments. */
static const char counter[] =
	"static const char *prepare(const char *a, unsigned char *c) { c[0] = a[0]; return 0; }\n"
	"static void burst(void *s, const unsigned char *c, const struct culprit_burst *b,"
	" culprit_emit *emit, void *arg) {\n"
	"	for (size_t i = 0; i < b->n; i++)\n"
	"		emit(arg, b->steps[i]->pc, ++*(unsigned *)s * 1000 + c[0], b->tid); }\n"
	"static int format(uint64_t v, char *t, size_t n) {"
	" if (n) { t[0] = '#'; if (n > 1) t[1] = 0; } return (int)v; }\n"
	"static const struct culprit_capture captures[] = {\n"
	"	{.has = CULPRIT_LOADS, .opcode = 0x8b, .opcode_mask = 0xffff},\n"
	"	{.any = CULPRIT_STORES | CULPRIT_BRANCH, .low = 0x2000, .high = 0x3000}};\n"
	"const struct culprit_plugin culprit_plugin = {CULPRIT_PLUGIN(.name = \"counter\","
	" .captures = captures, .ncaptures = 2, .state_size = 4, .prepare = prepare,"
	" .burst = burst, .format = format)};\n";

struct pairs {
	size_t n;
	uint64_t pc[8], value[8], context[8];
};

static void take(void *arg, uint64_t pc, uint64_t value, uint64_t context)
{
	struct pairs *p = arg;

	assert_true(p->n < 8);
	p->pc[p->n] = pc;
	p->value[p->n] = value;
	p->context[p->n++] = context;
}

static void captures_and_state(void **state)
{
	static struct plugin p, same;
	static struct steps steps;
	struct culprit_burst b = {.tid = 5};
	struct pairs got = {0};
	struct err e = {0};
	unsigned count = 0;
	char path[PATH_MAX], spec[PATH_MAX + 8], text[8];

	(void)state;
	build("counter", counter, path);
	snprintf(spec, sizeof spec, "%s,!x", path);
	assert_int_equal(plugin_load(&p, spec, NULL, 0, &e), 0);
	assert_int_equal(plugin_load(&same, path, &p, 1, &e), -EEXIST);
	assert_in_range(p.kind, VALUE_PLUGIN0, UINT16_MAX);
	steps.n = 5;
	steps.step[0] = (struct culprit_step){.pc = 0x10, .has = CULPRIT_LOADS, .opcode = 0x8b};
	steps.step[1] = (struct culprit_step){.pc = 0x14, .has = CULPRIT_LOADS, .opcode = 0x03};
	steps.step[2] = (struct culprit_step){.pc = 0x2000, .has = CULPRIT_STORES};
	steps.step[3] = (struct culprit_step){.pc = 0x3000, .has = CULPRIT_STORES};
	steps.step[4] = (struct culprit_step){.pc = 0x2fff, .has = CULPRIT_BRANCH};
	plugin_run(&p, &count, &steps, &b, take, &got);
	assert_int_equal(got.n, 3);
	assert_int_equal(got.pc[0], 0x10);
	assert_int_equal(got.pc[1], 0x2000);
	assert_int_equal(got.pc[2], 0x2fff);
	assert_int_equal(got.value[2], 3000 + '!');
	assert_int_equal(got.context[2], 5);
	plugin_format(&p, 1, text, sizeof text);
	assert_string_equal(text, "#");
	plugin_close(&p);
}

static void kinds(void **state)
{
	(void)state;
	assert_int_equal(plugin_kind("latency"), VALUE_LATENCY);
	assert_int_equal(plugin_kind("conflicts"), VALUE_CONFLICT);
	assert_int_equal(plugin_kind("floats"), VALUE_FLOAT);
	assert_int_not_equal(plugin_kind("a"), plugin_kind("b"));
	assert_int_equal(plugin_kind("mine"), plugin_kind("mine"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_that_are_none),
		cmocka_unit_test(versions),
		cmocka_unit_test(nonsense),
		cmocka_unit_test(captures_and_state),
		cmocka_unit_test(kinds),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
