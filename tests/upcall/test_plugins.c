/* The plug-ins that come with culprit, on machine code whose conflicts and operands are known. */
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

enum { CODE = 0x1000, DATA = 0x8000, SIZE = 0x10000 };
enum { RAX, RCX, RDX, RBX, RSP };

static uint8_t memory[SIZE];
static struct interp m;
static struct steps steps;
static struct plugin plugin;

static struct pairs {
	size_t n;
	uint64_t pc[64], value[64];
} got;

static int read_word(void *arg, uint64_t address, uint64_t *word)
{
	(void)arg;
	if (address > SIZE - 8)
		return -EFAULT;
	memcpy(word, memory + address, 8);
	return 0;
}

static void take(void *arg, uint64_t pc, uint64_t value, uint64_t context)
{
	(void)arg, (void)context;
	assert_true(got.n < 64);
	got.pc[got.n] = pc;
	got.value[got.n++] = value;
}

/* build/plugins stands above build/tests/upcall or build/san/tests/upcall. */
static void load(const char *name, const char *arguments)
{
	char exe[PATH_MAX], spec[PATH_MAX + 64];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
	struct err e = {0};
	char *end;

	assert_true(n > 0);
	exe[n] = 0;
	end = strstr(exe, "/tests/upcall/");
	assert_non_null(end);
	*end = 0;
	end = strrchr(exe, '/');
	if (end && !strcmp(end, "/san"))
		*end = 0;
	snprintf(spec, sizeof spec, "%s/plugins/%s.so%s%s", exe, name, *arguments ? "," : "",
		arguments);
	if (plugin_load(&plugin, spec, NULL, 0, &e) < 0)
		fail_msg("%s", e.text);
}

/* Interprets n instructions; rbx points to data, rcx to the page after. */
static void run(const void *code, size_t bytes, unsigned n)
{
	static const struct culprit_burst b = {.upcall = 1};

	memset(memory + CODE, 0x90, 4096);
	memcpy(memory + CODE, code, bytes);
	interp_begin(&m, read_word, NULL);
	memset(m.r, 0, sizeof m.r);
	interp_set_flags(&m, 0);
	m.ip = CODE;
	m.r[RBX] = DATA;
	m.r[RCX] = DATA + 4096;
	m.r[RSP] = 0xf000;
	m.known_xmm = 0xffff;
	steps_begin(&steps);
	steps_look(&steps, &m);
	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(interp_step(&m), INTERP_GOES_ON);
		steps_add(&steps, &m);
	}
	got.n = 0;
	plugin_run(&plugin, NULL, &steps, &b, take, NULL);
}
#define RUN(n, ...) run((const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}), n)

#define STORE_BYTE 0xc6, 0x03, 0x01       /* mov byte [rbx], 1 */
#define STORE_8    0x48, 0x89, 0x13       /* mov [rbx], rdx */
#define LOAD_8     0x48, 0x8b, 0x03       /* mov rax, [rbx] */
#define LOAD_BYTE  0x0f, 0xb6, 0x43, 0x03 /* movzx eax, byte [rbx+3] */
#define LOAD_PAGE  0x48, 0x8b, 0x01       /* mov rax, [rcx] */

/* The value for a store so many bytes of code before its load. */
static uint64_t before(unsigned what, unsigned bytes)
{
	return (uint64_t)what << 56 | ((0 - (uint64_t)bytes) & ~0ull >> 8);
}

static void says(const char *text)
{
	char buffer[64];

	plugin_format(&plugin, got.value[0], buffer, sizeof buffer);
	assert_string_equal(buffer, text);
}

static void conflicts(void **state)
{
	(void)state;
	load("conflicts", "");
	RUN(2, STORE_BYTE, LOAD_8);
	assert_int_equal(got.n, 1);
	assert_int_equal(got.pc[0], CODE + 3);
	assert_int_equal(got.value[0], before(1, 3));
	says("blocked by the store at -0x3");
	RUN(2, STORE_8, LOAD_8);
	assert_int_equal(got.n, 0);
	RUN(2, STORE_8, LOAD_BYTE);
	assert_int_equal(got.n, 0);
	RUN(2, STORE_8, LOAD_PAGE);
	assert_int_equal(got.n, 1);
	assert_int_equal(got.value[0], before(2, 3));
	says("4K alias of the store at -0x3");
	/* The younger store covers what the older did not. */
	RUN(3, STORE_BYTE, STORE_8, LOAD_8);
	assert_int_equal(got.n, 0);
	/* Beside each other, on the same page: nothing. */
	RUN(2, 0x48, 0x89, 0x53, 0x08, LOAD_8);
	assert_int_equal(got.n, 0);
	/* Two halves: no store has all of it. */
	RUN(3, 0x89, 0x13, 0x89, 0x53, 0x04, LOAD_8);
	assert_int_equal(got.n, 1);
	assert_int_equal(got.value[0], before(1, 3));
	plugin_close(&plugin);
}

/* What is too far apart to be in flight together. */
static void conflicts_window(void **state)
{
	uint8_t code[64];

	(void)state;
	load("conflicts", "");
	memset(code, 0x90, sizeof code);
	memcpy(code, (const uint8_t[]){STORE_BYTE}, 3);
	memcpy(code + 3 + 47, (const uint8_t[]){LOAD_8}, 3);
	run(code, sizeof code, 49);
	assert_int_equal(got.n, 1);
	memset(code + 3, 0x90, sizeof code - 3);
	memcpy(code + 3 + 48, (const uint8_t[]){LOAD_8}, 3);
	run(code, sizeof code, 50);
	assert_int_equal(got.n, 0);
	plugin_close(&plugin);
}

/* Loads that cannot begin before the store has left. */
static void conflicts_filter(void **state)
{
	(void)state;
	load("conflicts", "");
	/* lock add [rsp], 0 in between, itself at an alias */
	RUN(3, STORE_BYTE, 0xf0, 0x83, 0x04, 0x24, 0x00, LOAD_8);
	assert_int_equal(got.n, 0);
	/* The same without lock. */
	RUN(3, STORE_BYTE, 0x83, 0x04, 0x24, 0x00, LOAD_8);
	assert_int_equal(got.n, 2);
	assert_int_equal(got.value[0] >> 56, 2);
	assert_int_equal(got.value[1], before(1, 7));
	/* mfence */
	RUN(3, STORE_BYTE, 0x0f, 0xae, 0xf0, LOAD_8);
	assert_int_equal(got.n, 0);
	/* A blocked load, and one whose address is made of what it found:
	 * and eax, 0; mov rdx, [rbx+rax]: only the first is reported. */
	RUN(4, STORE_BYTE, LOAD_8, 0x83, 0xe0, 0x00, 0x48, 0x8b, 0x14, 0x03);
	assert_int_equal(got.n, 1);
	assert_int_equal(got.pc[0], CODE + 3);
	/* By way of memory: push rax; pop rdx; and edx, 0; mov rdx, [rbx+rdx] */
	RUN(6, STORE_BYTE, LOAD_8, 0x50, 0x5a, 0x83, 0xe2, 0x00, 0x48, 0x8b, 0x14, 0x13);
	assert_int_equal(got.n, 1);
	/* An address that does not depend on it: both are. */
	RUN(4, STORE_BYTE, LOAD_8, 0x83, 0xe0, 0x00, 0x48, 0x8b, 0x13);
	assert_int_equal(got.n, 2);
	plugin_close(&plugin);
}

static uint64_t bits_of(double d)
{
	uint64_t bits;

	memcpy(&bits, &d, 8);
	return bits;
}

static void floats(void **state)
{
	const double one = 1, huge = 2.5e300;

	(void)state;
	load("floats", "");
	memcpy(memory + DATA, &one, 8);
	memcpy(memory + DATA + 8, &huge, 8);
	/* movsd xmm1, [rbx]; addsd xmm2, xmm1 */
	m.xmm[2][0] = bits_of(3e-310);
	RUN(2, 0xf2, 0x0f, 0x10, 0x0b, 0xf2, 0x0f, 0x58, 0xd1);
	assert_int_equal(got.n, 2);
	assert_int_equal(got.pc[0], CODE + 4);
	assert_int_equal(got.value[0], 1);
	says("denormal");
	assert_int_equal(got.value[1], bits_of(1));
	/* movups xmm1, [rbx]; mulpd xmm2, xmm1: two of each */
	m.xmm[2][0] = bits_of(-__builtin_nan("7"));
	m.xmm[2][1] = bits_of(-__builtin_inf());
	RUN(2, 0x0f, 0x10, 0x0b, 0x66, 0x0f, 0x59, 0xd1);
	assert_int_equal(got.n, 4);
	assert_int_equal(got.value[0], 0x7ff8000000000000);
	says("NaN");
	assert_int_equal(got.value[1], bits_of(-__builtin_inf()));
	assert_int_equal(got.value[3], bits_of(huge));
	/* sqrtss xmm1, xmm2 has one operand, andps is no arithmetic. */
	m.xmm[2][0] = 0x40800000;
	RUN(2, 0xf3, 0x0f, 0x51, 0xca, 0x0f, 0x54, 0xca);
	assert_int_equal(got.n, 1);
	assert_int_equal(got.value[0], 0x40800000);
	says("4");
	plugin_close(&plugin);
}

static void latencies(void **state)
{
	static const struct culprit_burst b = {.upcall = 1};
	static const uint32_t cycles[] = {1, 9, 10, 39, 40, 149, 150, 1999, 2000, 70000};
	static const uint8_t level[] = {1, 1, 2, 2, 3, 3, 4, 4, 5, 5};

	(void)state;
	load("latency", "10:40:150:2000");
	memset(&steps, 0, sizeof steps);
	for (size_t i = 0; i < 10; i++) {
		steps.step[i].has = CULPRIT_LOADS | CULPRIT_TIMED;
		steps.step[i].latency = cycles[i];
	}
	steps.step[10].has = CULPRIT_LOADS; /* not measured */
	steps.n = 11;
	got.n = 0;
	plugin_run(&plugin, NULL, &steps, &b, take, NULL);
	assert_int_equal(got.n, 10);
	for (size_t i = 0; i < 10; i++)
		assert_int_equal(got.value[i] & 7, level[i]);
	assert_int_equal(got.value[9] >> 3, 65536 >> 3);
	says("L1, about 12 cycles");
	plugin_close(&plugin);
}

/* Whatever this machine is like, the levels are in order, and memory is far. */
static void latencies_measured(void **state)
{
	uint32_t config[8];

	(void)state;
	load("latency", "");
	memcpy(config, plugin.config, sizeof config);
	for (int i = 1; i < 4; i++)
		assert_true(config[i] >= config[i - 1]);
	assert_true(config[3] > config[0]);
	plugin_close(&plugin);
}

static void bad_arguments(void **state)
{
	struct err e = {0};

	(void)state;
	load("latency", "1:2:3:4");
	assert_int_equal(plugin_prepare(&plugin, "1:2:3", &e), -EINVAL);
	assert_non_null(strstr(e.text, "four limits"));
	plugin_close(&plugin);
	load("floats", "");
	assert_int_equal(plugin_prepare(&plugin, "x", &e), -EINVAL);
	assert_non_null(strstr(e.text, "takes no arguments"));
	plugin_close(&plugin);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(conflicts),
		cmocka_unit_test(conflicts_window),
		cmocka_unit_test(conflicts_filter),
		cmocka_unit_test(floats),
		cmocka_unit_test(latencies),
		cmocka_unit_test(latencies_measured),
		cmocka_unit_test(bad_arguments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
