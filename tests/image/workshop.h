/*
 * A directory for the files of a test, and what makes files in it.
 */
#ifndef CULPRIT_TESTS_IMAGE_WORKSHOP_H
#define CULPRIT_TESTS_IMAGE_WORKSHOP_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char workshop[64];

/* Paths in the workshop are good until four more were asked for. */
static inline const char *in_workshop(const char *name)
{
	static char paths[4][256];
	static int turn;
	char *path = paths[turn++ % 4];
	snprintf(path, sizeof paths[0], "%s/%s", workshop, name);
	return path;
}

/* Runs a command in the workshop, which must succeed. */
__attribute__((format(printf, 1, 2))) static inline void shell(const char *fmt, ...)
{
	char command[2048];
	int n = snprintf(command, sizeof command, "cd %s && ", workshop);
	va_list args;
	va_start(args, fmt);
	vsnprintf(command + n, sizeof command - (size_t)n, fmt, args);
	va_end(args);
	if (system(command) != 0)
		fail_msg("%s", command);
}

static inline void write_bytes(const char *name, const void *p, size_t n)
{
	FILE *f = fopen(in_workshop(name), "w");
	assert_non_null(f);
	assert_int_equal(fwrite(p, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
}

static inline void write_text(const char *name, const char *text)
{
	write_bytes(name, text, strlen(text));
}

/* The address of a symbol of a program there. */
static inline uint64_t address_in(const char *program, const char *name)
{
	unsigned long long address = 0;

	shell("nm %s | awk '$3 == \"%s\" {print $1}' > address", program, name);
	FILE *f = fopen(in_workshop("address"), "r");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%llx", &address), 1);
	fclose(f);
	return address;
}

static inline int open_workshop(void **state)
{
	(void)state;
	strcpy(workshop, "/tmp/culprit-test-XXXXXX");
	return mkdtemp(workshop) ? 0 : -1;
}

static inline int close_workshop(void **state)
{
	(void)state;
	char command[128];
	snprintf(command, sizeof command, "rm -rf %s", workshop);
	return system(command);
}

#endif
